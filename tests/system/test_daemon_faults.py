# SPDX-License-Identifier: Apache-2.0
"""A daemon that is killed, stopped or robbed, its keepers too; and what is
left of it."""
import os
import queue
import resource
import signal
import socket
import subprocess
import threading
import time

from daemon_lab import (Daemon, daemon, fetch, keepers, left, policy, reaches,
                        resolve, user)
from harness import check, descendants, prompt, within


# --- what comes back --------------------------------------------------------


def killed(case, sig):
    with daemon(case) as d:
        s = d.create("stays", "allowed.test", "*.wild.test")
        first = resolve(s, "www.wild.test"), resolve(s, "allowed.test")
        check(all(a.startswith("198.18.") for a in first), first)
        keepers = [p for p in descendants(d.process.pid)]
        runs = subprocess.Popen(["nsenter", "--net=" + s["netns"], "sleep",
                                 "600"])
        try:
            d.stop(sig)
            began = time.monotonic()
            while any(os.path.exists(f"/proc/{p}") for p in keepers) and \
                    time.monotonic() < began + 30:
                time.sleep(0.05)
            took = time.monotonic() - began
            check(not any(os.path.exists(f"/proc/{p}") for p in keepers))
            # Away: nothing.
            check(not fetch(s, "allowed.test") and not resolve(s, "allowed.test"))
            check(os.path.exists(s["netns"]))
            d.start()
            now = d.one("stays")
            check(now["session"] != s["session"] and now["made"] == s["made"])
            check(reaches(s, "allowed.test"), d.err())
            again = resolve(s, "www.wild.test"), resolve(s, "allowed.test")
            check(again == first, (first, again))
            check(runs.poll() is None, "what ran inside did not run on")
        finally:
            runs.kill()
            runs.wait()
    within(5, took, "its keepers")


def test_killed_daemon(case):
    killed(case, signal.SIGKILL)


def test_stopped_daemon(case):
    killed(case, signal.SIGTERM)


def test_namespace_gone(case):
    """As after a reboot: the state is there, the namespace is not."""
    with daemon(case) as d:
        s = d.create("gone", "allowed.test")
        d.stop(signal.SIGKILL)
        subprocess.run(["umount", s["netns"]], check=True)
        d.start()
        check(d.ask("GET", "/v1/sandboxes/gone")[0] == 404, d.err())
        check("namespace is gone" in d.err(), d.err())
        check(os.listdir(d.dir + "/state/sandboxes") == [])
        check(os.listdir(d.dir + "/run/netns") == [])
        d.create("gone", "allowed.test")


def test_keeper_killed(case):
    """Another one takes its place; the fourth in a minute does not come."""
    with daemon(case) as d:
        s = d.create("k", "allowed.test")
        for i in range(3):
            before = d.one("k")["session"]
            for pid in keepers(d):
                os.kill(pid, signal.SIGKILL)
            if i < 2:
                d.wait(lambda: d.one("k")["session"] != before
                       and d.one("k")["state"] == "ready")
                check(reaches(s, "allowed.test"), d.err())
        d.wait(lambda: d.one("k")["state"] == "failed")
        check(not fetch(s, "allowed.test"))
        check(d.one("k")["why"], d.one("k"))
        d.remove("k")


# --- bad input --------------------------------------------------------------


def test_file_limit(case):
    """As many open files as it is let have; and it says if they are few."""
    d = Daemon(case)
    plain = d.argv()
    d.argv = lambda: ["prlimit", "--nofile=200:400", "setpriv",
                      "--inh-caps=-sys_resource",
                      "--bounding-set=-sys_resource", *plain]
    d.start()
    with open(f"/proc/{d.process.pid}/limits") as f:
        row = [x.split() for x in f if x.startswith("Max open files")][0]
    check(row[3:5] == ["400", "400"], row)
    check("no more than 400 files" in d.err(), d.err())
    check(d.create("few", "allowed.test")["state"] == "ready", d.err())
    d.remove("few")
    check(d.stop() == 0, d.err())
    # Where it may, it takes what it needs: whoever started it asked for less.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    d.argv = lambda: ["prlimit", "--nofile=200:", *plain]
    d.start()
    with open(f"/proc/{d.process.pid}/limits") as f:
        row = [x.split() for x in f if x.startswith("Max open files")][0]
    check(int(row[3]) >= min(hard, 9000) > 200, (row, hard))
    check(d.stop() == 0, d.err())


# --- nothing is left --------------------------------------------------------


def settled(d):
    """What is left when all that ended is buried."""
    while True:
        now = left(d)
        time.sleep(0.3)
        if now == left(d) and not now["netns"] and not now["children"]:
            return now


def test_fifty_cycles(case):
    with daemon(case) as d:
        def cycle(i):
            d.create(f"c{i}", "allowed.test")
            d.remove(f"c{i}")
        cycle(0)
        with user():
            cycle(1)
        before = settled(d)
        for i in range(50):
            if i % 5:
                cycle(i)
                continue
            with user():
                cycle(i)
        d.wait(lambda: left(d) == before)


@prompt
def test_many_at_once(case):
    """Sixty asked for at once are a queue, and whoever asks meanwhile is
    answered; after a kill all of them come back."""
    n = 60
    with daemon(case) as d:
        results, slowest = [], 0
        threads = [threading.Thread(target=lambda i=i: results.append(
            d.ask("POST", "/v1/sandboxes",
                  {"name": f"m{i}", "policy": policy("allowed.test")})[0]))
            for i in range(n)]
        began = time.monotonic()
        for t in threads:
            t.start()
        while any(t.is_alive() for t in threads):
            asked = time.monotonic()
            check(d.ask("GET", "/healthz")[0] == 200)
            slowest = max(slowest, time.monotonic() - asked)
            time.sleep(0.02)
        made = time.monotonic() - began
        check(results == [201] * n, results)
        d.stop(signal.SIGKILL)
        began = time.monotonic()
        d.start()
        back = time.monotonic() - began
        all_of_them = d.good("GET", "/v1/sandboxes")["sandboxes"]
        check(len(all_of_them) == n
              and all(s["state"] == "ready" for s in all_of_them))
        for s in all_of_them[::20]:
            check(reaches(s, "allowed.test"), d.err())
        print(f"        {n} made in {made:.2f} s, back after a kill in "
              f"{back:.2f} s; the slowest other answer {slowest * 1000:.0f} ms")
    within(5 if case.sanitized else 2, slowest)


# --- systemd ----------------------------------------------------------------

# Listens as systemd would, and becomes the daemon with that socket.
ACTIVATE = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(16)
os.dup2(s.fileno(), 3); os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1",
                  LISTEN_FDNAMES="control", WATCHDOG_PID=str(os.getpid()),
                  WATCHDOG_USEC="400000")
os.execv(sys.argv[2], sys.argv[2:])
"""


def test_systemd(case):
    """A socket that was there before, and words at the right moments."""
    d = Daemon(case)
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(d.dir + "/notify")
    words = queue.Queue()  # a socket holds ten, and what is more is lost

    def read():
        while word := notify.recv(200):
            words.put(word)
    threading.Thread(target=read, daemon=True).start()
    d.env["NOTIFY_SOCKET"] = d.dir + "/notify"
    os.mkdir(d.dir + "/passed")
    d.socket = d.dir + "/passed/control.sock"
    plain = d.argv()
    d.argv = lambda: ["python3", "-c", ACTIVATE, d.socket, *plain]
    d.start()
    check(words.get(timeout=30) == b"READY=1")
    check(not os.path.exists(d.dir + "/run/control.sock"))
    for _ in range(3):
        check(words.get(timeout=30) == b"WATCHDOG=1")

    def next_word():
        while (word := words.get(timeout=30)) == b"WATCHDOG=1":
            pass
        return word
    d.process.send_signal(signal.SIGHUP)
    check(next_word().startswith(b"RELOADING=1\nMONOTONIC_USEC="))
    check(next_word() == b"READY=1")
    d.create("s", "allowed.test")
    # A daemon that stands still is not one that works.
    d.process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    while not words.empty():
        words.get()
    time.sleep(1)
    check(words.empty())
    d.process.send_signal(signal.SIGCONT)
    check(words.get(timeout=30) == b"WATCHDOG=1")
    check(d.remove("s")["held"] == "held")
    d.process.send_signal(signal.SIGTERM)
    check(next_word() == b"STOPPING=1")
    check(d.process.wait(60) == 0, d.err())
    notify.shutdown(socket.SHUT_RD)  # the thread ends
    check(os.path.exists(d.socket), "systemd's socket is systemd's")


# --- what does not move -----------------------------------------------------


@prompt
def test_stuck_keeper(case):
    """One that stands still holds up nobody, and is killed in the end."""
    with daemon(case) as d:
        s = d.create("stuck", "allowed.test")
        os.kill(keepers(d)[0], signal.SIGSTOP)
        began = time.monotonic()
        d.create("other", "allowed.test")
        check(fetch(d.one("other"), "allowed.test"))
        other = time.monotonic() - began
        answer = d.remove("stuck")
        took = time.monotonic() - began
        check("receipt" not in answer, (took, answer))
        check(not os.path.exists(s["netns"]))
        check(fetch(d.one("other"), "allowed.test"))
    within(10, other, "it waited for the other one")
    within(45, took)


# Holds a process of a sandbox as a debugger does: it does not die when killed.
HOLD = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1])
assert libc.ptrace(0x4206, pid, 0, 0x40) == 0  # SEIZE, PTRACE_O_TRACEEXIT
print("held", flush=True)
time.sleep(600)
"""


@prompt
def test_process_that_does_not_die(case):
    """It holds up its own sandbox for a while, and nobody else."""
    with daemon(case) as d:
        s = d.create("held", "allowed.test")
        victim = subprocess.Popen(["nsenter", "--net=" + s["netns"], "sleep",
                                   "600"])
        case.lab.wait(lambda: os.readlink(f"/proc/{victim.pid}/ns/net")
                      != os.readlink("/proc/self/ns/net"), "nsenter")
        holder = subprocess.Popen(["python3", "-c", HOLD, str(victim.pid)],
                                  stdout=subprocess.PIPE, text=True)
        try:
            check(holder.stdout.readline() == "held\n")
            answers = []
            ends = threading.Thread(
                target=lambda: answers.append(d.remove("held")))
            ends.start()
            time.sleep(0.2)
            began = time.monotonic()
            for _ in range(20):
                check(d.ask("GET", "/healthz")[0] == 200)
            took = time.monotonic() - began
            ends.join(60)
            check(answers and not os.path.exists(s["netns"]), d.err())
            check("does not die" in d.err(), d.err())
        finally:
            holder.kill()
            holder.wait()
            victim.wait()
    within(1, took, "the daemon waited for it")
