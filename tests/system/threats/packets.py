# SPDX-License-Identifier: Apache-2.0
"""Frames on a sandbox's link that no socket of it sends, by a packet socket of
this process in the sandbox's namespace; and the counters that they meet."""
import json
import os
import socket
import struct
import subprocess
import time

from frame import check
from harness import descendants, networks
from netns import in_netns


# --- frames -------------------------------------------------------------------


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total ^ 0xffff


def ip4(src, dst, proto, body=b"", ident=1, frag=0, ttl=64, options=b""):
    words = 5 + len(options) // 4
    head = struct.pack(">BBHHHBBH4s4s", 0x40 | words, 0,
                       words * 4 + len(body), ident, frag, ttl, proto, 0,
                       socket.inet_aton(src), socket.inet_aton(dst)) + options
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + body


def pseudo(src, dst, proto, size):
    return (socket.inet_aton(src) + socket.inet_aton(dst) +
            struct.pack(">2H", proto, size))


def udp4(src, dst, sport, dport, data=b"", proto=17, **more):
    head = struct.pack(">4H", sport, dport, 8 + len(data), 0)
    sum_ = checksum(pseudo(src, dst, proto, 8 + len(data)) + head + data)
    return ip4(src, dst, proto, head[:6] + struct.pack(">H", sum_ or 0xffff) +
               data, **more)


def tcp4(src, dst, sport, dport, flags=2, data=b"", seq=7, ack=0, options=b"",
         urgent=0, **more):
    words = 5 + len(options) // 4
    head = struct.pack(">2H2I2BHHH", sport, dport, seq, ack, words << 4, flags,
                       8192, 0, urgent) + options
    sum_ = checksum(pseudo(src, dst, 6, len(head) + len(data)) + head + data)
    return ip4(src, dst, 6, head[:16] + struct.pack(">H", sum_) + head[18:] + data,
               **more)


def icmp4(src, dst, kind, code, rest=b"\0" * 4, **more):
    head = struct.pack(">BBH", kind, code, 0) + rest
    return ip4(src, dst, 1, head[:2] + struct.pack(">H", checksum(head)) + head[4:],
               **more)


def ip6(src, dst, next_header, body):
    return struct.pack(">IHBB", 6 << 28, len(body), next_header, 64) + \
        socket.inet_pton(socket.AF_INET6, src) + \
        socket.inet_pton(socket.AF_INET6, dst) + body


class Wire:
    """A sandbox's end of its link, and the gateway's counters."""
    HERE, GATEWAY = "198.19.0.2", "198.19.0.1"

    def __init__(self, box):
        self.box = box
        self.warden = warden(box)
        self.sandbox, self.gateway = namespaces(self.warden)
        self.socket = in_netns(self.sandbox, self.open)
        self.mac = self.socket.getsockname()[4]
        link, = json.loads(self.tool(self.gateway, "ip", "-j", "link", "show",
                                     "type", "veth"))
        self.peer = bytes.fromhex(link["address"].replace(":", ""))

    def open(self):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        s.bind(("eth0", 0))
        return s

    def tool(self, where, *argv):
        run = subprocess.run(["nsenter", "--net=" + where, *argv], text=True,
                             capture_output=True)
        check(run.returncode == 0, argv, run.stderr)
        return run.stdout

    def send(self, body, kind=0x800, to=None, source=None):
        self.socket.send((to or self.peer) + (source or self.mac) +
                         struct.pack(">H", kind) + body)

    def heard(self):
        """Frames that came from the other end since the last time."""
        found = []
        while True:
            try:
                data, where = self.socket.recvfrom(65536, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return found
            if where[2] != 4:  # PACKET_OUTGOING
                found.append(data)

    def answers(self, port):
        """IPv4 of it, but for segments of flows that have nothing to do with this
        port: the gate may end those late."""
        def other(f):
            at = 14 + (f[14] & 15) * 4
            return f[23] == 6 and port not in struct.unpack(">2H", f[at:at + 4])
        return [f for f in self.heard() if f[12:14] == b"\x08\0" and not other(f)]

    def again(self):
        """SYNs that the sandbox's kernel has sent once more."""
        names, values = [line.split() for line in self.tool(
            self.sandbox, "cat", "/proc/net/netstat").splitlines()
            if line.startswith("TcpExt:")]
        return int(values[names.index("TCPSynRetrans")])

    def counters(self):
        said = json.loads(self.tool(self.gateway, "nft", "-j", "list", "counters"))
        return {x["counter"]["name"]: x["counter"]["packets"]
                for x in said["nftables"] if "counter" in x}

    def counted(self, **more):
        """A context: the counters rise by this much, and no other does."""
        return Counted(self, more)


class Counted:
    def __init__(self, wire, more):
        self.wire, self.more = wire, more

    def __enter__(self):
        return self.begin()

    def __exit__(self, kind, *_):
        if not kind:
            self.end(**self.more)

    def begin(self):
        self.before, self.again = self.wire.counters(), self.wire.again()
        return self

    def end(self, **more):
        # What is on the link may not have met the rules yet.
        end = time.monotonic() + 20
        while (rise := self.rise()) != (want := self.want(more)) and \
                time.monotonic() < end and all(n <= want.get(k, 0) for k, n in rise.items()):
            time.sleep(0.02)
        check(rise == want, "counted", rise, "not", want)

    def want(self, more):
        """A SYN that was not refused soon is sent, and counted, again."""
        if "refused" not in more:
            return more
        return more | {"refused": more["refused"] + self.wire.again() - self.again}

    def rise(self):
        after = self.wire.counters()
        return {k: after[k] - self.before[k] for k in after
                if after[k] != self.before[k]}


def warden(box):
    """The process that holds the namespaces."""
    gate = box.case.child(box.process, "gate")
    with open(f"/proc/{gate}/status") as f:
        return int([line for line in f if line.startswith("PPid:")][0].split()[1])


def namespaces(pid):
    """The sandbox's, and the gateway's, in which nobody is."""
    inside = {os.readlink(f"/proc/{p}/ns/net") for p in descendants(pid)
              if alive(p)} - {os.readlink("/proc/self/ns/net")}
    found = {name in inside: path for name, path in networks(pid).items()}
    check(sorted(found) == [False, True], found, inside)
    return found[True], found[False]


def alive(pid):
    return os.path.exists(f"/proc/{pid}/ns/net")


def wire(box):
    """One a sandbox."""
    if not hasattr(box, "wire"):
        box.wire = Wire(box)
    return box.wire


# --- what a sandbox can try ------------------------------------------------------


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


def readable(paths):
    said = []
    for path in paths:
        try:
            if os.path.isdir(path):
                os.listdir(path)
            elif not open(path, "rb").read(1):
                continue
            said.append(path)
        except OSError:
            pass
    return said


# --- what comes of them --------------------------------------------------------


def dial_all(where, source=None, timeout=30):
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
