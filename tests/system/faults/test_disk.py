# SPDX-License-Identifier: Apache-2.0
"""A full disk below the daemon's run and state directories and below a log, with
another sandbox beside it. (One session's own log: test_ledger_lost.py; what a
daemon keeps: test_daemon_strain.py.)"""
import contextlib
import os
import signal
import subprocess

from daemon_lab import Daemon, fetch, keepers, policy, reaches
from fault_lab import verified
from harness import check

ROOM = "size=1m"


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


def test_log_of_one_sandbox(case):
    """Its log can't grow: it reaches nothing any more. Another one, whose log is
    elsewhere, does not notice; the log that was is whole as far as it goes."""
    d = Daemon(case)
    where = d.dir + "/logs"
    with small(where) as full:
        d.start()
        try:
            other = d.create("other", "allowed.test")
            lost = d.good("POST", "/v1/sandboxes", {
                "name": "lost", "policy": policy("allowed.test"), "log": where})
            check(fetch(lost, "allowed.test") and fetch(other, "allowed.test"))
            before = keepers(d)
            full()
            d.wait(lambda: not fetch(lost, "allowed.test"), 60)
            seen = len(case.lab.packets("tcp[13] = 2 and src host 203.0.113.2"))
            for _ in range(5):
                check(not fetch(lost, "allowed.test"))
            check(len(case.lab.packets(
                "tcp[13] = 2 and src host 203.0.113.2")) == seen, "it left")
            check(fetch(other, "allowed.test"), d.err())
            check(len(before) == 2, before)
            told = verified(case, lost["log"])
            print(f"       log full: {told['records']} records hold "
                  f"({told['verdict']}), the other sandbox is served")
            for name in "lost", "other":
                d.ask("DELETE", "/v1/sandboxes/" + name)
        finally:
            d.stop()
