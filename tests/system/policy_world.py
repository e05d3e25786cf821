# SPDX-License-Identifier: Apache-2.0
"""More of the Internet than the lab has: servers that say what they were sent,
servers that speak first, records other than addresses.

    web.test, web2.test   93.184.216.80   answers a request with its first line
    talk.test             93.184.216.81   greets on 443, 80 and 7000, then echoes
    rec.test              TXT, MX; _sip._tcp.rec.test SRV
    93.184.216.54         another name server, on 53 and 5353: all is 93.184.216.80
"""
import json
import os
import signal
import subprocess

from harness import descendants
from lab import DNS

WEB, TALK, DNS2 = "93.184.216.80", "93.184.216.81", "93.184.216.54"

RECORDS = f"""
$TTL 86400
xn--bcher-kva A {WEB}
web A {WEB}
web2 A {WEB}
*.web A {WEB}
talk A {TALK}
rec A {WEB}
rec TXT "one" "two"
rec TXT "v=spf1 -all"
rec MX 10 web.test.
rec MX 20 evil.test.
_sip._tcp.rec SRV 1 2 5060 web.test.
only TXT "no address"
"""

SERVERS = r"""
import json, os, socket, threading
WEB, TALK, LOG = %r, %r, %r
lock = threading.Lock()
def heard(data):
    with lock, open(LOG, "a") as f:
        f.write(json.dumps(data.decode("latin-1")) + "\n")
def web(c):
    data = b""
    while True:
        while b"\r\n\r\n" not in data:
            d = c.recv(65536)
            if not d: return
            data += d
        head, _, data = data.partition(b"\r\n\r\n")
        heard(head)
        fields = dict(l.lower().split(b": ", 1) for l in head.split(b"\r\n")[1:])
        want = int(fields.get(b"content-length", 0))
        while len(data) < want:
            d = c.recv(65536)
            if not d: return
            data += d
        data = data[want:]
        if b"upgrade" in fields:
            c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                      b"Upgrade: websocket\r\nSec-WebSocket-Accept: "
                      b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nfree")
            while c.recv(65536): pass
            return
        body = b"" if head.startswith(b"HEAD") else head.split(b"\r\n")[0]
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %%d\r\n\r\n" %% len(body) + body)
        if fields.get(b"connection") == b"close": return
def talk(c):
    c.sendall(b"hello first\r\n")
    while d := c.recv(65536): heard(d); c.sendall(d)
def one(fn, c):
    try: fn(c)
    except OSError: pass
    try: c.shutdown(2)
    except OSError: pass
    c.close()
def serve(fn, address, port):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port)); s.listen(64)
    def run():
        while True:
            threading.Thread(target=one, args=(fn, s.accept()[0]), daemon=True).start()
    threading.Thread(target=run).start()
def names(port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((%r, port))
    while True:
        d, who = s.recvfrom(4096)
        end = d.index(b"\0", 12) + 5
        a = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(WEB)
        here = d[end - 4:end] == b"\0\1\0\1"
        s.sendto(d[:2] + b"\x85\x80\0\1\0" + bytes([here]) + b"\0\0\0\0" +
                 d[12:end] + a * here, who)
for port in 53, 5353: threading.Thread(target=names, args=(port,)).start()
for port in 443, 80, 7000: serve(talk, TALK, port)
for port in 80, 443, 7000, 9081: serve(web, WEB, port)
"""


class World:
    def __init__(self, lab):
        self.lab, self.log = lab, lab.dir + "/heard"
        open(self.log, "w").close()
        for ip in WEB, TALK, DNS2:
            lab.net("ip", "addr", "add", ip + "/32", "dev", "lo")
        with open(lab.dir + "/test.zone", "a") as f:
            f.write(RECORDS)
        lab.spawn("nsenter", "-t", str(lab.holder.pid), "-n", "python3", "-c",
                  SERVERS % (WEB, TALK, self.log, DNS2))
        lab.wait(lambda: lab.listens(WEB, 9081), "the web server")
        reload_zone(lab, lambda: WEB in answer(lab, "web.test"))

    def heard(self):
        """Heads of requests, and what was said to talk.test."""
        with open(self.log) as f:
            return [json.loads(line) for line in f if line.endswith("\n")]

    def forget(self):
        open(self.log, "w").close()


def answer(lab, name):
    """What the name server says meanwhile: while it reads, perhaps nothing."""
    try:
        return lab.net("dig", "+short", "+tries=1", "@" + DNS, name)
    except subprocess.CalledProcessError:
        return ""


def reload_zone(lab, is_new):
    """The name server reads its zone again, and nobody says what was there before:
    who answers as before has the same socket, and perhaps takes a question."""
    nsd = [c for c in lab.children if "nsd" in c.args][0]
    # Its main process has no child before it serves, and stays.
    lab.wait(lambda: answer(lab, "allowed.test"), "the name server")
    old = {p for p in descendants(nsd.pid) if not descendants(p)}
    os.kill(nsd.pid, signal.SIGHUP)
    lab.wait(is_new, "the zone")
    lab.wait(lambda: not old & set(descendants(nsd.pid)), "only the zone")


def world(case):
    """One a lab."""
    if not hasattr(case.lab, "world"):
        case.lab.world = World(case.lab)
    return case.lab.world
