# SPDX-License-Identifier: Apache-2.0
"""A name server that is silent, slow, cut short, that lies or is spoofed: names
that it knows well are served meanwhile, nothing but true and permitted answers
is dialled, another sandbox notices nothing. (test_attacks_names.py has more lies,
one by one.)"""
import subprocess

from attack_lab import COMMON, inside
from harness import check
from lab import GOOD
from pressure_lab import LIMITS, Pressure

SERVER, OTHER, TRAP = "93.184.216.54", "93.184.216.55", "93.184.216.67"
WORDS = "silent", "slow", "cut", "many", "circle", "private", "mixed", "spoofed"

# The word is the last label but one.
NAMES = r"""
import os, socket, struct, threading, time
A = lambda ip: b"\xc0\x0c" + struct.pack(">2HIH", 1, 1, 0, 4) + socket.inet_aton(ip)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("%(server)s", 53))
other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); other.bind(("%(other)s", 53))
def read(q):
    at, labels = 12, []
    while q[at]: labels.append(q[at + 1:at + 1 + q[at]]); at += 1 + q[at]
    return (labels[-2] if len(labels) > 1 else b"").decode(), struct.unpack(">H", q[at + 1:at + 3])[0], q[12:at + 5]
def reply(ident, question, rr, flags=0x8180):
    return ident + struct.pack(">5H", flags, 1, len(rr), 0, 0) + question + b"".join(rr)
def spoof(q, peer, question):
    lie = [A("%(trap)s")]
    for i in range(300):
        other.sendto(reply(q[:2], question, lie), peer)
        u.sendto(reply(bytes([q[0] ^ 1 + i %% 255, q[1]]), question, lie), peer)
        u.sendto(reply(q[:2], b"\5other\4test\0\0\1\0\1", lie), peer)
def answer(q, peer):
    word, kind, question = read(q)
    rr = []
    if word == "silent": return b""
    if word == "slow": time.sleep(5)
    if kind == 1:
        rr = {"private": [A("10.0.0.7")], "mixed": [A("10.9.9.9"), A("%(good)s")],
              "many": [A("10.0.0.7")] * 4000, "circle": [b"\xc0\x0c" + struct.pack(">2HIH", 5, 1, 0, 2) + b"\xc0\x0c"],
              }.get(word, [A("%(good)s")])
        if word == "spoofed" and peer: spoof(q, peer, question)
    return reply(q[:2], question, rr)
def udp(q, peer):
    a = answer(q, peer)
    if len(a) > 1400 or b"\3cut" in q: a = reply(q[:2], read(q)[2], [], 0x8380)
    if a: u.sendto(a, peer)
def tcp(c):
    q = c.recv(4096)
    if len(q) > 14 and b"\3cut" not in q:
        a = answer(q[2:], None); c.sendall(struct.pack(">H", min(len(a), 65535)) + a[:65535])
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); c.close()
def safely(f, *args):
    def run():
        try: f(*args)
        except (OSError, IndexError, struct.error): pass
    threading.Thread(target=run, daemon=True).start()
def accept():
    t = socket.socket(); t.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); t.bind(("%(server)s", 53)); t.listen(256)
    while True: safely(tcp, t.accept()[0])
threading.Thread(target=accept, daemon=True).start()
while True: safely(udp, *u.recvfrom(4096))
""" % {"server": SERVER, "other": OTHER, "trap": TRAP, "good": GOOD}

ASK = "WORDS = %r" % (WORDS,) + r"""
def work(k):
    n = 0
    while True:
        n += 1
        word = WORDS[(n + k) % len(WORDS)]
        host = b"n%d-%d.%s.test" % (k, n % 40, word.encode())
        udp(query(name(host)), 0.05)
        if n % 8 == 0: say((GW, PORT), b"GET http://" + host + b"/ HTTP/1.1\r\nHost: " + host + b"\r\n\r\n", 0, True, 0.3)
for k in range(8): threading.Thread(target=work, args=(k,), daemon=True).start()
print("on", flush=True)
time.sleep(3600)
"""

# What becomes of each in the end, when what was before does not count for the
# limits any more: it is closed, or reset.
REACH = r"""
def one(word):
    host = b"last.%s.test" % word.encode()
    until = time.monotonic() + 40
    while time.monotonic() < until:
        got = say((GW, PORT), b"GET http://%s/index.html HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (host, host), 0, timeout=60)
        if got.startswith(b"HTTP/"): break
        time.sleep(0.5)
    end = "reached" if b"hello from the lab" in got else got[9:12].decode() or "nothing"
    sys.stdout.write(word + " " + end + "\n")  # whole: others write, too
    sys.stdout.flush()
ts = [threading.Thread(target=one, args=(w,)) for w in sys.argv[1:]]
[t.start() for t in ts]; [t.join() for t in ts]
"""


def has_time(lab):
    """The server, for one that it knows well."""
    got = subprocess.run(
        ["nsenter", "-t", str(lab.holder.pid), "-n", "dig", "+short",
         "+tries=1", "+time=1", "@" + SERVER, "idle.mixed.test"],
        capture_output=True, text=True)
    return GOOD in got.stdout


def test_name_servers(case):
    for ip in SERVER, OTHER:
        try:
            case.lab.net("ip", "addr", "add", ip + "/32", "dev", "lo")
        except subprocess.CalledProcessError:
            pass
    server = inside(case, NAMES)
    case.lab.wait(lambda: case.lab.listens(SERVER, 53), "name server")
    limits = LIMITS.replace("}", ", names: 4000, names_per_wildcard: 4000}")
    pressure = Pressure(case, servers=(GOOD, "93.184.216.53", SERVER), wild=(
        f"version: 1\ndns: {{upstream: [{SERVER}]}}\n{limits}allow:\n"
        "  - allowed.test\n" + "".join(f'  - "*.{w}.test"\n' for w in WORDS)))
    try:
        # The server needs a processor, too.
        pressure.attack("name servers of all sorts", ASK, processors=2,
                        rounds=15)
        case.lab.wait(lambda: has_time(case.lab), "an answer in time")
        last = pressure.inside(pressure.wild, COMMON + REACH, *WORDS)
        out, _ = last.communicate(timeout=120)
        said = dict(line.split() for line in out.splitlines())
        print(f"       {said}")
        check({w for w in WORDS if said[w] == "reached"} <=
              {"mixed", "spoofed", "slow"} and said["mixed"] == "reached" and
              all(said[w] in ("502", "403", "504", "reached") for w in WORDS),
              said)
        check(not pressure.left(), pressure.left()[:5])
    finally:
        pressure.stop()
        server.kill()
        server.wait()
