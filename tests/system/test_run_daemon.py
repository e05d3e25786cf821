# SPDX-License-Identifier: Apache-2.0
"""`sallyport run` where there is a daemon: as without one, in a sandbox that
ends with it."""
import contextlib
import glob
import json
import os
import signal
import subprocess
import time

from daemon_lab import OTHER
from harness import check, USER
from run_lab import BY_DAEMON, CONFIG, log_of, records, world


def test_as_without_one(case):
    with world(case) as w:
        code = ("id -u; readlink /proc/self/ns/net; curl -s -m 60 "
                "http://allowed.test/; curl -s -m 60 -o /dev/null "
                "http://evil.test/; grep -c Seccomp:.2 /proc/self/status; "
                "ls /run/sallyport /var/log/sallyport; exit 7")
        with_one = w.run("sh", "-c", code)
        without = w.run("sh", "-c", code, args=["--no-daemon"])
        for out in (with_one, without):
            check(out.returncode == 7 and "hello from the lab" in out.stdout,
                  (out, w.daemon.err()))
            check("reached\n    allowed.test" in out.stderr and
                  "evil.test" in out.stderr and "not_in_policy" in out.stderr,
                  out)
            check("boundary: held" in out.stderr and "receipt: /" in out.stderr,
                  out)
        check(BY_DAEMON + "run-" in with_one.stderr, with_one)
        check(BY_DAEMON not in without.stderr, without)

        def plain(out):
            """Without what is new each time."""
            lines = [x.split(";")[0].split(" B ")[0] for x in out.stderr.splitlines()
                     if not x.startswith(("log:", "receipt:"))
                     and "warning" not in x]
            return lines, out.stdout.splitlines()[2:]
        check(plain(with_one) == plain(without), (plain(with_one),
                                                  plain(without)))
        check(not w.sandboxes())
        log = log_of(with_one)
        lines = records(log)
        check(lines[-1]["unmapped"]["detail"].startswith(
            "exit status 7 (its command ended)"), lines[-1])
        out = w.run("true", args=["--json"])
        summary = json.loads(out.stderr.splitlines()[-1])
        check(summary["daemon"].startswith("run-") and
              summary["boundary"] == "held" and summary["records"] > 2 and
              summary["log"].startswith("/var/log/sallyport/"), summary)
        check("boundary" not in w.run("true", args=["--quiet"]).stderr)


def test_statuses_and_signals(case):
    with world(case) as w:
        for command, status in ((("sh", "-c", "kill -TERM $$"), 143),
                                (("no-such-command",), 127), (("/etc",), 126)):
            out = w.run(*command)
            check(out.returncode == status, (command, out, w.daemon.err()))
        out = w.run("sleep", "60", args=["--timeout", "1"])
        check(out.returncode == 124 and "time limit" in out.stderr, out)
        check("exit status 124 (its time was over)" in
              records(log_of(out))[-1]["unmapped"]["detail"])
        p = w.start("sh", "-c", "trap 'echo got it; exit 9' TERM; echo up; "
                    "while :; do sleep 0.05; done", args=["--name", "mine"])
        check(p.stdout.readline() == "up\n")
        (s,) = w.sandboxes()
        check(s["name"] == "mine" and s["temporary"] is True and
              s["uid"] == (USER if case.who == "user" else 0), s)
        p.send_signal(signal.SIGTERM)
        out, err = p.communicate(timeout=60)
        check(out == "got it\n" and p.returncode == 9, (out, err))
        check(BY_DAEMON + "mine" in err, err)
        # No policy is no permission, whatever the operator's default is.
        out = w.call("run", "--", "curl", "-s", "-m", "5",
                     "http://allowed.test/")
        check("hello" not in out.stdout and "no policy" in out.stderr and
              BY_DAEMON in out.stderr, out)


def test_it_does_not_outlive_its_run(case):
    with world(case) as w:
        p = w.start("sh", "-c", "echo up; exec sleep 1000")
        check(p.stdout.readline() == "up\n")
        (s,) = w.sandboxes()
        ns = os.stat(s["netns"]).st_ino
        if case.drop():  # setpriv is what we started, and became it
            check(p.pid > 0)
        p.kill()
        p.communicate(timeout=30)
        w.wait_none()
        home = case.work + "/.state/sallyport/"
        w.daemon.wait(lambda: not glob.glob(home + "run-of-*") and
                      not glob.glob(home + "made/run-*"))
        check(not os.path.exists(s["netns"]), s)
        w.daemon.wait(lambda: not [x for x in glob.glob("/proc/[0-9]*/ns/net")
                                   if ns == inode(x)])
        check("its run was killed" in
              records(s["log"])[-1]["unmapped"]["detail"])
        check(os.path.exists(s["log"] + "/receipt.dsse.json"))


def test_many_at_once(case):
    """More than a user may have connections."""
    with world(case) as w:
        many = [w.start("true") for _ in range(20)]
        for p in many:
            _, err = p.communicate(timeout=120)
            check(p.returncode == 0 and BY_DAEMON in err,
                  (p.returncode, err, w.daemon.err()))
        check(not w.sandboxes())


def inode(path):
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def test_who_asks_is_who_holds_it(case):
    """A process that ends at once, one that never reads the answer."""
    with world(case) as w:
        code = ("import json,socket,sys\n"
                "s = socket.socket(socket.AF_UNIX)\n"
                f"s.connect({w.daemon.socket!r})\n"
                "b = json.dumps({'name': sys.argv[1], 'temporary': True,"
                "'policy': 'version: 1\\n'}).encode()\n"
                "s.sendall(b'POST /v1/sandboxes HTTP/1.1\\r\\nHost: x\\r\\n"
                "Content-Length: %d\\r\\n\\r\\n' % len(b) + b)\n"
                "if len(sys.argv) > 2: s.recv(100)\n")
        for more in ([], ["wait"]):
            subprocess.run([*case.drop(), "python3", "-c", code, "brief",
                            *more], check=True, timeout=60)
            time.sleep(0.3)
            w.wait_none()
        for value in (1, "yes", None):
            status, _ = w.daemon.ask("POST", "/v1/sandboxes", {
                "name": "x", "policy": "version: 1\n", "temporary": value})
            check(status == 400, status)


def test_when_the_daemon_is_not_used(case):
    with world(case) as w:
        log = f"{w.daemon.dir}/log"
        os.mkdir(log, 0o700)
        case.mine(log)
        for args, env in ((["--no-daemon"], {}), (["--log", log], {}),
                          (["--name", "No Sandbox's"], {}),
                          (["--name", "docker-x"], {}),
                          ([], {"SALLYPORT_NO_DAEMON": "1"}),
                          ([], {"SALLYPORT_SOCKET": "/nowhere"})):
            out = w.run("true", args=args, env=w.env(**env))
            check(out.returncode == 0 and "boundary: held" in out.stderr and
                  BY_DAEMON not in out.stderr, (args, out))
        # A user whom it does not let in.
        home = f"{w.daemon.dir}/other"
        os.mkdir(home)
        os.chown(home, OTHER, OTHER)
        out = w.run("true", env=w.env(HOME=home, XDG_STATE_HOME=home),
                    drop=["setpriv", "--reuid", str(OTHER), "--regid",
                          str(OTHER), "--clear-groups", "env", "-C", home])
        check(out.returncode == 0 and "boundary: held" in out.stderr and
              BY_DAEMON not in out.stderr, out)
        # What it refuses is refused.
        with holding(w, "taken"):
            out = w.run("true", args=["--name", "taken"])
            check(out.returncode == 125 and "is taken" in out.stderr and
                  "--no-daemon" in out.stderr, out)


@contextlib.contextmanager
def holding(w, name):
    w.daemon.create(name)
    try:
        yield
    finally:
        w.daemon.remove(name)


def test_the_ceiling_holds(case):
    ceiling = f"{case.lab.dir}/ceiling-{case.who}.yaml"
    with open(ceiling, "w") as f:
        f.write("version: 1\nallow: [other.test]\n")
    with world(case, CONFIG + f"ceiling: {ceiling}\n") as w:
        out = w.run("curl", "-s", "-m", "60", "http://allowed.test/")
        check("hello" not in out.stdout and "refused" in out.stderr, out)


def test_a_restarted_daemon(case):
    with world(case) as w:
        go = f"{case.work}/go"
        p = w.start("sh", "-c", f"echo up; while [ ! -e {go} ]; do sleep 0.1; "
                    "done; curl -s -m 20 http://allowed.test/; exit 5")
        q = w.start("sh", "-c", "echo up; exec sleep 1000")
        check(p.stdout.readline() == "up\n" and q.stdout.readline() == "up\n")
        names = {s["name"] for s in w.sandboxes()}
        w.daemon.stop(signal.SIGKILL)
        q.kill()
        q.communicate(timeout=30)
        w.daemon.start()
        w.daemon.wait(lambda: len(w.sandboxes()) == 1)
        check({s["name"] for s in w.sandboxes()} < names)
        with open(go, "w"):
            pass
        out, err = p.communicate(timeout=60)
        os.unlink(go)
        check(p.returncode == 5 and "hello from the lab" in out, (out, err))
        check(not w.sandboxes())


def test_reload_reaches_it(case):
    policy = f"{case.lab.dir}/again-{case.who}.yaml"

    def write(*hosts):
        with open(policy, "w") as f:
            f.write("version: 1\nallow: [" + ", ".join(hosts) + "]\n")
    write("allowed.test")
    os.chmod(policy, 0o644)
    case.mine(policy)
    with world(case) as w:
        fetch = "curl -s -m 60 http://other.test/ | head -c 5; echo"
        p = subprocess.Popen(
            w.argv("run", "--policy", policy, "--name", "again", "--", "sh",
                   "-c", f"echo up; {fetch}; while [ ! -e next ]; do "
                   f"sleep 0.1; done; {fetch}"), text=True,
            cwd=case.work, env=w.env(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        check(p.stdout.readline() == "up\n")
        p.stdout.readline()
        write("allowed.test", "no such host")
        out = w.call("reload", "again")
        check(out.returncode == 1 and "stays in force" in out.stderr, out)
        write("allowed.test", "other.test")
        out = w.call("reload", "again")
        check(out.returncode == 0 and " -> sha256:" in out.stdout, out)
        with open(case.work + "/next", "w"):
            pass
        out, err = p.communicate(timeout=60)
        os.unlink(case.work + "/next")
        check(out == "hello\n" and p.returncode == 0, (out, err))
        check("policy changes" in err, err)
        out = w.call("reload", "again")
        check(out.returncode == 125, out)
        check(not glob.glob(case.work + "/.state/sallyport/run-of-*"))


def test_published(case):
    with world(case) as w:
        p = w.start("sh", "-c", "echo up; exec python3 -m http.server 8000 "
                    "-b 0.0.0.0", args=["--publish", "18471:8000"])
        check(p.stdout.readline() == "up\n")
        w.daemon.wait(lambda: subprocess.run(
            ["curl", "-s", "-m", "3", "-o", "/dev/null",
             "http://127.0.0.1:18471/"]).returncode == 0)
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=60)
        w.wait_none()


def asks(pid):
    """It is ours, is connected, and sleeps."""
    try:
        if not os.readlink(f"/proc/{pid}/exe").endswith("/sallyport"):
            return False
        fds = [os.readlink(f"/proc/{pid}/fd/{n}")
               for n in os.listdir(f"/proc/{pid}/fd")]
        with open(f"/proc/{pid}/stat") as f:
            state = f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state == "S" and any(x.startswith("socket:") for x in fds)


@contextlib.contextmanager
def stopped(daemon):
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def test_one_that_does_not_answer(case):
    """A stopped daemon holds nobody at a terminal, and leaves nothing."""
    with world(case) as w:
        with stopped(w.daemon):
            p = w.start("true")
            w.daemon.wait(lambda: asks(p.pid))
            check(p.poll() is None)
            p.send_signal(signal.SIGINT)
            p.communicate(timeout=30)
            check(p.returncode == -signal.SIGINT, p.returncode)
        w.wait_none()
        p = w.start("sh", "-c", "echo up; exec sleep 1000")
        check(p.stdout.readline() == "up\n")
        with stopped(w.daemon):
            p.send_signal(signal.SIGTERM)  # to the command
            while "an interrupt leaves" not in p.stderr.readline():
                check(p.poll() is None, p.returncode)
            p.send_signal(signal.SIGINT)
            check(p.wait(30) == -signal.SIGINT, p.returncode)
        w.wait_none()
        p.communicate(timeout=60)  # the end was told all the same
