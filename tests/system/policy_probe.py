# SPDX-License-Identifier: Apache-2.0
"""Runs where the sandbox is: tries what a list of probes (JSON, a file) asks
for, each by the door it names, and prints what came back as JSON.

A probe:  door  connect | http | socks | sni | host | dns
          name  of the host, as bytes in latin-1, spelled as the attack has it
          port  of the target (default 443; 80 for http and host)
What came back is a word or two, e.g. "403 not_in_policy", "socks 2",
"alert 49", "NXDOMAIN 15", or "ok" and the first line of the server's answer.
"""
import json
import os
import socket
import ssl
import struct
import sys
import time

RCODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP",
          5: "REFUSED"}
VIA = "allowed.test"  # whose address direct connections go to
TYPES = {"A": 1, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33,
         "HTTPS": 65, "ANY": 255}


class Doors:
    def __init__(self, doors):
        proxy = (os.environ.get("http_proxy") or "//198.19.0.1:3128")
        gateway, port = proxy.split("//")[1].strip("/").split(":")
        self.proxy = tuple(doors.get("proxy") or (gateway, int(port)))
        self.asked = {}  # when it was answered
        self.resolver = tuple(doors.get("dns") or (gateway, 53))
        self.direct_door = {443: doors.get("tls"), 80: doors.get("http")}
        self.known, self.port = {}, 33000
        self.table = {"connect": self.connect, "http": self.absolute,
                      "host": self.host, "socks": self.socks, "sni": self.sni,
                      "dns": self.dns}

    # -- wires --------------------------------------------------------------

    def bind(self, s):
        """From a port of its own, so that its records can be told apart."""
        s.settimeout(20)
        while True:
            self.port += 1
            try:
                s.bind(("", self.port))
                return s
            except OSError:
                if self.port > 60000:
                    raise

    def dial(self, p, where):
        s = self.bind(socket.socket())
        s.settimeout(p.get("timeout", 20))
        p["source"] = self.port
        s.connect(where)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def direct(self, p, port):
        """To the address of @via; under `serve`, to the door for this port."""
        door = self.direct_door.get(port)
        if p.get("to"):
            return self.dial(p, (p["to"], port))
        if door:
            return self.dial(p, tuple(door))
        return self.dial(p, (self.address(p.get("via", "allowed.test")), port))

    def address(self, name):
        """Asked once: what a probe causes is then its own."""
        if name not in self.known:
            reply = self.query(name.encode(), 1)
            if not reply or not reply["addresses"]:
                raise OSError(f"no address for {name}")
            self.known[name] = reply["addresses"][0]
        return self.known[name]

    def warm(self, probes):
        for p in probes:
            if p["door"] in ("sni", "host") and not p.get("to"):
                try:
                    self.address(p.get("via", VIA))
                except OSError:
                    pass  # the probe will say so

    # -- the doors ----------------------------------------------------------

    def connect(self, p):
        name, port = p["name"].encode("latin-1"), str(p.get("port", 443)).encode()
        target = p["target"].encode("latin-1") if "target" in p else name + b":" + port
        s = self.dial(p, self.proxy)
        s.sendall(b"CONNECT " + target + b" HTTP/1.1\r\nHost: " + target +
                  b"\r\n\r\n")
        got = head(s)
        if b" 200 " not in got.split(b"\r\n")[0]:
            return refusal(got + rest(s))
        return self.inside(p, s)

    def socks(self, p):
        name, port = p["name"].encode("latin-1"), p.get("port", 443)
        s = self.dial(p, self.proxy)
        s.sendall(b"\5\1\0")
        if s.recv(2) != b"\5\0":
            return "closed"
        kind = p.get("atyp", 3)
        body = bytes([len(name) & 255]) + name if kind == 3 else name
        s.sendall(b"\5\1\0" + bytes([kind]) + body + struct.pack(">H", port))
        got = exactly(s, 10)
        if len(got) < 2 or got[1]:
            return f"socks {got[1]}" if len(got) > 1 else "closed"
        return self.inside(p, s)

    def absolute(self, p):
        name = p["name"].encode("latin-1")
        if p.get("port", 80) != 80:
            name += b":%d" % p["port"]
        s = self.dial(p, self.proxy)
        return self.request(p, s, b"http://" + name, name)

    def host(self, p):
        s = self.direct(p, p.get("port", 80))
        return self.request(p, s, b"", p["name"].encode("latin-1"))

    def sni(self, p):
        s = self.direct(p, p.get("port", 443))
        return self.inside(p, s)

    def dns(self, p):
        reply = self.query(p["name"].encode("latin-1"),
                           TYPES[p.get("type", "A")], p, p.get("tcp"))
        if not reply:
            return "closed"
        p["answers"], p["echo"] = reply["addresses"], reply["echo"]
        p["ttl"] = reply["ttl"]
        if reply["rcode"] == 0 and reply["count"]:
            return "ok"
        return f"{RCODES[reply['rcode']]} {reply['ede']}"

    # -- what is said there -------------------------------------------------

    def inside(self, p, s):
        """Within a tunnel, or directly: what the port wants."""
        if "say" in p:
            return self.say(p, s)
        sni = p.get("sni", p["name"]).encode("latin-1")
        if p.get("plain", p.get("port", 443) != 443):
            return self.request(p, s, b"", sni)
        if p["door"] == "sni" and not p.get("whole"):
            s.sendall(client_hello(sni))
            got = exactly(s, 7)
            return tls_word(got)
        return self.handshake(p, s, sni.decode("latin-1"))

    def handshake(self, p, s, name):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        try:
            t = context.wrap_socket(s, server_hostname=name.rstrip(".").lower())
            return self.request(p, t, b"", name.encode("latin-1"))
        except ssl.SSLError as e:
            return f"tls {e.reason}"

    def say(self, p, s):
        """@wait: the server speaks first. "hello NAME" is a ClientHello."""
        s.settimeout(p.get("timeout", 20))
        got = s.recv(4096) if p.get("wait") else b""
        said = p["say"].encode("latin-1")
        s.sendall(client_hello(said[6:]) if said.startswith(b"hello ") else said)
        if p.get("half", True):
            s.shutdown(socket.SHUT_WR)
        got += rest(s)
        if len(got) == 7 and got[0] == 21:
            return tls_word(got)
        if got.startswith(b"HTTP/1.1 4"):
            return refusal(got)
        if got.startswith(b"HTTP/1.1 2"):
            got = got.partition(b"\r\n\r\n")[2]
        return "ok " + got.decode("latin-1") if got else "nothing"

    def request(self, p, s, before, host):
        path = p.get("path", "/host").encode("latin-1")
        host = p.get("host", host.decode("latin-1")).encode("latin-1")
        s.sendall(p.get("method", "GET").encode() + b" " + before + path +
                  b" HTTP/1.1\r\nHost: " + host + b"\r\n" +
                  p.get("fields", "").encode("latin-1") +
                  b"Connection: " + p.get("connection", "close").encode() +
                  b"\r\n\r\n" + b"x" * p.get("body", 0))
        got = rest(s, p.get("enough", "").encode())
        if got.startswith(b"HTTP/1.1 403") or b"X-Sallyport-Reason" in got:
            return refusal(got)
        first, _, body = got.partition(b"\r\n\r\n")
        if got.startswith(b"HTTP/1.1 200"):
            return "ok " + body.decode("latin-1").strip()
        return first.split(b"\r\n")[0].decode("latin-1") or "closed"

    def query(self, name, kind, p=None, tcp=False):
        p = {} if p is None else p
        q = b"".join(bytes([len(x)]) + x for x in name.split(b".") if x) + b"\0"
        opt = b"\0" + struct.pack(">HHIH", 41, 1232, 0, 0)
        message = (struct.pack(">6H", 0x1234, 0x100, 1, 0, 0, 1) + q +
                   struct.pack(">HH", kind, 1) + opt)
        if tcp:
            s = self.bind(socket.socket())
            s.connect(self.resolver)
            s.sendall(struct.pack(">H", len(message)) + message)
            got = exactly(s, 2)
            got = exactly(s, struct.unpack(">H", got)[0]) if len(got) == 2 else b""
        else:
            s = self.bind(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            s.connect(self.resolver)
            got = self.by_udp(s, message, (name.lower().rstrip(b"."), kind))
        p["source"] = s.getsockname()[1]
        return dns_reply(got) if got else None

    def by_udp(self, s, message, what):
        """The same within a second of its answer has no record of its own."""
        time.sleep(max(0, self.asked.get(what, -9) + 1.1 - time.monotonic()))
        try:
            s.send(message)
            return s.recv(4096)
        finally:
            self.asked[what] = time.monotonic()

    def run(self, p):
        p["began"] = time.time()
        try:
            p["got"] = self.table[p["door"]](p)
        except OSError as e:
            p["got"] = type(e).__name__
        p["ended"] = time.time()


def exactly(s, n):
    got = b""
    while len(got) < n:
        try:
            d = s.recv(n - len(got))
        except OSError:
            break
        if not d:
            break
        got += d
    return got


def head(s):
    got = b""
    while b"\r\n\r\n" not in got:
        d = s.recv(1)
        if not d:
            break
        got += d
    return got


def rest(s, enough=b""):
    """To the end, or until what is @enough has come."""
    got = b""
    try:
        while not (enough and enough in got):
            d = s.recv(65536)
            if not d:
                break
            got += d
    except OSError:
        pass
    return got


def refusal(got):
    status = got.split(b" ")[1].decode() if got.startswith(b"HTTP/") else "closed"
    at = got.find(b"X-Sallyport-Reason: ")
    word = got[at + 20:].split(b"\r")[0].decode() if at >= 0 else ""
    return f"{status} {word}".strip()


def tls_word(got):
    if len(got) == 7 and got[0] == 21:
        return f"alert {got[6]}"
    return "ok" if got[:1] == b"\x16" else "closed"


def client_hello(name):
    """Of a real client's hello, only the name is ours: as raw as the attack."""
    out = ssl.MemoryBIO()
    context = ssl.create_default_context()
    tls = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="a.invalid")
    try:
        tls.do_handshake()
    except ssl.SSLError:
        pass
    body = out.read()[9:]
    at = 35 + body[34]  # session id
    at += 2 + struct.unpack(">H", body[at:at + 2])[0]  # ciphers
    at += 1 + body[at]  # compression
    extensions, i, kept = body[at + 2:], 0, b""
    while i < len(extensions):
        kind, size = struct.unpack(">HH", extensions[i:i + 4])
        if kind:
            kept += extensions[i:i + 4 + size]
        i += 4 + size
    if not name:
        return hello_of(body[:at], kept)
    entry = b"\0" + struct.pack(">H", len(name)) + name
    kept += struct.pack(">HHH", 0, len(entry) + 2, len(entry)) + entry
    return hello_of(body[:at], kept)


def hello_of(body, extensions):
    body += struct.pack(">H", len(extensions)) + extensions
    message = b"\1" + struct.pack(">I", len(body))[1:] + body
    return b"\x16\3\1" + struct.pack(">H", len(message)) + message


def skip_name(data, at):
    while data[at]:
        if data[at] >= 0xC0:
            return at + 2
        at += 1 + data[at]
    return at + 1


def dns_reply(data):
    flags, questions, answers, authority, extra = struct.unpack(">5H", data[2:12])
    at, ret = 12, {"rcode": flags & 15, "count": 0, "ede": 0, "addresses": [],
                   "echo": "", "ttl": None}
    for _ in range(questions):
        end = skip_name(data, at)
        ret["echo"] = data[at:end].decode("latin-1")
        at = end + 4
    for i in range(answers + authority + extra):
        at = skip_name(data, at)
        kind, _, ttl, size = struct.unpack(">HHIH", data[at:at + 10])
        body = data[at + 10:at + 10 + size]
        at += 10 + size
        if i < answers:
            ret["count"] += 1
            ret["ttl"] = ttl
            ret["addresses"].append(socket.inet_ntoa(body) if kind == 1
                                    else body.decode("latin-1"))
        while kind == 41 and len(body) >= 4:
            option, length = struct.unpack(">HH", body[:4])
            if option == 15:
                ret["ede"] = struct.unpack(">H", body[4:6])[0]
            body = body[4 + length:]
    return ret


def main():
    with open(sys.argv[1]) as f:
        job = json.load(f)
    doors = Doors(job.get("doors", {}))
    probes = job["probes"]
    doors.warm(probes)
    time.sleep(0.1)
    for p in probes:
        time.sleep(p.get("pause", 0))
        doors.run(p)
    json.dump(probes, sys.stdout)


if __name__ == "__main__":
    main()
