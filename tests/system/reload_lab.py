# SPDX-License-Identifier: Apache-2.0
"""A sandbox that does what it is told while its policy changes."""
import os
import re
import socket
import subprocess
import time

from harness import check, so_far, within

# Does what the test says, line by line, inside the sandbox.
DRIVER = r"""
import os, select, socket, ssl, sys, threading, time
held, busy = {}, []
def dial(kind, host, port):
    if kind == "connect":
        proxy = os.environ["http_proxy"].split("//")[1].split(":")
        s = socket.create_connection((proxy[0], int(proxy[1])), 30)
        s.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        head = s.recv(4096).split(b"\r\n")[0]
        if b" 200 " not in head + b" ":
            raise OSError(head.decode())
        return s
    s = socket.create_connection((host, port), 30)
    if kind == "tls":
        s = ssl.create_default_context(cafile=os.environ["CURL_CA_BUNDLE"]) \
            .wrap_socket(s, server_hostname=host)
    return s
def ping(kind, s, host):
    if kind == "tls":
        s.sendall(f"GET /host HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        got = s.recv(4096)
        return b"200 OK" in got
    s.sendall(b"\0echo\n")  # no beginning of TLS or HTTP
    return s.recv(6) == b"\0echo\n"
def do(words):
    if words[0] == "open":
        _, name, kind, host, port = words
        s = dial(kind, host, int(port))
        s.settimeout(30)
        held[name] = (kind, s, host)
        return ping(*held[name])
    if words[0] == "ping":
        return ping(*held[words[1]])
    if words[0] == "busy":  # from now on, until it is asked whether it went well
        busy.clear()
        def pings():
            for _ in range(900):  # fewer than its server lets pass
                busy.append(ping(*held[words[1]]))
                if busy[0] == "enough": return
                time.sleep(0.002)
        def whole():
            try: pings()
            except OSError as e: busy.append(type(e).__name__)
        busy.append(True)
        busy.append(threading.Thread(target=whole))
        busy[1].start()
        return True
    if words[0] == "calm":
        said, busy[0] = busy[1], "enough"
        said.join()
        return " ".join(sorted({str(x) for x in busy[2:]}))
    if words[0] == "end":  # waits until it is dead; for how long
        s, began = held[words[1]][1], time.monotonic()
        s.settimeout(float(words[2]))
        try:
            while s.recv(4096):
                pass
        except socket.timeout:
            return False
        except OSError:
            pass
        return f"{time.monotonic() - began:.2f}"
    if words[0] == "try":
        _, kind, host, port = words
        s = dial(kind, host, int(port))
        s.settimeout(30)
        with s:
            return ping(kind, s, host)
    if words[0] == "rename":
        os.rename(words[1], words[2])
    if words[0] == "link":
        os.symlink(words[1], words[2])
    if words[0] == "write":
        os.mkdir(os.path.dirname(words[1]))
        with open(words[1], "w") as f:
            f.write("version: 1\n" + " ".join(words[2:]).replace("|", "\n"))
    if words[0] == "many":
        return " ".join(socket.getaddrinfo(f"n{i}.tunnel.test", 1)[0][4][0]
                        for i in range(int(words[1])))
    if words[0] == "dns":
        return socket.getaddrinfo(words[1], 1)[0][4][0]
print("ready", flush=True)
for line in sys.stdin:
    try:
        print(do(line.split()), flush=True)
    except Exception as e:
        print("failed", type(e).__name__, str(e).replace("\n", " "), flush=True)
"""


class Session:
    """A running sandbox whose policy is a file, and the driver in it."""
    count = 0

    def __init__(self, case, policy, *args, path=None):
        Session.count += 1
        self.case = case
        # Not in the working directory, which is the sandbox's to write to.
        place = f"{case.lab.dir}/policies-{case.who}"
        os.makedirs(place, exist_ok=True)
        case.mine(place)
        self.path = path or f"{place}/p{Session.count}.yaml"
        self.write(policy)
        self.process, self.log = case.start(
            "python3", "-c", DRIVER, allow=(),
            args=("--policy", self.path, *args), stdin=subprocess.PIPE)
        line = self.process.stdout.readline()
        if line != "ready\n":
            raise AssertionError(self.process.communicate()[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.err = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()

    def write(self, policy):
        with open(self.path, "w") as f:
            f.write("version: 1\n" + policy)
        self.case.mine(self.path)

    def do(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def works(self, *words):
        said = self.do(*words)
        check(said == "True", (words, said, self.log))

    def fails(self, *words):
        said = self.do(*words)
        check(said.startswith("failed"), (words, said, self.log))
        return said

    def reload(self, policy=None, status=0, args=(), who=None):
        if policy is not None:
            self.write(policy)
        out = reload(self.case, *args, who or self.log)
        check(out.returncode == status, out)
        return out

    def records(self):
        return so_far(self.log)

    def gate(self):
        return self.case.child(self.process, "gate")

    def cut(self, name, seconds=2):
        """It is over: a test of that is @prompt."""
        took = self.do("end", name, 20)
        check(took != "False", f"{name} goes on")
        within(seconds, float(took), name)

    def until(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition(self.records()):
                return
            time.sleep(0.05)
        raise AssertionError(self.records())


def reload(case, *args):
    return subprocess.run([*case.drop(), case.binary, "reload", *args],
                          cwd=case.work, env=case.env(), text=True,
                          capture_output=True, timeout=60)


def events(records, event, detail=""):
    return [r for r in records if r["unmapped"]["event"] == event
            and detail in r["unmapped"].get("detail", "")]


def revoked(records, host):
    return [r for r in records if r.get("status_code") == "policy_revoked"
            and r.get("dst_endpoint", {}).get("hostname") == host]


BOTH = """allow:
  - {host: allowed.test, ports: [443, 7000]}
  - {host: other.test, ports: [443, 7000]}
"""
OTHER = "allow:\n  - {host: other.test, ports: [443, 7000]}\n"


def warden_of(process, gate):
    """The parent of the gate: ours may be setpriv's."""
    with open(f"/proc/{gate}/status") as f:
        return int(re.search(r"PPid:\s+(\d+)", f.read())[1])
