# SPDX-License-Identifier: Apache-2.0
"""`sallyport prove --guard`: the attacks on a machine that is guarded, each
refused and in the guard's own log."""
import json
import subprocess

from guarded import Guard, own_place
from harness import check


def prove(case, *args):
    return subprocess.run([case.binary, "prove", "--guard", "--json", *args],
                          capture_output=True, text=True, timeout=90,
                          env=case.env(), stdin=subprocess.DEVNULL)


def test_00_without_a_guard(case):
    own_place()
    r = prove(case)
    check(r.returncode == 125 and "no guard is up" in r.stderr, r)


def test_guarded(case):
    with Guard(case, "--allow", "allowed.test") as guard:
        r = prove(case, "--allow", "allowed.test")
        said = json.loads(r.stdout)
        attacks = {a["id"]: a for a in said["attacks"]}
        bad = [a for a in attacks.values() if a["result"] == "got_out"]
        check(r.returncode == 0 and not bad, (bad, r.stderr))
        for name in "tcp", "udp", "quic", "dns-label", "connect", "sni-connect":
            check(attacks[name]["result"] == "held" and
                  attacks[name]["recorded"], attacks[name])
        # What the guard does not bound is not claimed.
        check(attacks["namespaces"]["result"] == "skipped")
        check(said["reported"] == guard.log, said["reported"])
    guard.verified()
    receipt = subprocess.run([case.binary, "verify", "--json", guard.log],
                             capture_output=True, text=True, timeout=60)
    told = json.loads(receipt.stdout)["receipt"]["attacks"]
    check(told == {"held": said["held"], "got_out": 0,
                   "skipped": said["skipped"], "reported_by": [0]}, told)
