#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A sandboxed shell on a terminal: job control works inside, and outside the
terminal is ours again afterwards.

usage: interactive.py LAUNCH_TEST_PROCESS
"""
import os
import pty
import select
import signal
import sys
import time

PROGRAM = os.path.abspath(sys.argv[1])
DEADLINE = 60
# Says when it runs, and the terminal is its own.
SLEEP = "sh -c 'echo be''gun; exec sleep %d'"


class Terminal:
    """A shell script on a pseudo-terminal of its own."""

    def __init__(self, script):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["PS1"] = "READY> "
            os.environ["TERM"] = "dumb"
            os.environ["ASAN_OPTIONS"] = "detect_leaks=0"
            os.execv("/bin/sh", ["sh", "-c", script])

    def expect(self, text):
        """Reads until @text; what is left stays for the next."""
        end = time.monotonic() + DEADLINE
        while text not in self.seen:
            left = end - time.monotonic()
            ready = left > 0 and select.select([self.fd], [], [], left)[0]
            try:
                data = os.read(self.fd, 65536) if ready else b""
            except OSError:
                data = b""
            if not data:
                os.kill(self.pid, signal.SIGKILL)
                sys.exit(f"never saw {text!r}; saw {self.seen!r}")
            self.seen += data.decode(errors="replace")
        before, _, self.seen = self.seen.partition(text)
        return before

    def send(self, text):
        os.write(self.fd, text.encode())

    def close(self):
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def check(condition, what):
    if not condition:
        sys.exit(what)


def shell(who):
    after = "echo status=$?; read line; echo again=$line; stty -a"
    t = Terminal(f"{PROGRAM} interactive {who} bash --norc -i; {after}")
    start = t.expect("READY> ")
    check("job control" not in start and "process group" not in start, start)
    t.send("echo $((40+2))\n")
    t.expect("\n42\r\n")
    t.expect("READY> ")

    # What the machine does beside it only ever adds.
    took = 5
    for _ in range(3):
        if took >= 5:
            t.send(SLEEP % 300 + "\n")
            t.expect("begun\r\n")
            began = time.monotonic()
            t.send("\x03")
            t.expect("READY> ")
            took = time.monotonic() - began
    check(took < 5, "^C did not reach the command at once")

    t.send(SLEEP % 300 + "\n")
    t.expect("begun\r\n")
    t.send("\x1a")
    t.expect("Stopped")
    t.expect("READY> ")
    t.send("kill %1; wait; jobs; echo go''ne\n")
    t.expect("gone\r\n")
    t.expect("READY> ")

    t.send("stty raw -echo; exit 3\n")
    t.expect("status=3")
    t.send("hello\n")
    t.expect("again=hello")
    modes = t.expect("iexten")
    check("-icanon" not in modes, "the terminal was left raw")
    check("-echo " not in modes + " ", "the terminal was left silent")
    t.close()


def command(who):
    after = "echo status=$?; read line; echo again=$line"
    t = Terminal(f"{PROGRAM} interactive {who} {SLEEP % 300}; {after}")
    t.expect("begun\r\n")
    t.send("\x03")
    t.expect("status=130")
    t.send("hello\n")
    t.expect("again=hello")
    t.close()

    # Nobody inside could continue it.
    t = Terminal(f"{PROGRAM} interactive {who} {SLEEP % 3}; {after}")
    t.expect("begun\r\n")
    t.send("\x1a")
    t.expect("status=0")
    t.send("hello\n")
    t.expect("again=hello")
    t.close()


for user in "root", "user":
    shell(user)
    command(user)
    print(f"as {user}: the shell has job control, the terminal is ours again")
