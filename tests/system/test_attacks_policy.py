# SPDX-License-Identifier: Apache-2.0
"""Attacks from inside on what a policy says: words that relax it, rules about
requests, services under a name, real addresses."""
import socket
import threading

from harness import check
from lab import GOOD
from policy_attack_lab import DOORS, KB, origin, policy
from attack_lab import attack
from limits_lab import moved


class Service:
    """Something of the machine's own, which counts who comes."""

    def __init__(self, ip, port):
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        self.socket = socket.socket(family)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((ip, port))
        self.socket.listen(64)
        self.came, self.said = 0, b""
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            self.came += 1
            client.settimeout(30)
            try:
                self.said += client.recv(4096)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nINSIDE")
            except OSError:
                pass
            client.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def inner(case):
    """What no sandbox may reach was not reached."""
    seen = case.lab.packets("dst net 10.0.0.0/8 or dst net 169.254.0.0/16 or "
                            "dst net 127.0.0.0/8 or ip6 net 64:ff9b::/96 or "
                            "ip6 net 2002::/16")
    check(not seen, "\n".join(seen))


def test_relaxed_reaches_nothing_inside(case):
    """Neither `default: public` nor `mode: observe` open the machine, its
    networks or what an address hides, by whatever door or name."""
    names = ["private.test", "metadata.test", "loop.test", "mapped.test",
             "uplink.test", "localhost", "x.localhost"]
    literals = ["127.0.0.1", "10.1.2.3", "169.254.169.254", "203.0.113.2",
                "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::127.0.0.1",
                "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::1",
                "2001:db8:1::2", "fe80::1", "198.19.0.1", "198.18.0.77"]
    words = {
        "public": "default: public\n",
        "observe": "mode: observe\ndeny:\n  - address: 10.0.0.0/8\n"
                   "  - address: 127.0.0.0/8\n  - '*.localhost'\n"
                   "  - address: 169.254.0.0/16\n",
        "both": "mode: observe\ndefault: public\n",
        # Ranges for another port, which observing relaxes.
        "ranges": "mode: observe\nallow:\n"
                  "  - {address: '64:ff9b::/96', ports: [9999]}\n"
                  "  - {address: '2002::/16', ports: [9999]}\n"
                  "  - {address: '::ffff:0:0/96', ports: [9999]}\n",
    }
    with Service("127.0.0.1", 443) as one, Service("203.0.113.2", 443) as two, \
            Service("::1", 443) as three:
        for word, text in words.items():
            run = attack(case, DOORS + f"""
h = hello("loop.test")
todo = [(x, p) for x in {names + literals!r} for p in (443, 80, 8443)]
def work():
    while todo:
        try: host, port = todo.pop()
        except IndexError: return
        got = all_doors(host, port)
        got["tls"] = connect(host, port, hello(host) if host[0].isalpha() else h)
        for door, g in got.items():
            if b"INSIDE" in g or b" 200 " in g or g[:4] == b"\\5\\0\\5\\0":
                sys.stdout.write("REACHED %s %s %s %r\\n" % (host, port, door, g[:80]))
ts = [threading.Thread(target=work) for i in range(24)]
[t.start() for t in ts]; [t.join() for t in ts]
print("done")
""", timeout=120, **policy(case, text))
            check("done" in run.out, run)
            check(one.came + two.came + three.came == 0, (word, str(run)))
            # Plain HTTP over CONNECT to port 80 gets its yes before it asks.
            bad = [line for line in run.out.splitlines()
                   if "REACHED" in line and " 80 " not in line]
            check(not bad, (word, "\n".join(bad)))
            check("INSIDE" not in run.out, (word, run.out))
            inner(case)


def test_what_is_matched_is_what_is_sent(case):
    """Rules about requests: whatever is sent, the server only sees what they
    allow."""
    log = origin(case)
    run = attack(case, DOORS + r"""
H = b" HTTP/1.1\r\nHost: allowed.test:8090\r\n"
E = b"Connection: close\r\n\r\n"
W = (b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
     b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
ok = b"GET /a/ok" + H
paths = [b"/b", b"/a", b"/", b"*", b"/a/../b", b"/a/%2e%2e/b", b"/a/.%2e/b", b"/a/%2E./b",
         b"/a/..%2fb", b"/a/..%5cb", b"/a/%2e%2e%2fb", b"/a/..%252fb", b"/a/%252e%252e/b",
         b"/a/..;/b", b"/a/..;x=1/b", b"/a/;/../b", b"/a//../../b", b"//b", b"/a//b",
         b"/a/..\\b", b"/a/%c0%ae%c0%ae/b", b"/a/..%c0%afb", b"/a/%e0%80%ae%e0%80%ae/b",
         b"/a/..%00/b", b"/a/../b#/a/", b"/b?/a/", b"/b?/../a/x", b"/b;/a/x", b"/%61/../b",
         b"/A/x", b"/%41/x", b"a/x", b"http://allowed.test:8090/b", b"HTTP://allowed.test:8090/b",
         b"http://allowed.test:8090/a/../b", b"http://allowed.test:8090", b"http://allowed.test:8090?/a/x",
         b"http://other.test:8090/a/x", b"http://x@allowed.test:8090/a/x", b"http:///a/x",
         b"allowed.test:8090", b"/a/%", b"/a/%zz", b"/a/%2", b"/a/\xc0\xae\xc0\xae/b", b"/a/x y", b"/a/x\tHTTP/1.1"]
methods = [b"POST", b"get", b"Get", b"GeT", b"PUT", b"DELETE", b"TRACE", b"CONNECT", b"PATCH",
           b"OPTIONS", b"PROPFIND", b"GET\t", b" GET", b"G\0ET", b"HEAD"]
tries = {}
for p in paths: tries["path %r" % p] = [b"GET " + p + H + E]
for m in methods: tries["method %r" % m] = [m + b" /a/x" + H + E]
tries.update({
 "1.0": [b"GET /b HTTP/1.0\r\nHost: allowed.test:8090\r\n\r\n"],
 "0.9": [b"GET /b\r\n\r\n"], "0.9 and more": [b"GET /b\r\n" + ok + E],
 "options *": [b"OPTIONS *" + H + E],
 "pipelined": [ok + b"\r\n" + b"GET /b" + H + E, ],
 "pipelined at once": [ok + b"\r\nPOST /a/x" + H + b"Content-Length: 3\r\n\r\nabc"],
 "body as request": [ok + b"Content-Length: 0\r\n\r\nGET /b" + H + E],
 "CL and TE": [ok + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /b" + H + E],
 "TE odd": [ok + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\nGET /b" + H + E],
 "TE twice": [ok + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\nGET /b" + H + E],
 "chunk extension": [ok + b"Transfer-Encoding: chunked\r\n\r\n0;\nGET /b\r\n\r\nGET /b" + H + E],
 "trailer": [ok + b"Transfer-Encoding: chunked\r\nTrailer: Host\r\n\r\n1\r\nx\r\n0\r\nHost: other.test\r\n\r\nGET /b" + H + E],
 "bare LF": [b"GET /a/ok HTTP/1.1\nHost: allowed.test:8090\n\nGET /b" + H + E],
 "LF in a field": [ok + b"X: y\n\nGET /b" + H + E], "CR in a field": [ok + b"X: y\r\rGET /b" + H + E],
 "fold": [ok + b" /b HTTP/1.1\r\n" + E], "space before colon": [ok + b"Host : other.test\r\n" + E],
 "two hosts": [ok + b"Host: other.test:8090\r\n" + E],
 "h2c": [b"GET /a/ok" + H + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
         b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"],
 "prior knowledge": [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"],
 "connect inside": [b"CONNECT allowed.test:8090" + H + b"\r\n", b"GET /b" + H + E],
 "connect after": [ok + b"\r\n", b"CONNECT allowed.test:8090" + H + b"\r\nGET /b" + H + E],
 "websocket": [b"GET /a/ws" + H + W, b"frame"],
 "websocket, blank": [b"GET /a/ws" + H + W + b"frame"],
 "expect": [ok + b"Expect: 100-continue\r\nContent-Length: 4\r\n\r\n", b"abcdGET /b" + H + E],
 "tls": [hello("allowed.test")], "raw": [b"\0\1\2\3", b"GET /b" + H + E],
 "half": [b"GE", b"T /b HT", b"TP/1.1\r\nHost: allowed.test:8090\r\n" + E],
 "blank first": [b"\r\nGET /b" + H + E], "two blank": [b"\r\n\r\nGET /b" + H + E],
})
def by(door, data):
    if door == "direct": return say(("allowed.test", 8090), data, 0.2, timeout=1.5)
    if door == "connect":
        return say((GW, PORT), [b"CONNECT allowed.test:8090" + H + b"\r\n"] + data, 0.2, timeout=1.5)
    if door == "early":  # behind the CONNECT at once
        return say((GW, PORT), [b"CONNECT allowed.test:8090" + H + b"\r\n" + b"".join(data)], 0.2, timeout=1.5)
    if door == "absolute":
        data = [d.replace(b" /", b" http://allowed.test:8090/") for d in data]
        return say((GW, PORT), data, 0.2, timeout=1.5)
    return say((GW, PORT), [b"\5\1\0", b"\5\1\0\3\x0callowed.test" + struct.pack(">H", 8090)] + data, 0.2, timeout=1.5)
todo = [(d, w) for w in tries for d in ("direct", "connect", "early", "absolute", "socks")]
def work():
    while True:
        try: d, w = todo.pop()
        except IndexError: return
        got = by(d, tries[w])
        if b"yes" in got: print("passed", d, w)
ts = [threading.Thread(target=work) for i in range(40)]
[t.start() for t in ts]; [t.join() for t in ts]
print("done")
""", timeout=200, **policy(case, """
allow:
  - {host: allowed.test, ports: [8090], methods: [GET], paths: [/a/**]}
"""))
    check("done" in run.out, run)
    with open(log, "rb") as f:
        lines = f.read().splitlines()
    check(len(lines) > 10, (lines, run.out))
    for line in lines:
        words = line.split(b" ")
        check(words[0] == b"GET" and words[1].startswith(b"/a/") and b" ".join(
            words[2:]).startswith(b"HTTP/1.1|Host: allowed.test:8090|"), line)
        head, _, body = line.partition(b"||")
        check(b"HTTP/1.1" not in body and b"HTTP/2" not in line and b".." not in
              words[1].split(b"?")[0] and b"Upgrade" not in head
              and head.count(b"Host: ") == 1, line)
    # All that came is in the log, and with the path that came.
    said = [r["http_request"]["url"]["path"] + (
        "?" + r["http_request"]["url"]["query_string"]
        if r["http_request"]["url"].get("query_string") else "")
        for r in run.records if r.get("action_id") == 1 and "http_request" in r]
    for line in lines:
        check(line.split(b" ")[1].decode("latin1") in said, (line, said[:3]))


def test_websocket_only_where_nothing_is_judged(case):
    log = origin(case)
    code = DOORS + r"""
ws = (b"GET /a/ws HTTP/1.1\r\nHost: allowed.test:8090\r\nConnection: Upgrade\r\n"
      b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
      b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
def opened(where, data, more=b""):
    got = b""
    try:
        s = dial(where, 20); s.sendall(data)
        while b"\r\n\r\n" not in got and (d := s.recv(4096)): got += d
        s.sendall(more); s.shutdown(socket.SHUT_WR); rest(s)
    except OSError: pass
    return b" 101 " in got
print(opened(("allowed.test", 8090), ws, b"x" * 1000))
print(opened((GW, PORT), ws.replace(b" /", b" http://allowed.test:8090/"), b"x" * 1000))
for i in range(8):  # behind the request, before the yes
    opened(("allowed.test", 8090), ws + b"y" * 20000)
"""
    rule = "allow:\n  - {host: allowed.test, ports: [8090]%s}\n"
    for more, passes in (", methods: [GET]", False), (", paths: [/a/**]", False), (
            ", upload: 30 kB", True):
        open(log, "w").close()
        run = attack(case, code, **policy(case, rule % more))
        with open(log, "rb") as f:
            got = f.read()
        check(("True\nTrue" in run.out) == passes and (b"WEBSOCKET" in got) == passes,
              (more, str(run), got))
    check(run.denied("limit_bytes"), run)
    check(moved(run, "out") <= 30 * KB, run)


def test_real_addresses_and_services(case):
    """Real answers and services under a name: an address only leads to names
    that it was given for, a name only to where its rule says."""
    with Service("127.0.0.1", 11434) as service, Service("127.0.0.1", 11435) as other:
        run = attack(case, DOORS + r"""
GOOD, CDN, EVIL = "93.184.216.34", "93.184.216.40", "93.184.216.66"
def ask(n):
    try: return socket.gethostbyname(n)
    except OSError as e: return "none"
def get(ip, host, port):
    return say((ip, port), b"GET /host HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % host, timeout=20)
def tls(ip, host):
    return say((ip, 443), hello(host), timeout=1.5)
def show(what, got): print("PASSED" if b"200 OK" in got or b"\x16\3\3" in got[:3] or b"INSIDE" in got else "held", what, got[:60])
show("before it was asked", get(GOOD, b"allowed.test", 80))
show("before it was asked, tls", tls(GOOD, "allowed.test"))
print("names", ask("allowed.test"), ask("cdn.test"), ask("llm.test"), ask("evilcdn.test"))
s = dial((GOOD, 443), 20); s.sendall(hello("allowed.test"))
print("first", b"allowed.test" in get(GOOD, b"allowed.test", 80), s.recv(1) == b"\x16")
show("another Host there", get(GOOD, b"other.test", 80))
show("a denied one there", tls(CDN, "evilcdn.test"))
show("its Host", get(CDN, b"evilcdn.test", 80))
show("one allowed elsewhere", tls(CDN, "allowed.test"))
show("one allowed elsewhere, Host", get(CDN, b"allowed.test", 80))
show("no name", tls(EVIL, "allowed.test")); show("no name, Host", get(EVIL, b"allowed.test", 80))
show("raw", say((CDN, 7000), b"\0\1"))
llm = ask("llm.test")
print("service", b"INSIDE" in get(llm, b"llm.test:8080", 8080), b"INSIDE" in connect("llm.test", 8080, b"\0", timeout=20))
for port in 11434, 11435, 80, 443, 22: show("port %d" % port, direct("llm.test", port)); show("connect %d" % port, connect("llm.test", port, b"\0hi"))
show("under another name", get(llm, b"allowed.test:8080", 8080))
show("the other way", connect("allowed.test", 11434, b"\0")); show("plain", absolute("127.0.0.1", 11434))
show("literal", connect("127.0.0.1", 11434, b"\0")); show("sub", connect("x.llm.test", 8080, b"\0"))
show("tls with another name", connect("llm.test", 8080, hello("allowed.test")))
show("Host of another", connect("llm.test", 8080, b"GET / HTTP/1.1\r\nHost: allowed.test:8080\r\n\r\n"))
""", proxy=True, **policy(case, """dns: {answers: real}
allow:
  - allowed.test
  - cdn.test
  - {host: llm.test, ports: [8080], connect: "127.0.0.1:11434"}
deny: [evilcdn.test]
"""))
        lines = run.out.splitlines()
        check(f"names {GOOD} 93.184.216.40 198.18.0." in run.out
              and lines[2].endswith(" none"), run)
        check("first True True" in run.out and "service True True" in run.out, run)
        check("PASSED" not in run.out and other.came == 0, run)
        check(b"allowed.test" not in service.said, service.said)
        check(run.denied("name_mismatch") and run.denied("forbidden_address") == [], run)
