# SPDX-License-Identifier: Apache-2.0
"""What a changed policy leaves as it was, and changes that are none."""
import json
import os
import socket
import subprocess
import time

from change_lab import ALL, rules, sandbox
from harness import check

BIG = "  - { host: allowed.test, ports: [80]"
RAW = "  - { host: allowed.test, ports: [7000]"
TLS = "  - { host: allowed.test, ports: [443] }\n"

# What is held, by which policy, and what another one makes of it.
NARROWED = [
    ("connect", "mode: observe\n", "", "policy_revoked"),
    ("raw", "mode: observe\nallow:\n" + RAW + "}\n", "mode: observe\n", None),
    ("connect", "allow:\n" + TLS, "mode: observe\n", None),
    ("sni", "default: public\n", "", "policy_revoked"),
    ("sni", "default: public\n", "default: public\ndeny: [allowed.test]\n",
     "policy_revoked"),
    ("sni", "allow:\n" + TLS, "default: public\n", None),
    ("sni", "allow: ['*.test']\n", "allow: ['*.test']\nname: same\n", None),
    ("sni", "allow: ['*.test']\n", "allow:\n" + TLS, None),
    ("sni", "allow: ['*.test']\n", "allow: ['*.test', {host: allowed.test, "
     "ports: [22]}]\n", "policy_revoked"),
    ("socks", "allow: ['*.test']\n", "allow: ['*.allowed.test']\n",
     "policy_revoked"),
    ("connect", "allow: [allowed.test]\n", "allow: [{host: allowed.test, "
     "expires: 2020-01-01}]\n", "policy_revoked"),
    ("connect", "allow: [allowed.test]\n", "allow: [{host: allowed.test, "
     "expires: 2999-01-01}]\n", None),
    ("connect", "allow: [allowed.test]\n", "allow: [allowed.test]\n"
     "limits: {download: 10}\n", "limit_bytes"),
    ("connect", "allow: [allowed.test]\n", "allow: [{host: allowed.test, "
     "upload: 10 MB}]\n", None),
    ("connect", "allow: [allowed.test]\n", "allow: [{host: allowed.test, "
     "protocol: http, ports: [443]}]\n", "policy_revoked"),
    ("said", "allow:\n" + RAW + "}\n", "allow:\n" + RAW + ", protocol: any }\n", None),
    ("said", "allow:\n" + RAW + "}\n", "allow:\n" + RAW + ", protocol: tls }\n",
     "policy_revoked"),
    ("said", "allow:\n" + RAW + "}\n", "allow:\n" + RAW + ", methods: [GET] }\n",
     "policy_revoked"),
    ("absolute", "allow:\n" + BIG + "}\n", "allow:\n" + BIG + ", paths: [/big] }\n",
     None),
    ("absolute", "allow:\n" + BIG + "}\n", "allow:\n" + BIG + ", paths: [/a/**] }\n",
     "policy_revoked"),
    ("host", "allow:\n" + BIG + "}\n", "allow:\n" + BIG + ", methods: [POST] }\n",
     "policy_revoked"),
    ("host", "allow:\n" + BIG + "}\n", "allow:\n" + BIG + ", doors: [proxy] }\n",
     "policy_revoked"),
    ("absolute", "allow:\n" + BIG + "}\n", "allow:\n" + BIG + ", doors: [proxy] }\n",
     None),
]


def test_what_still_fits(case):
    """R3: what the new policy would not have allowed ends; nothing else does."""
    faults = []
    with sandbox(case, "") as session:
        for door, before, after, want in NARROWED:
            key = f"{door} allowed.test"
            session.reload(before)
            got = session.tell(hold=[key])
            port = got["held"].get(key)
            row = f"R3 {door}: {before!r} -> {after!r}"
            if got["hold"][key] != "ok" or got["ended"]:
                faults.append(f"{row}: not held: {got}")
                continue
            _, done = session.reload(after)
            got = session.tell(until=done + (1 if want else 0.3))
            words = session.reasons(port, 20 if want else 0)
            if bool(got["ended"]) != bool(want) or words != ([want] if want else []):
                faults.append(f"{row}: wanted {want}, ended {got['ended']}, {words}")
            session.tell(drop=True)
    check(not faults, "\n".join(faults))


def test_what_is_said_later(case):
    """A connection on which nobody has said anything stays; what is then said has
    to be what the new rule wants."""
    faults = []
    with sandbox(case, "") as session:
        for narrow in "protocol: tls", "protocol: http", "methods: [POST]":
            session.reload("allow:\n" + RAW + "}\n")
            key = "raw allowed.test"
            got = session.tell(hold=[key])
            port = got["held"][key]
            session.reload("allow:\n" + RAW + f", {narrow} }}\n")
            got = session.tell(say={key: "SSH-2.0-x\r\n"}, until=time.time() + 1)
            words = session.reasons(port)
            if "SSH" in got["heard"].get(key, "") or words not in (
                    ["protocol"], ["policy_revoked"]):
                faults.append(f"R3 {narrow}: {got} {words}")
            session.tell(drop=True)
    check(not faults, "\n".join(faults))


def test_another_address(case):
    """What a name leads to is part of the rule."""
    with socket.create_server(("127.0.0.1", 0)) as one, \
            socket.create_server(("127.0.0.1", 0)) as two, \
            socket.create_server(("203.0.113.2", 7000)):
        def policy(server, addresses):
            to = "%s:%d" % server.getsockname()
            return "allow:\n  - { host: llm.internal, ports: [7000], connect: " \
                f'"{to}" }}\n  - {{ host: uplink.test, ports: [7000]{addresses} }}\n'
        keys = ["tunnel llm.internal", "tunnel uplink.test"]
        permitted = ", addresses: [203.0.113.2]"
        with sandbox(case, policy(one, permitted)) as session:
            got = session.tell(hold=keys)
            check(set(got["hold"].values()) == {"ok"}, got)
            _, done = session.reload(policy(one, permitted) + "name: same\n")
            check(not session.tell(until=done + 0.3)["ended"])
            _, done = session.reload(policy(two, permitted))
            check(set(session.tell(until=done + 1)["ended"]) == {keys[0]})
            _, done = session.reload(policy(two, ""))
            got = session.tell(until=done + 1)
            check(set(got["ended"]) == set(keys), got)
            for key in keys:
                check(session.reasons(got["held"][key]) == ["policy_revoked"], key)
            got = session.tell(hold=keys)
            check(got["hold"] == {keys[0]: "ok",
                                  keys[1]: "502 forbidden_address"}, got)


def test_a_bad_policy_changes_nothing(case):
    """R2: the old one stays, whole, and it is said what is wrong."""
    with sandbox(case, rules("allowed")) as session:
        check(session.tell(hold=["connect allowed.test", "raw allowed.test"]))
        for text in ("allow: [allowed.test\n", "alow: []\n", "allow: ['*']\n",
                     "deny: [allowed.test]\nallow: [other.test, 'b..d']\n",
                     "extends: [./nowhere.yaml]\n",
                     "deny: [{file: /nowhere}, allowed.test]\n", "version: 1\n"):
            session.reload(text, status=1)
            check("policy" in session.said.stderr and session.policy.rsplit("/", 1)[1]
                  in session.said.stderr or "nowhere" in session.said.stderr,
                  session.said)
        os.unlink(session.policy)
        said = subprocess.run([*case.drop(), case.binary, "reload", session.log],
                              capture_output=True, text=True, env=case.env())
        check(said.returncode == 1, said)
        got = session.tell(until=time.time() + 0.3, hold=["socks allowed.test",
                           "connect other.test"], dns=["allowed.test"])
        check(not got["ended"] and got["hold"] == {
            "socks allowed.test": "ok", "connect other.test": "403 not_in_policy"}, got)
        check(got["dns"]["allowed.test"].startswith("0 1"), got)
        check("was not reloaded" in json.dumps(session.records()))


def test_back_again(case):
    """What was refused is allowed with the next policy: no denial is stale."""
    with sandbox(case, rules("other")) as session:
        got = session.tell(hold=["connect allowed.test"], dns=["allowed.test"])
        check(got["hold"]["connect allowed.test"] == "403 not_in_policy", got)
        session.reload(rules("allowed", "other"))
        got = session.tell(hold=[f"{door} allowed.test" for door in ALL],
                           dns=["allowed.test"])
        check(set(got["hold"].values()) == {"ok"}, got)
