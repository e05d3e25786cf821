# SPDX-License-Identifier: Apache-2.0
"""split.py with spare sandboxes: made by the builder without a name, and pinned
by it when somebody asks for one."""
import contextlib
import os
import re
import subprocess
import time


def within(seconds, condition):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def ready(machine):
    page = subprocess.run(["curl", "-s", "--unix-socket", machine.control,
                           "http://daemon/metrics"], capture_output=True,
                          text=True).stdout
    found = re.search(r"^sallyport_spare_sandboxes (\d+)$", page, re.M)
    return found and int(found[1])


def has_open(pid, ns):
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{fd}") == f"net:[{ns}]":
                return True
    return False


def life(machine, check, find, sandbox):
    with open(machine.config, "w") as out:
        out.write("version: 1\ngroup: nogroup\nlimits: "
                  "{ spare_per_user: 1 }\n")
    machine.start()
    made = []
    for users, who, first, second in ((1, "root", "ours", "ours2"),
                                      (2, "user", "theirs", "theirs2")):
        sandbox(machine, who, first)
        made += [first]
        check(f"{who}: a spare one is made", within(
            30, lambda: ready(machine) == users))
        before = find(machine, b"keeper")
        check(f"{who}: with a keeper", len(before) == users + len(made), before)
        check(f"{who}: it has no name", sorted(os.listdir(os.path.join(
            machine.run, "netns"))) == sorted(made), made)
        sandbox(machine, who, second)
        made += [second]
        pin = os.path.join(machine.run, "netns", second)
        check(f"{who}: it is what is had next",
              any(has_open(pid, os.stat(pin).st_ino) for pid in before))
        check(f"{who}: and there is another one", within(
            30, lambda: ready(machine) == users))
    for name in made:
        check(f"rm {name}", machine.call("rm", name).returncode == 0)
    left = os.listdir(os.path.join(machine.run, "netns")) + os.listdir(
        os.path.join(machine.run, "user"))
    check("spare: no name is left", not left, left)
    machine.end()
    check("spare: none is left",
          within(30, lambda: not find(machine, b"keeper")))


def nonsense(machine, check, request, say):
    """What is no namespace, or the builder's own, gets no name."""
    for what, path in (("the host's network", "/proc/self/ns/net"),
                       ("the host's users", "/proc/self/ns/user"),
                       ("a namespace of another kind", "/proc/self/ns/uts"),
                       ("no namespace", "/dev/null")):
        fd = os.open(path, os.O_RDONLY)
        answer = say(machine, request(8, b"pinned"), (fd,))
        os.close(fd)
        check(f"the builder: pins no name to {what}",
              answer and answer[:4] != bytes(4), answer)
    fd = os.open("/dev/null", os.O_RDONLY)
    for what, data, fds in (("a pin of nothing", request(8, b"pinned"), ()),
                            ("a pin without a name", request(8), (fd,)),
                            ("a pin elsewhere", request(8, b"../x"), (fd,)),
                            ("a spare one of something", request(7), (fd,))):
        check(f"the builder: {what}", say(machine, data, fds) == b"")
    os.close(fd)
    left = os.listdir(os.path.join(machine.run, "netns")) + os.listdir(
        os.path.join(machine.run, "user"))
    check("spare: nothing came of it", not left, left)


def spares(machine, check, find, sandbox, request, say):
    nonsense(machine, check, request, say)
    life(machine, check, find, sandbox)
