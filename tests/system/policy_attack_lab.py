# SPDX-License-Identifier: Apache-2.0
"""Policies, services and doors that attacks from inside try."""

from lab import GOOD

KB, MB = 1000, 1000 * 1000

# Writes down what it was asked, one line a request, and says yes.
ORIGIN = r"""
import socket, sys, threading
log = open(sys.argv[1], "ab", 0)
def one(c):
    got = b""; c.settimeout(30)
    try:
        while b"\r\n\r\n" not in got:
            d = c.recv(65536)
            if not d: break
            got += d
        head = got.split(b"\r\n\r\n")[0].lower()
        if b"upgrade: websocket" in head:
            log.write(got.split(b"\r\n")[0] + b" WEBSOCKET\n")
            c.sendall(b"HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                      b"Sec-WebSocket-Accept: x\r\n\r\n")
            n = 0
            while True:
                d = c.recv(65536)
                if not d: return
                n += len(d); log.write(b"websocket bytes %d\n" % n)
        c.settimeout(2)
        while True:  # all that is behind the head
            try: d = c.recv(65536)
            except OSError: break
            if not d: break
            got += d
            if len(got) > 4096: break
            c.settimeout(0.3)
        log.write(got.replace(b"\r\n", b"|") + b"\n")
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes")
    except OSError: pass
    finally: c.close()
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[2], int(sys.argv[3]))); s.listen(64)
while True:
    c, _ = s.accept(); threading.Thread(target=one, args=(c,), daemon=True).start()
"""


def origin(case, port=8090):
    """The path of what it writes down."""
    path = f"{case.lab.dir}/origin-{port}"
    if not case.lab.listens(GOOD, port):
        case.lab.spawn("nsenter", "-t", str(case.lab.holder.pid), "-n", "python3",
                       "-c", ORIGIN, path, GOOD, str(port))
        case.lab.wait(lambda: case.lab.listens(GOOD, port), "origin")
    open(path, "w").close()
    return path


def policy(case, text):
    path = f"{case.lab.dir}/attack-{case.who}.yaml"
    with open(path, "w") as f:
        f.write("version: 1\n" + text)
    return {"allow": (), "args": ("--policy", path)}


DOORS = r"""
def connect(host, port, first=b"", timeout=2):
    h = f"[{host}]" if ":" in host else host
    return say((GW, PORT), [f"CONNECT {h}:{port} HTTP/1.1\r\nHost: {h}:{port}\r\n\r\n".encode(),
                            first], 0.15, timeout=timeout)
def absolute(host, port):
    h = f"[{host}]" if ":" in host else host
    return say((GW, PORT), f"GET http://{h}:{port}/ HTTP/1.1\r\nHost: {h}:{port}\r\n\r\n".encode(),
               timeout=2)
def socks(host, port):
    try: a = b"\1" + socket.inet_aton(host) if host.count(".") == 3 else b"\4" + socket.inet_pton(10, host)
    except OSError: a = b"\3" + bytes([len(host)]) + host.encode()
    return say((GW, PORT), [b"\5\1\0", b"\5\1\0" + a + struct.pack(">H", port),
                            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"], timeout=2)
def direct(host, port):
    return say((host, port), f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode(), timeout=2)
def all_doors(host, port):
    return {f.__name__: f(host, port) for f in (connect, absolute, socks, direct)}
"""
