# SPDX-License-Identifier: Apache-2.0
"""Cases of our own: what somebody would try who has read this source. Here names
and messages; own_low.py has packets and processes."""
import struct

from fdns import a, reply, wire_name
from frame import check, equal, row
from origin import IP, hello_retry, origin
from questions import answers, message, questions, rcode

HOST = b"Host: www.o.test\r\n"


def upstream(o, since):
    return [q for q in o.names.asked[since:]]


# --- DNS -------------------------------------------------------------------------


@row("O1", technique="EDNS options, header bits and ids of a question as a channel upstream")
def what_a_question_carries(world):
    """COOKIE, NSID, ECS, padding, private options, DO, Z, AD and CD bits, sizes and
    ids beside an allowed name: but for id and name all questions that go upstream
    are the same bytes."""
    o, box = origin(world)
    since = len(o.names.asked)
    secret = b"c2VjcmV0"

    def opt(code=None, size=4096, ttl=0):
        data = struct.pack(">HH", code, len(secret)) + secret if code else b""
        return b"\0" + struct.pack(">2HIH", 41, size, ttl, len(data)) + data
    tails = [opt(c) for c in (3, 5, 8, 10, 11, 12, 13, 14, 15, 17, 65001)]
    tails += [opt(size=s) for s in (0, 512, 1111, 65535)] + [opt(ttl=t) for t in (
        0x8000, 0x7fff, 0x1)]
    asked = [message(f"q{i}.o.test", counts=(1, 0, 0, 1), tail=t)
             for i, t in enumerate(tails)]
    asked += [message(f"f{f}.o.test", flags=f) for f in (0, 0x10, 0x20, 0x40, 0x130, 0x500)]
    for port, got in box.call(questions, asked):
        equal(rcode(got), 0)
    forms = {(q.raw[2:12], q.kind, q.raw[q.end:]) for q in upstream(o, since)}
    equal(len({f[0] + f[2] for f in forms}), 1, forms)
    check(len(upstream(o, since)) >= len(asked))


@row("O2", technique="the case of letters, and how often something is asked, as a channel")
def how_a_question_is_spelled(world):
    """64 spellings of one name, 50 repetitions, by UDP, TCP and CONNECT: upstream
    sees one question of each type, in lower case."""
    o, box = origin(world)
    since = len(o.names.asked)
    plain = b"spelled.o.test"
    spelled = [bytes(c & ~32 if 97 <= c < 123 and i >> (k % 6) & 1 else c
                     for k, c in enumerate(plain)) for i in range(64)]
    for tcp in False, True:
        for _, got in box.call(questions, [message(wire_name(n.decode())) for n in spelled], tcp):
            equal(rcode(got), 0)
    for _ in range(10):
        box.allowed("http", "SPELLED.o.test")
    equal(sorted((q.name, q.kind) for q in upstream(o, since)),
          [("spelled.o.test", 1), ("spelled.o.test", 28)])


def pipelined(messages):
    """All in one segment: the answers."""
    s = socket.create_connection((GW, 53), PATIENCE)
    s.sendall(b"".join(struct.pack(">H", len(m)) + m for m in messages))
    s.shutdown(1)
    got, said = until_end(s)[0], []
    while len(got) > 2:
        size, = struct.unpack(">H", got[:2])
        said.append(got[2:2 + size])
        got = got[2 + size:]
    return said


@row("O3", technique="questions pipelined on one TCP connection, some allowed and some not")
def a_pipeline_of_questions(world):
    """Allowed, denied, malformed and forbidden types in turn, in one segment: each
    is decided alone, by its id; only what is allowed goes upstream."""
    o, box = origin(world)
    since = len(o.names.asked)
    sent = [message("p1.o.test"), message("evil.test"), message("p2.o.test", 16),
            message("evil.p3.test", 16), message("p4.o.test"), message("o.test", 252)]
    sent = [struct.pack(">H", i) + m[2:] for i, m in enumerate(sent)]
    said = {g[:2]: rcode(g) for g in box.call(pipelined, sent)}
    equal(said, {struct.pack(">H", i): r for i, r in enumerate((0, 3, 0, 3, 0, 5))})
    equal({q.name for q in upstream(o, since)}, {"p1.o.test", "p4.o.test"})


@row("O4", technique="opcodes other than QUERY: UPDATE and NOTIFY carry data to a server")
def other_opcodes(world):
    """IQUERY, STATUS, NOTIFY, UPDATE, DSO and unknown ones, with records: NOTIMP, a
    record each, nothing upstream; answers sent to the resolver get none."""
    o, box = origin(world)
    box.quiet()
    tail = wire_name("c2VjcmV0.o.test") + b"\0\x10\0\1\0\0\0\0\0\3abc"
    for opcode in 1, 2, 4, 5, 6, 15:
        for tcp in False, True:
            (port, got), = box.call(questions, [message(
                "u.o.test", 6, flags=opcode << 11, counts=(1, 0, 1, 0), tail=tail)], tcp)
            equal(rcode(got), 4, opcode)
            box.recorded(port, "malformed")
    for flags in 0x8000, 0x8180, 0xfc00:
        (port, got), = box.call(questions, [message("u.o.test", flags=flags)], False, 0.1)
        equal(got, b"")
    box.silent()


@row("O5", technique="an answer that is cut off: who is asked by TCP then")
def truncated_upstream(world):
    """An upstream answer with TC is asked for again by TCP, of the same server and
    no other; what was in the cut one is not believed."""
    o, box = origin(world)
    before = o.names.answer
    o.names.answer = lambda q: reply(q, [a(q.name, "93.184.216.99" if not q.tcp else IP)]
                                     if q.kind == 1 else [], flags=0x8180 if q.tcp else 0x8380)
    try:
        box.allowed("http", "cut.o.test")
    finally:
        o.names.answer = before
    world.uplink.read()
    equal({p.to for p in world.uplink.seen if p.kind == "syn"}, {o.names.ADDRESS, IP})


@row("O6", technique="names that are patterns: '*' and '_' in a question")
def patterns_as_names(world):
    """*.o.test itself, and stars and odd bytes in its place, in every spelling of
    a proxy: never a name that is resolved."""
    o, box = origin(world)
    since = len(o.names.asked)
    for name in "*.o.test", "a*.o.test", "%2a.o.test", "?.o.test", "[a].o.test":
        for door in "connect", "http", "socks", "dns":
            p = box.probe(door, name)
            check(not p["got"].startswith("ok"), door, name, p["got"])
    # The row before asked for both types, of which one may come late.
    equal([q for q in upstream(o, since) if q.name != "cut.o.test"], [])


# --- HTTP --------------------------------------------------------------------------


def proxied(box, *pieces, **more):
    return box.talk(None, pieces, **more)


@row("O7", technique="CONNECT with a body, and what comes in the same segment")
def connect_with_a_body(world):
    """Content-Length and Transfer-Encoding on CONNECT: refused, nothing goes out; a
    request that follows a refused CONNECT is not looked at."""
    o, box = origin(world)
    inner = b"GET /c2VjcmV0 HTTP/1.1\r\nHost: www.o.test\r\n\r\n"
    for field in (b"Content-Length: %d\r\n" % len(inner), b"Transfer-Encoding: chunked\r\n",
                  b"Content-Length: 0\r\nContent-Length: 9\r\n"):
        box.quiet()
        port, got, how = proxied(box, b"CONNECT www.o.test:80 HTTP/1.1\r\nHost: www.o.test:80"
                                 b"\r\n" + field + b"\r\n" + inner)
        check(got.startswith(b"HTTP/1.1 400"), field, got[:80])
        box.recorded(port, "malformed")
        box.silent(field)
    check(b"c2VjcmV0" not in o.all())


@row("O8", technique="an absolute target of another host within a tunnel, or after a good one")
def another_authority_later(world):
    """Inside CONNECT www.o.test:80 a request for http://evil.test/, one with its
    Host, a CONNECT; the same behind a good request on a kept connection: the good
    ones arrive, the others are refused and cut the connection."""
    o, box = origin(world)
    good = b"GET /good HTTP/1.1\r\n" + HOST + b"\r\n"
    whole = b"GET http://www.o.test/good HTTP/1.1\r\n" + HOST + b"\r\n"
    tunnel = b"CONNECT www.o.test:80 HTTP/1.1\r\nHost: www.o.test:80\r\n\r\n"
    for bad in (b"GET http://evil.test/c2VjcmV0 HTTP/1.1\r\nHost: evil.test\r\n\r\n",
                b"GET http://evil.test/c2VjcmV0 HTTP/1.1\r\n" + HOST + b"\r\n",
                b"GET /c2VjcmV0 HTTP/1.1\r\nHost: evil.test\r\n\r\n",
                b"CONNECT evil.test:80 HTTP/1.1\r\nHost: evil.test:80\r\n\r\n",
                b"GET //evil.test/c2VjcmV0 HTTP/1.1\r\nHost: www.o.test@evil.test\r\n\r\n"):
        for pieces in ([tunnel, good, bad, good], [tunnel + bad + good], [whole, bad, whole],
                       [whole + bad + whole]):
            port, got, how = proxied(box, *pieces, pause=0.02)
            check(how in ("eof", "reset"), how, got)
            refusals = got.count(b"X-Sallyport-Reason")
            check(refusals == 1, pieces, got)
    check(b"evil" not in o.all() and b"c2VjcmV0" not in o.all(), o.all()[:500])
    check(o.all().count(b"GET /good") >= 4, o.all())


@row("O9", technique="fields in trailers that would belong into a head")
def trailers(world):
    """Host, Content-Length, Transfer-Encoding, a request line and 3,000 fields in
    the trailer of a chunked body: refused or left out; the server sees none of
    them, and no second request."""
    o, box = origin(world)
    head = (b"POST http://www.o.test/t HTTP/1.1\r\n" + HOST +
            b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n")
    for trailer in (b"Host: evil.test\r\n", b"Content-Length: 5\r\n",
                    b"Transfer-Encoding: chunked\r\n", b"X: c2VjcmV0\r\n",
                    b"GET /c2VjcmV0 HTTP/1.1\r\nHost: evil.test\r\n", b"a: b\r\n" * 3000,
                    b" folded: c2VjcmV0\r\n", b"a\0b: c2VjcmV0\r\n"):
        proxied(box, head + trailer + b"\r\n", end=True)
    said = o.all()
    check(b"evil" not in said and b"c2VjcmV0" not in said, said[-500:])
    check(b"Host: www.o.test" in said and b"GET" not in said, said[:300])


@row("O10", technique="a Connection field that names what the next reader relies on")
def fields_named_away(world):
    """Connection: host, content-length, transfer-encoding or a Proxy-* field; with
    Keep-Alive, TE, Proxy-Connection, Proxy-Authorization: the server gets one Host,
    the length that was judged, and nothing that was for the proxy."""
    o, box = origin(world)
    for named in (b"host", b"content-length", b"x-a, host, content-length", b"close, host"):
        for framing, body in ((b"Content-Length: 3\r\n", b"abc"),
                              (b"Transfer-Encoding: chunked\r\n", b"3\r\nabc\r\n0\r\n\r\n")):
            proxied(box, b"POST http://www.o.test/n HTTP/1.1\r\n" + HOST + framing +
                    b"Connection: " + named + b"\r\nX-A: y\r\nProxy-Connection: keep-alive\r\n"
                    b"Proxy-Authorization: Basic c2VjcmV0\r\nKeep-Alive: c2VjcmV0\r\n"
                    b"TE: trailers\r\n\r\n" + body, end=True)
    whole = b"abc", b"3\r\nabc\r\n0\r\n\r\n"

    def arrived():
        return [bytes(g) for g in o.got if g.startswith(b"POST /n")]
    check(len(arrived()) >= 2, o.got)
    # It is answered by the head; the body may be read after the answer.
    world.wait(lambda: all(t.partition(b"\r\n\r\n")[2] in whole for t in arrived()), "bodies")
    for text in arrived():
        head, _, body = text.partition(b"\r\n\r\n")
        lower = head.lower()
        equal(lower.count(b"\r\nhost: www.o.test"), 1, text)
        check(b"c2VjcmV0" not in text and b"proxy-" not in lower, text)
        equal(lower.count(b"content-length") + lower.count(b"transfer-encoding"), 1, text)
        check(body in whole, text)


@row("O11", technique="Expect: 100-continue, with a request where the body should be")
def a_body_that_looks_like_a_request(world):
    """The body of a request that waits for 100 is a request for another host: it
    is a body to everybody, or refused; it never is a request of its own."""
    o, box = origin(world)
    inner = b"GET /c2VjcmV0 HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    for fields in (b"Expect: 100-continue\r\nContent-Length: %d\r\n" % len(inner),
                   b"Expect: 100-continue\r\nContent-Length: 0\r\n",
                   b"Expect: 100-continue, 200-ok\r\nContent-Length: %d\r\n" % len(inner)):
        port, got, how = proxied(box, b"POST http://www.o.test/e HTTP/1.1\r\n" + HOST + fields +
                                 b"\r\n", inner, pause=0.05, end=True)
        check(got.count(b"HTTP/1.1 200") <= 1, got)
    check(o.got, "nothing arrived")
    for got in o.got:
        at = bytes(got).find(b"GET /c2VjcmV0")
        check(at < 0 or b"content-length: %d" % len(inner) in bytes(got)[:at].lower(), bytes(got))
    world.wait(lambda: [r for r in box.log.read() if r["unmapped"]["event"] == "http_request"],
               "requests")
    check(not [r for r in box.log.records if r["unmapped"]["event"] == "http_request"
               and r["action_id"] == 1 and "c2VjcmV0" in str(r)])


@row("O13", technique="the other protocol where one is wanted: HTTP at 443, TLS at 80")
def protocols_that_were_swapped(world):
    """Plain HTTP to 443 and TLS, SSH and SOCKS to 80, directly and within CONNECT and
    SOCKS: `protocol`, and no byte of it goes out."""
    o, box = origin(world)
    lease, = box.allowed("dns", "www.o.test")["answers"]
    plain = b"GET /c2VjcmV0 HTTP/1.1\r\n" + HOST + b"\r\n"
    for port, data in ((443, plain), (80, b"SSH-2.0-c2VjcmV0\r\n"), (80, b"\5\1\0c2VjcmV0"),
                       (443, b"SSH-2.0-c2VjcmV0\r\n"), (443, b"\x80\x2e\1\0\2" + b"c2VjcmV0" * 5),
                       (443, b"\x16\xfe\xff\0\0\0\0\0\0\0\0\0\x08c2VjcmV0"), (80, b"PRI * HTTP/2.0"
                       b"\r\n\r\nSM\r\n\r\n"), (80, b"\x16\3\1\0\x40\1\0\0\x3c\3\3" + b"c2VjcmV0" * 7)):
        o.forget()
        proxied(box, b"CONNECT www.o.test:%d HTTP/1.1\r\nHost: www.o.test\r\n\r\n" % port, data,
                first=20, pause=0.02, end=True)
        box.talk((lease, port), [data], end=True)
        equal(o.all().replace(b"\n--\n", b""), b"", port, data)


# --- TLS, SOCKS, and what is neither -------------------------------------------------


def retried(names, retry, early):
    """A hello, the server's HelloRetryRequest, and a second hello of another name."""
    first, second = (record(client_hello(sni(n), ext(43, b"\2\3\4"), ext(51, b"\0\0"),
                                         ext(10, b"\0\2\0\x18"))) for n in names)
    s = socket.create_connection(proxy, PATIENCE)
    s.sendall(b"CONNECT www.o.test:443 HTTP/1.1\r\nHost: www.o.test:443\r\n\r\n")
    probe.head(s)
    s.sendall(first)
    got = probe.exactly(s, retry)
    s.sendall(early + second)
    return len(got), until_end(s, b"fin")[0]


@row("O14", technique="a second ClientHello, after HelloRetryRequest, with another name")
def hello_after_retry(world):
    """The server asks for another hello (RFC 8446), and the client names evil.test
    in it: cut, and no byte of that hello arrives; with the same name it does."""
    o, box = origin(world)
    retry = hello_retry()
    o.said = lambda got: retry if b"www.o.test" in got and got.count(b"\x16\3\1") == 1 else b"fin"
    try:
        for early in b"", b"\x14\3\3\0\1\1":
            o.forget()
            got, more = box.call(retried, [b"www.o.test", b"evil.o.test"], len(retry), early)
            equal(got, len(retry))
            check(b"evil" not in o.all() and more[:1] != b"f", more, o.all())
            o.forget()
            got, more = box.call(retried, [b"www.o.test", b"www.o.test"], len(retry), early)
            check(o.all().count(b"www.o.test") == 2 and b"fin" in more, o.all(), more)
    finally:
        o.said = lambda got: b""


def hellos():
    """Hellos that two readers may take for two names, for www.o.test."""
    good, evil = b"www.o.test", b"evil.o.test"
    one = client_hello(sni(good))
    return {
        "name twice": record(client_hello(sni(good), sni(evil))),
        "two in a list": record(client_hello(sni(good, evil))),
        "evil first": record(client_hello(sni(evil, good))),
        "extension of another kind, twice": record(client_hello(
            sni(good), ext(16, b"\0\3\2h2"), ext(16, b"\0\3\2h3"))),
        "alert between": record(one[:20]) + b"\x15\3\1\0\2\1\0" + record(one[20:]),
        "change of cipher between": record(one[:20]) + b"\x14\3\1\0\1\1" + record(one[20:]),
        "data between": record(one[:20]) + b"\x17\3\1\0\1x" + record(one[20:]),
        "empty record between": record(one[:20]) + record(b"") + record(one[20:]),
        "two hellos": record(one + client_hello(sni(evil))),
        "bytes behind": record(client_hello(sni(good), tail=b"c2VjcmV0")),
        "length too long": record(one[:2] + b"\xff" + one[3:]),
        "SSLv2": b"\x80\x2e\1\3\1\0\x15\0\0\0\x10" + b"\0\0\x2f" * 7 + b"C" * 16,
        "DTLS": b"\x16\xfe\xfd" + b"\0" * 8 + struct.pack(">H", len(one)) + one,
    }


def say_hellos(lease):
    said = {}
    for what, data in hellos().items():
        for door in "connect", "direct":
            s = socket.create_connection(proxy if door == "connect" else (lease, 443),
                                         PATIENCE)
            if door == "connect":
                s.sendall(b"CONNECT www.o.test:443 HTTP/1.1\r\nHost: www.o.test:443\r\n\r\n")
                probe.head(s)
            try:
                s.sendall(data)
                s.shutdown(1)
            except OSError:
                pass
            said[what, door] = until_end(s)[0][:7]
    return said


@row("O15", technique="hellos with two names, two messages, or other records in between")
def hellos_of_two_meanings(world):
    """SNI twice, two names in one, equal extensions, alerts, cipher changes and data
    between the parts, two hellos in a record, bytes behind, SSLv2, DTLS: refused
    by CONNECT and directly, and no byte arrives."""
    o, box = origin(world)
    box.call(hellos)
    lease, = box.allowed("dns", "www.o.test")["answers"]
    said = box.call(say_hellos, lease)
    equal(len(said), 26)
    bad = {k: v for k, v in said.items() if v and v[:1] != b"\x15"}
    equal(bad, {})
    equal(o.all().replace(b"\n--\n", b""), b"")


@row("O16", technique="a request hidden in small pieces where any protocol is allowed")
def hidden_at_another_port(world):
    """At a port for any protocol: HTTP with another Host and TLS with another SNI,
    byte by byte, behind blank lines, with odd methods: recognised, refused, not a
    byte arrives; what is neither passes."""
    o, box = origin(world)
    o.said = lambda got: got if got == b"\1plain" else b""
    lease, = box.allowed("dns", "raw.o.test")["answers"]
    bad = b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    try:
        for pieces in ([bytes([b]) for b in bad], [b"\r\n\r\n" + bad], [b"x" * 30 + b" " + bad[4:]],
                       [b"GET http://evil.test/ HTTP/1.1\r\n\r\n"],
                       [b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n"]):
            box.talk((lease, 7000), pieces, end=True)
        box.call(hello_in_pieces, lease)
        check(b"evil" not in o.all() and b"GET" not in o.all(), o.all())
        port, got, how = box.talk((lease, 7000), [b"\1plain"], enough=b"plain")
        equal(got, b"\1plain")
    finally:
        o.said = lambda got: b""


def hello_in_pieces(lease):
    h = hello("evil.test")
    for pieces in ([bytes([b]) for b in h], [record(h[5:6]), record(h[6:9]), record(h[9:])]):
        talk((lease, 7000), pieces, end=True)


@row("O17", technique="SOCKS in one segment, twice on a connection, with names of 255 and zones")
def socks_in_odd_ways(world):
    """Greeting, request for a denied host and a hello in one segment; a second
    request after a refused one; a name of 255 bytes, of none, an IPv6 zone, port 0,
    UDP in a reserved byte: refused, nothing of what follows is looked at."""
    o, box = origin(world)
    def asked(name, port=443, kind=3):
        return b"\5\1\0" + bytes([kind]) + (bytes([len(name)]) if kind == 3 else b"") + name + \
            struct.pack(">H", port)
    good = asked(b"www.o.test", 80) + b"GET /c2VjcmV0 HTTP/1.1\r\n" + HOST + b"\r\n"
    for bad in (asked(b"evil.test"), asked(b"a" * 255), asked(b""), asked(b"fe80::1%eth0"),
                asked(b"www.o.test", 0), asked(b"\xfe\x80" + b"\0" * 13 + b"\1", 80, 4),
                asked(b"\x5d\xb8\xd8\x42", 80, 1), asked(b"www.o.test\0evil", 80),
                b"\5\2\0\3\x0awww.o.test\0\x50", b"\5\3\0\3\x0awww.o.test\0\x50",
                b"\5\1\1\3\x0awww.o.test\0\x50"):
        box.quiet()
        port, got, how = proxied(box, b"\5\1\0" + bad + good)
        check(got[:2] == b"\5\0" and got[2:4] != b"\5\0" and len(got) == 12, bad, got)
        world.wait(lambda: box.log.of_port(port), "a record")
        equal(len(box.log.of_port(port)), 1, bad)
        box.silent(bad)
    equal(o.got, [])
    box.allowed("socks", "www.o.test", ["rule", "rule"], port=80)


@row("O18", technique="urgent data: bytes that some readers see and others do not")
def urgent_bytes(world):
    """A byte sent as urgent within the Host of a request, and within a hello: what
    is judged is what arrives; evil[!].o.test does not become another name on the
    way."""
    o, box = origin(world)
    box.call(urgent)
    check(o.got, "nothing arrived")
    for text in (bytes(g) for g in o.got if g.startswith(b"GET /u")):
        check(text.lower().count(b"host: www.o.test\r\n") == 1, text)
    check(b"evil" not in o.all(), o.all())


def urgent():
    for first, oob, second in ((b"ww", b"w", b".o.test"), (b"www.o.tes", b"t", b""),
                               (b"www", b"X", b".o.test"), (b"", b"e", b"vil.test")):
        s = socket.create_connection(proxy, PATIENCE)
        s.sendall(b"GET http://www.o.test/u HTTP/1.1\r\nHost: " + first)
        s.send(oob, socket.MSG_OOB)
        try:
            s.sendall(second + b"\r\nConnection: close\r\n\r\n")
            s.shutdown(1)
        except OSError:
            pass
        until_end(s)
