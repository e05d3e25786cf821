# SPDX-License-Identifier: Apache-2.0
"""The catalogue of threats as a suite: each table is a module rows_*.py.

    table.py TABLE root|user [--only ID...]   runs it and prints what came of it
    table.py check FILE      is docs/threats.md what the tables say, and all there?
    table.py docs            prints it
"""
import importlib
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from catalogue import CATALOGUE
from frame import REASONS, ROWS
from lab import Lab, TOP

TABLES = sorted(f[5:-3] for f in os.listdir(HERE)
                if f.startswith("rows_") and f.endswith(".py"))


def load(tables):
    for table in tables:
        importlib.import_module("rows_" + table)


def technique(row):
    return row.technique or CATALOGUE[row.id]


# -- the page ---------------------------------------------------------------

PAGE = """# Known ways out, and what becomes of them

Each row of this page is a test that CI runs (`tests/system/threats`), through every
door it can take: CONNECT and absolute-form HTTP, SOCKS5, direct connections judged by
SNI or Host, DNS. Each checks what the client is told, that the log has it once, and
that nothing was seen on the uplink. `tests/system/threats/table.py docs` writes this page.

| id | technique | what we do | test |
|---|---|---|---|
"""


def order(id):
    letter, number = id[0], id[1:]
    return "NHSTDLKRO".find(letter), int("".join(filter(str.isdigit, number))), id


def page():
    lines = {}
    for row in ROWS:
        lines.setdefault(row.id, []).append(
            f"| {row.id} | {technique(row)} | {row.does} | "
            f"`{row.file}.py` {row.fn.__name__} |")
    for id, why in REASONS.items():
        lines.setdefault(id, []).append(
            f"| {id} | {CATALOGUE.get(id, '')} | not tested here: {why} | |")
    return PAGE + "".join(line + "\n" for id in sorted(lines, key=order)
                          for line in lines[id])


def missing():
    known = {row.id for row in ROWS} | set(REASONS)
    return ([f"{id} has neither a test nor a reason" for id in CATALOGUE
             if id not in known]
            + [f"{row} is in no catalogue and says no technique" for row in ROWS
               if row.id not in CATALOGUE and not row.technique])


# -- running ----------------------------------------------------------------

class Result:
    def __init__(self, row):
        self.row, self.failed, self.seconds = row, [], 0

    def run(self, world):
        began = time.monotonic()
        for door in self.row.doors or (None,):
            try:
                world.begin(f"{self.row} {door or ''}".strip())
                self.row.fn(*((world, door) if door else (world,)))
                world.end()
            except Exception as e:  # every failure is reported
                self.failed.append(door or "failed")
                print(f"FAILED {self.row} {door or ''}: {type(e).__name__}")
                traceback.print_exc(file=sys.stdout)
        self.seconds = time.monotonic() - began

    def print(self):
        row = self.row
        word = "FAILED " + " ".join(self.failed) if self.failed else "ok"
        print(f"{row.id:5} {technique(row)[:60]:60} {row.fn.__name__[:28]:28} "
              f"{' '.join(row.doors or ('-',)):36} {self.seconds:6.2f}s {word}")


def run(table, who, only):
    from world import World
    load([table])
    rows = [r for r in ROWS if who in r.who and (not only or r.id in only)]
    results = [Result(r) for r in rows]
    binary = os.environ.get("SALLYPORT_BINARY", TOP + "/build/sallyport")
    with Lab() as lab:
        world = World(lab, who, binary)
        try:
            for early in {r.early for r in rows if r.early}:
                early(world)
            for result in results:
                result.run(world)
        finally:
            late = world.stop()
    for at, what in late:
        print(f"FAILED afterwards, {at}: {what}")
        for result in results:
            if at and at.split()[:2] == str(result.row).split():
                result.failed.append("log")
    print()
    for result in results:
        result.print()
    for id, why in REASONS.items():
        print(f"{id:5} {CATALOGUE.get(id, '')[:60]:60} not here: {why}")
    failed = sum(bool(r.failed) for r in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed or late or not results else 0


def main():
    if sys.argv[1:] == ["docs"]:
        load(TABLES)
        print(page(), end="")
        return 0
    if sys.argv[1] == "check":
        load(TABLES)
        said = missing()
        with open(sys.argv[2]) as f:
            if f.read() != page():
                said.append(f"{sys.argv[2]} is not what `table.py docs` prints")
        print("\n".join(said) or f"{len(ROWS)} tests, {len(REASONS)} reasons")
        return 1 if said else 0
    only = sys.argv[sys.argv.index("--only") + 1:] if "--only" in sys.argv else []
    return run(sys.argv[1], sys.argv[2], only)


if __name__ == "__main__":
    sys.exit(main())
