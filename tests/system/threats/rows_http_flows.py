# SPDX-License-Identifier: Apache-2.0
"""HTTP that leads elsewhere than to where it was let in, and what servers say."""
from box import looks
from frame import CONNECT, HOST, HTTP, SOCKS, check, equal, row
from http_ways import (CHUNKED, INNER, LAST, WAYS, WEB, post, refuse, say, statuses,
                       works)
from lab import CDN, EVIL, GOOD
from test_policy_http import JUDGED, PATHS, WORDS

GET = b"GET {u}/%s HTTP/1.1\r\nHost: %s\r\n\r\n"


@row("H10", doors=(HOST,))
def host_and_address(world, door):
    """A direct connection is to the name whose address it was given: that is dialled,
    and a Host that is another, or an address nobody was given, is refused."""
    box = world.box()
    box.call("know", WEB)
    for ip in EVIL, GOOD, CDN, "198.18.200.200":
        box.quiet()
        equal(box.call("command", "curl", "-sS", "-m", "20", "--noproxy", "*", "--resolve",
                       f"web.test:80:{ip}", "http://web.test/x")[0], 7, ip)
        box.dropped("bypass", ip, 80)
        box.silent(ip)
    for name, via in ("other.test", "web.test"), ("evil.test", "web.test"):
        box.denied(door, name, "name_mismatch", via=via)
    works(box, door)
    # Where names have their real addresses, two may have one: the Host says which,
    # but it must be one that this sandbox asked for.
    real = world.box("dns: {answers: real}\nallow: [allowed.test, other.test, web.test]")
    real.call("know", "allowed.test")
    for name in "other.test", "evil.test", "web.test":
        real.denied(door, name, "name_mismatch", to=GOOD)
    real.quiet()
    p = real.probe(door, "allowed.test", to=EVIL)
    equal(p["got"], "ConnectionRefusedError")
    real.dropped("bypass", EVIL, 80)
    real.silent(EVIL)
    real.allowed(door, "allowed.test", to=GOOD)


@row("H11", doors=WAYS)
def behind_the_message(world, door):
    """Each request is judged alone, whatever was sent with it; what is behind a
    refusal is not read, and the connection ends."""
    box = world.box()
    box.call("know", WEB)
    tunnel = ["rule"] if door in (CONNECT, SOCKS) else []
    fine, evil = GET % (b"fine", b"web.test"), GET % (b"smuggled", b"evil.test")
    other = "name_mismatch" if door != HTTP else "not_in_policy"
    if door == HTTP:
        evil = b"GET http://evil.test/smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    for message, words, codes in (
            (evil + fine, [other], [b"403"]),
            (fine + evil + fine, ["rule", other], [b"200", b"403"]),
            (fine + fine + evil, ["rule", "rule", other], [b"200", b"200", b"403"]),
            (post(b"Content-Length: 5", body=b"abcde") + evil, ["rule", other],
             [b"200", b"403"]),
            (post(CHUNKED, body=b"3\r\nabc\r\n" + LAST) + evil, ["rule", other],
             [b"200", b"403"]),
            (evil + b"x" * 50000, [other], [b"403"]),
            (fine + b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n" + fine,
             ["rule", "protocol"], [b"200", b"400"]),
            (fine + b"\x16\3\1\2\0\1\0\1\xfc\3\3" + b"R" * 600, ["rule", "protocol"],
             [b"200", b"400"])):
        port, got, how = say(box, door, message)
        equal(statuses(got), codes, world.row, message, got)
        check(how in ("eof", "reset"), how)
        box.recorded(port, tunnel + words)
    if door == CONNECT:
        before_the_200(box)
    check(not [h for h in world.servers.heard() if "smuggled" in h])
    works(box, door)


def before_the_200(box):
    """Data in one go with a CONNECT: behind a refusal it is dropped, otherwise it is
    the first of the tunnel."""
    connect = b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n"
    box.quiet()
    for ahead in (b"GET http://web.test/smuggled HTTP/1.1\r\nHost: web.test\r\n\r\n", INNER,
                  connect % ((b"web.test:80",) * 2) + INNER):
        box.refused(box.talk(pieces=[connect % ((b"evil.test:443",) * 2) + ahead]),
                    "not_in_policy", b"HTTP/1.1 403")
    port, got, _ = box.talk(pieces=[connect % ((b"web.test:80",) * 2) +
                                    b"GET /smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n"])
    equal(statuses(got), [b"200", b"403"], got)
    box.recorded(port, ["rule", "name_mismatch"])
    box.silent()


UPGRADE = (b"GET {u}%s HTTP/1.1\r\nHost: web.test\r\nConnection: Upgrade\r\nUpgrade: %s\r\n"
           b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")


@row("H12", doors=WAYS)
def upgrades(world, door):
    """Only a websocket may take a connection over, where requests are not judged, and
    it is a tunnel to that host; other upgrades are not passed on."""
    judged, box = world.box(JUDGED), world.box()
    refuse(judged, door, UPGRADE % (b"/v1/models", b"websocket"), "protocol",
           (b"400", b"403"))
    world.servers.forget()
    for what in b"h2c", b"tls/1.2", b"TLS/1.0, HTTP/1.1", b"foo", b"h2c, foo":
        port, got, _ = say(box, door, UPGRADE % (b"/fine", what), enough=b"/fine HTTP/1.1")
        equal(statuses(got), [b"200"], what, got)
        box.recorded(port, ["rule", "rule"] if door in (CONNECT, SOCKS) else "rule",
                     denied=False)
    said = "".join(world.servers.heard()).lower()
    check("/fine" in said and not [w for w in ("h2c", "tls/", "foo", "upgrade: ")
                                   if w in said], said)
    for first, reason in ((b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "protocol"),
                          (b"GET {u}/x HTTP/2.0\r\n\r\n", "malformed")):
        refuse(box, door, first + b"\0\0\0\4\0\0\0\0\0", reason, (b"505",))
    # The tunnel that a websocket is goes where it was opened to, whatever is said.
    world.uplink.forget()
    port, got, _ = say(box, door, [UPGRADE % (b"/ws", b"websocket"),
                                   b"GET http://evil.test/ HTTP/1.1\r\n\r\n"], enough=b"free")
    equal(statuses(got), [b"101"], got)
    check(not world.led(EVIL))


@row("H13", doors=WAYS)
def paths(world, door):
    """Dots and needless escapes are resolved before a rule looks, and the server gets
    that form; what servers read in several ways is malformed."""
    box = world.box(JUDGED)
    box.call("know", WEB)
    world.servers.forget()
    tunnel = ("rule",) if door in (CONNECT, SOCKS) else ()
    for path, want in PATHS:
        if want in WORDS:
            box.denied(door, WEB, want, looks(want, "http"), tunnel + (want,), path=path,
                       via=WEB, port=80)
        else:
            box.allowed(door, WEB, tunnel + ("rule",), f"ok GET {want} HTTP/1.1", path=path,
                        via=WEB, port=80)
    got = [head.split("\r\n")[0] for head in world.servers.heard()]
    equal(got, [f"GET {want} HTTP/1.1" for _, want in PATHS if want not in WORDS])


@row("H14", doors=(CONNECT, HTTP, SOCKS))
def itself(world, door):
    """The gateway is no destination: not by address, by name, or by a name that leads
    to the uplink; a request that came through here before does not go round."""
    box = world.box("allow: [web.test, uplink.test, loop.test, {host: uplink.test, "
                    "ports: [3128, 53]}]")
    for name in "198.19.0.1", "127.0.0.1", "203.0.113.2", "0.0.0.0", "198.18.0.1":
        for port in 3128, 53, 80:
            box.denied(door, name, "literal_address", port=port)
    for name in "localhost", "sallyport", "gateway", "localhost.localdomain", "ip6-localhost":
        box.denied(door, name, "not_in_policy", port=3128)
    box.denied(door, WEB, "port", port=3128)
    for name, port in ("uplink.test", 3128), ("uplink.test", 80), ("loop.test", 80):
        p = box.probe(door, name, port=port)
        tunnel = door != HTTP and port == 80  # which is there before it is known
        equal(p["got"], looks("forbidden_address", HTTP if tunnel else door), name)
        box.recorded(p["source"], ("rule",) * (1 + tunnel), denied=False)
        box.ended(p["source"], "forbidden_address")
    check(not world.led("203.0.113.2") and not world.led("127.0.0.1"))
    if door == HTTP:
        refuse(box, door, b"GET {u}/x HTTP/1.1\r\nHost: web.test\r\nVia: 1.1 sallyport\r\n\r\n",
               "self", (b"403",))
        for page in b"/metrics", b"/healthz", b"/":
            box.quiet()
            box.refused(box.talk(pieces=[b"GET " + page + b" HTTP/1.1\r\nHost: web.test\r\n\r\n"]),
                        "malformed", b"HTTP/1.1 400")
        works(box, door)
    else:
        box.allowed(door, WEB, ("rule", "rule"), port=80)


@row("H15", doors=(HTTP, HOST))
def schemes(world, door):
    """A request target is of http, or it is refused."""
    box = world.box()
    for target in (b"ftp://web.test/", b"gopher://web.test:70/_x", b"file:///etc/passwd",
                   b"https://web.test/", b"ws://web.test/", b"javascript:x", b"data:,x",
                   b"httpx://web.test/", b"http+unix://web.test/", b"//web.test/x@evil.test",
                   b"urn:x", b"cache_object://web.test/", b"http\0://web.test/"):
        if door == HOST and target.startswith(b"//"):
            continue
        refuse(box, door, b"GET " + target + b" HTTP/1.1\r\nHost: web.test\r\n\r\n",
               status=(b"400",))
    works(box, door, b"GET HTTP://web.test/fine HTTP/1.1\r\nHost: web.test\r\n\r\n")


@row("H16", doors=WAYS)
def who_it_claims_to_be(world, door):
    """Who asks is the interface it came by: headers that say otherwise change nothing,
    those of proxies are not passed on, and a PROXY line is no request."""
    box = world.box()
    claims = b"".join(f + b": 10.9.8.7\r\n" for f in (
        b"X-Forwarded-For", b"X-Real-IP", b"Forwarded", b"Proxy-Authorization",
        b"X-Client-IP", b"True-Client-IP", b"Proxy-Connection"))
    world.servers.forget()
    port = works(box, door, b"GET {u}/fine HTTP/1.1\r\nHost: web.test\r\n" + claims + b"\r\n")
    heard = world.servers.heard()[-1].lower()
    for field in "x-forwarded-for", "x-real-ip", "forwarded:", "proxy-":
        check(field not in heard, heard)
    own = box.call("know", WEB) and box.log.of_port(port)[-1]["src_endpoint"]["ip"]
    check(own != "10.9.8.7", own)
    for line in (b"PROXY TCP4 10.9.8.7 93.184.216.80 1 80\r\n", b"PROXY UNKNOWN\r\n",
                 b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + b"a" * 12):
        refuse(box, door, line + b"GET {u}/x HTTP/1.1\r\nHost: web.test\r\n\r\n")


@row("H18", doors=WAYS)
def redirects(world, door):
    """Where an allowed host sends a client is judged like anything else."""
    box = world.box()
    how, status, said = {
        HTTP: (["-x", "http://{}"], 0, "403"), CONNECT: (["-p", "-x", "http://{}"], 56, "403"),
        SOCKS: (["-x", "socks5h://{}"], 97, ""), HOST: (["--noproxy", "*"], 6, ""),
    }[door]
    where = "{}:{}".format(*box.call("gateway"))
    before = len(box.denials("evil.test", "not_in_policy"))
    got, text = box.call("command", "curl", "-sSL", "-m", "20", "-w", "%{http_code}",
                         *(x.format(where) for x in how), "http://allowed.test/move")
    check(got == status and said in text, got, text)
    world.wait(lambda: len(box.denials("evil.test", "not_in_policy")) > before,
               "the refusal in the log")
    check(world.led(GOOD) and not world.led(EVIL))


OK = b"HTTP/1.1 200 OK\r\n"
SECOND = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nSMUGGLED"
# What a server says, and whether it may be believed.
ANSWERS = {
    "clte": (False, OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok"),
    "lengths": (False, OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok"),
    "sign": (False, OK + b"Content-Length: +2\r\n\r\nok"),
    "list": (False, OK + b"Content-Length: 2, 2\r\n\r\nok"),
    "fold": (False, OK + b"A: b\r\n c\r\nContent-Length: 2\r\n\r\nok"),
    "bare": (False, b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
    "nul": (False, OK + b"A\0: b\r\nContent-Length: 2\r\n\r\nok"),
    "colon": (False, OK + b"Content-Length : 2\r\n\r\nok"),
    "many": (False, OK + b"A: b\r\n" * 20000 + b"\r\n"),
    "long": (False, OK + b"A: " + b"b" * 300000 + b"\r\n\r\n"),
    "hints": (False, b"HTTP/1.1 103 Hints\r\n\r\n" * 5000),
    "nine": (False, b"ok\r\n"), "none": (False, b""),
    "two": (False, b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    "space": (False, b"HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok"),
    "unasked": (False, b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\n\r\n"),
    "chunk": (None, OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"),
    "quoted": (None, OK + b"Transfer-Encoding: chunked\r\n\r\n2;a=\"\r\n\"\r\nok\r\n0\r\n\r\n"),
    "end": (None, OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nokXX0\r\n\r\n"),
    "more": (True, OK + b"Content-Length: 2\r\n\r\nok"),
    "empty": (True, b"HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\n"),
    "same": (True, b"HTTP/1.1 304 No\r\n\r\n"),
}


def answerer(served):
    """A server whose answer to /WORD is as above, with a second one behind it; it
    keeps in @served which paths each connection asked for."""
    def serve(c):
        got, mine = b"", []
        served.append(mine)
        while True:
            while b"\r\n\r\n" not in got:
                more = c.recv(65536)
                if not more:
                    return
                got += more
            head, _, got = got.partition(b"\r\n\r\n")
            word = head.split(b" ")[1][1:].decode()
            mine.append(word)
            if word not in ANSWERS:
                c.sendall(OK + b"Content-Length: 5\r\n\r\nfine!")
                continue
            if ANSWERS[word][1]:
                c.sendall(ANSWERS[word][1] + SECOND)
            return
    return serve


PORT = 9080
UPSTREAM = "allow: [{host: allowed.test, ports: [9080], protocol: http}]"


def upstream(world):
    if not hasattr(world, "answerer"):
        world.served = []
        world.answerer = world.serve(GOOD, PORT, answerer(world.served))
    return world.box(UPSTREAM), world.served


@row("H19", doors=WAYS)
def answers(world, door):
    """An answer is read as strictly as a request: an odd one is a 502, what is behind
    an answer is dropped, and the next request has its own."""
    box, _ = upstream(world)
    request = b"%s {u}/%s HTTP/1.1\r\nHost: allowed.test:9080\r\n\r\n"
    for word, (believed, _) in ANSWERS.items():
        messages = [request % (b"GET", x) for x in (word.encode(), b"fine")]
        if door == HTTP:
            messages = [m.replace(b"{u}", b"http://allowed.test:9080") for m in messages]
        port, got, how = say(box, door, [b"".join(messages)], "allowed.test", port=PORT,
                             enough=b"fine!")
        check(b"SMUGGLED" not in got, word, got)
        first = statuses(got)[0]
        if believed is False:
            check(first == b"502" and b"reason" in got.lower(), word, got)
        if believed is None:  # it had begun: cut, and nothing else by that connection
            check(how in ("eof", "reset") and b"fine!" not in got, word, got, how)
        if believed:  # unless what is behind it came with it
            check(first == b"502" or got.endswith(b"fine!") and len(statuses(got)) == 2,
                  word, got)
    check("gate_restart" not in str(box.log.read()), "the gate died")


@row("H19")
def no_shared_connections(world):
    """A connection to a server is of one sandbox, and of one request."""
    one, served = upstream(world)
    two = world.box(UPSTREAM, env={"ANOTHER": "sandbox"})
    served.clear()
    for i in range(4):
        for name, box in ("one", one), ("two", two):
            for door in HTTP, HOST:
                before = b"http://allowed.test:9080" if door == HTTP else b""
                m = b"GET %s/%s-%d HTTP/1.1\r\nHost: allowed.test:9080\r\n\r\n" % (
                    before, name.encode(), i)
                say(box, door, [m], "allowed.test", port=PORT, enough=b"fine!")
    equal(len(served), 16)
    for words in served:
        equal(len({w.split("-")[0] for w in words}), 1, served)
