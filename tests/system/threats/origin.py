# SPDX-License-Identifier: Apache-2.0
"""A host of the internet that keeps every byte it gets: *.o.test, at 80 and 8080
HTTP, at 443 and 7000 whatever a row wants."""
import struct

from fdns import Fdns, a, reply

IP = "93.184.216.90"
POLICY = """
dns: {upstream: [93.184.216.55]}
allow:
  - {host: "*.o.test", ports: [443, 80, 8080]}
  - {host: "raw.o.test", ports: [7000], protocol: any}
limits: {names_per_wildcard: 2000, dns_per_second: 10000, connections_per_second: 10000}
"""


class Origin:
    def __init__(self, world):
        world.address(IP)
        self.names = Fdns(world)
        self.names.answer = lambda q: reply(q, [a(q.name, IP)] if q.kind == 1 else [])
        self.got, self.said = [], lambda got: b""
        for port in 80, 8080:
            world.serve(IP, port, self.http)
        for port in 443, 7000:
            world.serve(IP, port, self.raw)
        self.world = world

    def forget(self):
        self.got.clear()

    def all(self):
        """Everything that has come, of all connections."""
        return b"\n--\n".join(bytes(g) for g in self.got)

    def http(self, c):
        got = bytearray()
        self.got.append(got)
        at = 0
        while d := c.recv(65536):
            got += d
            if b"\nTransfer-Encoding: chunked" in got and b"\r\n0\r\n\r\n" not in got:
                continue  # to be answered when it is whole
            while (end := got.find(b"\r\n\r\n", at)) >= 0:
                at = end + 4 if b"\nTransfer-Encoding" not in got else len(got)
                c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    def raw(self, c):
        got = bytearray()
        self.got.append(got)
        while d := c.recv(65536):
            got += d
            if answer := self.said(bytes(got)):
                c.sendall(answer)


def origin(world):
    if not hasattr(world, "origin"):
        world.origin = Origin(world)
    world.origin.forget()
    return world.origin, world.box(POLICY)


def hello_retry(session=b""):
    """A HelloRetryRequest (RFC 8446 section 4.1.4) that asks for another group."""
    retry = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
    extensions = (struct.pack(">HHH", 43, 2, 0x0304) + struct.pack(">HHH", 51, 2, 24))
    body = (b"\3\3" + retry + bytes([len(session)]) + session + b"\x13\1\0" +
            struct.pack(">H", len(extensions)) + extensions)
    message = b"\2" + struct.pack(">I", len(body))[1:] + body
    return b"\x16\3\3" + struct.pack(">H", len(message)) + message
