# SPDX-License-Identifier: Apache-2.0
"""`--nest`: a command may make namespaces of its own, for its tools' sandboxes.
Attacks from inside those, where it has every capability, on the way out, on what
is hidden and on the machine; and what has to work."""
import contextlib
import json
import os
import subprocess

from box_lab import box, ground, make, receipt, records
from harness import check, silent
from lab import EVIL
from nest_lab import CALLS, GROUPS, HIDDEN, MACHINE, OUT, PRELUDE


def nest(case, cwd, script, *argv, args=(), **kw):
    run = box(case, cwd, "python3", "-c", PRELUDE + script, *argv,
              args=("--nest", *args), **kw)
    check(run.status == 0 and "done" in run.out and "LEAK" not in run.out and
          "NO NAMESPACE" not in run.out, run)
    return run


# --- what it is for ------------------------------------------------------------


def test_tools_sandbox_themselves(case):
    top = ground(case, "n-use")
    script = ("set -e; bwrap --unshare-all --ro-bind / / --dev /dev --proc /proc"
              " --tmpfs /tmp sh -c 'echo inner $(id -u) $(ls /sys/class/net)';"
              "unshare -Urmpf --mount-proc sh -c 'echo root $(id -u) $$';"
              "unshare -UrmpfniuC true; mkdir m; unshare -Urm sh -c"
              " 'mount -t tmpfs none m && touch m/x'; ls m | wc -l")
    run = box(case, top, "sh", "-c", script, args=("--nest",))
    check(run.status == 0 and "inner " in run.out and "root 0 1\n" in run.out and
          run.out.endswith("\n0\n"), run)
    check("; with namespaces inside" in run.err, run)
    check(receipt(run.log)["boundary"]["nest"] is True, run)
    check("; nest; " in records(run.log)[0]["unmapped"]["detail"], run)


def test_not_without_it(case):
    top = ground(case, "n-not")
    script = ("bwrap --unshare-all --ro-bind / / true || echo no bwrap;"
              "unshare -Ur true || echo no unshare; unshare -m true || echo no mounts")
    for args in (), ("--nest", "--no-nest"):
        run = box(case, top, "sh", "-c", script, args=args)
        check(run.status == 0 and run.out ==
              "no bwrap\nno unshare\nno mounts\n", run)
        check("nest" not in receipt(run.log)["boundary"], run)
        check("nest" not in records(run.log)[0]["unmapped"]["detail"], run)


# --- ways out ------------------------------------------------------------------


def test_no_way_out(case):
    """Neither by our link nor by one of its own."""
    top = ground(case, "n-out")
    run = nest(case, top, OUT, EVIL, timeout=90)
    silent(case)
    # The gate is still there for who stays in the sandbox's own namespace.
    run = box(case, top, "unshare", "-Urm", "curl", "-s", "-o", "/dev/null", "-w",
              "%{http_code}", "http://allowed.test/", args=("--nest", "--allow", "allowed.test"))
    check(run.out == "200", run)
    run = box(case, top, "unshare", "-Urm", "curl", "-s", "-m", "9", "-o", "/dev/null",
              "http://evil.test/", args=("--nest", "--allow", "allowed.test"))
    check(run.status != 0 or "not_in_policy" in run.err, run)
    run = box(case, top, "unshare", "-Urn", "curl", "-s", "-m", "5", "http://allowed.test/",
              args=("--nest", "--allow", "allowed.test"))
    check(run.status != 0, run)
    silent(case)


def test_calls_stay_refused(case):
    top = ground(case, "n-calls")
    make(case, top + "/file", "x")
    nest(case, top, CALLS, top + "/file")


# --- the machine ---------------------------------------------------------------


def test_mounts_reach_nothing_of_the_machine(case):
    for args in (), ("--pids", "50", "--memory", "500M"):
        run = nest(case, ground(case, f"n-machine{len(args)}"), MACHINE, args=args)
        check("no proc" not in run.out, run)


def delegated(case):
    """Control groups of the user's own, as systemd gives him: the directory in
    each hierarchy, and in it the one that he is in."""
    tops = [p for c in ("pids", "memory", "unified", "")
            if os.path.exists(f"{(p := os.path.join('/sys/fs/cgroup', c))}/cgroup.procs")]
    for top in tops:
        if os.path.exists(top + "/cgroup.subtree_control"):
            for c in "pids", "memory":
                with contextlib.suppress(OSError), open(
                        top + "/cgroup.subtree_control", "w") as f:
                    f.write("+" + c)
        own = f"{top}/sallyport-nest-{os.getpid()}"
        os.makedirs(own + "/own")
        for at, dirs, files in os.walk(own):
            for name in [".", *files]:
                case.mine(f"{at}/{name}")
        yield own


def test_limits_can_not_be_lifted(case):
    """Their groups are files of our user's, and so of the command's."""
    if case.who == "root":
        return  # nobody else's files
    tops = list(delegated(case))
    join = ("sh", "-c", "".join(f"echo $$ > {t}/own/cgroup.procs;" for t in tops) +
            'exec "$@"', "sh")
    try:
        for args, most, said in ((("--pids", "20", "--memory", "500M"), "60", "refused"),
                                 ((), "5", "made 5")):
            run = nest(case, ground(case, f"n-groups{most}"), GROUPS, most, args=args,
                       prefix=join)
            check("mounted" in run.out and said in run.out, run)
            held = json.dumps(records(run.log)[0])
            check(("pids by cgroup" in held) == bool(args), held)
            for name, text in (("cgroup.max.depth", "max"), ("cgroup.type", "domain")):
                for own in [f"{t}/own/{name}" for t in tops]:
                    if os.path.exists(own):
                        check(open(own).read().strip() == text, own)
            check(not [d for t in tops for d in os.listdir(t) + os.listdir(t + "/own")
                       if d.startswith("sallyport-run-")], tops)
    finally:
        for top in tops:
            os.rmdir(top + "/own")
            os.rmdir(top)


# --- what is hidden ------------------------------------------------------------


def test_hidden_stays_hidden(case):
    """In the working directory, beside it, in the home, and by option."""
    top, away = ground(case, "n-hide"), ground(case, "n-hide-away")
    home = ground(case, "n-hide-home")
    secrets = [f"{home}/.ssh", f"{home}/.netrc", f"{away}/deep/file", f"{away}/dir",
               f"{top}/deep/file", f"{top}/dir"]
    make(case, f"{home}/.ssh")
    make(case, f"{home}/.ssh/id", "top-secret")
    make(case, f"{home}/.netrc", "top-secret")
    plain = make(case, ground(case, "n-plain") + "/file", "top-secret")
    run = box(case, os.path.dirname(plain), "python3", "-c", PRELUDE + HIDDEN, plain,
              args=("--nest",))
    for how in "as it is", "bind", "overlay", "detached", "root of":
        check(f"LEAK {how}" in run.out, run)  # where nothing hides it
    for base in top, away:
        make(case, base + "/deep")
        make(case, base + "/deep/file", "top-secret")
        make(case, base + "/dir")
        make(case, base + "/dir/key", "top-secret")
    hide = [x for s in secrets[2:] for x in ("--hide", s)]
    nest(case, top, HIDDEN, *secrets, args=hide, env={"HOME": home}, timeout=90)


def test_what_later_sessions_trust(case):
    """A name that is hidden can be taken away from in there: so neither policy
    nor log nor key may lie where the command writes."""
    top, away = ground(case, "n-trust"), ground(case, "n-trust-away")
    make(case, top + "/p.yaml", "version: 1\nsandbox: {nest: true}\n")
    make(case, away + "/p.yaml", "version: 1\nsandbox: {nest: true}\n")
    log = make(case, f"{top}/log", mode=0o700)
    for args, name in (((), None), (("--policy", "p.yaml"), "p.yaml")):
        run = box(case, top, "true", args=("--nest", *args),
                  log=log if name is None else None)
        check(run.status == 125 and "put another one in its place" in run.err and
              (name or "log") in run.err, run)
    run = box(case, top, "true", args=("--policy", "p.yaml", "--no-nest"))
    check(run.status == 0, run)
    run = box(case, top, "unshare", "-Ur", "true", args=("--policy", away + "/p.yaml"))
    check(run.status == 0, run)
    run = box(case, top, "true", args=("--policy", away + "/p.yaml", "--rw", away))
    check(run.status == 125 and "p.yaml" in run.err, run)


# --- limits and the end --------------------------------------------------------


def test_nothing_outlives_it(case):
    """A nested pid 1 ends with the sandbox, and counts as a process of it."""
    top = ground(case, "n-end")
    mark = f"nest-end-{case.who}-{os.getpid()}"
    run = box(case, top, "unshare", "-Urpf", "--kill-child", "sh", "-c",
              f": {mark}; setsid sleep 300 & setsid sleep 300", args=("--nest", "--timeout", "1s"))
    check(run.status == 124, run)
    left = subprocess.run(["pgrep", "-f", mark], capture_output=True, text=True)
    check(not left.stdout, left.stdout)
    run = box(case, top, "unshare", "-Urpf", "python3", "-c",
              "import os, time\nn = 0\ntry:\n    while n < 60:\n        if os.fork() == 0:\n"
              "            time.sleep(9); os._exit(0)\n        n += 1\nexcept OSError: print('refused', n)",
              args=("--nest", "--pids", "30"))
    check("refused 2" in run.out, run)


def test_summary_as_json(case):
    run = box(case, ground(case, "n-json"), "true", args=("--nest", "--json"))
    said = json.loads(run.err.splitlines()[-1])
    check(said["nest"] is True, run)
