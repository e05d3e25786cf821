# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that are ready before anybody has asked for them."""
import contextlib
import json
import os
import re
import signal
import subprocess
import threading

from daemon_lab import (Daemon, daemon, fetch, keepers, left, open_files,
                        policy, reaches)
from harness import USER, check

CONFIG = "version: 1\ngroup: www-data\nlimits: { spare_per_user: %d }\n"


def ready(d):
    _, page = d.ask("GET", "/metrics")
    return int(re.search(r"^sallyport_spare_sandboxes (\d+)$", page, re.M)[1])


@contextlib.contextmanager
def pool(case, n=2):
    with daemon(case, config=CONFIG % n) as d:
        yield d


def filled(d, n=2):
    """All of them are there, and nobody else's keeper still is."""
    d.wait(lambda: ready(d) == n and len(keepers(d)) == n + len(names(d)))
    return set(keepers(d))


def keeper_of(d, name):
    """The one that has its namespace open."""
    ns = "net:[%d]" % os.stat(d.one(name)["netns"]).st_ino
    found = [pid for pid in keepers(d)
             if any(link == ns for link in open_files(pid))]
    check(len(found) == 1, (name, found))
    return found[0]


def as_user(case, d, *argv, uid=USER, gid=USER, status=0):
    env = dict(case.env(), SALLYPORT_SOCKET=d.socket,
               SALLYPORT_NO_DAEMON="0")
    out = subprocess.run(
        ["setpriv", "--reuid", str(uid), "--regid", str(gid), "--groups", "33",
         case.binary, *argv], env=env, cwd="/", capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=60)
    check(out.returncode == status, (out, d.err()))
    return out


def names(d):
    return sorted(os.listdir(d.dir + "/run/netns"))


def test_taken(case):
    """One that was made before is what it gets: its keeper, and all that makes
    it a sandbox of its own."""
    with pool(case) as d:
        check(ready(d) == 0 and not keepers(d), "nobody asked yet")
        one = d.create("one", "allowed.test")
        first = filled(d)
        check(len(first) == 3, first)
        # Nobody can name one that is nobody's, nor is it on the disk.
        check(names(d) == ["one"], names(d))
        check(os.listdir(d.dir + "/state/sandboxes") == ["one"])
        two = d.create("two", "other.test")
        check(keeper_of(d, "two") in first, "it has another keeper")
        check(keeper_of(d, "one") in first, "it lost its keeper")
        check(names(d) == ["one", "two"], names(d))
        for s, mine, other in ((one, "allowed.test", "other.test"),
                               (two, "other.test", "allowed.test")):
            check(reaches(s, mine) and fetch(s, mine), d.err())
            check(not reaches(s, other) and not fetch(s, other), d.err())
            check(not fetch(s, "evil.test"), d.err())
        check(one["log"] != two["log"], (one, two))
        with open(two["log"] + "/audit.jsonl") as f:
            log = [json.loads(line)["unmapped"] for line in f]
        check(log[0]["event"] == "session_open" and
              all(r["sandbox"] == "two" for r in log), log[0])
        # What it is can be changed, as of any other.
        d.good("PUT", "/v1/sandboxes/two/policy",
               {"policy": policy("allowed.test")})
        check(fetch(two, "allowed.test") and not fetch(two, "other.test"))
        filled(d)


def test_nothing_left(case):
    with pool(case) as d:
        d.create("warm", "allowed.test")
        d.remove("warm")
        filled(d)
        before = left(d)
        for i in range(4):
            filled(d)
            s = d.create(f"s{i}", "allowed.test")
            check(reaches(s, "allowed.test"), d.err())
            d.remove(f"s{i}")
        filled(d)
        d.wait(lambda: left(d) == before)


def test_whose(case):
    """A user's are his own: below a user namespace of his, and for no other."""
    with pool(case) as d:
        d.create("roots", "allowed.test")
        filled(d)
        before = set(keepers(d))
        as_user(case, d, "create", "his", "--allow", "allowed.test")
        check(keeper_of(d, "his") not in before, "he got one of root's")
        d.wait(lambda: ready(d) == 4)
        before = set(keepers(d))
        as_user(case, d, "create", "again", "--allow", "allowed.test")
        check(keeper_of(d, "again") in before, "it was made anew")
        check(sorted(os.listdir(d.dir + "/run/user")) == ["again", "his"])
        told = as_user(case, d, "exec", "again", "--", "cat",
                       "/proc/self/uid_map").stdout.split()
        check(told, told)
        mine = as_user(case, d, "exec", "again", "--", "readlink",
                       "/proc/self/ns/net").stdout.strip()
        check(mine == "net:[%d]" % os.stat(d.one("again")["netns"]).st_ino)
        check("hello from the lab" in as_user(
            case, d, "exec", "again", "--", "curl", "-sf", "-m", "50",
            "http://allowed.test/").stdout, d.err())
        as_user(case, d, "exec", "again", "--", "curl", "-sf", "-m", "50",
                "http://evil.test/", status=22)
        # Groups don't get him more of them.
        d.wait(lambda: ready(d) == 4)
        for gid in (34, 35):
            as_user(case, d, "create", f"g{gid}", "--allow", "allowed.test",
                    gid=gid)
            d.wait(lambda: ready(d) == 4 and
                   len(keepers(d)) == len(names(d)) + 4)
        before = set(keepers(d))
        as_user(case, d, "create", "more", "--allow", "allowed.test", gid=35)
        check(keeper_of(d, "more") in before, "it was made anew")
        out = as_user(case, d, "run", "--allow", "allowed.test", "--", "curl",
                      "-sf", "-m", "50", "http://allowed.test/")
        check("hello from the lab" in out.stdout, (out, d.err()))


def end(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_lost(case):
    """Without them a sandbox is made as if there had been none."""
    with pool(case) as d:
        d.create("one", "allowed.test")
        one = keeper_of(d, "one")
        for i in range(6):
            spare = filled(d) - {one}
            check(len(spare) == 2, spare)
            # In the moment in which it is asked for: it may be told by then.
            for pid in spare:
                os.kill(pid, signal.SIGSTOP)
            done = threading.Timer(0.1 * (i % 3), end, [spare])
            done.start()
            s = d.create(f"s{i}", "allowed.test")
            done.join()
            check(keeper_of(d, f"s{i}") not in spare, spare)
            check(reaches(s, "allowed.test"), d.err())
            d.remove(f"s{i}")
        check(keeper_of(d, "one") == one, d.err())


def test_taken_name(case):
    """What is pinned there already is no sandbox, and does not become one."""
    with pool(case) as d:
        d.create("one", "allowed.test")
        filled(d)
        path = d.dir + "/run/netns/two"
        with open(path, "w"):
            pass
        subprocess.run(["mount", "--bind", "/proc/self/ns/net", path],
                       check=True)
        status, answer = d.ask("POST", "/v1/sandboxes", {
            "name": "two", "policy": policy("allowed.test")})
        check(status >= 400, answer)
        d.wait(lambda: names(d) == ["one"])
        check(ready(d) == 2, "one that was not taken is gone")
        check(d.create("three", "allowed.test")["state"] == "ready", d.err())


def test_daemon_goes(case):
    """None outlives it; those that were taken do, as all do."""
    with pool(case) as d:
        d.create("one", "allowed.test")
        filled(d)
        d.create("two", "allowed.test")
        pids = filled(d)
        d.stop(signal.SIGKILL)
        d.wait_gone(pids)
        check(names(d) == ["one", "two"], names(d))
        d.start()
        for name in ("one", "two"):
            check(reaches(d.one(name), "allowed.test"), d.err())
        check(ready(d) == 0 and len(keepers(d)) == 2, "nobody asked yet")
        d.create("three", "allowed.test")
        pids = filled(d)
        check(d.stop() == 0, d.err())
        d.wait_gone(pids)
        d.start()


def test_operator(case):
    """Fewer are none that day; a number is a number."""
    with pool(case) as d:
        d.create("one", "allowed.test")
        filled(d)
        d.configure("version: 1\ngroup: www-data\n")
        d.good("POST", "/v1/reload")
        d.wait(lambda: ready(d) == 0 and len(keepers(d)) == 1)
        d.create("two", "allowed.test")
        check(reaches(d.one("two"), "allowed.test"), d.err())
        d.configure(CONFIG % 17)
        status, answer = d.ask("POST", "/v1/reload")
        check(status == 422 and "'spare_per_user' is a whole number from 1 to "
              "16" in str(answer), (status, answer))
        d.configure(CONFIG % 1)
        d.good("POST", "/v1/reload")
        d.create("three", "allowed.test")
        filled(d, 1)
