# SPDX-License-Identifier: Apache-2.0
"""What a session leaves: its files, checkpoints, receipt."""
import base64
import glob
import json
import os
import signal
import subprocess
import time

from evidence_lab import (ASK, checkpoints, folder, leaf, lines, mode, parts,
                          policy, read, receipt, root, sallyport, signed, whole)
from harness import check, descendants, USER

FILES = ["audit.jsonl", "checkpoints", "receipt.dsse.json", "session.vkey"]


# --- files -------------------------------------------------------------------


def test_layout(case):
    run = case.run("true")
    check(run.status == 0, run)
    check(sorted(os.listdir(run.log)) == FILES, os.listdir(run.log))
    for name in FILES:
        check(mode(run.log, name) == (0o644 if name == "session.vkey" else 0o600), name)
        check(os.stat(f"{run.log}/{name}").st_uid == (USER if case.who == "user" else 0))
    check(f"receipt: {run.log}/receipt.dsse.json" in run.err, run)
    check(f"sallyport verify {run.log}\n" in run.err, run)
    check("boundary: held" in run.err, run)
    whole(case, run.log)


def test_facts(case):
    run = case.run("sh", "-c", "curl -s https://allowed.test/ >/dev/null; "
                   "curl -s http://evil.test/ >/dev/null; "
                   "for i in 1 2 3; do echo x | timeout 30 nc -u -w1 192.0.2.77 4000; done; "
                   "exit 3", args=("--json", "--name", "facts"))
    check(run.status == 3, run)
    records, said = whole(case, run.log)
    told = json.loads(run.err.splitlines()[-1])
    check(told["boundary"] == "held" and
          told["receipt"] == run.log + "/receipt.dsse.json", told)
    check(said["command"] == "sh" and said["sandbox"] == "facts", said)
    check(said["exit"] == {"status": 3, "by": "exit"}, said)
    check(said["boundary"] == {"kind": "netns", "held": "held", "files": "private", "separation":
                               "uid" if case.who == "root" else "namespace"}, said)
    check(said["ruleset"]["start"] == said["ruleset"]["end"], said)
    check(records[0]["unmapped"]["ruleset"] == "sha256:" + said["ruleset"]["start"])
    check(said["policy"]["digest"] in str(records[0]), records[0])
    check(said["session"] == records[0]["metadata"]["correlation_uid"], said)
    check(said["kernel"] == os.uname().release, said)
    check(not said["key"]["ephemeral"] and said["log"]["sign"] == "batch" and
          said["log"]["durability"] == "batch", said)
    check(said["verdicts"]["allowed"] >= 1 and
          said["verdicts"]["by_reason"]["not_in_policy"] >= 1, said)
    check(said["bytes"]["down"] > 0, said)
    packets = said["packets"]
    counted = sum(packets["counted"].values())
    check(packets["counted"]["refused"] >= 3, packets)
    check(packets["recorded"] + packets["unreported"] == counted, packets)


def test_how_it_ended(case):
    run = case.run("sleep", "60", args=("--timeout", "1s"))
    check(run.status == 124, run)
    check(whole(case, run.log)[1]["exit"] == {"status": 124, "by": "timeout"})
    run = case.run("sh", "-c", "kill -9 $$")
    check(whole(case, run.log)[1]["exit"] == {"status": 137, "by": "exit"})


def test_earlier(case):
    """The same directory again, also after a session that was killed."""
    first = case.run("true")
    kept = {name: read(first.log, name) for name in FILES}
    again = ["--log", first.log, "--", "true"]
    run = sallyport(case, "run", *again)
    check(run.returncode == 0 and "earlier-000001" in run.stderr, run)
    for name, data in kept.items():
        check(read(first.log, "earlier-000001", name) == data, name)
    check(mode(first.log, "earlier-000001") == 0o700)
    records, _ = whole(case, first.log)
    note = "\n".join(kept["checkpoints"].decode().split("\n")[-6:])
    check(records[0]["unmapped"]["earlier"] == {
        "records": kept["audit.jsonl"].count(b"\n"), "bytes": len(kept["audit.jsonl"]),
        "receipt": True, "checkpoint": note}, records[0])

    process = subprocess.Popen([*case.drop(), case.binary, "run", "--log", first.log,
                                "--", "sh", "-c", "echo go; sleep 600"], text=True,
                               cwd=case.work, env=case.env(), stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    check(process.stdout.readline() == "go\n")
    case.lab.wait(lambda: signed(first.log), "a checkpoint")
    below = descendants(process.pid)
    process.kill()
    process.wait()
    # They die with it, and write until then.
    case.lab.wait(lambda: not any(os.path.exists(f"/proc/{p}") for p in below), "the end")
    # What a crash of the machine might leave of a checkpoint.
    before = read(first.log, "checkpoints").decode()
    check(before, before)
    with open(first.log + "/checkpoints", "a", encoding="utf8") as f:
        f.write("vm/x\n17\nAA")
    run = sallyport(case, "run", *again)
    check(run.returncode == 0 and "earlier-000003" in run.stderr, run)
    records, _ = whole(case, first.log)
    earlier = records[0]["unmapped"]["earlier"]
    check(not earlier["receipt"], earlier)
    check(earlier["checkpoint"] == "\n".join(before.split("\n")[-6:]), earlier)
    log = read(first.log, "earlier-000003", "audit.jsonl")
    check(earlier["records"] == log.count(b"\n") and earlier["bytes"] == len(log), earlier)
    check(sorted(os.listdir(first.log)) ==
          sorted(FILES + [f"earlier-00000{i}" for i in (1, 2, 3)]))


def test_one_at_a_time(case):
    """A directory with a live session is not touched."""
    process, log = case.start("sh", "-c", "echo go; read x", stdin=subprocess.PIPE)
    check(process.stdout.readline() == "go\n")
    case.lab.wait(lambda: signed(log), "a checkpoint")  # the last file that comes
    before = sorted(os.listdir(log))
    run = sallyport(case, "run", "--log", log, "--", "true")
    check(run.returncode == 125 and "another session writes its log there" in run.stderr
          and "--log DIR" in run.stderr, run)
    check(sorted(os.listdir(log)) == before, os.listdir(log))
    process.communicate("\n", timeout=60)
    check(process.returncode == 0)
    whole(case, log)


def test_begin_together(case):
    """Of several that begin at once in one place, all logs are left."""
    log = folder(case, "together")
    all_ = [subprocess.Popen([*case.drop(), case.binary, "run", "--quiet", "--log", log,
                              "--", "true"], cwd=case.work, env=case.env(), text=True,
                             stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for _ in range(6)]
    said = [p.communicate(timeout=60)[1] for p in all_]
    good = sum(p.returncode == 0 for p in all_)
    check(good >= 1, said)
    for p, err in zip(all_, said):
        check(p.returncode == 0 or "another session" in err, err)
    places = [log, *glob.glob(log + "/earlier-*")]
    check(len(places) == good, (places, good))
    for place in places:
        whole(case, place)


# --- parts, checkpoints ------------------------------------------------------


def test_rotation(case):
    args = policy(case, "rotate", "log: { rotate: 64 KiB }\n"
                  "limits: { dns_per_second: 100000 }\n")
    run = case.run("python3", "-c", ASK % (700, 0.001), args=args)
    check(run.status == 0, run)
    found = parts(run.log)
    check(len(found) >= 4, found)
    check(os.path.basename(found[0]) == "audit.jsonl.000001", found)
    for path in found[:-1]:
        check(os.path.getsize(path) >= 64 << 10 and mode(path) == 0o600, path)
        check(read(path).endswith(b"\n"), path)
    records, said = whole(case, run.log)
    asked = [r for r in records if r["class_uid"] == 4003]
    check(len(asked) == 700, len(asked))
    # Each part ends where a checkpoint is.
    sizes = {int(note.split("\n")[1]) for note in checkpoints(run.log)}
    end = 0
    for path in found:
        end += read(path).count(b"\n")
        check(end in sizes, (path, end))
    # All of it is kept, and counted, by who comes next.
    check(sallyport(case, "run", "--log", run.log, "--", "true").returncode == 0)
    earlier = whole(case, run.log)[0][0]["unmapped"]["earlier"]
    check(earlier["records"] == len(records), earlier)
    check(len(parts(run.log + "/earlier-000001")) == len(found))


def test_rotation_by_age(case):
    args = policy(case, "age", "log: { rotate_after: 1s }\n")
    run = case.run("python3", "-c", ASK % (30, 0.1), args=args)
    records, _ = whole(case, run.log)
    # Who has the processors beside us makes it longer.
    lasted = (records[-1]["time"] - records[0]["time"]) / 1000
    check(3 <= len(parts(run.log)) <= 2 + max(lasted, 3), (lasted, parts(run.log)))


def test_rotation_in_the_way(case):
    """A file of that name is never replaced; the log goes on."""
    args = policy(case, "way", "log: { rotate: 64 KiB }\n"
                  "limits: { dns_per_second: 100000 }\n")
    process, log = case.start("sh", "-c", "echo go; read x; exec python3 -c '" +
                              (ASK % (300, 0.001)).replace("'", "\"") + "'", args=args,
                              stdin=subprocess.PIPE)
    check(process.stdout.readline() == "go\n")
    with open(log + "/audit.jsonl.000001", "w", encoding="utf8") as f:
        f.write("mine")
    _, err = process.communicate("x\n", timeout=60)
    check(process.returncode == 0 and "goes on in one file" in err, err)
    check(read(log, "audit.jsonl.000001") == b"mine")
    check(receipt(log)["predicate"]["log"]["parts"] == 1)
    os.unlink(log + "/audit.jsonl.000001")
    whole(case, log)


def test_sign_every(case):
    args = policy(case, "every", "log: { sign: every }\n")
    run = case.run("python3", "-c", ASK % (20, 0), args=args)
    records, said = whole(case, run.log)
    sizes = [int(note.split("\n")[1]) for note in checkpoints(run.log)]
    check(sizes == list(range(1, len(records) + 1)), sizes)
    check(said["log"]["sign"] == "every", said["log"])


def test_durability(case):
    """Each record is on the disk before its flow hears of it."""
    counts = {}
    for kind in "record", "batch":
        args = policy(case, kind, f"log: {{ durability: {kind} }}\n")
        trace = folder(case, "trace-" + kind) + "/calls"
        log = folder(case, "durable-" + kind)
        run = subprocess.run(
            [*case.drop(), "strace", "-f", "-qq", "-o", trace, "-e",
             "trace=fdatasync", case.binary, "run", "--quiet", "--log", log, *args, "--",
             "python3", "-c", ASK % (20, 0)], cwd=case.work, text=True,
            capture_output=True, stdin=subprocess.DEVNULL, timeout=120,
            env=dict(case.env(), ASAN_OPTIONS="detect_leaks=0"))
        check(run.returncode == 0, run)
        records, said = whole(case, log)
        check(said["log"]["durability"] == kind, said)
        counts[kind] = read(trace).count(b"fdatasync(")
        if kind == "record":
            check(counts[kind] >= len(records), (counts, len(records)))
    check(counts["batch"] < counts["record"], counts)


def test_serve(case):
    log = folder(case, "serve-log")
    process = subprocess.Popen(
        [*case.drop(), case.binary, "serve", "--allow", "allowed.test", "--log", log,
         "--proxy", "127.0.0.1:18090"], env=case.env(), text=True,
        stderr=subprocess.PIPE, cwd=case.work)
    line = process.stderr.readline()
    while "serving" not in line:
        check(line)
        line = process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    check(process.returncode == 0 and "boundary" not in err and "receipt: " in err, err)
    _, said = whole(case, log)
    check(said["boundary"]["kind"] == "external" and
          said["boundary"]["held"] == "unknown", said)
    check(said["exit"]["by"] == "signal" and said["exit"]["status"] == 0, said)
    check("command" not in said or not said["command"], said)


def test_ledger_killed(case):
    """No receipt, and what there is holds."""
    process, log = case.start("sh", "-c", "echo go; sleep 600")
    check(process.stdout.readline() == "go\n")
    case.lab.wait(lambda: signed(log), "a checkpoint")
    os.kill(case.child(process, "ledger"), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    check(process.returncode == 125 and "receipt: none" in err, err)
    check(sorted(os.listdir(log)) == ["audit.jsonl", "checkpoints", "session.vkey"],
          os.listdir(log))
    note = checkpoints(log)[-1].split("\n")
    leaves = [leaf(line) for line in lines(log)]
    check(base64.b64decode(note[2]) == root(leaves[:int(note[1])]), note)
    check(sallyport(case, "run", "--log", log, "--", "true").returncode == 0)
    check(not whole(case, log)[0][0]["unmapped"]["earlier"]["receipt"])


# --- keys --------------------------------------------------------------------


def test_reload_is_for_the_next(case):
    """Another `log:` section is no mistake, and changes nothing that runs."""
    path = f"{case.work}/reload-log.yaml"

    def write(text):
        with open(path, "w", encoding="utf8") as f:
            f.write("version: 1\n" + text)
        case.mine(path)
    write("log: { sign: batch }\n")
    process, log = case.start("sh", "-c", "echo go; read x; exit 0", allow=(),
                              args=("--policy", path), stdin=subprocess.PIPE)
    check(process.stdout.readline() == "go\n")
    write("log: { sign: every, rotate: 64 KiB }\n")
    run = sallyport(case, "reload", log)
    check(run.returncode == 0, run)
    process.communicate("\n", timeout=60)
    _, said = whole(case, log)
    check(said["log"]["sign"] == "batch" and len(said["policy"]["changes"]) == 1, said)
