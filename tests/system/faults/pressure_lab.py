# SPDX-License-Identifier: Apache-2.0
"""Two sandboxes of one daemon: a wild one, and a calm one that must not notice.

What the calm one notices is measured in turns, so that whatever else the
machine does meets all of them alike: while the wild one does nothing, while it
burns processors without saying a word, and while it attacks. A processor that
somebody else uses is gone whatever a proxy does: where an attack is no worse
than that, it is not the attack."""
import contextlib
import os
import re
import signal
import statistics
import subprocess

from attack_lab import COMMON
from daemon_lab import Daemon, fetch
from harness import check, descendants
from lab import DNS, GOOD

LIMITS = ("limits: {connections: 300, connections_per_second: 100000, "
          "dns_per_second: 1000}\n")
POLICY = f"""version: 1
{LIMITS}allow:
  - "*.tunnel.test"
  - {{host: allowed.test, ports: [80, 443, 7000]}}
  - {{host: allowed.test, ports: [8090, 8091, 8092, 8093, 8094], protocol: any}}
"""

ROLES = "gate", "ledger", "keeper"

PROBE = COMMON + r"""
REQUEST = b"GET http://allowed.test/index.html HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n"
def one():
    began = time.monotonic()
    if b"hello from the lab" not in say((GW, PORT), REQUEST, 0, False, 30): raise SystemExit("no answer")
    return time.monotonic() - began
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)): print(one(), end=" ")
    print(flush=True)
"""

BURN = """import os
for i in range(%d - 1):
    if not os.fork():
        while True: pass
os.write(1, b"on\\n")
while True: pass
"""

# Servers in the internet that are no good, one a port.
SERVERS = """
import socket, struct, threading, time
def mute(c): time.sleep(3600)                       # neither reads nor writes
def flood(c):                                       # never closes, never reads
    while True: c.sendall(bytes(65536))
def early(c): c.recv(1); c.sendall(b"x"); c.close() # closes early
def reset(c):
    c.recv(1); c.sendall(bytes(5000))
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); c.close()
def slow(c):
    while True: c.sendall(b"x"); time.sleep(1)
def one(f, c):
    try: f(c)
    except OSError: pass
    c.close()
def serve(port, f):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    s.bind(("%s", port)); s.listen(1024)
    while True: threading.Thread(target=one, args=(f, s.accept()[0]), daemon=True).start()
for port, f in (8090, mute), (8091, flood), (8092, early), (8093, reset): threading.Thread(target=serve, args=(port, f), daemon=True).start()
serve(8094, slow)
""" % GOOD


def pss(pid):
    """kB of memory that are its own, shared ones in part."""
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return int(re.search(r"Pss:\s+(\d+)", f.read())[1])


def ratios(took):
    """Of the times under attack, to those in quiet and beside a burner, by
    rounds: p50 to each, p95 to each."""
    out = []
    for which in 0.5, 0.95:
        quiet, floor, wild = ([sorted(r)[int(len(r) * which)] for r in t]
                              for t in took)
        out.append(statistics.median(w / q for w, q in zip(wild, quiet)))
        out.append(statistics.median(w / f for w, f in zip(wild, floor)))
    return out


def fair(times):
    """No worse than quiet, or than a burner."""
    return min(times[:2]) <= 2


class Pressure:
    def __init__(self, case, wild=POLICY, servers=(DNS, GOOD)):
        """@servers: with whom the policies allow to speak."""
        self.case, self.lab, self.allowed = case, case.lab, servers
        self.servers = self.lab.spawn(
            "nsenter", "-t", str(self.lab.holder.pid), "-n", "python3", "-c",
            SERVERS)
        for port in range(8090, 8095):
            self.lab.wait(lambda: self.lab.listens(GOOD, port), f"port {port}")
        self.d = Daemon(case).start()
        self.calm = self.d.good("POST", "/v1/sandboxes",
                                {"name": "calm", "policy": POLICY})
        before = set(descendants(self.d.process.pid))
        self.wild = self.d.good("POST", "/v1/sandboxes",
                                {"name": "wild", "policy": wild})
        self.parts = {}
        for pid in set(descendants(self.d.process.pid)) - before:
            # What is over, or a helper of a moment, is none of them.
            with contextlib.suppress(OSError, IndexError), \
                    open(f"/proc/{pid}/cmdline") as f:
                if (role := f.read().split("\0")[1]) in ROLES:
                    self.parts[role] = pid
        check(set(ROLES) == set(self.parts), self.parts)
        self.probe = self.inside(self.calm, PROBE, stdin=subprocess.PIPE)
        check(self.probe.stdout.readline() == "ready\n")
        self.ask(50)

    def inside(self, s, code, *args, **kw):
        """A program in a sandbox's namespace, in a process group of its own."""
        env = dict(os.environ, GATEWAY=f"{s['gateway']}:{s['proxy_port']}")
        return subprocess.Popen(
            ["nsenter", "--net=" + s["netns"], "python3", "-c", code, *args],
            stdout=subprocess.PIPE, text=True, env=env, start_new_session=True,
            **kw)

    def ask(self, times):
        """How long that many small requests took, each."""
        self.probe.stdin.write(f"{times}\n")
        self.probe.stdin.flush()
        line = self.probe.stdout.readline()
        check(line, "the calm sandbox had no answer")
        return [float(word) for word in line.split()]

    def memory(self):
        return sum(pss(pid) for pid in self.parts.values())

    def settled(self, before):
        """What it has when nothing is under way any more."""
        with contextlib.suppress(RuntimeError):
            self.lab.wait(lambda: self.memory() < before + 10000, seconds=15)
        return self.memory()

    def left(self):
        """Packets that no policy allows. That a port is closed the kernel tells
        whoever sends something there."""
        return self.lab.packets("src host 203.0.113.2 and not arp and "
                                "not icmp[0] == 3" + "".join(
            f" and not dst host {host}" for host in self.allowed))

    @contextlib.contextmanager
    def running(self, s, code):
        """Stopped, once it has said "on"."""
        process = self.inside(s, code)
        try:
            line = process.stdout.readline()
            check(line == "on\n", line)
            os.killpg(process.pid, signal.SIGSTOP)
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def turn(self, attack, burn, times, took):
        """Times of requests go to @took: while nothing is done, processors are
        burned, it is attacked. The most memory that the wild one's processes
        had."""
        peak = 0
        for who, of in zip((None, burn, attack), took):
            if who:
                os.killpg(who.pid, signal.SIGCONT)
            of.append(self.ask(times))
            peak = max(peak, self.memory())
            if who:
                os.killpg(who.pid, signal.SIGSTOP)
        return peak

    def attack(self, name, code, processors=1, rounds=9, times=25, room=60000,
               enough=lambda: True):
        """@enough: how long it goes on after that."""
        if self.case.sanitized:  # whose times say nothing
            rounds, times = 1, 5
        before, seen, took = self.memory(), len(self.left()), ([], [], [])
        peak = before
        with self.running(self.wild, BURN % processors) as burn, \
                self.running(self.wild, COMMON + code) as process:
            # Who else uses the machine is in a few rounds, not in many.
            for _ in range(rounds):
                peak = max(peak, self.turn(process, burn, times, took))
            os.killpg(process.pid, signal.SIGCONT)
            self.lab.wait(enough, "the attack", seconds=120)
            peak = max(peak, self.memory())
        return self.judge(name, before, peak, ratios(took), seen, room)

    def judge(self, name, before, peak, times, seen, room):
        for role, pid in self.parts.items():
            check(os.path.exists(f"/proc/{pid}"), (name, role, "died"))
        # What was refused for the number of its flows is served again.
        self.d.wait(lambda: fetch(self.wild, "allowed.test"), 60)
        after = self.settled(before)
        sent = self.left()[seen:]
        row = (f"{name:28}{before:7}{peak:8}{after:8} kB  p50 x{times[0]:.2f} "
               f"(x{times[1]:.2f})  p95 x{times[2]:.2f} (x{times[3]:.2f})  "
               f"{len(sent)} packets")
        print("       " + row, flush=True)
        check(not sent, (row, sent[:5]))
        check(self.case.sanitized or peak - before < room, row)
        check(self.case.sanitized or after - before < 20000, row)
        check(self.case.sanitized or fair(times), row)

    def stop(self):
        self.probe.stdin.close()
        self.probe.wait()
        for name in "calm", "wild":
            self.d.ask("DELETE", "/v1/sandboxes/" + name)
        status = self.d.stop()
        self.servers.kill()
        self.servers.wait()
        check(status == 0 and "Sanitizer" not in self.d.err(), self.d.err())
