# SPDX-License-Identifier: Apache-2.0
"""The image that deploy/docker makes, in a real engine, as docs/packages.md
runs it: a gateway beside an internal network. The tree and the settings are
those of the Dockerfile; only its build stage is not run, as that downloads."""
import json
import os
import re
import subprocess

from engine import Engine, settle
from lab import DNS

TOP = os.path.abspath(__file__ + "/../../../..")
RIGHTS = ("SETUID", "SETGID", "SETPCAP", "KILL", "SYS_CHROOT")
UNCONFINED = ("--security-opt", "seccomp=unconfined", "--security-opt",
              "apparmor=unconfined")
POLICY = "version: 1\nname: gateway\nallow: [allowed.test]\n"


def settings():
    """What the last stage of the Dockerfile says beyond its files."""
    with open(TOP + "/deploy/docker/Dockerfile") as text:
        last = text.read().replace("\\\n", " ").split("FROM scratch\n")[1]
    return [line for line in last.splitlines() if re.match(
        "ENV|VOLUME|HEALTHCHECK|ENTRYPOINT|CMD", line)]


class Case:
    def __init__(self, lab):
        self.lab = lab

    def start(self):
        self.lab.resolv(f"nameserver {DNS}\n")
        self.docker = Engine(self.lab).start()
        self.docker.image()
        root, tar = self.lab.dir + "/image", self.lab.dir + "/image.tar"
        subprocess.run([TOP + "/deploy/docker/rootfs",
                        os.environ["SALLYPORT_BINARY"], root], check=True)
        subprocess.run(["tar", "-C", root, "-cf", tar, "."], check=True)
        changes = [word for line in settings() for word in ("--change", line)]
        assert len(changes) == 10, changes
        self.docker.run("import", *changes, tar, "sallyport:test")
        self.policy = self.lab.write("gateway.yaml", POLICY)
        self.docker.run("network", "create", "--subnet", "172.31.1.0/24",
                        "outer")
        self.docker.run("network", "create", "--internal", "--subnet",
                        "172.31.2.0/24", "inner")

    def stop(self):
        if hasattr(self, "docker"):
            self.docker.stop()

    def gateway(self, *options):
        self.docker.run(
            "create", "--name", "gateway", "--network", "outer", "--read-only",
            "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
            *options, "--health-interval", "1s",
            "-v", f"{self.policy}:/policy.yaml:ro", "sallyport:test", "serve",
            "--proxy", "0.0.0.0:3128", "--dns", "0.0.0.0:5353", "--client",
            "172.31.2.0/24", "--policy", "/policy.yaml")
        self.docker.run("network", "connect", "--ip", "172.31.2.2", "inner",
                        "gateway")
        self.docker.run("start", "gateway")

    def works(self, *options):
        """It becomes healthy, lets through and refuses, and ends well."""
        self.gateway(*options)
        health = settle(lambda: self.docker.out(
            "inspect", "-f", "{{.State.Health.Status}}", "gateway"), "healthy",
            90)
        assert health == "healthy", self.docker.run("logs", "gateway")
        good, bad = self.fetch("allowed.test"), self.fetch("evil.test")
        told = self.docker.run("logs", "gateway")
        assert good.split()[1:2] == ["200"], (good, told)
        assert bad.split()[1:2] == ["403"], (bad, told)
        self.docker.run("stop", "-t", "20", "gateway")
        state = self.docker.inspect("gateway")["State"]
        told = self.docker.run("logs", "gateway")
        assert state["ExitCode"] == 0, (state, told)
        return told.stderr

    def fetch(self, host):
        """The first line that an agent is answered by the gateway."""
        # It is all over when that line is there.
        script = (f"(printf 'GET http://{host}/ HTTP/1.1\\r\\nHost: {host}"
                  "\\r\\nConnection: close\\r\\n\\r\\n'; sleep 60) | "
                  "(nc 172.31.2.2 3128 | head -n 1; kill -9 -1)")
        return self.docker.run(
            "run", "--rm", "--network", "inner", "--cap-drop", "ALL",
            "--read-only", "--user", "65534", "box", "sh", "-c", script,
            check=False).stdout.strip()

    def last(self, failed):
        return True


def test_size(case):
    size = int(case.docker.out("inspect", "-f", "{{.Size}}", "sallyport:test"))
    assert 5_000_000 < size < 30_000_000, size


def test_alone(case):
    assert case.docker.out("run", "--rm", "sallyport:test", "version") \
        .startswith("sallyport ")
    assert "commands:" in case.docker.out("run", "--rm", "sallyport:test")
    told = case.docker.out("run", "--rm", "-v", f"{case.policy}:/p.yaml:ro",
                           "sallyport:test", "check", "/p.yaml")
    assert "allows 1 name" in told, told


def test_gateway(case):
    """With the rights that it takes to have uids of its own, under the engine's
    own profiles; also with one more, where namespaces can be made and a root
    can't be changed. What then keeps gate and ledger in, the receipt says."""
    few = [word for right in RIGHTS for word in ("--cap-add", right)]
    for words in few, [*few, "--cap-add", "SYS_ADMIN"]:
        case.works(*words, "-v", "key:/etc/sallyport")
        told = case.docker.run("run", "--rm", "--volumes-from", "gateway",
                               "sallyport:test", "verify", "--json", check=False)
        assert told.returncode == 0, told
        boundary = json.loads(told.stdout)["receipt"]["boundary"]
        assert boundary == {"kind": "external", "held": "unknown",
                            "separation": "uid-chroot"}, boundary
        case.docker.run("rm", "-v", "gateway")


def test_gateway_without_rights(case):
    """As a user, by a user namespace."""
    told = case.works(*UNCONFINED, "--user", "65534:65534", "--tmpfs", "/tmp", "-e",
                      "HOME=/tmp")
    assert "/tmp/.local/state/sallyport/" in told, told
    case.docker.run("rm", "-v", "gateway")


def test_no_other_way(case):
    """Without the gateway the internal network leads nowhere."""
    script = f"echo | timeout 10 nc {DNS} 53; echo $?"
    inner, outer = [case.docker.out("run", "--rm", "--network", network, "box",
                                    "sh", "-c", script)
                    for network in ("inner", "outer")]
    # Where there is one, the same script finds it.
    assert inner != "0" and outer == "0", (inner, outer)

