# SPDX-License-Identifier: Apache-2.0
"""The daemon or the engine goes away while containers run, and comes back; and
what many of them leave behind."""
import contextlib
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
    """One sandbox loses its keeper: it is cut off, or has a new one; the other
    does not notice."""
    both = [case.container(), case.container()]
    for c in both:
        case.held(c)
    sessions = {c: case.sandbox(c)["session"] for c in both}
    # Those of the test before may be about to end.
    keepers = wait(lambda: len(found := [
        pid for pid in children(case.daemon.process.pid)
        if command(pid) == "keeper"]) == 2 and found, "two keepers")
    os.kill(keepers[0], signal.SIGKILL)

    def changed(c):
        s = case.sandbox(c)
        return not s or s["state"] == "failed" or s["session"] != sessions[c]
    hit = wait(lambda: [c for c in both if changed(c)], "somebody's loss")
    assert len(hit) == 1, hit
    other = next(c for c in both if c not in hit)
    case.held(other)
    sandbox = wait(lambda: (s := case.sandbox(hit[0])) and
                   s["state"] in ("failed", "ready") and s, "its state")
    if sandbox["state"] == "ready":
        case.held(hit[0])
    else:
        cut(case, hit[0])
    assert case.sandbox(other)["session"] == sessions[other]
    case.remove(*both)


def command(pid):
    """What it is called as; "" of one that is over."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline") as f:
        return (f.read().split("\0") + ["", ""])[1]
    return ""


def children(pid):
    """Of all its threads; of one that is over none."""
    found = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), \
                    open(f"/proc/{pid}/task/{task}/children") as f:
                found += [int(child) for child in f.read().split()]
    return found


def test_engine_stopped(case):
    before = case.at_rest()
    c = case.container("--restart", "always")
    case.held(c)
    case.docker.restart(signal.SIGTERM)
    wait(lambda: case.docker.inspect(c)["State"]["Running"], "its restart", 60)
    back(case, c)
    case.remove(c)
    after = settle(leftovers, before, 90)
    assert after == before, (before, after)


def test_engine_killed(case):
    """It tells nobody of what it lost: that is found out."""
    before = case.at_rest()
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
    before = case.at_rest()
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
    before = case.at_rest()
    case.daemon.stop()
    got = case.docker.run("run", "--rm", "--network", "agents", "box", "true",
                          check=False, timeout=120)
    assert got.returncode, got
    case.daemon.start()
    c = case.container()
    case.held(c)
    case.remove(c)
    after = settle(leftovers, before, 90)
    assert after == before, (before, after)


def test_many(case):
    """20 that come and go leave nothing behind: no interface, namespace, table,
    process or descriptor."""
    pid = case.daemon.process.pid
    case.docker.run("run", "--rm", "--network", "agents", "box", "true")

    def all_of_it():
        return {**leftovers(), "fds": fds(pid), "children": len(children(pid)),
                "sandboxes": len(case.daemon.sandboxes())}
    before = case.at_rest(all_of_it)
    for i in range(20):
        case.network(f"many{i % 3}", check=False)
        case.docker.run("run", "--rm", "--network", f"many{i % 3}", "box",
                        "wget", "-qO-", "http://allowed.test/")
        if i % 3 == 2:
            case.docker.run("network", "rm", f"many{i % 3}")
    case.docker.run("network", "rm", "many0", "many1")
    after = settle(all_of_it, before, 90)
    assert after == before, (before, after)
