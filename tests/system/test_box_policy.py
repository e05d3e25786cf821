# SPDX-License-Identifier: Apache-2.0
"""`sandbox:` in a policy: each key has its effect on a command, options come
first, and a file that is only extended opens nothing."""
import json
import os
import subprocess

from box_lab import box, ground, make, receipt, records, spawn
from harness import check
from run_lab import world

EAT = "x = bytearray(200 << 20); x[::4096] = b'x' * len(x[::4096]); print(len(x))"


def policy(case, top, text, name="p.yaml", extends=""):
    return make(case, f"{top}/{name}", f"version: 1\n{extends}sandbox:\n{text}")


def places(case, name):
    """A working directory, and another one with the policies and files."""
    return ground(case, name), ground(case, name + "-away")


def test_paths(case):
    top, away = places(case, "p-paths")
    home = ground(case, "p-paths-home")
    for d in "cache", "shown", "gone":
        make(case, f"{away}/{d}")
        make(case, f"{away}/{d}/file", d)
    make(case, f"{home}/.aws")
    make(case, f"{home}/.aws/config", "region")
    make(case, f"{top}/secret", "secret")
    p = policy(case, away, f"  rw: [cache]\n  ro: [~/.aws/config]\n"
               f"  hide: [./gone, {top}/secret, ~/not-there]\n")
    script = ("echo new > {0}/cache/new && cat {0}/cache/new;"
              "echo new 2>&- > {0}/shown/new || echo shown-ro; cat ~/.aws/config; echo;"
              "echo 2>&- > ~/.aws/config || echo config-ro;"
              "cat {0}/gone/file secret || echo hidden").format(away)
    # HOME of a uid that nobody uses is private: there "~" is its caller's.
    env = {"HOME": home}
    run = box(case, top, "sh", "-c", script.replace("~", home), args=("--policy", p), env=env)
    check(run.status == 0 and run.out ==
          "new\nshown-ro\nregion\nconfig-ro\nhidden\n", run)
    # From wherever: relative to the file.
    run = box(case, away, "cat", "shown/file", args=("--policy", "p.yaml", "--ro", "shown"),
              env=env)
    check(run.status == 0 and run.out == "shown", run)
    # An option about the same path has the word.
    run = box(case, top, "sh", "-c", f"cat {away}/gone/file; echo 2>&- > {away}/cache/x || echo ro",
              args=("--policy", p, "--ro", f"{away}/gone", "--ro", f"{away}/cache"), env=env)
    check(run.out == "gonero\n", run)
    # What is to be shown has to be there.
    p = policy(case, away, "  rw: [nowhere]\n", "q.yaml")
    run = box(case, top, "true", args=("--policy", p), env=env)
    check(run.status == 125 and f"{p}:3:8: rw {away}/nowhere: No such file" in run.err, run)


def test_view_and_environment(case):
    top, away = places(case, "p-view")
    make(case, f"{away}/seen", "seen", 0o666)
    p = policy(case, away, "  fs: host\n  env: [BOX_TOKEN]\n")
    script = f"echo ok > {away}/seen && echo wrote; echo $BOX_TOKEN$OTHER_TOKEN"
    env = {"BOX_TOKEN": "mine", "OTHER_TOKEN": "not"}
    run = box(case, top, "sh", "-c", script, args=("--policy", p), env=env)
    check(run.out == "wrote\nmine\n" and receipt(run.log)["boundary"]["files"] == "host", run)
    run = box(case, top, "sh", "-c", script + "; true", env=env,
              args=("--policy", p, "--fs", "private", "--env", "BOX_TOKEN=other"))
    check(run.out == "other\n" and receipt(run.log)["boundary"]["files"] == "private", run)
    check("OTHER_TOKEN" in run.err and "BOX_TOKEN" not in run.err, run)


def test_limits(case):
    top, away = places(case, "p-limits")
    p = policy(case, away, "  memory: 100M\n  fsize: 1 MB\n  nofile: 50\n  pids: 40\n"
               "  timeout: 200s\n")
    script = ("head -c 2000000 /dev/zero > big; stat -c %s big; ulimit -n; python3 -c '" +
              EAT.replace("'", '"') + "'")
    run = box(case, top, "bash", "-c", script, args=("--policy", p))
    check(run.status != 0 and run.out == "1000000\n50\n", run)
    detail = records(run.log)[0]["unmapped"]["detail"]
    check(all(f"{word} by " in detail for word in ("memory", "pids", "fsize", "nofile")), run)
    run = box(case, top, "bash", "-c", script,
              args=("--policy", p, "--memory", "600M", "--fsize", "1500000", "--nofile", "60"))
    check(run.status == 0 and run.out == "1500000\n60\n209715200\n", run)
    q = policy(case, away, "  timeout: 1s\n", "q.yaml")
    run = box(case, top, "sleep", "60", args=("--policy", p, "--policy", q))
    check(run.status == 124, run)
    run = box(case, top, "sleep", "2", args=("--policy", q, "--timeout", "50s"))
    check(run.status == 0, run)
    r = policy(case, away, "  cpus: 0.5\n", "r.yaml")
    run = box(case, top, "true", args=("--policy", r))
    if case.who == "root":
        check(run.status == 0 and "cpus by cgroup" in
              records(run.log)[0]["unmapped"]["detail"], run)
    else:  # no control group is ours: it is said, and nothing runs without it
        check(run.status == 125 and "control group" in run.err, run)


def test_nest(case):
    top, away = places(case, "p-nest")
    p = policy(case, away, "  nest: true\n")
    run = box(case, top, "unshare", "-Urm", "true", args=("--policy", p))
    check(run.status == 0 and receipt(run.log)["boundary"]["nest"] is True, run)
    run = box(case, top, "unshare", "-Urm", "true", args=("--policy", p, "--no-nest"))
    check(run.status != 0, run)
    check("nest" not in receipt(run.log)["boundary"], run)


def test_extended_files_open_nothing(case):
    top, away = places(case, "p-extends")
    for i, text in enumerate(("rw: [/srv]", "ro: [/srv]", "env: [A_TOKEN]", "fs: host",
                              "nest: true")):
        policy(case, away, f"  {text}\n", f"base{i}.yaml")
        p = make(case, f"{away}/p{i}.yaml", f"version: 1\nextends: [./base{i}.yaml]\n")
        run = box(case, top, "true", args=("--policy", p))
        check(run.status == 125 and f"{away}/base{i}.yaml:3:" in run.err and
              "say it in the policy that is named by --policy" in run.err, run)
    # What they take away is gone, and stays so.
    make(case, f"{away}/gone", "gone")
    policy(case, away, "  hide: [gone]\n  nofile: 30\n", "base.yaml")
    p = policy(case, away, "  nofile: 90\n", extends="extends: [./base.yaml]\n")
    run = box(case, top, "sh", "-c", f"cat {away}/gone; ulimit -n", args=("--policy", p))
    check(run.out == "30\n", run)


def test_reload(case):
    """The bounds of a command are what it began with, and that is said."""
    top, away = places(case, "p-reload")
    p = policy(case, away, "  nofile: 90\n")
    child, log = spawn(case, top, "sh", "-c", "echo up; read x; ulimit -n", args=("--policy", p),
                       stdin=subprocess.PIPE)
    try:
        reload = [*case.drop(), case.binary, "reload", log]
        check(child.stdout.readline() == "up\n", child)
        policy(case, away, "  nofile: 20\n")
        out = subprocess.run(reload, env=case.env(), capture_output=True, text=True)
        check(out.returncode == 0 and "keeps the bounds that it began with" in out.stdout, out)
        out = subprocess.run([*reload, "--json"], env=case.env(), capture_output=True, text=True)
        check("keeps the bounds" in json.loads(out.stdout)["note"], out)
        policy(case, away, "  nofile: 90\n")
        out = subprocess.run(reload, env=case.env(), capture_output=True, text=True)
        check(out.returncode == 0 and "bounds" not in out.stdout, out)
        out, err = child.communicate("go\n", timeout=60)
    finally:
        child.kill()
        child.wait()
    check(out == "90\n", (out, err))
    said = [r for r in records(log) if "keeps the bounds" in json.dumps(r)]
    check(len(said) == 1, said)


def test_check_shows_it(case):
    top = ground(case, "p-check")
    p = policy(case, top, "  fs: host\n  rw: [\"~\"]\n  ro: [~/.ssh]\n  env: [A_TOKEN]\n"
               "  nest: true\n  memory: 1 GB\n")
    q = policy(case, top, "  memory: 2 GB\n  hide: [x]\n", "q.yaml")
    call = lambda *a: subprocess.run([*case.drop(), case.binary, *a], env=case.env(),
                                     capture_output=True, text=True)
    out = call("check", p)
    check(out.returncode == 0 and "its command: fs host; nest true; rw ~; ro ~/.ssh; env A_TOKEN;"
          " memory 1 GB\n" in out.stdout, out)
    check(out.stdout.count("[sandbox-files]") == 2 and out.stdout.count("[sandbox-secret]") == 2 and
          "[sandbox-nest]" in out.stdout and "[sandbox-run]" in out.stdout, out)
    said = json.loads(call("check", "--json", p).stdout)["summary"]["sandbox"]
    check(said == {"fs": "host", "nest": True, "rw": ["~"], "ro": ["~/.ssh"], "hide": [],
                   "env": ["A_TOKEN"], "memory": 1000000000}, said)
    out = call("diff", p, q)
    for word in ("sandbox.fs", "sandbox.nest", "sandbox.rw", "sandbox.hide", "sandbox.memory"):
        check(word in out.stdout, out)
    out = call("diff", p, p)
    check("sandbox" not in out.stdout, out)


def test_below_a_ceiling(case):
    """The daemon's operator has the last word where commands go through it."""
    _, away = places(case, "p-ceiling")
    for name in "open", "shut":
        make(case, f"{away}/{name}")
        make(case, f"{away}/{name}/file", name)
    top = case.lab.write("box-ceiling.yaml", "version: 1\ndefault: public\nsandbox:\n"
                         f"  fs: private\n  nest: false\n  rw: [{away}/open]\n"
                         f"  hide: [{away}/shut]\n  env: [BOX_TOKEN]\n  nofile: 40\n"
                         "  timeout: 60s\n")
    env = {"BOX_TOKEN": "mine", "OTHER_TOKEN": "not"}
    with world(case, f"version: 1\ngroup: www-data\nceiling: {top}\n") as w:
        script = f"cat {away}/shut/file; echo $BOX_TOKEN; ulimit -n; echo > {away}/open/x && echo wrote"
        p = policy(case, away, f"  rw: [open]\n  env: [BOX_TOKEN]\n")
        run = w.call("run", "--policy", p, "--", "sh", "-c", script, env=w.env(**env))
        check(run.returncode == 0 and run.stdout == "mine\n40\nwrote\n" and
              "it was the daemon's" in run.stderr, run)
        for text, word in ((f"rw: [{away}/shut]", "'rw'"), (f"rw: [{away}]", "'rw'"),
                           ("env: [OTHER_TOKEN]", "'env'")):
            q = policy(case, away, f"  {text}\n", "q.yaml")
            run = w.call("run", "--policy", q, "--", "true", env=w.env(**env))
            check(run.returncode == 125 and "the daemon's ceiling has no " + word in run.stderr,
                  run)
        w.wait_none()
        # What nobody looks at is said.
        run = w.call("create", "--policy", p, "noted")
        check(run.returncode == 0 and "bounds nothing that `exec` starts" in run.stderr, run)
        # One process more in a sandbox that is there.
        check(w.call("create", "--allow", "allowed.test", "boxed").returncode == 0)
        run = w.call("exec", "boxed", "sh", "-c", f"cat {away}/shut/file; ulimit -n")
        check(run.returncode == 0 and run.stdout == "40\n", run)
        check(w.call("exec", "--env", "OTHER_TOKEN", "boxed", "true",
                     env=w.env(**env)).returncode == 125)
        said = json.loads(w.daemon.good("GET", "/v1/sandboxes/boxed")["ceiling_sandbox"])
        check(said["nofile"] == 40 and said["hide"] == [f"{away}/shut"], said)
