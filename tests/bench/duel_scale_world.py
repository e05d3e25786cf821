# SPDX-License-Identifier: Apache-2.0
"""Who is asked as things grow: sallyport with lists, rules and idle tunnels of
several sizes, all there at the same time; and a daemon whose sandboxes become
more, and fewer again."""
import concurrent.futures
import contextlib
import os
import subprocess
import time

from duel_peers import Floor, Responder, Sallyport
from duel_world import LOAD_CORE, ORIGINS, SUBJECT_CORE, World, cpu, hello, lab, tool, tree

from daemon_lab import Daemon, inside, resolve
from harness import Case

# Names that the load asks for; each is one that the policy has to look for.
ZONE, DENIED = "once.test", "l.test"
FIRST = "q000000.n000000."
HELLO = FIRST + ZONE
NAMES = 2000
LINES_MAX = 15000  # of one file of YAML
AT_ONCE = 8

NAMESERVER = "93.184.216.55"  # any name's address is that of ORIGINS["once"]
ECHO_PORT = 7443  # there

POLICY = f"""\
version: 1
dns: {{upstream: [{NAMESERVER}]}}
limits:
  connections: 65535
  connections_per_second: 100000
  dns_per_second: 100000
  names: 4000
  names_per_wildcard: 4000
"""
SIMPLE = POLICY + f"""\
allow: [{{host: "*.{ZONE}", ports: [443, {ECHO_PORT}]}}]
deny: ["*.{DENIED}"]
"""


def put(pids, cores):
    """All threads of @pids on these."""
    for pid in pids:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                os.sched_setaffinity(int(task), cores)


class ScaleWorld(World):
    case = None

    def servers(self):
        super().servers()
        self.net("ip", "addr", "add", NAMESERVER + "/32", "dev", "lo")
        once = ORIGINS["once"]
        for argv in ((tool("floor_dns"), NAMESERVER, "53", once),
                     (tool("origin"), "echo", once, str(ECHO_PORT))):
            self.spawn(*self.pinned(LOAD_CORE, *self.at_internet(*argv)))
        self.wait(lambda: self.listens(once, ECHO_PORT), "the echo")
        with open(f"{self.dir}/names.hello", "wb") as f:
            f.write(hello(HELLO))


class FloorOf(Floor):
    how, to = "copy", "once"
    into, names, spread = None, NAMES, 1

    def address(self, kind):
        return self.ip, self.port("connect" if kind == "connect" else "tls")


class FloorConnect(FloorOf):
    name, doors = "floor connect", ("connect",)


class FloorTls(FloorOf):
    name, doors = "floor tls", ("tls",)


class FloorDns(Responder):
    into, names, spread = None, NAMES, 1

    def address(self, kind):
        return self.ip, 53


class Scaled(Sallyport):
    """One by itself, with a policy of its own; listens at all its doors."""
    doors = ("connect", "tls", "http", "dns")
    into, names = None, NAMES
    spread = 1  # parents of the names that are asked for

    def __init__(self, world, point):
        super().__init__(world)
        self.point = point

    def policy(self):
        return SIMPLE

    def stop(self):
        self.process.terminate()
        self.process.wait(30)

    def argv(self):
        argv = super().argv()
        self.write("policy.yaml", self.policy())
        return argv

    def address(self, kind):
        return self.ip, self.port({"connect": "connect", "sni": "tls"}.get(
            kind, "dns"))

    def roles(self):
        return self.pids()


class Listed(Scaled):
    """Denies a list of as many names; no answer but for the last of its labels
    comes without asking it."""

    def policy(self):
        self.spread = self.point
        self.write("list.txt", "".join(
            f"n{i:06}.{DENIED}\n" for i in range(self.point)))
        return POLICY + f"""\
allow: ["*.{ZONE}"]
deny: [file: list.txt]
"""


class Ruled(Scaled):
    """Allows as many names, each by a rule."""

    def policy(self):
        self.spread = self.point
        rules = [f'"*.n{i:06}.{ZONE}"' for i in range(self.point)]
        files = []
        for i in range(0, self.point, LINES_MAX):
            files.append(f"part{i}.yaml")
            self.write(files[-1], "version: 1\nallow:\n" + "".join(
                f"- {r}\n" for r in rules[i:i + LINES_MAX]))
        return POLICY + f"extends: [{', '.join(files)}]\n"


class Idle(Scaled):
    """Holds as many tunnels that do nothing."""

    def start(self):
        super().start()
        self.holder = subprocess.Popen(self.world.at_clients(
            tool("tunnels"), "idle", "connect", self.ip, "3128",
            f"{HELLO}:{ECHO_PORT}", str(self.point), "3600",
            self.world.dir + "/names.hello"), text=True, stdout=subprocess.PIPE)
        self.world.children.append(self.holder)
        if self.holder.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{self.point} idle tunnels: not held")


class Box:
    """One sandbox of a daemon; all of the daemon's processes count that were
    there when there was no other."""
    name = "sallyport"

    def __init__(self, boxes, name, names=NAMES):
        self.boxes, self.names = boxes, names
        self.box = boxes.daemon.one(name)
        self.synthetic = resolve(self.box, HELLO)

    def into(self, *argv):
        return ["nsenter", "--net=" + self.box["netns"], *argv]

    def address(self, kind):
        gateway = self.box["gateway"]
        return {"connect": (gateway, self.box["proxy_port"]),
                "sni": (self.synthetic, 443)}.get(kind, (gateway, 53))

    def cpu(self):
        return {"all": cpu(self.boxes.first), "with the others":
                cpu(self.boxes.every)}


class Boxes:
    """A daemon with as many sandboxes as it is told."""

    def __init__(self, world, most):
        # It numbers the daemons.
        world.case = world.case or Case(world, "root",
                                        os.environ["SALLYPORT_BINARY"])
        self.names = []
        self.daemon = Daemon(world.case, config="version: 1\ngroup: www-data\n"
                             f"limits:\n  max_sandboxes: {most + 8}\n").start()
        self.grow(1)
        self.first = self.every

    def create(self, name):
        self.daemon.good("POST", "/v1/sandboxes",
                         {"name": name, "policy": SIMPLE})

    def grow(self, n):
        """Or shrink; all are on the subject's core when it is done."""
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            put([self.daemon.process.pid], range(os.cpu_count()))
            more = [f"s{i}" for i in range(len(self.names), n)]
            less = self.names[n:]
            list(pool.map(self.create, more))
            list(pool.map(self.daemon.remove, less))
        self.names = self.names[:n] + more
        time.sleep(1)  # what making them leaves to do
        self.every = tree(self.daemon.process.pid)
        put(self.every, [SUBJECT_CORE])

    def idle(self, seconds):
        """CPU that all take while nobody asks, of a second."""
        before, began = cpu(self.every), time.monotonic()
        time.sleep(seconds)
        return (cpu(self.every) - before) / (time.monotonic() - began)

    def stop(self):
        self.grow(0)
        self.daemon.stop()
