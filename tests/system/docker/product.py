# SPDX-License-Identifier: Apache-2.0
"""`sallyport daemon` beside the engine, in the directories that it has on a real
machine (all of them the lab's own), and what containers try to do."""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import time

from engine import Engine, leftovers, steady
from lab import DNS, EVIL

CONTROL = "/run/sallyport/control.sock"

FILES = {
    "daemon.yaml": """
        version: 1
        policies:
          agent: /etc/sallyport/agent.yaml
          strict: /etc/sallyport/strict.yaml
        default_policy: agent
        docker: {enabled: true}
        """,
    "agent.yaml": "version: 1\nallow: [allowed.test]\n",
    "strict.yaml": "version: 1\nallow: [other.test]\n",
    "wrong.yaml": "version: 1\nalow: [other.test]\n",
}


class Control(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(CONTROL)


class Daemon:
    def __init__(self, lab):
        self.lab = lab
        self.binary = shutil.copy(os.environ["SALLYPORT_BINARY"], lab.dir)
        for name, text in FILES.items():
            self.write(name, text)
        self.err = open(lab.dir + "/daemon.err", "a")

    def write(self, name, text):
        shutil.copy(self.lab.write(name, text), "/etc/sallyport/" + name)

    def start(self):
        self.process = subprocess.Popen([self.binary, "daemon"],
                                        stdin=subprocess.DEVNULL,
                                        stdout=self.err, stderr=self.err)
        self.lab.wait(self.ready, "daemon: " + self.tail(), 60)
        return self

    def ready(self):
        if self.process.poll() is not None:
            raise RuntimeError("the daemon ended:\n" + self.tail())
        try:
            return self.ask("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def ask(self, method, path):
        connection = Control("localhost")
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def sandboxes(self):
        status, text = self.ask("GET", "/v1/sandboxes")
        assert status == 200, text
        return json.loads(text)["sandboxes"]

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(60)

    def tail(self):
        with open(self.err.name) as f:
            return f.read()[-4000:]


class Case:
    """An engine, a daemon, and a network `agents` whose policy is agent.yaml.
    The engine's own resolver asks 203.0.113.1's neighbour by way of the host,
    unless a test says otherwise."""

    def __init__(self, lab):
        self.lab = lab
        self.count = 0

    def start(self):
        self.daemon = Daemon(self.lab).start()
        self.docker = Engine(self.lab).start()
        self.docker.image()
        self.network("agents")
        # Something that reaches all: what is tried below is possible.
        got = self.docker.run("run", "--rm", "box", "wget", "-qO-",
                              f"http://{EVIL}/")
        assert "hello" in got.stdout, got
        self.lab.wait(self.evil, "the control")
        self.control = len(steady(self.evil))
        self.docker.run("run", "--rm", "box", "timeout", "5", "nslookup",
                        "control.tunnel.test", DNS, check=False)
        self.lab.wait(lambda: [p for p in self.lab.packets("port 53")
                               if "control." in p], "the control's question")

    def stop(self):
        if hasattr(self, "docker"):
            self.docker.stop()
        if hasattr(self, "daemon") and self.daemon.process.poll() is None:
            self.daemon.stop()

    def evil(self):
        return self.lab.packets(f"dst host {EVIL}")

    def last(self, failed):
        """What nobody may have seen: a packet to the forbidden host, or a
        question for a name that is not allowed."""
        packets = self.evil()[self.control:]
        asked = self.lab.asked("evil.test") + [
            line for line in self.lab.packets("udp port 53 or tcp port 53")
            if "secret" in line]
        if failed or packets or asked:
            print("--- the daemon\n" + self.daemon.tail())
            print("--- the engine\n" + self.docker.tail())
        if packets or asked:
            print("FAILED leaked:", *packets[:20], *asked[:20], sep="\n")
        return not packets and not asked

    def at_rest(self, read=leftovers):
        """What there is when no test before is still being tidied up."""
        wait(lambda: not self.daemon.sandboxes(), "the ends of those before")
        return steady(read)

    def network(self, name, *options, **kw):
        return self.docker.run("network", "create", "-d", "sallyport",
                               *options, name, **kw)

    def name(self):
        """A name that nobody has asked for, and nobody may."""
        self.count += 1
        return f"secret-{self.count}.tunnel.test"

    def container(self, *options, network="agents", image="box"):
        self.count += 1
        name = f"c{self.count}"
        self.docker.run("run", "-d", "--name", name, "--network", network,
                        *options, image, "sleep", "1000")
        return name

    def remove(self, *names):
        self.docker.run("rm", "-f", *names)

    def fetch(self, container, host, path=""):
        return self.docker.sh(container,
                              f"timeout 10 wget -qO- http://{host}/{path}")

    def held(self, container, allowed="allowed.test", other="other.test"):
        """It reaches what it may, and nothing else, not by name nor by
        address, nor with the help of any resolver."""
        got = self.fetch(container, allowed)
        assert "hello" in got.stdout, (got, self.daemon.tail())
        for host in other, "evil.test", EVIL:
            got = self.fetch(container, host)
            assert got.returncode and "hello" not in got.stdout, (host, got)
        for server in "", "127.0.0.11", "93.184.216.53", EVIL:
            name = self.name()
            got = self.docker.sh(container,
                                 f"timeout 5 nslookup {name} {server}")
            assert "93.184.216" not in got.stdout.split("Name:")[-1] or \
                "can't find" in got.stdout + got.stderr, (server, got)
            assert not self.lab.asked(name), (server, name)

    def sandbox(self, container):
        """What the daemon says of it."""
        network = self.docker.inspect(container)["NetworkSettings"]
        ids = [n["EndpointID"] for n in network["Networks"].values()]
        for s in self.daemon.sandboxes():
            if any(s["name"] == "docker-" + i[:12] for i in ids):
                return s
        return None

    def records(self, sandbox):
        with open(sandbox["log"] + "/audit.jsonl") as f:
            return [json.loads(line) for line in f if line.endswith("\n")]

    def findings(self, sandbox):
        return [r for r in self.records(sandbox)
                if r["unmapped"]["event"] in ("finding", "boundary")]


def wait(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.1)
    raise AssertionError(f"waited for: {what}")
