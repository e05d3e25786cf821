# SPDX-License-Identifier: Apache-2.0
"""Which policy is read again, of which session, and by whom."""
import json
import os
import signal
import subprocess

from harness import check
from reload_lab import BOTH, events, OTHER, reload, Session, warden_of


def test_replaced_file_in_the_working_directory(case):
    """In place it may change; but a file that was replaced by another one of
    its name is no longer hidden from the command, which could write to it."""
    path = case.work + "/mine.yaml"
    with Session(case, BOTH, path=path) as s:
        s.reload(OTHER)
        s.fails("try", "connect", "allowed.test", 7000)
        with open(path + ".new", "w") as f:
            f.write("version: 1\n" + BOTH)
        case.mine(path + ".new")
        os.rename(path + ".new", path)
        out = s.reload(status=1)
        check("the command can write to it" in out.stderr, out)
        s.fails("try", "connect", "allowed.test", 7000)
        s.works("try", "connect", "other.test", 7000)
    run = case.run("true", allow=(), args=("--policy", path))
    check(run.status == 125 and "could write to it" in run.err, run)
    os.unlink(run.err.split(": rm ")[1].strip())
    os.unlink(path)
    # Nor can the command lead us to another file, nor to one of its own.
    elsewhere = f"{case.lab.dir}/policies-{case.who}/more.yaml"
    with open(elsewhere, "w") as f:
        f.write("version: 1\n" + BOTH)
    sub = case.work + "/sub"
    with Session(case, OTHER) as s:
        s.do("write", sub + "/more.yaml", BOTH.replace("\n", "|"))
        check(os.path.exists(sub + "/more.yaml"))
        theirs = f"extends: [{sub}/more.yaml]\n"
        check("the command can write to it" in s.reload(theirs, 1).stderr)
        s.do("rename", sub, sub + "2")
        s.do("link", os.path.dirname(elsewhere), sub)
        check(os.path.samefile(sub + "/more.yaml", elsewhere))
        check("the command can write to it" in s.reload(theirs, 1).stderr)
        s.fails("try", "connect", "allowed.test", 7000)
        s.reload(f"extends: [{elsewhere}]\n")
        s.works("try", "connect", "allowed.test", 7000)
    subprocess.run(["rm", "-r", sub, sub + "2"], check=True)


def test_next_session_after_a_replaced_file(case):
    """Nor does the next session believe it, until somebody has looked; and a
    session that was killed tells the same."""
    path = case.work + "/next.yaml"

    def write(name=path):
        with open(name, "w") as f:
            f.write("version: 1\n" + BOTH)
        case.mine(name)

    def start():
        return case.run("true", allow=(), args=("--policy", path))

    def replaced():
        write(path + ".new")
        os.rename(path + ".new", path)

    def refused():
        run = start()
        check(run.status == 125 and "could write to it" in run.err, run)
        return run.err.split(": rm ")[1].strip()

    with Session(case, BOTH, path=path):
        write()
        check(start().status == 0)
    replaced()
    check(start().status == 0)
    for kill in False, True:
        with Session(case, BOTH, path=path) as s:
            if kill:
                os.kill(warden_of(s.process, s.gate()), signal.SIGKILL)
                s.process.wait(60)
            replaced()
            refused()
        check(kill or "was replaced" in s.err, s.err)
        check(kill or events(s.records(), "finding", "was replaced"))
        replaced()
        os.unlink(refused())
        check(start().status == 0)
    os.unlink(path)


def test_second_names_of_a_policy(case):
    """One in the working directory, which no mask would be over."""
    place = f"{case.lab.dir}/policies-{case.who}"
    path, name = place + "/linked.yaml", case.work + "/linked.yaml"
    os.makedirs(place, exist_ok=True)
    with open(path, "w") as f:
        f.write("version: 1\n" + BOTH)
    case.mine(path)
    with Session(case, BOTH, path=path) as s:
        os.link(path, name)
        check("the command can write to it" in s.reload(OTHER, 1).stderr)
    run = case.run("true", allow=(), args=("--policy", path))
    check(run.status == 125 and "hard link" in run.err, run)
    os.unlink(path)
    os.mkdir(place + "/again")
    subprocess.run(["mount", "--bind", case.work, place + "/again"], check=True)
    run = case.run("true", allow=(), args=("--policy",
                                           place + "/again/linked.yaml"))
    subprocess.run(["umount", place + "/again"], check=True)
    os.unlink(name)
    os.rmdir(place + "/again")
    check(run.status == 125 and "working directory too" in run.err, run)


def test_name_servers(case):
    """Those of the new policy are asked, and nothing is remembered."""
    with Session(case, BOTH) as s:
        s.works("try", "tls", "allowed.test", 443)
        s.reload("dns: {upstream: [203.0.113.1]}\n" + BOTH)
        s.fails("try", "connect", "allowed.test", 7000)
        s.until(lambda r: [x for x in r
                           if x.get("status_code") == "resolve_failed"])
        s.reload(BOTH)
        s.works("try", "connect", "allowed.test", 7000)


def test_which_session(case):
    home = case.env()["XDG_STATE_HOME"] if case.who == "user" else None
    argv = [*case.drop(), case.binary, "run", "--allow", "allowed.test",
            "--quiet"]
    env = case.env()
    check(reload(case).returncode == 125)
    check("no session 'nobody'" in reload(case, "nobody").stderr)
    running = []
    try:
        for name in "first", "second":
            process = subprocess.Popen([*argv, "--name", name, "--", "sh", "-c",
                                        "echo ready; read x"], env=env,
                                       cwd=case.work, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
            running.append(process)
            check(process.stdout.readline() == "ready\n")
            if name == "first":
                check("unchanged" in reload(case).stdout)
        out = reload(case)
        check(out.returncode == 125 and "first" in out.stderr
              and "second" in out.stderr, out)
        out = json.loads(reload(case, "--json", "second").stdout)
        check(out["ok"] and not out["changed"], out)
        check(reload(case, out["session"]).returncode == 0)
        # The command's SIGHUP is its own.
        running[0].send_signal(signal.SIGHUP)
        check(running[0].wait(60) == 128 + signal.SIGHUP)
        check("unchanged" in reload(case).stdout)
        if home:
            place = f"{home}/sallyport/{out['session']}"
            check(os.stat(place + "/control").st_mode & 0o777 == 0o600)
            # Root may; another user can't.
            check(subprocess.run([case.binary, "reload", place],
                                 capture_output=True).returncode == 0)
            check(subprocess.run(["setpriv", "--reuid", "34", "--regid", "34",
                                  "--clear-groups", case.binary, "reload",
                                  place], capture_output=True).returncode == 125)
    finally:
        for process in running:
            process.stdin.close()
            process.wait(60)
    check(reload(case).returncode == 125)
    if home:
        left = [name for _, _, names in os.walk(home) for name in names
                if name == "control"]
        check(not left, left)


def test_command_cannot_reach_the_socket(case):
    """Neither by its name nor by what it can guess of it."""
    with Session(case, BOTH) as s:
        check(os.path.exists(s.log + "/control"))
        said = s.do("ls", s.log)
        check(said == "None", said)
        run = case.run("sh", "-c", f"ls {s.log}; ls -a ~/.state 2>&1; "
                       f"find / -xdev -name control -type s 2>/dev/null")
        check("control" not in run.out, run)
