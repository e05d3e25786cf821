# SPDX-License-Identifier: Apache-2.0
"""Endpoints that come and go by the hundred leave nothing behind: no interface,
namespace, table, rule, process, descriptor or memory, neither of the daemon's
nor of the engine's. Counted before and after, and printed.

    connect  `docker network connect` and `disconnect` of containers that run,
             by the engine's API: Create, Join, Leave, Delete of an endpoint
    network  the same, with a network made for it and removed
    calls    the driver's socket, called as an engine does, with namespaces
             that are there at Join or come later; some of them vanish
    start    containers started and removed

SALLYPORT_CYCLES=full does 1000 of them, half through the engine; otherwise it
is less than a minute's."""
import ctypes
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from api import Api, Plugin
from engine import SOCKET, fds, leftovers, settle
from product import Case  # noqa: F401
from test_restarts import children

FULL = os.environ.get("SALLYPORT_CYCLES") == "full"
WORKERS = 4
MOUNT, MNT_DETACH = 4096, 2  # MS_BIND
libc = ctypes.CDLL(None, use_errno=True)


def memory(pid):
    """What is its own, in KiB: neither shared nor given back."""
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return sum(int(line.split()[1]) for line in f
                   if line.startswith("Private_"))


def sockets(pid):
    """An engine keeps some of its connections to a driver, for a while."""
    return sum(os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")
               for fd in os.listdir(f"/proc/{pid}/fd")
               if os.path.lexists(f"/proc/{pid}/fd/{fd}"))


# An engine looks whether it is there and adds it: for two networks at a time it
# may do so twice.
JUMP = "-A FORWARD -j DOCKER-USER"


def once(one, lines):
    return [x for i, x in enumerate(lines) if x != one or x not in lines[:i]]


def state(case):
    daemon = case.daemon.process.pid
    rules = [line for tool in ("iptables", "ip6tables") for line in once(
        JUMP, subprocess.run([tool, "-S"], text=True, check=True,
                             capture_output=True).stdout.splitlines())]
    return {**leftovers(), "rules": len(rules), "fds": fds(daemon) - sockets(daemon),
            "children": len(children(daemon)),
            "sandboxes": len(case.daemon.sandboxes()),
            "state": sorted(os.listdir("/var/lib/sallyport/docker"))}


def measured(case, name, cycles, run):
    """Counts, runs all cycles, and counts again."""
    daemon, engine = case.daemon.process.pid, case.docker.daemon.pid
    run(WORKERS)  # what is made once, and kept
    before = case.at_rest(lambda: state(case))
    kib = memory(daemon), memory(engine), fds(engine), sockets(daemon)
    began = time.monotonic()
    run(cycles)
    seconds = time.monotonic() - began
    after = settle(lambda: state(case), before, 90)
    now = memory(daemon), memory(engine), fds(engine), sockets(daemon)
    print(f"{name}: {cycles} cycles in {seconds:.1f} s; " + ", ".join(
        f"{what} {len(v) if isinstance(v, list) else v}->"
        f"{len(after[what]) if isinstance(v, list) else after[what]}"
        for what, v in before.items()))
    print(f"  daemon {kib[0]}->{now[0]} KiB, engine {kib[1]}->{now[1]} KiB, "
          f"{kib[2]}->{now[2]} descriptors; sockets {kib[3]}->{now[3]}",
          flush=True)
    assert after == before, (before, after)
    # An allocator keeps something; what grows with each cycle shows.
    assert now[0] - kib[0] < 512 + cycles, "the daemon grows"
    assert now[2] - kib[2] <= 8, "the engine grows"
    assert now[3] - kib[3] <= WORKERS, "the daemon keeps connections"


def spread(n, work):
    """Calls work(i) for @n of them, WORKERS at a time, each with a connection
    of its own, which it keeps."""
    local = threading.local()

    def one(i):
        if not hasattr(local, "api"):
            local.api = Api(SOCKET)
        work(local.api, i)
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, range(n)))


def idle(case):
    """Containers of no network, made once. An engine moves none from "none"
    to another network without being told to."""
    if not hasattr(case, "idle"):
        with ThreadPoolExecutor(WORKERS) as pool:
            case.idle = list(pool.map(lambda i: f"idle{i}", range(WORKERS)))
            list(pool.map(lambda c: case.docker.run(
                "run", "-d", "--name", c, "--network", "none", "box", "sleep",
                "1000"), case.idle))
            list(pool.map(lambda c: case.docker.run(
                "network", "disconnect", "none", c), case.idle))
    return case.idle


def test_connect(case):
    boxes = idle(case)
    busy = {c: threading.Lock() for c in boxes}

    def work(api, i):
        c = boxes[i % WORKERS]
        with busy[c]:
            api.must("POST", "/networks/agents/connect", {"Container": c})
            api.must("POST", "/networks/agents/disconnect",
                     {"Container": c, "Force": True})
    measured(case, "connect", 300 if FULL else 32, lambda n: spread(n, work))


def test_network(case):
    boxes = idle(case)
    busy = {c: threading.Lock() for c in boxes}

    def work(api, i):
        c, name = boxes[i % WORKERS], f"cycle{i}"
        with busy[c]:
            api.must("POST", "/networks/create", {
                "Name": name, "Driver": "sallyport", "CheckDuplicate": True,
                "Options": {"policy": "/etc/sallyport/agent.yaml"},
                "IPAM": {"Config": [{"Subnet": f"10.{i % 250}.0.0/24"}]}})
            api.must("POST", f"/networks/{name}/connect", {"Container": c})
            api.must("POST", f"/networks/{name}/disconnect",
                     {"Container": c, "Force": True})
            api.must("DELETE", f"/networks/{name}")
    measured(case, "network", 150 if FULL else 12, lambda n: spread(n, work))


def test_start(case):
    case.remove(*idle(case))

    def work(api, i):
        name = f"start{i}"
        api.must("POST", f"/containers/create?name={name}", {
            "Image": "box", "Cmd": ["true"],
            "HostConfig": {"NetworkMode": "agents"}})
        api.must("POST", f"/containers/{name}/start")
        api.must("DELETE", f"/containers/{name}?force=1")
    measured(case, "start", 50 if FULL else 4, lambda n: spread(n, work))


# --- the driver's socket ------------------------------------------------------

class Namespaces:
    """Named ones, as an engine makes them: a file, on which one is mounted."""

    def __init__(self, lab):
        self.dir = lab.dir + "/keys"
        os.makedirs(self.dir, exist_ok=True)
        if not os.path.ismount(self.dir):
            subprocess.run(["mount", "-t", "tmpfs", "keys", self.dir],
                           check=True)

    def path(self, name):
        return f"{self.dir}/{name}"

    def make(self, name):
        subprocess.run(["unshare", f"--net={self.touch(name)}", "true"],
                       check=True)

    def touch(self, name):
        open(self.path(name), "w").close()
        return self.path(name)

    def drop(self, name):
        libc.umount2(self.path(name).encode(), MNT_DETACH)
        if os.path.exists(self.path(name)):
            os.unlink(self.path(name))


def move(link, key):
    """As an engine does after Join. False: it is gone."""
    pin = os.open(key, os.O_RDONLY)
    try:
        return subprocess.run(
            ["ip", "link", "set", link, "netns", f"/proc/{os.getpid()}/fd/{pin}",
             "name", "eth0"], capture_output=True).returncode == 0
    finally:
        os.close(pin)


def test_calls(case):
    """Every fourth ends in another way: not joined, joined but never there, its
    namespace gone before Leave, deleted without Leave."""
    net = "c" * 64
    keys = Namespaces(case.lab)
    plugin = Plugin()
    plugin.must("CreateNetwork", NetworkID=net, Options={
        "com.docker.network.generic": {"policy": "agent", "dns": "tables"}},
        IPv4Data=[{"Pool": "10.99.0.0/16", "Gateway": "10.99.0.1/16"}],
        IPv6Data=[])
    local = threading.local()
    count = iter(range(10 ** 6))

    def one(i):
        if not hasattr(local, "plugin"):
            local.plugin = Plugin()
        call, n = local.plugin.must, next(count)
        end = {"NetworkID": net, "EndpointID": f"{n:064x}"[::-1]}
        name, kind = f"k{n}", i % 8
        call("CreateEndpoint", **end, Options={}, Interface={
            "Address": f"10.99.{1 + n // 250 % 250}.{1 + n % 250}/16"})
        if kind == 1:  # the engine thought better of it
            call("DeleteEndpoint", **end)
            return
        if kind != 2:
            keys.make(name)
        answer = call("Join", **end, SandboxKey=keys.path(name), Options={})
        assert answer["DisableGatewayService"] is True, answer
        if kind == 2:  # the container never comes
            call("Leave", **end)
            call("DeleteEndpoint", **end)
            return
        if kind != 3:  # its link is moved, or not yet
            assert move(answer["InterfaceName"]["SrcName"], keys.path(name))
        call("EndpointOperInfo", **end)
        if kind == 4:
            keys.drop(name)
        if kind != 5:
            call("Leave", **end)
        call("DeleteEndpoint", **end)
        call("DeleteEndpoint", **end)  # twice is nothing
        keys.drop(name)

    def run(n):
        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(one, range(n)))
    measured(case, "calls", 500 if FULL else 96, run)
    plugin.must("DeleteNetwork", NetworkID=net)


def test_bad_calls(case):
    """What is wrong is answered by a reason, and leaves nothing behind."""
    before = case.at_rest(lambda: state(case))
    plugin, net, end = Plugin(), "d" * 64, "e" * 64
    plugin.must("CreateNetwork", NetworkID=net, Options={
        "com.docker.network.generic": {"policy": "agent", "dns": "tables"}},
        IPv4Data=[{"Pool": "10.98.0.0/16", "Gateway": "10.98.0.1/16"}])
    ids = {"NetworkID": net, "EndpointID": end}
    address = {"Interface": {"Address": "10.98.0.2/16"}}
    plugin.must("CreateEndpoint", **ids, **address)
    for name, body in (
            ("CreateNetwork", {"NetworkID": net}),
            ("CreateNetwork", {"NetworkID": "../../etc"}),
            ("CreateEndpoint", {**ids, **address}),
            ("CreateEndpoint", {"NetworkID": "f" * 64, "EndpointID": "a" * 64,
                                **address}),
            ("CreateEndpoint", {"NetworkID": net, "EndpointID": "a" * 64,
                                "Interface": {"Address": "8.8.8.8/16"}}),
            ("Join", {**ids}), ("Join", {**ids, "SandboxKey": "relative"}),
            ("Join", {**ids, "SandboxKey": "/proc/self/ns/uts"}),
            ("Join", {**ids, "SandboxKey": "/proc/self/ns/net"}),
            ("Join", {"NetworkID": net, "EndpointID": "b" * 64,
                      "SandboxKey": "/run/x"})):
        got = plugin.call(name, **body)
        assert got.get("Err"), (name, body, got)
    for text in "", "{", "[]", "7", '{"NetworkID":1}', "\0" * 100, \
            '{"a":' * 5000:
        status, got = None, None
        plugin.request("POST", "/NetworkDriver.Join", text)
        answer = plugin.getresponse()
        status, got = answer.status, answer.read().decode()
        assert status == 200 and "Err" in got, (text[:20], status, got)
    for name in "Leave", "DeleteEndpoint":
        plugin.must(name, NetworkID="9" * 64, EndpointID="9" * 64)
    plugin.must("DeleteNetwork", NetworkID=net)
    # Its network is gone, and an endpoint of it that was left goes, too.
    plugin.must("DeleteEndpoint", **ids)
    plugin.close()
    after = settle(lambda: state(case), before, 90)
    assert after == before, (before, after)
