# SPDX-License-Identifier: Apache-2.0
"""`sallyport daemon`: sandboxes that come and go, each with a policy of its own,
asked for over HTTP as a client would, and looked at from inside."""
import base64
import contextlib
import http.client
import json
import os
import pwd
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time

from harness import USER, check, descendants

OTHER = 34  # another ordinary user (backup)


class Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Daemon:
    """One, in directories of its own."""

    def __init__(self, case, config="version: 1\ngroup: www-data\n", env=None):
        self.case = case
        case.count += 1
        self.dir = f"{case.lab.dir}/daemon-{case.count}"
        os.mkdir(self.dir, 0o755)
        self.socket = self.dir + "/run/control.sock"
        self.err_path = self.dir + "/stderr"
        self.env = dict(os.environ, **(env or {}))
        self.configure(config)

    def configure(self, text):
        with open(self.dir + "/daemon.yaml", "w") as f:
            f.write(text)

    def argv(self):
        return [self.case.binary, "daemon", "--config",
                self.dir + "/daemon.yaml", "--state", self.dir + "/state",
                "--run", self.dir + "/run"]

    def start(self, ready=True):
        with open(self.err_path, "a") as err:
            self.process = subprocess.Popen(
                self.argv(), stdin=subprocess.DEVNULL, stderr=err, env=self.env)
        self.wait(lambda: self.answers(ready))
        return self

    def answers(self, ready):
        try:
            status, _ = self.ask("GET", "/readyz" if ready else "/healthz")
            return status == 200
        except OSError:
            return False

    def wait(self, condition, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return
            check(self.process.poll() is None, self.err())
            time.sleep(0.02)
        raise AssertionError("the daemon: " + self.err())

    def err(self):
        with open(self.err_path) as f:
            return f.read()

    def stop(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        return self.process.wait(60)

    def ask(self, method, path, body=None, headers=None):
        connection = Connection(self.socket)
        try:
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text.decode()

    def good(self, method, path, body=None):
        status, answer = self.ask(method, path, body)
        check(status in (200, 201), (status, answer, self.err()))
        return answer

    def create(self, name, *allow, **more):
        return self.good("POST", "/v1/sandboxes",
                         dict(name=name, policy=policy(*allow), **more))

    def remove(self, name):
        return self.good("DELETE", "/v1/sandboxes/" + name)

    def one(self, name):
        return self.good("GET", "/v1/sandboxes/" + name)


def policy(*allow):
    rows = "".join(f"  - \"{host}\"\n" for host in allow)
    return "version: 1\n" + ("allow:\n" + rows if rows else "")


@contextlib.contextmanager
def daemon(case, **kw):
    d = Daemon(case, **kw).start()
    try:
        yield d
    finally:
        if d.process.poll() is None:
            for s in d.good("GET", "/v1/sandboxes")["sandboxes"]:
                d.ask("DELETE", "/v1/sandboxes/" + s["name"])
            check(d.stop() == 0, d.err())
            check("Sanitizer" not in d.err(), d.err())


@contextlib.contextmanager
def user(uid=USER):
    """This process, as an ordinary user, to whoever asks the kernel."""
    groups = os.getgroups()
    os.setgroups([])
    os.setresgid(-1, uid, 0)
    os.setresuid(-1, uid, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)


def inside(s, *argv, timeout=30):
    """Runs a command in a sandbox's namespace as its owner could."""
    into = ["nsenter", "--net=" + s["netns"]]
    # What a resolver of the machine would be asked.
    return subprocess.run([*into, *argv], capture_output=True, text=True,
                          timeout=timeout)


def fetch(s, host, proxy=True):
    via = ["-x", f"http://{s['gateway']}:{s['proxy_port']}"] if proxy else []
    run = inside(s, "curl", "-s", "-m", "10", *via, f"http://{host}/index.html")
    return "hello from the lab" in run.stdout


def resolve(s, host):
    """The address that @host has in there."""
    run = inside(s, "dig", "+short", "+time=3", "+tries=1", "@" + s["gateway"],
                 host)
    # dig writes its complaints to the same place, as comments.
    return "".join(line for line in run.stdout.splitlines()
                   if not line.startswith(";")).strip()


def reaches(s, host):
    """By the address that its name has inside, without a proxy."""
    address = resolve(s, host)
    if not address.startswith("198.18."):
        return False
    run = inside(s, "curl", "-s", "-m", "10", "-H", f"Host: {host}",
                 f"http://{address}/index.html")
    return "hello from the lab" in run.stdout


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
        s = d.create("short", "allowed.test", timeout_s=2)
        process = subprocess.Popen(["nsenter", "--net=" + s["netns"], "sleep",
                                    "600"])
        d.wait(lambda: d.ask("GET", "/v1/sandboxes/short")[0] == 404)
        check(process.wait(10) == -signal.SIGKILL)
        check(not os.path.exists(s["netns"]))
        with open(s["log"] + "/audit.jsonl") as f:
            check("session" in f.read())


# --- what comes back --------------------------------------------------------

def killed(case, sig):
    with daemon(case) as d:
        s = d.create("stays", "allowed.test", "*.wild.test")
        first = resolve(s, "www.wild.test"), resolve(s, "allowed.test")
        check(all(a.startswith("198.18.") for a in first), first)
        keepers = [p for p in descendants(d.process.pid)]
        runs = subprocess.Popen(["nsenter", "--net=" + s["netns"], "sleep",
                                 "600"])
        try:
            d.stop(sig)
            end = time.monotonic() + 5
            while any(os.path.exists(f"/proc/{p}") for p in keepers) and \
                    time.monotonic() < end:
                time.sleep(0.05)
            check(not any(os.path.exists(f"/proc/{p}") for p in keepers))
            # Away: nothing.
            check(not fetch(s, "allowed.test") and not resolve(s, "allowed.test"))
            check(os.path.exists(s["netns"]))
            d.start()
            now = d.one("stays")
            check(now["session"] != s["session"] and now["made"] == s["made"])
            check(reaches(s, "allowed.test"), d.err())
            again = resolve(s, "www.wild.test"), resolve(s, "allowed.test")
            check(again == first, (first, again))
            check(runs.poll() is None, "what ran inside did not run on")
        finally:
            runs.kill()
            runs.wait()


def test_killed_daemon(case):
    killed(case, signal.SIGKILL)


def test_stopped_daemon(case):
    killed(case, signal.SIGTERM)


def test_namespace_gone(case):
    """As after a reboot: the state is there, the namespace is not."""
    with daemon(case) as d:
        s = d.create("gone", "allowed.test")
        d.stop(signal.SIGKILL)
        subprocess.run(["umount", s["netns"]], check=True)
        d.start()
        check(d.ask("GET", "/v1/sandboxes/gone")[0] == 404, d.err())
        check("namespace is gone" in d.err(), d.err())
        check(os.listdir(d.dir + "/state/sandboxes") == [])
        check(os.listdir(d.dir + "/run/netns") == [])
        d.create("gone", "allowed.test")


def test_keeper_killed(case):
    """Another one takes its place; the fourth in a minute does not come."""
    with daemon(case) as d:
        s = d.create("k", "allowed.test")
        for i in range(3):
            before = d.one("k")["session"]
            for pid in descendants(d.process.pid):
                with open(f"/proc/{pid}/cmdline") as f:
                    if "\0keeper\0" in f.read():
                        os.kill(pid, signal.SIGKILL)
            if i < 2:
                d.wait(lambda: d.one("k")["session"] != before
                       and d.one("k")["state"] == "ready")
                check(reaches(s, "allowed.test"), d.err())
        d.wait(lambda: d.one("k")["state"] == "failed")
        check(not fetch(s, "allowed.test"))
        check(d.one("k")["why"], d.one("k"))
        d.remove("k")


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


def test_one_instance(case):
    with daemon(case) as d:
        second = subprocess.run(d.argv(), capture_output=True, text=True,
                                timeout=20)
        check(second.returncode == 125 and "another daemon" in second.stderr,
              second)
        check(d.answers(True))
    run = subprocess.run(["setpriv", "--reuid", str(USER), "--regid", str(USER),
                          "--clear-groups", case.binary, "daemon"],
                         capture_output=True, text=True, timeout=20)
    check(run.returncode == 125 and "root" in run.stderr, run)


def test_fair_start(case):
    """One user's queue is not before everybody else."""
    with daemon(case) as d:
        waiting = []
        for i in range(40):
            c = Connection(d.socket)
            c.request("POST", "/v1/sandboxes", json.dumps(
                {"name": f"many-{i}", "policy": policy()}))
            waiting.append(c)
        with user():
            d.create("one")
        states = [s["state"] for s in
                  d.good("GET", "/v1/sandboxes")["sandboxes"]]
        check(len(states) == 41 and states.count("starting") > 20, states)
        for c in waiting:
            check(c.getresponse().status == 201, d.err())
            c.close()


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
            end = time.monotonic() + 10
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


# --- bad input --------------------------------------------------------------

def test_bad_requests(case):
    with daemon(case) as d:
        good = {"name": "n", "policy": policy()}
        rows = [
            (400, "not JSON", b"{"), (400, "no body", b""),
            (400, "object", b"[]"), (400, "duplicate", b'{"name":"a","name":"b"}'),
            (400, "unknown key", dict(good, polcy="x")),
            (400, "'name' is missing", {"policy": policy()}),
            (400, "'name' is a text", dict(good, name=7)),
            (400, "timeout_s", dict(good, timeout_s=0)),
            (400, "timeout_s", dict(good, timeout_s="1h")),
            (400, "use one", dict(good, policy_name="x")),
            (400, "base64", {"name": "n", "bundle": "AAA"}),
            (400, "base64", {"name": "n", "bundle": "A=AA"}),
            (400, "address", dict(good, publish=[
                {"address": "x", "port": 1, "inside": 1}])),
            (400, "'port'", dict(good, publish=[{"port": 0, "inside": 1}])),
            (400, "missing", dict(good, publish=[{"port": 1}])),
            (422, "a name has", dict(good, name="../x")),
            (422, "a name has", dict(good, name="A")),
            (422, "a name has", dict(good, name="x/y")),
            (422, "a name has", dict(good, name="..")),
            (422, "containers", dict(good, name="docker-0123456789ab")),
            (422, "no policy", {"name": "n"}),
            (422, "policy:1:1", {"name": "n", "policy": ""}),
            (413, "longer", {"name": "n", "policy": "#" * (1 << 20) + "##"}),
        ]
        # Their tree would be a hundred times as long.
        rows += [(413, "values", b"[" + b"[]," * (10 << 20) + b"[]]"),
                 (413, "values", b'{"name":"' + b'\\"' * 3 + b'","x":[' +
                  b'"[",' * 2000 + b"1]}"),
                 (400, "unknown key", b'{"x":"' + b"[{," * 2000 + b'"}')]
        for status, word, body in rows:
            got, answer = d.ask("POST", "/v1/sandboxes", body)
            check(got == status and word in answer["error"],
                  (status, word, got, answer))
        for method, path, status in (
                ("GET", "/", 404), ("GET", "/v1/sandboxes/../x", 404),
                ("GET", "/v1/sandboxes/", 404), ("PUT", "/healthz", 405),
                ("GET", "/v1/sandboxes/a%00b", 404),
                ("GET", "/v1/sandboxes/" + "a" * 70, 404),
                ("PATCH", "/v1/sandboxes", 501)):
            got, _ = d.ask(method, path)
            check(got == status, (method, path, got))
        check(d.good("GET", "/v1/sandboxes") == {"sandboxes": []})
        check(d.ask("GET", "/metrics")[0] == 200)
        with open(f"/proc/{d.process.pid}/status") as f:
            peak, = [int(line.split()[1]) for line in f if "VmHWM" in line]
        # In KB: a body and its copies.
        check(peak < 400 << 10, peak)


def raw(d, data, timeout=5):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(timeout)
    s.connect(d.socket)
    s.sendall(data)
    return s


def rest(s):
    got = b""
    try:
        while more := s.recv(65536):
            got += more
    except (ConnectionError, TimeoutError):
        pass
    s.close()
    return got


def test_hostile_peers(case):
    """Long, half-sent, pipelined and many: bounded, and others are served."""
    with daemon(case) as d:
        line = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
        # Too long a header, too long a body, nonsense.
        s = raw(d, line)
        with contextlib.suppress(ConnectionError):
            s.sendall(b"X: " + b"a" * 100000 + b"\r\n\r\n")
        check(b"200 OK" not in rest(s))
        s = raw(d, b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\n"
                b"Content-Length: 900000000\r\n\r\n")
        check(b" 413 " in rest(s))
        for bad in (b"\0\1\2\r\n\r\n", b"GET\r\n\r\n", b"x" * 9000,
                    b"GET / HTTP/9.9\r\n\r\n",
                    b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                    b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999"
                    b"\r\n\r\n",
                    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                    b"ffffffffffffffff\r\n"):
            s = raw(d, bad, 2)
            s.shutdown(socket.SHUT_WR)
            check(b"200 OK" not in rest(s), bad)
        # Several requests at once are answered one after the other.
        s = raw(d, (line + b"\r\n") * 3 + line + b"Connection: close\r\n\r\n")
        check(rest(s).count(b"200 OK") == 4)
        post = json.dumps({"name": "p", "policy": policy()}).encode()
        s = raw(d, b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: "
                b"%d\r\n\r\n" % len(post) + post + line
                + b"Connection: close\r\n\r\n", 20)
        got = rest(s)
        check(b"201 Created" in got and b"200 OK" in got, got)
        # One who asks and does not wait.
        raw(d, b"DELETE /v1/sandboxes/p HTTP/1.1\r\nHost: x\r\n\r\n").close()
        d.wait(lambda: d.ask("GET", "/v1/sandboxes/p")[0] == 404)
        # Many of one user, each half-sent: others still get in.
        with user():
            held = []
            for _ in range(40):
                # Who is refused may be so before the first byte.
                with contextlib.suppress(BrokenPipeError):
                    held.append(raw(d, line))
            time.sleep(0.3)
            alive = 0
            for s in held:
                s.setblocking(False)
                try:
                    alive += s.recv(1) != b""
                except BlockingIOError:
                    alive += 1
                except ConnectionError:
                    pass
            check(alive == 16, alive)
        check(d.ask("GET", "/healthz")[0] == 200)
        for s in held:
            s.close()
        time.sleep(0.5)
        with user():
            check(d.ask("GET", "/healthz")[0] == 200)
        check(d.process.poll() is None)


def test_slow_peer(case):
    """A byte now and then keeps nothing open: there are 30 s a request."""
    with daemon(case) as d:
        s = raw(d, b"GET /healthz HTTP/1.1\r\nX: ", 60)
        began = time.monotonic()
        closed = False
        while time.monotonic() - began < 45 and not closed:
            time.sleep(1)
            try:
                s.sendall(b"a")
            except OSError:
                closed = True
        took = time.monotonic() - began
        check(closed and 25 < took < 36, took)


def test_held_bytes(case):
    """What one user may make us hold is limited in all, not for each."""
    with daemon(case) as d:
        head = (b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\n"
                b"Content-Length: 80000000\r\n\r\n")
        block = b" " * (1 << 20)
        held, cut = [], 0
        with user():
            for _ in range(4):
                s = raw(d, head, 10)
                held.append(s)
                try:
                    for _ in range(60):
                        s.sendall(block)
                except OSError:
                    cut += 1
        with open(f"/proc/{d.process.pid}/status") as f:
            rss = [int(x.split()[1]) for x in f if x.startswith("VmRSS")][0]
        check(cut >= 2 and rss < 200 << 10, (cut, rss))
        for s in held:
            s.close()


def test_file_limit(case):
    """As many open files as it is let have; and it says if they are few."""
    d = Daemon(case)
    plain = d.argv()
    d.argv = lambda: ["prlimit", "--nofile=200:400", "setpriv",
                      "--inh-caps=-sys_resource",
                      "--bounding-set=-sys_resource", *plain]
    d.start()
    with open(f"/proc/{d.process.pid}/limits") as f:
        row = [x.split() for x in f if x.startswith("Max open files")][0]
    check(row[3:5] == ["400", "400"], row)
    check("no more than 400 files" in d.err(), d.err())
    check(d.create("few", "allowed.test")["state"] == "ready", d.err())
    d.remove("few")
    check(d.stop() == 0, d.err())
    # Where it may, it takes what it needs: whoever started it asked for less.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    d.argv = lambda: ["prlimit", "--nofile=200:", *plain]
    d.start()
    with open(f"/proc/{d.process.pid}/limits") as f:
        row = [x.split() for x in f if x.startswith("Max open files")][0]
    check(int(row[3]) >= min(hard, 9000) > 200, (row, hard))
    check(d.stop() == 0, d.err())


# --- nothing is left --------------------------------------------------------

def left(d):
    fds = len(os.listdir(f"/proc/{d.process.pid}/fd"))
    with open("/proc/self/mountinfo") as f:
        mounts = sum(d.dir in line for line in f)
    links = len(subprocess.run(["ip", "-o", "link"], capture_output=True,
                               text=True).stdout.splitlines())
    return {"children": len(descendants(d.process.pid)), "fds": fds,
            "mounts": mounts, "links": links,
            "state": os.listdir(d.dir + "/state/sandboxes"),
            "netns": os.listdir(d.dir + "/run/netns"),
            "user": os.listdir(d.dir + "/run/user")}


def test_fifty_cycles(case):
    with daemon(case) as d:
        def cycle(i):
            d.create(f"c{i}", "allowed.test")
            d.remove(f"c{i}")
        cycle(0)
        with user():
            cycle(1)
        time.sleep(0.5)
        before = left(d)
        for i in range(50):
            if i % 5:
                cycle(i)
                continue
            with user():
                cycle(i)
        d.wait(lambda: left(d) == before, 10)


def test_many_at_once(case):
    """Sixty asked for at once are a queue, and whoever asks meanwhile is
    answered; after a kill all of them come back."""
    n = 60
    with daemon(case) as d:
        results, slowest = [], 0
        threads = [threading.Thread(target=lambda i=i: results.append(
            d.ask("POST", "/v1/sandboxes",
                  {"name": f"m{i}", "policy": policy("allowed.test")})[0]))
            for i in range(n)]
        began = time.monotonic()
        for t in threads:
            t.start()
        while any(t.is_alive() for t in threads):
            asked = time.monotonic()
            check(d.ask("GET", "/healthz")[0] == 200)
            slowest = max(slowest, time.monotonic() - asked)
            time.sleep(0.02)
        made = time.monotonic() - began
        check(results == [201] * n, results)
        d.stop(signal.SIGKILL)
        began = time.monotonic()
        d.start()
        back = time.monotonic() - began
        all_of_them = d.good("GET", "/v1/sandboxes")["sandboxes"]
        check(len(all_of_them) == n
              and all(s["state"] == "ready" for s in all_of_them))
        for s in all_of_them[::20]:
            check(reaches(s, "allowed.test"), d.err())
        print(f"        {n} made in {made:.2f} s, back after a kill in "
              f"{back:.2f} s; the slowest other answer {slowest * 1000:.0f} ms")
        check(slowest < (5 if case.sanitized else 2), slowest)


# --- systemd ----------------------------------------------------------------

# Listens as systemd would, and becomes the daemon with that socket.
ACTIVATE = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(16)
os.dup2(s.fileno(), 3); os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1",
                  LISTEN_FDNAMES="control", WATCHDOG_PID=str(os.getpid()),
                  WATCHDOG_USEC="400000")
os.execv(sys.argv[2], sys.argv[2:])
"""


def test_systemd(case):
    """A socket that was there before, and words at the right moments."""
    d = Daemon(case)
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(d.dir + "/notify")
    notify.settimeout(20)
    d.env["NOTIFY_SOCKET"] = d.dir + "/notify"
    os.mkdir(d.dir + "/passed")
    d.socket = d.dir + "/passed/control.sock"
    plain = d.argv()
    d.argv = lambda: ["python3", "-c", ACTIVATE, d.socket, *plain]
    d.start()
    check(notify.recv(200) == b"READY=1")
    check(not os.path.exists(d.dir + "/run/control.sock"))
    for _ in range(3):
        check(notify.recv(200) == b"WATCHDOG=1")

    def next_word():
        while (word := notify.recv(200)) == b"WATCHDOG=1":
            pass
        return word
    d.process.send_signal(signal.SIGHUP)
    check(next_word().startswith(b"RELOADING=1\nMONOTONIC_USEC="))
    check(next_word() == b"READY=1")
    d.create("s", "allowed.test")
    # A daemon that stands still is not one that works.
    d.process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    notify.setblocking(False)
    try:
        while True:
            notify.recv(200)
    except BlockingIOError:
        pass
    time.sleep(1)
    try:
        check(False, notify.recv(200))
    except BlockingIOError:
        pass
    notify.settimeout(20)
    d.process.send_signal(signal.SIGCONT)
    check(notify.recv(200) == b"WATCHDOG=1")
    check(d.remove("s")["held"] == "held")
    d.process.send_signal(signal.SIGTERM)
    check(next_word() == b"STOPPING=1")
    check(d.process.wait(20) == 0, d.err())
    check(os.path.exists(d.socket), "systemd's socket is systemd's")


# --- what does not move -----------------------------------------------------

def keepers(d):
    found = []
    for pid in descendants(d.process.pid):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline") as f:
                if f.read().split("\0")[1:2] == ["keeper"]:
                    found.append(pid)
    return found


def test_stuck_keeper(case):
    """One that stands still holds up nobody, and is killed in the end."""
    with daemon(case) as d:
        s = d.create("stuck", "allowed.test")
        os.kill(keepers(d)[0], signal.SIGSTOP)
        began = time.monotonic()
        d.create("other", "allowed.test")
        check(fetch(d.one("other"), "allowed.test"))
        check(time.monotonic() - began < 10)
        answer = d.remove("stuck")
        took = time.monotonic() - began
        check(took < 45 and "receipt" not in answer, (took, answer))
        check(not os.path.exists(s["netns"]))
        check(fetch(d.one("other"), "allowed.test"))


# Holds a process of a sandbox as a debugger does: it does not die when killed.
HOLD = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1])
assert libc.ptrace(0x4206, pid, 0, 0x40) == 0  # SEIZE, PTRACE_O_TRACEEXIT
print("held", flush=True)
time.sleep(600)
"""


def test_process_that_does_not_die(case):
    """It holds up its own sandbox for a while, and nobody else."""
    with daemon(case) as d:
        s = d.create("held", "allowed.test")
        victim = subprocess.Popen(["nsenter", "--net=" + s["netns"], "sleep",
                                   "600"])
        case.lab.wait(lambda: os.readlink(f"/proc/{victim.pid}/ns/net")
                      != os.readlink("/proc/self/ns/net"), "nsenter")
        holder = subprocess.Popen(["python3", "-c", HOLD, str(victim.pid)],
                                  stdout=subprocess.PIPE, text=True)
        try:
            check(holder.stdout.readline() == "held\n")
            answers = []
            ends = threading.Thread(
                target=lambda: answers.append(d.remove("held")))
            ends.start()
            time.sleep(0.2)
            began = time.monotonic()
            for _ in range(20):
                check(d.ask("GET", "/healthz")[0] == 200)
            check(time.monotonic() - began < 1, "the daemon waited for it")
            ends.join(30)
            check(answers and not os.path.exists(s["netns"]), d.err())
            check("does not die" in d.err(), d.err())
        finally:
            holder.kill()
            holder.wait()
            victim.wait()
