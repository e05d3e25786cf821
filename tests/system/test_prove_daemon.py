# SPDX-License-Identifier: Apache-2.0
"""`sallyport prove --netns` of a sandbox of the daemon, by its owner and by
root: its log is known, and its receipt tells of it."""
import contextlib
import json
import os
import subprocess
import time

from daemon_lab import OTHER, user
from harness import USER, check, silent, so_far
from test_daemon_clients import Clients


@contextlib.contextmanager
def box(case):
    """A daemon with a sandbox "box" of this user's."""
    clients = Clients(case)
    try:
        clients.run("create", "--allow", "allowed.test", "box")
        yield clients
    finally:
        clients.daemon.ask("DELETE", "/v1/sandboxes/box")
        check(clients.daemon.stop() == 0, clients.daemon.err())


def prove(clients, status=0):
    out = clients.run("prove", "--netns", "box", "--json", "--allow",
                      "allowed.test", status=status)
    said = json.loads(out.stdout)
    said["err"] = out.stderr
    said["at"] = {a["id"]: a for a in said["attacks"]}
    return said


def records(said, event, count=0):
    """So far; of those that are to come, not before there are as many."""
    end = time.monotonic() + 30
    while True:
        found = [r["unmapped"]["detail"] for r in so_far(os.path.dirname(said["log"]))
                 if r["unmapped"]["event"] == event]
        if len(found) >= count or time.monotonic() > end:
            return found
        time.sleep(0.02)


def receipt(clients, said):
    """What verify has of it, for people and for programs, when it is over."""
    clients.run("rm", "box")
    log = os.path.dirname(said["log"])
    for argv in ["verify", log], ["verify", "--json", log]:
        out = subprocess.run([clients.case.binary, *argv], text=True,
                             capture_output=True, timeout=60)
        check("broken" not in out.stdout, out)
        yield out.stdout


def me(case):
    return USER if case.who == "user" else 0


def test_good_sandbox(case):
    with box(case) as clients:
        said = prove(clients)
        bad = [a for a in said["attacks"] if a["result"] == "got_out"]
        check(not bad and said["held"] > 95 and said["reported"] == "box",
              (bad, said))
        for name in "tcp", "udp", "dns-label", "connect", "sni-direct":
            check(said["at"][name]["recorded"], said["at"][name])
        # The owner's user namespace bounds it as any command.
        check(said["at"]["namespaces"]["result"] == "held", said["at"])
        check(records(said, "exec", 1) == [f"uid {me(case)}: sallyport prove"])
        check(records(said, "attacks", 1) ==
              [f"uid {me(case)}: {said['held']} held, 0 got out, "
               f"{said['skipped']} skipped"], records(said, "attacks"))
        text, shown = receipt(clients, said)
        check(f"{said['held']} held, 0 got out, {said['skipped']} skipped; "
              f"as uid {me(case)} reports" in text, text)
        attacks = json.loads(shown)["receipt"]["attacks"]
        check(attacks["reported_by"] == [me(case)] and
              attacks["held"] == said["held"], attacks)
        silent(case)


# A socket of the machine's that is in the sandbox's network.
LISTEN = """
import socket, time
s = socket.socket(socket.AF_UNIX)
s.bind("\\0of-the-host"); s.listen(); print("ready", flush=True); time.sleep(1000)
"""


def test_hole_and_its_receipt(case):
    """What got out stays in the receipt, whatever is reported later."""
    with box(case) as clients:
        netns = clients.daemon.one("box")["netns"]
        hole = subprocess.Popen(["nsenter", "--net=" + netns, "python3", "-c",
                                 LISTEN], stdout=subprocess.PIPE, text=True)
        try:
            check(hole.stdout.readline() == "ready\n")
            said = prove(clients, status=1)
        finally:
            hole.kill()
            hole.communicate()
        out = [a["id"] for a in said["attacks"] if a["result"] == "got_out"]
        check(out == ["unix-abstract"] and
              "of-the-host" in said["at"]["unix-abstract"]["detail"], said)
        check(prove(clients)["got_out"] == 0)
        check(records(said, "finding", 1) ==
              [f"uid {me(case)} reports attacks that got out: unix-abstract"],
              records(said, "finding"))
        text, _ = receipt(clients, said)
        check(f"  attacks   {said['held']} held, 1 got out" in text, text)


def test_who_may_report(case):
    """Its owner and root; and only what is an attack."""
    if case.who == "user":
        return
    with box(case) as clients:
        d = clients.daemon
        path = "/v1/sandboxes/box/attacks"
        good = {"duration_ms": 1, "results": {"tcp": "held"}}
        for uid in USER, OTHER:
            with user(uid):
                try:
                    status, _ = d.ask("POST", path, good)
                except PermissionError:
                    status = 403
            check(status in (403, 404), (uid, status))
        for bad in ({}, {"duration_ms": 1}, {"duration_ms": 1, "results": {}},
                    dict(good, more=1), dict(good, duration_ms=-1),
                    dict(good, results={"no-attack": "held"}),
                    dict(good, results={"tcp": "fine"}),
                    dict(good, results={"tcp": 1}),
                    dict(good, results={"x" * 30: "held"})):
            status, answer = d.ask("POST", path, bad)
            check(status in (400, 422), (bad, status, answer))
        s = d.one("box")
        check(records({"log": s["log"] + "/audit.jsonl"}, "attacks") == [])
        check(d.ask("POST", path, good)[0] == 200)
        check(records({"log": s["log"] + "/audit.jsonl"}, "attacks", 1) ==
              ["uid 0: 1 held, 0 got out, 0 skipped"])


def test_reports_leave_room(case):
    """A user's reports of holes don't push out of the receipt what the warden
    found: of more than it quotes few are findings, all are records, and the
    last one's hole is in the receipt."""
    with box(case) as clients:
        log = clients.daemon.one("box")["log"]
        for i in range(66):
            name = "tcp" if i < 65 else "udp"
            status, answer = clients.daemon.ask(
                "POST", "/v1/sandboxes/box/attacks",
                {"duration_ms": 1, "results": {name: "got_out"}})
            check(status == 200, answer)
        said = {"log": log + "/audit.jsonl"}
        check(len(records(said, "attacks", 66)) == 66, said)
        check(len(records(said, "finding", 16)) == 16, records(said, "finding"))
        text, _ = receipt(clients, said)
        check("  attacks   0 held, 2 got out" in text, text)
