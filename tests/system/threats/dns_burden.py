# SPDX-License-Identifier: Apache-2.0
"""Questions that are none, too many, or too slow."""
import os
import struct

from fdns import wire_name
from frame import check, equal, row
from questions import message, questions, rcode

SECRET = "4c6f72656d20697073756d.evil.test"
TUNNEL = """
allow: ["*.tunnel.test"]
"""
SLOW = """
allow: [allowed.test]
limits: {dns_per_second: 50}
"""

# --- D16, D18, D21: what a parser and a server must bear ------------------------------

MALFORMED = {
    "pointer to itself": message(b"\xc0\x0c"),
    "two pointers": message(b"\xc0\x0e\xc0\x0c"),
    "pointer forward": message(b"\xc0\xff"),
    "label then a pointer back": message(b"\7allowed\xc0\x0c"),
    "pointer past the end": message(b"\xff\xff"),
    "label of 64": message(b"\x40" + b"a" * 64 + b"\0"),
    "reserved label 0x80": message(b"\x80allowed\0"),
    "name of 256": message((b"\x3f" + b"a" * 63) * 4 + b"\0"),
    "name of 300": message((b"\x3f" + b"a" * 63) * 5 + b"\0"),
    "no end": message(b"\7allowed"),
    "two questions": message("allowed.test", counts=(2, 0, 0, 0),
                             tail=wire_name("evil.test") + b"\0\1\0\1"),
    "a record": message("allowed.test", counts=(1, 1, 0, 0),
                        tail=wire_name(SECRET) + b"\0\x10\0\1\0\0\0\0\0\1x"),
    "bytes behind": message("allowed.test", tail=b"c2VjcmV0"),
}


@row("D16")
def loops_and_long_names(world):
    """Compression loops, labels and names that are too long, a second question,
    records in a question, bytes behind it: FORMERR by UDP and TCP, and no part
    of them goes upstream."""
    box = world.box()
    for what, data in MALFORMED.items():
        for tcp in False, True:
            box.quiet()
            port, got = box.call(questions, [data], tcp)[0]
            equal(rcode(got), 1, what, got)
            box.recorded(port, "malformed")
            box.silent(what)
    box.allowed("dns", "allowed.test")


def hold(count):
    """Connections that say half of a length, or a length that nothing follows."""
    global held
    held = []
    for i in range(count):
        try:
            s = socket.create_connection((GW, 53), 10)
            s.sendall(b"\0" if i % 2 else b"\0\xff\7")
            held.append(s)
        except OSError:
            pass
    return len(held)


def drop_held():
    for s in held:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()


@row("D18")
def connections_for_dns(world):
    """Lengths of 0, too short, too long; 300 connections that trickle or end in a
    reset: others are served meanwhile, what is no question is recorded."""
    box = world.box()
    for data in (b"\0\0", b"\0\1x", struct.pack(">H", 5) + b"abcde",
                 b"\xff\xff" + b"x" * 400, b"\0"):
        got = box.talk(("198.19.0.1", 53), [data], end=True)
        equal(got[1:], (b"", "eof"), data[:9])
    box.allowed("dns", "allowed.test", tcp=True)
    check(box.call(hold, 300) > 200)
    try:
        box.allowed("dns", "allowed.test")
        box.allowed("connect", "allowed.test")
        box.allowed("dns", "allowed.test", tcp=True)
        other = world.box(TUNNEL)
        equal(other.probe("dns", "0000.data.tunnel.test", tcp=True)["got"], "ok")
    finally:
        box.call(drop_held)
    world.wait(lambda: any(r["status_code"] == "malformed" for r in box.log.read()
                           if r.get("unmapped", {}).get("protocol") == "tcp"), "a record")


def flood(count, name):
    """Questions without waiting: how many went out."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect((GW, 53))
    q = query(name)
    sent = 0
    for i in range(count):
        try:
            sent += s.send(struct.pack(">H", i & 0xffff) + q[2:]) > 0
        except OSError:
            pass
    return sent


@row("D21", who=("root",))
def flood_of_questions(world):
    """20,000 questions at once, small ones with the largest answers included:
    what is over dns_per_second fails with SERVFAIL and is counted, little goes
    upstream, another sandbox's questions are answered meanwhile."""
    box, other = world.box(SLOW), world.box(TUNNEL)
    gate = world.case.child(box.process, "gate")
    box.quiet()
    box.start(flood, 20000, wire_name("allowed.test"))
    for _ in range(5):
        equal(other.probe("dns", "0000.data.tunnel.test")["got"], "ok")
    check(box.finish() > 10000)
    check(len([p for p in world.uplink.read() if p.port == 53
               and p.what == "allowed.test"]) <= 2)
    world.wait(lambda: any(r.get("status_code") == "limit_rate"
                           for r in box.log.read()), "limit_rate")
    # One that is lost in the flood is waited for, too.
    world.wait(lambda: box.probe("dns", "allowed.test")["got"] == "ok", "recovery", 120)
    equal(world.case.child(box.process, "gate"), gate)
    check(os.path.getsize(box.log.path) < 5 << 20)
