# SPDX-License-Identifier: Apache-2.0
"""Reads what callgrind counted: one file a scenario (its format is in valgrind's
manual, "Callgrind Format Specification"), the cost of each function by itself.
The kernel's calls that it can count, too, are those of all that runs, not only
of what is measured; so they are told by their instruction (of x86-64)."""
import functools
import os
import re
import struct

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRIGGER = "desc: Trigger: Client Request: "
SYSCALL = b"\x0f\x05"
# valgrind has no vDSO: what is a call there is none otherwise.
CLOCKS = re.compile(r"clock_gettime|gettimeofday|\btime(_syscall)?\b|getcpu")
# How long malloc() looks for room depends on what was there before, and so on
# when which timer fired; that it was called shows in its other functions.
SEARCHES = re.compile(r"_int_malloc|unlink_chunk|malloc_consolidate|alloc_perturb")


@functools.lru_cache(maxsize=None)
def in_tree(path):
    """@path below the top, wherever that was when it was compiled."""
    parts = os.path.normpath(path).split("/")
    return next((p for p in ("/".join(parts[i:]) for i in range(len(parts)))
                 if os.path.isfile(f"{TOP}/{p}")), parts[-1])


class Function:
    def __init__(self):
        self.instructions = self.calls = 0


class Code:
    """The bytes of an object, by the addresses that it was linked for."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        at, = struct.unpack_from("<Q", self.data, 32)
        size, count = struct.unpack_from("<HH", self.data, 54)
        headers = (struct.unpack_from("<IIQQQQ", self.data, at + i * size)
                   for i in range(count))
        self.parts = [(address, offset, length) for kind, _, offset, address, _,
                      length in headers if kind == 1]

    def calls_kernel(self, address):
        for first, offset, length in self.parts:
            if first <= address < first + length:
                at = offset + address - first
                return self.data[at:at + 2] == SYSCALL
        return False


class Profile:
    """Of @functions, by (object, file, name)."""

    def __init__(self, path, codes):
        self.name, self.functions, self.codes = None, {}, codes
        with open(path, encoding="utf-8", errors="replace") as f:
            self.read(f)

    def read(self, lines):
        obj = file = function = None
        of_callee = False
        for line in lines:
            if line.startswith("0x"):
                if not of_callee:
                    self.add(obj, function, line.split())
                of_callee = False
                continue
            key, _, value = line.rstrip("\n").partition("=")
            if key == "fn":
                function = self.functions.setdefault((obj, file, value),
                                                     Function())
            elif key == "fl":
                file = value
            elif key == "ob":
                obj = value
            elif key == "calls":
                of_callee = True
            elif line.startswith(TRIGGER):
                self.name = line[len(TRIGGER):].strip()

    def add(self, obj, function, words):
        """An address, a line, and how often it ran."""
        function.instructions += int(words[2])
        if os.path.isfile(obj or ""):
            if obj not in self.codes:
                self.codes[obj] = Code(obj)
            if self.codes[obj].calls_kernel(int(words[0], 16)):
                function.calls += int(words[2])

    def cost(self, own, ops):
        """Of an operation: instructions in the program @own, in all, calls of
        the kernel; and instructions by function, calls by theirs. Who measures
        is left out."""
        mine = every = 0
        by, calls = {}, {}
        for (obj, file, name), f in self.functions.items():
            ours = os.path.basename(obj or "") == own
            place = in_tree(file or "") if ours else os.path.basename(obj or "?")
            if place.startswith("tests/") or SEARCHES.match(name):
                continue
            every += f.instructions
            mine += f.instructions * ours
            where = f"{place}:{name}"
            by[where] = by.get(where, 0) + f.instructions / ops
            if f.calls and not CLOCKS.search(name):
                name = name.partition("@")[0]
                calls[name] = calls.get(name, 0) + f.calls / ops
        return {"own": mine / ops, "all": every / ops,
                "system calls": sum(calls.values())}, by, calls

    def objects(self):
        return {obj for (obj, _, _), f in self.functions.items()
                if obj and f.instructions}
