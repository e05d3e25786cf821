# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the gate, the ledger and the warden, at random moments under load:
whatever reached the server has its record."""
import concurrent.futures
import os
import random
import signal
import subprocess
import threading
import time

from harness import check, descendants
from witness import CLIENT, Witness, policy, read_log, unrecorded

AT_ONCE = 4
ROLES = ("gate", "ledger", "warden")

LOAD = CLIENT + """
TAG = sys.argv[1]
def work(door):
    while True:
        try: door()
        except OSError: time.sleep(0.01)
for door in DOORS * 2: threading.Thread(target=work, args=(door,), daemon=True).start()
print("go", flush=True)
sys.stdin.read()
os._exit(7)
"""


def rounds(case):
    return 200 if case.who == "root" and not case.sanitized else 60


def gone(pids):
    """Waits until none of them is there any more; says which stayed."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        pids = [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
        if not pids:
            break
        time.sleep(0.01)
    return pids


class Kills:
    def __init__(self, case, witness):
        self.case, self.witness, self.args = case, witness, policy(case)
        self.starting = threading.Lock()
        self.arrived = 0

    def one(self, number):
        role = ROLES[number % len(ROLES)]
        chance = random.Random(number)
        tag = f"round{number}"
        with self.starting:  # the harness counts the logs
            process, log = self.case.start(
                "python3", "-c", LOAD, tag, allow=(), args=(*self.args, "--quiet"),
                stdin=subprocess.PIPE)
        try:
            line = process.stdout.readline()
            check(line == "go\n", (line, role))
            all_of_it = [process.pid, *descendants(process.pid)]
            victim = (process.pid if role == "warden"
                      else self.case.child(process, role))
            time.sleep(chance.uniform(0, 0.4))
            os.kill(victim, signal.SIGKILL)
            time.sleep(chance.uniform(0, 0.3))
            _, err = process.communicate(timeout=40)
        finally:
            process.kill()
        stayed = gone(all_of_it)
        check(not stayed, (number, role, stayed))
        self.judge(number, role, process.returncode, log, tag, err)

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


def test_kills(case):
    with Witness(case, "kills") as witness:
        kills = Kills(case, witness)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for done in [pool.submit(kills.one, n) for n in range(rounds(case))]:
                done.result()
        check(kills.arrived > 20 * rounds(case), kills.arrived)
