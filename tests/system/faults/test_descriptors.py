# SPDX-License-Identifier: Apache-2.0
"""Processes without a descriptor left: none spins, what there is goes on, the rest
is refused or waits, and afterwards all is as before. (As seen from inside a
sandbox: test_attacks_floods.py.)"""
import contextlib
import os
import resource
import socket
import time

from daemon_lab import Daemon, fetch
from fault_lab import FLOWS, Session
from faulty import Faulty
from harness import check
from witness import read_log, unrecorded, Witness

LIMIT = 64  # files, of each process of a session


@contextlib.contextmanager
def few(pid):
    """It may open no more files; afterwards as many as before."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    top = max(map(int, os.listdir(f"/proc/{pid}/fd"))) + 1
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (top, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def busy(pid, seconds=1.0):
    """The part of a processor that it uses, of that time."""
    def ran():
        with open(f"/proc/{pid}/schedstat") as f:
            return int(f.read().split()[0]) / 1e9
    before = ran()
    time.sleep(seconds)
    return (ran() - before) / seconds


def hold(where, many=40):
    """Connections that say nothing."""
    held = []
    for _ in range(many):
        s = socket.socket(where[0])
        s.setblocking(False)
        with contextlib.suppress(OSError):
            s.connect(where[1])
        held.append(s)
    return held


def lives(s):
    """One that says nothing, and was told nothing."""
    try:
        return s.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def tell(role, spun, refused):
    print(f"       {role:8}{spun:6.2f} of a processor meanwhile; {refused}")
    check(spun < 0.5, (role, spun))


def test_gate(case):
    """Connections from outside that say nothing take two each."""
    with Witness(case, "fds") as witness:
        s = Session(case, Faulty(case, "gate"), preexec_fn=lambda:
                    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT)))
        held = []

        def full():
            """Those that met the limit while others had what they need for a
            moment are gone; more come in their place."""
            if not s.alive() or len(os.listdir(f"/proc/{s.pid}/fd")) >= LIMIT - 4:
                return True
            for one in [one for one in held if not lives(one)]:
                held.remove(one)
                one.close()
            if len(held) < 2 * LIMIT:  # else it has not come to them yet
                held.extend(hold((socket.AF_INET, ("127.0.0.1", s.port)), 8))
            return False
        case.lab.wait(full, "the limit")
        time.sleep(0.5)  # and what comes after that
        check(s.alive(), s.alive() or s.end())
        spun = busy(s.pid)
        said = {kind: s.flow(kind) for kind in ("briefly", "reload")}
        for one in held:
            one.close()
        check(s.alive(), "died")
        tell("gate", spun, said)
        case.lab.wait(lambda: s.flow("published") == "ok", "recovery", 90)
        for kind in (*FLOWS, "reload"):
            got = s.flow(kind)
            check(got == "ok", (kind, got))
        s.ends_well()
        check(not unrecorded(witness.ids(), read_log(s.log + "/audit.jsonl")))


def test_warden(case):
    """It has none for another policy, nor for what it looks at now and then."""
    with Witness(case, "fds-warden"):
        s = Session(case, Faulty(case, "run"))
        with few(s.pid):
            spun = busy(s.pid, 3)
            said = {kind: s.flow(kind) for kind in ("connect", "reload")}
            check(s.alive() and said["connect"] == "ok", said)
        tell("warden", spun, said)
        for kind in (*FLOWS, "reload"):
            got = s.flow(kind)
            check(got == "ok", (kind, got))
        s.ends_well()


def test_daemon(case):
    """What takes its descriptors is who connects and says nothing."""
    d = Daemon(case).start()
    pid = d.process.pid
    try:
        s = d.create("stays", "allowed.test")
        with few(pid):
            held = hold((socket.AF_UNIX, d.socket))
            spun = busy(pid)
            check(fetch(s, "allowed.test"))
            for one in held:
                one.close()
            case.lab.wait(lambda: d.ask("GET", "/healthz")[0] == 200, "daemon")
            status, answer = d.ask("POST", "/v1/sandboxes", {
                "name": "more", "policy": "version: 1\n"})
        tell("daemon", spun, (status, answer if status >= 400 else ""))
        with contextlib.suppress(OSError):
            d.ask("DELETE", "/v1/sandboxes/more")
        d.create("again", "allowed.test")
        check(fetch(d.one("again"), "allowed.test"))
        for name in "stays", "again":
            d.remove(name)
    finally:
        check(d.stop() == 0, d.err())
