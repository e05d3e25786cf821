# SPDX-License-Identifier: Apache-2.0
"""`sallyport run` where there is a daemon."""
import contextlib
import os
import shutil
import subprocess

from daemon_lab import Daemon
from harness import check, silent, so_far

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
    return so_far(path)


def log_of(out):
    """The directory that a summary names."""
    line = [x for x in out.stderr.splitlines() if x.startswith("log: ")][0]
    return line.split()[1].removesuffix("/audit.jsonl")
