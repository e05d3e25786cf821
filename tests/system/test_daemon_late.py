# SPDX-License-Identifier: Apache-2.0
"""The operator's word comes while a policy is on its way that was put together
before it: what is in force in the end is below the new ceiling all the same."""
import base64
import json
import os
import threading
import time

from daemon_lab import daemon, fetch, policy
from harness import check, Late, prompt

LONG = 24 << 20  # bytes of it: some time to write, and to read


def part(kind, origin, text):
    """The bytes of policy/bundle.h."""
    return (bytes([kind]) + len(origin).to_bytes(2, "big")
            + len(text).to_bytes(4, "big") + origin + text)


def done(answers):
    """We came too late."""
    if answers:
        check(answers[0][0] == 200, answers)
        raise Late(answers)


@prompt
def test_ceiling_overtakes_a_change(case):
    top = case.lab.write("late-ceiling.yaml", policy("allowed.test"))
    own = policy("allowed.test", "other.test").encode()
    text = (b"#" * 999 + b"\n") * (LONG // 1000)
    body = json.dumps({"bundle": base64.b64encode(
        part(1, b"own.yaml", own) + part(7, b"long", text)).decode()})
    with daemon(case) as d:
        s = d.create("late", "allowed.test")
        check(not fetch(s, "other.test"), d.err())
        answers = []
        change = threading.Thread(target=lambda: answers.append(
            d.ask("PUT", "/v1/sandboxes/late/policy", body)))
        state = d.dir + "/state/sandboxes/late"
        d.configure(f"version: 1\ngroup: www-data\nceiling: {top}\n")
        change.start()
        # Once that is written it has been put together, without a ceiling.
        while not any(name.startswith("bundle") and name.endswith(".new")
                      for name in os.listdir(state)):
            done(answers)
            time.sleep(0.002)
        d.good("POST", "/v1/reload")
        done(answers)
        change.join(120)
        check(answers[0][0] == 200, (answers, d.err()))
        d.wait(lambda: not fetch(s, "other.test"), 60)
        check(fetch(s, "allowed.test"), d.err())
        check("stays in force" not in d.err(), d.err())
        d.remove("late")
