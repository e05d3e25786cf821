# SPDX-License-Identifier: Apache-2.0
"""The owner of a sandbox is root in its namespaces, from outside. What he does
with that costs him his sandbox, and nobody else anything."""
import os
import subprocess

from harness import USER, check
from daemon_lab import daemon, fetch, keepers, reaches, user

HOST = "allowed.test"


def as_owner(s, *argv):
    """As the owner, with all rights in the sandbox's namespaces."""
    return subprocess.run(
        ["setpriv", "--reuid", str(USER), "--regid", str(USER),
         "--clear-groups", "nsenter", "--user=" + s["userns"],
         "--net=" + s["netns"], "--preserve-credentials", *argv],
        capture_output=True, text=True, timeout=30,
        preexec_fn=lambda: os.setresuid(0, 0, 0))


def created(d, name="users"):
    with user():
        return d.create(name, HOST)


def test_way_out(case):
    """The other end of his link, and whose namespace that is in."""
    with daemon(case) as d:
        s = created(d)
        keeper, = keepers(d)
        for argv in (
                ["ip", "link", "set", "eth0", "netns", str(keeper)],
                ["ip", "link", "set", "eth0", "netns", str(os.getpid())],
                ["ip", "link", "add", "x", "type", "veth", "peer", "name",
                 "y", "netns", str(keeper)],
                ["nsenter", f"--net=/proc/{keeper}/ns/net", "true"]):
            run = as_owner(s, *argv)
            check(run.returncode and ("not permitted" in run.stderr or
                                      "denied" in run.stderr), (argv, run))
        # Nothing of that was a change.
        check(fetch(s, HOST) and keepers(d) == [keeper], d.err())


def changed(case, word, *argv):
    """He changes it, and reaches nothing: the first times there is a new
    keeper, which begins from the start."""
    with daemon(case) as d:
        s = created(d)
        other = d.create("roots", HOST)
        for _ in range(3):
            before = d.err().count("its keeper died")
            run = as_owner(s, *argv)
            check(run.returncode == 0, run)
            d.wait(lambda: d.err().count("its keeper died") > before)
            check(word in d.err(), d.err())
            d.wait(lambda: d.one("users")["state"] in ("ready", "failed"))
        failed = d.one("users")
        check(failed["state"] == "failed" and "boundary" in failed["why"],
              failed)
        check(not fetch(s, HOST) and not reaches(s, HOST))
        check(fetch(other, HOST), d.err())


def test_link_taken_away(case):
    changed(case, "interface", "ip", "link", "set", "eth0", "down")


def test_other_address(case):
    changed(case, "198.19.0.77", "ip", "addr", "add", "198.19.0.77/32", "dev",
            "eth0")


def test_other_interface(case):
    """One on top of ours has another hardware address."""
    changed(case, "macvlan", "ip", "link", "add", "link", "eth0", "name",
            "mv", "type", "macvlan")
