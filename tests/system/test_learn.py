# SPDX-License-Identifier: Apache-2.0
"""From the log of one run to the policy of the next."""
import json
import os
import subprocess

from harness import check, silent

CURL = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}/%{http_connect} ",
        "https://allowed.test/", "https://other.test/", "http://allowed.test/")


def learn(case, run, *args):
    result = subprocess.run([case.binary, "learn", *args, run.log], text=True,
                            capture_output=True, timeout=60)
    check(result.returncode == 0, result)
    return result.stdout


def with_policy(case, text, *command, **kw):
    path = case.work + "/learned.yaml"
    with open(path, "w") as f:
        f.write(text)
    run = case.run(*command, allow=(), args=("--policy", path), **kw)
    os.unlink(path)
    return run


def test_the_same_again(case):
    """Proxy and direct connections: what was allowed is, the rest is not."""
    for proxy in True, False:
        kw = {"proxy": proxy}
        first = case.run(*CURL, **kw)
        text = learn(case, first)
        check("{ host: allowed.test, ports: [80, 443] }" in text, text)
        check("  #- { host: other.test" in text, text)
        again = with_policy(case, text, *CURL, **kw)
        check(first.out == again.out and "200" in again.out,
              f"{first}\n{text}\n{again}")
        check(again.denied("not_in_policy", "other.test"), again)
    silent(case)


def test_fronting_is_not_learned(case):
    """The tunnel was allowed, the name inside of it was not."""
    run = case.run("curl", "-s", "--connect-to", "evil.test:443:allowed.test:443",
                   "https://evil.test/")
    check(run.denied("name_mismatch"), run)
    for args in (), ("--include-denied",):
        text = learn(case, run, *args)
        check("- {" not in text and "Never a rule" in text, text)
    silent(case)


def test_json(case):
    run = case.run("curl", "-s", "https://allowed.test/")
    found = json.loads(learn(case, run, "--json"))
    check(found["records"] == len(run.records) and found["rules"] == 1
          and found["hosts"][0]["host"] == "allowed.test", found)
