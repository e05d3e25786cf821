# SPDX-License-Identifier: Apache-2.0
"""Any of the processes that keep a container's boundary dies, or stands still,
in any order: meanwhile it reaches less, never more; afterwards it works."""
import itertools
import os
import signal
import threading
import time

from product import Case, wait  # noqa: F401
from test_restarts import children, command

ROLES = "gate", "ledger", "keeper"


def pids(case):
    """Role to pid, of the one sandbox."""
    keepers = [p for p in children(case.daemon.process.pid)
               if command(p) == "keeper"]
    if len(keepers) != 1:
        return {}
    found = {command(p): p for p in children(keepers[0])}
    return {"keeper": keepers[0], **found}


def whole(case):
    return wait(lambda: set(p := pids(case)) >= set(ROLES) and p,
                "all of its processes")


class Trying:
    """Asks for what is forbidden, by name and address, all the time."""

    def __init__(self, case, c):
        self.case, self.c, self.over = case, c, False
        self.got = []
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over:
            done = self.case.docker.sh(
                self.c, "for h in evil.test 93.184.216.66 other.test; do "
                "timeout 1 wget -qO- http://$h/; done; timeout 1 nslookup "
                f"{self.case.name()}; timeout 1 nslookup {self.case.name()} "
                "93.184.216.53")
            self.got.append(done.stdout)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()
        assert self.got and not [t for t in self.got if "hello" in t], self.got


def works(case, c):
    wait(lambda: "hello" in case.fetch(c, "allowed.test").stdout, "its way")
    assert not case.fetch(c, "evil.test").stdout


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it went with the one before


def test_each_order(case):
    for order in itertools.permutations(ROLES):
        # Three deaths of a keeper in a minute are the end of a sandbox.
        c = case.container()
        works(case, c)
        with Trying(case, c):
            now = whole(case)
            for role in order:
                kill(now[role])
                time.sleep(0.05)
            wait(lambda: pids(case).get("keeper") != now["keeper"] and
                 set(pids(case)) >= set(ROLES), f"others after {order}")
        works(case, c)
        assert case.docker.links(c) == ["eth0", "lo"]
        case.remove(c)
        wait(lambda: not case.daemon.sandboxes(), "its end")


def test_one_alone(case):
    """A gate is started again; a ledger's end is its session's."""
    c = case.container()
    for role in ROLES:
        now = whole(case)
        with Trying(case, c):
            kill(now[role])
            wait(lambda: pids(case).get(role) not in (None, now[role]),
                 f"another {role}")
        works(case, c)
    case.remove(c)


def test_standing_still(case):
    """A ledger that takes nothing: nothing is let through that it has not."""
    c = case.container()
    works(case, c)
    now = whole(case)
    os.kill(now["ledger"], signal.SIGSTOP)
    try:
        with Trying(case, c):
            got = case.fetch(c, "allowed.test")
            assert "hello" not in got.stdout, got
    finally:
        os.kill(now["ledger"], signal.SIGCONT)
    works(case, c)
    case.remove(c)
