# SPDX-License-Identifier: Apache-2.0
"""A sandbox that holds a connection by each door while its policy changes."""
import contextlib
import json
import subprocess
import time

from harness import check, so_far
from policy_rows import write_policy

# Holds a connection by each door, then says when which of them ended, and what
# is answered afterwards. Each line that it reads is a list of things to try.
HOLD = r"""
import json, os, select, socket, ssl, struct, sys, threading, time
DOORS = json.loads(sys.argv[1])
PROXY, DNS = tuple(DOORS["proxy"]), tuple(DOORS["dns"])
context = ssl.create_default_context()
context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
next_port = 33000
def bound(s):
    # From a port of its own: by it the records are told apart.
    global next_port
    while True:
        next_port += 1
        try: s.bind(("", next_port))
        except OSError: continue
        return s
def dial(where):
    s = bound(socket.socket()); s.settimeout(30); s.connect(where)
    return s
def tls(s, name):
    return context.wrap_socket(s, server_hostname=name)
def connect(name, port):
    s = dial(PROXY)
    s.sendall(f"CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n".encode())
    got = b""
    while b"\r\n\r\n" not in got:
        d = s.recv(1)
        if not d: break
        got += d
    if b" 200 " not in got:
        raise OSError(got.split(b" ")[1].decode() + " " +
                      got.split(b"X-Sallyport-Reason: ")[1].split(b"\r")[0].decode())
    return s
def socks(name, port):
    s = dial(PROXY)
    s.sendall(b"\5\1\0"); s.recv(2)
    s.sendall(b"\5\1\0\3" + bytes([len(name)]) + name.encode() + struct.pack(">H", port))
    got = s.recv(10)
    if got[1]: raise OSError(f"socks {got[1]}")
    return s
def where(name, port):
    if port == 443 and DOORS.get("tls"): return tuple(DOORS["tls"])
    if port == 80 and DOORS.get("http"): return tuple(DOORS["http"])
    return address(name), port
def direct(name, port):
    return dial(where(name, port))
def question(name):
    s = bound(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)); s.settimeout(30); s.connect(DNS)
    s.send(struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + b"".join(
        bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0\0\1\0\1")
    d = s.recv(512)
    return d, s.getsockname()[1]
seen = {}
def address(name):
    d, _ = question(name)
    if d[3] & 15 or not d[7]:
        if name in seen: return seen[name]
        raise OSError(f"rcode {d[3] & 15}")
    at = 12 + len(name) + 2 + 4
    seen[name] = socket.inet_ntoa(d[at + 12:at + 16])
    return seen[name]
def slow(s, target, name):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.sendall(f"GET {target} HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
    return s
def said(s):
    s.sendall(b"SSH-2.0-x\r\n")
    s.recv(100)
    return s
MAKE = {
    "connect": lambda n: tls(connect(n, 443), n),
    "socks": lambda n: tls(socks(n, 443), n),
    "sni": lambda n: tls(direct(n, 443), n),
    "raw": lambda n: direct(n, 7000),
    "said": lambda n: said(direct(n, 7000)),
    "tunnel": lambda n: connect(n, 7000),
    "absolute": lambda n: slow(dial(PROXY),
                               f"http://{n}/big", n),
    "host": lambda n: slow(direct(n, 80), "/big", n),
}
def watch(key, s, port):
    try:
        s.settimeout(None)
        while d := s.recv(512):
            heard[key] = d.decode("latin-1")
            time.sleep(0.002)
    except OSError: pass
    if held.get(key) == port: ended[key] = time.time()
held, ended, heard, open_now = {}, {}, {}, {}
def hold(key):
    door, name = key.split(" ")
    try: s = MAKE[door](name)
    except OSError as e: return type(e).__name__ if not e.args or e.errno else str(e)
    held[key] = s.getsockname()[1]
    ended.pop(key, None)
    open_now[key] = s
    threading.Thread(target=watch, args=(key, s, held[key]), daemon=True).start()
    return "ok"
def dns(name):
    d, port = question(name)
    return f"{d[3] & 15} {d[7]} {port}"
for line in sys.stdin:
    what = json.loads(line)
    ret = {"hold": {k: hold(k) for k in what.get("hold", [])},
           "dns": {n: dns(n) for n in what.get("dns", [])}}
    for key, text in what.get("say", {}).items():
        try: open_now[key].sendall(text.encode("latin-1"))
        except OSError: pass
    if "until" in what:
        while time.time() < what["until"] and len(ended) < len(held): time.sleep(0.01)
    if what.get("drop"):
        held.clear(); ended.clear(); heard.clear()
        for s in open_now.values():
            try: s.shutdown(socket.SHUT_RDWR)
            except OSError: pass
        open_now.clear()
    ret["heard"] = dict(heard)
    ret["ended"], ret["held"] = dict(ended), dict(held)
    print(json.dumps(ret), flush=True)
"""
DIRECT = ("connect", "socks", "sni", "absolute", "host")
ALL = (*DIRECT, "raw", "tunnel")


def event(record):
    return record.get("unmapped", {}).get("event")


class Session:
    """A running sandbox, or gate, with somebody in it who holds connections."""

    def __init__(self, case, process, log, policy):
        self.case, self.process, self.log = case, process, log
        self.policy = policy

    def tell(self, **what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        check(line, "the holder is gone")
        return json.loads(line)

    def write(self, text):
        with open(self.policy, "w") as f:
            f.write("version: 1\n" + text)

    def reload(self, text, status=0):
        """When it was asked for, and when it was answered."""
        self.write(text)
        began = time.time()
        self.said = subprocess.run(
            [*self.case.drop(), self.case.binary, "reload", self.log], text=True,
            capture_output=True, env=self.case.env(), timeout=60)
        check(self.said.returncode == status, self.said)
        return began, time.time()

    def records(self):
        return so_far(self.log)

    def reasons(self, port, wait=20):
        """Not of a last packet that is still under way. What is cut is seen at
        once; the line that says so may come a moment later."""
        until = time.time() + wait
        while True:
            words = [r["status_code"] for r in self.records() if "status_code" in r
                     and r.get("src_endpoint", {}).get("port") == port
                     and r.get("action_id") == 2 and event(r) != "packet"]
            if words or time.time() > until:
                return words
            time.sleep(0.02)

    def dropped(self, host, port):
        """The kernel tells of a packet when it has the time."""
        end = time.monotonic() + 20
        while True:
            words = {r["status_code"] for r in self.records()
                     if event(r) == "packet"
                     and r["dst_endpoint"].get("hostname") == host
                     and r["dst_endpoint"].get("port") == port}
            if words or time.monotonic() > end:
                return words
            time.sleep(0.02)


@contextlib.contextmanager
def sandbox(case, text):
    path = write_policy(case, text)
    doors = {"proxy": ["198.19.0.1", 3128], "dns": ["198.19.0.1", 53]}
    process, log = case.start("python3", "-c", HOLD, json.dumps(doors), allow=(),
                              args=("--policy", path), stdin=subprocess.PIPE)
    try:
        session = Session(case, process, log, path)
        session.tell()  # it runs
        yield session
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()
        process.stderr.close()


def rules(*hosts):
    return "allow:\n" + "".join(f"  - {{ host: {h}.test, ports: [443, 80, 7000] }}\n"
                                for h in hosts)
