# SPDX-License-Identifier: Apache-2.0
"""`sallyport run` where there is a daemon: as without one, in a sandbox that
ends with it; what commands leave in the log; and who may read that."""
import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import time

from daemon_lab import OTHER, Daemon, user
from harness import USER, check, silent

CONFIG = "version: 1\ngroup: www-data\n"
BY_DAEMON = "it was the daemon's, sandbox "


class InRun(Daemon):
    """With its directory where it belongs: sandboxes have a /run of their own,
    so namespaces that come and go there are no concern of bubblewrap's."""

    def __init__(self, case, config):
        super().__init__(case, config)
        self.run = f"/run/sallyport-test-{os.getpid()}-{case.count}"
        self.socket = self.run + "/control.sock"

    def argv(self):
        return super().argv()[:-1] + [self.run]

    def stop(self, *args):
        status = super().stop(*args)
        if not args:
            shutil.rmtree(self.run)
        return status


class World:
    def __init__(self, case, config=CONFIG):
        self.case = case
        self.daemon = InRun(case, config).start()

    def env(self, **more):
        return {**self.case.env(), "SALLYPORT_NO_DAEMON": "",
                "SALLYPORT_SOCKET": self.daemon.socket, **more}

    def argv(self, *args, drop=None):
        drop = self.case.drop() if drop is None else drop
        return [*drop, self.case.binary, *args]

    def call(self, *args, drop=None, **kw):
        kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("env", self.env())
        return subprocess.run(self.argv(*args, drop=drop), text=True,
                              cwd=self.case.work, capture_output=True,
                              timeout=90, **kw)

    def run(self, *command, args=(), **kw):
        return self.call("run", "--allow", "allowed.test", *args, "--",
                         *command, **kw)

    def start(self, *command, args=()):
        return subprocess.Popen(
            self.argv("run", "--allow", "allowed.test", *args, "--", *command),
            text=True, cwd=self.case.work, env=self.env(),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def sandboxes(self):
        return self.daemon.good("GET", "/v1/sandboxes")["sandboxes"]

    def wait_none(self):
        self.daemon.wait(lambda: not self.sandboxes())


@contextlib.contextmanager
def world(case, config=CONFIG):
    w = World(case, config)
    try:
        yield w
    finally:
        if w.daemon.process.poll() is None:
            for s in w.sandboxes():
                w.daemon.ask("DELETE", "/v1/sandboxes/" + s["name"])
            check(w.daemon.stop() == 0, w.daemon.err())
        check("Sanitizer" not in w.daemon.err(), w.daemon.err())
        silent(case)


def records(path):
    with open(path + "/audit.jsonl") as f:
        return [json.loads(line) for line in f]


def log_of(out):
    """The directory that a summary names."""
    line = [x for x in out.stderr.splitlines() if x.startswith("log: ")][0]
    return line.split()[1].removesuffix("/audit.jsonl")


def test_as_without_one(case):
    with world(case) as w:
        code = ("id -u; readlink /proc/self/ns/net; curl -s -m 10 "
                "http://allowed.test/; curl -s -m 10 -o /dev/null "
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
        left = [x for x in glob.glob("/proc/[0-9]*/ns/net")
                if ns == inode(x)]
        check(not left, left)
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
        out = w.run("curl", "-s", "-m", "10", "http://allowed.test/")
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
        fetch = "curl -s -m 10 http://other.test/ | head -c 5; echo"
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
