# SPDX-License-Identifier: Apache-2.0
"""What name servers answer, and what is made of it."""
import socket
import struct
import threading

from box import looks, run_probe
from fdns import Fdns, a, aaaa, cname, reply, wire_name
from frame import CONNECT, DNS, HTTP, SOCKS, check, equal, row
from lab import CDN, GOOD
from sessions import reload
from uplink import news

RESOLVED = (CONNECT, HTTP, SOCKS, DNS)
POLICY = """
dns: {upstream: [93.184.216.55]}
allow:
  - {host: "*.d.test", ports: [443, 80, 7000]}
limits: {names_per_wildcard: 4000, dns_per_second: 10000, connections_per_second: 10000}
"""
NOWHERE = "93.184.216.56"  # where nobody listens


class Zone(Fdns):
    """.said: what answers a Question, by its first label."""

    def __init__(self, world):
        super().__init__(world)
        self.said, self.count = {}, 0
        self.answer = lambda q: self.said.get(
            q.name.split(".")[0].lower(), lambda q: reply(q, rcode=3))(q)

    def name(self, *records, said=None):
        """A fresh one that has these: functions of the name."""
        self.count += 1
        label = f"n{self.count}"
        self.said[label] = said or (lambda q: reply(q, [
            r for r in (make(q.name) for make in records)
            if r[len(wire_name(q.name)):][:2] == struct.pack(">H", q.kind)
            or r[len(wire_name(q.name)):][:2] == b"\0\5"]))
        return label + ".d.test"

    def names(self, since=0):
        return [q.name.lower() for q in self.asked[since:]]


def zone(world):
    if not hasattr(world, "zone"):
        world.zone = Zone(world)
    return world.zone


def dialled(world):
    world.uplink.read()
    return {p.to for p in world.uplink.seen if p.kind == "syn" and p.port != 53}


def forbidden(world, door, name):
    """The name is asked for, its addresses are refused, and nobody is dialled."""
    box = world.box(POLICY)
    box.quiet()
    p = box.probe(door, name)
    equal(p["got"], looks("forbidden_address", door), world.row, name)
    world.wait(lambda: any(
        r["status_code"] == "forbidden_address" for r in box.log.read()
        if r.get("src_endpoint", {}).get("port") == p["source"] and r.get("status_code")),
        "its record")
    left = [s for s in news(world.uplink.read()) if s.to != Fdns.ADDRESS]
    check(not left, world.row, name, left)


def each(world, door, addresses):
    """Each as the only answer."""
    z = zone(world)
    for ip in addresses:
        make = aaaa if ":" in ip else a
        forbidden(world, door, z.name(lambda n, ip=ip, make=make: make(n, ip)))


# --- D7: what was vetted is what is dialled -----------------------------------------


def rebinder(zone_, bad):
    """Good at first, then @bad, with TTL 0 each time."""
    seen = []

    def said(q):
        if q.kind != 1:
            return reply(q)
        if not q.again:
            seen.append(q)
        return reply(q, [a(q.name, GOOD if len(seen) == 1 else bad, ttl=0)])
    return zone_.name(said=said), seen


@row("D7", who=("root",))
def one_question_a_connection(world):
    """An answer that is good once and 169.254.169.254, 10.0.0.7 or this machine
    afterwards: one question, and what it said is dialled."""
    z, box = zone(world), world.box(POLICY)
    world.told = []
    for bad in "169.254.169.254", "10.0.0.7", "203.0.113.2":
        name, seen = rebinder(z, bad)
        box.allowed("connect", name)
        lease, = box.allowed("dns", name)["answers"]
        equal(len(seen), 1)
        world.told.append((name, seen, lease))
    equal(dialled(world), {GOOD})


# --- D6, D8, D9: where they lead --------------------------------------------------


@row("D6", doors=RESOLVED, who=("root",))
def private_and_metadata_answers(world, door):
    """Private ranges, metadata services, this machine's own addresses and their
    neighbours on the link: refused, not dialled."""
    each(world, door, [
        "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1", "169.254.169.254",
        "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192",
        "127.0.0.1", "127.255.255.254", "203.0.113.2", "203.0.113.1", "fd00:ec2::254",
        "fe80::1", "fe80::a9fe:a9fe", "fc00::1", "::1", "2001:db8:1::2"])


@row("D6")
def one_good_among_bad(world):
    """Of several answers the forbidden ones are left out, wherever they stand."""
    z, box = zone(world), world.box(POLICY)
    for bad in ("10.0.0.1",), ("127.0.0.1", "169.254.169.254", "203.0.113.2"):
        for ips in ((*bad, GOOD), (GOOD, *bad)):
            name = z.name(*[lambda n, ip=ip: a(n, ip) for ip in ips])
            box.allowed("connect", name)
    equal(dialled(world), {GOOD})


@row("D8", doors=RESOLVED, who=("root",))
def addresses_within_addresses(world, door):
    """IPv4 in IPv6 by mapping, NAT64, 6to4, Teredo, ISATAP, compatible form;
    site-local, unspecified, discard, ORCHID, documentation and what is not
    global: refused by the address within."""
    each(world, door, [
        "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:203.0.113.2", "::10.0.0.1",
        "::ffff:0:10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::10.0.0.1", "2002:a00:1::", "2002:a9fe:a9fe::1", "2002:7f00:1::",
        "2001:0:a00:1::", "2001:0:5db8:d822::f5ff:fffe", "fec0::1", "::", "100::1",
        "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "3ffe::1", "5f00::1",
        "4000::1", "ff02::1", "ff0e::1", "fe80::5efe:a00:1"])


@row("D9", doors=RESOLVED)
def special_purpose_ranges(world, door):
    """The first and last address of each range that is not for the Internet."""
    each(world, door, [
        "0.0.0.0", "0.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.0",
        "169.254.0.0", "169.254.255.255", "192.0.0.0", "192.0.0.255", "192.0.2.1",
        "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.175.48.1", "198.18.0.1",
        "198.19.255.255", "198.51.100.1", "203.0.113.77", "224.0.0.1",
        "239.255.255.255", "240.0.0.1", "255.255.255.255"])


@row("D7")
def other_answers_in_parallel(world):
    """A server that says something else each time: of 20 connections each dials
    what one answer said."""
    z, box = zone(world), world.box(POLICY)
    seen = []

    def said(q):
        if not q.again:
            seen.append(q.kind)
        return reply(q, [a(q.name, "10.0.0.9"), a(q.name, GOOD), a(q.name, "127.0.0.1")]
                     if q.kind == 1 else [])
    name = z.name(said=said)
    for _ in range(20):
        box.allowed("http", name)
    equal(sorted(set(seen)), [1, 28])
    check(len(seen) <= 4, seen)
    equal(dialled(world), {GOOD})


# --- D11, D22: whose address it is --------------------------------------------------


@row("D11")
def aliases(world):
    """An allowed name whose CNAME leads to a name that is not: the question's
    name decides; that other name stays refused, also at its lease and address;
    where the chain ends is vetted; endless chains fail."""
    z, box = zone(world), world.box(POLICY)
    alias = z.name(said=lambda q: reply(q, [cname(q.name, "evil.test")] + (
        [a("evil.test", GOOD)] if q.kind == 1 else [])))
    box.allowed("connect", alias)
    for door in RESOLVED:
        box.denied(door, "evil.test", "not_in_policy")
    box.denied("connect", GOOD, "literal_address")
    for door in RESOLVED:
        forbidden(world, door, z.name(said=lambda q: reply(q, [
            cname(q.name, "evil.test"), *([a("evil.test", "10.0.0.1")] * (q.kind == 1))])))
    # What belongs to no link of the chain is no answer.
    for said in (lambda q: reply(q, [a("evil.test", GOOD)]),
                 lambda q: reply(q, [cname(q.name, "b.test"), a("c.test", GOOD)]),
                 lambda q: reply(q, [cname(q.name, q.name)]),
                 lambda q: reply(q, [cname("c%d.test" % i if i else q.name, "c%d.test" %
                                           (i + 1)) for i in range(60)] + [a("c60.test", GOOD)])):
        p = box.probe("connect", z.name(said=said))
        check(p["got"].startswith(("502", "504")), p["got"])
    equal(dialled(world), {GOOD})
    check(not [q for q in z.names() if "evil" in q])


@row("D22")
def two_names_of_one_address(world):
    """An address opened for cdn.test is not open for evilcdn.test, which has the
    same one: nor by number, nor by Host or SNI at the lease."""
    box = world.box()
    box.allowed("connect", "cdn.test")
    box.allowed("sni", "cdn.test", via="cdn.test")
    for door in "connect", "http", "socks", "dns":
        box.denied(door, "evilcdn.test", "not_in_policy")
    for door in "sni", "host":
        box.denied(door, "evilcdn.test", "name_mismatch", via="cdn.test")
    for door in "connect", "http", "socks":
        box.denied(door, CDN, "literal_address")
    for door in "sni", "host":
        box.quiet()
        equal(box.probe(door, "cdn.test", to=CDN)["got"], "ConnectionRefusedError")
        box.silent()


# --- D14: who answers ----------------------------------------------------------------

FORGED = "93.184.216.99"  # a stranger


@row("D14", who=("root",))
def forged_replies(world):
    """Before the answer come others with a wrong id, question, type, class, no
    question, from another port and another host, all with an attacker's address:
    only the right one is believed. Who has found the port has one guess: then it is
    asked by TCP."""
    z, box = zone(world), world.box(POLICY)
    strange = world.outside(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    world.address(NOWHERE)
    strange.bind((NOWHERE, 53))

    def guesses(wrong):
        def said(q):
            if q.kind != 1:
                return reply(q)
            if q.tcp:
                return reply(q, [a(q.name, GOOD)])
            right = reply(q, [a(q.name, FORGED)])
            strange.sendto(right, q.peer)
            return [wrong(q, [a(q.name, FORGED)], right)] * 50 + [right]
        return said
    wrongs = (lambda q, bad, right: reply(q, bad, id=bytes([q.id[0] ^ 1, q.id[1]])),
              lambda q, bad, right: reply(q, bad, asked=wire_name("other.test") +
                                          b"\0\1\0\1"),
              lambda q, bad, right: right[:4] + b"\0\0" + right[6:],
              lambda q, bad, right: reply(q, bad, asked=q.raw[12:q.end - 4] +
                                          b"\0\x1c\0\1"),
              lambda q, bad, right: reply(q, bad, asked=q.raw[12:q.end - 4] +
                                          b"\0\1\0\3"),
              lambda q, bad, right: right[:11], lambda q, bad, right: b"",
              lambda q, bad, right: b"\0" * 12)
    since = len(z.asked)
    for i, wrong in enumerate(wrongs):
        box.allowed((CONNECT, HTTP, SOCKS)[i % 3], z.name(said=guesses(wrong)))
    equal(sum(q.tcp for q in z.asked[since:]), len(wrongs))
    # A question that comes back is no answer either.
    echo = z.name(said=lambda q: [reply(q, [a(q.name, FORGED)], flags=0x0100), q.raw])
    equal(box.probe("connect", echo)["got"], "504 resolve_failed")
    strange.close()
    equal(dialled(world), {GOOD})


def at_once(name, count):
    """The same question by so many sockets before any answer."""
    out = []
    for _ in range(count):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(PATIENCE)
        s.connect((GW, 53))
        s.send(query(name))
        out.append(s)
    return sum(len(s.recv(4096)) > 40 for s in out)


@row("D14", who=("root",))
def ids_ports_and_equal_questions(world):
    """60 questions have different ports and ids; 40 equal ones at once go
    upstream as one: a birthday attack has nothing to aim at."""
    z, box = zone(world), world.box(POLICY)
    since = len(z.asked)
    for _ in range(30):
        equal(box.probe("dns", z.name(lambda n: a(n, GOOD)))["got"], "ok")
    world.wait(lambda: len(z.asked) >= since + 60, "60 questions")
    asked = z.asked[since:]
    equal(len(asked), 60)
    ids, ports = ([q.id for q in asked], [q.peer[1] for q in asked])
    check(len(set(ids)) >= 58 and len(set(ports)) >= 50, ids, ports)
    steps = {(y - x) % 65536 for x, y in zip(ports, ports[1:])}
    check(len(steps) > 30, "ports follow a pattern:", ports)
    held = threading.Event()

    def slow(q):
        held.wait(20)
        return reply(q, [a(q.name, GOOD)] if q.kind == 1 else [])
    name = z.name(said=slow)
    box.start(at_once, wire_name(name), 40)
    world.wait(lambda: name in z.names(), "the question")
    held.set()
    equal(box.finish(), 40)
    check(z.names().count(name) <= 2, z.names().count(name))


# --- D16: answers that are no answers -------------------------------------------------


def broken(q):
    """By the first byte of the label."""
    loop = q.raw[12:q.end - 4]
    kind = int(q.name.split(".")[0][1:]) % 8
    head = [0x8180, 1, 1, 0, 0]
    body = [struct.pack(">H", 0xc000 | (12 + len(loop) + 4)) + struct.pack(
                ">2HIH", 1, 1, 60, 4) + b"\1\2\3\4",
            b"\xc0\xff" + struct.pack(">2HIH", 1, 1, 60, 4) + b"\1\2\3\4",
            b"\xc0\x0c" + struct.pack(">2HIH", 1, 1, 60, 400) + b"\1\2\3\4",
            b"\xc0\x0c" + struct.pack(">2HIH", 1, 1, 60, 3) + b"\1\2\3",
            (b"\x3f" + b"a" * 63) * 5 + b"\0" + struct.pack(">2HIH", 1, 1, 60, 4) + b"\1\2\3\4",
            b"\xc0\x0c" + struct.pack(">2HIH", 5, 1, 60, 2) + b"\xc0\x0c",
            b"", b"\x80"][kind]
    if kind == 6:
        head[2] = 65535
    return q.id + struct.pack(">5H", *head) + q.raw[12:q.end] + body


@row("D16", doors=(CONNECT, DNS), who=("root",))
def broken_answers(world, door):
    """Answers with loops, pointers past the end, wrong lengths, names that are
    too long, counts that lie, also by TCP: no address comes of them, and the
    gate lives."""
    z, box = zone(world), world.box(POLICY)
    gate = world.case.child(box.process, "gate")
    for i in range(8):
        z.count += 1
        label = f"n{z.count}"
        z.said[label] = broken
        got = box.probe(door, label + ".d.test")["got"]
        check(not got.startswith("ok"), i, got)
    cut = z.name(said=lambda q: broken(q) if q.tcp else reply(q, flags=0x8380))
    check(not box.probe(door, cut)["got"].startswith("ok"))
    box.allowed("connect", z.name(lambda n: a(n, GOOD)))
    equal(world.case.child(box.process, "gate"), gate)
    equal(dialled(world), {GOOD})


# --- D20: what is remembered -----------------------------------------------------------


@row("D20", who=("root",))
def answers_after_a_change(world):
    """A name with a TTL of ten years is told to live a minute; when the policy
    forgets the name, neither what was resolved nor its lease is good any more,
    in any door; what is allowed again works again."""
    z = zone(world)
    policy = POLICY.replace("*.d.test", "*.e.d.test")
    box = world.box(policy)
    z.said["old"] = lambda q: reply(q, [a(q.name, GOOD, ttl=315360000)] if q.kind == 1
                                    else [])
    name = "old.e.d.test"
    p = box.allowed("dns", name)
    check(p["ttl"] <= 300, p["ttl"])
    lease = p["answers"][0]
    box.allowed("sni", name, to=lease)
    reload(world, box, policy.replace("*.e.d.test", "*.f.d.test"))
    for door in RESOLVED:
        box.denied(door, name, "not_in_policy")
    for door in "sni", "host":
        box.quiet()
        got = box.probe(door, name, to=lease)["got"]
        check(not got.startswith("ok"), door, got)
        box.silent(door)
    reload(world, box, policy)
    box.allowed("sni", name, to=lease)
    equal(box.probe("dns", name)["answers"], [lease])


@row("D7", who=("root",))
def rebinding(world):
    """When the first answer is forgotten and the second one is bad: refused in
    every door, and at the address that was leased for the name."""
    box = world.box(POLICY)
    for name, seen, lease in world.told:
        world.wait(lambda: "forbidden" in box.probe("connect", name)["got"],
                   "the second answer")
        equal(len(seen), 2, name)
        for door in RESOLVED:
            forbidden(world, door, name)
        box.quiet()
        port, got, how = box.talk((lease, 80), [
            b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % name.encode()])
        check(got.startswith(b"HTTP/1.1 502") and b"forbidden_address" in got, got)
        box.silent()
    check(dialled(world) <= {GOOD})


# --- D23: nobody answers ------------------------------------------------------------------


@row("D23", who=("root",))
def no_other_resolver(world):
    """The configured server is gone, silent, refuses, or fails: the answer is a
    failure, never another resolver (the machine's own would answer)."""
    z = zone(world)
    world.address(NOWHERE)
    gone = world.box("dns: {upstream: [%s]}\nallow: [allowed.test]\n" % NOWHERE)
    gone.start(run_probe, {"door": DNS, "name": "allowed.test", "timeout": 20})
    box = world.box(POLICY)
    for rcode in 2, 5, 1, 4, 9:
        name = z.name(said=lambda q: reply(q, rcode=rcode))
        for door in DNS, CONNECT:
            got = box.probe(door, name)["got"]
            check(not got.startswith("ok"), rcode, got)
    check(gone.finish()["got"].startswith("SERVFAIL"))
    world.uplink.read()
    equal({p.to for p in news(world.uplink.seen)}, {NOWHERE, Fdns.ADDRESS})
