# SPDX-License-Identifier: Apache-2.0
"""The commands that talk to a daemon, with a daemon: as root, and as a user of
its group."""
import contextlib
import json
import os
import re
import signal
import subprocess
import time

from harness import USER, check, silent
from daemon_lab import Daemon

CONFIG = """version: 1
group: www-data
policies:
  agent: %s
"""


class Clients:
    """A daemon, and its commands as they are typed in."""

    def __init__(self, case):
        self.case = case
        self.named = f"{case.lab.dir}/agent-{case.who}.yaml"
        self.write(self.named, "other.test")
        self.daemon = Daemon(case, CONFIG % self.named).start()

    def write(self, path, *hosts):
        with open(path, "w") as f:
            f.write("version: 1\nallow:\n" +
                    "".join(f"  - {host}\n" for host in hosts))
        os.chmod(path, 0o644)
        return path

    def file(self, name, *hosts):
        path = self.write(f"{self.case.lab.dir}/{name}-{self.case.who}.yaml",
                          *hosts)
        self.case.mine(path)
        return path

    def argv(self, *args, root=False):
        drop = [] if root else self.case.drop()
        return [*drop, self.case.binary, args[0], "--socket",
                self.daemon.socket, *args[1:]]

    def run(self, *args, root=False, status=0, **kw):
        out = subprocess.run(self.argv(*args, root=root), text=True,
                             cwd=self.case.work, env=self.case.env(),
                             capture_output=True, stdin=subprocess.DEVNULL,
                             timeout=90, **kw)
        check(out.returncode == status, (out, self.daemon.err()))
        return out

    def start(self, *args):
        return subprocess.Popen(self.argv(*args), text=True,
                                cwd=self.case.work, env=self.case.env(),
                                stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE)

    def fetch(self, name, url, **kw):
        """What curl in the sandbox gets."""
        return self.run("exec", name, "--", "sh", "-c",
                        f"curl -s -m 60 {url}; true", **kw).stdout

    def reaches(self, name, host, **kw):
        """By the proxy, and by DNS and TLS of its own."""
        got = [self.fetch(name, url, **kw).startswith("hello from the lab")
               for url in (f"http://{host}/", f"https://{host}/",
                           f"--noproxy '*' https://{host}/")]
        check(len(set(got)) == 1, (host, got, self.daemon.err()))
        return got[0]

    def facts(self, name):
        return self.daemon.one(name)

    def names(self, **kw):
        out = self.run("status", "--json", **kw)
        return [s["name"] for s in json.loads(out.stdout)["sandboxes"]]


@contextlib.contextmanager
def clients(case):
    c = Clients(case)
    try:
        yield c
    finally:
        if c.daemon.process.poll() is None:
            _, answer = c.daemon.ask("GET", "/v1/sandboxes")
            for s in answer["sandboxes"]:
                c.daemon.ask("DELETE", "/v1/sandboxes/" + s["name"])
            c.daemon.stop()
        silent(case)


def test_life(case):
    with clients(case) as c:
        one, two = c.file("one", "allowed.test"), c.file("two", "other.test")
        out = c.run("create", "dev", "--policy", one)
        s = c.facts("dev")
        check(s["uid"] == (0 if case.who == "root" else USER), s)
        for text in ("dev is ready: ", s["log"], s["netns"]):
            check(text in out.stdout, (text, out))
        check(c.reaches("dev", "allowed.test"))
        check(not c.reaches("dev", "evil.test"))
        out = c.run("exec", "dev", "--", "readlink", "/proc/self/ns/net")
        check(out.stdout == f"net:[{os.stat(s['netns']).st_ino}]\n", out)
        # Another policy, at once.
        c.run("policy", "dev", two)
        check(c.reaches("dev", "other.test"))
        check(not c.reaches("dev", "allowed.test"))
        # A wrong one: the old stays.
        with open(one, "w") as f:
            f.write("version: 1\nalow: [allowed.test]\n")
        out = c.run("policy", "dev", one, status=125)
        check("unknown key 'alow'" in out.stderr, out)
        check(c.reaches("dev", "other.test"))
        out = c.run("rm", "dev")
        check(out.stdout.startswith("dev is gone; boundary: held; receipt: "),
              out)
        check(os.path.exists(out.stdout.split()[-1]), out)
        check(not os.path.exists(s["netns"]), s)
        out = c.run("exec", "dev", "true", status=125)
        check("there is no such sandbox" in out.stderr, out)
        with open(s["log"] + "/audit.jsonl") as f:
            check("evil.test" in f.read(), s)


def test_status(case):
    with clients(case) as c:
        c.run("create", "a", "--allow", "allowed.test")
        c.run("create", "b", "--policy-name", "agent")
        check(c.reaches("a", "allowed.test") and not c.reaches("a",
                                                               "evil.test"))
        check(c.reaches("b", "other.test"))
        end = time.monotonic() + 60
        while c.facts("a")["counts"]["refused"] < 3:
            check(time.monotonic() < end, c.daemon.err())
            time.sleep(0.3)
        out = c.run("status")
        lines = out.stdout.splitlines()
        check(len(lines) == 3 and lines[1].startswith("a  ") and
              " ready " in lines[1] and " agent " in lines[2], out)
        check(int(lines[1].split()[-5]) >= 3, out)
        out = c.run("status", "a")
        check("policy     options\n" in out.stdout and
              "boundary   held\n" in out.stdout, out)


def test_many_commands(case):
    """At the same time, and all in the log."""
    with clients(case) as c:
        c.run("create", "dev", "--allow", "allowed.test", "--allow",
              "www.wild.test")
        running = [c.start("exec", "dev", "--", "curl", "-s", "-m", "20",
                           f"http://{host}/host")
                   for host in ("allowed.test", "www.wild.test") * 5]
        said = [p.communicate(timeout=60)[0] for p in running]
        check(said == ["allowed.test\n", "www.wild.test\n"] * 5, said)
        log = c.facts("dev")["log"]
        c.run("rm", "dev")
        with open(log + "/audit.jsonl") as f:
            records = [json.loads(line) for line in f]
        seen = [r for r in records if r.get("action_id") == 1 and
                r.get("dst_endpoint", {}).get("hostname") == "www.wild.test"]
        check(len(seen) >= 5, len(seen))


def test_statuses_and_signals(case):
    with clients(case) as c:
        c.run("create", "dev", "--allow", "allowed.test")
        c.run("exec", "dev", "sh", "-c", "exit 7", status=7)
        c.run("exec", "dev", "no-such-command", status=127)
        p = c.start("exec", "dev", "sh", "-c",
                    "trap 'exit 9' INT; echo up; while :; do sleep 0.05; done")
        check(p.stdout.readline() == "up\n")
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=30)
        check(p.returncode == 9, p.returncode)


def test_rm_ends_what_runs(case):
    with clients(case) as c:
        c.run("create", "dev", "--allow", "allowed.test")
        p = c.start("exec", "dev", "sh", "-c", "echo up; exec sleep 1000")
        check(p.stdout.readline() == "up\n")
        c.run("rm", "dev")
        p.communicate(timeout=30)
        check(p.returncode == 137, p.returncode)


def test_time_limit(case):
    with clients(case) as c:
        c.run("create", "dev", "--allow", "allowed.test", "--timeout", "10s")
        check(c.names() == ["dev"])
        end = time.monotonic() + 60
        while c.names():
            # Not c.facts(): it may be gone between the two.
            check(time.monotonic() < end, c.daemon.err())
            time.sleep(0.2)
        c.run("exec", "dev", "true", status=125)


def test_whose_they_are(case):
    """A user sees and changes only own sandboxes, and who is in no group none;
    root sees all, and may help."""
    with clients(case) as c:
        c.run("create", "mine", "--allow", "allowed.test")
        c.run("create", "roots", "--allow", "allowed.test", root=True)
        check(c.names(root=True) == ["mine", "roots"], c.names(root=True))
        if case.who == "user":
            check(c.names() == ["mine"], c.names())
            for argv in (["exec", "roots", "true"], ["rm", "roots"],
                         ["status", "roots"],
                         ["policy", "roots", "--allow", "evil.test"]):
                out = c.run(*argv, status=125)
                check("there is no such sandbox" in out.stderr, out)
            out = c.run("create", "roots", "--allow", "evil.test", status=125)
            out = c.run("reload", "--daemon", status=125)
            check("that is for root" in out.stderr, out)
            check(c.reaches("mine", "allowed.test", root=True))
            out = subprocess.run(
                ["setpriv", "--reuid", "34", "--regid", "34",
                 "--clear-groups", *c.argv("status", root=True)], text=True,
                capture_output=True)
            check(out.returncode == 125 and "Permission denied" in out.stderr
                  and "sallyport run" in out.stderr, out)
            # Nor does the namespace itself let anybody in.
            out = subprocess.run(
                ["setpriv", "--reuid", "34", "--regid", "34",
                 "--clear-groups", "nsenter", "--net=" +
                 c.facts("mine")["netns"], "true"], capture_output=True)
            check(out.returncode != 0, out)
        check(c.reaches("roots", "allowed.test", root=True))


def test_reload(case):
    """What the configuration names is read again, by root's word."""
    with clients(case) as c:
        c.run("create", "dev", "--policy-name", "agent")
        check(c.reaches("dev", "other.test"))
        c.write(c.named, "allowed.test")
        c.run("reload", "--daemon", root=True)
        # While the daemon gives it the same.
        c.run("reload", "--daemon", "dev")
        check(c.reaches("dev", "allowed.test"))
        check(not c.reaches("dev", "other.test"))
        c.write(c.named, "[")
        out = c.run("reload", "--daemon", root=True, status=1)
        check(c.named in out.stderr, out)
        check(c.reaches("dev", "allowed.test"))


def heard(process, word, seconds=60):
    """It says so, sooner or later."""
    end = time.monotonic() + seconds
    while process.stdout.readline() != word:
        check(time.monotonic() < end, word)


def test_daemon_killed(case):
    """While it is away nothing is reached; then the same sandbox is."""
    with clients(case) as c:
        c.run("create", "dev", "--allow", "allowed.test")
        check(c.reaches("dev", "allowed.test"))
        p = c.start("exec", "dev", "sh", "-c", "echo up; while :; do "
                    "curl -s -m 2 http://allowed.test/host || echo no; "
                    "sleep 0.1; done")
        check(p.stdout.readline() == "up\n")
        heard(p, "allowed.test\n")
        before = c.facts("dev")
        c.daemon.process.kill()
        c.daemon.process.wait()
        heard(p, "no\n")
        out = c.run("exec", "dev", "true", status=125)
        check("no daemon answers" in out.stderr, out)
        c.daemon.start()
        check(c.reaches("dev", "allowed.test"))
        after = c.facts("dev")
        check(before["netns"] == after["netns"] and
              before["session"] != after["session"], (before, after))
        # What was started before reaches it again, too.
        heard(p, "allowed.test\n")
        p.kill()
        p.communicate()


def metrics(c):
    status, text = c.daemon.ask("GET", "/metrics")
    check(status == 200, text)
    rows = dict(line.rsplit(" ", 1) for line in text.splitlines()
                if not line.startswith("#"))
    return {name: float(value) for name, value in rows.items()}


def test_metrics(case):
    """Counters go up, and stay where they are when a sandbox goes."""
    with clients(case) as c:
        c.run("create", "secret-name", "--allow", "allowed.test")
        check(c.reaches("secret-name", "allowed.test"))
        check(not c.reaches("secret-name", "evil.test"))
        refused = 'sallyport_refused_total{reason="not_in_policy"}'
        end = time.monotonic() + 60
        while metrics(c)[refused] < 3 or \
                metrics(c)['sallyport_verdicts_total{verdict="allowed"}'] < 3:
            check(time.monotonic() < end, metrics(c))
            time.sleep(0.3)
        before = metrics(c)
        check(before['sallyport_sandboxes{state="ready"}'] == 1, before)
        check(before['sallyport_boundary_held{held="held"}'] == 1, before)
        check(before["sallyport_audit_records_total"] > 5, before)
        check(not any("secret-name" in name or "evil" in name
                      for name in before), before)
        c.run("rm", "secret-name")
        after = metrics(c)
        check(after['sallyport_sandboxes{state="ready"}'] == 0, after)
        for name, value in before.items():
            if re.search("_total", name):
                check(after[name] >= value, (name, value, after[name]))
        out = subprocess.run(
            ["curl", "-s", "-i", "-H", "Accept: application/openmetrics-text",
             "--unix-socket", c.daemon.socket, "http://localhost/metrics"],
            capture_output=True, text=True)
        check("application/openmetrics-text; version=1.0.0" in out.stdout and
              out.stdout.endswith("\n# EOF\n"), out)


def test_curl(case):
    """The API's manual, as it is written."""
    with clients(case) as c:
        def curl(*args):
            out = subprocess.run(
                [*case.drop(), "curl", "-s", "--unix-socket", c.daemon.socket,
                 *args], text=True, capture_output=True, timeout=60)
            check(out.returncode == 0, out)
            return json.loads(out.stdout)
        all_of_them = "http://localhost/v1/sandboxes"
        s = curl(all_of_them, "-d", json.dumps({
            "name": "build", "timeout_s": 3600,
            "policy": "version: 1\nallow: [allowed.test]\n"}))
        check(s["state"] == "ready" and s["ends"] - s["made"] <= 3600, s)
        out = subprocess.run(
            ["nsenter", "--net=" + s["netns"], "curl", "-s", "-x",
             "http://198.19.0.1:3128", "http://allowed.test/host"],
            text=True, capture_output=True, timeout=60)
        check(out.stdout == "allowed.test\n", out)
        s = curl("-X", "PUT", all_of_them + "/build/policy", "-d",
                 '{"policy_name": "agent"}')
        check(s["policy"]["name"] == "agent", s)
        check(c.reaches("build", "other.test"))
        check(not c.reaches("build", "allowed.test"))
        s = curl("-X", "DELETE", all_of_them + "/build")
        check(s["held"] == "held" and s["whole"] is True, s)
        s = curl(all_of_them + "/build")
        check(s["error"] == "there is no such sandbox", s)
