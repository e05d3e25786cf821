# SPDX-License-Identifier: Apache-2.0
"""A name server in the internet of the lab that answers as a row wants.

    fdns = Fdns(world)                 # on Fdns.ADDRESS, UDP and TCP
    fdns.answer = lambda q: reply(q, [a(q.name, "93.184.216.34")])

`answer` gets a Question and returns a message, None for silence, or a list of
messages; questions are kept in `asked`. A policy names it as its upstream:
`dns: {upstream: [93.184.216.55]}`.

Who asks waits two seconds, and then asks once more: if we, or the machine, were
so slow, that is the same question, is marked as `again`, and not in `asked`.
"""
import collections
import socket
import struct
import threading
import time

Question = collections.namedtuple("Question", "id name kind raw end tcp peer again")

SO_TIMESTAMPNS = 35
LATE = 1  # seconds: our answer was perhaps not waited for
CROSSED = 0.5  # what was asked again when we answered comes within them


def wire_name(text):
    return b"".join(bytes([len(x)]) + x.encode("latin-1")
                    for x in text.split(".") if x) + b"\0"


def question(data, tcp, peer):
    at, labels = 12, []
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
        at += 1 + data[at]
    kind, = struct.unpack(">H", data[at + 1:at + 3])
    return Question(data[:2], ".".join(labels), kind, data, at + 5, tcp, peer, False)


def rr(name, kind, rdata, ttl=60):
    return wire_name(name) + struct.pack(">HHIH", kind, 1, ttl, len(rdata)) + rdata


def a(name, ip, ttl=60):
    return rr(name, 1, socket.inet_aton(ip), ttl)


def aaaa(name, ip, ttl=60):
    return rr(name, 28, socket.inet_pton(socket.AF_INET6, ip), ttl)


def cname(name, to, ttl=60):
    return rr(name, 5, wire_name(to), ttl)


def reply(q, answers=(), rcode=0, flags=0x8180, id=None, asked=None):
    return ((id or q.id) + struct.pack(">5H", flags | rcode, 1, len(answers), 0, 0)
            + (asked or q.raw[12:q.end]) + b"".join(answers))


class Fdns:
    ADDRESS = "93.184.216.55"

    def __init__(self, world):
        self.answer = lambda q: reply(q, rcode=3)
        self.asked, self.answered = [], {}
        world.address(self.ADDRESS)
        self.udp = world.outside(self.bind)
        threading.Thread(target=self.loop, daemon=True).start()
        world.serve(self.ADDRESS, 53, self.stream)

    def bind(self):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        s.bind((self.ADDRESS, 53))
        return s

    def messages(self, q):
        if not q.again:
            self.asked.append(q)
        said = self.answer(q)
        return said if isinstance(said, list) else [said] if said else []

    def again(self, q, came):
        """Was it asked before, and answered too late to be believed?"""
        before, then = self.answered.get((q.name.lower(), q.kind), (0, 0))
        return then - before > LATE and came < then + CROSSED

    def loop(self):
        while True:
            data, extra, _, peer = self.udp.recvmsg(4096, socket.CMSG_SPACE(16))
            seconds, ns = struct.unpack("qq", extra[0][2])
            came = seconds + ns / 1e9
            q = question(data, False, peer)
            q = q._replace(again=self.again(q, came))
            for m in self.messages(q):
                self.udp.sendto(m, peer)
            self.answered[q.name.lower(), q.kind] = came, time.time()

    def stream(self, c):
        while size := c.recv(2, socket.MSG_WAITALL):
            data = c.recv(struct.unpack(">H", size)[0], socket.MSG_WAITALL)
            for m in self.messages(question(data, True, None)):
                c.sendall(struct.pack(">H", len(m)) + m)
