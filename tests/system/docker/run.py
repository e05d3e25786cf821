# SPDX-License-Identifier: Apache-2.0
"""Runs one suite with an engine of its own; `run` starts it."""
import os
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import engine  # noqa: E402


def main():
    suite, only = sys.argv[1], sys.argv[2:]
    lacks = engine.missing()
    if lacks:
        sys.exit(f"no {lacks} here: deploy/setup installs what tests need")
    if os.getppid() != 1:
        sys.exit("not in a pid namespace of my own: start me by `run`")
    module = __import__(suite)
    tests = [(name, fn) for name, fn in vars(module).items()
             if name.startswith("test_") and (not only or name in only)]
    failed = 0
    with engine.DockerLab() as lab:
        case = module.Case(lab)
        try:
            case.start()
            for name, fn in tests:
                began = time.monotonic()
                try:
                    fn(case)
                    word = "ok"
                except Exception:  # every failure is reported
                    failed += 1
                    word = "FAILED"
                    traceback.print_exc(file=sys.stdout)
                print(f"{word:7}{time.monotonic() - began:6.2f}s {name}",
                      flush=True)
            failed += not case.last(failed)
        finally:
            case.stop()
    print(f"{len(tests) + 1 - failed} passed, {failed} failed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
