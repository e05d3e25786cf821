# SPDX-License-Identifier: Apache-2.0
"""What an attacker in the box has to speak with, and where it is seen."""

COMMON = r"""
import os, socket, ssl, struct, sys, threading, time
GW, PORT = os.environ.get("GATEWAY", "").split(":") if os.environ.get("GATEWAY") \
    else (os.environ.get("http_proxy") or "//x:0").split("//")[1].split(":")
PORT = int(PORT)
def dial(where, timeout=3):
    s = socket.create_connection(where, timeout); s.settimeout(timeout)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s
def rest(s):
    got = b""
    try:
        while True:
            d = s.recv(65536)
            if not d: return got
            got += d
    except OSError as e:
        return got + b" [" + type(e).__name__.encode() + b"]"
def say(where, data, pause=0.1, end=False, timeout=3):
    try:
        s = dial(where, timeout)
        for piece in data if isinstance(data, list) else [data]:
            s.sendall(piece); time.sleep(pause)
        if end: s.shutdown(socket.SHUT_WR)
        return rest(s)
    except OSError as e:
        return b"[" + type(e).__name__.encode() + b"]"
def hello(name):
    out = ssl.MemoryBIO(); c = ssl.create_default_context()
    o = c.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    try: o.do_handshake()
    except ssl.SSLError: pass
    return out.read()
def record(body, kind=0x16):
    return bytes([kind, 3, 1]) + struct.pack(">H", len(body)) + body
def ext(kind, body): return struct.pack(">HH", kind, len(body)) + body
def sni(*names):
    l = b"".join(b"\0" + struct.pack(">H", len(n)) + n for n in names)
    return ext(0, struct.pack(">H", len(l)) + l)
def client_hello(*extensions, session=b"", compression=b"\x01\0", tail=b""):
    e = b"".join(extensions)
    b = (b"\3\3" + b"R" * 32 + bytes([len(session)]) + session +
         b"\0\4\xc0\x2f\xc0\x2b" + compression + struct.pack(">H", len(e)) + e + tail)
    return b"\1" + struct.pack(">I", len(b))[1:] + b
def name(text):
    return b"".join(bytes([len(l)]) + l for l in text.split(b".") if l) + b"\0"
def query(qname, qtype=1, qclass=1, flags=0x100, counts=(1, 0, 0, 0), tail=b"", ident=7):
    return struct.pack(">6H", ident, flags, *counts) + qname + struct.pack(">2H", qtype, qclass) + tail
def udp(data, timeout=1):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(timeout)
    s.sendto(data, (GW, 53))
    try: return s.recv(4096)
    except OSError: return b""
def tcp(data, timeout=2):
    return say((GW, 53), data, 0, True, timeout)
"""


def attack(case, code, **kw):
    return case.python(COMMON + code, **kw)


def status(pid):
    with open(f"/proc/{pid}/status") as f:
        return {k: v.split()[0] for k, v in
                (line.split(":", 1) for line in f if v_of(line))}


def v_of(line):
    return line.split(":", 1)[1].strip()


# -- HTTP -------------------------------------------------------------------


def inside(case, code):
    """A server in the internet of the lab, stopped by its lab."""
    lab = case.lab
    return lab.spawn("nsenter", "-t", str(lab.holder.pid), "-n", "python3",
                     "-c", code)
