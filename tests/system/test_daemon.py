# SPDX-License-Identifier: Apache-2.0
"""`sallyport daemon`: sandboxes that come and go, each with a policy of its own,
asked for over HTTP as a client would, and looked at from inside."""
import base64
import os
import signal
import subprocess
import time

from daemon_lab import daemon, fetch, OTHER, policy, reaches, resolve, user
from harness import check, USER



# --- what they reach --------------------------------------------------------


def test_own_policies(case):
    """Two sandboxes with the same addresses; each reaches what is its own."""
    with daemon(case) as d:
        a = d.create("a", "allowed.test")
        b = d.create("b", "other.test")
        check(a["state"] == b["state"] == "ready", (a, b))
        check(a["ip"] == b["ip"] and a["session"] != b["session"], (a, b))
        for s, yes, no in (a, "allowed.test", "other.test"), \
                (b, "other.test", "allowed.test"):
            check(fetch(s, yes) and not fetch(s, no), d.err())
            check(reaches(s, yes) and not resolve(s, no), d.err())
        names = [s["name"] for s in d.good("GET", "/v1/sandboxes")["sandboxes"]]
        check(names == ["a", "b"], names)
        answer = d.remove("a")
        check(answer["held"] == "held" and answer["session"] == a["session"],
              answer)
        check(os.path.exists(answer["receipt"]), answer)
        check(d.ask("GET", "/v1/sandboxes/a")[0] == 404)
        check(not os.path.exists(a["netns"]), a)
        check(fetch(b, "other.test"), "the other one went with it")


def test_policy_changes(case):
    with daemon(case) as d:
        s = d.create("change", "allowed.test")
        check(fetch(s, "allowed.test") and not fetch(s, "other.test"))
        now = d.good("PUT", "/v1/sandboxes/change/policy",
                     {"policy": policy("other.test")})
        check(now["policy"]["digest"] != s["policy"]["digest"], now)
        check(fetch(s, "other.test") and not fetch(s, "allowed.test"))
        status, answer = d.ask("PUT", "/v1/sandboxes/change/policy",
                               {"policy": "version: 1\nalow: []\n"})
        check(status == 422 and "policy:2:1" in answer["error"]
              and "'allow'" in answer["error"], answer)
        check(fetch(s, "other.test"), "a wrong one changed something")
        # The one that was agreed to is the one that a restart finds.
        d.stop()
        d.start()
        check(fetch(s, "other.test") and not fetch(s, "allowed.test"), d.err())


def test_bundle(case):
    """The bytes of policy/bundle.h: kind, lengths, origin, text."""
    def part(kind, origin, text):
        return (bytes([kind]) + len(origin).to_bytes(2, "big")
                + len(text).to_bytes(4, "big") + origin + text)
    with daemon(case) as d:
        whole = part(1, b"mine.yaml", policy("allowed.test").encode()) + \
            part(2, b"--allow", b"other.test")
        d.good("POST", "/v1/sandboxes",
               {"name": "b", "bundle": base64.b64encode(whole).decode()})
        s = d.one("b")
        check("mine.yaml" in s["policy"]["text"], s)
        check(fetch(s, "allowed.test") and fetch(s, "other.test"))
        ceiling = part(8, b"x", whole)
        for bad, word in ((whole[:-1], ""), (whole + ceiling, "")):
            status, answer = d.ask(
                "POST", "/v1/sandboxes",
                {"name": "bad", "bundle": base64.b64encode(bad).decode()})
            check(status == 422 and answer["error"], answer)
        status, answer = d.ask("POST", "/v1/sandboxes", {
            "name": "bad", "policy": "version: 1\nextends: [/etc/passwd.yaml]\n"})
        check(status == 422 and "send a bundle" in answer["hint"], answer)
        check(d.ask("GET", "/v1/sandboxes/bad")[0] == 404)


def test_ceiling(case):
    """The operator's ceiling is above every policy that is not the operator's."""
    top = case.lab.write("ceiling.yaml", policy("allowed.test"))
    own = case.lab.write("own.yaml", policy("other.test"))
    config = (f"version: 1\ngroup: www-data\nceiling: {top}\n"
              f"policies: {{ own: {own} }}\ndefault_policy: own\n")
    with daemon(case, config=config) as d:
        s = d.create("below", "allowed.test", "other.test")
        check(fetch(s, "allowed.test") and not fetch(s, "other.test"))
        named = d.good("POST", "/v1/sandboxes",
                       {"name": "named", "policy_name": "own"})
        check(fetch(named, "other.test") and named["policy"]["name"] == "own")
        default = d.good("POST", "/v1/sandboxes", {"name": "default"})
        check(fetch(default, "other.test"), default)
        status, answer = d.ask("POST", "/v1/sandboxes",
                               {"name": "x", "policy_name": "owm"})
        check(status == 422 and "owm" in answer["error"], answer)
        # A name that is taken back is not above the ceiling any more.
        d.configure(f"version: 1\ngroup: www-data\nceiling: {top}\n")
        d.good("POST", "/v1/reload")
        d.wait(lambda: not fetch(named, "other.test"))
        d.stop(signal.SIGKILL)
        d.start()
        check(not fetch(d.one("named"), "other.test"), d.err())


# --- whose they are ---------------------------------------------------------


def test_users(case):
    """A user has own sandboxes, owns their namespaces, and sees no others."""
    with daemon(case) as d:
        d.create("roots", "allowed.test")
        with user():
            status, s = d.ask("POST", "/v1/sandboxes", {
                "name": "users", "policy": policy("allowed.test")})
            check(status == 201 and s["uid"] == USER and s["userns"],
                  (s, d.err()))
            listed = d.good("GET", "/v1/sandboxes")["sandboxes"]
            check([x["name"] for x in listed] == ["users"], listed)
            for method, path in (("GET", ""), ("DELETE", ""),
                                 ("PUT", "/policy"), ("POST", "/publish")):
                one = d.ask(method, "/v1/sandboxes/roots" + path, {})
                none = d.ask(method, "/v1/sandboxes/nobody" + path, {})
                check(one == none and one[0] == 404, (one, none))
            check(d.ask("POST", "/v1/reload")[0] == 403)
            # The namespaces are the user's own: no help is needed to enter.
            run = subprocess.run(
                ["setpriv", "--reuid", str(USER), "--regid", str(USER),
                 "--clear-groups", "nsenter", "--user=" + s["userns"],
                 "--net=" + s["netns"], "--preserve-credentials", "curl", "-s",
                 "-x", f"http://{s['gateway']}:{s['proxy_port']}",
                 "http://allowed.test/index.html"],
                capture_output=True, text=True, timeout=30,
                preexec_fn=lambda: os.setresuid(0, 0, 0))
            check("hello from the lab" in run.stdout, (run, d.err()))
        check(len(d.good("GET", "/v1/sandboxes")["sandboxes"]) == 2)
        # Nobody of the group: the mode of the socket says no already.
        with user(OTHER):
            try:
                d.ask("GET", "/v1/sandboxes")
                check(False, "let in")
            except PermissionError:
                pass
        os.chmod(d.socket, 0o666)
        with user(OTHER):
            check(d.ask("GET", "/v1/sandboxes")[0] == 403)
            check(d.ask("GET", "/healthz")[0] == 200)


def test_limits(case):
    config = ("version: 1\ngroup: www-data\nlimits: { max_sandboxes: 3, "
              "max_sandboxes_per_user: 1, wall_clock: 1h }\n")
    with daemon(case, config=config) as d:
        s = d.create("a", "allowed.test")
        check(abs(s["ends"] - s["made"] - 3600) <= 1, s)
        with user():
            d.create("u", "allowed.test")
            status, answer = d.ask("POST", "/v1/sandboxes", {
                "name": "v", "policy": policy()})
            check(status == 503 and "per_user" in answer["error"], answer)
        d.create("b", timeout_s=600)
        status, answer = d.ask("POST", "/v1/sandboxes",
                               {"name": "c", "policy": policy()})
        check(status == 503 and "max_sandboxes" in answer["error"], answer)
        d.remove("b")
        d.create("c")


def test_wall_clock(case):
    """Its time over, it is gone, and what ran inside as well."""
    with daemon(case) as d:
        s = d.create("short", "allowed.test", timeout_s=10)
        process = subprocess.Popen(["nsenter", "--net=" + s["netns"], "sleep",
                                    "600"])
        d.wait(lambda: d.ask("GET", "/v1/sandboxes/short")[0] == 404)
        check(process.wait(60) == -signal.SIGKILL)
        check(not os.path.exists(s["netns"]))
        with open(s["log"] + "/audit.jsonl") as f:
            check("session" in f.read())


# --- what comes back --------------------------------------------------------


def test_reload(case):
    top = case.lab.write("top.yaml", policy("allowed.test"))
    with daemon(case) as d:
        s = d.create("r", "allowed.test", "other.test")
        check(fetch(s, "other.test"))
        d.configure("version: 1\ngrup: www-data\n")
        status, answer = d.ask("POST", "/v1/reload")
        check(status == 422 and "daemon.yaml:2:1" in answer["error"]
              and "'group'" in answer["error"], answer)
        d.process.send_signal(signal.SIGHUP)
        d.wait(lambda: d.err().count("old configuration stays") == 2)
        check(fetch(s, "other.test"))
        d.configure(f"version: 1\ngroup: www-data\nceiling: {top}\n")
        d.good("POST", "/v1/reload")
        d.wait(lambda: not fetch(s, "other.test"))
        check(fetch(s, "allowed.test"))
        d.configure("version: 1\ngroup: www-data\n")
        d.process.send_signal(signal.SIGHUP)
        d.wait(lambda: fetch(s, "other.test"))


def test_publish(case):
    """A server inside, asked from the machine; and again after a restart."""
    with daemon(case) as d:
        s = d.create("p", "allowed.test",
                     publish=[{"port": 18080, "inside": 8000}])
        server = subprocess.Popen(
            ["nsenter", "--net=" + s["netns"], "python3", "-m", "http.server",
             "8000", "--directory", case.lab.dir + "/www"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def asked():
            run = subprocess.run(
                ["curl", "-s", "-m", "5", "http://127.0.0.1:18080/index.html"],
                capture_output=True, text=True)
            return "hello from the lab" in run.stdout
        try:
            d.wait(asked)
            status, answer = d.ask("POST", "/v1/sandboxes", {
                "name": "q", "policy": policy(),
                "publish": [{"port": 18080, "inside": 80}]})
            check(status == 409, answer)
            check(d.ask("GET", "/v1/sandboxes/q")[0] == 404)
            d.stop(signal.SIGKILL)
            # Its keeper still writes its last records.
            end = time.monotonic() + 60
            while asked():
                check(time.monotonic() < end)
            d.start()
            d.wait(asked)
            with user():
                d.create("mine")
                status, answer = d.ask("POST", "/v1/sandboxes/mine/publish",
                                       {"port": 81, "inside": 80})
                check(status == 403, answer)
            # What users may not bind themselves, by the machine's setting.
            path = "/proc/sys/net/ipv4/ip_unprivileged_port_start"
            with open(path) as f:
                before = f.read()
            try:
                with open(path, "w") as f:
                    f.write("20000")
                with user():
                    ask = {"port": 19999, "inside": 80}
                    status, answer = d.ask(
                        "POST", "/v1/sandboxes/mine/publish", ask)
                    check(status == 403 and "20000" in answer["error"], answer)
                    d.good("POST", "/v1/sandboxes/mine/publish",
                           {"port": 20001, "inside": 80})
            finally:
                with open(path, "w") as f:
                    f.write(before)
        finally:
            server.kill()
            server.wait()
