# SPDX-License-Identifier: Apache-2.0
"""`sallyport prove`: a good sandbox passes, and a broken one does not: each
hole is named. The broken ones are namespaces made here."""
import base64
import json
import os
import socket
import subprocess
import threading
import time

from harness import check, descendants, silent
from lab import sh

# An address of each of the attacks on packets is here, and answers.
WORLD = """
import socket, sys, threading
up = threading.Semaphore(0)
def tcp(at, port):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((at, port)); s.listen(16); up.release()
    while True: s.accept()[0].close()
def udp(at, port, answer):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((at, port))
    up.release()
    while True:
        data, peer = s.recvfrom(4096); s.sendto(answer(data), peer)
def dns(data):
    return (data[:2] + b"\\x81\\x80\\0\\1\\0\\1\\0\\0\\0\\0" + data[12:] +
            b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\1\\0\\4\\x09\\x09\\x09\\x09")
jobs = [(tcp, 80), (tcp, 853), (udp, 123, bytes), (udp, 53, dns)]
for at in sys.argv[1:]:
    for f, *args in jobs:
        threading.Thread(target=f, args=(at, *args), daemon=True).start()
for _ in sys.argv[1:]:
    for _ in jobs: up.acquire()
print("ready", flush=True)
threading.Event().wait()
"""
# CONNECT may dial an allowed host; not a byte goes there.
DATA = ("tcp and port 443 and ip[2:2] - ((ip[0] & 15) << 2) - "
        "((tcp[12] & 240) >> 2) != 0")


class Proof:
    def __init__(self, process, log):
        self.status, self.err, self.log = (process.returncode, process.stderr,
                                           log)
        self.process = process
        self.text = process.stdout
        self.json = json.loads(process.stdout) if process.stdout[:1] == "{" \
            else {}
        self.attacks = {a["id"]: a for a in self.json.get("attacks", [])}

    def out(self):
        return sorted(a for a, row in self.attacks.items()
                      if row["result"] == "got_out")

    def __str__(self):
        bad = {a: row["detail"] for a, row in self.attacks.items()
               if row["result"] != "held"}
        return f"status {self.status}\n{bad}\n{self.text[:300]}\n{self.err}"


def prove(case, *args, own=True, allow=("allowed.test",), words=("--json",)):
    log = ""
    argv = [*case.drop(), case.binary, "prove", *words,
            *[x for name in allow for x in ("--allow", name)]]
    if own:
        case.count += 1
        log = f"{case.lab.dir}/log-{case.who}-{case.count}"
        os.mkdir(log, 0o700)
        case.mine(log)
        argv += ["--log", log]
    process = subprocess.run([*argv, *args], cwd=case.work, text=True,
                             capture_output=True, timeout=90, env=case.env(),
                             stdin=subprocess.DEVNULL)
    return Proof(process, log)


def test_good_sandbox(case):
    before = len(case.lab.packets(DATA))
    proof = prove(case)
    check(proof.status == 0 and proof.out() == [] and
          proof.json["got_out"] == 0, proof)
    # Nothing is left out but what this machine has not got.
    skipped = {a for a, row in proof.attacks.items()
               if row["result"] == "skipped"}
    check(not skipped, proof)
    check(len(proof.attacks) > 100 and
          sum(row["recorded"] for row in proof.attacks.values()) > 60, proof)
    for name in ("tcp", "udp", "quic", "machine-tcp", "dns-label",
                 "dns-other-udp", "connect-octal", "sni-connect", "sni-direct",
                 "sni-none", "sni-segments", "sni-records", "ech", "not-tls"):
        check(proof.attacks[name]["recorded"], (name, str(proof)))
    check(len(case.lab.packets(DATA)) == before, case.lab.packets(DATA))
    silent(case)
    receipt_tells(case, proof)


def receipt_tells(case, proof):
    shown = subprocess.run([*case.drop(), case.binary, "verify", proof.log],
                           capture_output=True, text=True, env=case.env())
    line = [x for x in shown.stdout.splitlines() if "attacks" in x]
    check(line and f"{proof.json['held']} held, 0 got out" in line[0],
          shown.stdout)
    check("broken" not in shown.stdout, shown.stdout)


def test_table_and_command_line(case):
    proof = prove(case, words=("--quiet",))
    check(proof.status == 0 and "0 got out" in proof.text and
          proof.text.count("\n") == 2, proof)
    check(prove(case, "--no-such").status == 2)
    check(prove(case, "--netns", "x", "--guard", own=False).status == 2)
    check(prove(case, "what").status == 2)
    listed = prove(case, own=False, words=("--list",))
    check(listed.status == 0 and "dns-label" in listed.text, listed)


def test_what_the_policy_allows_is_no_attack(case):
    proof = prove(case, allow=("allowed.test", "9.9.9.9:80"))
    check(proof.status == 0 and
          proof.attacks["tcp"]["result"] == "skipped" and
          "policy" in proof.attacks["tcp"]["detail"], proof)


def test_unix_socket_in_the_view(case):
    """Sockets that are bound after the view was made are not masked: one is
    found, and named."""
    stop, made = threading.Event(), []

    def bind():
        while not stop.is_set():
            s = socket.socket(socket.AF_UNIX)
            path = f"{case.work}/late-{len(made)}"
            s.bind(path)
            os.chmod(path, 0o777)
            s.listen(8)
            made.append((s, path))
            time.sleep(0.02)

    thread = threading.Thread(target=bind)
    thread.start()
    try:
        proof = prove(case)
    finally:
        stop.set()
        thread.join()
        for s, path in made:
            s.close()
            os.unlink(path)
    check(proof.status == 1 and proof.out() == ["unix-found"] and
          "/late-" in proof.attacks["unix-found"]["detail"], proof)
    # The log has it too.
    with open(proof.log + "/audit.jsonl") as f:
        check("unix-found got out" in f.read(), proof)


# -- namespaces that are there: root's ----------------------------------------


class World:
    """A sandbox without a gate: a link to a gateway's namespace that refuses
    everything, and one that has the addresses of the attacks."""

    def __init__(self, case):
        self.lab = case.lab
        self.children = []

    def spawn(self, *argv, **kw):
        child = subprocess.Popen(argv, **kw)
        self.children.append(child)
        return child

    def holder(self):
        child = self.spawn("unshare", "--net", "sleep", "infinity")
        mine = os.readlink("/proc/self/ns/net")
        self.lab.wait(lambda: os.readlink(f"/proc/{child.pid}/ns/net") != mine)
        self.at(child, "ip", "link", "set", "lo", "up")
        return child

    @staticmethod
    def at(holder, *argv, **kw):
        return sh("nsenter", "-t", str(holder.pid), "-n", *argv, **kw)

    def link(self, a, name_a, ip_a, b, name_b, ip_b):
        self.at(a, "ip", "link", "add", name_a, "type", "veth", "peer", "name",
                name_b, "netns", str(b.pid))
        for holder, name, ip in ((a, name_a, ip_a), (b, name_b, ip_b)):
            self.at(holder, "ip", "addr", "add", ip + "/30", "dev", name)
            self.at(holder, "ip", "link", "set", name, "up")

    def __enter__(self):
        self.box, self.gateway, self.world = (self.holder() for _ in range(3))
        self.link(self.box, "eth0", "10.77.0.2", self.gateway, "in0",
                  "10.77.0.1")
        self.link(self.gateway, "up0", "10.78.0.2", self.world, "in0",
                  "10.78.0.1")
        self.at(self.box, "ip", "route", "add", "default", "via", "10.77.0.1")
        self.at(self.gateway, "ip", "route", "add", "default", "via",
                "10.78.0.1")
        self.at(self.world, "ip", "route", "add", "10.77.0.0/30", "via",
                "10.78.0.2")
        # Every address is there; what is closed says so at once.
        self.at(self.world, "ip", "route", "add", "local", "default", "dev",
                "lo")
        for holder in self.gateway, self.world:
            self.at(holder, "sysctl", "-qw", "net.ipv4.icmp_ratelimit=0")
        self.rules("add")
        return self

    def rules(self, word):
        """All is refused, or the chains are gone and the gateway forwards."""
        if word == "add":
            text = ("add table inet t; add chain inet t in { type filter hook "
                    "prerouting priority 0; }; add rule inet t in iifname in0 "
                    "meta l4proto tcp reject with tcp reset; add rule inet t in "
                    "iifname in0 reject;")
        else:
            text = "flush ruleset"
            self.at(self.gateway, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        self.at(self.gateway, "nft", text)

    def serve(self, holder, *addresses):
        child = self.spawn("nsenter", "-t", str(holder.pid), "-n", "python3",
                           "-c", WORLD, *addresses, stdout=subprocess.PIPE, text=True)
        check(child.stdout.readline() == "ready\n")

    def prove(self, case, *more):
        return prove(case, "--netns", f"/proc/{self.box.pid}/ns/net", *more,
                     own=False)

    def __exit__(self, *_):
        for child in reversed(self.children):
            child.kill()
            child.wait()
            if child.stdout:
                child.stdout.close()


def test_rules_removed(case):
    if case.who != "root":
        return
    with World(case) as w:
        w.serve(w.world, "1.1.1.1", "8.8.8.8", "9.9.9.9")
        proof = w.prove(case)
        check(proof.status == 0 and proof.out() == [], proof)
        w.rules("flush")
        proof = w.prove(case)
        check(proof.status == 1 and
              {"tcp", "udp-ntp", "dot", "dns-other-udp"} <= set(proof.out()),
              proof)
        check("connected to 9.9.9.9 port 80" in
              proof.attacks["tcp"]["detail"], proof)


def test_second_interface(case):
    """Behind it nobody answers: the way tells."""
    if case.who != "root":
        return
    with World(case) as w:
        hole = w.holder()
        w.link(w.box, "eth1", "10.79.0.2", hole, "in0", "10.79.0.1")
        w.at(w.box, "ip", "route", "add", "9.9.9.9/32", "via", "10.79.0.1")
        proof = w.prove(case)
        check(proof.status == 1 and {"one-link", "tcp"} <= set(proof.out()),
              proof)
        check("eth0, eth1" in proof.attacks["one-link"]["detail"]
              or "eth1, eth0" in proof.attacks["one-link"]["detail"], proof)
        check("sent by eth1" in proof.attacks["udp"]["detail"], proof)
        check("tcp-ssh" not in proof.out(), proof)


def test_open_resolver_and_abstract_socket(case):
    if case.who != "root":
        return
    with World(case) as w:
        w.at(w.gateway, "nft", "insert rule inet t in iifname in0 udp dport 53 "
             "accept")
        w.serve(w.gateway, "10.77.0.1")
        w.spawn("nsenter", "-t", str(w.box.pid), "-n", "python3", "-c",
                "import socket, time\ns = socket.socket(socket.AF_UNIX)\n"
                "s.bind('\\0of-the-host'); s.listen(); time.sleep(1000)")
        case.lab.wait(lambda: "@of-the-host" in
                      w.at(w.box, "cat", "/proc/self/net/unix"))
        proof = w.prove(case)
        check(proof.status == 1 and "dns-label" in proof.out() and
              "unix-abstract" in proof.out() and "tcp" not in proof.out(),
              proof)
        check("answered with 1 records" in
              proof.attacks["dns-label"]["detail"] and
              "of-the-host" in proof.attacks["unix-abstract"]["detail"], proof)


def test_sandbox_that_runs(case):
    """A session of somebody else's, with its log."""
    if case.who != "root":
        return
    process, log = case.start("sleep", "600")
    mine = os.readlink("/proc/self/ns/net")
    try:
        def inside():
            for pid in descendants(process.pid):
                try:
                    with open(f"/proc/{pid}/cmdline") as f:
                        if f.read().startswith("sleep\0"):
                            return pid
                except OSError:
                    continue
            return None
        case.lab.wait(inside, "the sandbox")
        path = f"/proc/{inside()}/ns/net"
        check(os.readlink(path) != mine)
        proof = prove(case, "--netns", path, "--watch", log, own=False)
        check(proof.status == 0 and proof.out() == [] and
              proof.attacks["tcp"]["recorded"], proof)
        check(proof.json.get("reported") == log and proof.err == "", proof)
        check(said(log, "attacks\nduration_ms 1\nheld no-attack\n") ==
              said(log, "attacks\nheld tcp\n") ==
              "error\nthe report is not taken: Invalid argument\n")
    finally:
        process.terminate()
        process.communicate(timeout=60)
    receipt_tells(case, Proof(proof.process, log))


def said(log, request):
    """What the session's control socket answers."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect(log + "/control")
    s.send(request.encode())
    answer = s.recv(4096).decode()
    s.close()
    return answer


# -- a statement of its own ---------------------------------------------------


def verify(case, *args):
    r = subprocess.run([case.binary, "verify", *args], text=True,
                       capture_output=True, timeout=60, env=case.env())
    return r.returncode, r.stdout + r.stderr


def test_statement(case):
    """Of a namespace that nobody's session has: signed, and only as it is."""
    if case.who != "root":
        return
    path = f"{case.work}/attacks.json"
    key = f"{case.work}/signing.key"
    subprocess.run([case.binary, "key", "new", "--out", key], check=True,
                   capture_output=True, env=case.env())
    with World(case) as w:
        proof = w.prove(case, "--receipt", path, "--key", key)
        check(proof.status == 0 and not proof.json.get("reported"), proof)
        check(w.prove(case, "--receipt", path).status == 125)
    status, said = verify(case, "--key", f"{case.work}/signing.vkey", path)
    check(status == 0 and said.startswith("holds: attacks on netns") and
          f"{proof.json['held']} held, 0 got out" in said, said)
    status, said = verify(case, "--json", "--key",
                          f"{case.work}/signing.vkey", path)
    told = json.loads(said)["predicate"]["attacks"]
    check(told["held"] == proof.json["held"] and "reports" not in told and
          told["results"]["tcp"] == "held", told)
    # Another one's key, or other words, and it is broken.
    subprocess.run([case.binary, "key", "new", "--out",
                    f"{case.work}/other.key"],
                   check=True, capture_output=True, env=case.env())
    status, said = verify(case, "--key", f"{case.work}/other.vkey", path)
    check(status == 1 and "not by that key" in said, (status, said))
    with open(path) as f:
        envelope = json.load(f)
    body = base64.b64decode(envelope["payload"])
    check(b'"tcp":"held"' in body, body)
    envelope["payload"] = base64.b64encode(
        body.replace(b'"tcp":"held"', b'"tcp":"skipped"')).decode()
    with open(path, "w") as f:
        json.dump(envelope, f)
    status, said = verify(case, "--key", f"{case.work}/signing.vkey", path)
    check(status == 1 and "holds" not in said, (status, said))
