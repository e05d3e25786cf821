# SPDX-License-Identifier: Apache-2.0
"""What the gate asks of the kernel for an operation, as strace(1) sees it: calls
an operation, and bytes (or datagrams) a call. A traced process is slow, so that
more comes together than would otherwise; no times are taken."""
import os
import re
import subprocess
import sys
import time

import duel_peers as peers

CALL = re.compile(r"^\d+ +(\w+)\(.*= (-?\d+)")
TIMES = ("epoll_ctl", "epoll_wait", "accept4", "socket", "connect", "close",
         "shutdown", "getsockopt", "setsockopt", "getsockname")
BYTES = ("recvfrom", "sendto", "splice")
DATAGRAMS = ("recvmmsg", "sendmmsg")
SHOWN = (*TIMES, *BYTES, *DATAGRAMS, "recvmsg", "sendmsg")


class Trace:
    def __init__(self, world, pid):
        self.path = f"{world.dir}/calls"
        self.process = subprocess.Popen(
            ["strace", "-f", "-q", "-e", "trace=" + ",".join(SHOWN), "-e",
             "signal=none", "-o", self.path, "-p", str(pid)],
            stderr=subprocess.DEVNULL)
        with open(f"/proc/{pid}/status") as f:
            world.wait(lambda: (f.seek(0), "TracerPid:\t0" not in f.read())[1],
                       "strace")

    def end(self):
        """{call: (times, what they returned in all)}"""
        self.process.terminate()
        self.process.wait()
        calls = {}
        with open(self.path) as f:
            for line in f:
                found = CALL.match(line)
                if found:
                    times, sum_ = calls.get(found[1], (0, 0))
                    calls[found[1]] = (times + 1,
                                       sum_ + max(int(found[2]), 0))
        os.unlink(self.path)
        return calls


def traced(world, subject, load):
    """(what the load says, calls)"""
    load(0.3)  # caches, pools
    trace = Trace(world, subject.pids()["gate"][0])
    out, why = load(1)
    time.sleep(0.2)
    calls = trace.end()
    if not out:
        print(f"    traced: failed: {why}", file=sys.stderr)
    return out, calls


def line(row, done, calls):
    shown = {}
    for name, (times, sum_) in calls.items():
        if name in BYTES or name in DATAGRAMS:
            shown[name] = {"times": times / done, "size": sum_ / times}
        elif times / done >= 0.005:
            shown[name] = {"times": times / done}
    text = []
    for name, c in sorted(shown.items(), key=lambda x: -x[1]["times"]):
        size = "" if "size" not in c else f" ({c['size']:.0f} bytes)" \
            if name in BYTES else f" ({c['size']:.1f} datagrams)"
        if c["times"] >= 0.005:
            text.append(f"{name} {c['times']:.2f}{size}")
    print(f"  {row[0]:10}{'; '.join(text)}", flush=True)
    return {"row": row[0], "operations": done, "calls": shown}


def relay_load(world, subject, row):
    _, _, kind, door, origin, at_once, _, _ = row
    target = f"{origin}.test:{80 if origin == 'http' else 443}"
    return lambda seconds: world.load(
        "tunnels", kind, "connect" if door == "connect" else "tls", subject.ip,
        subject.port(door), target, at_once, seconds,
        f"{world.dir}/{origin}.hello")


def dns_load(world, subject, row):
    _, _, zone, names, _, _ = row
    return lambda seconds: world.load(
        "questions", subject.ip, 53, zone, names, 24, seconds, 0)


def calls(world, relay_rows, dns_rows, begin):
    """The table, as numbers."""
    print("\nthe gate's calls, for an operation (bulk: for a MiB)")
    lines = []
    # A sandbox may have so few names that a traced one would be refused.
    dns_rows = [row for row in dns_rows if row[4]]
    for kind, rows, load_of in ((peers.Sallyport, relay_rows, relay_load),
                                (peers.SallyportDns, dns_rows, dns_load)):
        for subject in begin(world, [kind]) if rows else []:
            for row in rows:
                load = load_of(world, subject, row)
                out, seen = traced(world, subject, load)
                if not out:
                    continue
                done = out[2] / 2 ** 20 if row[2] == "bulk" else out[0]
                if kind is peers.SallyportDns:
                    done = out[0] + out[1]
                if done:
                    lines.append(line(row, done, seen))
    return lines
