# SPDX-License-Identifier: Apache-2.0
"""`sallyport prove --guard`: the attacks on a machine that is guarded, each
refused and in the guard's own log."""
import json
import os
import signal
import subprocess

from guarded import Guard, nft, own_place
from harness import check


def prove_argv(case, *args):
    return [case.binary, "prove", "--guard", "--json", *args]


def told(case, guard):
    """Of the attacks, by the receipt."""
    out = subprocess.run([case.binary, "verify", "--json", guard.log],
                         capture_output=True, text=True, timeout=60)
    return json.loads(out.stdout)["receipt"]["attacks"]


def prove(case, *args):
    return subprocess.run(prove_argv(case, *args), capture_output=True,
                          text=True, timeout=90, env=case.env(),
                          stdin=subprocess.DEVNULL)


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
    receipt = told(case, guard)
    check(receipt == {"held": said["held"], "got_out": 0,
                      "skipped": said["skipped"], "reported_by": [0]}, receipt)


OUT = "udp port 123 and host 9.9.9.9"


def until_out(case, attacks):
    while attacks.poll() is None:
        if case.lab.packets(OUT):
            return
    check(case.lab.packets(OUT), "nothing got out")


def test_rule_added(case):
    """Somebody lets NTP out, and the warden can't put the rules back until it
    has gone: that is named, and nothing else; also in the guard's receipt."""
    with Guard(case, "--allow", "allowed.test") as guard:
        warden = guard.status()["pid"]
        os.kill(warden, signal.SIGSTOP)
        try:
            for chain in "inet {} out", "inet {} post", "netdev {} egress":
                nft("insert rule " + chain.format("sallyport_guard") +
                    " ip daddr 9.9.9.9 udp dport 123 accept")
            attacks = subprocess.Popen(
                prove_argv(case, "--allow", "allowed.test"), text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, env=case.env())
            until_out(case, attacks)
        finally:
            os.kill(warden, signal.SIGCONT)
        out, err = attacks.communicate(timeout=90)
        said = json.loads(out)
        bad = [a for a in said["attacks"] if a["result"] == "got_out"]
        check(attacks.returncode == 1 and [a["id"] for a in bad] == ["udp-ntp"]
              and "it went another way" in bad[0]["detail"], (bad, err))
        check(said["reported"] == guard.log, (said["reported"], err))
    guard.verified("restored")
    findings = [r["unmapped"]["detail"] for r in guard.records()
                if r["unmapped"]["event"] == "finding"]
    check("uid 0 reports attacks that got out: udp-ntp" in findings, findings)
    check(told(case, guard)["got_out"] == 1)
