# SPDX-License-Identifier: Apache-2.0
"""A policy that changes under a running sandbox, and rules that expire: what
goes on and is no longer allowed ends, by whatever door it came."""
import contextlib
import json
import subprocess
import time

from change_lab import ALL, DIRECT, HOLD, rules, sandbox, Session
from harness import check, prompt, within
from policy_rows import packets, serving, write_policy
from policy_world import WEB, world


@contextlib.contextmanager
def gate(case, text):
    """The same under `serve`."""
    with serving(case, text) as (doors, log, server):
        path = server.args[server.args.index("--policy") + 1]
        process = subprocess.Popen(["python3", "-c", HOLD, json.dumps(doors)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, env=case.env())
        try:
            yield Session(case, process, log, path)
        finally:
            process.stdin.close()
            process.wait(60)
            process.stdout.close()


def revoked(case, session, ways, text, why, before=lambda: None):
    """R3, D20: all that allowed.test has ends, and nothing of it begins; what
    other.test has goes on."""
    doomed = [f"{door} allowed.test" for door in ways]
    kept = [f"{door} other.test" for door in ways]
    got = session.tell(hold=doomed + kept, dns=["allowed.test", "other.test"])
    check(set(got["hold"].values()) == {"ok"} and not got["ended"], got)
    check(got["dns"]["allowed.test"].startswith("0 1"), got)
    before()
    _, done = session.reload(text)
    got = session.tell(until=done + 1.2)
    for key in doomed:
        within(1, got["ended"].get(key, 1e12) - done, f"R3 {key}")
    check(not set(kept) & set(got["ended"]), f"R3: what is allowed ended: {got}")
    for key in doomed:
        words = session.reasons(got["held"][key])
        check(words == ["policy_revoked"], f"R3 {key}: {words}")
    seen = time.time()
    got = session.tell(hold=doomed, dns=["allowed.test"])
    tries, code = got["hold"], got["dns"]["allowed.test"].split()
    check(code[:2] == ["3", "0"] and session.reasons(int(code[2])) == [why],
          f"D20: {got}")
    for key, want in tries.items():
        check(want != "ok" or key.split()[0] in ("absolute", "host"), f"R3 {key}: {want}")
    check(tries["connect allowed.test"] == f"403 {why}"
          and tries["socks allowed.test"] == "socks 2", tries)
    got = session.tell(until=time.time() + 1)
    check(session.reasons(got["held"]["absolute allowed.test"]) == [why], got)
    if "raw" in ways:  # to the address that it had
        words = session.dropped("allowed.test", 7000)
        check(words == {why}, f"R3 a stale address: {words}")
    new = [line for at, line in packets(case, "tcp[tcpflags] & tcp-syn != 0 or port 53")
           if at > seen]
    check(not new, f"R3, D20: seen outside: {new}")
    got = session.tell(hold=[f"{door} other.test" for door in ("connect", "socks")],
                       dns=["other.test"])
    check(set(got["hold"].values()) == {"ok"}, got)


@prompt
def test_a_rule_is_removed(case):
    with sandbox(case, rules("allowed", "other")) as session:
        revoked(case, session, ALL, rules("other"), "not_in_policy")


@prompt
def test_a_rule_is_removed_under_serve(case):
    with gate(case, rules("allowed", "other")) as session:
        revoked(case, session, (*DIRECT, "tunnel"), rules("other"), "not_in_policy")


@prompt
def test_a_rule_is_removed_from_a_shared_address(case):
    """With real answers both names have the same one."""
    text = "dns: {answers: real}\n"
    with sandbox(case, text + rules("allowed", "other")) as session:
        revoked(case, session, (*DIRECT, "tunnel"), text + rules("other"),
                "not_in_policy")


@prompt
def test_a_denial_is_added(case):
    with sandbox(case, rules("allowed", "other")) as session:
        revoked(case, session, ALL, rules("allowed", "other") +
                "deny: [allowed.test]\n", "deny_rule")


@prompt
def test_a_listed_denial_is_added(case):
    """The policy's text stays; the list that it names changes."""
    path = f"{case.lab.dir}/list-{case.who}"
    with open(path, "w") as f:
        f.write("evil.test\n")
    text = rules("allowed", "other") + f"deny: [{{file: {path}}}]\n"
    with sandbox(case, text) as session:
        def change():
            with open(path, "a") as f:
                f.write("allowed.test\n")
        revoked(case, session, ALL, text, "deny_rule", change)


@prompt
def test_ports_and_doors_are_narrowed(case):
    """What no longer fits ends, what does stays."""
    with sandbox(case, rules("allowed")) as session:
        keys = [f"{door} allowed.test" for door in ALL]
        check(set(session.tell(hold=keys)["hold"].values()) == {"ok"})
        _, done = session.reload("allow: [{host: allowed.test, ports: [443], "
                                 "doors: [proxy]}]\n")
        got = session.tell(until=done + 1)
        doomed = {"sni", "raw", "tunnel", "absolute", "host"}
        for key in keys:
            if key.split()[0] in doomed:
                within(1, got["ended"].get(key, 1e12) - done, key)
        ended = {key.split()[0] for key in got["ended"]}
        check(ended == doomed, ended)


@prompt
def test_expiry(case):
    """A rule that expires is a rule removed, without anybody asking."""
    at = int(time.time()) + 4
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    text = rules("other") + "  - { host: allowed.test, ports: [443, 80, 7000], " \
        f"expires: {when} }}\n"
    with sandbox(case, text) as session:
        keys = [f"{door} allowed.test" for door in ALL]
        got = session.tell(hold=keys + ["connect other.test"])
        within(at, time.time(), "too slow to tell")
        check(set(got["hold"].values()) == {"ok"} and not got["ended"], got)
        got = session.tell(until=at + 1.2)
        for key in keys:
            took = got["ended"].get(key, 1e12) - at
            check(took > -0.1, f"{key}: ended {took:.1f} s after its time")
            within(1, took, key)
            check(session.reasons(got["held"][key]) in (["policy_revoked"],
                  ["expired"]), session.reasons(got["held"][key]))
        check("connect other.test" not in got["ended"], got)
        got = session.tell(hold=keys[:2] + keys[6:], dns=["allowed.test"])
        check(got["hold"]["connect allowed.test"] == "403 expired"
              and got["hold"]["socks allowed.test"] == "socks 2"
              and got["dns"]["allowed.test"].startswith("3 0"), got)
        # By the gate at once, by the kernel a little later.
        raw = keys[5:6]
        end = time.monotonic() + 20
        while session.tell(hold=raw)["hold"][raw[0]] != "ConnectionRefusedError":
            check(time.monotonic() < end, "the kernel lets it through")
            time.sleep(0.05)
        check(session.dropped("allowed.test", 7000) == {"expired"})


@prompt
def test_a_websocket_is_cut(case):
    """Also where it was a request that opened it."""
    world(case)
    code = r"""
import socket, sys, time
s = socket.create_connection(("web.test", 80), 30)
s.sendall(b"GET /ws HTTP/1.1\r\nHost: web.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
          b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
got = b""
while b"free" not in got: got += s.recv(100)
print("open", flush=True)
try: s.recv(1)
except ConnectionResetError: pass
print(time.time(), flush=True)
"""
    path = write_policy(case, "allow: [web.test]\n")
    process, log = case.start("python3", "-c", code, allow=(),
                              args=("--policy", path))
    session = Session(case, process, log, path)
    check(process.stdout.readline() == "open\n")
    _, done = session.reload("allow: [other.test]\n")
    ended = float(process.stdout.readline())
    process.communicate(timeout=60)
    within(1, ended - done, "R3")
    check(any(r.get("status_code") == "policy_revoked"
              and r.get("dst_endpoint", {}).get("ip") == WEB
              for r in session.records()), session.records())
