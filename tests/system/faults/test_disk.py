# SPDX-License-Identifier: Apache-2.0
"""A full disk below the daemon's run and state directories and below a log, with
another sandbox beside it. (One session's own log: test_ledger_lost.py; what a
daemon keeps: test_daemon_strain.py.)"""
import contextlib
import os
import signal
import subprocess

from control_lab import steady
from daemon_lab import Daemon, fetch, policy, reaches
from fault_lab import verified
from harness import check

ROOM = "size=1m"
LOGS = "/var/log/sallyport"  # the lab's own


@contextlib.contextmanager
def small(path):
    """A disk of its own, with next to nothing on it; `full` fills it."""
    os.makedirs(path, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", ROOM + ",mode=0755", "small",
                    path], check=True)
    try:
        yield lambda: fill(path + "/full")
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def fill(path):
    with contextlib.suppress(OSError), open(path, "ab", 0) as f:
        while f.write(bytes(4096)):
            pass


def test_run_directory(case):
    """No sandbox is made without its place there; those that are there go on,
    also with a daemon that comes anew."""
    d = Daemon(case)
    with small(d.dir + "/run") as full:
        d.start()
        try:
            s = d.create("one", "allowed.test")
            check(reaches(s, "allowed.test"))
            full()
            said = d.ask("POST", "/v1/sandboxes", {
                "name": "two", "policy": policy("allowed.test")})
            check(said[0] in (201, 500, 503), said)
            check(reaches(d.one("one"), "allowed.test"), d.err())
            check(not fetch(d.one("one"), "evil.test"))
            d.stop(signal.SIGKILL)
            d.start()
            check(reaches(d.one("one"), "allowed.test"), d.err())
            print(f"       run directory full: a new sandbox {said[0]}, the "
                  "other one is served, also after a kill")
            os.unlink(d.dir + "/run/full")
            d.create("three", "allowed.test")
            check(reaches(d.one("three"), "allowed.test"), d.err())
            for box in d.good("GET", "/v1/sandboxes")["sandboxes"]:
                d.remove(box["name"])
        finally:
            d.stop()


def test_logs(case):
    """The disk that a daemon's logs lie on: nothing leaves that could not be
    written down, what was written holds; with room again, all is as before."""
    d = Daemon(case)
    with small(LOGS) as full:
        d.start()
        try:
            s = d.create("one", "allowed.test")
            check(s["log"].startswith(LOGS), s)
            check(fetch(s, "allowed.test"))
            full()
            d.wait(lambda: not fetch(s, "allowed.test"), 60)
            seen = steady(lambda: len(left(case)))
            for _ in range(5):
                check(not fetch(s, "allowed.test"))
            new = left(case)[seen:]
            check(not new, new)
            told = verified(case, s["log"])
            check(not told["closed"] and told["records"], told)
            state = d.one("one")["state"]
            os.unlink(LOGS + "/full")
            d.wait(lambda: d.one("one")["state"] == "ready"
                   and fetch(d.one("one"), "allowed.test"), 60)
            again = d.one("one")
            print(f"       logs full: {state}, {told['records']} records hold "
                  f"({told['verdict']}); with room again: ready, session "
                  f"{again['session'] != s['session'] and 'anew' or 'as it was'}")
            d.remove("one")
            check(verified(case, again["log"])["verdict"] == "holds")
        finally:
            d.stop()


def left(case):
    """Connections from the machine to anybody."""
    return case.lab.packets("tcp[13] = 2 and src host 203.0.113.2")
