# SPDX-License-Identifier: Apache-2.0
"""Policies that change while a sandbox runs, and rules that expire."""
import concurrent.futures
import datetime
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

from harness import check, descendants, silent
from lab import GOOD

# Does what the test says, line by line, inside the sandbox.
DRIVER = r"""
import os, select, socket, ssl, sys, time
held = {}
def dial(kind, host, port):
    if kind == "connect":
        proxy = os.environ["http_proxy"].split("//")[1].split(":")
        s = socket.create_connection((proxy[0], int(proxy[1])), 5)
        s.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        head = s.recv(4096).split(b"\r\n")[0]
        if b" 200 " not in head + b" ":
            raise OSError(head.decode())
        return s
    s = socket.create_connection((host, port), 5)
    if kind == "tls":
        s = ssl.create_default_context(cafile=os.environ["CURL_CA_BUNDLE"]) \
            .wrap_socket(s, server_hostname=host)
    return s
def ping(kind, s, host):
    if kind == "tls":
        s.sendall(f"GET /host HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        got = s.recv(4096)
        return b"200 OK" in got
    s.sendall(b"\0echo\n")  # no beginning of TLS or HTTP
    return s.recv(6) == b"\0echo\n"
def do(words):
    if words[0] == "open":
        _, name, kind, host, port = words
        s = dial(kind, host, int(port))
        s.settimeout(5)
        held[name] = (kind, s, host)
        return ping(*held[name])
    if words[0] == "ping":
        return ping(*held[words[1]])
    if words[0] == "end":  # waits until it is dead; for how long
        s, began = held[words[1]][1], time.monotonic()
        s.settimeout(float(words[2]))
        try:
            while s.recv(4096):
                pass
        except socket.timeout:
            return False
        except OSError:
            pass
        return f"{time.monotonic() - began:.2f}"
    if words[0] == "try":
        _, kind, host, port = words
        s = dial(kind, host, int(port))
        s.settimeout(5)
        with s:
            return ping(kind, s, host)
    if words[0] == "rename":
        os.rename(words[1], words[2])
    if words[0] == "link":
        os.symlink(words[1], words[2])
    if words[0] == "write":
        os.mkdir(os.path.dirname(words[1]))
        with open(words[1], "w") as f:
            f.write("version: 1\n" + " ".join(words[2:]).replace("|", "\n"))
    if words[0] == "many":
        return " ".join(socket.getaddrinfo(f"n{i}.tunnel.test", 1)[0][4][0]
                        for i in range(int(words[1])))
    if words[0] == "dns":
        return socket.getaddrinfo(words[1], 1)[0][4][0]
print("ready", flush=True)
for line in sys.stdin:
    try:
        print(do(line.split()), flush=True)
    except Exception as e:
        print("failed", type(e).__name__, str(e).replace("\n", " "), flush=True)
"""


class Session:
    """A running sandbox whose policy is a file, and the driver in it."""
    count = 0

    def __init__(self, case, policy, *args, path=None):
        Session.count += 1
        self.case = case
        # Not in the working directory, which is the sandbox's to write to.
        place = f"{case.lab.dir}/policies-{case.who}"
        os.makedirs(place, exist_ok=True)
        case.mine(place)
        self.path = path or f"{place}/p{Session.count}.yaml"
        self.write(policy)
        self.process, self.log = case.start(
            "python3", "-c", DRIVER, allow=(),
            args=("--policy", self.path, *args), stdin=subprocess.PIPE)
        line = self.process.stdout.readline()
        if line != "ready\n":
            raise AssertionError(self.process.communicate()[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.err = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()

    def write(self, policy):
        with open(self.path, "w") as f:
            f.write("version: 1\n" + policy)
        self.case.mine(self.path)

    def do(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def works(self, *words):
        said = self.do(*words)
        check(said == "True", (words, said, self.log))

    def fails(self, *words):
        said = self.do(*words)
        check(said.startswith("failed"), (words, said, self.log))
        return said

    def reload(self, policy=None, status=0, args=(), who=None):
        if policy is not None:
            self.write(policy)
        out = reload(self.case, *args, who or self.log)
        check(out.returncode == status, out)
        return out

    def records(self):
        with open(self.log + "/audit.jsonl") as f:
            return [json.loads(line) for line in f]

    def gate(self):
        return self.case.child(self.process, "gate")

    def until(self, condition, seconds=5):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition(self.records()):
                return
            time.sleep(0.05)
        raise AssertionError(self.records())


def reload(case, *args):
    return subprocess.run([*case.drop(), case.binary, "reload", *args],
                          cwd=case.work, env=case.env(), text=True,
                          capture_output=True, timeout=60)


def events(records, event, detail=""):
    return [r for r in records if r["unmapped"]["event"] == event
            and detail in r["unmapped"].get("detail", "")]


def revoked(records, host):
    return [r for r in records if r.get("status_code") == "policy_revoked"
            and r.get("dst_endpoint", {}).get("hostname") == host]


BOTH = """allow:
  - {host: allowed.test, ports: [443, 7000]}
  - {host: other.test, ports: [443, 7000]}
"""
OTHER = "allow:\n  - {host: other.test, ports: [443, 7000]}\n"


def test_removed_rule_cuts(case):
    with Session(case, BOTH) as s:
        s.works("open", "tls", "tls", "allowed.test", 443)
        s.works("open", "raw", "raw", "allowed.test", 7000)
        s.works("open", "connect", "connect", "allowed.test", 7000)
        s.works("open", "stays", "tls", "other.test", 443)
        s.works("open", "stays2", "raw", "other.test", 7000)
        began = time.monotonic()
        out = s.reload(OTHER)
        check(re.search(r"sha256:\w{64} -> sha256:\w{64} .*1 rule", out.stdout), out)
        for name in "tls", "raw", "connect":
            check(s.do("end", name, 2) != "False", name)
        check(time.monotonic() - began < 1.5, time.monotonic() - began)
        s.until(lambda r: len(revoked(r, "allowed.test")) >= 3)
        for kind, port in ("tls", 443), ("raw", 7000), ("connect", 7000):
            s.fails("try", kind, "allowed.test", port)
        check("Name or service not known" in s.fails("dns", "allowed.test"))
        # Who is still allowed did not notice, not for one packet.
        s.works("ping", "stays")
        s.works("ping", "stays2")
        s.works("try", "tls", "other.test", 443)
        records = s.records()
        change = events(records, "policy")
        check(len(change) == 1, change)
        check(records.index(change[0])
              < records.index(revoked(records, "allowed.test")[0]))
        check(not revoked(records, "other.test"))
        check(not [r for r in events(records, "packet")
                   if r["dst_endpoint"].get("hostname") == "other.test"])


def test_added_rule_opens(case):
    with Session(case, OTHER) as s:
        s.fails("try", "tls", "allowed.test", 443)
        s.works("try", "raw", "other.test", 7000)
        s.fails("try", "raw", "other.test", 2525)
        s.reload(BOTH)
        s.works("try", "tls", "allowed.test", 443)
        s.works("try", "connect", "allowed.test", 7000)
        # A name that has its address already gets another port, and loses one.
        s.works("open", "held", "raw", "allowed.test", 7000)
        address = s.do("dns", "allowed.test")
        s.reload("allow:\n  - {host: allowed.test, ports: [80, 7000-7100]}\n")
        s.works("ping", "held")
        check("refused" in s.fails("try", "raw", address, 443))
        s.works("try", "raw", address, 7000)
        s.reload("allow:\n  - {host: allowed.test, ports: [443, 7050-7100]}\n")
        check(s.do("end", "held", 2) != "False")
        check("refused" in s.fails("try", "raw", address, 7000))
        s.works("try", "tls", "allowed.test", 443)


MANY = """limits: {names: 4000, names_per_wildcard: 4000, dns_per_second: 100000}
allow:
  - {host: other.test, ports: [7000]}
  - {host: "*.tunnel.test", ports: [%s]}
"""


def closed(s, addresses, port):
    """The kernel refuses it, sooner or later."""
    end = time.monotonic() + 60
    for a in addresses:
        while "refused" not in s.do("try", "raw", a, port):
            check(time.monotonic() < end, (a, port))
            time.sleep(0.05)


def test_many_names(case):
    """What the kernel has of many names changes within a second or so, and
    comes back after the gate died."""
    with Session(case, MANY % "443, 7000") as s:
        s.works("open", "stays", "raw", "other.test", 7000)
        address = s.do("many", 300).split()
        check(len(set(address)) == 300, len(set(address)))
        some = address[0], address[150], address[299]
        for a in some:
            s.works("try", "raw", a, 7000)
        began = time.monotonic()
        s.reload(MANY % "443, 8000-9000")
        check(time.monotonic() - began < 1 or case.sanitized,
              time.monotonic() - began)
        s.works("ping", "stays")
        for a in some:
            s.fails("try", "raw", a, 7000)
        # The kernel takes its time over so many; nobody waits for it.
        s.works("try", "raw", "other.test", 7000)
        closed(s, address, 7000)
        s.works("ping", "stays")
        s.reload(MANY % "7000-7003")
        kill_gate(s)
        s.until(lambda r: events(r, "finding", "the gate died"))
        for a in some:
            s.works("try", "raw", a, 7000)
        closed(s, some, 443)
        os.kill(s.gate(), signal.SIGSTOP)
        s.reload(MANY % "8000")
        for a in some:
            check("refused" in s.fails("try", "raw", a, 7000))
        s.reload(MANY % "443, 7000")
        for a in some:
            s.works("try", "raw", a, 7000)
        # What was to be closed, and is allowed again before it was, stays open.
        s.reload(MANY % "8000")
        s.reload(MANY % "6990-7010")
        closed(s, some, 443)
        time.sleep(1)
        for a in address:
            s.works("try", "raw", a, 7000)
        check(len(events(s.records(), "finding")) == 2,
              events(s.records(), "finding"))


def test_literal_addresses(case):
    literal = f"allow:\n  - {{address: {GOOD}/32, ports: [7000]}}\n"
    with Session(case, OTHER) as s:
        check("refused" in s.fails("try", "raw", GOOD, 7000))
        s.reload(literal + "  - {host: other.test, ports: [7000]}\n")
        s.works("open", "held", "raw", GOOD, 7000)
        s.works("open", "stays", "raw", "other.test", 7000)
        s.reload("allow:\n  - {host: other.test, ports: [7000]}\n")
        check(s.do("end", "held", 2) != "False")
        check("refused" in s.fails("try", "raw", GOOD, 7000))
        s.works("ping", "stays")
        # A range around everything, the leases' too, comes and goes.
        wide = "allow:\n  - {host: other.test, ports: [7000]}\n" \
               "  - {address: 0.0.0.0/0, ports: [6000-8000]}\n"
        s.reload(wide)
        s.works("try", "raw", GOOD, 7000)
        s.works("ping", "stays")
        s.reload(OTHER)
        check("refused" in s.fails("try", "raw", GOOD, 7000))
        s.works("ping", "stays")
        s.works("try", "raw", "other.test", 7000)
        check(not events(s.records(), "finding"), events(s.records(), "finding"))


def test_bad_policies_change_nothing(case):
    with Session(case, BOTH) as s:
        s.works("open", "tls", "tls", "allowed.test", 443)
        bad = {
            "allow:\n  - bad host\n": f"{s.path}:3:5: ",
            "alow: []\n": f"{s.path}:2:1: ",
            "allow: [\n": f"{s.path}:3:1: ",
            "extends: [./missing.yaml]\n": "missing.yaml: ",
            "allow:\n  - {host: a.test, ports: [443], methods: [GET]}\n":
                f"{s.path}:3:",
            "default: public\nextends: [nosuchpreset]\n": f"{s.path}:3:",
            "#" * (11 << 20): "it is larger than",
        }
        for text, want in bad.items():
            out = s.reload(text, status=1)
            check(want in out.stderr and "old policy stays" in out.stderr
                  and not out.stdout, (text[:100], want, out))
        out = s.reload(status=1, args=("--json",))
        said = json.loads(out.stdout)
        check(not said["ok"] and "it is larger than" in said["error"], said)
        os.unlink(s.path)
        check("No such file" in s.reload(status=1).stderr)
        os.mkfifo(s.path)
        case.mine(s.path)
        check(s.path in s.reload(status=1).stderr)
        os.unlink(s.path)
        s.works("ping", "tls")
        s.works("try", "tls", "allowed.test", 443)
        found = events(s.records(), "finding", "was not reloaded")
        check(len(found) == len(bad) + 3, found)
        check(not events(s.records(), "policy"))
        # What is right at last is taken.
        s.reload(OTHER)
        check(s.do("end", "tls", 2) != "False")


def test_options_are_kept(case):
    with Session(case, "allow: []\n", "--allow", "allowed.test", "--deny",
                 "other.test") as s:
        s.works("try", "tls", "allowed.test", 443)
        s.reload(OTHER)
        s.works("try", "tls", "allowed.test", 443)
        s.fails("try", "tls", "other.test", 443)
        # The same once more is no change.
        check("unchanged" in s.reload().stdout)
        said = json.loads(s.reload(args=("--json",)).stdout)
        check(said["ok"] and not said["changed"] and said["old"] == said["new"]
              and said["rules"] == 3, said)
        check(len(events(s.records(), "policy")) == 1)


def soon(seconds):
    at = datetime.datetime.now(datetime.timezone.utc) \
        + datetime.timedelta(seconds=seconds)
    return at.replace(microsecond=0)


def test_expiry(case):
    def policy(at):
        return ("allow:\n  - {host: allowed.test, ports: [443, 7000], expires: "
                f"{at:%Y-%m-%dT%H:%M:%SZ}}}\n"
                "  - {host: other.test, ports: [7000]}\n")
    at = soon(5)
    with Session(case, policy(at)) as s:
        s.works("open", "tls", "tls", "allowed.test", 443)
        s.works("open", "raw", "raw", "allowed.test", 7000)
        s.works("open", "stays", "raw", "other.test", 7000)
        address = s.do("dns", "allowed.test")
        check(time.time() < at.timestamp(), "too slow to tell")
        check(s.do("end", "tls", 10) != "False")
        late = time.time() - at.timestamp()
        check(s.do("end", "raw", 2) != "False")
        check(-0.1 < late < 1, late)
        s.fails("dns", "allowed.test")
        check("refused" in s.fails("try", "raw", address, 7000))
        s.fails("try", "connect", "allowed.test", 7000)
        s.works("ping", "stays")
        s.until(lambda r: len([x for x in r if x.get("status_code") in (
            "expired", "policy_revoked")]) >= 3)
        # One that came by a reload expires too.
        s.works("try", "raw", "other.test", 7000)
        at = soon(4)
        s.reload(policy(at))
        s.works("open", "raw", "raw", "allowed.test", 7000)
        check(s.do("end", "raw", 10) != "False")
        check(-0.1 < time.time() - at.timestamp() < 1)
        s.works("ping", "stays")


def kill_gate(s):
    """As the warden does not die: in another process's children."""
    os.kill(s.gate(), signal.SIGKILL)


def test_gate_that_dies(case):
    """Killed before, during and after a reload, the gate that comes next has
    the new policy, never the old one."""
    for pause in 0, 0.002, 0.01:
        with Session(case, BOTH) as s:
            s.works("try", "tls", "allowed.test", 443)
            address = s.do("dns", "allowed.test")
            s.write(OTHER)
            pid = s.gate()
            killer = threading.Timer(pause, os.kill, (pid, signal.SIGKILL))
            killer.start()
            s.reload()
            killer.join()
            for _ in range(20):
                s.fails("try", "connect", "allowed.test", 7000)
                s.fails("try", "raw", address, 7000)
            # The one that is there now, or the next.
            s.until(lambda r: events(r, "finding", "the gate died"))
            s.works("try", "tls", "other.test", 443)
            s.fails("try", "connect", "allowed.test", 7000)
            kill_gate(s)
            s.until(lambda r: len(events(r, "finding", "the gate died")) == 2)
            s.works("try", "tls", "other.test", 443)
            s.fails("try", "connect", "allowed.test", 7000)
            check(len(events(s.records(), "policy")) == 1)


def test_gate_that_hangs(case):
    """One that does not answer is replaced, by one with the new policy."""
    with Session(case, BOTH) as s:
        s.works("open", "raw", "raw", "allowed.test", 7000)
        address = s.do("dns", "allowed.test")
        os.kill(s.gate(), signal.SIGSTOP)
        s.reload(OTHER)
        check(s.do("end", "raw", 2) != "False")
        s.fails("try", "connect", "allowed.test", 7000)
        check("refused" in s.fails("try", "raw", address, 7000))
        s.works("try", "tls", "other.test", 443)


def test_ledger_that_hangs(case):
    """What is not recorded is not done."""
    with Session(case, BOTH) as s:
        s.works("open", "raw", "raw", "allowed.test", 7000)
        ledger = case.child(s.process, "ledger")
        os.kill(ledger, signal.SIGSTOP)
        s.write(OTHER)
        out = reload(case, s.log)
        os.kill(ledger, signal.SIGCONT)
        check(out.returncode == 1 and "ledger" in out.stderr, out)
        s.works("ping", "raw")
        s.works("try", "tls", "allowed.test", 443)
        # The last word of the log is what is in force.
        s.until(lambda r: len(events(r, "policy")) == 2)
        first = re.findall(r"sha256:(\w+)",
                           events(s.records(), "policy")[0]["unmapped"]["detail"])
        last = re.findall(r"sha256:(\w+)",
                          events(s.records(), "policy")[1]["unmapped"]["detail"])
        check(first == last[::-1], (first, last))
        s.reload(OTHER)
        check(s.do("end", "raw", 2) != "False")


REAL = """dns: {answers: real}
allow:
  - {host: allowed.test, ports: [80, 443]}
  - {host: other.test, ports: [443]}
"""


def test_real_addresses(case):
    """Names with one address: what one of them loses the other one keeps."""
    only = "dns: {answers: real}\nallow:\n  - {host: other.test, ports: [443]}\n"
    with Session(case, REAL) as s:
        check(s.do("dns", "allowed.test") == GOOD and
              s.do("dns", "other.test") == GOOD)
        s.works("open", "held", "tls", "other.test", 443)
        s.works("open", "gone", "tls", "allowed.test", 443)
        check("refused" not in s.do("try", "raw", GOOD, 80))
        s.reload(only)
        check(s.do("end", "gone", 2) != "False")
        s.works("ping", "held")
        check("refused" in s.fails("try", "raw", GOOD, 80))
        # A literal range over it comes and goes.
        s.reload(only + f"  - {{address: {GOOD}/32, ports: [400-8000]}}\n")
        s.works("ping", "held")
        s.reload(only)
        s.works("try", "tls", "other.test", 443)
        s.works("ping", "held")
        s.reload("dns: {answers: real}\nallow: []\n")
        check(s.do("end", "held", 2) != "False")
        check("refused" in s.fails("try", "raw", GOOD, 443))
        # And to synthetic ones, and back.
        s.reload(BOTH)
        check(s.do("dns", "other.test").startswith("198.18."))
        s.works("try", "tls", "other.test", 443)
        check("refused" in s.fails("try", "raw", GOOD, 443))
        s.reload(REAL)
        check(s.do("dns", "other.test") == GOOD)
        s.works("try", "tls", "other.test", 443)
        check(not events(s.records(), "finding"), events(s.records(), "finding"))


def test_replaced_file_in_the_working_directory(case):
    """In place it may change; but a file that was replaced by another one of
    its name is no longer hidden from the command, which could write to it."""
    path = case.work + "/mine.yaml"
    with Session(case, BOTH, path=path) as s:
        s.reload(OTHER)
        s.fails("try", "connect", "allowed.test", 7000)
        with open(path + ".new", "w") as f:
            f.write("version: 1\n" + BOTH)
        case.mine(path + ".new")
        os.rename(path + ".new", path)
        out = s.reload(status=1)
        check("the command can write to it" in out.stderr, out)
        s.fails("try", "connect", "allowed.test", 7000)
        s.works("try", "connect", "other.test", 7000)
    run = case.run("true", allow=(), args=("--policy", path))
    check(run.status == 125 and "could write to it" in run.err, run)
    os.unlink(run.err.split(": rm ")[1].strip())
    os.unlink(path)
    # Nor can the command lead us to another file, nor to one of its own.
    elsewhere = f"{case.lab.dir}/policies-{case.who}/more.yaml"
    with open(elsewhere, "w") as f:
        f.write("version: 1\n" + BOTH)
    sub = case.work + "/sub"
    with Session(case, OTHER) as s:
        s.do("write", sub + "/more.yaml", BOTH.replace("\n", "|"))
        check(os.path.exists(sub + "/more.yaml"))
        theirs = f"extends: [{sub}/more.yaml]\n"
        check("the command can write to it" in s.reload(theirs, 1).stderr)
        s.do("rename", sub, sub + "2")
        s.do("link", os.path.dirname(elsewhere), sub)
        check(os.path.samefile(sub + "/more.yaml", elsewhere))
        check("the command can write to it" in s.reload(theirs, 1).stderr)
        s.fails("try", "connect", "allowed.test", 7000)
        s.reload(f"extends: [{elsewhere}]\n")
        s.works("try", "connect", "allowed.test", 7000)
    subprocess.run(["rm", "-r", sub, sub + "2"], check=True)


def test_next_session_after_a_replaced_file(case):
    """Nor does the next session believe it, until somebody has looked; and a
    session that was killed tells the same."""
    path = case.work + "/next.yaml"

    def write(name=path):
        with open(name, "w") as f:
            f.write("version: 1\n" + BOTH)
        case.mine(name)

    def start():
        return case.run("true", allow=(), args=("--policy", path))

    def replaced():
        write(path + ".new")
        os.rename(path + ".new", path)

    def refused():
        run = start()
        check(run.status == 125 and "could write to it" in run.err, run)
        return run.err.split(": rm ")[1].strip()

    with Session(case, BOTH, path=path):
        write()
        check(start().status == 0)
    replaced()
    check(start().status == 0)
    for kill in False, True:
        with Session(case, BOTH, path=path) as s:
            if kill:
                os.kill(warden_of(s.process, s.gate()), signal.SIGKILL)
                s.process.wait(10)
            replaced()
            refused()
        check(kill or "was replaced" in s.err, s.err)
        check(kill or events(s.records(), "finding", "was replaced"))
        replaced()
        os.unlink(refused())
        check(start().status == 0)
    os.unlink(path)


def test_second_names_of_a_policy(case):
    """One in the working directory, which no mask would be over."""
    place = f"{case.lab.dir}/policies-{case.who}"
    path, name = place + "/linked.yaml", case.work + "/linked.yaml"
    os.makedirs(place, exist_ok=True)
    with open(path, "w") as f:
        f.write("version: 1\n" + BOTH)
    case.mine(path)
    with Session(case, BOTH, path=path) as s:
        os.link(path, name)
        check("the command can write to it" in s.reload(OTHER, 1).stderr)
    run = case.run("true", allow=(), args=("--policy", path))
    check(run.status == 125 and "hard link" in run.err, run)
    os.unlink(path)
    os.mkdir(place + "/again")
    subprocess.run(["mount", "--bind", case.work, place + "/again"], check=True)
    run = case.run("true", allow=(), args=("--policy",
                                           place + "/again/linked.yaml"))
    subprocess.run(["umount", place + "/again"], check=True)
    os.unlink(name)
    os.rmdir(place + "/again")
    check(run.status == 125 and "working directory too" in run.err, run)


def test_name_servers(case):
    """Those of the new policy are asked, and nothing is remembered."""
    with Session(case, BOTH) as s:
        s.works("try", "tls", "allowed.test", 443)
        s.reload("dns: {upstream: [203.0.113.1]}\n" + BOTH)
        s.fails("try", "connect", "allowed.test", 7000)
        s.until(lambda r: [x for x in r
                           if x.get("status_code") == "resolve_failed"])
        s.reload(BOTH)
        s.works("try", "connect", "allowed.test", 7000)


def test_which_session(case):
    home = case.env()["XDG_STATE_HOME"] if case.who == "user" else None
    argv = [*case.drop(), case.binary, "run", "--allow", "allowed.test",
            "--quiet"]
    env = case.env()
    check(reload(case).returncode == 125)
    check("no session 'nobody'" in reload(case, "nobody").stderr)
    running = []
    try:
        for name in "first", "second":
            process = subprocess.Popen([*argv, "--name", name, "--", "sh", "-c",
                                        "echo ready; read x"], env=env,
                                       cwd=case.work, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
            running.append(process)
            check(process.stdout.readline() == "ready\n")
            if name == "first":
                check("unchanged" in reload(case).stdout)
        out = reload(case)
        check(out.returncode == 125 and "first" in out.stderr
              and "second" in out.stderr, out)
        out = json.loads(reload(case, "--json", "second").stdout)
        check(out["ok"] and not out["changed"], out)
        check(reload(case, out["session"]).returncode == 0)
        # The command's SIGHUP is its own.
        running[0].send_signal(signal.SIGHUP)
        check(running[0].wait(10) == 128 + signal.SIGHUP)
        check("unchanged" in reload(case).stdout)
        if home:
            place = f"{home}/sallyport/{out['session']}"
            check(os.stat(place + "/control").st_mode & 0o777 == 0o600)
            # Root may; another user can't.
            check(subprocess.run([case.binary, "reload", place],
                                 capture_output=True).returncode == 0)
            check(subprocess.run(["setpriv", "--reuid", "34", "--regid", "34",
                                  "--clear-groups", case.binary, "reload",
                                  place], capture_output=True).returncode == 125)
    finally:
        for process in running:
            process.stdin.close()
            process.wait(10)
    check(reload(case).returncode == 125)
    if home:
        left = [name for _, _, names in os.walk(home) for name in names
                if name == "control"]
        check(not left, left)


def test_command_cannot_reach_the_socket(case):
    """Neither by its name nor by what it can guess of it."""
    with Session(case, BOTH) as s:
        check(os.path.exists(s.log + "/control"))
        said = s.do("ls", s.log)
        check(said == "None", said)
        run = case.run("sh", "-c", f"ls {s.log}; ls -a ~/.state 2>&1; "
                       f"find / -xdev -name control -type s 2>/dev/null")
        check("control" not in run.out, run)


class Usage:
    """Descriptors and memory of a gate and its warden."""

    def __init__(self, gate, warden):
        self.pids = {"gate": gate, "warden": warden}

    def read(self):
        found = {}
        for name, pid in self.pids.items():
            with open(f"/proc/{pid}/status") as f:
                rss = int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])
            found[name] = (len(os.listdir(f"/proc/{pid}/fd")), rss)
        return found


def warden_of(process, gate):
    """The parent of the gate: ours may be setpriv's."""
    with open(f"/proc/{gate}/status") as f:
        return int(re.search(r"PPid:\s+(\d+)", f.read())[1])


def check_usage(before, after, case, flows=0):
    """@flows: descriptors of what is under way just then."""
    for name, (fds, rss) in before.items():
        check(after[name][0] <= fds + 2 + flows, (name, before, after))
        if not case.sanitized:
            check(after[name][1] <= rss + 2048, (name, before, after))


PROBER = r"""
import os, socket, sys, time
proxy = os.environ["http_proxy"].split("//")[1].split(":")
while True:
    began = time.time()
    try:
        s = socket.create_connection((proxy[0], int(proxy[1])), 5)
        s.settimeout(5)
        s.sendall(b"CONNECT allowed.test:7000 HTTP/1.1\r\nHost: allowed.test:7000\r\n\r\n")
        ok = b" 200 " in s.recv(4096)
        if ok:
            s.sendall(b"\0echo\n")
            ok = s.recv(6) == b"\0echo\n"
        s.close()
    except OSError:
        ok = False
    os.write(1, f"{began!r} {time.time()!r} {int(ok)}\n".encode())  # in one piece
"""


def test_two_hundred_reloads_under_load(case):
    """No connection that was begun after a denial was acknowledged succeeds."""
    place = f"{case.lab.dir}/policies-{case.who}"
    os.makedirs(place, exist_ok=True)
    path = place + "/load.yaml"

    def write(policy):
        with open(path, "w") as f:
            f.write("version: 1\nlimits: {connections_per_second: 100000}\n"
                    + policy)
        case.mine(path)
    write(BOTH)
    process, log = case.start("sh", "-c", "for i in 1 2 3; do python3 -c \"$0\" & "
                              "done; wait", PROBER, allow=(),
                              args=("--policy", path, "--quiet"))
    seen = []

    def read():
        for line in process.stdout:
            began, ended, ok = line.split()
            seen.append((float(began), float(ended), ok == "1"))
    reader = threading.Thread(target=read)
    reader.start()
    denied = []  # from, to
    try:
        gate = case.child(process, "gate")
        usage = Usage(gate, warden_of(process, gate))
        before = None
        for i in range(100):
            write(OTHER)
            check(reload(case, log).returncode == 0)
            began = time.time()
            time.sleep(0.03)
            denied.append((began, time.time()))
            write(BOTH)
            check(reload(case, log).returncode == 0)
            time.sleep(0.02)
            if i == 20:
                before = usage.read()
        check_usage(before, usage.read(), case, flows=24)
    finally:
        process.terminate()
        process.wait(20)
        reader.join()
        process.stdout.close()
        process.stderr.close()
    check(sum(ok for _, _, ok in seen) > 50, len(seen))
    probes = 0
    for began, ended, ok in seen:
        for since, to in denied:
            if since < began and ended < to:
                probes += 1
                check(not ok, (began, ended, since, to))
    check(probes > 20, probes)
    with open(log + "/audit.jsonl") as f:
        records = [json.loads(line) for line in f]
    check(len(events(records, "policy")) == 200)
    check(not events(records, "finding"), events(records, "finding"))


def test_a_long_list_stops_nobody(case):
    """While it is made into a policy what goes on goes on; and what it took is
    given back with it."""
    place = f"{case.lab.dir}/policies-{case.who}"
    os.makedirs(place, exist_ok=True)
    path = place + "/long.txt"
    with Session(case, BOTH) as s:
        s.works("open", "stays", "tls", "allowed.test", 443)
        usage = Usage(s.gate(), warden_of(s.process, s.gate()))
        for salt in "ab":
            with open(path, "w") as f:
                f.writelines(f"n{i}.{salt}.example\n" for i in range(1000000))
            case.mine(path)
            s.write(BOTH + f"deny:\n  - file: {path}\n")
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                began = time.monotonic()
                done, longest = pool.submit(s.reload), 0
                while not done.done():
                    at = time.monotonic()
                    s.works("ping", "stays")
                    longest = max(longest, time.monotonic() - at)
                    time.sleep(0.005)
                took = time.monotonic() - began
                done.result()
            check(longest < took / 4, (longest, took))
        s.reload(BOTH)
        s.works("ping", "stays")
        for name, (_, rss) in usage.read().items():
            check(case.sanitized or rss < 10 << 10, (name, rss))


def test_a_thousand_reloads_of_serve(case):
    place = f"{case.lab.dir}/policies-{case.who}"
    os.makedirs(place, exist_ok=True)
    case.mine(place)
    path, log = place + "/serve.yaml", f"{case.lab.dir}/log-reloads-{case.who}"
    os.mkdir(log, 0o700)
    case.mine(log)

    def write(policy):
        with open(path + ".new", "w") as f:
            f.write("version: 1\n" + policy)
        case.mine(path + ".new")
        os.rename(path + ".new", path)  # no sandbox has it masked
    write(BOTH)
    process = subprocess.Popen(
        [*case.drop(), case.binary, "serve", "--policy", path, "--log", log,
         "--proxy", "127.0.0.1:18090", "--dns", "127.0.0.1:15390"],
        env=case.env(), text=True, stderr=subprocess.PIPE, cwd=case.work)
    try:
        check("serving" in process.stderr.readline())
        gate = case.child(process, "gate")
        usage = Usage(gate, warden_of(process, gate))

        def hup(policy):
            write(policy)
            process.send_signal(signal.SIGHUP)
            check("policy sha256:" in process.stderr.readline())

        def status():
            with socket.create_connection(("127.0.0.1", 18090), 5) as c:
                c.sendall(b"CONNECT allowed.test:7000 HTTP/1.1\r\n"
                          b"Host: allowed.test:7000\r\n\r\n")
                return c.recv(4096).split()[1].decode()
        before = None
        for i in range(500):
            hup(OTHER)
            if i % 50 == 0:
                check(status() == "403", i)
            hup(BOTH)
            if i % 50 == 0:
                check(status() == "200", i)
            if i == 100:
                before = usage.read()
        check_usage(before, usage.read(), case)
        check(reload(case, log).stdout.startswith("unchanged"))
        with open(path, "w") as f:
            f.write("version: 1\nnonsense\n")
        process.send_signal(signal.SIGHUP)
        said = process.stderr.readline()
        check("serve.yaml:" in said, said)
        check(status() == "200")
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
    check(process.returncode == 0, err)
    with open(log + "/audit.jsonl") as f:
        check(len(events([json.loads(line) for line in f], "policy")) == 1000)
    silent(case)
