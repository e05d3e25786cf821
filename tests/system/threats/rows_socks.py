# SPDX-License-Identifier: Apache-2.0
"""SOCKS, as it should not be spoken."""
from frame import SOCKS, check, equal, row
from hellos import ALERTS, alert, hello
from lab import CDN

HELLO, GREETED = b"\5\1\0", b"\5\0"
NAME = b"\3\x0callowed.test"


def refused(box, pieces, reason, want, how=("eof",), dialled=None, **more):
    """The answer is @want, nothing else, and the connection ends."""
    box.quiet()
    port, got, end = box.talk(pieces=pieces, **more)
    equal(got, want, box.world.row, pieces)
    check(end in how, box.world.row, pieces, end)
    box.recorded(port, reason)
    box.silent(box.world.row, pieces, dialled=dialled)


def reply(code):
    return GREETED + bytes([5, code, 0, 1, 0, 0, 0, 0, 0, 0])


@row("S1", doors=(SOCKS,))
def other_commands(world, door):
    """There is CONNECT, and nothing else: 7, and no port is opened for anybody."""
    box = world.box()
    box.allowed(door, "allowed.test")
    for command in 2, 3, 0, 4, 0xf0, 0xff:
        for address in (NAME, b"\1\0\0\0\0", b"\1\x5d\xb8\xd8\x22", b"\4" + b"\0" * 16,
                        b"\3\x09evil.test"):
            request = bytes([5, command, 0]) + address
            for port in b"\0\0", b"\1\xbb", b"\0\x35":
                refused(box, [HELLO, request + port], "protocol", reply(7), first=2)
    box.quiet()
    p = box.call(datagram)  # what an ASSOCIATE would have been for
    check(p in ("timeout", "ConnectionRefusedError"), p)
    box.silent()


def datagram():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.3)
    s.connect(proxy)
    try:
        s.send(b"\0\0\0\3\x0callowed.test\0\x35" + query(name(b"evil.test")))
        return repr(s.recv(512))
    except OSError as e:
        return type(e).__name__ if type(e) is not TimeoutError else "timeout"


@row("S3", doors=(SOCKS,))
def odd_greetings(world, door):
    """What is whole is answered however it was cut; what is short, of another
    version, or has no method in common ends, and is recorded."""
    box = world.box()
    request = b"\5\1\0" + NAME + b"\1\xbb"
    for pieces in ([bytes([c]) for c in HELLO] + [bytes([c]) for c in request],
                   [HELLO + request], [b"\5\2\2\0", request], [b"\5\xff" + bytes(255), request],
                   [HELLO, request[:7], request[7:]]):
        port, got, _ = box.talk(pieces=[*pieces, hello("allowed.test")], pause=0.002,
                                enough=b"\x16\3\3")
        check(got.startswith(reply(0)), pieces, got)
        box.recorded(port, "rule", denied=False)
    refused(box, [b"\5\0"], "malformed", b"\5\xff")
    for pieces, want in (
            ([b"\5\1\2"], b"\5\xff"), ([b"\5\2\1\2"], b"\5\xff"),
            ([b"\5\1\x80\1\5user\2pw"], b"\5\xff")):
        refused(box, pieces, "protocol", want)
    for pieces, want in (
            ([HELLO, b"\5\1\0\2" + NAME[1:] + b"\1\xbb"], reply(8)),
            ([HELLO, b"\5\1\0\0\0\0\0\0\1\xbb"], reply(8)),
            ([HELLO, b"\5\1\0\3\0\1\xbb"], reply(1)), ([HELLO, b"\5\1\1" + NAME + b"\1\xbb"], reply(1)),
            ([HELLO, b"\4\1\0" + NAME + b"\1\xbb"], reply(1)),
            ([HELLO, b"\5\1\0" + NAME + b"\0\0"], reply(1))):
        refused(box, pieces, "malformed", want, first=2)
    for pieces, want in (([b"\5"], reply(1)[2:]), ([b"\5\3\0"], reply(1)[2:]),
                         ([HELLO], reply(1)), ([HELLO, b"\5\1\0\3\x0callowed"], reply(1)),
                         ([HELLO, b"\5\1\0\1\1\2"], reply(1)), ([HELLO, request[:-1]], reply(1))):
        refused(box, pieces, "malformed", want, end=True)
    for pieces in ([b"\4\1\1\xbb\x5d\xb8\xd8\x42\0"], [b"\4\1\1\xbb\0\0\0\1\0evil.test\0"],
                   [b"\4\1\1\xbb\0\0\0\1\0allowed.test\0"]):
        box.quiet()
        port, got, end = box.talk(pieces=pieces, end=True)
        check(got[:2] not in (b"\0\x5a",), got)
        box.recorded(port, "malformed")
        box.silent(pieces)


@row("S4", doors=(SOCKS,))
def hello_after_socks(world, door):
    """What is said in a tunnel that SOCKS opened is judged as behind CONNECT."""
    box = world.box()
    box.call("know", "cdn.test")
    for name, reason in ("evil.test", "name_mismatch"), ("evilcdn.test", "name_mismatch"), \
            ("", "no_name"), ("cdn.test.", "malformed"):
        refused(box, [HELLO, b"\5\1\0\3\x08cdn.test\1\xbb", hello(name)], ["rule", reason],
                reply(0) + alert(ALERTS[reason]), first=2, how=("eof", "reset"), dialled=CDN)
    refused(box, [HELLO, b"\5\1\0\3\x08cdn.test\1\xbb", b"SSH-2.0-x\r\n"], ["rule", "protocol"],
            reply(0) + alert(ALERTS["protocol"]), first=2, how=("eof", "reset"), dialled=CDN)
    box.allowed(door, "cdn.test")
