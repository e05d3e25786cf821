# SPDX-License-Identifier: Apache-2.0
"""What faulty.c takes its orders from, and a program that runs under it."""
import mmap
import os
import shutil
import struct
import subprocess

OFF, ONE, ON = range(3)
SITES, FRAMES = 16384, 40
MODE, FIRED, SEEN, KNOWN, LIVE, ONLY, HIT, DEPTH, EVERY, WHICH, ROLE = \
    0, 4, 8, 12, 16, 24, 32, 40, 44, 48, 56
FRAME = ROLE + 16
SITE = FRAME + 8 * FRAMES
SIZE = SITE + 8 * SITES


class Faulty:
    """A copy of sallyport_faulty, whose processes of one role obey."""

    def __init__(self, case, role):
        self.role = role
        build = os.environ["SALLYPORT_FAULTY"]
        case.count += 1
        where = f"{case.lab.dir}/faulty-{case.count}"
        os.mkdir(where, 0o755)
        self.source = build
        self.binary = shutil.copy(build, where + "/sallyport")
        os.chmod(self.binary, 0o755)
        self.file = open(self.binary + ".faults", "w+b")
        self.file.truncate(SIZE)
        os.chmod(self.file.name, 0o666)
        self.map = mmap.mmap(self.file.fileno(), SIZE)
        self.map[ROLE:ROLE + len(role)] = role.encode()

    def _get(self, kind, at):
        return struct.unpack_from(kind, self.map, at)[0]

    def _set(self, kind, at, value):
        struct.pack_into(kind, self.map, at, value)

    def arm(self, mode, only=0):
        """From now on: the next allocation from a new site (from @only) fails."""
        self._set("=Q", ONLY, only)
        self._set("=I", FIRED, 0)
        self._set("=I", SEEN, 0)
        self._set("=I", MODE, mode)

    def sample(self, every, which):
        """Of the sites only one in @every, chosen by @which."""
        self._set("=I", EVERY, every)
        self._set("=I", WHICH, which % every if every else 0)

    def rest(self):
        """No more failures. Returns the site that failed, or 0."""
        self._set("=I", MODE, OFF)
        return self._get("=Q", HIT) if self._get("=I", FIRED) else 0

    @property
    def hit(self):
        return self._get("=I", FIRED)

    @property
    def live(self):
        return self._get("=q", LIVE)

    @property
    def seen(self):
        return self._get("=I", SEEN)

    @property
    def known(self):
        return self._get("=I", KNOWN)

    def forget(self):
        """All sites are new ones again."""
        self.map[SITE:SITE + 8 * SITES] = bytes(8 * SITES)
        self._set("=I", KNOWN, 0)

    def where(self):
        """How the allocation that failed last came about, innermost first."""
        depth = self._get("=I", DEPTH)
        at = struct.unpack_from(f"={depth}Q", self.map, FRAME)
        lines = subprocess.run(
            ["addr2line", "-sfpe", self.source,
             *[hex(a - 1) for a in at if a]], text=True,
            capture_output=True).stdout.splitlines()
        return " < ".join(line.split(" at ")[0] + ":" + line.rpartition(":")[2]
                          for line in lines[2:10])
