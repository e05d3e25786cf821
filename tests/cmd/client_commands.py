# SPDX-License-Identifier: Apache-2.0
"""create, rm, status, policy, reload and exec's refusals: what they ask the
daemon, what they print, and their statuses."""
import json
import os
import socket
import subprocess
import sys
import tempfile

from fake_daemon import FakeDaemon, parts, sandbox

BINARY = os.environ["SALLYPORT_BINARY"]
ESCAPES = "\x1b]0;x\x07\u202e\n\u009b"


def run(*args, **kw):
    env = {"PATH": os.environ["PATH"], "HOME": os.getcwd() + "/home",
           "XDG_STATE_HOME": os.getcwd() + "/state",
           "SALLYPORT_SOCKET": os.getcwd() + "/socket", **kw.pop("env", {})}
    return subprocess.run([BINARY, *args], text=True, capture_output=True,
                          env=env, stdin=subprocess.DEVNULL, timeout=60, **kw)


def check(truth, what=""):
    if not truth:
        raise AssertionError(what)


def failed(out, *words):
    check(out.returncode == 125 and not out.stdout, out)
    for word in words:
        check(word in out.stderr, (word, out))


def daemon():
    return FakeDaemon("socket")


def write(name, text):
    with open(name, "w", encoding="utf8") as f:
        f.write(text)
    return name


def test_nobody_there():
    for argv in (["create", "a", "--allow", "x.example"], ["rm", "a"],
                 ["status"], ["status", "a"], ["exec", "a", "true"],
                 ["policy", "a", "--allow", "x.example"],
                 ["reload", "--daemon"]):
        failed(run(*argv), "no daemon answers at " + os.getcwd() + "/socket",
               "systemctl start sallyport", "`sallyport run` needs none")
    # A socket that nobody listens at any more.
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("socket")
    failed(run("status"), "no daemon answers")
    os.unlink("socket")
    failed(run("status", "--socket", "/nowhere/else",
               env={"SALLYPORT_SOCKET": ""}), "/nowhere/else")
    failed(run("status", env={"SALLYPORT_SOCKET": ""}),
           "/run/sallyport/control.sock")


def test_create_sends_contents():
    write("names.txt", "bad.example\n")
    write("base.yaml", "version: 1\nallow: [base.example]\n")
    write("t.yaml", "version: 1\nextends: [./base.yaml]\n"
          "allow: [api.example]\n")
    with daemon() as d:
        out = run("create", "--policy", "t.yaml", "dev-1", "--allow",
                  "x.example", "--deny", "y.example", "--permit",
                  "10.0.0.0/8", "--observe", "--timeout", "90m",
                  "--publish", "8080:80", "--publish", "[::1]:1:2")
        check(out.returncode == 0 and not out.stderr, out)
        method, path, body = d.seen.pop()
        check((method, path) == ("POST", "/v1/sandboxes"), path)
        sent = parts(body.pop("bundle"))
        check([p[0] for p in sent] == ["included", "file", "allow", "deny",
                                       "permit", "observe"]
              or [p[0] for p in sent] == ["file", "included", "allow", "deny",
                                          "permit", "observe"], sent)
        check(("allow", "--allow", "x.example") in sent, sent)
        check(any("api.example" in p[2] for p in sent), sent)
        check(body == {"name": "dev-1", "timeout_s": 5400,
                       "policy_text": body["policy_text"],
                       "publish": [{"address": "127.0.0.1", "port": 8080,
                                    "inside": 80},
                                   {"address": "::1", "port": 1,
                                    "inside": 2}]}, body)
        check("t.yaml" in body["policy_text"], body)
        for line in ("dev-1 is ready: t.yaml\n", "sallyport exec dev-1 -- ",
                     "/nowhere/net", "sallyport rm dev-1\n"):
            check(line in out.stdout, (line, out.stdout))
        # Again: there is one.
        failed(run("create", "dev-1", "--allow", "x.example"),
               "dev-1: there is one of that name")
        out = run("create", "other", "--json", "--allow", "x.example")
        check(json.loads(out.stdout)["name"] == "other", out)


def test_create_without_a_policy():
    with daemon() as d:
        check(run("create", "a").returncode == 0, "the daemon has one")
        check(d.seen.pop()[2] == {"name": "a"}, "nothing is sent")
        d.canned = 422, {"error": "'policy', 'bundle' or 'policy_name'"}
        failed(run("create", "b"), "b: there is no policy", "--policy FILE")
        d.canned = None
        check(run("create", "c", "--policy-name", "agent").returncode == 0)
        check(d.seen.pop()[2] == {"name": "c", "policy_name": "agent"})
        failed(run("create", "d", "--policy-name", "agent", "--allow", "x.example"),
               "--policy-name is all of a policy")
        # The usual place counts, as for `run`.
        os.makedirs("home/.config/sallyport", mode=0o700)
        write("home/.config/sallyport/policy.yaml", "version: 1\n"
              "allow: [home.example]\n")
        check(run("create", "e").returncode == 0)
        sent = parts(d.seen.pop()[2]["bundle"])
        check("home.example" in sent[0][2], sent)
        os.unlink("home/.config/sallyport/policy.yaml")


def test_bad_lines():
    with daemon() as d:
        for argv, word in (
                (["create"], "name of a sandbox is missing"),
                (["create", "a", "b"], "what is b"),
                (["create", "A"], "no name for a sandbox"),
                (["create", "../a"], "no name for a sandbox"),
                (["create", "a", "--publish", "80"], "not [ADDR:]PORT:PORT"),
                (["create", "a", "--timeout", "0"], "not a time"),
                (["create", "a", "--nothing"], "no such option: --nothing"),
                (["create", "a", "--policy"], "a value is missing"),
                (["create", "a", "--policy", "none.yaml"], "none.yaml"),
                (["rm"], "name of a sandbox is missing"),
                (["rm", "a/../b"], "no name for a sandbox"),
                (["status", "a", "b"], "what is b"),
                (["policy", "a"], "which policy?"),
                (["exec"], "name of a sandbox is missing"),
                (["exec", "a"], "a command is missing"),
                (["exec", "a", "--"], "a command is missing"),
                (["exec", "a", "--env", "", "--", "true"], "not NAME or NAME=VALUE"),
                (["exec", "a", "--env", "=x", "true"], "not NAME or NAME=VALUE")):
            failed(run(*argv), word)
        check(not d.seen, d.seen)
    for command in ("create", "exec", "rm", "status", "policy", "reload"):
        out = run(command, "--help")
        check(out.returncode == 0 and out.stdout.startswith("usage: ") and
              "--socket" in out.stdout, out)
        if command != "reload":
            check(max(map(len, out.stdout.splitlines())) <= 80, out.stdout)


def test_rm():
    with daemon() as d:
        d.sandboxes = {n: sandbox(n) for n in ("a", "b")}
        out = run("rm", "a", "none", "b")
        check(out.returncode == 125, out)
        check(out.stdout == "".join(
            f"{n} is gone; boundary: held; receipt: /nowhere/receipt.json\n"
            for n in "ab"), out)
        check(out.stderr == "sallyport: none: there is no such sandbox\n"
              "`sallyport status` lists them\n", out)
        check([s[:2] for s in d.seen] ==
              [("DELETE", "/v1/sandboxes/" + n) for n in ("a", "none", "b")],
              d.seen)


def test_status():
    with daemon() as d:
        out = run("status")
        check(out.returncode == 0 and "There is no sandbox" in out.stdout, out)
        d.sandboxes = {
            "a": sandbox("a"),
            "longer-name": sandbox(
                "longer-name", state="failed", why="no " + ESCAPES,
                policy={"text": "x" * 200 + ESCAPES, "digest": ""},
                counts={}),
        }
        out = run("status")
        lines = out.stdout.splitlines()
        check(len(lines) == 3 and lines[0].split() == [
            "NAME", "STATE", "POLICY", "SINCE", "ALLOWED", "REFUSED", "UP",
            "DOWN"], out)
        check(len({len(line) for line in lines}) == 1, out)
        check(lines[1].split()[:3] == ["a", "ready", "t.yaml"] and
              lines[1].split()[-6:] == ["1,234", "2", "999", "B", "1.5",
                                        "MB"], out)
        check("xxx..." in lines[2] and lines[2].endswith("0 B"), out)
        out = run("status", "longer-name")
        check(out.returncode == 0 and "state      failed\n" in out.stdout and
              "why        no ?]0;x" in out.stdout, out)
        for char in "\x1b\x07\u202e\u009b":
            check(char not in out.stdout, out)
        out = run("status", "a")
        for line in ("name       a\n", "log        /nowhere\n",
                     "verdicts   1,234 allowed, 2 refused\n",
                     "boundary   held\n", "made       2023-11-14 22:13:20 UTC"):
            check(line in out.stdout, (line, out.stdout))
        out = run("status", "--json")
        check(json.loads(out.stdout)["sandboxes"] ==
              list(d.sandboxes.values()), out)
        check(out.stdout.count("\n") == 1 and out.stdout.isascii(), out)
        failed(run("status", "none"), "none: there is no such sandbox")


def test_policy():
    write("one.yaml", "version: 1\nallow: [one.example]\n")
    write("two.yaml", "version: 1\nallow: [two.example]\n")
    with daemon() as d:
        d.sandboxes = {"a": sandbox("a")}
        out = run("policy", "a", "one.yaml", "--policy", "two.yaml")
        check(out.returncode == 0 and
              out.stdout == "a: t.yaml (sha256:cdcdcdcdcdcd)\n", out)
        method, path, body = d.seen.pop()
        check((method, path) == ("PUT", "/v1/sandboxes/a/policy"), path)
        check(len(parts(body["bundle"])) == 2 and "name" not in body, body)
        # Another change is on its way, and then it is there.
        busy = [(409, {"error": "busy"})] * 2
        route = d.route
        d.route = lambda *a: busy.pop() if busy else route(*a)
        check(run("policy", "a", "one.yaml").returncode == 0, "asked again")
        check(not busy and len(d.seen) == 3, d.seen)
        d.canned = 422, {"error": "policy.yaml:1:1: bad", "hint": "try this"}
        failed(run("policy", "a", "one.yaml"),
               "a: policy.yaml:1:1: bad\ntry this\n")


def test_reload():
    with daemon() as d:
        out = run("reload")
        check(out.returncode == 0 and "in force" in out.stdout, out)
        check(d.seen.pop()[:2] == ("POST", "/v1/reload"), d.seen)
        d.sandboxes = {"a": sandbox("a"), "n": sandbox("n", policy={
            "name": "agent", "text": "/etc/agent.yaml", "digest": "ef" * 32})}
        failed(run("reload", "a"), "came as contents", "sallyport policy a")
        out = run("reload", "n")
        check(out.returncode == 0 and "/etc/agent.yaml" in out.stdout, out)
        check(d.seen.pop() == ("PUT", "/v1/sandboxes/n/policy",
                               {"policy_name": "agent"}), d.seen)
        failed(run("reload", "--daemon", "none"), "no such sandbox")
        d.canned = 422, {"error": "daemon.yaml:2:1: unknown key"}
        out = run("reload", "--daemon")
        check(out.returncode == 1 and "daemon.yaml:2:1" in out.stderr, out)
        d.canned = 403, {"error": "that is for root"}
        failed(run("reload", "--daemon"), "that is for root")


def test_odd_answers():
    with daemon() as d:
        for canned, word in (
                ((200, b""), "nothing that can be read"),
                ((200, b"[]"), "nothing that can be read"),
                ((200, b'{"a":1,"a":2}'), "nothing that can be read"),
                ((500, b"<h1>Internal</h1>"), "answers 500"),
                ((418, {}), "the daemon answers 418"),
                ((404, {"error": 7}), "the daemon answers 404"),
                ((403, {"error": "no" + ESCAPES}), "no?]0;x?")):
            d.canned = canned
            failed(run("status", "a"), word)
        d.canned = 200, {"sandboxes": {"not": "a list"}}
        check(run("status").returncode == 0, "nothing in it")


def test_exec_asks_first():
    """Nothing of this may run a command."""
    with daemon() as d:
        argv = ["exec", "a", "--", "touch", os.getcwd() + "/ran"]
        failed(run(*argv), "a: there is no such sandbox")
        write("file", "")
        for more, word in (
                ({"state": "failed", "why": "it died"},
                 "a is not ready: failed: it died"),
                ({"state": "starting"}, "a is not ready: starting"),
                ({"state": None}, "its state is unknown"),
                ({"uid": "0"}, "does not say where it is"),
                ({"uid": -1}, "does not say where it is"),
                ({"gateway": "198.19.0"}, "does not say where it is"),
                ({"proxy_port": 65536 + 80}, "does not say where it is"),
                ({"proxy_port": 0}, "does not say where it is"),
                ({"netns": ""}, "namespace"),
                ({"netns": "x" * 5000}, "too long"),
                ({"netns": "relative/net"}, "namespace"),
                ({"netns": "/nowhere/net"}, "No such file"),
                ({"netns": os.getcwd() + "/file"}, "is no network namespace"),
                ({"netns": "/proc/self/ns/net"}, ""),
                ({"netns": "/dev/null"}, "is no network namespace"),
                ({"netns": os.getcwd()}, "is no network namespace")):
            d.sandboxes = {"a": sandbox("a", **more)}
            failed(run(*argv), word)
        check(not os.path.exists("ran"), "it ran")


def main():
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_")]
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        os.makedirs("home", mode=0o700)
        for name, test in tests:
            test()
            print("ok", name, flush=True)
        os.chdir("/")
    return 0 if len(tests) > 8 else 1


if __name__ == "__main__":
    sys.exit(main())
