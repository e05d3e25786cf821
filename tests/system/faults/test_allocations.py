# SPDX-License-Identifier: Apache-2.0
"""Each place where a flow allocates, failed once, and then once more together
with all that comes after it in the same flow: that flow is refused or ends,
nothing dies or leaks, nothing leaves without its record, and the next flow
works.

In CI the places that flows have in common are failed under the first of them,
and of the thousands of a reload or of a sandbox's start only some, which the
seed (SALLYPORT_SEED) picks; SALLYPORT_FAULTS=full fails each of them under each
kind of flow."""
import os
import time

from control_lab import Control, steady
from daemon_lab import left
from fault_lab import FLOWS, Session, verified
from faulty import Faulty, ON, ONE
from harness import check
from witness import read_log, unrecorded, Witness

FULL = os.environ.get("SALLYPORT_FAULTS") == "full"
SEED = int(os.environ.get("SALLYPORT_SEED", "6"))
MODES = {ONE: "one", ON: "all from it on"}


def fail_one(session, kind, mode):
    """One round: what came of the flow, or None if nothing new failed."""
    faulty = session.faulty
    while True:
        session.prepare(kind)
        faulty.arm(mode)
        # Of UDP no answer may be all there is; it is not waited for.
        got = session.flow("briefly" if kind == "dns" else kind)
        if faulty.rest():
            return got
        if got != "silent":  # a slow machine is no answer
            check(got == "ok", (kind, got))
            return None


def sweep(session, kind, mode):
    """Rounds of one kind of flow until none fails. Returns their outcomes."""
    outcomes = {}
    while (got := fail_one(session, kind, mode)) is not None:
        outcomes[got] = outcomes.get(got, 0) + 1
        after = "died"
        if session.alive():
            session.prepare(kind)
            after = session.flow(kind)
        if got == "hung" or after != "ok":
            raise AssertionError((kind, got, after, session.faulty.where()))
    return outcomes


def sweep_and_tell(session, kind, mode, every=0, seed=SEED):
    session.faulty.sample(0 if FULL else every, seed)
    outcomes = sweep(session, kind, mode)
    count = sum(outcomes.values())
    part = f" of those whose hash is {seed % every} mod {every}" \
        if every and not FULL else ""
    print(f"       {session.faulty.role:8}{kind:10}{MODES[mode]:15}{count:4} "
          f"sites{part}: {outcomes}")
    return count


def sweep_some(session, kind, every):
    """One of @every sites, or a few more: how many have the same hash is
    chance."""
    count, seed = 0, SEED
    while True:
        count += sweep_and_tell(session, kind, ONE, every, seed)
        seed += 1
        if count > 5 or FULL or seed >= SEED + every:
            return count


def settled(session, limit):
    """What is held for flows that have ended is given back."""
    try:
        session.case.lab.wait(lambda: session.faulty.live <= limit, seconds=20)
    except RuntimeError:
        return False
    return True


def settles(session, limit):
    check(settled(session, limit), f"{session.faulty.live} allocations are held, "
          f"{limit} would be in order")


def sweep_and_settle(session, kind, mode):
    """libevent keeps what it makes for a descriptor's number as it is first
    used, which is once: what leaks does so again and again."""
    for _ in range(3):
        began, flows = session.faulty.live, session.flows
        sweep_and_tell(session, kind, mode)
        # A new name is kept, whatever it was that failed, and also if nobody
        # waited for its answer.
        limit = began + (session.flows - flows if kind.startswith("dns") else 0)
        if settled(session, limit):
            return
        print(f"       {session.faulty.live} allocations are held, "
              f"{limit} would be in order")
        session.faulty.forget()
    raise AssertionError(f"{kind} leaks")


def test_gate(case):
    with Witness(case, "allocations") as witness:
        session = Session(case, Faulty(case, "gate"))
        session.warm_up()
        for mode in ONE, ON:
            for kind in FLOWS:
                # All sites of each, whatever it has in common with another.
                session.faulty.forget()
                sweep_and_settle(session, kind, mode)
        session.ends_well()
        missing = unrecorded(witness.ids(), read_log(session.log + "/audit.jsonl"))
        check(witness.count() > 50 and not missing, missing[:5])


def test_reload(case):
    """A policy that there is no memory for is not in force, and the one before
    it is; the warden does not take its own want for somebody's deed."""
    for role, every in ("gate", 4), ("run", 16):
        # The gate makes a thread, for which the sanitizer needs memory itself.
        if case.sanitized and role == "gate":
            continue
        with Witness(case, "reload-" + role) as witness:
            session = Session(case, Faulty(case, role))
            session.warm_up()
            check(session.flow("reload") == session.flow("reload") == "ok")
            began = session.faulty.live
            check(sweep_some(session, "reload", every) > 5)
            settles(session, began + 4)
            if role == "run":
                looks(session)
            for kind in FLOWS:
                check(session.flow(kind) == "ok", kind)
            session.ends_well()
            records = read_log(session.log + "/audit.jsonl")
            check(not unrecorded(witness.ids(), records))
            check("boundary was changed" not in str(records), records)


def looks(session):
    """The warden has no memory for the look that it takes every two seconds."""
    session.faulty.forget()
    session.faulty.sample(0, 0)
    for _ in range(2):
        session.faulty.arm(ONE)
        session.case.lab.wait(lambda: session.faulty.hit, "no look")
        session.faulty.rest()
        check(session.alive() and session.flow("connect") == "ok",
              session.faulty.where())


def test_ledger(case):
    """Records are kept without asking for memory; a signature is not made
    without. Then the log is lost: nothing leaves any more, the session ends,
    and what is left of the log holds."""
    faulty, count, spared = Faulty(case, "ledger"), 0, 0
    while count < 1 or FULL:
        with Witness(case, f"ledger-{count}-{spared}") as witness:
            session = Session(case, faulty)
            if not lose_ledger(session):
                session.ends_well()
                if not faulty.hit:
                    check(count)
                    break
                spared += 1  # what libcrypto can do without
                continue
            count += 1
            reached = witness.count()
            for kind in FLOWS:
                got = session.flow(kind)
                check(got not in ("ok", "hung"), (kind, got))
            err = session.end()
            about = session.process.returncode, faulty.where(), err
            check(about[0] == 125 and "the log is lost" in err, about)
            check(witness.count() == reached, about)
            check(not verified(case, session.log)["closed"], about)
            check(not unrecorded(witness.ids(),
                                 read_log(session.log + "/audit.jsonl")))
    print(f"       ledger: {count} sites, and {spared} that it can do without; "
          f"the last: {faulty.where()}")


def lose_ledger(session):
    """Flows until an allocation fails, and the ledger ends; False if it does not."""
    session.faulty.arm(ONE)
    end = time.monotonic() + 30
    while not session.faulty.hit:
        if time.monotonic() > end:
            session.faulty.rest()
            return False
        for kind in FLOWS:
            session.flow(kind)
    end += 10
    while (lives := session.flow("http") == "ok") and time.monotonic() < end:
        time.sleep(0.02)
    session.faulty.rest()
    return not lives


def test_daemon(case):
    """Whoever asks is told that there is no memory; no other sandbox notices,
    and nothing is left of what was not made."""
    for role, kinds in (("daemon", (("list", 0), ("narrow", 8), ("make", 12),
                                    ("end", 2))),
                        ("keeper", (("make", 60),))):
        control = Control(case, Faulty(case, role))
        try:
            before = steady(lambda: left(control.d))
            for kind, every in kinds:
                sweep_some(control, kind, every)
            check(control.faulty.known > 5)
            control.clear()
            control.d.wait(lambda: left(control.d) == before, 60)
        finally:
            check(control.d.stop() == 0, control.d.err())
            check("Sanitizer" not in control.d.err(), control.d.err())
