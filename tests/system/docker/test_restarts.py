# SPDX-License-Identifier: Apache-2.0
"""The daemon or the engine goes away while containers run, and comes back; and
what many of them leave behind."""
import os
import signal

from engine import fds, leftovers, settle
from product import Case, wait  # noqa: F401


def cut(case, c):
    """Reaches nothing."""
    for host in "allowed.test", "93.184.216.34", "evil.test":
        got = case.fetch(c, host)
        assert "hello" not in got.stdout, (host, got)
    name = case.name()
    case.docker.sh(c, f"timeout 2 nslookup {name}")
    assert not case.lab.asked(name)


def back(case, c):
    wait(lambda: (s := case.sandbox(c)) and s["state"] == "ready",
         "its sandbox")
    case.held(c)


def test_daemon(case):
    """Stopped or killed: nothing is reached until it is back."""
    c = case.container()
    hardened = case.container("--cap-drop", "ALL", "--read-only", "--user",
                              "65534")
    case.held(c)
    for how in signal.SIGTERM, signal.SIGKILL:
        case.daemon.stop(how)
        cut(case, c)
        cut(case, hardened)
        case.daemon.start()
        back(case, c)
        back(case, hardened)
        new = case.container()
        case.held(new)
        case.remove(new)
    assert case.docker.links(c) == ["eth0", "lo"]
    case.remove(c, hardened)


def test_keeper_killed(case):
    """One sandbox loses its keeper: it is cut off, or has a new one; the others
    do not notice."""
    a, b = case.container(), case.container()
    sandbox = case.sandbox(a)
    keepers = [pid for pid in children(case.daemon.process.pid)
               if open(f"/proc/{pid}/cmdline").read().split("\0")[1:2] ==
               ["keeper"]]
    assert len(keepers) == 2, keepers
    case.held(a)
    mine = [pid for pid in keepers if mentions(pid, sandbox["name"])]
    assert len(mine) == 1, (keepers, sandbox["name"])
    os.kill(mine[0], signal.SIGKILL)
    case.held(b)
    s = wait(lambda: (s := case.sandbox(a)) is None or
             s["state"] in ("failed", "ready") and (s,) or None, "its state")
    if s is True or s[0]["state"] == "failed":
        cut(case, a)
    else:
        back(case, a)
    case.remove(a, b)


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as f:
            found += [int(child) for child in f.read().split()]
    return found


def mentions(pid, name):
    with open(f"/proc/{pid}/cmdline") as f:
        if name in f.read():
            return True
    for below in children(pid):
        if mentions(below, name):
            return True
    return False


def test_engine_stopped(case):
    before = leftovers()
    c = case.container("--restart", "always")
    case.held(c)
    case.docker.restart(signal.SIGTERM)
    wait(lambda: case.docker.inspect(c)["State"]["Running"], "its restart", 60)
    back(case, c)
    case.remove(c)
    assert settle(leftovers, before, 30) == before


def test_engine_killed(case):
    """It tells nobody of what it lost: that is found out."""
    before = leftovers()
    c = case.container()
    always = case.container("--restart", "always")
    case.held(c)
    case.docker.restart(signal.SIGKILL)
    wait(lambda: case.docker.inspect(always)["State"]["Running"],
         "its restart", 60)
    back(case, always)
    if case.docker.inspect(c)["State"]["Running"]:
        cut(case, c)
    case.remove(c, always)
    new = case.container()
    case.held(new)
    case.remove(new)
    after = settle(leftovers, before, 90)
    assert after == before, (before, after)


def test_both_killed(case):
    before = leftovers()
    c = case.container("--restart", "always")
    case.docker.kill(signal.SIGKILL)
    case.daemon.stop(signal.SIGKILL)
    case.daemon.start()
    case.docker.start()
    wait(lambda: case.docker.inspect(c)["State"]["Running"], "its restart", 60)
    back(case, c)
    case.remove(c)
    after = settle(leftovers, before, 90)
    assert after == before, (before, after)


def test_plugin_away(case):
    """While there is no daemon, no container starts, and none is half made."""
    before = leftovers()
    case.daemon.stop()
    got = case.docker.run("run", "--rm", "--network", "agents", "box", "true",
                          check=False, timeout=120)
    assert got.returncode, got
    case.daemon.start()
    c = case.container()
    case.held(c)
    case.remove(c)
    assert settle(leftovers, before, 30) == before


def test_many(case):
    """20 that come and go leave nothing behind: no interface, namespace, table,
    process or descriptor."""
    pid = case.daemon.process.pid
    case.docker.run("run", "--rm", "--network", "agents", "box", "true")

    def all_of_it():
        return {**leftovers(), "fds": fds(pid), "children": len(children(pid)),
                "sandboxes": len(case.daemon.sandboxes())}
    before = wait(lambda: (s := all_of_it())["sandboxes"] == 0 and s,
                  "an empty daemon")
    for i in range(20):
        case.network(f"many{i % 3}", check=False)
        case.docker.run("run", "--rm", "--network", f"many{i % 3}", "box",
                        "wget", "-qO-", "http://allowed.test/")
        if i % 3 == 2:
            case.docker.run("network", "rm", f"many{i % 3}")
    case.docker.run("network", "rm", "many0", "many1")
    after = settle(all_of_it, before, 30)
    assert after == before, (before, after)
