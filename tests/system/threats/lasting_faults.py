# SPDX-License-Identifier: Apache-2.0
"""What has to go on, or to stop, when something of ours fails."""
import os
import signal
import socket
import struct
import time

from frame import FLOW_DOORS, check, equal, row
from lab import EVIL
from sessions import gone, reload

OTHER = """
allow:
  - {host: allowed.test, ports: [443, 80, 7000]}
  - {host: other.test, ports: [443, 80, 7000]}
limits: {connections: 100, connections_per_second: 100000, dns_per_second: 100000}
"""
SLOW = OTHER.replace("connections: 100,", "connections: 101,")
LESS = OTHER.replace("  - {host: allowed.test, ports: [443, 80, 7000]}\n", "")


def probe_all(seconds, forbidden, until):
    """Tries every way out for a while: what got through. It says that it has begun
    by a file beside @until."""
    end, through, tries = time.time() + seconds, [], 0
    while time.time() < end and not os.path.exists(until):
        for address in forbidden:
            u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s = socket.socket()
            s.settimeout(0.2)
            try:
                u.sendto(b"c2VjcmV0", (address, 53))
                u.sendto(b"c2VjcmV0", (address, 9))
            except OSError:
                pass
            try:
                s.connect((address, 443))
                through.append(address)
            except OSError:
                pass
            u.close()
            s.close()
        try:
            s = socket.create_connection(proxy, 0.2)
            s.settimeout(0.2)
            s.sendall(b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n")
            if b" 200 " in s.recv(100):
                through.append("connect")
        except OSError:
            pass
        tries += 1
        open(until + "-begun", "w").close()
    return tries, through


def begin_probes(world, box, seconds):
    """What ends them; they are under way."""
    stop = world.case.work + "/stop"
    box.start(probe_all, seconds, [EVIL, "8.8.8.8"], stop)
    world.wait(lambda: os.path.exists(stop + "-begun"), "the first of them")
    return stop


def end_probes(box, stop):
    open(stop, "w").close()
    tries, through = box.finish()
    os.unlink(stop)
    os.unlink(stop + "-begun")
    check(tries > 0 and not through, tries, through)


# --- R4: too slow -----------------------------------------------------------------------


def slow_ones(lease):
    """Heads, hellos and greetings that stop half-way; readers that never read."""
    global slow
    slow = []
    for data in (b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nX: ", b"CONNECT al",
                 b"\5", b"\5\1\0\5\1\0\3\x0callowed", b"\x16\3\1\2\0\1\0\1\xfc\3\3", b"G",
                 b"POST http://allowed.test/upload HTTP/1.1\r\nHost: allowed.test\r\n"
                 b"Content-Length: 1000000\r\n\r\nx",
                 b"GET http://allowed.test/big HTTP/1.1\r\nHost: allowed.test\r\n\r\n"):
        for where in (proxy, (lease, 443), (lease, 80)):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.settimeout(PATIENCE)
            s.connect(where)
            s.sendall(data)
            slow.append(s)
    return len(slow)


def rss(pid):
    with open(f"/proc/{pid}/status") as f:
        return int([line for line in f if line.startswith("VmRSS")][0].split()[1])


@row("R4")
def slow_and_half_open(world):
    """Half a head, half a hello, half a greeting, a body that never comes, an
    answer of 1 GiB that is never read, at each door: they are held in little
    memory, others are served meanwhile."""
    box = world.box(SLOW)
    lease, = box.allowed("dns", "allowed.test")["answers"]
    gate = world.case.child(box.process, "gate")
    before = rss(gate)
    check(box.call(slow_ones, lease) == 24)
    for door in FLOW_DOORS:
        box.allowed(door, "allowed.test")
    check(rss(gate) - before < 30000 or world.case.sanitized, before, rss(gate))


# --- R1: crashes -------------------------------------------------------------------


@row("R1")
def a_gate_that_dies(world):
    """SIGKILL of the gate while everything is tried: nothing gets out
    meanwhile, what is allowed is back, a finding says so."""
    box = world.box(OTHER)
    box.allowed("connect", "allowed.test")
    gate = world.case.child(box.process, "gate")
    stop = begin_probes(world, box, 90)
    os.kill(gate, signal.SIGKILL)
    world.wait(lambda: world.case.child(box.process, "gate") != gate, "another gate")
    end_probes(box, stop)
    world.wait(lambda: box.probe("connect", "allowed.test")["got"].startswith("ok"),
               "what is allowed")
    box.denied("connect", "evil.test", "not_in_policy")
    world.wait(lambda: [r for r in box.log.read() if r["class_uid"] == 2004], "a finding")


@row("R1")
def a_ledger_that_dies(world):
    """SIGKILL of the ledger: from there on no question, SYN or byte leaves, by the
    proxy or directly, and the session ends as failed."""
    box = world.box("allow: [allowed.test, six.test]\n")
    box.allowed("connect", "allowed.test")
    world.case.kill(box.process, "ledger")
    box.quiet()
    try:
        for door in ("connect", "dns"):
            got = box.probe(door, "allowed.test", timeout=1)["got"]
            check(not got.startswith("ok"), door, got)
    except (AssertionError, OSError) as e:
        check("agent" in str(e) or isinstance(e, OSError), e)  # ended meanwhile
    box.silent()
    world.ledgerless = box


# --- R2, R3: changes ------------------------------------------------------------------

BAD = ["allow: [", "allow: [\"*\"]\n", "allow: [a.test]\nallow: [b.test]\n", "nonsense: 1\n",
       "allow: [{host: x.test, ports: [0]}]\n", "default: allow\n", "\0\n", "",
       "allow: [allowed.test]\nlimits: {connections: -1}\n", "extends: [/no/such/file]\n"]


@row("R2", who=("root",))
def reloads(world):
    """Twelve changes back and forth while everything is tried, then policies that
    are unreadable or wrong: the last good one stays in force, refusals say why,
    nothing leaks."""
    box = world.box(OTHER)
    stop = begin_probes(world, box, 60)
    for i in range(12):
        done = reload(world, box, LESS if i % 2 else OTHER)
        equal(done.returncode, 0, done.stderr)
    end_probes(box, stop)
    box.denied("connect", "allowed.test", "not_in_policy")
    for text in BAD:
        done = reload(world, box, text)
        if text == "":
            continue  # an empty list is a policy: it allows nothing
        check(done.returncode != 0 and done.stderr, text, done)
        box.denied("connect", "evil.test", "not_in_policy")
    done = reload(world, box, LESS)
    equal(done.returncode, 0, done.stderr)
    box.allowed("connect", "other.test")
    box.denied("connect", "allowed.test", "not_in_policy")
    equal(reload(world, box, OTHER).returncode, 0)


def hold_open(lease):
    """A tunnel and a direct connection to the echo server."""
    global tunnels
    tunnels = []
    for where in proxy, (lease, 7000):
        s = socket.create_connection(where, PATIENCE)
        if where == proxy:
            s.sendall(b"CONNECT allowed.test:7000 HTTP/1.1\r\nHost: allowed.test:7000\r\n\r\n")
            probe.head(s)
        s.sendall(b"\0one\n")
        if probe.exactly(s, 5) != b"\0one\n":
            raise OSError("no echo")
        tunnels.append(s)
    return [s.getsockname()[1] for s in tunnels]


def how_they_end():
    said = []
    for s in tunnels:
        try:
            s.sendall(b"\0c2VjcmV0\n")
            said.append(s.recv(100))
        except OSError as e:
            said.append(type(e).__name__)
    return said


@row("R3")
def a_tunnel_without_its_rule(world):
    """A CONNECT tunnel and a direct connection are open when their rule goes: both
    are cut, policy_revoked is in the log, and not a byte more is said."""
    box = world.box(OTHER)
    lease, = box.allowed("dns", "allowed.test")["answers"]
    ports = box.call(hold_open, lease)
    begun = len(box.log.read())
    equal(reload(world, box, LESS).returncode, 0)
    world.wait(lambda: {r["src_endpoint"]["port"] for r in box.log.read()[begun:]
                        if r["unmapped"]["event"] == "flow_close"
                        and r["status_code"] == "policy_revoked"} >= set(ports), "the cuts")
    box.quiet()
    said = box.call(how_they_end)
    check(all(x in (b"", "ConnectionResetError", "BrokenPipeError") for x in said), said)
    box.silent()
    check(not [p for p in world.uplink.seen if b"c2VjcmV0" in p.data])
    equal(reload(world, box, OTHER).returncode, 0)


# --- R5: too many ----------------------------------------------------------


def many(lease, count, enough):
    """Opens more than is allowed; then what becomes of one more, and of the rest.
    Those that were let in say nothing, and have ten seconds for it: how many were
    refused before, the log has to say."""
    global opened
    opened, refused, denied = [], 0, 0
    for i in range(count):
        s = socket.socket()
        s.settimeout(PATIENCE)
        try:
            s.connect([proxy, (lease, 7000)][i % 2])
            opened.append(s)
        except ConnectionResetError:  # it was, and before we were told so
            denied += 1
        except OSError:
            refused += 1
    left, end = opened, time.time() + PATIENCE
    while left and denied < enough and time.time() < end:
        quiet = []
        for s in left:
            s.settimeout(0.01)
            try:
                got = s.recv(4096)
                denied += b"limit_connections" in got or not got
            except socket.timeout:
                quiet.append(s)
            except OSError:
                denied += 1
        left = quiet
    return len(opened), refused, denied


def let_go():
    for s in opened:
        s.close()


@row("R5", who=("root",))
def connections_without_end(world):
    """400 connections where 100 are allowed: what is over is refused and recorded
    as limit_connections; another sandbox notices nothing; afterwards all is as
    before."""
    box, other = world.box(OTHER), world.box()
    lease, = box.allowed("dns", "allowed.test")["answers"]
    gate = world.case.child(box.process, "gate")
    begun = len(box.log.read())
    opened, refused, denied = box.call(many, lease, 400, 250)
    check(denied >= 250, opened, refused, denied)
    for door in "connect", "sni", "dns":
        other.allowed(door, "allowed.test")
    world.wait(lambda: sum(r.get("count", 1) for r in box.log.read()[begun:]
                           if r.get("status_code") == "limit_connections") >= 250, "the limit")
    box.call(let_go)
    world.wait(lambda: box.probe("connect", "allowed.test")["got"].startswith("ok"),
               "what is allowed")
    equal(world.case.child(box.process, "gate"), gate)


# --- R10 ----------------------------------------------------------------------------------


def garbage(seed, lease, count):
    """Real messages, changed a little, at every door."""
    import random
    r = random.Random(seed)
    good = [hello("allowed.test"), b"\5\1\0\5\1\0\3\x0callowed.test\1\xbb" + hello("allowed.test"),
            b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: "
            b"chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n", b"CONNECT allowed.test:443 HTTP/1.1"
            b"\r\nHost: allowed.test\r\n\r\n" + hello("allowed.test"),
            query(name(b"allowed.test"), counts=(1, 0, 0, 1), tail=b"\0\0\x29\x10\0\0\0\0\0\0\0")]
    for i in range(count):
        data = bytearray(r.choice(good))
        for _ in range(r.randrange(1, 6)):
            at = r.randrange(len(data))
            how = r.randrange(4)
            if how == 0:
                data[at] = r.randrange(256)
            elif how == 1:
                del data[at:at + r.randrange(1, 9)]
            elif how == 2:
                data[at:at] = r.randbytes(r.randrange(1, 9))
            else:
                data[at:at] = data[max(0, at - 20):at] * r.randrange(1, 60)
            data = data or bytearray(b"x")
        udp(bytes(data), 0)
        where = r.choice([proxy, (lease, 443), (lease, 80), (lease, 7000), (GW, 53)])
        try:
            s = socket.create_connection(where, PATIENCE)
            s.setblocking(False)
            s.send(struct.pack(">H", len(data) & 0xffff) + data if where[1] == 53 else data)
            s.close()
        except ConnectionError:
            pass


@row("R10")
def anything_at_every_parser(world):
    """600 messages that were valid once, changed at random (the seed is kept), at
    every door, by UDP and TCP: the same gate serves on."""
    box = world.box(OTHER)
    lease, = box.allowed("dns", "allowed.test")["answers"]
    gate = world.case.child(box.process, "gate")
    box.call(garbage, 20261122, lease, 600)
    world.wait(lambda: box.probe("connect", "allowed.test")["got"].startswith("ok"),
               "what is allowed")
    equal(world.case.child(box.process, "gate"), gate)


# --- the ends of what began above ------------------------------------------------------


def ended_slow():
    """Waits until one that had said half a head is ended."""
    slow[0].settimeout(25)
    try:
        while slow[0].recv(4096):
            pass
    except OSError:
        pass
    for s in slow:
        s.close()


@row("R4")
def slow_ones_have_ended(world):
    """Later: those without a whole first message were ended and recorded."""
    box = world.box(SLOW)
    box.call(ended_slow)
    world.wait(lambda: any(r.get("status_code") == "timeout" for r in box.log.read()),
               "a time out in the log", 30)
    box.allowed("connect", "allowed.test")


@row("R1")
def a_session_without_ledger_has_ended(world):
    """Later: it ended as failed, and nothing of it has left."""
    box = world.ledgerless
    world.wait(lambda: box.process.poll() is not None, "the end of the session")
    equal(box.process.returncode, 125)
    gone(world, box)
