# SPDX-License-Identifier: Apache-2.0
"""What commands leave in the log of a daemon's sandbox, and who may read that."""
import json
import os
import signal
import subprocess

from daemon_lab import OTHER, user
from harness import check, USER
from run_lab import log_of, records, world


def test_commands_are_in_the_log(case):
    with world(case) as w:
        out = w.call("create", "box", "--allow", "allowed.test")
        check(out.returncode == 0, out)
        log = w.daemon.one("box")["log"]
        me = USER if case.who == "user" else 0
        secret = "TOKEN=very-secret"
        out = w.call("exec", "--env", secret, "box", "--", "sh", "-c",
                     "echo it ran", "a b\n\x1b[31m")
        check(out.stdout == "it ran\n", out)
        w.call("exec", "box", "true", "x" * 5000)
        out = w.run("true", "of run")
        told = [r for r in records(log) if r["unmapped"]["event"] == "exec"]
        check([r["unmapped"]["detail"] for r in told][0] ==
              f"uid {me}: sh -c 'echo it ran' 'a b??[31m'", told)
        check(len(told) == 2 and told[1]["unmapped"]["detail"].endswith(
            "xxx...") and len(told[1]["unmapped"]["detail"]) < 520, told)
        check("very-secret" not in json.dumps(told))
        (of_run,) = [r for r in records(log_of(out))
                     if r["unmapped"]["event"] == "exec"]
        check(of_run["unmapped"]["detail"] == f"uid {me}: true 'of run'")
        # Nobody but the owner and root; and no nonsense.
        path = "/v1/sandboxes/box/exec"
        check(foreign(w, "box", "exec", {"command": "forged"}) == "404")
        check(foreign(w, "box", "end", {"status": 0}) == "404")
        for body in ({}, {"command": ""}, {"command": 1},
                     {"command": "x" * 512}, {"command": "x", "uid": 0},
                     {"command": "a\0b"}, []):
            status, _ = w.daemon.ask("POST", path, body)
            check(status == 400, (body, status))
        check("forged" not in json.dumps(records(log)))
        # A line that would look like another one stays one.
        status, _ = w.daemon.ask("POST", path, {
            "command": 'x"}\n{"time":1,"message":"forged"}'})
        check(status == 200 and
              len([r for r in records(log)
                   if r["unmapped"]["event"] == "exec"]) == 3)
        w.daemon.remove("box")
        out = w.call("verify", log)
        check(out.returncode == 0, out)
        shown = w.call("log", log).stdout
        check("exec" in shown and "echo it ran" in shown, shown)
        report = json.loads(w.call("report", "--format", "json", log).stdout)
        told = [e["text"] for e in report["events"] if e["kind"] == "command"]
        check(len(told) == 3 and "echo it ran" in told[0], report["events"])


def foreign(w, name, what, body):
    """What another member of the group is answered."""
    return subprocess.run(
        ["setpriv", "--reuid", str(OTHER), "--regid", str(OTHER), "--groups",
         str(USER), "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
         "--unix-socket", w.daemon.socket, "-d", json.dumps(body),
         f"http://localhost/v1/sandboxes/{name}/{what}"],
        text=True, capture_output=True).stdout


def test_without_a_record_no_command(case):
    """Its ledger is stopped: nobody takes the record."""
    with world(case) as w:
        w.daemon.create("box", "allowed.test")
        if case.who == "user":
            w.daemon.remove("box")
            w.call("create", "box", "--allow", "allowed.test")
        ledger = case.child(w.daemon.process, "ledger")
        mark = f"{case.work}/began"
        os.kill(ledger, signal.SIGKILL)
        p = subprocess.Popen(
            w.argv("exec", "box", "touch", mark), cwd=case.work, env=w.env(),
            text=True, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        err = p.communicate(timeout=60)[1]
        # Either the old keeper could not write it, or the next one did.
        check(p.returncode in (0, 125), (p.returncode, err))
        if p.returncode:
            check(not os.path.exists(mark), err)
        else:
            log = w.daemon.one("box")["log"]
            check([r for r in records(log)
                   if r["unmapped"]["event"] == "exec"], err)


def test_its_user_reads_the_log(case):
    with world(case) as w:
        out = w.run("curl", "-s", "-m", "10", "http://evil.test/",
                    args=["--name", "mylog"])
        log = log_of(out)
        session = os.path.basename(log)
        for args in (("verify",), ("verify", session), ("verify", log),
                     ("report", session), ("log", session), ("log", "mylog"),
                     ("learn", log + "/audit.jsonl")):
            got = w.call(*args)
            check(got.returncode == 0, (args, got))
        check("evil.test" in w.call("log", "mylog").stdout)
        for name in os.listdir(log):
            st = os.stat(f"{log}/{name}")
            check(st.st_uid == 0 and not st.st_mode & 0o022, (name, st))
        me = USER if case.who == "user" else None
        if me is None:
            return
        with user(OTHER):
            for path in (log, log + "/audit.jsonl", log + "/checkpoints",
                         "/var/log/sallyport"):
                check(not can(path, os.O_RDONLY), path)
        with user(me):
            check(can(log, os.O_RDONLY) and
                  not can("/var/log/sallyport", os.O_RDONLY))
            for name in os.listdir(log):
                check(not can(f"{log}/{name}", os.O_WRONLY), name)
                for change in (lambda p: os.chmod(p, 0o666), os.unlink,
                               lambda p: os.rename(p, log + "/x"),
                               lambda p: os.symlink("/etc", p + ".x"),
                               lambda p: os.setxattr(
                                   p, "system.posix_acl_access", b"\2\0\0\0")):
                    check(refused(change, f"{log}/{name}"), name)
        # Nor does what runs inside: of this session, or of that.
        out = w.run("sh", "-c", f"cat {log}/audit.jsonl; ls {log}; "
                    "cat /var/log/sallyport/*/audit.jsonl; "
                    "cat $HOME/.local/state/sallyport/daemon/*/audit.jsonl; "
                    f"cat {case.work}/.state/sallyport/daemon/*/*; "
                    f"ls -d {w.daemon.socket}")
        check(out.stdout == "", out)


def can(path, flags):
    try:
        os.close(os.open(path, flags))
        return True
    except OSError:
        return False


def refused(change, path):
    try:
        change(path)
        return False
    except OSError:
        return True
