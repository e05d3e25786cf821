# SPDX-License-Identifier: Apache-2.0
"""A server that writes down what reaches it, and whether the log of a session
tells of all of it.

Each connection begins with a line: an HTTP request for /ID, or "ID" alone, which
is answered with "ok"; "ID N" gets N bytes; what follows the line is echoed. The
line is written down before it is answered: what a client was promised and what
arrived can be compared with the log line by line."""
import json
import os

GOOD, PORT = "93.184.216.34", 8082

SERVER = """
import os, socket, sys, threading
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
def one(c):
    data = b""
    while b"\\n" not in data:
        more = c.recv(65536)
        if not more: break
        if not data: os.write(out, b"+ ")
        data += more
    if not data: return
    words = data.split(b"\\n")[0].split()
    name = words[1][1:] if words[0] == b"GET" else words[0]
    os.write(out, name + b"\\n")
    if words[0] == b"GET":
        c.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 3\\r\\nConnection: close\\r\\n\\r\\nok\\n")
        return
    if len(words) == 1: c.sendall(b"ok\\n")
    else:
        for left in range(int(words[1]), 0, -65536): c.sendall(bytes(min(left, 65536)))
    data = data.split(b"\\n", 1)[1]
    while True:
        if data: c.sendall(data)
        data = c.recv(65536)
        if not data: return
def serve(c):
    try: one(c)
    except OSError: pass
    finally: c.close()
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("%s", %d)); s.listen(4096)
while True:
    c, _ = s.accept()
    threading.Thread(target=serve, args=(c,), daemon=True).start()
""" % (GOOD, PORT)

# For clients in a sandbox. An id is DOOR-TAG-PORT, PORT being the client's own,
# which the record of its flow has too.
CLIENT = """
import itertools, os, socket, sys, threading, time
PROXY, HOST, PORT = ("198.19.0.1", 3128), "allowed.test", %d
count, TAG = itertools.count(), os.getpid()
def name(door, s): return "%%s-%%s.%%d-%%d" %% (door, TAG, next(count), s.getsockname()[1])
def ask(s, door):
    s.sendall(name(door, s).encode() + b"\\n")
    return s.recv(3)
def connect(timeout=60):
    s = socket.create_connection(PROXY, timeout)
    s.sendall(b"CONNECT %%s:%%d HTTP/1.1\\r\\nHost: %%s:%%d\\r\\n\\r\\n" %% ((HOST.encode(), PORT) * 2))
    got = b""
    while not got.endswith(b"\\r\\n\\r\\n"):
        more = s.recv(1)
        if not more: break
        got += more
    return s, got.decode()
def socks(timeout=60):
    s = socket.create_connection(PROXY, timeout)
    s.sendall(b"\\5\\1\\0"); s.recv(2)
    s.sendall(b"\\5\\1\\0\\3" + bytes([len(HOST)]) + HOST.encode() + PORT.to_bytes(2, "big"))
    return s, s.recv(10)
def by_connect():
    s, got = connect()
    with s: return ask(s, "connect") if " 200 " in got else got.encode()
def by_socks():
    s, got = socks()
    with s: return ask(s, "socks") if got[1:2] == b"\\0" else b"socks %%d" %% got[1]
def by_http():
    with socket.create_connection(PROXY, 60) as s:
        s.sendall(b"GET http://%%s:%%d/%%s HTTP/1.1\\r\\nHost: %%s:%%d\\r\\n\\r\\n" %% (
            HOST.encode(), PORT, name("http", s).encode(), HOST.encode(), PORT))
        got = s.recv(4096)
        return b"ok\\n" if b" 200 " in got else got
def direct():
    with socket.create_connection((HOST, PORT), 60) as s: return ask(s, "direct")
DOORS = [by_connect, by_socks, by_http, direct]
""" % PORT

POLICY = """
limits: {connections: 2000, connections_per_second: 100000, dns_per_second: 100000}
allow:
  - {host: allowed.test, ports: [443]}
  - {host: allowed.test, ports: [%d], protocol: any}
""" % PORT


class Witness:
    """Of one session, in its case's lab."""

    def __init__(self, case, name):
        self.path = f"{case.lab.dir}/witness-{case.who}-{name}"
        lab = case.lab
        self.server = lab.spawn("nsenter", "-t", str(lab.holder.pid), "-n",
                                "python3", "-c", SERVER, self.path)
        lab.wait(lambda: lab.listens(GOOD, PORT), "witness")

    def stop(self):
        self.server.kill()
        self.server.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def ids(self, tag=""):
        """What has arrived so far, with this tag; a "+" was written when the
        first byte came."""
        try:
            with open(self.path) as f:
                return [name for name in f.read().replace("+", " ").split()
                        if f"-{tag}." in name or not tag]
        except FileNotFoundError:
            return []

    def count(self):
        return len(self.ids())


def read_log(path, torn=False):
    """The records of a log; the last line may be cut off if @torn."""
    with open(path, "rb") as f:
        *lines, last = f.read().split(b"\n")
    if last and not torn:
        raise AssertionError(f"the last line is torn: {last[:200]}")
    return [json.loads(line) for line in lines]


def unrecorded(ids, records):
    """Those that arrived without a record of ours that allows them."""
    ports, requests = {}, set()
    for r in records:
        if r.get("action_id") != 1:
            continue
        kind = r["unmapped"]["event"]
        if kind == "flow_open":
            port = r["src_endpoint"]["port"]
            ports[port] = ports.get(port, 0) + 1
        elif kind == "http_request":
            requests.add(r["http_request"]["url"]["path"][1:])
    missing = []
    for name in ids:
        door, _, port = name.rsplit("-", 2)
        if door == "http":
            if name not in requests:
                missing.append(name)
            continue
        ports[int(port)] = ports.get(int(port), 0) - 1
        if ports[int(port)] < 0:
            missing.append(name)
    return missing


def policy(case):
    path = f"{case.lab.dir}/witness-{case.who}.yaml"
    with open(path, "w") as f:
        f.write("version: 1\n" + POLICY)
    os.chmod(path, 0o644)
    return ("--policy", path)
