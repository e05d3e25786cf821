# SPDX-License-Identifier: Apache-2.0
"""What it costs to run a command that does nothing, from its start to the last
sign of it: `sallyport run -- true` with all its bounds, log and receipt, with
the host's files, and in a sandbox of a daemon, made then or before; beside `docker run --rm`, `bwrap
--unshare-all` and the least that there is, a bare namespace.

They take turns, as whoever else uses the machine slows all of them: a ratio is
the median of those of the rounds. CPU is that of the command and all that it
waited for, which a daemon's part is not. Times are printed, never judged; that
each has said hello before is. Needs root, and dockerd unless --no-docker;
nothing is pulled and nothing leaves (tests/system/lab.py).

    bench_start.py [--rounds N] [--seconds S] [--no-docker] [--json]
                   [--beside BINARY]

--beside adds another build of sallyport, to compare two of them in one run.
"""
import argparse
import contextlib
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
from run_lab import CONFIG, world  # noqa: E402

OURS, FLOOR = "sallyport run", "unshare -Urn"
DAEMON, DOCKER = OURS + ", a daemon's", "docker run --rm"
SPARE = OURS + ", a daemon's spare one"
BESIDE = ", the other"
# Whose work is somebody else's process.
ELSEWHERE = (DAEMON, SPARE, DOCKER)
SPARES = CONFIG + "limits: { spare_per_user: 4 }\n"


def rows(case, engine, daemon, spare, beside):
    """Name: arguments in front of a command, and its environment."""
    log = case.lab.dir + "/bench-logs"
    os.makedirs(log, 0o700, exist_ok=True)
    run = ["run", "--no-daemon", "--quiet", "--log", log]
    found = {}
    for binary, other in (case.binary, ""), (beside, BESIDE):
        if binary:
            found[OURS + other] = [binary, *run, "--"]
            found[OURS + " --fs host" + other] = [binary, *run, "--fs", "host",
                                                  "--"]
    found[DAEMON] = daemon.argv("run", "--quiet", "--", drop=[])
    found[SPARE] = found[DAEMON]
    if engine:
        found[DOCKER] = engine.argv("run", "--rm", "box")
    found["bwrap --unshare-all"] = [
        "bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev",
        "--proc", "/proc", "--tmpfs", "/tmp", "--"]
    found[FLOOR] = ["unshare", "-Urn"]
    return {name: (argv, (spare if name == SPARE else daemon).env())
            for name, argv in found.items()}


def greet(argv, case, env):
    done = subprocess.run([*argv, "echo", "hello"], cwd=case.work, env=env,
                          text=True, stdin=subprocess.DEVNULL,
                          capture_output=True)
    if done.returncode or done.stdout != "hello\n":
        raise SystemExit(f"{argv}: {done.returncode} {done.stdout}{done.stderr}")


def once(argv, case, env):
    """Seconds that passed, and of CPU."""
    began = time.perf_counter()
    process = subprocess.Popen([*argv, "true"], cwd=case.work, env=env,
                               stdin=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{argv}: {process.returncode}")
    return took, used.ru_utime + used.ru_stime


def measure(case, rows, rounds, seconds):
    """For each, (seconds, of CPU) of each round. Who says hello is warm."""
    for argv, env in rows.values():
        greet(argv, case, env)
    took = {name: [] for name in rows}
    end = time.monotonic() + seconds
    for i in range(rounds):
        names = list(rows)
        at = i % len(names)
        for name in names[at:] + names[:at]:
            argv, env = rows[name]
            took[name].append(once(argv, case, env))
            # What a daemon still does is no part of the next one's.
            if name in (DAEMON, SPARE):
                time.sleep(0.4)
        if time.monotonic() > end:
            break
    return took


def ratio(took, name, other):
    return round(statistics.median(
        mine[0] / its[0] for mine, its in zip(took[name], took[other])), 2)


def summary(took):
    found = []
    for name, both in took.items():
        ms = sorted(1000 * wall for wall, _ in both)
        cpu = statistics.median(1000 * used for _, used in both)
        found.append({"what": name, "rounds": len(ms),
                      "min_ms": round(ms[0], 1),
                      "p50_ms": round(statistics.median(ms), 1),
                      "p90_ms": round(ms[min(len(ms) - 1, len(ms) * 9 // 10)], 1),
                      "cpu_ms": None if name in ELSEWHERE else round(cpu, 1),
                      "of_ours": ratio(took, name, OURS),
                      "of_floor": ratio(took, name, FLOOR)})
    return found


def show(found):
    wide = max(len(r["what"]) for r in found)
    print(f"{'':{wide}}{'min':>9}{'p50':>9}{'p90':>9}{'CPU':>9}   of ours"
          f"   of {FLOOR}")
    for r in found:
        cpu = "-" if r["cpu_ms"] is None else f"{r['cpu_ms']:.1f}"
        print(f"{r['what']:{wide}}{r['min_ms']:9.1f}{r['p50_ms']:9.1f}"
              f"{r['p90_ms']:9.1f}{cpu:>9}{r['of_ours']:10.2f}"
              f"{r['of_floor']:10.1f}")
    print(f"ms, of {found[0]['rounds']} rounds; {os.cpu_count()} processors, "
          f"load {os.getloadavg()[0]:.1f}")


def asked():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--no-docker", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--beside")
    return parser.parse_args()


def main():
    args = asked()
    lacks = None if args.no_docker else missing()
    if lacks:
        sys.exit(f"no {lacks} here: deploy/setup installs it, or --no-docker")
    with contextlib.ExitStack() as stack:
        lab = stack.enter_context(DockerLab())
        case = Case(lab, "root", os.environ.get(
            "SALLYPORT_BINARY", os.path.dirname(os.path.dirname(HERE)) +
            "/build/sallyport"))
        engine = None
        if not args.no_docker:
            engine = Engine(lab).start()
            engine.image()
        daemon = stack.enter_context(world(case))
        spare = stack.enter_context(world(case, SPARES))
        found = summary(measure(
            case, rows(case, engine, daemon, spare, args.beside), args.rounds,
            args.seconds))
    if args.json:
        print(json.dumps({"cpus": os.cpu_count(), "kernel": os.uname().release,
                          "load": os.getloadavg()[0], "rows": found}))
    else:
        show(found)
    return 0


if __name__ == "__main__":
    # What an engine leaves running ends with a pid namespace.
    if os.getpid() != 1 and os.getppid() != 1:
        os.execvp("unshare", ["unshare", "--pid", "--fork", "--mount-proc",
                              "--kill-child", "sh", "-c", '"$@"; exit $?', "sh",
                              sys.executable, *sys.argv])
    sys.exit(main())
