# SPDX-License-Identifier: Apache-2.0
"""Policies that change often, long ones, and who pays for it."""
import concurrent.futures
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

from harness import check, silent
from reload_lab import BOTH, events, OTHER, reload, Session, warden_of


class Usage:
    """Descriptors and memory of a gate and its warden."""

    def __init__(self, gate, warden):
        self.pids = {"gate": gate, "warden": warden}

    def read(self):
        found = {}
        for name, pid in self.pids.items():
            with open(f"/proc/{pid}/status") as f:
                rss = int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])
            found[name] = (len(os.listdir(f"/proc/{pid}/fd")), rss)
        return found


def check_usage(before, after, case, flows=0):
    """@flows: descriptors of what is under way just then."""
    for name, (fds, rss) in before.items():
        check(after[name][0] <= fds + 2 + flows, (name, before, after))
        if not case.sanitized:
            check(after[name][1] <= rss + 2048, (name, before, after))


PROBER = r"""
import os, socket, sys, time
proxy = os.environ["http_proxy"].split("//")[1].split(":")
while True:
    began = time.time()
    try:
        s = socket.create_connection((proxy[0], int(proxy[1])), 5)
        s.settimeout(5)
        s.sendall(b"CONNECT allowed.test:7000 HTTP/1.1\r\nHost: allowed.test:7000\r\n\r\n")
        ok = b" 200 " in s.recv(4096)
        if ok:
            s.sendall(b"\0echo\n")
            ok = s.recv(6) == b"\0echo\n"
        s.close()
    except OSError:
        ok = False
    os.write(1, f"{began!r} {time.time()!r} {int(ok)}\n".encode())  # in one piece
"""


def tried(case, seen, pause):
    """Lets somebody do so, from beginning to end; since when."""
    since = time.time()
    time.sleep(pause)
    case.lab.wait(lambda: any(began > since for began, _, _ in seen[-10:]), "a try")
    return since


def test_two_hundred_reloads_under_load(case):
    """No connection that was begun after a denial was acknowledged succeeds."""
    place = f"{case.lab.dir}/policies-{case.who}"
    os.makedirs(place, exist_ok=True)
    path = place + "/load.yaml"

    def write(policy):
        with open(path, "w") as f:
            f.write("version: 1\nlimits: {connections_per_second: 100000}\n"
                    + policy)
        case.mine(path)
    write(BOTH)
    process, log = case.start("sh", "-c", "for i in 1 2 3; do python3 -c \"$0\" & "
                              "done; wait", PROBER, allow=(),
                              args=("--policy", path, "--quiet"))
    seen = []

    def read():
        for line in process.stdout:
            began, ended, ok = line.split()
            seen.append((float(began), float(ended), ok == "1"))
    reader = threading.Thread(target=read)
    reader.start()
    denied = []  # from, to
    try:
        gate = case.child(process, "gate")
        usage = Usage(gate, warden_of(process, gate))
        before = None
        for i in range(100):
            write(OTHER)
            check(reload(case, log).returncode == 0)
            began = tried(case, seen, 0.03)
            denied.append((began, time.time()))
            write(BOTH)
            check(reload(case, log).returncode == 0)
            tried(case, seen, 0.02)
            if i == 20:
                before = usage.read()
        check_usage(before, usage.read(), case, flows=24)
    finally:
        process.terminate()
        process.wait(60)
        reader.join()
        process.stdout.close()
        process.stderr.close()
    check(sum(ok for _, _, ok in seen) > 50, len(seen))
    probes = 0
    for began, ended, ok in seen:
        for since, to in denied:
            if since < began and ended < to:
                probes += 1
                check(not ok, (began, ended, since, to))
    check(probes > 20, probes)
    with open(log + "/audit.jsonl") as f:
        records = [json.loads(line) for line in f]
    check(len(events(records, "policy")) == 200)
    check(not events(records, "finding"), events(records, "finding"))


def test_a_long_list_stops_nobody(case):
    """While it is made into a policy what goes on goes on; and what it took is
    given back with it."""
    place = f"{case.lab.dir}/policies-{case.who}"
    os.makedirs(place, exist_ok=True)
    path = place + "/long.txt"
    with Session(case, BOTH) as s:
        s.works("open", "stays", "tls", "allowed.test", 443)
        usage = Usage(s.gate(), warden_of(s.process, s.gate()))
        for salt in "ab":
            with open(path, "w") as f:
                f.writelines(f"n{i}.{salt}.example\n" for i in range(1000000))
            case.mine(path)
            s.write(BOTH + f"deny:\n  - file: {path}\n")
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                began = time.monotonic()
                done, longest = pool.submit(s.reload), 0
                while not done.done():
                    at = time.monotonic()
                    s.works("ping", "stays")
                    longest = max(longest, time.monotonic() - at)
                    time.sleep(0.005)
                took = time.monotonic() - began
                done.result()
            check(longest < took / 4, (longest, took))
        s.reload(BOTH)
        s.works("ping", "stays")
        for name, (_, rss) in usage.read().items():
            check(case.sanitized or rss < 10 << 10, (name, rss))


def test_a_thousand_reloads_of_serve(case):
    place = f"{case.lab.dir}/policies-{case.who}"
    os.makedirs(place, exist_ok=True)
    case.mine(place)
    path, log = place + "/serve.yaml", f"{case.lab.dir}/log-reloads-{case.who}"
    os.mkdir(log, 0o700)
    case.mine(log)

    def write(policy):
        with open(path + ".new", "w") as f:
            f.write("version: 1\n" + policy)
        case.mine(path + ".new")
        os.rename(path + ".new", path)  # no sandbox has it masked
    write(BOTH)
    process = subprocess.Popen(
        [*case.drop(), case.binary, "serve", "--policy", path, "--log", log,
         "--proxy", "127.0.0.1:18090", "--dns", "127.0.0.1:15390"],
        env=case.env(), text=True, stderr=subprocess.PIPE, cwd=case.work)
    try:
        check("serving" in process.stderr.readline())
        gate = case.child(process, "gate")
        usage = Usage(gate, warden_of(process, gate))

        def hup(policy):
            write(policy)
            process.send_signal(signal.SIGHUP)
            check("policy sha256:" in process.stderr.readline())

        def status():
            with socket.create_connection(("127.0.0.1", 18090), 60) as c:
                c.sendall(b"CONNECT allowed.test:7000 HTTP/1.1\r\n"
                          b"Host: allowed.test:7000\r\n\r\n")
                return c.recv(4096).split()[1].decode()
        before = None
        for i in range(500):
            hup(OTHER)
            if i % 50 == 0:
                check(status() == "403", i)
            hup(BOTH)
            if i % 50 == 0:
                check(status() == "200", i)
            if i == 100:
                before = usage.read()
        check_usage(before, usage.read(), case)
        check(reload(case, log).stdout.startswith("unchanged"))
        with open(path, "w") as f:
            f.write("version: 1\nnonsense\n")
        process.send_signal(signal.SIGHUP)
        said = process.stderr.readline()
        check("serve.yaml:" in said, said)
        check(status() == "200")
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    check(process.returncode == 0, err)
    with open(log + "/audit.jsonl") as f:
        check(len(events([json.loads(line) for line in f], "policy")) == 1000)
    silent(case)
