# SPDX-License-Identifier: Apache-2.0
"""What a session leaves is verified by people who have nothing of ours: a Go
program over Debian's packages, and sh with openssl as sallyport-log(5) says.
The page tells of each field that there is, and its snippets can be read."""
import base64
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import yaml

from harness import check, descendants
from lab import HERE, TOP
from evidence_lab import ASK, folder, parts, policy, public_of, read, receipt, sallyport
from test_hostlog import World, until
from test_tamper import Session

sys.path.append(TOP + "/tests/policy")
from man_examples import ROFF

PAGE = TOP + "/deploy/man/sallyport-log.5"
VKEY = "/etc/sallyport/signing.vkey"


def key_of(case):
    """Of the signer, by another way than the log."""
    path = VKEY if case.who == "root" else case.work + "/.config/sallyport/signing.vkey"
    return read(path).decode().strip()


def copy(case, log, name):
    to = f"{case.lab.dir}/{name}-{case.who}"
    shutil.copytree(log, to)
    return to


# --- Go ----------------------------------------------------------------------

def outsider(case):
    """The program, built once, from what is installed."""
    program = case.lab.dir + "/outsider"
    if not os.path.exists(program):
        home = case.lab.dir + "/go"
        os.mkdir(home)
        env = {**os.environ, "HOME": home, "GOPATH": "/usr/share/gocode",
               "GO111MODULE": "off", "GOFLAGS": "", "GOPROXY": "off",
               "GOTOOLCHAIN": "local", "GOCACHE": home + "/cache"}
        subprocess.run(["go", "build", "-o", program, HERE + "/outsider/main.go"],
                       env=env, check=True, timeout=300)
    return program


def fits(case, log, *proof):
    done = subprocess.run([outsider(case), log, *proof], text=True, capture_output=True,
                          timeout=60)
    check(done.returncode == 0, done)
    records, checkpoints = map(int, re.findall(r"\d+", done.stdout)[:2])
    check(public_of(read(log, "session.vkey").decode()) == public_of(key_of(case)))
    return records, checkpoints


def refuses(case, log, word, *proof):
    done = subprocess.run([outsider(case), log, *proof], text=True, capture_output=True,
                          timeout=60)
    check(done.returncode == 1 and word in done.stderr, (word, done))


def lines(log):
    return b"".join(read(p) for p in parts(log)).count(b"\n")


def busy(case, name, log_section, asks):
    args = policy(case, name, f"log: {log_section}\nlimits: {{ dns_per_second: 100000 }}\n"
                  "allow: [allowed.test]\n")
    code = ASK % (asks, 0.001) + """
import subprocess
for url in "https://allowed.test/", "http://allowed.test/", "https://no.test/":
    subprocess.run(["curl", "-s", url])
"""
    run = case.run("python3", "-c", code, args=args, allow=())
    check(run.status == 0 and run.out.count("hello") == 2, run)
    return run


def test_go_reads_a_plain_session(case):
    run = case.run("true")
    check(fits(case, run.log)[0] == lines(run.log) == len(run.records), run)


def test_go_reads_parts(case):
    run = busy(case, "go-parts", "{ rotate: 64 KiB }", 300)
    check(len(parts(run.log)) > 2, parts(run.log))
    records, checkpoints = fits(case, run.log)
    check(records == lines(run.log) > 300 and checkpoints > 3, (records, checkpoints))
    for part in parts(run.log)[:2]:
        broken = copy(case, run.log, "go-" + os.path.basename(part))
        os.unlink(f"{broken}/{os.path.basename(part)}")
        refuses(case, broken, "")


def test_go_reads_each_signature(case):
    run = busy(case, "go-every", "{ sign: every }", 10)
    records, checkpoints = fits(case, run.log)
    check(records == checkpoints == lines(run.log), (records, checkpoints))


def test_go_reads_a_proof(case):
    run = busy(case, "go-proof", "{ rotate: 64 KiB }", 200)
    count = lines(run.log)
    for number in (0, 1, 63, 64, count // 2, count - 1):
        proof = f"{case.work}/proof-{number}"
        made = sallyport(case, "verify", "--proof", str(number), "-o", proof, run.log)
        check(made.returncode == 0, made)
        fits(case, run.log, proof, str(number))
        refuses(case, run.log, "no proof of record", proof, str(number + 1))
        text = read(proof).replace(b"index %d\n" % number,
                                   b"index %d\n" % ((number + 1) % count))
        with open(proof + "-moved", "wb") as f:
            f.write(text)
        refuses(case, run.log, "", proof + "-moved", str((number + 1) % count))


def test_go_finds_damage(case):
    """The same program that says that all is well."""
    run = busy(case, "go-damage", "{ sign: batch }", 150)
    other = case.run("true")

    def damage(name, word, change):
        log = copy(case, run.log, "go-" + name)
        change(log)
        refuses(case, log, word)

    def rewrite(file, change):
        def apply(log):
            data = read(log, file)
            with open(f"{log}/{file}", "wb") as f:
                f.write(change(data))
            check(read(log, file) != data)
        return apply

    def swapped(data):
        rows = data.split(b"\n")
        rows[70], rows[71] = rows[71], rows[70]
        return b"\n".join(rows)

    def replaced(file):
        return lambda log: shutil.copy(f"{other.log}/{file}", f"{log}/{file}")
    damage("edited", "is another one", rewrite(
        "audit.jsonl", lambda data: data.replace(b"refused.test", b"allowed.test", 1)))
    damage("swapped", "is another one", rewrite("audit.jsonl", swapped))
    damage("cut", "", rewrite("audit.jsonl", lambda data: data[:data.rindex(b"\n", 0, -1) + 1]))
    damage("torn", "middle of a line", rewrite("audit.jsonl", lambda data: data[:-1]))
    damage("more", "another", rewrite("audit.jsonl", lambda data: data + b"{}\n"))
    damage("checkpoint", "of another log", rewrite(
        "checkpoints", lambda data: b"\n".join(data.split(b"\n")[:-6]) + b"\n"))
    damage("forged", "", rewrite(
        "checkpoints", lambda data: data.replace(data.split(b"\n")[2], b"A" * 43 + b"=")))
    damage("receipt", "of another", replaced("receipt.dsse.json"))
    damage("key", "", replaced("session.vkey"))
    damage("none", "receipt", lambda log: os.unlink(log + "/receipt.dsse.json"))


# --- by hand -----------------------------------------------------------------

def plain(text):
    escapes = re.compile("|".join(map(re.escape, ROFF)))
    unknown = escapes.sub("", text)
    check("\\" not in unknown, unknown)
    return escapes.sub(lambda found: ROFF[found[0]], text)


def section(name):
    page = read(PAGE).decode()
    begin = page.index(f'.SH "{name}"\n')
    return page[begin:page.index("\n.SH", begin + 1)]


def blocks(name):
    return [plain(block) for block in
            re.findall(r"^\.EX\n(.*?)^\.EE$", section(name), re.M | re.S)]


def by_hand(log):
    recipe, = blocks("VERIFYING WITHOUT SALLYPORT")
    return subprocess.run(["sh", "-e", "-c", recipe], cwd=log, text=True,
                          capture_output=True, timeout=60)


def test_by_hand(case):
    run = busy(case, "hand", "{ sign: batch }", 20)
    log = copy(case, run.log, "hand")
    done = by_hand(log)
    check(done.returncode == 0 and
          done.stdout.count("Signature Verified Successfully") == 2, done)
    check(run.records[6]["unmapped"]["prev"] + "  -" in done.stdout.splitlines(), done)
    of_log = hashlib.sha256(read(log, "audit.jsonl")).hexdigest()
    check(of_log + "  audit.jsonl" in done.stdout and
          f'"sha256":"{of_log}"' in done.stdout, done)
    check(json.loads(read(log, "payload")) == receipt(log))

    rows = read(log, "checkpoints").decode().split("\n")
    rows[-5] = str(int(rows[-5]) - 1)
    with open(log + "/checkpoints", "w", encoding="utf8") as f:
        f.write("\n".join(rows))
    done = by_hand(log)
    check(done.returncode != 0 and "Verified" not in done.stdout, done)
    shutil.copy(run.log + "/checkpoints", log)
    envelope = json.loads(read(log, "receipt.dsse.json"))
    payload = base64.b64decode(envelope["payload"]).replace(b'"held":"held"', b'"held":"herd"')
    envelope["payload"] = base64.b64encode(payload).decode()
    with open(log + "/receipt.dsse.json", "w", encoding="utf8") as f:
        f.write(json.dumps(envelope, separators=(",", ":")) + "\n")
    done = by_hand(log)
    check(done.returncode != 0 and done.stdout.count("Verified") == 1, done)


# --- the page ----------------------------------------------------------------

WANDER = """
import socket, struct, subprocess, sys, time
def curl(*args): subprocess.run(["curl", "-s", "-m", "30", "-o", "/dev/null", *args])
def socks(name, port):
    s = socket.create_connection(("198.19.0.1", 3128), 30)
    s.sendall(b"\\5\\1\\0"); s.recv(2)
    s.sendall(b"\\5\\1\\0\\3" + bytes([len(name)]) + name + port.to_bytes(2, "big"))
    return s, s.recv(10)
print("go", flush=True)
sys.stdin.readline()
curl("https://allowed.test/"); curl("http://allowed.test/a?b=c"); curl("https://no.test/")
curl("--noproxy", "*", "https://allowed.test/"); curl("--noproxy", "*", "http://allowed.test/")
curl("-X", "POST", "-d", "x", "http://allowed.test/"); curl("https://other.test/")
curl("http://private.test/"); curl("https://both.test/"); curl("http://93.184.216.66/")
for name in b"allowed.test", b"no.test":
    try: socks(name, 443)[0].close()
    except OSError: pass
for kind, port in ((socket.SOCK_DGRAM, 123), (socket.SOCK_DGRAM, 443), (socket.SOCK_STREAM, 853)):
    s = socket.socket(socket.AF_INET, kind); s.settimeout(0.2)
    for i in range(3):
        try: s.connect(("192.0.2.9", port)); s.send(b"x")
        except OSError: break
subprocess.run(["timeout", "1", "ping", "-c", "1", "192.0.2.9"], stdout=subprocess.DEVNULL)
s, _ = socks(b"allowed.test", 7000)
s.sendall(b"x"); s.recv(1)
print("cut", flush=True)
sys.stdin.readline()
curl("https://allowed.test/")
"""

POLICY = """
allow:
  - {host: allowed.test, ports: [443, 80]}
  - {host: allowed.test, ports: [7000], protocol: any}
  - {host: private.test, ports: [80]}
  - {host: both.test, ports: [443]}
"""


def keys_of(value, path=""):
    """Dotted names of all members: those of lists have no number."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}{key}"
            yield from keys_of(inner, f"{path}{key}.")
    if isinstance(value, list):
        for inner in value:
            yield from keys_of(inner, path)


def wander(case, name, mode):
    """A session in which much happens; its log."""
    args = policy(case, name, mode + POLICY)
    process, log = case.start("python3", "-c", WANDER, args=args, allow=(),
                              stdin=subprocess.PIPE)

    def ask(word):
        line = process.stdout.readline()
        check(line == word + "\n", (line, log))

    def answer():
        process.stdin.write("\n")
        process.stdin.flush()
    ask("go")
    answer()
    ask("cut")
    policy(case, name, mode + POLICY.replace("7000", "7001"))
    run = sallyport(case, "reload", log)
    check(run.returncode == 0, run)
    case.kill(process, "gate")
    case.child(process, "gate")
    answer()
    process.communicate(timeout=60)
    return log


def touched(case):
    """Somebody was at the kernel's rules."""
    session = Session(case)
    session.tool("gateway", "nft", "flush", "ruleset")
    session.restored()
    session.end()
    return session.log


def words_of(part):
    return set(re.findall(r"\w+", part))


def test_each_field_is_told(case):
    logs = [wander(case, "wander", ""), wander(case, "watch", "mode: observe\n"),
            touched(case), case.run("true").log]
    sallyport(case, "run", "--quiet", "--log", logs[3], "--", "true")
    page = re.sub(r"\\f[BR]", "", read(PAGE).decode())
    records = [json.loads(line) for log in logs for part in parts(log)
               for line in read(part).split(b"\n")[:-1]]
    kinds = {r["unmapped"]["event"] for r in records}
    missing = {"session_open", "session_close", "policy", "dns_query", "dns_answer",
               "flow_open", "flow_dial", "flow_close", "http_request", "packet", "finding",
               "ruleset"} - kinds
    check(not missing, ("not all kinds are tried", missing))
    keys = {key for r in records for key in keys_of(r)}
    for name in ("observed", "earlier.checkpoint", "door", "http_status", "prev"):
        check("unmapped." + name in keys, (name, sorted(keys)))
    about_records = page[page.index(".SH RECORDS"):page.index('.SH "THE TREE"')]
    untold = {key for key in keys if key.split(".")[-1] not in words_of(about_records)}
    check(not untold, ("fields of records", sorted(untold)))

    receipts = [receipt(log)["predicate"] for log in logs]
    told = {key for r in receipts for key in keys_of(r)}
    for name in ("policy.changes.digest", "ruleset.changes.pid", "findings.text",
                 "packets.counted.spoofed", "verdicts.by_reason.not_in_policy"):
        check(name in told, (name, sorted(told)))
    about = words_of(page[page.index('.SH "THE RECEIPT"'):
                          page.index('.SH "THE LOG OF ALL')])
    untold = {key for key in told if key.split(".")[-1] not in about and
              not key.startswith("verdicts.by_reason.")}
    check(not untold, ("fields of receipts", sorted(untold)))


def test_each_field_of_the_host_log_is_told(case):
    with World(case, "told") as world:
        check(world.run("true").status == 0)
        process, _ = case.start("sleep", "60", args=world.args)
        until(lambda: len(world.records()) == 3)
        below = descendants(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        until(lambda: not any(os.path.exists(f"/proc/{p}") for p in below))
        world.wait()
        os.unlink(world.host + "/checkpoints")
        check(world.run("true").status == 0)
        keys = {key for part in glob.glob(world.host + "/**/audit.jsonl", recursive=True)
                for line in read(part).split(b"\n")[:-1]
                for key in keys_of(json.loads(line))}
    for name in "earlier.digest", "receipt", "vkey", "root":
        check("unmapped." + name in keys, (name, sorted(keys)))
    page = re.sub(r"\\f[BR]", "", read(PAGE).decode())
    told = words_of(page[page.index('.SS "In every record"'):page.index('.SS "Kinds')])
    told |= words_of(section("THE LOG OF ALL SESSIONS"))
    untold = {key for key in keys if key.split(".")[-1] not in told}
    check(not untold, ("fields of the log of all sessions", sorted(untold)))


def test_snippets(case):
    """For Vector and Fluent Bit: they read, and find what a session leaves."""
    vector, fluent = blocks("FEEDING A SIEM")
    if sys.version_info >= (3, 11):
        import tomllib
        config = tomllib.loads(vector)
        named = set(config["sources"]) | set(config["transforms"])
        for part in *config["transforms"].values(), *config["sinks"].values():
            check(set(part["inputs"]) <= named, config)
        source = config["sources"]["sallyport"]
        check(source["include"] == ["/var/log/sallyport/*/audit.jsonl"], source)
        check(source["max_line_bytes"] > 65000, source)
        check("parse_json" in config["transforms"]["sallyport_ocsf"]["source"], config)
    config = yaml.safe_load(fluent)
    pipe = config["pipeline"]
    tail, = pipe["inputs"]
    parser, = pipe["filters"]
    check(tail["path"] == "/var/log/sallyport/*/audit.jsonl" and
          tail["buffer_max_size"] == "128k", tail)
    check(parser["parser"] in [p["name"] for p in config["parsers"]] and
          parser["key_name"] == tail["key"] and
          parser["match"] == tail["tag"] == pipe["outputs"][0]["match"], config)
