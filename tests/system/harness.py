# SPDX-License-Identifier: Apache-2.0
"""Runs the product in the lab, as root or as an ordinary user, and collects
what it did. A suite is a module test_*.py whose functions named test_* take a
Case."""
import functools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback

from lab import Lab, TOP

USER = 33  # www-data: ssh wants a name for the uid
PROXY_VARIABLES = [name for base in ("http_proxy", "https_proxy", "all_proxy")
                   for name in (base, base.upper())]


def so_far(log):
    """The records of a log that is being written: its last line may not be
    whole yet."""
    with open(log + "/audit.jsonl") as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


class Late(Exception):
    """Not within the time that the product promises."""


def prompt(test, rounds=5):
    """Once in so many rounds: what the machine does beside it only ever adds."""
    @functools.wraps(test)
    def repeated(*args):
        for left in reversed(range(rounds)):
            try:
                return test(*args)
            except Late:
                if not left:
                    raise
    return repeated


def within(seconds, took, *what):
    """A promise of the product: a test of it is @prompt."""
    if took >= seconds:
        raise Late((took, *what))


class Run:
    """One finished `sallyport run`."""

    def __init__(self, process, log):
        self.status = process.returncode
        self.out, self.err = process.stdout, process.stderr
        self.log = log

    @property
    def records(self):
        with open(self.log + "/audit.jsonl") as f:
            return [json.loads(line) for line in f]

    def denied(self, reason=None, host=None):
        """Records of denials, of this reason and host."""
        def name(r):
            return (r.get("dst_endpoint", {}).get("hostname")
                    or r.get("query", {}).get("hostname"))
        return [r for r in self.records
                if r.get("action_id") == 2
                and reason in (None, r["status_code"])
                and host in (None, name(r))]

    def __str__(self):
        return f"status {self.status}\n--- out\n{self.out}\n--- err\n{self.err}"


class Case:
    def __init__(self, lab, who, binary):
        self.lab, self.who, self.binary = lab, who, binary
        self.count = 0
        # The sanitizers' own memory says nothing about ours.
        with open(binary, "rb") as f:
            self.sanitized = b"__asan_init" in f.read()
        self.work = os.path.join(lab.dir, "work-" + who)
        os.makedirs(self.work, exist_ok=True)
        self.mine(self.work)
        # /tmp, where the lab lies, is private in a sandbox.
        self.ca = shutil.copy(lab.ca, self.work)

    def mine(self, path):
        if self.who == "user":
            os.chown(path, USER, USER)

    def drop(self):
        if self.who == "user":
            return ["setpriv", "--reuid", str(USER), "--regid", str(USER),
                    "--clear-groups"]
        return []

    def env(self, **more):
        return dict(os.environ, HOME=self.work, XDG_STATE_HOME=self.work +
                    "/.state", **self.lab.trust(self.ca), **more)

    def argv(self, command, allow, args):
        self.count += 1
        log = f"{self.lab.dir}/log-{self.who}-{self.count}"
        os.mkdir(log, 0o700)
        self.mine(log)
        allows = [x for name in allow for x in ("--allow", name)]
        return log, [*self.drop(), self.binary, "run", "--log", log, *allows,
                     *args, "--", *command]

    def run(self, *command, allow=("allowed.test",), args=(), proxy=True,
            timeout=60, env=None, **kw):
        """Runs a command in a sandbox. @proxy False: proxy variables unset
        inside."""
        if not proxy:
            unset = [x for name in PROXY_VARIABLES for x in ("-u", name)]
            command = ("env", *unset, *command)
        log, argv = self.argv(command, allow, args)
        process = subprocess.run(argv, cwd=self.work, text=True,
                                 capture_output=True, timeout=timeout,
                                 stdin=subprocess.DEVNULL,
                                 env=self.env(**(env or {})), **kw)
        return Run(process, log)

    def start(self, *command, allow=("allowed.test",), args=(), **kw):
        """The same, still running: (Popen, log directory)."""
        log, argv = self.argv(command, allow, args)
        kw.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(argv, cwd=self.work, text=True,
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.env(), **kw)
        return process, log

    def python(self, code, **kw):
        return self.run("python3", "-c", code, **kw)

    def child(self, process, role):
        """The pid of our gate or ledger."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            for pid in descendants(process.pid):
                try:
                    with open(f"/proc/{pid}/cmdline") as f:
                        if f.read().split("\0")[1:2] == [role]:
                            return pid
                except OSError:
                    continue
            time.sleep(0.02)
        raise AssertionError(f"no {role} below {process.pid}")

    def kill(self, process, role):
        """So that the next one that is found is another one."""
        pid = self.child(process, role)
        over = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        try:
            check(select.select([over], [], [], 30)[0], (role, pid))
        finally:
            os.close(over)


def descendants(pid):
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as f:
                for child in f.read().split():
                    found += [int(child), *descendants(int(child))]
    except OSError:
        pass
    return found


def networks(pid):
    """The network namespaces that this process holds: a path to each, by name."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        try:
            name = os.readlink(path)
        except OSError:
            continue
        if name.startswith("net:["):
            found[name] = path
    return found


def silent(case):
    """Nothing may have gone to the forbidden hosts."""
    seen = case.lab.evil()
    assert not seen, "the forbidden hosts saw:\n" + "\n".join(seen)


def check(condition, run=None):
    if not condition:
        raise AssertionError(str(run) if run is not None else "")


def main():
    suite, who = sys.argv[1], sys.argv[2]
    only = sys.argv[3:]
    # What the machine has is no part of a test.
    os.environ["SALLYPORT_NO_DAEMON"] = "1"
    build = os.environ.get("SALLYPORT_BINARY", TOP + "/build/sallyport")
    module = __import__(suite)
    tests = [(name, fn) for name, fn in vars(module).items()
             if name.startswith("test_") and (not only or name in only)]
    failed = 0
    with Lab() as lab:
        # The build may lie where the ordinary user can't go.
        binary = shutil.copy(build, lab.dir + "/sallyport")
        os.chmod(binary, 0o755)
        case = Case(lab, who, binary)
        for name, fn in tests:
            began = time.monotonic()
            try:
                fn(case)
                word = "ok"
            except Exception:  # every failure is reported
                failed += 1
                word = "FAILED"
                traceback.print_exc(file=sys.stdout)
            print(f"{word:7}{time.monotonic() - began:6.2f}s {who:5}"
                  f"{name}", flush=True)
        try:
            silent(case)
        except AssertionError as e:
            failed += 1
            print("FAILED", e)
    print(f"{len(tests) + 1 - failed} passed, {failed} failed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.exit(main())
