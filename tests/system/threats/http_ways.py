# SPDX-License-Identifier: Apache-2.0
"""Plain HTTP to one host, by each way there is to it."""
import re

from frame import CONNECT, HOST, HTTP, SOCKS, check, equal

# Absolute-form to the proxy, direct, and in both kinds of tunnel.
WAYS = (HTTP, HOST, CONNECT, SOCKS)
WEB = "web.test"
INNER = b"GET /smuggled HTTP/1.1\r\nHost: web.test\r\n\r\n"


def form(door, message, host=WEB):
    """@message has {u} where absolute-form has the scheme and host."""
    return message.replace(b"{u}", b"http://" + host.encode() if door == HTTP else b"")


def say(box, door, message, host=WEB, **more):
    pieces = message if isinstance(message, list) else [message]
    return box.call("converse", door, host.encode(), [form(door, m, host) for m in pieces],
                    **more)


def refuse(box, door, message, reason="malformed", status=(b"400",), host=WEB, **more):
    """One refusal, then the end; recorded; nothing of it is seen outside."""
    if door == HOST:
        box.call("know", host)
    box.quiet()
    port, got, how = say(box, door, message, host, **more)
    about = box.world.row, message
    check(got.startswith(b"HTTP/1.1 ") and got[9:12] in status, *about, got)
    check(b"X-Sallyport-Reason: " + reason.encode() in got, *about, got)
    check(b"Proxy-Status: sallyport; error=" in got, *about, got)
    equal(len(re.findall(rb"(?m)^HTTP/1\.1 \d", got)), 1, *about, got)
    check(how in ("eof", "reset"), *about, how)
    # A tunnel is there before what is said in it is judged.
    box.recorded(port, ["rule", reason] if door in (CONNECT, SOCKS) else reason)
    box.silent(*about)


def works(box, door, message=b"GET {u}/fine HTTP/1.1\r\nHost: web.test\r\n\r\n", host=WEB,
          answer=b" /fine HTTP/1.1"):
    port, got, _ = say(box, door, message, host, enough=answer)
    check(got.startswith(b"HTTP/1.1 200") and got.endswith(answer), box.world.row, got)
    return port


def post(*fields, body=INNER, version=b"1.1"):
    return (b"POST {u}/fine HTTP/" + version + b"\r\nHost: web.test\r\n" +
            b"".join(f + b"\r\n" for f in fields) + b"\r\n" + body)


N, CHUNKED = b"Content-Length: %d" % len(INNER), b"Transfer-Encoding: chunked"
LAST = b"0\r\n\r\n"


def statuses(got):
    return re.findall(rb"(?m)HTTP/1\.1 (\d+)", got)
