# SPDX-License-Identifier: Apache-2.0
"""`sallyport daemon` where something takes its time: whoever asks for it waits
for himself, and nobody else does; and what is refused, or killed in between,
leaves nobody with more than he had."""
import base64
import contextlib
import json
import os
import signal
import subprocess
import threading
import time

from daemon_lab import Daemon, daemon, OTHER, policy, resolve, user
from harness import check, prompt, within

LONG = 60 << 20


def part(kind, origin, text):
    """The bytes of policy/bundle.h."""
    return (bytes([kind]) + len(origin).to_bytes(2, "big")
            + len(text).to_bytes(4, "big") + origin + text)


def ran(d):
    """Seconds that the loop was on a processor: others may use it, too."""
    with open(f"/proc/{d.process.pid}/task/{d.process.pid}/schedstat") as f:
        return int(f.read().split()[0]) / 1e9


class Pulse:
    """How long the daemon kept somebody waiting who asks for next to nothing."""

    def __init__(self, d):
        self.d, self.over, self.worst, self.times = d, False, 0, 0
        self.thread = threading.Thread(target=self.beat)

    def beat(self):
        while not self.over:
            began = time.monotonic()
            check(self.d.ask("GET", "/healthz")[0] == 200)
            self.worst = max(self.worst, time.monotonic() - began)
            self.times += 1
            time.sleep(0.01)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()


@prompt
def test_long_policy(case):
    """Tens of megabytes are none of the loop's work."""
    with daemon(case) as d:
        bad = json.dumps({"name": "bad", "bundle": "A" * (LONG // 3 * 4)})
        before = ran(d)
        status, answer = d.ask("POST", "/v1/sandboxes", bad.encode())
        took = ran(d) - before
        check(status in (400, 422), (status, answer))
        print(f"    {LONG >> 20} MB: the loop {took * 1000:.0f} ms")
        within(0.6, took)
        check(d.good("GET", "/v1/sandboxes")["sandboxes"] == [])


def test_room(case):
    """What one user has sent is bounded, whatever it is spread over."""
    config = ("version: 1\ngroup: www-data\n"
              "limits: { policy_bytes_per_user: 4 MB }\n")
    with daemon(case, config=config) as d:
        files = [part(1, b"mine.yaml", policy("allowed.test").encode())]
        files += [part(7, b"long%d" % i, (b"#" * 999 + b"\n") * 300)
                  for i in range(3)]
        bundle = b"".join(files)
        text = base64.b64encode(bundle).decode()
        sent = 0
        while sent < 6:
            with user():
                body = json.dumps({"name": f"n{sent}", "bundle": text})
                status, answer = d.ask("POST", "/v1/sandboxes", body.encode())
            if status != 201:
                break
            sent += 1
        check(status == 503 and "4000000 bytes" in answer["error"],
              (status, answer))
        check(sent == 4000000 // len(bundle) == 4, (sent, d.err()))
        # Another one in its place has room, a longer one has not.
        with user():
            status, answer = d.ask("PUT", "/v1/sandboxes/n0/policy",
                                   {"bundle": text})
            check(status == 200, (status, answer, d.err()))
            longer = base64.b64encode(bundle + part(
                7, b"more", b"#" * 400000)).decode()
            status, answer = d.ask("PUT", "/v1/sandboxes/n0/policy",
                                   {"bundle": longer})
        check(status == 503 and "policy_bytes_per_user" in answer["error"],
              (status, answer))


# Stops whoever has its effective uid, as soon as there is somebody.
STOPPER = """
import os, signal, sys, time
print("ready", flush=True)
mine = os.getpid()
while True:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == mine: continue
        try:
            if os.stat("/proc/" + pid).st_uid == os.getuid():
                os.kill(int(pid), signal.SIGSTOP)
            with open(f"/proc/{pid}/status") as f:
                uids = [l for l in f if l.startswith("Uid:")][0].split()[1:]
            if str(os.getuid()) in uids: os.kill(int(pid), signal.SIGSTOP)
        except (OSError, IndexError): pass
"""


@prompt
def test_slow_owner(case):
    """A user who stops whatever has his uid slows nobody else down."""
    with daemon(case) as d:
        stopper = subprocess.Popen(
            ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}",
             "--clear-groups", "python3", "-c", STOPPER],
            stdout=subprocess.PIPE, text=True)
        answers = []

        def ask(i):
            # As the peer is who has connected, in a process of its own.
            body = '{"name":"slow%d","policy":"version: 1"}' % i
            answers.append(subprocess.run(
                ["setpriv", f"--reuid={OTHER}", "--regid=33", "--clear-groups",
                 "curl", "-s", "-m", "60", "--unix-socket", d.socket, "-d",
                 body, "http://localhost/v1/sandboxes"],
                capture_output=True, text=True))
        try:
            check(stopper.stdout.readline() == "ready\n")
            slow = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
            with Pulse(d) as pulse:
                for thread in slow:
                    thread.start()
                began = time.monotonic()
                for i in range(5):
                    d.create(f"quick{i}")
                took = time.monotonic() - began
            stopper.send_signal(signal.SIGKILL)
            wake()
            for thread in slow:
                thread.join(60)
        finally:
            stopper.kill()
            stopper.wait()
            wake()
        print(f"    five others: {took:.2f} s; the loop: "
              f"{pulse.worst * 1000:.0f} ms at most")
        within(5, took, d.err())
        within(1, pulse.worst, d.err())
        # Each of his is there, or is not, and is known as that.
        d.wait(lambda: set(os.listdir(d.dir + "/run/netns")) == {
            s["name"] for s in d.good("GET", "/v1/sandboxes")["sandboxes"]
            if s["state"] == "ready"})


def wake():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/status") as f:
                text = f.read()
            if f"\nUid:\t{OTHER}\t" in text:
                os.kill(int(pid), signal.SIGCONT)


def test_full_disk(case):
    """What can't be kept is not made, and a narrower policy that can't be
    kept is not said to be."""
    d = Daemon(case)
    os.mkdir(d.dir + "/state")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs",
                    d.dir + "/state"], check=True)
    d.start()
    try:
        d.create("one", "allowed.test", "other.test")
        digest = d.one("one")["policy"]["digest"]
        with contextlib.suppress(OSError), open(d.dir + "/state/full",
                                                "wb", 0) as f:
            while f.write(bytes(4096)):
                pass
        status, answer = d.ask("POST", "/v1/sandboxes",
                               {"name": "two", "policy": policy()})
        check(status >= 500 and "state" in answer["error"], (status, answer))
        status, answer = d.ask("PUT", "/v1/sandboxes/one/policy",
                               {"policy": policy("allowed.test")})
        check(status >= 500 and "state" in answer["error"], (status, answer))
        check(d.one("one")["policy"]["digest"] == digest)
        # Room for the policy, and none for what goes with it.
        os.truncate(d.dir + "/state/full",
                    os.path.getsize(d.dir + "/state/full") - 4096)
        status, answer = d.ask("PUT", "/v1/sandboxes/one/policy",
                               {"policy": policy("allowed.test")})
        check(status >= 500 and "a restart will not know" in answer["error"],
              (status, answer))
        os.unlink(d.dir + "/state/full")
        d.stop(signal.SIGKILL)
        d.start()
        check(d.one("one")["policy"]["digest"] == digest)
        check(resolve(d.one("one"), "other.test") != "")
        check(os.listdir(d.dir + "/run/netns") == ["one"])
        d.good("PUT", "/v1/sandboxes/one/policy",
               {"policy": policy("allowed.test")})
        d.stop(signal.SIGKILL)
        d.start()
        check(resolve(d.one("one"), "other.test") == "")
        check(resolve(d.one("one"), "allowed.test") != "")
        d.remove("one")
    finally:
        d.stop()
        subprocess.run(["umount", "-l", d.dir + "/state"])


def test_killed_in_between(case):
    """kill -9 at any time: whoever was told that a policy is narrower has that
    afterwards, and what nobody was told of leaves nothing."""
    d = Daemon(case).start()
    try:
        d.create("kept", "allowed.test", "other.test")
        for i in range(8):
            wide, told = i % 2 == 0, []
            hosts = ["allowed.test"] + (["other.test"] if wide else [])

            def ask():
                with contextlib.suppress(OSError):
                    told.append(d.ask("PUT", "/v1/sandboxes/kept/policy",
                                      {"policy": policy(*hosts)})[0])
                with contextlib.suppress(OSError):
                    d.ask("POST", "/v1/sandboxes",
                          {"name": f"new{i}", "policy": policy()})
            thread = threading.Thread(target=ask)
            thread.start()
            time.sleep(0.01 * i)
            d.stop(signal.SIGKILL)
            thread.join()
            d.start()
            if told == [200]:
                check((resolve(d.one("kept"), "other.test") != "") == wide,
                      (i, d.err()))
            names = {s["name"] for s in
                     d.good("GET", "/v1/sandboxes")["sandboxes"]}
            check(set(os.listdir(d.dir + "/run/netns")) == names ==
                  set(os.listdir(d.dir + "/state/sandboxes")), (names, i))
            for name in names - {"kept"}:
                d.remove(name)
        d.remove("kept")
    finally:
        d.stop()
