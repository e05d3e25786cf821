# SPDX-License-Identifier: Apache-2.0
"""tests/bench/run --scale [--quick] [--only WORD]... [--json FILE] [--svg DIR]

Does an operation cost the same as things grow? CPU time of all processes of
sallyport, in the kernel too, by operation: with more names in the policy, more
idle tunnels, more names in a sandbox, more sandboxes. In each round all sizes
take turns, in another order each time, beside a floor that does not grow: so
what the machine does meanwhile is no scale. What counts is the ratio to the
smallest size of the same round; the median of rounds, and the spread.

Sandboxes of a daemon can't take turns: their number goes up and down again, and
each ratio is of the floor's too. Of a daemon's processes those count that serve
the sandbox that asks; what the others take while nobody asks them is told apart.
"""
import argparse
import json
import random
import resource
import statistics
import sys
import time

import duel
from duel_scale_svg import plot
from duel_scale_world import (Box, Boxes, DENIED, FloorConnect, FloorDns,
                              FloorTls, HELLO, Idle, Listed, NAMES, Ruled,
                              Scaled, ScaleWorld, ZONE, put)
from duel_world import LOAD_CORE, SUBJECT_CORE

KINDS = {"connect": "new CONNECT tunnel + 1 KiB + close",
         "sni": "new SNI tunnel + 1 KiB + close",
         "cached": "cached allowed name", "denied": "denied name"}
FLOORS = {"connect": FloorConnect, "sni": FloorTls, "cached": FloorDns,
          "denied": FloorDns}
# name, title, subject, sizes; --quick: the ends
SERIES = [
    ("lists", "names in a list that is denied", Listed,
     [10, 1000, 100000, 1000000]),
    ("rules", "names that rules allow", Ruled, [10, 1000, 90000]),
    ("idle", "idle tunnels that are held", Idle, [100, 1000, 4000, 8000]),
]
BOXES = [1, 10, 100, 1000]
ASKED = [1, 100, 1000, 3900]
FLAT = 1.15


def tunnels(world, subject, kind, seconds):
    ip, port = subject.address(kind)
    # In a sandbox a name has an address of its own.
    names = (1, 1) if isinstance(subject, Box) else \
        (subject.names, subject.spread)
    return world.load("tunnels", "new", "connect" if kind == "connect" else
                      "tls", ip, port, HELLO + ":443", 64, seconds,
                      world.dir + "/names.hello", *names, into=subject.into)


def questions(world, subject, kind, seconds, most=0):
    ip, port = subject.address(kind)
    zone, names = (ZONE, subject.names) if kind == "cached" else (DENIED, NAMES)
    spread = 1 if isinstance(subject, Box) else subject.spread
    out, why = world.load("questions", ip, port, zone, names, 16, seconds, most,
                          spread, into=subject.into)
    if not out:
        return out, why
    addresses, others, lost, took = out
    if kind == "denied" and not isinstance(subject, FloorDns):
        addresses, others = others, addresses
    if lost + others > 0.01 * addresses:
        return None, f"{addresses:.0f} good, {others:.0f} others, {lost:.0f} lost"
    return (addresses, others, lost, took), ""


def measure(world, subject, kind, seconds):
    """{role: us by operation}, and operations a second."""
    load = tunnels if kind in ("connect", "sni") else questions
    before = subject.cpu()
    out, why = load(world, subject, kind, seconds)
    time.sleep(0.05)  # the last records
    after = subject.cpu()
    if not out:
        raise SystemExit(f"{subject.name} {kind}: {why}")
    cost = {role: 1e6 * (after[role] - before[role]) / out[0]
            for role in before}
    return dict(cost, rate=out[0] / out[3])


def begin(subjects):
    for subject in subjects:
        subject.start()
    return subjects


def turn(world, who, floors, kind, costs, seconds):
    """One round of @who ({size: subject}), in any order, beside the floor."""
    every = [*who.items(), (None, floors[kind])]
    random.shuffle(every)
    cost = {size: measure(world, subject, kind, seconds)
            for size, subject in every}
    for size in who:
        costs[kind][size].append(dict(cost[size], floor=cost[None]["all"]))


def warm(world, subject):
    """All its names, caches and first connections."""
    for _ in range(2):
        out, why = questions(world, subject, "cached", 20,
                             max(subject.names, 16))
    if not out:
        raise SystemExit(f"{subject.name}: {why}")
    for kind in KINDS:
        measure(world, subject, kind, 0.2)


def rounds(world, subjects, floors, options):
    costs = {kind: {size: [] for size in subjects} for kind in KINDS}
    for subject in subjects.values():
        warm(world, subject)
    for _ in range(options.rounds):
        for kind in KINDS:
            turn(world, subjects, floors, kind, costs, options.seconds)
    return costs


def series(world, row, floors, options):
    name, title, subject, sizes = row
    sizes = [sizes[0], sizes[-1]] if options.quick else sizes
    made = begin([subject(world, size) for size in sizes])
    costs = rounds(world, dict(zip(sizes, made)), floors, options)
    for one in made:
        one.stop()
    return shown(name, title, costs, False)


def asked(world, floors, options):
    """Sandboxes of a daemon, each with so many names that have an address."""
    sizes = [ASKED[0], ASKED[-1]] if options.quick else ASKED
    all_of_them = Boxes(world, len(sizes))
    try:
        all_of_them.grow(len(sizes))
        all_of_them.first = all_of_them.every
        subjects = {size: Box(all_of_them, f"s{i}", size)
                    for i, size in enumerate(sizes)}
        costs = rounds(world, subjects, floors, options)
    finally:
        all_of_them.stop()
    return shown("names", "names that a sandbox has asked for", costs, False)


def boxes(world, floors, options):
    """Up and down again, so that what drifts is met on both ways."""
    sizes = [BOXES[0], 100] if options.quick else BOXES
    costs = {kind: {size: [] for size in sizes} for kind in KINDS}
    all_of_them, idle = Boxes(world, sizes[-1]), {size: [] for size in sizes}
    try:
        subject = Box(all_of_them, "s0")
        for size in [*sizes, *sizes[::-1]]:
            all_of_them.grow(size)
            duel.note(f"  {size} sandboxes")
            idle[size].append(all_of_them.idle(2))
            warm(world, subject)
            for _ in range((options.rounds + 1) // 2):
                for kind in KINDS:
                    turn(world, {size: subject}, floors, kind, costs,
                         options.seconds)
    finally:
        all_of_them.stop()
    table = shown("sandboxes", "sandboxes of a daemon, one of them asks",
                  costs, True)
    table["idle"] = {n: statistics.median(v) for n, v in idle.items()}
    print("  all of them, while nobody asks: " + ", ".join(
        f"{n}: {100 * v:.2f} %" for n, v in table["idle"].items()) +
        " of a processor")
    return table


def threads(world, options):
    """The gate has one thread, the load needs the other core: what one core
    does at most, and whether both do more when nobody is kept off the load's."""
    subject = begin([Scaled(world, 0)])[0]
    warm(world, subject)
    cores = {1: [SUBJECT_CORE], 2: [SUBJECT_CORE, LOAD_CORE]}
    found = {(kind, n): [] for kind in KINDS for n in cores}
    for _ in range(options.rounds):
        for kind, n in random.sample(list(found), len(found)):
            put(subject.pids()["all"], cores[n])
            found[kind, n].append(measure(world, subject, kind,
                                          options.seconds))
    subject.stop()
    print("\nOne gate, operations a second, on its own core and on both\n"
          f"  {'':38}{'cores':>6}{'a second':>10}{'least':>9}{'most':>9}"
          f"{'us':>8}{'of gate':>9}{'ledger':>8}")
    rows = []
    for (kind, n), entries in found.items():
        row = {"kind": kind, "cores": n, **{
            role: spread([e[role] for e in entries]) for role in entries[0]}}
        rows.append(row)
        rate = row["rate"]
        print(f"  {KINDS[kind]:38}{n:6}{rate['median']:10.0f}"
              f"{rate['least']:9.0f}{rate['most']:9.0f}" + "".join(
                  f"{row[r]['median']:{w}.2f}" for r, w in
                  (("all", 8), ("gate", 9), ("ledger", 8))), flush=True)
    return {"name": "threads", "title": "operations a second of one gate",
            "rows": rows}


def spread(values):
    return {"median": statistics.median(values), "least": min(values),
            "most": max(values)}


def shown(name, title, costs, beside):
    """Prints it; the same as numbers. @beside: ratios are of the floor's."""
    def worth(entry):
        return entry["all"] / (entry["floor"] if beside else 1)
    print(f"\n{title}, CPU us an operation")
    print(f"  {'':38}{'size':>9}{'median':>9}{'least':>9}{'most':>9}{'ratio':>7}"
          f"{'least':>7}{'most':>7}{'floor':>8}")
    rows = []
    for kind, sizes in costs.items():
        first = next(iter(sizes.values()))
        for size, entries in sizes.items():
            ratio = spread([worth(e) / worth(f)
                            for e, f in zip(entries, first)])
            row = {"kind": kind, "size": size, "ratio": ratio,
                   **{role: spread([e[role] for e in entries])
                      for role in entries[0]}}
            rows.append(row)
            a, flat = row["all"], ratio["median"] <= FLAT
            print(f"  {KINDS[kind]:38}{size:9}{a['median']:9.2f}"
                  f"{a['least']:9.2f}{a['most']:9.2f}{ratio['median']:7.2f}"
                  f"{ratio['least']:7.2f}{ratio['most']:7.2f}"
                  f"{row['floor']['median']:8.2f}{'' if flat else '  GROWS'}",
                  flush=True)
    return {"name": name, "title": title, "rows": rows}


def main():
    ap = argparse.ArgumentParser(usage=__doc__)
    ap.add_argument("--scale", action="store_true")
    ap.add_argument("--quick", action="store_true", help="the ends only")
    ap.add_argument("--only", action="append", default=[], metavar="WORD",
                    help="lists, rules, idle, names, sandboxes, threads")
    ap.add_argument("--rounds", type=int)
    ap.add_argument("--seconds", type=float, default=0.15)
    ap.add_argument("--json", metavar="FILE")
    ap.add_argument("--svg", metavar="DIR")
    options = ap.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 5)
    result = {"machine": duel.facts(), "tables": []}
    print(", ".join(f"{k} {v}" for k, v in result["machine"].items()))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with ScaleWorld() as world:
        made = begin([f(world) for f in (FloorConnect, FloorTls, FloorDns)])
        floors = dict(zip(KINDS, [*made, made[-1]]))
        for row in SERIES:
            if duel.wanted(options.only, row[0]):
                duel.note(f"{row[0]} ...")
                result["tables"].append(series(world, row, floors, options))
        for name, what in ("names", asked), ("sandboxes", boxes):
            if duel.wanted(options.only, name):
                duel.note(f"{name} ...")
                result["tables"].append(what(world, floors, options))
        if duel.wanted(options.only, "threads"):
            duel.note("threads ...")
            result["tables"].append(threads(world, options))
    if options.json:
        with open(options.json, "w") as f:
            json.dump(result, f, indent=1)
    if options.svg:
        plot(result, options.svg, FLAT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
