# SPDX-License-Identifier: Apache-2.0
"""tests/cost/run [--update] [--only SCENARIOS]... [--build DIR]

How many instructions an operation takes, counted by valgrind's callgrind:
a verdict, a ClientHello, an answer to a question, a record, a connection. Of
each there are three numbers: instructions in our own code, those with all
libraries, and calls of the kernel. What is more than 10 % above baseline.json
fails, with the functions that grew; what is as much below asks for a new
baseline, which --update writes.

A count does not depend on how fast or busy the machine is. It does on
  the compiler: another one than the baseline's, and nothing is compared (77);
  libraries: of others, only our own code and calls are compared;
  the processor: they take no paths here that only some processors have.
"""
import argparse
import glob
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from callgrind import Profile  # noqa: E402

BASELINE = HERE + "/baseline.json"
PROGRAM = "cost_scenarios"
KINDS = "own", "all", "system calls"
ALLOWED = 0.10
SKIPPED = 77
SHARE_KEPT = 0.005  # of our own code's: smaller functions are not in the baseline
SHOWN = 8
TIMEOUT_S = 240
FEATURES = ("AVX512F AVX512VL AVX512BW AVX2 AVX AVX_Fast_Unaligned_Load BMI1 BMI2 "
            "ERMS FSRM LZCNT MOVBE SSSE3 SSE4_1 SSE4_2 XSAVE XSAVEC RTM").split()
ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C",
    "LD_BIND_NOW": "1",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=" + ",".join("-" + f for f in FEATURES),
    "OPENSSL_ia32cap": "0:0",
}
# Alone on loopback, where the leases are local too.
INSIDE = ("ip link set lo up && ip route add local 198.18.0.0/16 dev lo && "
          'exec "$@"')


def fail(text):
    sys.exit("cost: " + text)


def count(program, only, folder):
    """[(scenario, operations)] and the profiles, by scenario."""
    own = ["unshare", "--net"] + ([] if os.getuid() == 0 else ["--map-root-user"])
    run = subprocess.run(
        [*own, "sh", "-c", INSIDE, "sh", "valgrind", "--tool=callgrind",
         "--quiet", "--instr-atstart=no", "--collect-atstart=no",
         "--dump-instr=yes", "--compress-pos=no", "--compress-strings=no",
         f"--callgrind-out-file={folder}/out.%p", program, folder, *only], env=ENVIRONMENT, text=True,
        stdout=subprocess.PIPE, timeout=TIMEOUT_S)
    if run.returncode:
        fail(f"the scenarios ended with status {run.returncode}")
    codes = {}
    profiles = [Profile(p, codes) for p in glob.glob(folder + "/out.*")]
    profiles = {p.name: p for p in profiles if p.name}
    ops = [(line.split()[0], int(line.split()[1]))
           for line in run.stdout.splitlines()]
    if not ops or {name for name, _ in ops} != profiles.keys():
        fail("callgrind has not counted all scenarios")
    return ops, profiles


def notes_of(path, pattern, *options):
    """The first match in what readelf says."""
    said = subprocess.run(["readelf", *options, path], text=True,
                          errors="replace", capture_output=True, check=True)
    found = re.search(pattern, said.stdout)
    return found.group(1).strip() if found else "unknown"


def made_by(build):
    """Compiler and flags of what was counted, as the compiler wrote them down."""
    said = notes_of(build + "/policy/CMakeFiles/sp_policy.dir/decide.c.o",
                    r"DW_AT_producer *: (?:\(.*?\): )?(.*)",
                    "--debug-dump=info", "--dwarf-depth=1")
    words = said.split(" ")
    return {"compiler": f"{' '.join(words[:3])} for {platform.machine()}",
            "flags": " ".join(w for w in words[3:] if w.startswith("-"))}


def libraries(profiles):
    paths = set().union(*(p.objects() for p in profiles.values()))
    return {os.path.basename(p): notes_of(p, r"Build ID: (\w+)", "--notes")
            for p in sorted(paths)
            if os.path.basename(p) != PROGRAM and os.path.exists(p)}


def measure(build, only):
    if not shutil.which("valgrind", path=ENVIRONMENT["PATH"]):
        fail("there is no valgrind: deploy/setup installs it")
    with tempfile.TemporaryDirectory(prefix="sallyport-cost-") as folder:
        ops, profiles = count(f"{build}/tests/{PROGRAM}", only, folder)
        scenarios = {}
        for name, n in ops:
            costs, functions, calls = profiles[name].cost(PROGRAM, n)
            if not costs["own"]:
                fail(f"{name}: nothing was counted")
            scenarios[name] = {**{k: round(v, 3) for k, v in costs.items()},
                               "functions": functions, "calls": calls}
        return {**made_by(build), "libraries": libraries(profiles),
                "scenarios": scenarios}


def grown(now, before):
    """What the functions take more than before, and which calls are more."""
    for f, n in now["calls"].items():
        if n > 1.01 * before["calls"].get(f, 0):
            print(f"    {n - before['calls'].get(f, 0):+12.3f}  {f}()")
    old = before["functions"]
    more = {f: n - old.get(f, 0) for f, n in now["functions"].items()}
    for f, n in sorted(more.items(), key=lambda x: -x[1])[:SHOWN]:
        if n >= SHARE_KEPT * before["own"]:
            print(f"    {n:+12.1f}  {f}, " +
                  (f"{old[f]:.1f} before" if f in old else "new or small before"))


def compare(name, now, before, kinds):
    """Prints a line a number; (failed, there is less)."""
    failed = less = False
    for kind in kinds:
        ratio = now[kind] / before[kind] if before[kind] else \
            1.0 if not now[kind] else float("inf")
        bad, low = ratio > 1 + ALLOWED, ratio < 1 - ALLOWED
        failed, less = failed or bad, less or low
        print(f"{name + ', ' + kind:36}{before[kind]:12.2f}{now[kind]:12.2f}"
              f"{100 * (ratio - 1):+8.1f} %{'  GREW' * bad}{'  less' * low}")
    if failed:
        grown(now, before)
    return failed, less


def tell_differences(now, before):
    """The kinds of numbers that can be compared."""
    new, old = now["flags"].split(), before["flags"].split()
    for what, words in ("more", [w for w in new if w not in old]), \
            ("fewer", [w for w in old if w not in new]):
        if words:
            print(f"{what} flags than the baseline's: {' '.join(words)}")
    others = [f for f, build_id in now["libraries"].items()
              if before["libraries"].get(f, build_id) != build_id]
    if not others:
        return KINDS
    print("libraries are compared only in their calls of the kernel, as these "
          "are not the baseline's: " + ", ".join(others))
    return [kind for kind in KINDS if kind != "all"]


def judge(now, only):
    with open(BASELINE) as f:
        before = json.load(f)
    if now["compiler"] != before["compiler"]:
        for name, costs in now["scenarios"].items():
            print(f"{name}: " + ", ".join(f"{k} {costs[k]}" for k in KINDS))
        print(f"NOT COMPARED: this is {now['compiler']}, the baseline of "
              f"{before['compiler']}")
        return SKIPPED
    kinds = tell_differences(now, before)
    print(f"{'a scenario, an operation':36}{'baseline':>12}{'now':>12}")
    results, failed = [], []
    for name, costs in now["scenarios"].items():
        if name not in before["scenarios"]:
            failed.append(f"{name} (not in the baseline)")
            continue
        results.append((name, compare(name, costs, before["scenarios"][name],
                                      kinds)))
    failed += [name for name, (bad, _) in results if bad]
    if not only:
        failed += [f"{name} (it was not run)" for name in before["scenarios"]
                   if name not in now["scenarios"]]
    if any(less for _, (_, less) in results):
        print("less than the baseline by more than 10 %: please renew it, with "
              "tests/cost/run --update")
    if failed:
        print(f"COSTS MORE than {ALLOWED:.0%} above the baseline: "
              f"{', '.join(failed)}. If it has to: tests/cost/run --update")
    return 1 if failed else 0


def update(now):
    for costs in now["scenarios"].values():
        costs["functions"] = {
            f: round(n, 1) for f, n in sorted(costs["functions"].items())
            if n >= SHARE_KEPT * costs["own"]}
        costs["calls"] = {f: round(n, 3)
                          for f, n in sorted(costs["calls"].items())}
    with open(BASELINE, "w") as f:
        json.dump(now, f, indent=1)
        f.write("\n")
    print(f"{BASELINE}: {len(now['scenarios'])} scenarios")


def main():
    ap = argparse.ArgumentParser(usage=__doc__)
    ap.add_argument("--update", action="store_true")
    ap.add_argument("--only", action="append", default=[],
                    choices="policy hello dns record relay".split())
    ap.add_argument("--build", default=os.path.dirname(
        os.path.dirname(HERE)) + "/build")
    options = ap.parse_args()
    if options.update and options.only:
        ap.error("a baseline is of all scenarios")
    now = measure(os.path.abspath(options.build), options.only)
    if not options.update:
        return judge(now, options.only)
    update(now)
    return 0


if __name__ == "__main__":
    sys.exit(main())
