# SPDX-License-Identifier: Apache-2.0
"""Everything that leaves the machine, as it leaves: a packet socket at the
uplink. A packet is in it before send() of whoever sent it returns."""
import collections
import socket
import struct

PACKET_OUTGOING, SOL_PACKET, PACKET_STATISTICS, SO_RCVBUFFORCE = 4, 263, 6, 33

Seen = collections.namedtuple("Seen", "kind to port what data source seq",
                              defaults=(0,))


def dns_name(data):
    at, labels = 12, []
    while at < len(data) and 0 < data[at] < 64:
        labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
        at += 1 + data[at]
    return ".".join(labels)


class Uplink:
    def __init__(self, interface="up0"):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                    socket.htons(3))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 128 << 20)
        self.socket.bind((interface, 0))
        self.socket.setblocking(False)
        self.seen, self.old = [], set()

    def read(self):
        """Takes what has left since the last time."""
        new = []
        while True:
            try:
                data, where = self.socket.recvfrom(65536)
            except BlockingIOError:
                break
            packet = parse(data) if where[2] == PACKET_OUTGOING else None
            if packet:
                new.append(packet)
        lost = struct.unpack("II", self.socket.getsockopt(
            SOL_PACKET, PACKET_STATISTICS, 8))[1]
        if lost:
            raise AssertionError(f"the capture lost {lost} packets")
        self.seen += new
        return new

    def forget(self):
        self.mark()
        self.seen.clear()

    def mark(self):
        """What belongs to flows and questions of before is no news from here on:
        what is under way may end late, or be asked once more."""
        self.read()
        self.old.update(of(p) for p in self.seen)

    def since(self):
        """What has left since the last time, of what was not before the mark."""
        return [p for p in self.read() if of(p) not in self.old]


def of(packet):
    """The flow or question that a packet is of."""
    return (packet.to, packet.what) if packet.what else (
        packet.to, packet.port, packet.source)


def parse(frame):
    kind, = struct.unpack(">H", frame[12:14])
    if kind == 0x800:
        at = 14 + (frame[14] & 15) * 4
        proto, to = frame[23], socket.inet_ntoa(frame[30:34])
    elif kind == 0x86DD:
        at, proto = 54, frame[20]
        to = socket.inet_ntop(socket.AF_INET6, frame[38:54])
    elif kind == 0x806:
        return None  # whose is the next hop: the kernel's
    else:
        return Seen(f"ether {kind:#x}", "", 0, "", frame[14:], 0)
    body = frame[at:]
    if proto in (6, 17):
        source, port = struct.unpack(">HH", body[:4])
    if proto == 6:
        kind = "syn" if body[13] & 0x12 == 2 else "tcp"
        return Seen(kind, to, port, "", body[(body[12] >> 4) * 4:], source,
                    struct.unpack(">I", body[4:8])[0])
    if proto == 17:
        return Seen("udp", to, port, dns_name(body[8:]) if port == 53 else "",
                    body[8:], source)
    # A neighbour solicited, a router asked for, a group joined: the kernel's.
    hop_by_hop = proto == 0 and body[0] == 58
    if proto == 58 and 133 <= body[0] <= 137 or hop_by_hop:
        return None
    return Seen(f"proto {proto}", to, 0, "", body, 0)


def news(packets):
    """Those that begin something; the rest is of flows that were begun, of which
    what carries data is of interest by what it says."""
    return [p for p in packets if p.kind != "tcp"]


def said(packets):
    """How many bytes each TCP flow said, by its source port; what was said again
    counts once."""
    ends = collections.defaultdict(list)
    for p in packets:
        if p.kind in ("tcp", "syn") and p.data:
            ends[p.source].append((p.seq, len(p.data)))
    return {port: max((seq - pieces[0][0]) % 2 ** 32 + size for seq, size in pieces)
            for port, pieces in ends.items()}
