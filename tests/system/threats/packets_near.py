# SPDX-License-Identifier: Apache-2.0
"""Packets to what is near: the host's services, clouds' metadata, other
sandboxes; packets in pieces and of no flow."""
import os
import socket
import struct

from fdns import wire_name
from frame import FLOW_DOORS, check, equal, row
from lab import EVIL
from packets import dial_all, ip4, logged, tcp4, udp4, wire

HERE, GATEWAY = "198.19.0.2", "198.19.0.1"


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
                    ready = waiting.select(30)
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


@row("L11", who=("root",))
def services_of_the_host(world):
    """Servers on every address of this machine, and on all of them: of 1,500
    ports of the gateway only 53 and 3128 take a connection, of the host's
    addresses none but 53, which is our resolver."""
    box = world.box("allow: [other.test]\n")
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
    box = world.box("allow: [metadata.test, private.test]\n")  # few packets yet
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
    with w.counted(refused=2 * len(near), spoofed=4 * len(near)):
        for ip in near:
            for source in HERE, GATEWAY, "198.19.0.6":
                w.send(udp4(source, ip, 5555, 5555, b"c2VjcmV0"))
                w.send(tcp4(source, ip, 5555, 5555))
                w.send(udp4(source, ip, 5555, 5555, b"x"), to=v.mac)
    equal(other.call(heard_there), 0)
    equal(v.answers(5555), [])
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
    counted = w.counted().begin()
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
    counted.end(refused=sent)
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
