# SPDX-License-Identifier: Apache-2.0
"""Containers on a sallyport network."""
import socket
import subprocess
import urllib.request

from engine import leftovers, settle
from lab import EVIL, GOOD
from product import Case, wait  # noqa: F401

LOOPBACK = "nameserver 127.0.0.1\n"
REMOTE = "nameserver 93.184.216.53\n"


def test_network(case):
    """Made, shown, used, removed; wrong ones are refused, with reasons."""
    before = case.at_rest()
    case.network("n1", "-o", "policy=/etc/sallyport/agent.yaml")
    c = case.container(network="n1")
    case.held(c)
    refused = case.docker.run("network", "rm", "n1", check=False)
    assert "active endpoints" in refused.stderr, refused
    case.remove(c)
    case.docker.run("network", "rm", "n1")
    for option, word in (("policy=/etc/sallyport/none.yaml", "none.yaml"),
                         ("policy=nobody", "nobody"),
                         ("policy=/etc/sallyport/wrong.yaml", "alow"),
                         ("policy=relative.yaml", "relative.yaml"),
                         ("polcy=agent", "polcy"), ("publish=maybe", "maybe")):
        got = case.network("bad", "-o", option, check=False)
        assert got.returncode and word in got.stderr, (option, got)
    for options in ("--ipv6", "--subnet", "fd00:7::/64"), ("--internal",), \
            ("--subnet", "198.18.0.0/16"):
        got = case.network("bad", *options, check=False)
        assert got.returncode, (options, got)
    assert "bad" not in case.docker.out("network", "ls")
    after = settle(leftovers, before)
    assert after == before, (before, after)


def test_only_ours(case):
    """No interface of the engine's own, nor a route by one."""
    c = case.container()
    assert case.docker.links(c) == ["eth0", "lo"]
    assert "docker_gwbridge" not in case.docker.out("network", "ls")
    gateway = case.docker.inspect(c)["NetworkSettings"]["Networks"]["agents"][
        "Gateway"]
    routes = case.docker.inside(c, "ip", "-4", "route").splitlines()
    assert routes[0].startswith(f"default via {gateway} dev eth0"), routes
    assert len(routes) == 2 and routes[1].endswith(
        case.docker.inspect(c)["NetworkSettings"]["Networks"]["agents"][
            "IPAddress"] + " "), routes
    assert not case.docker.inside(c, "ip", "-6", "route").strip()
    case.held(c)
    case.remove(c)


def test_neighbours(case):
    """Two of one network have no wire between them."""
    a, b = case.container(), case.container()
    ip = case.docker.inspect(b)["NetworkSettings"]["Networks"]["agents"][
        "IPAddress"]
    case.docker.run("exec", "-d", b, "httpd", "-f", "-p", "8000", "-h", "/etc")
    wait(lambda: "8000" in case.docker.inside(b, "ss", "-Hltn"), "httpd")
    assert case.fetch(b, "127.0.0.1:8000", "passwd").stdout
    for target in ip, b:
        assert case.fetch(a, f"{target}:8000", "passwd").returncode, target
    assert case.docker.sh(a, f"ping -c 1 -W 1 {ip}").returncode
    case.remove(a, b)


def test_resolvers(case):
    """Whatever the host's resolver is, and whatever is asked of the engine's."""
    gateway = case.docker.out("network", "inspect", "-f",
                              "{{(index .IPAM.Config 0).Gateway}}", "agents")
    case.network("tables", "-o", "dns=tables")
    case.network("require", "-o", "dns=require")
    for resolv in LOOPBACK, "nameserver 127.0.0.53\n", REMOTE:
        case.lab.resolv(resolv)
        host = resolv != REMOTE
        for network, refused in (("agents", host), ("tables", False),
                                 ("require", True)):
            got = case.docker.run("run", "--rm", "--network", network, "box",
                                  "true", check=False)
            assert bool(got.returncode) == refused, (resolv, network, got)
            if refused:
                assert f"--dns {gateway}" in got.stderr or \
                    "--dns " in got.stderr, got
            own = case.docker.out("network", "inspect", "-f",
                                  "{{(index .IPAM.Config 0).Gateway}}",
                                  network)
            c = case.container("--dns", own, network=network)
            case.held(c)
            case.remove(c)
        for options in (), ("--dns", "127.0.0.1"), ("--dns", EVIL):
            c = case.container(*options, network="tables")
            case.held(c)
            case.remove(c)
    case.lab.resolv(REMOTE)
    case.docker.run("network", "rm", "tables", "require")


def test_first_breath(case):
    """A container whose only deed is to ask, at once."""
    case.network("quick", "-o", "dns=tables")
    case.lab.resolv(LOOPBACK)
    names = [case.name() for _ in range(8)]
    for name in names:
        case.docker.run("run", "--rm", "--network", "quick", "box",
                        "timeout", "5", "nslookup", name, check=False)
    assert not [n for n in names if case.lab.asked(n)]
    case.lab.resolv(REMOTE)
    case.docker.run("network", "rm", "quick")


def test_random_port(case):
    """The engine's resolver listens on a port of its own choice, too."""
    case.network("ports", "-o", "dns=tables")
    case.lab.resolv(LOOPBACK)
    c = case.container(network="ports")
    lines = case.docker.sh(c, "cat /proc/net/udp").stdout.splitlines()[1:]
    ports = [int(line.split()[1].split(":")[1], 16) for line in lines
             if line.split()[1].startswith("0B00007F")]
    assert ports
    for port in ports:
        name = case.name()
        got = case.docker.sh(c, f"timeout 30 nslookup {name} 127.0.0.11:{port}")
        assert "NXDOMAIN" in got.stdout, got
        assert not case.lab.asked(name)
    case.remove(c)
    case.lab.resolv(REMOTE)
    case.docker.run("network", "rm", "ports")


def test_policies(case):
    """By a network's path or name, by the default, and for one container."""
    case.network("named", "-o", "policy=strict")
    for network, allowed in (
            ("agents", "allowed.test"), ("named", "other.test"),
            ("name=agents,driver-opt=policy=strict", "other.test"),
            ("name=named,driver-opt=policy=/etc/sallyport/agent.yaml",
             "allowed.test")):
        c = case.container(network=network)
        other = {"allowed.test": "other.test"}.get(allowed, "allowed.test")
        case.held(c, allowed, other)
        case.remove(c)
    for option in "policy=nobody", "policy=", "polcy=strict":
        got = case.docker.run("run", "--rm", "--network",
                              f"name=agents,driver-opt={option}", "box",
                              "true", check=False)
        assert got.returncode, option
    case.docker.run("network", "rm", "named")


def test_log(case):
    """Each container has a session, whose log says what it did, and verifies."""
    c = case.container()
    sandbox = case.sandbox(c)
    assert sandbox["docker"] and sandbox["state"] == "ready", sandbox
    case.held(c)
    case.remove(c)
    wait(lambda: sandbox["name"] not in
         [s["name"] for s in case.daemon.sandboxes()], "its end")
    records = case.records(sandbox)
    hosts = {(r.get("dst_endpoint") or {}).get("hostname") or
             (r.get("query") or {}).get("hostname"): r["action_id"]
             for r in records if "action_id" in r}
    assert hosts.get("allowed.test") == 1, hosts
    assert hosts.get("evil.test") == 2, hosts
    done = subprocess.run([case.daemon.binary, "verify", sandbox["log"]],
                          text=True, capture_output=True)
    assert done.returncode == 0, done


def test_quiet(case):
    """What an engine does to start a container is no finding."""
    for _ in range(10):
        c = case.container()
        sandbox = case.sandbox(c)
        case.fetch(c, "allowed.test")
        case.remove(c)
        wait(lambda: sandbox["name"] not in
             [s["name"] for s in case.daemon.sandboxes()], "its end")
        assert not case.findings(sandbox), case.findings(sandbox)


def test_hardened(case):
    """The flags that people are told to use."""
    c = case.container("--cap-drop", "ALL", "--read-only", "--tmpfs", "/tmp",
                       "--security-opt", "no-new-privileges", "--user",
                       "65534")
    case.held(c)
    assert case.docker.links(c) == ["eth0", "lo"]
    case.remove(c)


def test_published(case):
    """Refused, unless the network was made for it."""
    before = case.at_rest()
    got = case.docker.run("run", "--rm", "--network", "agents", "-p",
                          "127.0.0.1:8088:8000", "box", "true", check=False)
    assert got.returncode and "-o publish=true" in got.stderr, got
    after = settle(leftovers, before)
    assert after == before, (before, after)


def test_publishing(case):
    """What comes in goes through the gate and into the log."""
    case.network("pub", "-o", "publish=true")
    c = case.container("-p", "127.0.0.1:8088:8000", network="pub")
    case.docker.run("exec", "-d", c, "httpd", "-f", "-p", "8000", "-h", "/etc")
    wait(lambda: "8000" in case.docker.inside(c, "ss", "-Hltn"), "httpd")
    with urllib.request.urlopen("http://127.0.0.1:8088/passwd",
                                timeout=60) as answer:
        assert b"nobody" in answer.read()
    case.held(c)
    sandbox = case.sandbox(c)
    case.remove(c)
    assert any("8000" in str(r) and "8088" in str(r)
               for r in case.records(sandbox)), "no record of it"
    wait(lambda: not takes("127.0.0.1", 8088), "its door to be shut")
    case.docker.run("network", "rm", "pub")


def takes(*where):
    with socket.socket() as s:
        return s.connect_ex(where) == 0


def test_second_network(case):
    """Connected to another network: that one is locked, and it is recorded."""
    for network in "bridge", "zz":
        if network == "zz":
            case.docker.run("network", "create", network)
        for early in False, True:
            if early:
                case.count += 1
                c = f"c{case.count}"
                case.docker.run("create", "--name", c, "--network", "agents",
                                "box", "sleep", "1000")
                case.docker.run("network", "connect", network, c)
                case.docker.run("start", c)
            else:
                c = case.container()
                case.docker.run("network", "connect", network, c)
            sandbox = case.sandbox(c)
            assert case.docker.links(c) == ["eth0", "eth1", "lo"]
            peer = case.docker.inspect(c)["NetworkSettings"]["Networks"][
                network]["Gateway"]
            for deed in (f"timeout 2 wget -qO- http://{EVIL}/",
                         f"ping -c 1 -W 1 {peer}", f"ping -c 1 -W 1 {EVIL}",
                         f"timeout 3 nslookup {case.name()} {EVIL}"):
                got = case.docker.sh(c, deed)
                assert got.returncode, (network, early, deed, got)
            name = case.name()
            case.docker.sh(c, f"timeout 3 nslookup {name}")
            assert not case.lab.asked(name)
            found = wait(lambda: [r for r in case.findings(sandbox)
                                  if "eth1" in str(r) or "eth0" in str(r)],
                         f"a finding about {network}, early {early}")
            assert found
            wait(lambda: "netdev" in case.docker.inside(
                c, "nft", "list", "tables"), "packet sockets shut")
            case.remove(c)
        if network == "zz":
            case.docker.run("network", "rm", network)


def test_tables_taken_away(case):
    """By somebody with rights over the namespace: from Linux 6.9 on they can't;
    before that they are put back, and that is recorded."""
    c = case.container()
    sandbox = case.sandbox(c)
    tables = ("inet", "netdev")
    read = lambda: [case.docker.inside(  # noqa: E731
        c, "nft", "-s", "list", "table", t, "sallyport_lock") for t in tables]
    case.held(c)
    before = read()
    owned = "owner" in before[0]
    for rules in ("flush ruleset", "delete table inet sallyport_lock",
                  "delete table netdev sallyport_lock",
                  "insert rule inet sallyport_lock out accept",
                  "flush chain netdev sallyport_lock early"):
        seen = len(case.findings(sandbox))
        case.docker.inside(c, "nft", rules, check=False)
        if not owned:
            wait(lambda: len(case.findings(sandbox)) > seen, "a finding")
            settle(read, before)
        assert read() == before, rules
        case.held(c)
    assert owned or "put back" in str(case.findings(sandbox))
    case.remove(c)


def test_connected_later(case):
    """A container of another network gets ours while it runs: the other one is
    locked then, for what it said before, too."""
    c = case.container(network="bridge")
    assert "hello" in case.fetch(c, GOOD).stdout
    case.docker.run("network", "connect", "agents", c)
    assert case.docker.links(c) == ["eth0", "eth1", "lo"]
    case.held(c)
    peer = case.docker.inspect(c)["NetworkSettings"]["Networks"]["bridge"][
        "Gateway"]
    assert case.docker.sh(c, f"ping -c 1 -W 1 {peer}").returncode
    case.docker.run("network", "disconnect", "bridge", c)
    case.held(c)
    case.remove(c)


def test_two_of_ours(case):
    """A container has one policy."""
    case.network("second", "-o", "policy=strict")
    c = case.container()
    got = case.docker.run("network", "connect", "second", c, check=False)
    assert got.returncode and "one sallyport network" in got.stderr, got
    case.held(c)
    case.remove(c)
    case.docker.run("create", "--name", "both", "--network", "agents", "box",
                    "sleep", "1000")
    case.docker.run("network", "connect", "second", "both")
    got = case.docker.run("start", "both", check=False)
    assert got.returncode and "one sallyport network" in got.stderr, got
    case.remove("both")
    # One after the other is fine.
    c = case.container()
    case.held(c)
    case.docker.run("network", "disconnect", "agents", c)
    case.docker.run("network", "connect", "second", c)
    case.held(c, "other.test", "allowed.test")
    case.remove(c)
    case.docker.run("network", "rm", "second")


def test_restarted(case):
    """A new namespace, a new session; in place before it could leave."""
    c = case.container()
    was = case.sandbox(c)["session"]
    case.docker.run("restart", "-t", "0", c)
    assert case.sandbox(c)["session"] != was
    case.held(c)
    case.docker.run("stop", "-t", "0", c)
    wait(lambda: not case.daemon.sandboxes(), "its end")
    case.docker.run("start", c)
    case.held(c)
    case.remove(c)


def test_host_network_is_left(case):
    """Nothing of ours is put where the host's processes are."""
    assert "sallyport_lock" not in leftovers()["tables"]
