# SPDX-License-Identifier: Apache-2.0
"""Pid 1 of a machine of its own, which has cgroup v2 and nothing of v1: how the
launcher's limits are held there, from each of the places where it may be
started. Says "passed" as its last word; tests/vm/run looks for that."""
import os
import subprocess
import sys
import traceback

TOP, ACTOR, USER = "/sys/fs/cgroup", sys.argv[1], 33
MEMORY, PIDS, CPUS = str(16 << 20), "20", "200"


def mount(kind, at, options="rw"):
    subprocess.run(["mount", "-t", kind, "-o", options, "none", at], check=True)


def put(path, text):
    with open(path, "w") as f:
        f.write(text)


def group(name, owner=None):
    """A control group; delegated, if it has an owner, as systemd does."""
    path = f"{TOP}/{name}"
    os.makedirs(path)
    if owner:
        for file in "", "/cgroup.procs", "/cgroup.subtree_control", \
                "/cgroup.threads":
            os.chown(path + file, owner, owner)
    return path


def enable(path, what="+cpu +memory +pids"):
    put(path + "/cgroup.subtree_control", what)


def actor(where, *limits, user=False):
    def enter():
        put(where + "/cgroup.procs", "0")
        if user:
            os.setgroups([])
            os.setresgid(USER, USER, USER)
            os.setresuid(USER, USER, USER)
    done = subprocess.run([ACTOR, *limits], preexec_fn=enter, text=True,
                          capture_output=True, timeout=60)
    return done.stdout + done.stderr


def left():
    return [d for _, dirs, _ in os.walk(TOP) for d in dirs
            if d.startswith("sallyport-run-")]


def check(condition, said):
    if not condition:
        raise AssertionError(said)


def held(said):
    """All three, and they say so."""
    check("held: memory by cgroup v2, pids by cgroup v2, cpus by cgroup v2"
          in said, said)
    check("take: signal 9" in said and "limit reached: memory" in said, said)
    # Two are ours; the child itself is one.
    check("forks: 21\n" in said and "limit reached: 20 pids" in said, said)
    spun = int(said.split("spin: ")[1].split()[0])
    check(spun < 450, said)
    check(not left(), left())


def test_root_of_all():
    """A container's first process, say: the root may hold processes."""
    held(actor(TOP, MEMORY, PIDS, CPUS))


def test_session():
    """Root, at a terminal: its own group holds its shell."""
    group("session.slice")
    held(actor(group("session.slice/session-1.scope"), MEMORY, PIDS, CPUS))


def test_each_alone():
    """Processes in a group do not keep it from enabling pids and cpu, but
    children of it could then hold none."""
    scope = group("alone.slice/session-1.scope")
    check("forks: 21\n" in actor(scope, "0", PIDS, "0"), actor(scope, "0", PIDS, "0"))
    check("take: signal 9" in actor(scope, MEMORY, "0", "0"), "memory")
    spun = actor(scope, "0", "0", CPUS)
    check("spin: " in spun and int(spun.split("spin: ")[1]) < 450, spun)
    check(not left(), left())


def test_user():
    """A user's service manager has a subtree of its own; a program is in a
    group of that."""
    enable(TOP)
    user = group("user.slice")
    enable(user)
    manager = group("user.slice/user@33.service", USER)
    enable(manager)
    app = group("user.slice/user@33.service/app.slice", USER)
    enable(app)
    scope = group("user.slice/user@33.service/app.slice/term.scope", USER)
    held(actor(scope, MEMORY, PIDS, CPUS, user=True))


def test_user_without_cpu():
    """Older ones do not delegate cpu."""
    enable(group("old.slice"), "+memory +pids")
    group("old.slice/user@33.service", USER)
    scope = group("old.slice/user@33.service/term.scope", USER)
    said = actor(scope, MEMORY, PIDS, "0", user=True)
    check("take: signal 9" in said and "forks: 21\n" in said, said)
    check("refused: --cpus needs" in actor(scope, "0", "0", CPUS, user=True), said)
    check(not left(), left())


def test_user_in_a_session():
    """By ssh: nothing there is the user's."""
    scope = group("user.slice/session-2.scope")
    said = actor(scope, MEMORY, PIDS, "0", user=True)
    check("held: memory by rlimit, pids by rlimit" in said, said)
    check("refused: --cpus needs" in actor(scope, "0", "0", CPUS, user=True), said)


def test_parts_in_two_places():
    """Of v2 a process has one group: a limit that could only be had elsewhere
    is not taken for held."""
    enable(TOP)
    enable(group("part.slice"), "+memory")
    group("part.slice/inner.slice")
    scope = group("part.slice/inner.slice/one.scope")
    said = actor(scope, MEMORY, PIDS, "0")
    check("held: memory by cgroup v2, pids by rlimit" in said and
          "take: signal 9" in said, said)
    check(not left(), left())


def main():
    for kind, at in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"),
                     ("tmpfs", "/tmp"), ("cgroup2", TOP)):
        mount(kind, at)
    failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        try:
            test()
            print("ok    ", name, flush=True)
        except Exception:  # every failure is reported
            failed += 1
            print("FAILED", name, flush=True)
            traceback.print_exc(file=sys.stdout)
    print(f"{failed} failed" if failed else "passed", flush=True)


if __name__ == "__main__":
    try:
        main()
    finally:
        put("/proc/sysrq-trigger", "o")
        os.kill(os.getpid(), 19)
