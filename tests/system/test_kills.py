# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the gate, the ledger and the warden, at random moments under load:
whatever reached the server has its record, what is left of the log verifies up
to its last checkpoint, and the receipt, or that there is none, says what
happened."""
import base64
import concurrent.futures
import json
import os
import random
import select
import signal
import subprocess
import threading
import time

from harness import check, descendants
from test_hostlog import World
from witness import CLIENT, Witness, policy, read_log, unrecorded

AT_ONCE = 4
ROLES = ("gate", "ledger", "warden")

# Says so when as many have been served as it is told.
LOAD = CLIENT + """
TAG = sys.argv[1]
served = threading.Semaphore(0)
def work(door):
    while True:
        try:
            if door() == b"ok\\n": served.release()
        except OSError: time.sleep(0.01)
for door in DOORS * 2: threading.Thread(target=work, args=(door,), daemon=True).start()
for i in range(int(sys.argv[2])): served.acquire()
print("go", flush=True)
sys.stdin.read()
os._exit(7)
"""


def rounds(case):
    return 200 if case.who == "root" and not case.sanitized else 60


def gone(pids):
    """Waits until none of them is there any more; says which stayed."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        pids = [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
        if not pids:
            break
        time.sleep(0.01)
    return pids


class Kills:
    def __init__(self, case, witness, world):
        self.case, self.witness, self.world = case, witness, world
        self.args = (*policy(case), *world.args, "--quiet")
        self.starting = threading.Lock()
        self.arrived = self.covered = 0
        self.role = {}  # that was killed, by the session's directory

    def one(self, number):
        role = ROLES[number % len(ROLES)]
        chance = random.Random(number)
        tag = f"round{number}"
        with self.starting:  # the harness counts the logs
            process, log = self.case.start(
                "python3", "-c", LOAD, tag, str(60 if number % 4 else 0),
                allow=(), args=self.args,
                stdin=subprocess.PIPE)
        self.role[log] = role
        try:
            line = process.stdout.readline()
            check(line == "go\n", (line, role))
            all_of_it = [process.pid, *descendants(process.pid)]
            victim = (process.pid if role == "warden"
                      else self.case.child(process, role))
            time.sleep(chance.uniform(0, 0.4))
            os.kill(victim, signal.SIGKILL)
            time.sleep(chance.uniform(0, 0.3))
            _, err = process.communicate(timeout=120)
        finally:
            process.kill()
        stayed = gone(all_of_it)
        check(not stayed, (number, role, stayed))
        self.judge(number, role, process.returncode, log, tag, err)
        self.verify(number, role, log)

    def judge(self, number, role, status, log, tag, err):
        """What is left of the session says what happened, and all of it."""
        about = f"round {number}, {role}: status {status}, {log}\n{err}"
        records = read_log(log + "/audit.jsonl", torn=role != "gate")
        ids = self.witness.ids(tag)
        missing = unrecorded(ids, records)
        check(not missing, f"{about}{len(missing)} of {len(ids)}: {missing[:5]}")
        about += f"{[(r['unmapped']['event'], r['message']) for r in records[-3:]]}"
        numbers = [r["metadata"]["sequence"] for r in records]
        check(numbers == list(range(len(records))), about)
        kinds = [r["unmapped"]["event"] for r in records]
        check(kinds[0] == "session_open", about)
        closed = kinds[-1] == "session_close"
        if role == "gate":
            check(status == 7 and closed and "finding" in kinds, about)
        elif role == "ledger":
            check(status in (7, 125) and not closed, about)
            check("ledger died" in err or "log may be incomplete" in err, about)
        else:  # whose children die with it
            check(status == -signal.SIGKILL and not closed, about)
        self.arrived += len(ids)

    def verify(self, number, role, log):
        """Nothing that a kill leaves is taken for tampering, and none is taken
        for a session that ended in order."""
        done = subprocess.run(
            [self.case.binary, "verify", "--json", "--key", self.world.vkey, log],
            text=True, capture_output=True, timeout=60)
        check(done.returncode in (0, 2), (number, role, log, done))
        told = json.loads(done.stdout)
        about = (number, role, log, told)
        check(told["problems"] == [] and told["key_known"], about)
        signed = last_signed(log)
        check(told["covered"] == signed <= told["records"], (signed, about))
        receipt = os.path.exists(log + "/receipt.dsse.json")
        check(told["has_receipt"] == receipt, about)
        if role == "gate":
            check(told["verdict"] == "holds" and told["closed"] and receipt
                  and signed == told["records"] and not told["but"], about)
            findings = receipt_of(log)["findings"]
            check(any("gate" in f["text"] for f in findings), findings)
        else:
            check(told["verdict"] == "incomplete" and not told["closed"]
                  and not receipt, about)
            check("there is no receipt" in told["but"] and
                  any("not closed" in why for why in told["but"]), about)
        self.covered += signed


def last_signed(log):
    """The size that the last whole checkpoint says."""
    with open(log + "/checkpoints", encoding="utf8") as f:
        rows = f.read().split("\n")
    whole = (len(rows) - 1) // 5 * 5
    return int(rows[whole - 4]) if whole else 0


def receipt_of(log):
    with open(log + "/receipt.dsse.json", encoding="utf8") as f:
        payload = base64.b64decode(json.load(f)["payload"])
    return json.loads(payload)["predicate"]


def check_host_log(kills):
    """It has each session, with its end if it had one, and no wound itself."""
    sessions, problems = kills.world.show()
    check(not problems, problems)
    want = {"gate": ["fine"], "ledger": ["not_ended"],
            # Its end may come to the ledger before its signal does.
            "warden": ["not_ended", "no_receipt"]}
    for log, role in kills.role.items():
        check(sessions.get(log) in want[role], (log, role, sessions.get(log)))


def test_kills(case):
    with Witness(case, "kills") as witness, World(case, "kills") as world:
        kills = Kills(case, witness, world)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for done in [pool.submit(kills.one, n) for n in range(rounds(case))]:
                done.result()
        check(kills.arrived > 20 * rounds(case), kills.arrived)
        check(kills.covered > 20 * rounds(case), kills.covered)
        check_host_log(kills)


def test_gate_at_the_end(case):
    """It dies unseen while the command ends: that is a finding, too."""
    for _ in range(6):
        process, log = case.start("sh", "-c", "echo go; read x", stdin=subprocess.PIPE)
        check(process.stdout.readline() == "go\n")
        gate, ledger = case.child(process, "gate"), case.child(process, "ledger")
        below = [os.pidfd_open(pid) for pid in descendants(process.pid) if pid != ledger]
        os.kill(process.pid, signal.SIGSTOP)
        os.kill(gate, signal.SIGKILL)
        process.stdin.close()
        for one in below:
            check(select.select([one], [], [], 60)[0], "it goes on")
            os.close(one)
        os.kill(process.pid, signal.SIGCONT)
        process.stdin = None
        _, err = process.communicate(timeout=120)
        check(process.returncode == 1, err)  # read(1) had nothing
        found = [f["text"] for f in receipt_of(log)["findings"]]
        check(len(found) == 1 and "the gate died" in found[0], found)
        check("the gate died" in err, err)


def kill_at_the_end(case, world, number, starting):
    """One session, killed while it ends; whether there is a receipt."""
    role = ROLES[number % len(ROLES)]
    with starting:
        process, log = case.start("sh", "-c", "echo go; read x", args=world.args,
                                  stdin=subprocess.PIPE)
    check(process.stdout.readline() == "go\n")
    victim = process.pid if role == "warden" else case.child(process, role)
    all_of_it = descendants(process.pid)
    pidfd = os.pidfd_open(victim)  # its pid may be another's soon
    process.stdin.close()
    time.sleep(random.Random(number).uniform(0, 0.05))
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.close(pidfd)
    process.stdin = None
    process.communicate(timeout=120)
    check(not gone(all_of_it), (number, role))
    done = subprocess.run([case.binary, "verify", "--json", "--key", world.vkey, log],
                          text=True, capture_output=True, timeout=60)
    told = json.loads(done.stdout)
    receipt = os.path.exists(log + "/receipt.dsse.json")
    check(done.returncode == (0 if receipt else 2), (number, role, log, told))
    check(not told["problems"] and told["has_receipt"] == receipt
          and told["covered"] == last_signed(log), (number, role, log, told))
    return role, receipt


def test_kills_at_the_end(case):
    """While the last records, the receipt and its name are written: either it is
    there and holds, or there is none, and nothing is wrong."""
    starting = threading.Lock()
    with World(case, "end") as world, \
            concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        all_of_them = [pool.submit(kill_at_the_end, case, world, number, starting)
                       for number in range(90)]
        seen = {done.result() for done in all_of_them}
        _, problems = world.show()
        check(not problems, problems)
    check(("gate", True) in seen and ("ledger", False) in seen and
          ("warden", False) in seen, seen)
