# SPDX-License-Identifier: Apache-2.0
"""tests/bench/run [--quick] [--check] [--calls] [--alone] [--only WORD]...
                [--json FILE] [--svg DIR]

What an operation costs: CPU time of all processes of a subject, in the kernel
too, by operation, beside a floor (the least that a program can do for the same
job) and beside other programs, in interleaved rounds on one machine. Subjects
have one core, load and origins the other. The ratio to the floor of the same
round is what can be compared between machines; the median of rounds counts, and
the spread is shown.

sallyport is as it ships: policy, audit log and signing on; all its processes
count. The others keep no logs. --alone: there are no others, only the floors.

It fails if sallyport or a floor does not do what it is measured at, or if the
whole does not end within LIMIT_S seconds; never for a number.
"""
import argparse
import json
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
os.environ.setdefault("SALLYPORT_BINARY", TOP + "/build/sallyport")
os.environ.setdefault("SALLYPORT_TOOLS", os.path.join(
    os.path.dirname(os.environ["SALLYPORT_BINARY"]), "tests"))
os.environ["SALLYPORT_NO_DAEMON"] = "1"
os.environ["PATH"] += ":/usr/sbin:/sbin"

import duel_peers as peers  # noqa: E402
from duel_calls import calls  # noqa: E402
from duel_check import check_relays  # noqa: E402
from duel_svg import plot  # noqa: E402
from duel_world import World  # noqa: E402

# name, title, kind of load, door, origin, at once, floors, unit
RELAY_ROWS = [
    ("connect", "new CONNECT tunnel + 1 KiB + close, 64 at once", "new",
     "connect", "once", 64, ("copy",), "us"),
    ("sni", "new SNI tunnel + 1 KiB + close, 64 at once", "new", "tls", "once",
     64, ("copy",), "us"),
    ("ping", "round trip of 1 byte, 64 tunnels (CONNECT)", "ping", "connect",
     "echo", 64, ("copy",), "us"),
    ("ping-sni", "round trip of 1 byte, 64 tunnels (SNI)", "ping", "tls",
     "echo", 64, ("copy",), "us"),
    ("bulk", "bulk, one tunnel, per GiB (CONNECT)", "bulk", "connect", "source",
     1, ("copy", "splice"), "s/GiB"),
    ("bulk-sni", "bulk, one tunnel, per GiB (SNI)", "bulk", "tls", "source", 1,
     ("copy", "splice"), "s/GiB"),
    ("bulk64", "bulk, 64 tunnels, per GiB (SNI)", "bulk", "tls", "source", 64,
     ("copy", "splice"), "s/GiB"),
    ("get", "plain HTTP GET of 1 KiB, 64 connections", "get", "http", "http",
     64, ("http",), "us"),
]
# name, title, zone, names (0: never twice), warm-up, floor
DNS_ROWS = [
    ("cached", "cached allowed name", "ok.test", 500, True, peers.Responder),
    ("denied", "denied name", "denied.test", 500, True, peers.Responder),
    ("miss", "miss, forwarded", "ok.test", 0, False, peers.Forwarder),
]
IDLE = 2000
# A sandbox may have 256 questions under way (dns/filter.c); the load has eight
# sockets, and so many of each.
WINDOW = 24
TRIES = 3  # of what was not measured, as on a machine that has much else to do
LIMIT_S = {True: 300, False: 1800}  # quick, or not
# Names that a sandbox may have, less some: then it is a new one.
MISSES = 3900


# Others may be missing, or fail; these not.
MUST = ("floor", "sallyport")
unmeasured = []


def note(text):
    print(text, file=sys.stderr, flush=True)


def wanted(only, name):
    return not only or name in only or any(name.startswith(o) for o in only)


def begin(world, kinds):
    """Those that can be started."""
    subjects = []
    for kind in kinds:
        lacks = kind.missing()
        if lacks:
            note(f"  {kind.name}: left out, there is no {lacks[0]}")
            continue
        subject = kind(world)
        try:
            subject.start()
        except RuntimeError as error:
            said = [f for f in os.listdir(world.dir) if f.endswith(".out")]
            said.sort(key=lambda f: int(f.rsplit("-", 1)[1][:-4]))
            with open(f"{world.dir}/{said[-1]}") as f:
                note(f"  {kind.name}: left out: {error}\n{f.read()[-800:]}")
            if kind.name.startswith(MUST):
                unmeasured.append(f"{kind.name}: it did not start")
            continue
        subjects.append(subject)
    return subjects


def spent(subject, load):
    """(operations, CPU seconds by role); None if the load failed."""
    before = subject.cpu()
    (out, why) = load()
    time.sleep(0.15 if "ledger" in before else 0)  # the last records
    after = subject.cpu()
    if not out:
        note(f"    {subject.name}: failed: {why}")
        return None
    return out, {role: after[role] - before[role] for role in before}


def tunnel_cost(world, subject, row, seconds):
    _, _, kind, door, origin, at_once, _, _ = row
    target = f"{origin}.test:{80 if origin == 'http' else 443}"
    out = spent(subject, lambda: world.load(
        "tunnels", kind, "connect" if door == "connect" else "tls", subject.ip,
        subject.port(door), target, at_once, seconds,
        f"{world.dir}/{origin}.hello"))
    if not out:
        return None
    (done, _, size, _), cpus = out
    by = size / 2 ** 30 if kind == "bulk" else done / 1e6
    return {role: cpu / by for role, cpu in cpus.items()} if by else None


def dns_cost(world, subject, row, seconds):
    """{}: it was too slow to be asked so much."""
    _, _, zone, names, warm, _ = row
    most = 0 if warm else MISSES
    if not warm:
        zone = f"r{time.monotonic_ns()}.{zone}"  # nobody has it
        subject.restart()

    def load(seconds=seconds, window=WINDOW if warm else 16):
        return world.load("questions", subject.ip, 53, zone, names, window,
                          seconds, most)
    if warm:
        load(0.5, 16)
    out = spent(subject, lambda: load(10 if most else seconds))
    if not out:
        return None
    (addresses, others, lost, _), cpus = out
    floor = subject.name.startswith("floor")  # it has no policy
    good = others if row[0] == "denied" and not floor else addresses
    if lost > 0.01 * good or good < 0.99 * (addresses + others):
        note(f"    {subject.name}: {addresses:.0f} addresses, {others:.0f} other "
             f"answers, {lost:.0f} lost")
        return {} if good > others + addresses - good else None
    return {role: 1e6 * cpu / good for role, cpu in cpus.items()}


def rounds(world, row, subjects, measure, count, seconds):
    """{subject: {role: [cost of each round]}}, in turns."""
    costs = {s.name: {} for s in subjects}
    for subject in subjects:  # caches, pools, first connections
        measure(world, subject, row, seconds if row[0] == "miss"
                else min(seconds, 0.3))
    for _ in range(count):
        for subject in subjects:
            must = subject.name.startswith(MUST)
            for tries in range(TRIES if must else 1):
                cost = measure(world, subject, row, seconds * 4 ** tries)
                if cost:
                    break
            for role, value in (cost or {}).items():
                costs[subject.name].setdefault(role, []).append(value)
            if must and cost is None:
                unmeasured.append(f"{row[0]}: {subject.name}")
    return {name: c for name, c in costs.items() if c}


def table(row, costs, base, unit):
    """Prints it; the same as numbers."""
    print(f"\n{row[1]}, {unit if unit == 'KiB' else 'CPU ' + unit}")
    print(f"  {'':24}{'median':>9}{'least':>9}{'most':>9}{'ratio':>9}")
    result = []
    for name, roles in costs.items():
        for role, values in roles.items():
            ratios = [v / b for v, b in zip(values, costs.get(base, {}).get(
                "all", []))]
            line = {"subject": name if role == "all" else f"{name}: {role}",
                    "median": statistics.median(values), "least": min(values),
                    "most": max(values),
                    "ratio": statistics.median(ratios) if ratios else None}
            result.append(line)
            print(f"  {line['subject']:24}{line['median']:9.3f}"
                  f"{line['least']:9.3f}{line['most']:9.3f}" +
                  (f"{line['ratio']:9.2f}" if ratios else ""), flush=True)
    return {"name": row[0], "title": row[1], "unit": unit, "base": base,
            "rows": result}


def relays(world, options, seconds, count):
    tables = []
    rows = [r for r in RELAY_ROWS if wanted(options.only, r[0])]
    if not rows and not wanted(options.only, "idle") and not options.check:
        return tables
    subjects = begin(world, peers.RELAYS[:1] if options.alone
                     else peers.RELAYS)
    if options.check:
        check_relays(world, subjects)
    for row in rows:
        note(f"{row[0]} ...")
        floors = begin(world, [peers.floor(row[3], how, row[4])
                               for how in row[6]])
        these = floors + [s for s in subjects if row[3] in s.doors]
        costs = rounds(world, row, these, tunnel_cost, count, seconds)
        base = floors[0].name if floors else "sallyport"
        tables.append(table(row, costs, base, row[7]))
    if wanted(options.only, "idle"):
        tables.append(idle(world, subjects))
    return tables


def idle(world, subjects):
    """Memory of tunnels that do nothing."""
    row = ("idle", f"memory of an idle tunnel, of {IDLE}")
    costs = {}
    for s in subjects:
        door = "tls" if "tls" in s.doors else "connect"
        before = s.memory()
        load = subprocess.Popen(world.at_clients(
            os.environ["SALLYPORT_TOOLS"] + "/bench_tunnels", "idle", door, s.ip,
            str(s.port(door)), "echo.test:443", str(IDLE), "1",
            world.dir + "/echo.hello"), text=True, stdout=subprocess.PIPE)
        if load.stdout.readline().strip() == "ready":
            costs[s.name] = {"all": [(s.memory() - before) / IDLE / 1024]}
        elif s.name.startswith(MUST):
            unmeasured.append(f"idle: {s.name}")
        load.communicate(timeout=60)
    return table(row, costs, None, "KiB")


def resolvers(world, options, seconds, count):
    tables = []
    rows = [r for r in DNS_ROWS if wanted(options.only, r[0])]
    if not rows:
        return tables
    subjects = begin(world, [peers.Responder, peers.Forwarder,
                             *peers.RESOLVERS[:1 if options.alone else None]])
    for row in rows:
        note(f"{row[0]} ...")
        these = [s for s in subjects if not s.name.startswith("floor") or
                 isinstance(s, row[5])]
        costs = rounds(world, row, these, dns_cost, count, seconds)
        tables.append(table(row, costs, row[5].name, "us"))
    return tables


def facts():
    with open("/proc/cpuinfo") as f:
        model = next((x.split(":")[1].strip() for x in f if "model name" in x),
                     "?")
    commit = subprocess.run(["git", "-C", TOP, "rev-parse", "--short", "HEAD"],
                            text=True, capture_output=True).stdout.strip()
    return {"processor": model, "cores": os.cpu_count(),
            "kernel": platform.release(), "date": time.strftime("%Y-%m-%d"),
            "commit": commit}


def give_up(*_):
    raise RuntimeError("it does not come to an end")


def main():
    ap = argparse.ArgumentParser(usage=__doc__)
    ap.add_argument("--quick", action="store_true", help="one short round")
    ap.add_argument("--only", action="append", default=[], metavar="WORD")
    ap.add_argument("--check", action="store_true",
                    help="first: does each pass what it should, and no more?")
    ap.add_argument("--calls", action="store_true",
                    help="instead: what the gate asks of the kernel")
    ap.add_argument("--alone", action="store_true",
                    help="sallyport and the floors only")
    ap.add_argument("--rounds", type=int)
    ap.add_argument("--json", metavar="FILE")
    ap.add_argument("--svg", metavar="DIR")
    options = ap.parse_args()
    names = [row[0] for row in (*RELAY_ROWS, *DNS_ROWS)] + ["idle"]
    for word in options.only:
        if not any(wanted([word], name) for name in names):
            ap.error(f"no row {word}; there are {', '.join(names)}")
    seconds, count = (0.25, 1) if options.quick else (1.0, 5)
    count = options.rounds or count
    result = {"machine": facts(), "tables": []}
    print(", ".join(f"{k} {v}" for k, v in result["machine"].items()))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LIMIT_S[options.quick])
    with World() as world:
        for part in () if options.calls else (relays, resolvers):
            result["tables"] += part(world, options, seconds, count)
        if options.calls:
            result["calls"] = calls(world, *(
                [r for r in rows if wanted(options.only, r[0])]
                for rows in (RELAY_ROWS, DNS_ROWS)), begin)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(result, f, indent=1)
    if options.svg:
        plot(result, options.svg)
    for what in unmeasured:
        print(f"NOT MEASURED: {what}")
    return 1 if unmeasured else 0


if __name__ == "__main__":
    sys.exit(main())
