# SPDX-License-Identifier: Apache-2.0
"""Packets past the proxy: what sockets of a sandbox send, and what its kernel
never would."""
import json
import os
import socket
import struct
import subprocess

from fdns import wire_name
from frame import check, equal, row
from lab import EVIL, GOOD
from packets import (checksum, dial_all, icmp4, ip4, ip6, logged, odd_sockets,
                     packets_to, tcp4, udp4, wire)

HERE, GATEWAY = "198.19.0.2", "198.19.0.1"
ANY = ["8.8.8.8", EVIL, GOOD, "203.0.113.1", "203.0.113.2", "10.0.0.1",
       "169.254.169.254", "198.18.200.1", "198.19.0.6", "100.64.0.1"]


# --- L1, L5: TCP -----------------------------------------------------------------


@row("L1")
def tcp_to_any_address(world):
    """443, 80, 22, 853, 6667 and 0-65535's ends, at addresses of all kinds: each
    is refused at once, counted and recorded."""
    box = world.box()
    box.quiet()
    where = [(ip, port) for ip in ANY for port in (443, 80, 22, 853, 6667, 1, 65535)]
    with wire(box).counted(refused=len(where)):
        equal(set(box.call(dial_all, where)), {"Connection refused"})
    box.silent()
    logged(world, box, *ANY)
    box.allowed("sni", "allowed.test")


@row("L5")
def exceptions_that_are_common(world):
    """SSH to anywhere, and TCP and UDP from the source ports that answers have
    (53, 443, 22), by a socket and as frames: refused like all else."""
    box = world.box()
    w = wire(box)
    box.quiet()
    equal(set(box.call(dial_all, [(ip, 22) for ip in ANY])), {"Connection refused"})
    with w.counted(refused=2 * 3 * 3):
        for ip in EVIL, "8.8.8.8", "203.0.113.1":
            for source in 53, 443, 22:
                w.send(udp4(HERE, ip, source, 4444, b"c2VjcmV0"))
                w.send(tcp4(HERE, ip, source, 22))
    box.silent()


# --- L2, L9: IPv6 ------------------------------------------------------------------


@row("L2")
def ipv6(world):
    """The uplink has IPv6 and so have allowed hosts; a sandbox has neither an
    address nor a route, and frames with IPv6 (TCP, UDP, 53, mapped, extension
    headers) are dropped and counted."""
    box = world.box()
    w = wire(box)
    box.quiet()
    said = box.call(dial_all, [(ip, 443) for ip in (
        "2606:2800:220:1::34", "2001:db8:1::1", "fe80::1", "::ffff:8.8.8.8", "::1")])
    check("connected" not in said, said)
    equal(w.tool(w.sandbox, "ip", "-6", "addr"), "")
    check("fe80" not in w.tool(w.gateway, "ip", "-6", "addr"))
    frames = [ip6("2001:db8::2", to, proto, body) for to in (
        "2606:2800:220:1::34", "fe80::1", "ff02::1", "2001:db8:1::2") for proto, body in (
            (17, struct.pack(">4H", 53, 53, 16, 0) + b"secret!!"),
            (6, struct.pack(">2H2I2B3H", 5, 443, 1, 0, 0x50, 2, 9, 0, 0)),
            (0, b"\x06\0\1\4\0\0\0\0" + b"x" * 20), (44, b"\x11\0\0\1\0\0\0\1" + b"y" * 16),
            (43, b"\x06\2\0\1" + b"\0" * 20 + b"z" * 20), (59, b""))]
    with w.counted(ipv6=len(frames)):
        for f in frames:
            w.send(f, 0x86dd)
    box.silent()


@row("L9")
def rogue_routers_and_neighbours(world):
    """Router advertisements, redirects and neighbour advertisements, link-local
    and multicast packets: the gateway gets no address, no route and no
    neighbour by them, and joins nothing."""
    box = world.box()
    w = wire(box)
    before = [w.tool(w.gateway, "ip", *what) for what in (
        ("-6", "addr"), ("-6", "route"), ("neigh",), ("route",))]
    box.quiet()
    prefix = struct.pack(">BBBBIII", 3, 4, 64, 0xc0, 86400, 86400, 0) + \
        socket.inet_pton(socket.AF_INET6, "2001:db8:66::")
    lladdr = b"\2\1" + w.mac
    frames = []
    for kind, rest in ((134, struct.pack(">BBHII", 64, 0xc0, 9000, 0, 0) + prefix + lladdr),
                       (136, b"\xe0\0\0\0" + socket.inet_pton(socket.AF_INET6, "fe80::1") + lladdr),
                       (137, b"\0" * 4 + b"\xfe\x80" + b"\0" * 14 + b"\x20\1" + b"\0" * 14),
                       (135, b"\0" * 4 + socket.inet_pton(socket.AF_INET6, "fe80::1")),
                       (133, b"\0" * 4)):
        for to in "ff02::1", "ff02::2", "fe80::1":
            body = bytes([kind, 0, 0, 0]) + rest
            head = socket.inet_pton(socket.AF_INET6, "fe80::66") + socket.inet_pton(
                socket.AF_INET6, to) + struct.pack(">II", len(body), 58)
            body = body[:2] + struct.pack(">H", checksum(head + body)) + body[4:]
            frames.append((to, ip6("fe80::66", to, 58, body)))
    with w.counted(ipv6=len(frames)):
        for to, f in frames:
            w.send(f, 0x86dd, to=b"\x33\x33\0\0\0\1" if to[:2] == "ff" else None)
    with w.counted(refused=4):
        for ip in "224.0.0.1", "224.0.0.22", "239.255.255.250", "224.0.0.251":
            w.send(udp4(HERE, ip, 5353, 5353, b"secret"),
                   to=b"\1\0\x5e" + socket.inet_aton(ip)[1:])
    equal([w.tool(w.gateway, "ip", *what) for what in (
        ("-6", "addr"), ("-6", "route"), ("neigh",), ("route",))], before)
    box.silent()
    box.allowed("connect", "allowed.test")


# --- L3, L4: other protocols -----------------------------------------------------------


def udp_ways(addresses, quic):
    """Connected, unconnected, from many sockets, in one call for many, as GSO:
    how many got through to send(), and how many answers came."""
    sent, got = 0, 0
    socks = []
    for ip in addresses:
        for port in (443, 4500, 123, 53530, 9):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.settimeout(0.05)
            socks.append(s)
            for how in ("sendto", "connect", "sendmsg", "gso"):
                try:
                    if how == "sendto":
                        s.sendto(quic, (ip, port))
                    elif how == "connect":
                        s.connect((ip, port)), s.send(quic)
                    elif how == "sendmsg":
                        s.sendmsg([quic, b"more"], [], 0, (ip, port))
                    else:
                        s.setsockopt(17, 103, 1200)  # UDP_SEGMENT
                        s.send(quic * 3)
                    sent += 1
                except OSError:
                    pass
    for s in socks:
        try:
            s.recv(100)
            got += 1
        except OSError:
            pass
    return sent, got


@row("L3")
def udp_of_any_kind(world):
    """QUIC's first packet to 443, NTP, IPsec, connected or not, in segments the
    kernel splits; also to an address leased for an allowed name: nothing goes
    out or comes back, and it is counted."""
    box = world.box()
    w = wire(box)
    lease, = box.allowed("dns", "allowed.test")["answers"]
    box.quiet()
    before = w.counters()
    sent, got = box.call(udp_ways, [*ANY[:4], lease, GATEWAY], b"\xc3\0\0\0\1\x08" + b"q" * 1194)
    check(sent >= 30, sent)
    equal(got, 0)
    # All of them, for no later row to count one.
    world.wait(lambda: w.counters()["refused"] - before["refused"] >= sent,
               lambda: f"{sent} refused: {before} {w.counters()}")
    box.silent()
    logged(world, box, lease, EVIL)


@row("L4")
def protocols_that_are_neither(world):
    """ICMP echo and errors, IGMP, IPIP, IPv6 in IP, GRE, ESP, AH, SCTP, DCCP,
    UDP-Lite, PIM, VRRP, L2TP, unknown ones, with EVIL's packet within: all are
    refused, counted and recorded."""
    box = world.box()
    w = wire(box)
    box.quiet()
    within = udp4(EVIL, EVIL, 53, 53, b"c2VjcmV0")
    bodies = {2: b"\x16\0\0\0\xe0\0\0\x16", 4: within, 41: ip6("::1", "::2", 59, b""),
              47: b"\0\0\x08\0" + within, 50: b"\0\0\0\1" * 4, 51: b"\x11\4\0\0" * 4,
              132: struct.pack(">2H2I", 5, 80, 0, 0) + b"\1\0\0\x14" + b"x" * 16,
              33: struct.pack(">2H", 5, 80) + b"\0" * 12, 103: b"\x20\0\0\0",
              112: b"\x21\1\1\1" * 4, 115: b"\0\0\0\1" * 2, 0: b"", 61: b"x", 253: b"y" * 9,
              255: b"z"}
    frames = [ip4(HERE, to, proto, body) for proto, body in bodies.items()
              for to in (EVIL, "8.8.8.8")]
    frames += [icmp4(HERE, EVIL, kind, code, b"\0\0\0\1" + b"c2VjcmV0" * 8)
               for kind, code in ((8, 0), (0, 0), (13, 0), (17, 0), (42, 0), (3, 4), (5, 1))]
    before = packets_to(box, EVIL)[EVIL]
    with w.counted(refused=len(frames)):
        for f in frames:
            w.send(f)
    box.silent()
    world.wait(lambda: packets_to(box, EVIL)[EVIL] - before >= len(bodies) + 7,
               "their records")


@row("L4")
def sockets_for_them(world):
    """ICMP (also without rights), raw, SCTP, DCCP, UDP-Lite, L2TP, packet and
    vsock sockets: a sandbox can make none."""
    equal(world.box().call(odd_sockets), [])


# --- L6, L19: who has the rules ---------------------------------------------------------


@row("L6")
def rules_of_its_own(world):
    """Root in the sandbox's network namespace flushes all rules there, accepts
    everything and rewrites destinations: our rules lie elsewhere."""
    box = world.box("allow: [allowed.test]\n")
    w = wire(box)
    box.quiet()
    w.tool(w.sandbox, "nft", "flush", "ruleset")
    w.tool(w.sandbox, "nft", "add table ip n; add chain ip n o { type nat hook output "
           "priority -100; policy accept; }; add rule ip n o ip daddr 8.8.4.4 "
           f"dnat to {EVIL}")
    try:
        where = [(ip, 443) for ip in (*ANY, "8.8.4.4")]
        with w.counted(refused=len(where)):
            check("connected" not in box.call(dial_all, where))
        box.silent()
        logged(world, box, EVIL, "8.8.8.8")
    finally:
        w.tool(w.sandbox, "nft", "flush", "ruleset")
    box.allowed("sni", "allowed.test")


@row("L19", who=("root",))
def a_manager_that_flushes(world):
    """All rules of the machine's namespace go, and then those of the gateway's:
    the first changes nothing, the second is put back and told as a finding;
    meanwhile nothing gets out."""
    box = world.box("allow: [allowed.test, other.test]\n")
    w = wire(box)
    box.quiet()
    subprocess.run(["nft", "flush", "ruleset"], check=True)
    with w.counted(refused=len(ANY)):
        check("connected" not in box.call(dial_all, [(ip, 443) for ip in ANY]))
    w.tool(w.gateway, "nft", "flush", "ruleset")
    for _ in range(20):
        said = box.call(dial_all, [(ip, 443) for ip in ANY[:3]], None, 0.05)
        check("connected" not in said, said)
    box.silent()
    world.wait(lambda: any(r["class_uid"] == 2004 for r in box.log.read()), "a finding")
    world.wait(lambda: box.probe("connect", "allowed.test")["got"].startswith("ok"),
               "what is allowed")
    check(w.counters(), "rules")
    with w.counted(refused=len(ANY)):
        check("connected" not in box.call(dial_all, [(ip, 443) for ip in ANY]))


# --- L7, L8, L10: who sends --------------------------------------------------------------


@row("L7")
def sources_of_others(world):
    """Frames from the gateway's address, another sandbox's, the uplink's, a
    leased one, loopback, 0.0.0.0, multicast: DNS, SYN, UDP and ICMP of them are
    dropped as spoofed and answered to nobody."""
    box = world.box()
    w = wire(box)
    lease, = box.allowed("dns", "allowed.test")["answers"]
    sources = [GATEWAY, "198.19.0.3", "198.19.0.6", "203.0.113.2", EVIL, lease, "10.0.0.1",
               "127.0.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255"]
    question = (b"\0\7\1\0\0\1\0\0\0\0\0\0" + wire_name("allowed.test") + b"\0\1\0\1")
    w.heard()
    box.quiet()
    with w.counted(spoofed=5 * len(sources)):
        for ip in sources:
            w.send(udp4(ip, GATEWAY, 5555, 53, question))
            w.send(udp4(ip, "8.8.8.8", 5555, 53, question))
            w.send(tcp4(ip, lease, 5555, 443))
            w.send(tcp4(ip, GATEWAY, 5555, 3128))
            w.send(icmp4(ip, GATEWAY, 8, 0))
    box.silent()
    equal(w.answers(5555), [])
    world.wait(lambda: any("forged" in json.dumps(r) or "spoof" in json.dumps(r)
                           for r in box.log.read() if r["unmapped"]["event"] == "packet"),
               "a record")


def arp(op, mac, ip, to_mac, to_ip):
    return struct.pack(">HHBBH", 1, 0x800, 6, 4, op) + mac + socket.inet_aton(ip) + \
        to_mac + socket.inet_aton(to_ip)


@row("L8")
def below_ip(world):
    """Gratuitous ARP for the gateway's, the sandbox's and foreign addresses, other
    MACs, broadcast frames, VLAN tags once and twice, MPLS, PPPoE, LLDP, STP and
    802.3 frames: no neighbour changes, nothing answers for another address,
    nothing passes, flows go on."""
    box = world.box()
    w = wire(box)
    neighbours = w.tool(w.gateway, "ip", "neigh")
    check("PERMANENT" in neighbours, neighbours)
    other, all_ = b"\2\0\0\0\6\6", b"\xff" * 6
    w.heard()
    box.quiet()
    for op in 1, 2:
        for ip in GATEWAY, HERE, "198.19.0.6", "203.0.113.1", EVIL:
            for to in all_, w.peer:
                w.send(arp(op, other, ip, to, GATEWAY), 0x806, to=to, source=other)
                w.send(arp(op, other, ip, all_, ip), 0x806, to=to)
    inner = struct.pack(">H", 0x800) + udp4(HERE, EVIL, 5, 53, b"c2VjcmV0")
    for kind, body in ((0x8100, b"\0\5" + inner), (0x88a8, b"\0\5\x81\0\0\6" + inner),
                       (0x8847, b"\0\0\x11\xff" + inner[2:]), (0x8863, b"\x11\x09\0\0\0\0"),
                       (0x88cc, b"\2\7\4" + w.mac), (40, b"\x42\x42\3" + b"\0" * 35),
                       (0x88e5, b"x" * 40), (0x9000, b"\0" * 46), (0x8035, b"\0" * 28)):
        for to in w.peer, all_, b"\1\x80\xc2\0\0\0":
            w.send(body, kind, to=to)
    with w.counted(refused=2):
        w.send(udp4(HERE, EVIL, 5, 53), to=all_)
        w.send(udp4(HERE, "8.8.8.8", 5, 9), source=other)
    equal(w.tool(w.gateway, "ip", "neigh"), neighbours)
    lies = [f for f in w.heard() if f[12:14] == b"\x08\6" and f[21] == 2
            and f[28:32] != socket.inet_aton(GATEWAY)]
    equal(lies, [])
    box.silent()
    box.allowed("sni", "allowed.test")
    box.allowed("dns", "allowed.test")


@row("L10")
def loopback_on_the_wire(world):
    """127/8 and 0/8 as destination (TCP and UDP, DNS and proxy ports) and as
    source: dropped; the gateway's own loopback answers nobody."""
    box = world.box()
    w = wire(box)
    w.heard()
    box.quiet()
    to = ["127.0.0.1", "127.0.0.53", "127.255.255.255", "0.0.0.0", "0.1.2.3"]
    with w.counted(refused=4 * len(to), spoofed=2 * len(to)):
        for ip in to:
            for port in 53, 3128:
                w.send(tcp4(HERE, ip, 7777, port))
                w.send(udp4(HERE, ip, 7777, port, b"x" * 20))
            w.send(tcp4(ip, GATEWAY, 7777, 3128))
            w.send(udp4(ip, GATEWAY, 7777, 53, b"x" * 20))
    equal(w.answers(7777), [])
    box.silent()


