# SPDX-License-Identifier: Apache-2.0
"""What a sandbox of `sallyport daemon` costs, and how a thousand do: the real
daemon, in a lab, with directories of its own, asked over its socket.

Times and sizes are printed, never judged: a machine has its own, and whoever
else uses it makes them worse. What must hold whatever the machine: all are
ready, also after the daemon was killed; a sample of them resolves what is
allowed and nothing else; and when they are removed, no process, descriptor,
link, namespace or file is left.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "system"))
from harness import Case, check, descendants  # noqa: E402
from lab import DNS, Lab  # noqa: E402
from daemon_lab import Daemon, left, policy, resolve  # noqa: E402

SAMPLE, AT_ONCE, IDLE_S, TURNS = 20, 8, 5, 30
ROLES = ("keeper", "gate", "ledger")
KERNEL = ("MemAvailable", "Slab", "Percpu", "KernelStack", "PageTables")


class Names(Lab):
    """An internet of one name server: nobody else takes CPU."""

    def servers(self):
        self.spawn("nsenter", "-t", str(self.holder.pid), "-n", "nsd", "-d",
                   "-c", self.dir + "/nsd.conf")
        self.wait(lambda: self.listens(DNS, 53), "the name server")


# --- measuring --------------------------------------------------------------

def spread(seconds):
    """In milliseconds."""
    ms = sorted(1000 * s for s in seconds)
    return {"n": len(ms), "p50_ms": round(statistics.median(ms), 1),
            "p99_ms": round(ms[min(len(ms) - 1, len(ms) * 99 // 100)], 1),
            "max_ms": round(ms[-1], 1)}


def timed(work, names, at_once):
    """How long each took, and all."""
    def one(name):
        began = time.monotonic()
        work(name)
        return time.monotonic() - began
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        took = list(pool.map(one, names))
    return dict(spread(took), at_once=at_once,
                all_s=round(time.monotonic() - began, 2))


def role(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/cmdline") as f:
            return f.read().split("\0")[1:2]
    return []


def family(d):
    """Pids by role."""
    found = {name: [] for name in ROLES}
    for pid in descendants(d.process.pid):
        found.setdefault("".join(role(pid)), []).append(pid)
    return found


def pss(pids):
    """KiB, of what is theirs alone and their part of what is shared."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            total += sum(int(line.split()[1]) for line in f
                         if line.startswith("Pss:"))
    return total


def meminfo():
    with open("/proc/meminfo") as f:
        rows = dict(line.split(":") for line in f)
    return {name: int(rows[name].split()[0]) for name in KERNEL}


def ran(pid):
    """Seconds on a processor, of all threads, to the nanosecond."""
    total = 0
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat") as f:
                total += int(f.read().split()[0])
    return total / 1e9


def idle(d):
    """Percent of a processor, by role, with nobody asking."""
    pids = {"daemon": [d.process.pid], **family(d)}
    before = {name: sum(map(ran, them)) for name, them in pids.items()}
    began = time.monotonic()
    time.sleep(IDLE_S)
    used = {name: sum(map(ran, them)) - before[name]
            for name, them in pids.items()}
    took = time.monotonic() - began
    percent = {name: round(100 * s / took, 2) for name, s in used.items()}
    return dict(percent, all=round(sum(percent.values()), 2))


def size(top):
    """KiB of files."""
    return sum(os.lstat(os.path.join(where, name)).st_blocks
               for where, _, files in os.walk(top) for name in files) // 2


def memory(d, before, n):
    """What one more costs, in KiB. The log is a tmpfs in the lab: what
    is in it is available memory elsewhere."""
    now, pids = meminfo(), family(d)
    each = {name: round(pss(pids[name]) / n) for name in ROLES}
    logs = size("/var/log/sallyport")
    kernel = {name: round((now[name] - before[name]) / n) for name in KERNEL}
    gone = -(now["MemAvailable"] - before["MemAvailable"]) - logs
    del kernel["MemAvailable"]
    return {"processes": each, "processes_all": sum(each.values()),
            "machine_all": round(gone / n), "kernel": kernel,
            "log": round(logs / n), "daemon": pss([d.process.pid])}


# --- what must hold ---------------------------------------------------------

def all_ready(d, n):
    boxes = d.good("GET", "/v1/sandboxes")["sandboxes"]
    bad = [(s["name"], s["state"], s["why"]) for s in boxes
           if s["state"] != "ready"]
    check(len(boxes) == n and not bad, (len(boxes), bad[:5], d.err()[-2000:]))
    count = {name: len(pids) for name, pids in family(d).items() if pids}
    check(count == {name: n for name in ROLES}, count)
    return boxes


def all_answer(boxes, err):
    for s in boxes[::max(1, len(boxes) // SAMPLE)]:
        check(resolve(s, "allowed.test").startswith("198.18."), (s, err()))
        check(resolve(s, "other.test") == "", (s, "what was not allowed"))


def sockets_inside(boxes):
    """A UDP socket in each of them."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as own:
        for s in boxes:
            with open(s["netns"]) as ns:
                check(libc.setns(ns.fileno(), 0) == 0, s)
            inside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            inside.connect((s["gateway"], 53))
            yield inside
        check(libc.setns(own.fileno(), 0) == 0)


def all_at_once(boxes):
    """Everybody asks within the same moment, and again each second as a
    resolver would. Whom the kernel has no room for has to ask again."""
    query = (b"\x12\x34\1\0\0\1\0\0\0\0\0\0\7allowed\4test\0\0\1\0\1")
    waiting, poll = {}, select.poll()
    for s in sockets_inside(boxes):
        waiting[s.fileno()] = s
        poll.register(s, select.POLLIN)
    again, began = collections.Counter(), time.monotonic()
    for turn in range(TURNS):
        for s in waiting.values():
            s.send(query)
        again[turn] = len(waiting)
        end = time.monotonic() + 1
        while waiting and (left_s := end - time.monotonic()) > 0:
            for fd, _ in poll.poll(1000 * left_s):
                answer = waiting[fd].recv(512)
                if answer[3] & 15 or answer[-4:-2] != b"\xc6\x12":
                    continue  # SERVFAIL, of one who has too much to do
                poll.unregister(fd)
                waiting.pop(fd).close()
        if not waiting:
            break
    check(not waiting, f"{len(waiting)} of {len(boxes)} got no answer")
    return {"asked_again": sum(again.values()) - len(boxes),
            "all_s": round(time.monotonic() - began, 2)}


def restart(d, n):
    """As if it had crashed: until the last way out is closed, until nobody is
    left, until all serve."""
    ours = family(d)
    began = time.monotonic()
    d.stop(signal.SIGKILL)
    gone = {}
    for name in ("gate", "keeper", "ledger"):
        left_of = set(ours[name])
        while left_of:
            left_of = {pid for pid in left_of if "".join(role(pid)) == name}
            check(time.monotonic() - began < 60,
                  f"{len(left_of)} outlive the daemon")
            time.sleep(0.02)
        gone[name] = round(time.monotonic() - began, 2)
    began = time.monotonic()
    d.start(ready=False)
    answers = time.monotonic() - began
    end = began + 30 + n
    while d.ask("GET", "/readyz")[0] != 200:
        check(time.monotonic() < end, d.err()[-2000:])
        time.sleep(0.05)
    while any(s["state"] == "starting" for s in
              d.good("GET", "/v1/sandboxes")["sandboxes"]):
        check(time.monotonic() < end, d.err()[-2000:])
        time.sleep(0.05)
    return {"shut_s": gone["gate"], "ended_s": gone["ledger"],
            "answers_s": round(answers, 2),
            "all_s": round(time.monotonic() - began, 2)}


def nothing_left(d, before, but=()):
    end = time.monotonic() + 20
    while ((now := dict(left(d), **{name: before[name] for name in but}))
           != before and time.monotonic() < end):
        time.sleep(0.1)
    check(now == before, (before, now))


# --- the run ----------------------------------------------------------------

def measure(d, n, say):
    def create(name):
        check(d.create(name, "allowed.test")["state"] == "ready", name)
    names = [f"s{i:04}" for i in range(n)]
    few = max(1, n // 20)
    # What is opened once is not counted as left.
    create("first")
    d.remove("first")
    time.sleep(0.5)
    before, memory_before = left(d), meminfo()
    out = {"sandboxes": n, "processors": os.cpu_count(),
           "load": os.getloadavg()[0]}

    def step(name, value):
        out[name] = value
        say(name, value)
    step("create_first", timed(create, names[:few], 1))
    step("create", timed(create, names[few:-few], AT_ONCE))
    step("create_last", timed(create, names[-few:], 1))
    boxes = all_ready(d, n)
    step("memory_kib", memory(d, memory_before, n))
    step("list", timed(lambda _: d.good("GET", "/v1/sandboxes"), names[:20], 1))
    step("metrics", timed(lambda _: d.good("GET", "/metrics"), names[:20], 1))
    time.sleep(2)
    step("idle_cpu_percent", idle(d))
    all_answer(boxes, d.err)
    step("all_ask_at_once", all_at_once(boxes))
    step("restart", restart(d, n))
    boxes = all_ready(d, n)
    all_answer(boxes, d.err)
    step("remove", timed(d.remove, names, AT_ONCE))
    # A daemon that was started again has not opened all that it opens once.
    nothing_left(d, before, ("fds",))
    create("first")
    d.remove("first")
    nothing_left(d, before)
    return out


def lines(name, value):
    words = ", ".join(f"{k} {lines('', v) if isinstance(v, dict) else v}"
                      for k, v in value.items())
    return f"{name + ':':18}{words}" if name else f"({words})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sandboxes", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()

    def say(name, value):
        print(lines(name, value), flush=True,
              file=sys.stderr if asked.json else sys.stdout)
    check(asked.sandboxes >= 20, "at least 20")
    with Names() as lab:
        case = Case(lab, "root", os.environ["SALLYPORT_BINARY"])
        d = Daemon(case, config="version: 1\ngroup: www-data\nlimits:\n"
                   f"  max_sandboxes: {asked.sandboxes + 8}\n").start()
        try:
            out = measure(d, asked.sandboxes, say)
            check(d.stop() == 0, d.err()[-2000:])
            check("Sanitizer" not in d.err(), d.err()[-4000:])
        finally:
            if d.process.poll() is None:
                d.process.kill()
                d.process.wait()
    if asked.json:
        print(json.dumps(out, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
