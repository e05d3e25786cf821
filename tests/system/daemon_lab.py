# SPDX-License-Identifier: Apache-2.0
"""A daemon in directories of its own, and clients of it."""
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import time

from harness import check, descendants, USER

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
        self.wait(lambda: self.answers(ready), 120)
        return self

    def answers(self, ready):
        try:
            status, _ = self.ask("GET", "/readyz" if ready else "/healthz")
            return status == 200
        except OSError:
            return False

    def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return
            check(self.process.poll() is None, self.err())
            time.sleep(0.02)
        raise AssertionError("the daemon: " + self.err())

    def wait_gone(self, pids, seconds=30):
        """None of its processes is there any more; it may be gone, too."""
        end = time.monotonic() + seconds
        while any(os.path.exists(f"/proc/{p}") for p in pids):
            check(time.monotonic() < end, self.err())
            time.sleep(0.02)

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


def inside(s, *argv, timeout=90):
    """Runs a command in a sandbox's namespace as its owner could."""
    into = ["nsenter", "--net=" + s["netns"]]
    # What a resolver of the machine would be asked.
    return subprocess.run([*into, *argv], capture_output=True, text=True,
                          timeout=timeout)


def fetch(s, host, proxy=True):
    via = ["-x", f"http://{s['gateway']}:{s['proxy_port']}"] if proxy else []
    run = inside(s, "curl", "-s", "-m", "20", *via, f"http://{host}/index.html")
    return "hello from the lab" in run.stdout


def resolve(s, host):
    """The address that @host has in there."""
    run = inside(s, "dig", "+short", "+time=15", "+tries=1", "@" + s["gateway"],
                 host)
    # dig writes its complaints to the same place, as comments.
    return "".join(line for line in run.stdout.splitlines()
                   if not line.startswith(";")).strip()


def reaches(s, host):
    """By the address that its name has inside, without a proxy."""
    address = resolve(s, host)
    if not address.startswith("198.18."):
        return False
    run = inside(s, "curl", "-s", "-m", "20", "-H", f"Host: {host}",
                 f"http://{address}/index.html")
    return "hello from the lab" in run.stdout


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


# --- what does not move -----------------------------------------------------


def open_files(pid):
    """What it has open; some of that, or all, may be closed meanwhile."""
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                yield os.readlink(f"/proc/{pid}/fd/{fd}")


def keepers(d):
    found = []
    for pid in descendants(d.process.pid):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline") as f:
                if f.read().split("\0")[1:2] == ["keeper"]:
                    found.append(pid)
    return found
