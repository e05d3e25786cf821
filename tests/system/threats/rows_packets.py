# SPDX-License-Identifier: Apache-2.0
"""Packets past the proxy: what sockets of a sandbox send, and what its kernel
never would."""
import json
import os
import socket
import struct
import subprocess

from frame import FLOW_DOORS, check, equal, row
from lab import EVIL, GOOD
from fdns import wire_name
from packets import checksum, icmp4, ip4, ip6, tcp4, udp4, wire

HERE, GATEWAY = "198.19.0.2", "198.19.0.1"
ANY = ["8.8.8.8", EVIL, GOOD, "203.0.113.1", "203.0.113.2", "10.0.0.1",
       "169.254.169.254", "198.18.200.1", "198.19.0.6", "100.64.0.1"]


def dial_all(where, source=None, timeout=2):
    """What becomes of a connection to each."""
    said = []
    for host, port in where:
        s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        s.settimeout(timeout)
        try:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if source:
                s.bind(("", source))
            s.connect((host, port))
            s.sendall(b"c2VjcmV0")
            said.append("connected")
        except OSError as e:
            said.append(type(e).__name__ if e.errno is None else os.strerror(e.errno))
        s.close()
    return said


def packets_to(box, *ips):
    """How many packets the log has to each, folded ones counted."""
    found = dict.fromkeys(ips, 0)
    for r in box.log.read():
        ip = r.get("dst_endpoint", {}).get("ip")
        if r["unmapped"]["event"] == "packet" and ip in found:
            found[ip] += r.get("count", 1)
            check(r["action_id"] == 2 and r["status_code"] in ("bypass", "protocol"), r)
    return found


def logged(world, box, *ips):
    world.wait(lambda: all(packets_to(box, *ips).values()),
               lambda: f"records of packets: {packets_to(box, *ips)}")


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
    check(w.counters()["refused"] - before["refused"] >= 30, before, w.counters())
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


def odd_sockets():
    made = []
    for family, kind, proto in ((2, 3, 1), (2, 2, 1), (10, 2, 58), (2, 3, 255), (2, 5, 132),
                                (2, 1, 132), (2, 6, 33), (2, 2, 136), (2, 3, 47), (2, 3, 4),
                                (2, 2, 115), (17, 3, 3), (17, 2, 8), (40, 1, 0), (38, 5, 0)):
        try:
            socket.socket(family, kind, proto).close()
            made.append((family, kind, proto))
        except OSError:
            pass
    return made


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


@row("L19")
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
    equal([f for f in w.heard() if f[12:14] == b"\x08\0"], [])
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
    equal([f for f in w.heard() if f[12:14] == b"\x08\0"], [])
    box.silent()


# --- L11, L12, L13: what is near ---------------------------------------------------------


def open_ports(hosts, ports):
    """Those that take a connection."""
    import errno, selectors
    found, waiting, odd = [], selectors.DefaultSelector(), set()
    for host in hosts:
        for port in ports:
            s = socket.socket()
            s.setblocking(False)
            error = s.connect_ex((host, port))
            if error == errno.EINPROGRESS:
                waiting.register(s, 2, (host, port))
            elif not error:
                found.append((host, port))
            if len(waiting.get_map()) > 500 or port == ports[-1]:
                while waiting.get_map():
                    ready = waiting.select(3)
                    if not ready:
                        raise OSError(f"silence from {host}")
                    for key, _ in ready:
                        error = key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                        if not error:
                            found.append(key.data)
                        elif error != errno.ECONNREFUSED:
                            odd.add((key.data, error))
                        waiting.unregister(key.fileobj)
                        key.fileobj.close()
    return found, sorted(odd)


@row("L11")
def services_of_the_host(world):
    """Servers on every address of this machine, and on all of them: of 1,500
    ports of the gateway only 53 and 3128 take a connection, of the host's
    addresses none but 53, which is our resolver."""
    box = world.box()
    servers = []
    for where in ("203.0.113.2", 22), ("0.0.0.0", 8099), ("127.0.0.1", 2375), ("0.0.0.0", 3128):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(where)
        s.listen()
        s.setblocking(False)
        servers.append(s)
    box.quiet()
    ports = [*range(1, 1025), 1080, 1433, 2049, 2375, 2376, 2379, 3000, 3128, 3129, 3306,
             4194, 5000, 5432, 6379, 6443, 8000, 8080, 8081, 8099, 8443, 9090, 9100, 9200,
             10250, 10255, 11211, 11434, 27017, *range(40000, 40400), 57344, 61439, 65535]
    found, odd = box.call(open_ports, [GATEWAY], ports)
    equal((sorted(p for _, p in found), odd), ([53, 3128], []))
    found, odd = box.call(open_ports, ["203.0.113.2", "203.0.113.1", "198.19.0.3", "198.19.0.5"],
                          [22, 53, 80, 443, 2375, 3128, 8099])
    equal({p for _, p in found}, {53})
    box.silent()
    for s in servers:
        try:
            check(False, "reached:", s.accept())
        except BlockingIOError:
            s.close()
    for door in "connect", "socks":
        for name in "203.0.113.2", "127.0.0.1", "198.19.0.1":
            box.denied(door, name, "literal_address", port=8099)


METADATA = ["169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200",
            "192.0.0.192"]


@row("L12")
def metadata_directly(world):
    """The metadata services of clouds by address, at 80, 443 and 32526."""
    box = world.box()
    box.quiet()
    where = [(ip, port) for ip in METADATA for port in (80, 443, 32526)]
    with wire(box).counted(refused=len(where)):
        equal(set(box.call(dial_all, where)), {"Connection refused"})
    check("connected" not in box.call(dial_all, [("fd00:ec2::254", 80)]))
    box.silent()
    logged(world, box, *METADATA)


@row("L12", doors=FLOW_DOORS)
def metadata_by_the_proxy(world, door):
    """The same by address and by name, through each door."""
    box = world.box()
    if door in ("sni", "host"):
        for name in "metadata.test", "metadata.google.internal":
            box.denied(door, name, "name_mismatch")
        return
    for name in METADATA if door == "socks" else [*METADATA, "[fd00:ec2::254]"]:
        box.denied(door, name, "literal_address")
    for name in "metadata.google.internal", "instance-data":
        box.denied(door, name, "not_in_policy")
    named = world.box("allow: [metadata.test, private.test]\n")
    for name in "metadata.test", "private.test":
        p = named.probe(door, name)
        check(p["got"] in ("502 forbidden_address", "socks 2"), p["got"])


def listen_for(port):
    global ears
    ears = []
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
        s = socket.socket(socket.AF_INET, kind)
        s.bind(("", port))
        s.setblocking(False)
        if kind == socket.SOCK_STREAM:
            s.listen()
        ears.append(s)


def heard_there():
    got = 0
    for s in ears:
        try:
            s.accept() if s.type == socket.SOCK_STREAM else s.recv(100)
            got += 1
        except BlockingIOError:
            pass
    return got


@row("L13")
def one_sandbox_to_another(world):
    """A second sandbox listens on all its addresses; the first one connects and
    sends to every address of the links' range, by sockets and as frames with any
    of them as source: nothing arrives there."""
    box, other = world.box(), world.box("allow: [other.test]\n")
    w, v = wire(box), wire(other)
    check(os.readlink(w.gateway) != os.readlink(v.gateway), "one gateway for both")
    other.call(listen_for, 5555)
    v.heard()
    box.quiet()
    near = [f"198.19.0.{i}" for i in range(3, 20)]
    check("connected" not in box.call(dial_all, [(ip, 5555) for ip in near]))
    for ip in near:
        for source in HERE, GATEWAY, "198.19.0.6":
            w.send(udp4(source, ip, 5555, 5555, b"c2VjcmV0"))
            w.send(tcp4(source, ip, 5555, 5555))
            w.send(udp4(source, ip, 5555, 5555, b"x"), to=v.mac)
    equal(other.call(heard_there), 0)
    equal([f for f in v.heard() if f[12:14] == b"\x08\0"], [])
    box.silent()


# --- L14, L17, L18: pieces, flows, marks ---------------------------------------------------


@row("L14")
def fragments(world):
    """Questions, SYNs and UDP in pieces: whole header first, tiny first piece,
    overlapping, out of order, the last one alone, marked but whole: none is put
    together, each is counted."""
    box = world.box()
    w = wire(box)
    lease, = box.allowed("dns", "allowed.test")["answers"]
    question = (b"\0\7\1\0\0\1\0\0\0\0\0\0" + wire_name("evil.test") + b"\0\1\0\1")
    sent = 0
    w.heard()
    box.quiet()
    before = w.counters()["refused"]
    for to, proto, port in ((GATEWAY, 17, 53), ("8.8.8.8", 17, 53), (lease, 6, 443), (EVIL, 6, 443)):
        make = udp4 if proto == 17 else tcp4
        whole = make(HERE, to, 5555, port, data=question) [20:]
        for cut in 8, 16, 24:
            pieces = [(0x2000, whole[:cut]), (cut // 8, whole[cut:])]
            pieces += [(0x2000, whole[:cut + 8]), (cut // 8, whole[cut:])]  # overlap
            pieces += [(cut // 8, whole[cut:]), (0x2000, whole[:cut])]
            pieces += [(0x3fff, whole[:8]), (0x2001, whole), (0x2000, b"")]
            for frag, body in pieces:
                w.send(ip4(HERE, to, proto, body, ident=sent, frag=frag))
                sent += 1
    equal(w.counters()["refused"] - before, sent)
    box.silent()
    check(not [f for f in w.heard() if f[12:14] == b"\x08\0" and f[23] == 17])
    # An IPv4 header with options, whole: as any other.
    with w.counted(refused=2):
        w.send(tcp4(HERE, EVIL, 5555, 443, options=b"\2\4\5\xb4"))
        w.send(ip4(HERE, EVIL, 6, b"\0" * 20, options=b"\x94\4\0\0"))
    box.allowed("dns", "allowed.test")


@row("L17")
def packets_of_no_flow(world):
    """SYN-ACK, ACK, data, FIN and RST that belong to no connection, to foreign
    addresses and to leased ones: none begins anything outside; the rules were
    there before the link."""
    box = world.box()
    w = wire(box)
    lease, = box.allowed("dns", "allowed.test")["answers"]
    box.quiet()
    flags = (0x12, 0x10, 0x18, 0x11, 0x14, 0x29, 0x00, 0xff, 0xc2)
    with w.counted(refused=2 * len(flags)):
        for f in flags:
            w.send(tcp4(HERE, EVIL, 6000, 443, f, b"c2VjcmV0", ack=9))
            w.send(tcp4(HERE, GATEWAY, 6000, 57400, f, b"c2VjcmV0", ack=9))
    for f in flags[:6]:
        w.send(tcp4(HERE, lease, 6000, 443, f, b"\x16\3\1\0\5hello", ack=9))
    box.silent()
    first = [r["unmapped"]["event"] for r in box.log.read()][:1]
    equal(first, ["session_open"])
    check(box.log.records[0]["unmapped"]["ruleset"].startswith("sha256:"))


def own_options():
    """What setsockopt() lets it have, and what it does with it."""
    had = []
    for what, level, option, value in (
            ("mark", 1, 36, 1), ("transparent", 0, 19, 1), ("recv transparent", 41, 75, 1),
            ("priority", 1, 12, 7), ("rcvbufforce", 1, 33, 1 << 20), ("debug", 1, 1, 1),
            ("mark rcv", 1, 75, 1)):
        s = socket.socket(socket.AF_INET6 if level == 41 else socket.AF_INET)
        try:
            s.setsockopt(level, option, value)
            had.append(what)
        except OSError:
            pass
    said = []
    for device in b"lo", b"eth0", b"up0":
        for target in ("93.184.216.66", "8.8.8.8"):
            s = socket.socket()
            s.settimeout(0.2)
            try:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
                s.connect((target, 443))
                said.append((device, target))
            except OSError:
                pass
    for source in "8.8.8.8", "198.19.0.6", "127.0.0.1":
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            s.setsockopt(0, 15, 1)  # IP_FREEBIND
            s.bind((source, 0))
            s.sendto(b"c2VjcmV0", ("93.184.216.66", 9))
        except OSError:
            pass
    return had, said


@row("L18")
def marks_and_transparent_sockets(world):
    """SO_MARK (the rules' own mark), IP_TRANSPARENT: EPERM; SO_BINDTODEVICE and
    IP_FREEBIND lead nowhere, nor does a higher priority."""
    box = world.box()
    box.quiet()
    had, said = box.call(own_options)
    check(not {"mark", "transparent", "recv transparent", "rcvbufforce"} & set(had), had)
    equal(said, [])
    box.silent()
