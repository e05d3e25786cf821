# SPDX-License-Identifier: Apache-2.0
"""run --publish: a server inside is reached from the machine, through the gate
and into the log; and that is no way out."""
import concurrent.futures
import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import time

from harness import check, prompt, within
from lab import GOOD

# A hash of what is sent, and as many bytes as asked for.
SERVER = """
import hashlib, socket, sys, threading
at, port = sys.argv[1], int(sys.argv[2])
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((at, port)); s.listen(512)
def one(c):
    want = int(c.makefile("rb").readline())
    c.sendall(b"x" * want); c.shutdown(socket.SHUT_WR); c.close()
def take(c):
    try: one(c)
    except (OSError, ValueError): c.close()
print("ready", flush=True)
while True:
    c, _ = s.accept(); threading.Thread(target=take, args=(c,), daemon=True).start()
"""


given = set()


def ports():
    """One that nobody has, nor had."""
    while True:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        if port not in given:
            given.add(port)
            return port


@contextlib.contextmanager
def served(case, *code, args=(), port=None, inside=3000, at="0.0.0.0", **kw):
    port = port or ports()
    command = code or ("python3", "-c", SERVER, at, str(inside))
    process, log = case.start(*command, args=(
        "--publish", f"{port}:{inside}", *args), **kw)
    try:
        line = process.stdout.readline()
        check(line == "ready\n", line + process.stderr.read()
              if not line else line)
        yield process, log, port
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)


def ask(port, size=5, host="127.0.0.1", timeout=60):
    with socket.create_connection((host, port), timeout) as s:
        s.sendall(b"%d\n" % size)
        total = 0
        while data := s.recv(1 << 18):
            total += len(data)
        return total


def records(log, **want):
    found = []
    with open(log + "/audit.jsonl") as f:
        for line in f:
            if not line.endswith("\n"):
                break  # it is being written
            r = json.loads(line)
            if all(r["unmapped"].get(k) == v for k, v in want.items()):
                found.append(r)
    return found


def published(log, kind):
    return records(log, door="published", event=kind)


def test_reached_and_recorded(case):
    with served(case) as (_, log, port):
        check(ask(port, 5) == 5)
        check(ask(port, 5_000_000) == 5_000_000)
    opened, closed = published(log, "flow_open"), published(log, "flow_close")
    check(len(opened) == len(closed) == 2, opened)
    for r in opened:
        check(r["connection_info"]["direction"] == "Inbound", r)
        check(r["connection_info"]["direction_id"] == 1, r)
        check(r["action_id"] == 1 and r["status_code"] == "rule", r)
        check(r["firewall_rule"]["name"] == f"127.0.0.1:{port}:3000", r)
        check(r["src_endpoint"]["ip"] == "127.0.0.1", r)
        check(r["dst_endpoint"]["port"] == 3000, r)
    # Up is what leaves the sandbox.
    check(sorted(r["traffic"]["bytes_out"] for r in closed) ==
          [5, 5_000_000], closed)
    check(sorted(r["traffic"]["bytes_in"] for r in closed) == [2, 8], closed)
    verify = subprocess.run([*case.drop(), case.binary, "verify", log],
                            text=True, capture_output=True, env=case.env())
    check(verify.returncode == 0, verify.stdout + verify.stderr)


def test_many(case):
    """No port of ours runs out, one after the other nor at once."""
    policy = os.path.join(case.work, "many.yaml")
    with open(policy, "w") as f:  # 1,000 are soon made
        f.write("version: 1\nlimits: {connections_per_second: 100000}\n")
    with served(case, args=("--policy", policy)) as (_, log, port):
        began = time.monotonic()
        for _ in range(600):
            check(ask(port, 3) == 3)
        print(f"    600 connections one after the other: "
              f"{time.monotonic() - began:.2f} s")
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            got = list(pool.map(lambda _: ask(port, 20_000),
                                range(1200)))
        check(got == [20_000] * 1200)
    check(len(published(log, "flow_open")) == 1800)
    check(len(published(log, "flow_close")) == 1800)


@prompt
def test_loopback_inside_is_its_own(case):
    with served(case, at="127.0.0.1") as (_, log, port):
        began = time.monotonic()
        try:
            ask(port)
            check(False)
        except ConnectionResetError:
            pass
        took = time.monotonic() - began
    dials = published(log, "flow_dial")
    check([r["status_code"] for r in dials] == ["connect_failed"], dials)
    within(5, took)


def test_only_where_it_says(case):
    """Not on the machine's other addresses, unless asked for; IPv6 too."""
    other = ports()
    with served(case, args=("--publish", f"203.0.113.2:{other}:3000",
                            "--publish", f"[::1]:{other}:3000")) as (_, log,
                                                                     port):
        check(ask(port) == 5)
        check(ask(other, host="203.0.113.2") == 5)
        check(ask(other, host="::1") == 5)
        for host, where in (("203.0.113.2", port), ("127.0.0.1", other)):
            try:
                ask(where, host=host)
                check(False, f"{host}:{where}")
            except ConnectionRefusedError:
                pass
    check(len(published(log, "flow_open")) == 3)


# Every port from which the gate reaches us, and those beside; what the machine
# listens on for us; and answers to nobody.
ATTACK = """
import errno, os, socket, sys, time
gateway = os.environ["http_proxy"].split("//")[1].split(":")[0]
port = int(sys.argv[1])
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", 3000)); s.listen(64); s.settimeout(60)
print("ready", flush=True)
c, peer = s.accept()
c.recv(100)
bad = []
def attempt(where, source=None):
    t = socket.socket(); t.settimeout(30)
    t.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if source: t.bind(("0.0.0.0", source))
        t.connect(where)
        bad.append((where, source))
    except OSError as e:
        if e.errno != errno.ECONNREFUSED: bad.append((where, source, str(e)))
    t.close()
for p in range(57344 - 3, 61440 + 3): attempt((gateway, p))
attempt(peer)
attempt((gateway, port))
for source in (57344, 3001): attempt(peer, source)
for where in (("127.0.0.1", port), ("93.184.216.66", peer[1])):
    t = socket.create_connection((gateway, 3128), 60)
    t.sendall(b"CONNECT %s:%d HTTP/1.1\\r\\nHost: %s:%d\\r\\n\\r\\n" % (
        where[0].encode(), where[1], where[0].encode(), where[1]))
    if not t.recv(100).startswith(b"HTTP/1.1 403"): bad.append(where)
if peer[0] != gateway: bad.append(peer)
# Until it is read: the gate ends with us.
c.sendall(repr(bad).encode()); c.shutdown(socket.SHUT_WR); c.recv(1)
"""


def test_no_way_out(case):
    port = ports()
    with served(case, "python3", "-c", ATTACK, str(port), port=port) as (
            _, log, port):
        with socket.create_connection(("127.0.0.1", port), 10) as s:
            s.settimeout(300)
            s.sendall(b"go\n")
            said = b""
            while data := s.recv(65536):
                said += data
        check(said == b"[]", said)
    refused = [r for r in records(log, event="packet")]
    check(sum(r.get("count", 1) for r in refused) >= 4096, len(refused))


def test_nothing_without_it(case):
    """The ports are shut for a sandbox that publishes nothing: a SYN-ACK or an
    ACK is refused there as well, and counted."""
    code = """
import os, socket, time
gateway = os.environ["http_proxy"].split("//")[1].split(":")[0]
bad = 0
for p in (57344, 60000, 61439):
    try: socket.create_connection((gateway, p), 30); bad += 1
    except ConnectionRefusedError: pass
print(bad)
"""
    run = case.python(code)
    check(run.out == "0\n", run)
    check(len(run.denied("bypass")) == 3, run)


def test_gate_killed(case):
    with served(case) as (process, log, port):
        check(ask(port) == 5)
        os.kill(case.child(process, "gate"), signal.SIGKILL)
        end = time.monotonic() + 60
        got = 0
        while got != 5 and time.monotonic() < end:
            try:
                got = ask(port, timeout=2)
            except OSError:
                time.sleep(0.05)
        check(got == 5)
        check(ask(port, 300_000) == 300_000)
    check("started again" in json.dumps(records(log, event="finding")))


def test_limits(case):
    policy = os.path.join(case.work, "few.yaml")
    with open(policy, "w") as f:
        f.write("version: 1\nlimits: {connections: 4}\n")
    with served(case, args=("--policy", policy)) as (_, log, port):
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(4)]
        for s in idle:
            s.sendall(b"1")
        case.lab.wait(lambda: len(published(log, "flow_open")) == 4, "flows")
        try:
            ask(port)
            check(False)
        except ConnectionResetError:
            pass
        for s in idle:
            s.close()
        case.lab.wait(lambda: len(published(log, "flow_close")) == 4, "ends")
        check(ask(port) == 5)
    refused = [r for r in published(log, "flow_open") if r["action_id"] == 2]
    check([r["status_code"] for r in refused] == ["limit_connections"], refused)


def test_both_directions(case):
    """What comes in does not stop what leaves, nor the other way round."""
    code = SERVER.replace("want = int(", """
    import urllib.request
    urllib.request.urlopen("http://allowed.test/host", timeout=60).read()
    want = int(""")
    with served(case, "python3", "-c", code, "0.0.0.0", "3000") as (_, log,
                                                                   port):
        for _ in range(20):
            check(ask(port, 7) == 7)
    check(len(published(log, "flow_close")) == 20)
    out = [r for r in records(log, event="http_request")
           if r["dst_endpoint"].get("ip") == GOOD or r["action_id"] == 1]
    check(len(out) == 20, len(out))


def test_wrong(case):
    for word in ("", "80", "a:b", "0:80", "80:0", "70000:80", "80:70000",
                 "80:80:80:80", "1.2.3:80:80", "::1:80:80", "80:80/udp",
                 "host.test:80:80", "127.0.0.1:80:"):
        run = case.run("true", args=("--publish", word))
        check(run.status == 125 and "not [ADDR:]PORT:PORT" in run.err, run)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        taken = s.getsockname()[1]
        run = case.run("true", args=("--publish", f"{taken}:80"))
        check(run.status == 125 and "Address already in use" in run.err, run)
    run = case.run("true", args=("--publish", "192.0.2.77:8080:80"))
    check(run.status == 125 and "192.0.2.77 port 8080" in run.err, run)
    many = [x for i in range(33) for x in ("--publish", f"{20000 + i}:80")]
    run = case.run("true", args=many)
    check(run.status == 125 and "too many --publish" in run.err, run)
