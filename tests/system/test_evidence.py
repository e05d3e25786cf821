# SPDX-License-Identifier: Apache-2.0
"""What a session leaves: its files, its key, checkpoints, receipt."""
import base64
import glob
import hashlib
import json
import os
import signal
import stat
import subprocess
import time

from harness import USER, check

EM = "\u2014 "
DER = bytes.fromhex("302a300506032b6570032100")
FILES = ["audit.jsonl", "checkpoints", "receipt.dsse.json", "session.vkey"]

# Names that nobody allowed, as fast as they are refused.
ASK = """
import random, socket, time
server = [line.split()[1] for line in open("/etc/resolv.conf")
          if line.startswith("nameserver")][0]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
for i in range(%d):
    name = b"".join(bytes([len(x)]) + x for x in
                    (b"n%%06d" %% i, b"x" * 60, b"y" * 60, b"refused", b"test"))
    s.sendto(i.to_bytes(2, "big") + b"\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + name + b"\\0\\0\\1\\0\\1",
             (server, 53))
    s.recv(4096)
    time.sleep(%s)
"""


def read(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def mode(*path):
    return stat.S_IMODE(os.stat(os.path.join(*path)).st_mode)


def parts(log):
    """The parts of a log, oldest first."""
    return sorted(glob.glob(log + "/audit.jsonl.*")) + [log + "/audit.jsonl"]


def lines(log):
    data = b"".join(read(p) for p in parts(log))
    check(data.endswith(b"\n"), data[-200:])
    return data[:-1].split(b"\n")


def leaf(line):
    return hashlib.sha256(b"\0" + line).digest()


def root(leaves):
    """RFC 6962."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return hashlib.sha256(b"\1" + root(leaves[:k]) + root(leaves[k:])).digest()


def checkpoints(log):
    """[(size, root)], and the texts."""
    text = read(log, "checkpoints").decode()
    rows = text.split("\n")
    check(rows.pop() == "" and len(rows) % 5 == 0, text)
    notes = ["\n".join(rows[i:i + 5]) + "\n" for i in range(0, len(rows), 5)]
    return notes


def receipt(log):
    envelope = json.loads(read(log, "receipt.dsse.json"))
    check(envelope["payloadType"] == "application/vnd.in-toto+json", envelope)
    return json.loads(base64.b64decode(envelope["payload"]))


def public_of(vkey):
    key = base64.b64decode(vkey.strip().split("+", 2)[2])  # which may have a '+'
    check(key[0] == 1 and len(key) == 33, vkey)
    return key[1:]


def session_key(log):
    return public_of(read(log, "session.vkey").decode())


def openssl(case, vkey, body, signature):
    """With nothing of ours."""
    where = f"{case.work}/by-hand"
    os.makedirs(where, exist_ok=True)
    for name, data in (("pub.der", DER + public_of(vkey)), ("body", body), ("sig", signature)):
        with open(f"{where}/{name}", "wb") as f:
            f.write(data)
    run = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER",
                          "-inkey", "pub.der", "-rawin", "-in", "body", "-sigfile", "sig"],
                         cwd=where, capture_output=True, text=True)
    return run.returncode == 0


def whole(case, log):
    """Everything that can be checked without us: lines, tree, checkpoints,
    receipt. Returns the records and the receipt's predicate."""
    raw = lines(log)
    records = [json.loads(line) for line in raw]
    for i, record in enumerate(records):
        check(record["metadata"]["sequence"] == i, record)
        prev = record.get("unmapped", {}).get("prev")
        check(prev == (leaf(raw[i - 1]).hex() if i else None), record)
    check(records[0]["unmapped"]["event"] == "session_open", records[0])
    check(records[-1]["unmapped"]["event"] == "session_close", records[-1])
    leaves = [leaf(line) for line in raw]
    vkey = read(log, "session.vkey").decode()
    notes = checkpoints(log)
    sizes = []
    for note in notes:
        origin, size, head, empty, signature = note[:-1].split("\n")
        check(origin == vkey.split("+")[0] and empty == "", note)
        check(base64.b64decode(head) == root(leaves[:int(size)]), note)
        check(signature.startswith(EM + origin + " "), note)
        sizes.append(int(size))
    check(sizes == sorted(set(sizes)) and sizes[-1] == len(raw), sizes)
    body, signature = notes[-1].split("\n\n")
    blob = base64.b64decode(signature.split(" ")[2])
    check(blob[:4].hex() == vkey.split("+")[1], (blob, vkey))
    check(openssl(case, vkey, body.encode() + b"\n", blob[4:]), notes[-1])
    check(not openssl(case, vkey, body.encode(), blob[4:]))

    envelope = json.loads(read(log, "receipt.dsse.json"))
    payload = base64.b64decode(envelope["payload"])
    pae = b"DSSEv1 28 application/vnd.in-toto+json %d " % len(payload) + payload
    signature = base64.b64decode(envelope["signatures"][0]["sig"])
    check(openssl(case, vkey, pae, signature))
    check(not openssl(case, vkey, payload, signature))
    said = receipt(log)
    digests = {s["name"]: s["digest"]["sha256"] for s in said["subject"]}
    for path in parts(log):
        check(digests.pop(os.path.basename(path)) ==
              hashlib.sha256(read(path)).hexdigest(), path)
    predicate = said["predicate"]
    check(digests.pop("policy") == predicate["policy"]["digest"], said)
    check(digests.pop("ruleset", None) == predicate["ruleset"].get("start"), said)
    check(not digests, digests)
    told = predicate["log"]
    check(told["records"] == len(raw) and told["parts"] == len(parts(log)), told)
    check(base64.b64decode(told["root"]) == root(leaves), told)
    check(told["last_checkpoint"] == notes[-1] and
          told["first_checkpoint"] == notes[0], told)
    check(predicate["key"]["vkey"] == vkey.strip(), predicate["key"])
    return records, predicate


def fresh(case, name):
    """A configuration of its own: root's would be in /etc/sallyport."""
    path = f"{case.work}/config-{name}"
    os.makedirs(path)
    case.mine(path)
    return path


def sallyport(case, *argv, config=None, cwd=None, env=None):
    more = {"XDG_CONFIG_HOME": config} if config else {}
    return subprocess.run([*case.drop(), case.binary, *argv], text=True,
                          capture_output=True, cwd=cwd or case.work,
                          stdin=subprocess.DEVNULL, timeout=60,
                          env={**case.env(), **more, **(env or {})})


def folder(case, name):
    path = f"{case.lab.dir}/{name}-{case.who}"
    os.mkdir(path, 0o700)
    case.mine(path)
    return path


def policy(case, name, text):
    path = f"{case.work}/{name}.yaml"
    with open(path, "w", encoding="utf8") as f:
        f.write("version: 1\n" + text)
    case.mine(path)
    return ("--policy", path)


# --- files -------------------------------------------------------------------

def test_layout(case):
    run = case.run("true")
    check(run.status == 0, run)
    check(sorted(os.listdir(run.log)) == FILES, os.listdir(run.log))
    for name in FILES:
        check(mode(run.log, name) == (0o644 if name == "session.vkey" else 0o600), name)
        check(os.stat(f"{run.log}/{name}").st_uid == (USER if case.who == "user" else 0))
    check(f"receipt: {run.log}/receipt.dsse.json" in run.err, run)
    check(f"sallyport verify {run.log}\n" in run.err, run)
    check("boundary: held" in run.err, run)
    whole(case, run.log)


def test_facts(case):
    run = case.run("sh", "-c", "curl -s https://allowed.test/ >/dev/null; "
                   "curl -s http://evil.test/ >/dev/null; "
                   "for i in 1 2 3; do echo x | timeout 1 nc -u -w1 192.0.2.77 4000; done; "
                   "exit 3", args=("--json", "--name", "facts"))
    check(run.status == 3, run)
    records, said = whole(case, run.log)
    told = json.loads(run.err.splitlines()[-1])
    check(told["boundary"] == "held" and
          told["receipt"] == run.log + "/receipt.dsse.json", told)
    check(said["command"] == "sh" and said["sandbox"] == "facts", said)
    check(said["exit"] == {"status": 3, "by": "exit"}, said)
    check(said["boundary"] == {"kind": "netns", "held": "held", "files": "private", "separation":
                               "uid" if case.who == "root" else "namespace"}, said)
    check(said["ruleset"]["start"] == said["ruleset"]["end"], said)
    check(records[0]["unmapped"]["ruleset"] == "sha256:" + said["ruleset"]["start"])
    check(said["policy"]["digest"] in str(records[0]), records[0])
    check(said["session"] == records[0]["metadata"]["correlation_uid"], said)
    check(said["kernel"] == os.uname().release, said)
    check(not said["key"]["ephemeral"] and said["log"]["sign"] == "batch" and
          said["log"]["durability"] == "batch", said)
    check(said["verdicts"]["allowed"] >= 1 and
          said["verdicts"]["by_reason"]["not_in_policy"] >= 1, said)
    check(said["bytes"]["down"] > 0, said)
    packets = said["packets"]
    counted = sum(packets["counted"].values())
    check(packets["counted"]["refused"] >= 3, packets)
    check(packets["recorded"] + packets["unreported"] == counted, packets)


def test_how_it_ended(case):
    run = case.run("sleep", "60", args=("--timeout", "1s"))
    check(run.status == 124, run)
    check(whole(case, run.log)[1]["exit"] == {"status": 124, "by": "timeout"})
    run = case.run("sh", "-c", "kill -9 $$")
    check(whole(case, run.log)[1]["exit"] == {"status": 137, "by": "exit"})


def test_earlier(case):
    """The same directory again, also after a session that was killed."""
    first = case.run("true")
    kept = {name: read(first.log, name) for name in FILES}
    again = ["--log", first.log, "--", "true"]
    run = sallyport(case, "run", *again)
    check(run.returncode == 0 and "earlier-000001" in run.stderr, run)
    for name, data in kept.items():
        check(read(first.log, "earlier-000001", name) == data, name)
    check(mode(first.log, "earlier-000001") == 0o700)
    records, _ = whole(case, first.log)
    note = "\n".join(kept["checkpoints"].decode().split("\n")[-6:])
    check(records[0]["unmapped"]["earlier"] == {
        "records": kept["audit.jsonl"].count(b"\n"), "bytes": len(kept["audit.jsonl"]),
        "receipt": True, "checkpoint": note}, records[0])

    process = subprocess.Popen([*case.drop(), case.binary, "run", "--log", first.log,
                                "--", "sh", "-c", "echo go; sleep 30"], text=True,
                               cwd=case.work, env=case.env(), stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    check(process.stdout.readline() == "go\n")
    time.sleep(0.5)  # a checkpoint
    process.kill()
    process.wait()
    # What a crash of the machine might leave of a checkpoint.
    before = read(first.log, "checkpoints").decode()
    check(before, before)
    with open(first.log + "/checkpoints", "a", encoding="utf8") as f:
        f.write("vm/x\n17\nAA")
    run = sallyport(case, "run", *again)
    check(run.returncode == 0 and "earlier-000003" in run.stderr, run)
    records, _ = whole(case, first.log)
    earlier = records[0]["unmapped"]["earlier"]
    check(not earlier["receipt"], earlier)
    check(earlier["checkpoint"] == "\n".join(before.split("\n")[-6:]), earlier)
    log = read(first.log, "earlier-000003", "audit.jsonl")
    check(earlier["records"] == log.count(b"\n") and earlier["bytes"] == len(log), earlier)
    check(sorted(os.listdir(first.log)) ==
          sorted(FILES + [f"earlier-00000{i}" for i in (1, 2, 3)]))


def test_one_at_a_time(case):
    """A directory with a live session is not touched."""
    process, log = case.start("sh", "-c", "echo go; sleep 4")
    check(process.stdout.readline() == "go\n")
    before = sorted(os.listdir(log))
    run = sallyport(case, "run", "--log", log, "--", "true")
    check(run.returncode == 125 and "another session writes its log there" in run.stderr
          and "--log DIR" in run.stderr, run)
    check(sorted(os.listdir(log)) == before, os.listdir(log))
    process.communicate(timeout=20)
    check(process.returncode == 0)
    whole(case, log)


def test_begin_together(case):
    """Of several that begin at once in one place, all logs are left."""
    log = folder(case, "together")
    all_ = [subprocess.Popen([*case.drop(), case.binary, "run", "--quiet", "--log", log,
                              "--", "true"], cwd=case.work, env=case.env(), text=True,
                             stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for _ in range(6)]
    said = [p.communicate(timeout=60)[1] for p in all_]
    good = sum(p.returncode == 0 for p in all_)
    check(good >= 1, said)
    for p, err in zip(all_, said):
        check(p.returncode == 0 or "another session" in err, err)
    places = [log, *glob.glob(log + "/earlier-*")]
    check(len(places) == good, (places, good))
    for place in places:
        whole(case, place)


# --- parts, checkpoints ------------------------------------------------------

def test_rotation(case):
    args = policy(case, "rotate", "log: { rotate: 64 KiB }\n"
                  "limits: { dns_per_second: 100000 }\n")
    run = case.run("python3", "-c", ASK % (700, 0.001), args=args)
    check(run.status == 0, run)
    found = parts(run.log)
    check(len(found) >= 4, found)
    check(os.path.basename(found[0]) == "audit.jsonl.000001", found)
    for path in found[:-1]:
        check(os.path.getsize(path) >= 64 << 10 and mode(path) == 0o600, path)
        check(read(path).endswith(b"\n"), path)
    records, said = whole(case, run.log)
    asked = [r for r in records if r["class_uid"] == 4003]
    check(len(asked) == 700, len(asked))
    # Each part ends where a checkpoint is.
    sizes = {int(note.split("\n")[1]) for note in checkpoints(run.log)}
    end = 0
    for path in found:
        end += read(path).count(b"\n")
        check(end in sizes, (path, end))
    # All of it is kept, and counted, by who comes next.
    check(sallyport(case, "run", "--log", run.log, "--", "true").returncode == 0)
    earlier = whole(case, run.log)[0][0]["unmapped"]["earlier"]
    check(earlier["records"] == len(records), earlier)
    check(len(parts(run.log + "/earlier-000001")) == len(found))


def test_rotation_by_age(case):
    args = policy(case, "age", "log: { rotate_after: 1s }\n")
    run = case.run("python3", "-c", ASK % (30, 0.1), args=args)
    check(3 <= len(parts(run.log)) <= 5, parts(run.log))
    whole(case, run.log)


def test_rotation_in_the_way(case):
    """A file of that name is never replaced; the log goes on."""
    args = policy(case, "way", "log: { rotate: 64 KiB }\n"
                  "limits: { dns_per_second: 100000 }\n")
    process, log = case.start("sh", "-c", "echo go; read x; exec python3 -c '" +
                              (ASK % (300, 0.001)).replace("'", "\"") + "'", args=args,
                              stdin=subprocess.PIPE)
    check(process.stdout.readline() == "go\n")
    with open(log + "/audit.jsonl.000001", "w", encoding="utf8") as f:
        f.write("mine")
    _, err = process.communicate("x\n", timeout=60)
    check(process.returncode == 0 and "goes on in one file" in err, err)
    check(read(log, "audit.jsonl.000001") == b"mine")
    check(receipt(log)["predicate"]["log"]["parts"] == 1)
    os.unlink(log + "/audit.jsonl.000001")
    whole(case, log)


def test_sign_every(case):
    args = policy(case, "every", "log: { sign: every }\n")
    run = case.run("python3", "-c", ASK % (20, 0), args=args)
    records, said = whole(case, run.log)
    sizes = [int(note.split("\n")[1]) for note in checkpoints(run.log)]
    check(sizes == list(range(1, len(records) + 1)), sizes)
    check(said["log"]["sign"] == "every", said["log"])


def test_durability(case):
    """Each record is on the disk before its flow hears of it."""
    counts = {}
    for kind in "record", "batch":
        args = policy(case, kind, f"log: {{ durability: {kind} }}\n")
        trace = folder(case, "trace-" + kind) + "/calls"
        log = folder(case, "durable-" + kind)
        run = subprocess.run(
            [*case.drop(), "strace", "-f", "-qq", "-o", trace, "-e",
             "trace=fdatasync", case.binary, "run", "--quiet", "--log", log, *args, "--",
             "python3", "-c", ASK % (20, 0)], cwd=case.work, text=True,
            capture_output=True, stdin=subprocess.DEVNULL, timeout=120,
            env=dict(case.env(), ASAN_OPTIONS="detect_leaks=0"))
        check(run.returncode == 0, run)
        records, said = whole(case, log)
        check(said["log"]["durability"] == kind, said)
        counts[kind] = read(trace).count(b"fdatasync(")
        if kind == "record":
            check(counts[kind] >= len(records), (counts, len(records)))
    check(counts["batch"] < counts["record"], counts)


def test_serve(case):
    log = folder(case, "serve-log")
    process = subprocess.Popen(
        [*case.drop(), case.binary, "serve", "--allow", "allowed.test", "--log", log,
         "--proxy", "127.0.0.1:18090"], env=case.env(), text=True,
        stderr=subprocess.PIPE, cwd=case.work)
    line = process.stderr.readline()
    while "serving" not in line:
        check(line)
        line = process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    check(process.returncode == 0 and "boundary" not in err and "receipt: " in err, err)
    _, said = whole(case, log)
    check(said["boundary"]["kind"] == "external" and
          said["boundary"]["held"] == "unknown", said)
    check(said["exit"]["by"] == "signal" and said["exit"]["status"] == 0, said)
    check("command" not in said or not said["command"], said)


def test_ledger_killed(case):
    """No receipt, and what there is holds."""
    process, log = case.start("sh", "-c", "echo go; sleep 30")
    check(process.stdout.readline() == "go\n")
    time.sleep(0.5)
    os.kill(case.child(process, "ledger"), signal.SIGKILL)
    _, err = process.communicate(timeout=20)
    check(process.returncode == 125 and "receipt: none" in err, err)
    check(sorted(os.listdir(log)) == ["audit.jsonl", "checkpoints", "session.vkey"],
          os.listdir(log))
    note = checkpoints(log)[-1].split("\n")
    leaves = [leaf(line) for line in lines(log)]
    check(base64.b64decode(note[2]) == root(leaves[:int(note[1])]), note)
    check(sallyport(case, "run", "--log", log, "--", "true").returncode == 0)
    check(not whole(case, log)[0][0]["unmapped"]["earlier"]["receipt"])


# --- keys --------------------------------------------------------------------

def test_key_command(case):
    config = fresh(case, "command")
    run = sallyport(case, "key", "show", config=config)
    check(run.returncode == 125 and "sallyport key new" in run.stderr, run)
    run = sallyport(case, "key", "new", "--name", "build.example/farm", config=config)
    vkey = run.stdout.strip()
    check(run.returncode == 0 and vkey.startswith("build.example/farm+"), run)
    where = config + "/sallyport"
    check(mode(where, "signing.key") == 0o600 and mode(where, "signing.vkey") == 0o644)
    check(read(where, "signing.vkey").decode() == vkey + "\n")
    key = read(where, "signing.key")
    run = sallyport(case, "key", "new", config=config)
    check(run.returncode == 125 and "never overwritten" in run.stderr, run)
    check(read(where, "signing.key") == key)
    for name in "signing.key", "signing.vkey":
        run = sallyport(case, "key", "show", f"{where}/{name}")
        check(run.stdout == vkey + "\n", run)
    told = json.loads(sallyport(case, "key", "show", "--json", config=config).stdout)
    check(told["vkey"] == vkey and told["name"] == "build.example/farm" and
          told["id"] == vkey.split("+")[1], told)
    # The one that openssl reads.
    public = subprocess.run(["openssl", "pkey", "-pubout", "-outform", "DER"], input=key,
                            capture_output=True, check=True).stdout
    check(public_of(vkey) == public[-32:])
    run = case.run("true", env={"XDG_CONFIG_HOME": config})
    check(read(run.log, "session.vkey").decode().startswith("build.example/farm/2"), run)
    _, said = whole(case, run.log)
    check(public_of(said["key"]["vkey"]) == public[-32:])


def test_key_mistakes(case):
    for argv, word in ((("key",), "`new` or `show`"), (("key", "make"), "make"),
                       (("key", "new", "--name", "a b"), "without space"),
                       (("key", "new", "--name", "x" * 192), "191"),
                       (("key", "new", "--out", ""), "needs a file"),
                       (("key", "new", "--out", "/nonexistent/k"), "No such file"),
                       (("key", "new", "extra"), "extra"),
                       (("key", "show", "a", "b"), "what is b"),
                       (("key", "show", "--name", "x"), "for `key new`"),
                       (("key", "new", "--nam"), "--nam"),
                       (("key", "show", "/nonexistent"), "No such file"),
                       (("key", "show", "/etc/passwd"), "/etc/passwd"),
                       (("run", "--key", "/nonexistent/k", "--", "true"), "key new --out"),
                       (("run", "--key", "/etc/passwd", "--", "true"), "/etc/passwd")):
        run = sallyport(case, *argv, config=case.work + "/config-mistakes")
        check(run.returncode == 125 and word in run.stderr and not run.stdout,
              (argv, run))
    check(not os.path.exists(case.work + "/config-mistakes/sallyport/signing.key"))


def test_first_use(case):
    """Of many that begin at once one makes the key, and says so."""
    config = fresh(case, "first")
    logs = [folder(case, f"first-{i}") for i in range(8)]
    all_ = [subprocess.Popen([*case.drop(), case.binary, "run", "--log", log, "--", "true"],
                             cwd=case.work, env=case.env(XDG_CONFIG_HOME=config), text=True,
                             stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for log in logs]
    said = [p.communicate(timeout=60)[1] for p in all_]
    check(all(p.returncode == 0 for p in all_), said)
    check(sum("made a key" in err for err in said) == 1, said)
    keys = {session_key(log) for log in logs}
    check(len(keys) == 1, keys)
    check(sorted(os.listdir(config + "/sallyport")) == ["signing.key", "signing.vkey"],
          os.listdir(config + "/sallyport"))
    check(mode(config, "sallyport/signing.key") == 0o600)
    check(public_of(read(config, "sallyport/signing.vkey").decode()) in keys)
    run = case.run("true", env={"XDG_CONFIG_HOME": config})
    check("key" not in run.err.replace("--key", ""), run)
    quiet = case.run("true", args=("--quiet",),
                     env={"XDG_CONFIG_HOME": fresh(case, "quiet")})
    check(quiet.status == 0 and "made a key" not in quiet.err, quiet)


def test_where_root_has_it(case):
    """Not in the home of who called sudo."""
    run = case.run("true")
    where = "/etc/sallyport" if case.who == "root" else case.work + "/.config/sallyport"
    check(run.status == 0 and mode(where, "signing.key") == 0o600, run)
    check(public_of(read(where, "signing.vkey").decode()) == session_key(run.log))


def test_key_that_others_read(case):
    config = fresh(case, "open")
    sallyport(case, "key", "new", config=config)
    key = config + "/sallyport/signing.key"

    def refused(word):
        run = case.run("touch", "ran", env={"XDG_CONFIG_HOME": config})
        check(run.status == 125 and word in run.err and "--key FILE" in run.err, run)
        check(not os.path.exists(case.work + "/ran"))
        check(os.listdir(run.log) == [], os.listdir(run.log))
    os.chmod(key, 0o640)
    refused("chmod 600")
    os.chmod(key, 0o600)
    os.rename(key, key + ".real")
    os.symlink("signing.key.real", key)
    refused("symbolic link")
    os.unlink(key)
    run = case.run("true", env={"XDG_CONFIG_HOME": config})
    check(run.status == 125 and "public half" in run.err, run)
    os.rename(key + ".real", key)
    os.chown(key, 12345, -1)
    # An ordinary user can't even open it.
    refused("somebody else" if case.who == "root" else "Permission denied")


def test_ephemeral(case):
    run = case.run("true", env={"XDG_CONFIG_HOME": "/proc/none"})
    check(run.status == 0 and "a key of its own" in run.err, run)
    _, said = whole(case, run.log)
    check(said["key"]["ephemeral"] is True, said)
    other = case.run("true", env={"XDG_CONFIG_HOME": "/proc/none"})
    check(session_key(run.log) != session_key(other.log))
    # With one named, nothing has to be stored.
    key = case.work + "/named.key"
    sallyport(case, "key", "new", "--out", key)
    run = case.run("true", args=("--key", key), env={"XDG_CONFIG_HOME": "/proc/none"})
    _, said = whole(case, run.log)
    check(not said["key"]["ephemeral"] and "of its own" not in run.err, run)
    check(public_of(read(case.work, "named.vkey").decode()) ==
          public_of(said["key"]["vkey"]))


ATTACK = """
for key in "$@"; do
    cat "$key" 2>/dev/null && echo READ "$key"
    head -c 20 "$(dirname "$key")/../$(basename "$(dirname "$key")")/$(basename "$key")" \
        2>/dev/null | grep -q BEGIN && echo READ again "$key"
    cat "/proc/1/root$key" "/proc/self/root$key" 2>/dev/null && echo READ by proc
    echo evil > "$key" 2>/dev/null
    echo evil > "${key%.key}.vkey" 2>/dev/null
    rm -f "$key" 2>/dev/null; mv "$key" "$key.away" 2>/dev/null && echo MOVED "$key"
    ln "$key" stolen 2>/dev/null && grep -q BEGIN stolen 2>/dev/null && echo LINKED "$key"
    d=$(dirname "$key"); mv "$d" "$d.away" 2>/dev/null && echo MOVED "$d"
    mkdir -p "$d" 2>/dev/null; cp /etc/hostname "$d/signing.key" 2>/dev/null
done
grep -rl "PRIVATE KEY" /proc/*/fd 2>/dev/null
exit 0
"""


def test_out_of_reach(case):
    """A command in any directory reads no key, changes none, makes none."""
    home = folder(case, "home")
    config = home + "/.config"
    named = home + "/named/my.key"
    env = {"HOME": home, "XDG_CONFIG_HOME": config}
    os.mkdir(home + "/named")
    os.mkdir(home + "/work")
    case.mine(home + "/named")
    case.mine(home + "/work")
    check(sallyport(case, "key", "new", env=env).returncode == 0)
    check(sallyport(case, "key", "new", "--out", named, env=env).returncode == 0)
    own = config + "/sallyport/signing.key"
    files = [own, own[:-4] + ".vkey", named, named[:-4] + ".vkey"]
    before = {f: read(f) for f in files}
    ids = {f: os.stat(f).st_ino for f in files}
    if case.who == "root":
        # Whoever the command is, it may do what it wants there.
        os.chmod(home, 0o777)
        for place in "named", "work":
            os.chmod(f"{home}/{place}", 0o777)
    for cwd in (home, home + "/work", config, config + "/sallyport", home + "/named"):
        for args in ((), ("--key", named)):
            log = folder(case, f"reach-{time.monotonic_ns()}")
            run = subprocess.run(
                [*case.drop(), case.binary, "run", "--quiet", "--log", log, *args, "--",
                 "sh", "-c", ATTACK, "sh", own, *(args[1:])], cwd=cwd, text=True,
                capture_output=True, stdin=subprocess.DEVNULL, timeout=60,
                env={**case.env(), **env})
            check(run.stdout == "", (cwd, args, run))
            check(run.returncode in (0, 125), (cwd, args, run))
            for f in files:
                check(read(f) == before[f] and os.stat(f).st_ino == ids[f], (cwd, args, f, run))


def test_not_in_memory(case):
    """The warden never has the private half; nor has the gate."""
    if case.sanitized:
        return
    config = fresh(case, "memory")
    sallyport(case, "key", "new", config=config)
    seed = base64.b64decode(read(config, "sallyport/signing.key").split(b"\n")[1])[16:]
    log = folder(case, "memory-log")
    process = subprocess.Popen([*case.drop(), case.binary, "run", "--log", log, "--", "sh",
                                "-c", "echo go; sleep 20"], text=True, cwd=case.work,
                               env=case.env(XDG_CONFIG_HOME=config), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    check(process.stdout.readline() == "go\n")

    def holds(pid):
        with open(f"/proc/{pid}/maps", encoding="utf8") as maps, \
                open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
            for line in maps:
                if " rw" not in line or "[v" in line:
                    continue
                begin, end = (int(x, 16) for x in line.split()[0].split("-"))
                mem.seek(begin)
                if seed in (mem.read(end - begin) or b""):
                    return True
        return False
    try:
        run = process.pid
        check(not holds(run), "the warden")
        check(not holds(case.child(process, "gate")), "the gate")
        check(holds(case.child(process, "ledger")), "the test finds nothing at all")
        for pid in run, case.child(process, "gate"), case.child(process, "ledger"):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                check("signing.key" not in os.readlink(f"/proc/{pid}/fd/{fd}"), (pid, fd))
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_reload_is_for_the_next(case):
    """Another `log:` section is no mistake, and changes nothing that runs."""
    path = f"{case.work}/reload-log.yaml"

    def write(text):
        with open(path, "w", encoding="utf8") as f:
            f.write("version: 1\n" + text)
        case.mine(path)
    write("log: { sign: batch }\n")
    process, log = case.start("sh", "-c", "echo go; sleep 2; exit 0",
                              args=("--policy", path), allow=())
    check(process.stdout.readline() == "go\n")
    write("log: { sign: every, rotate: 64 KiB }\n")
    run = sallyport(case, "reload", log)
    check(run.returncode == 0, run)
    process.communicate(timeout=20)
    _, said = whole(case, log)
    check(said["log"]["sign"] == "batch" and len(said["policy"]["changes"]) == 1, said)
