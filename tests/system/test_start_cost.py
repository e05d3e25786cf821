# SPDX-License-Identifier: Apache-2.0
"""What a start costs. It is measured, so this suite runs alone."""
import os
import statistics
import subprocess
import time

from harness import check


def test_start_cost(case):
    """At most ten times a bare namespace. Landlock is one of them or two: what
    it knows of a file system is let go of when that is unmounted."""
    log = case.lab.dir + "/log-cost-" + case.who
    os.mkdir(log, 0o700)
    case.mine(log)
    run = [*case.drop(), case.binary, "run", "--quiet", "--log", log, "--", "true"]
    floor = [*case.drop(), "unshare", "-Urn", "true"]
    sanitized = b"__asan_init" in open(case.binary, "rb").read()
    # What the machine does beside it only ever adds: the best of three rounds.
    for _ in range(3):
        # What others left to be written (a build, a download) is not our cost.
        os.sync()
        ours, bare = [], []
        for _ in range(15):
            for argv, times in (run, ours), (floor, bare):
                began = time.perf_counter()
                subprocess.run(argv, check=True, cwd=case.work, env=case.env(),
                               stdin=subprocess.DEVNULL)
                times.append((time.perf_counter() - began) * 1000)
        ours_ms, bare_ms = statistics.median(ours), statistics.median(bare)
        print(f"        sallyport run -- true {ours_ms:.1f} ms, unshare -Urn "
              f"true {bare_ms:.1f} ms, ratio {ours_ms / bare_ms:.1f}")
        if sanitized or ours_ms <= 10 * bare_ms:
            return
    check(False, (ours_ms, bare_ms))
