# SPDX-License-Identifier: Apache-2.0
"""HTTP that two readers could read in two ways."""
from frame import CONNECT, HOST, HTTP, check, row
from http_ways import CHUNKED, INNER, LAST, N, WAYS, post, refuse, say, works


@row("H1", doors=WAYS)
def two_lengths(world, door):
    """A message whose length could be read in two ways is malformed; the
    connection ends, and nothing of it is sent on."""
    box = world.box()
    for message in (
            post(N, CHUNKED, body=LAST + INNER), post(CHUNKED, N, body=LAST + INNER),
            post(b"Content-Length: 0", N), post(N, N), post(b"Content-Length: 0, 44"),
            post(b"Content-Length: 3, 3"), post(b"Content-Length: +0"),
            post(b"Content-Length: -1"), post(b"Content-Length: -0"),
            post(b"Content-Length: 0x0"), post(b"Content-Length: 0 0"),
            post(b"Content-Length: 99999999999999999999"), post(b"Content-Length:"),
            post(b"Content-Length: 18446744073709551616"), post(b"Content-Length : 0"),
            post(b"Content-Length: 0\x0b"), post(b"Content-Length: 1e1"),
            post(b"Content-Length: 0;x"), post(b"Content-Length: \xb2")):
        refuse(box, door, message)
    works(box, door, post(b"Content-Length: 3", body=b"abc"))


@row("H2", doors=WAYS)
def odd_codings(world, door):
    """Only one `chunked`, last, in HTTP/1.1, is a transfer coding here."""
    box = world.box()
    for field in (b"chunkedx", b"xchunked", b"chunked, identity", b"identity, chunked",
                  b"x, chunked", b"chunked, chunked", b"\"chunked\"", b"chunked;a=b",
                  b"identity", b"gzip", b"", b"\x0bchunked", b"chunked\0", b"chun ked",
                  b"chunked,", b",chunked"):
        refuse(box, door, post(b"Transfer-Encoding: " + field, body=LAST + INNER),
               status=(b"400", b"501"))
    for fields in ((CHUNKED, CHUNKED), (b"Transfer-Encoding: x", CHUNKED),
                   (b"Transfer-Encoding : chunked",), (b"Transfer-Encoding:\r\n chunked", N),
                   (b"X: y\r\n\tTransfer-Encoding: chunked", N)):
        refuse(box, door, post(*fields, body=LAST + INNER), status=(b"400", b"501"))
    refuse(box, door, post(CHUNKED, version=b"1.0", body=LAST + INNER),
           status=(b"400", b"501"))
    works(box, door, post(b"Transfer-Encoding: Chunked", body=b"3\r\nabc\r\n" + LAST))


def cut(box, door, chunks):
    """The head is fine, the body is not: the request ends there."""
    heard = len(box.world.servers.heard())
    port, got, how = say(box, door, post(CHUNKED, body=chunks + INNER))
    check(how in ("eof", "reset") and b" 200 " not in got, chunks, got, how)
    box.world.wait(lambda: [r for r in box.log.read() if r.get("status_code") == "malformed"
                            and r.get("src_endpoint", {}).get("port") == port],
                   f"{chunks} in the log")
    return box.world.servers.heard()[heard:]


@row("H3", doors=WAYS)
def chunks(world, door):
    """Chunks are read strictly and written anew: what is odd ends the request, and
    the server never sees the bytes behind it."""
    box = world.box()
    for body in (b"+0\r\n\r\n", b"-1\r\n", b"0x0\r\n\r\n", b"0\n\n", b"0\n\r\n", b"0 \r\n\r\n",
                 b" 0\r\n\r\n", b"0;a=\"\r\n\r\n", b"0;a\nb\r\n\r\n", b"10000000000000000\r\n\r\n",
                 b"ffffffffffffffff\r\n", b"7fffffffffffffff1\r\n", b"3\r\nabcXX0\r\n\r\n",
                 b"3\r\nabc\r0\r\n\r\n", b"3\r\nabc\n0\r\n\r\n", b"3\r\nabc0\r\n\r\n", b"\r\n\r\n",
                 b"g\r\n\r\n", b";\r\n\r\n", b"0\0\r\n\r\n", b"0_0\r\n\r\n",
                 b"3;" + b"x" * 70000 + b"\r\nabc\r\n", b"0\r\nX : y\r\n\r\n", b"0\r\nX\r\n\r\n",
                 b"0\r\n folded\r\n\r\n", b"0\r\nGET /smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n"):
        heard = cut(box, door, body)
        check(not [h for h in heard if "smuggled" in h or "evil" in h], body, heard)
    works(box, door, post(CHUNKED, body=b"3;a=b\r\nabc\r\n0003\r\ndef\r\n0\r\n\r\n"))
    world.wait(lambda: not [h for h in world.servers.heard() if "smuggled" in h],
               "nothing smuggled")


@row("H4", doors=WAYS)
def bare_ends(world, door):
    """A line ends with CR LF; a bare CR or LF, or a folded line, is malformed."""
    box = world.box()
    for message in (
            b"GET {u}/x HTTP/1.1\nHost: web.test\n\n", b"GET {u}/x HTTP/1.1\r\nHost: web.test\n\r\n",
            b"GET {u}/x HTTP/1.1\r\nHost: web.test\r\nX: y\nZ: a\r\n\r\n",
            b"GET {u}/x HTTP/1.1\r\nHost: web.test\r\nX: y\rZ: a\r\n\r\n",
            b"GET {u}/x HTTP/1.1\r\nHost: web.test\r\nX: y\r\n z\r\n\r\n",
            b"GET {u}/x HTTP/1.1\r\nHost: web.test\r\nX: y\r\n\tz\r\n\r\n",
            b"GET {u}/x HTTP/1.1\r\n Host: web.test\r\n\r\n",
            b"GET {u}/x HTTP/1.1\r\nHost: web.test\r\n\r\r\n\r\n",
            b"GET {u}/x\rHTTP/1.1\r\nHost: web.test\r\n\r\n",
            b"GET\n{u}/x HTTP/1.1\r\nHost: web.test\r\n\r\n"):
        refuse(box, door, message)
    works(box, door)


@row("H5", doors=WAYS)
def header_names(world, door):
    """A field is a token, a colon, and text without control bytes."""
    box = world.box()
    for field in (b": x", b"X : y", b"X\t: y", b"X", b"X\0: y", b"X: \0", b"X: a\0b",
                  b"X\x0b: y", b"X: \x01", b"X: \x7f", b"X(: y", b"X@: y", b"\xffX: y",
                  b"Host : evil.test", b"=: y"):
        refuse(box, door, b"GET {u}/x HTTP/1.1\r\nHost: web.test\r\n" + field + b"\r\n\r\n")
    works(box, door, b"GET {u}/fine HTTP/1.1\r\nHost: web.test\r\nX-y_z!: \xe9 ok\r\n\r\n")


@row("H6", doors=WAYS)
def hosts(world, door):
    """There is one Host, with one name."""
    box = world.box()
    for hosts in ((b"web.test", b"web.test"), (b"web.test", b"evil.test"),
                  (b"evil.test", b"web.test"), (b"web.test, evil.test",),
                  (b"web.test,evil.test",), (b"web.test:80, evil.test",),
                  (b"web.test evil.test",), ()):
        fields = b"".join(b"Host: " + h + b"\r\n" for h in hosts)
        refuse(box, door, b"GET {u}/x HTTP/1.1\r\n" + fields + b"\r\n",
               reason="malformed")
    works(box, door)


@row("H7", doors=WAYS)
def target_and_host(world, door):
    """The target and the Host name one host, or the request is refused."""
    box = world.box("allow: [cdn.test, evilcdn.test, web.test]")
    for target, host in (("cdn.test", "evilcdn.test"), ("evilcdn.test", "cdn.test"),
                         ("web.test", "cdn.test"), ("web.test", "web.test.cdn.test"),
                         ("web.test", "web.test:8080"), ("web.test", "web.tes"),
                         ("web.test:80", "web.test:81"), ("web.test", "x.web.test")):
        message = f"GET http://{target}/x HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        via = target.split(":")[0]
        refuse(box, door, message, "name_mismatch", (b"400", b"403"), host=via)
        if door != HTTP:  # here the connection is of a host, too
            message = f"GET /x HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
            refuse(box, door, message, "name_mismatch", (b"400", b"403"), host=via)
            message = f"GET http://{host}/x HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
            refuse(box, door, message, "name_mismatch", (b"400", b"403"), host=via)
    for host in b"web.test", b"WEB.test", b"web.test:80":
        works(box, door, b"GET {u}/fine HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
    works(box, door, b"GET http://web.test/fine HTTP/1.1\r\nHost: web.test\r\n\r\n")


AUTHORITIES = ("web.test@evil.test", "evil.test@web.test", "user:pw@web.test", "@web.test",
               "web.test\\@evil.test", "evil.test\\.web.test", "evil.test#@web.test",
               "web.test#.evil.test", "evil.test%23@web.test", "web.test%40evil.test",
               "evil.test;web.test", "evil.test,web.test", "web.test evil.test",
               "web.test&@evil.test", "web.test:80@evil.test", "evil.test:80#@web.test",
               "web.test:@evil.test", "evil.test%2fweb.test", "web.test%00", "web.test%2eevil.test",
               "web.test:80:80", "web.test|evil.test", "{web.test}", "web.test'", "web.test\"",
               "web.test<", "web.test^", "web.test`", "*", "*.web.test")


@row("H8", doors=(CONNECT, HTTP, HOST))
def userinfo(world, door):
    """An authority is a host and a port: no userinfo, no other sign."""
    box = world.box()
    for authority in AUTHORITIES:
        a = authority.encode()
        if door == CONNECT:
            for target in a, a + b":443":
                box.quiet()
                box.refused(box.talk(pieces=[b"CONNECT " + target + b" HTTP/1.1\r\nHost: " +
                                             target + b"\r\n\r\n"]), "malformed", b"HTTP/1.1 400")
        elif door == HTTP:
            box.quiet()
            box.refused(box.talk(pieces=[b"GET http://" + a + b"/x HTTP/1.1\r\nHost: " + a +
                                         b"\r\n\r\n"]), "malformed", b"HTTP/1.1 400")
        else:
            refuse(box, door, b"GET /x HTTP/1.1\r\nHost: " + a + b"\r\n\r\n")
            refuse(box, door, b"GET http://" + a + b"/x HTTP/1.1\r\nHost: web.test\r\n\r\n")
    for slash in b"http:/web.test/x", b"http:web.test/x", b"http:///web.test/x", b"http://", \
            b"http:///", b"http://?x", b"http://#", b"web.test/x", b"web.test", b"?x", b"*", b"":
        if door != CONNECT:
            refuse(box, door, b"GET " + slash + b" HTTP/1.1\r\nHost: web.test\r\n\r\n")
    if door == CONNECT:
        box.allowed(door, "web.test", ("rule", "rule"), port=80)
    else:
        works(box, door)
