# SPDX-License-Identifier: Apache-2.0
"""Requests to a daemon that are wrong, slow, endless or somebody else's."""
import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import time

from daemon_lab import Connection, daemon, keepers, open_files, policy, user
from harness import check, prompt, USER, within


# --- what comes back --------------------------------------------------------


def test_one_instance(case):
    with daemon(case) as d:
        second = subprocess.run(d.argv(), capture_output=True, text=True,
                                timeout=60)
        check(second.returncode == 125 and "another daemon" in second.stderr,
              second)
        check(d.answers(True))
    run = subprocess.run(["setpriv", "--reuid", str(USER), "--regid", str(USER),
                          "--clear-groups", case.binary, "daemon"],
                         capture_output=True, text=True, timeout=60)
    check(run.returncode == 125 and "root" in run.stderr, run)


def places(d):
    """The names of those that have a keeper, in the order in which the daemon
    gave them one."""
    found = []
    for pid in keepers(d):
        with open(f"/proc/{pid}/stat") as f:
            began = int(f.read().rsplit(")", 1)[1].split()[19])
        for link in open_files(pid):
            held = re.search("/sandboxes/(.*)/leases$", link)
            if held:
                found.append((began, pid, held[1]))
    return [name for _, _, name in sorted(found)]


def test_fair_start(case):
    """One user's queue is not before everybody else."""
    def ask(name):
        c = Connection(d.socket)
        c.request("POST", "/v1/sandboxes", json.dumps(
            {"name": name, "policy": policy()}))
        waiting.append(c)
    with daemon(case) as d:
        waiting = []
        # It finds all of them at once, somebody else's as the last one.
        d.process.send_signal(signal.SIGSTOP)
        for i in range(60):  # fewer than may be connected
            ask(f"many-{i}")
        with user():
            ask("one")
        d.process.send_signal(signal.SIGCONT)
        for c in waiting:
            check(c.getresponse().status == 201, d.err())
            c.close()
        order = places(d)
        check(len(order) == 61 and order.index("one") < 12, order)


# --- bad input --------------------------------------------------------------


def test_bad_requests(case):
    with daemon(case) as d:
        good = {"name": "n", "policy": policy()}
        rows = [
            (400, "not JSON", b"{"), (400, "no body", b""),
            (400, "object", b"[]"), (400, "duplicate", b'{"name":"a","name":"b"}'),
            (400, "unknown key", dict(good, polcy="x")),
            (400, "'name' is missing", {"policy": policy()}),
            (400, "'name' is a text", dict(good, name=7)),
            (400, "timeout_s", dict(good, timeout_s=0)),
            (400, "timeout_s", dict(good, timeout_s="1h")),
            (400, "use one", dict(good, policy_name="x")),
            (400, "base64", {"name": "n", "bundle": "AAA"}),
            (400, "base64", {"name": "n", "bundle": "A=AA"}),
            (400, "address", dict(good, publish=[
                {"address": "x", "port": 1, "inside": 1}])),
            (400, "'port'", dict(good, publish=[{"port": 0, "inside": 1}])),
            (400, "missing", dict(good, publish=[{"port": 1}])),
            (422, "a name has", dict(good, name="../x")),
            (422, "a name has", dict(good, name="A")),
            (422, "a name has", dict(good, name="x/y")),
            (422, "a name has", dict(good, name="..")),
            (422, "containers", dict(good, name="docker-0123456789ab")),
            (422, "no policy", {"name": "n"}),
            (422, "policy:1:1", {"name": "n", "policy": ""}),
            (413, "longer", {"name": "n", "policy": "#" * (1 << 20) + "##"}),
        ]
        # Their tree would be a hundred times as long.
        rows += [(413, "values", b"[" + b"[]," * (10 << 20) + b"[]]"),
                 (413, "values", b'{"name":"' + b'\\"' * 3 + b'","x":[' +
                  b'"[",' * 2000 + b"1]}"),
                 (400, "unknown key", b'{"x":"' + b"[{," * 2000 + b'"}')]
        for status, word, body in rows:
            got, answer = d.ask("POST", "/v1/sandboxes", body)
            check(got == status and word in answer["error"],
                  (status, word, got, answer))
        for method, path, status in (
                ("GET", "/", 404), ("GET", "/v1/sandboxes/../x", 404),
                ("GET", "/v1/sandboxes/", 404), ("PUT", "/healthz", 405),
                ("GET", "/v1/sandboxes/a%00b", 404),
                ("GET", "/v1/sandboxes/" + "a" * 70, 404),
                ("PATCH", "/v1/sandboxes", 501)):
            got, _ = d.ask(method, path)
            check(got == status, (method, path, got))
        check(d.good("GET", "/v1/sandboxes") == {"sandboxes": []})
        check(d.ask("GET", "/metrics")[0] == 200)
        with open(f"/proc/{d.process.pid}/status") as f:
            peak, = [int(line.split()[1]) for line in f if "VmHWM" in line]
        # In KB: a body and its copies.
        check(peak < 400 << 10, peak)


def raw(d, data, timeout=60):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(timeout)
    s.connect(d.socket)
    s.sendall(data)
    return s


def rest(s):
    got = b""
    try:
        while more := s.recv(65536):
            got += more
    except (ConnectionError, TimeoutError):
        pass
    s.close()
    return got


def alive(held):
    """How many of them are connected."""
    count = 0
    for s in held:
        s.setblocking(False)
        try:
            count += s.recv(1) != b""
        except BlockingIOError:
            count += 1
        except ConnectionError:
            pass
    return count


def test_hostile_peers(case):
    """Long, half-sent, pipelined and many: bounded, and others are served."""
    with daemon(case) as d:
        line = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
        # Too long a header, too long a body, nonsense.
        s = raw(d, line)
        with contextlib.suppress(ConnectionError):
            s.sendall(b"X: " + b"a" * 100000 + b"\r\n\r\n")
        check(b"200 OK" not in rest(s))
        s = raw(d, b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\n"
                b"Content-Length: 900000000\r\n\r\n")
        check(b" 413 " in rest(s))
        for bad in (b"\0\1\2\r\n\r\n", b"GET\r\n\r\n", b"x" * 9000,
                    b"GET / HTTP/9.9\r\n\r\n",
                    b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                    b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999"
                    b"\r\n\r\n",
                    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                    b"ffffffffffffffff\r\n"):
            s = raw(d, bad, 2)
            s.shutdown(socket.SHUT_WR)
            check(b"200 OK" not in rest(s), bad)
        # Several requests at once are answered one after the other.
        s = raw(d, (line + b"\r\n") * 3 + line + b"Connection: close\r\n\r\n")
        check(rest(s).count(b"200 OK") == 4)
        post = json.dumps({"name": "p", "policy": policy()}).encode()
        s = raw(d, b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: "
                b"%d\r\n\r\n" % len(post) + post + line
                + b"Connection: close\r\n\r\n")
        got = rest(s)
        check(b"201 Created" in got and b"200 OK" in got, got)
        # One who asks and does not wait.
        raw(d, b"DELETE /v1/sandboxes/p HTTP/1.1\r\nHost: x\r\n\r\n").close()
        d.wait(lambda: d.ask("GET", "/v1/sandboxes/p")[0] == 404)
        # Many of one user, each half-sent: others still get in.
        with user():
            held = []
            for _ in range(40):
                # Who is refused may be so before the first byte.
                with contextlib.suppress(BrokenPipeError):
                    held.append(raw(d, line))
            d.wait(lambda: alive(held) <= 16)
            time.sleep(0.2)
            check(alive(held) == 16, alive(held))
        check(d.ask("GET", "/healthz")[0] == 200)
        for s in held:
            s.close()
        with user():
            d.wait(lambda: d.answers(False))
        check(d.process.poll() is None)


@prompt
def test_slow_peer(case):
    """A byte now and then keeps nothing open: there are 30 s a request."""
    with daemon(case) as d:
        s = raw(d, b"GET /healthz HTTP/1.1\r\nX: ", 60)
        began = time.monotonic()
        closed = False
        while time.monotonic() - began < 60 and not closed:
            try:
                # It may say why, before it ends.
                if select.select([s], [], [], 1)[0]:
                    closed = s.recv(4096) == b""
                else:
                    s.sendall(b"a")
            except OSError:
                closed = True
        took = time.monotonic() - began
        check(closed and 25 < took, took)
    within(36, took)


def test_held_bytes(case):
    """What one user may make us hold is limited in all, not for each."""
    # What a sanitizer keeps of what is freed is not held.
    freed = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
    with daemon(case, env={"ASAN_OPTIONS": freed}) as d:
        head = (b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\n"
                b"Content-Length: 80000000\r\n\r\n")
        block = b" " * (1 << 20)
        held, cut = [], 0
        with user():
            for _ in range(4):
                s = raw(d, head, 10)
                held.append(s)
                try:
                    for _ in range(60):
                        s.sendall(block)
                except OSError:
                    cut += 1
        with open(f"/proc/{d.process.pid}/status") as f:
            rss = [int(x.split()[1]) for x in f if x.startswith("VmRSS")][0]
        check(cut >= 2 and rss < 200 << 10, (cut, rss))
        for s in held:
            s.close()
