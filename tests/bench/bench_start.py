# SPDX-License-Identifier: Apache-2.0
"""What it costs to run a command that does nothing, from its start to the last
sign of it: `sallyport run -- echo hello` with all its bounds, log and receipt,
beside `docker run --rm`, `bwrap --unshare-all` and a bare namespace.

They take turns, as whoever else uses the machine slows all of them: a ratio is
the median of those of the rounds. Times are printed, never judged; that each
has said hello is. Needs root, and dockerd unless --no-docker; nothing is pulled
and nothing leaves (tests/system/lab.py).

    bench_start.py [--rounds N] [--seconds S] [--no-docker] [--json]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SYSTEM = os.path.join(os.path.dirname(HERE), "system")
sys.path[:0] = [SYSTEM, os.path.join(SYSTEM, "docker")]
from engine import DockerLab, Engine, missing  # noqa: E402
from harness import Case  # noqa: E402

HELLO = ["echo", "hello"]
OURS = "sallyport run"


def rows(case, engine):
    """Name and arguments; all of them say hello."""
    log = case.lab.dir + "/bench-logs"
    os.makedirs(log, 0o700, exist_ok=True)
    run = [case.binary, "run", "--no-daemon", "--quiet", "--log", log]
    found = {
        OURS: [*run, "--", *HELLO],
        OURS + " --fs host": [*run, "--fs", "host", "--", *HELLO],
    }
    if engine:
        found["docker run --rm"] = engine.argv("run", "--rm", "box", *HELLO)
    found["bwrap --unshare-all"] = [
        "bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev",
        "--proc", "/proc", "--tmpfs", "/tmp", "--", *HELLO]
    found["unshare -Urn"] = ["unshare", "-Urn", *HELLO]
    return found


def once(argv, case):
    """Seconds."""
    began = time.perf_counter()
    done = subprocess.run(argv, cwd=case.work, env=case.env(), text=True,
                          stdin=subprocess.DEVNULL, capture_output=True)
    took = time.perf_counter() - began
    if done.returncode or done.stdout != "hello\n":
        raise SystemExit(f"{argv}: {done.returncode} {done.stdout}{done.stderr}")
    return took


def measure(case, engine, rounds, seconds):
    """For each, the seconds of each round. The first one warms, and is not
    counted."""
    argv = rows(case, engine)
    took = {name: [] for name in argv}
    end = time.monotonic() + seconds
    for i in range(rounds + 1):
        names = list(argv)
        for name in names[i % len(names):] + names[:i % len(names)]:
            took[name].append(once(argv[name], case))
        if i and time.monotonic() > end:
            break
    return {name: all_of[1:] for name, all_of in took.items()}


def summary(took):
    ours = took[OURS]
    found = []
    for name, seconds in took.items():
        ms = sorted(1000 * s for s in seconds)
        ratio = statistics.median(s / o for s, o in zip(seconds, ours))
        found.append({"what": name, "rounds": len(ms),
                      "min_ms": round(ms[0], 1),
                      "p50_ms": round(statistics.median(ms), 1),
                      "p90_ms": round(ms[min(len(ms) - 1, len(ms) * 9 // 10)], 1),
                      "of_ours": round(ratio, 2)})
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--no-docker", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    lacks = None if args.no_docker else missing()
    if lacks:
        sys.exit(f"no {lacks} here: deploy/setup installs it, or --no-docker")
    with DockerLab() as lab:
        case = Case(lab, "root", os.environ.get(
            "SALLYPORT_BINARY", os.path.dirname(os.path.dirname(HERE)) +
            "/build/sallyport"))
        engine = None
        if not args.no_docker:
            engine = Engine(lab).start()
            engine.image()
        found = summary(measure(case, engine, args.rounds, args.seconds))
    if args.json:
        print(json.dumps({"cpus": os.cpu_count(), "kernel": os.uname().release,
                          "load": os.getloadavg()[0], "rows": found}))
        return 0
    print(f"{'':24}{'min':>9}{'p50':>9}{'p90':>9}   of {OURS}")
    for r in found:
        print(f"{r['what']:24}{r['min_ms']:9.1f}{r['p50_ms']:9.1f}"
              f"{r['p90_ms']:9.1f}{r['of_ours']:7.2f}")
    print(f"ms, of {found[0]['rounds']} rounds; {os.cpu_count()} processors, "
          f"load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    # What an engine leaves running ends with a pid namespace.
    if os.getpid() != 1 and os.getppid() != 1:
        os.execvp("unshare", ["unshare", "--pid", "--fork", "--mount-proc",
                              "--kill-child", "sh", "-c", '"$@"; exit $?', "sh",
                              sys.executable, *sys.argv])
    sys.exit(main())
