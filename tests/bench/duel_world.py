# SPDX-License-Identifier: Apache-2.0
"""Where the duels take place: the lab's machine and internet, and a namespace
of clients before it.

    clients 10.77.0.9 ---- the machine 10.77.0.1 ... ---- internet 93.184.216.x
    (load, core 1)         (subjects, core 0)             (origins, core 1)

Each subject has an address of its own, so that all have the same ports and are
there at the same time; who is not asked costs nothing.
"""
import contextlib
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "system"))
import lab  # noqa: E402

CLIENT, MACHINE = "10.77.0.9", "10.77.0.1"
ORIGINS = {"echo": "93.184.216.71", "once": "93.184.216.72",
           "source": "93.184.216.73", "http": "93.184.216.74"}
ANSWERER = "93.184.216.54"
# Of those that are ours; it may be but one.
SUBJECT_CORE, LOAD_CORE = min(os.sched_getaffinity(0)), \
    max(os.sched_getaffinity(0))

lab.ZONE += "\n".join(f"{name} A {ip}" for name, ip in ORIGINS.items()) + "\n"


def tool(name):
    return os.path.join(os.environ["SALLYPORT_TOOLS"], "bench_" + name)


def hello(name, size=1024):
    """A ClientHello of this size for this name, as a browser would pad it."""
    def vec(width, data):
        return len(data).to_bytes(width, "big") + data

    def extension(kind, data):
        return kind.to_bytes(2, "big") + vec(2, data)
    host = name.encode()
    extensions = b"".join([
        extension(0, vec(2, b"\0" + vec(2, host))),
        extension(10, vec(2, b"\0\x1d\0\x17")),
        extension(13, vec(2, b"\x04\x03\x08\x04\x04\x01")),
        extension(16, vec(2, vec(1, b"h2") + vec(1, b"http/1.1"))),
        extension(43, vec(1, b"\x03\x04\x03\x03")),
        extension(51, vec(2, b"\0\x1d" + vec(2, os.urandom(32)))),
    ])
    before = b"\x03\x03" + os.urandom(32) + vec(1, os.urandom(32)) + \
        vec(2, b"\x13\x01\x13\x02\xc0\x2f") + b"\x01\0"
    room = size - 5 - 4 - len(before) - 2 - len(extensions) - 4
    extensions += extension(21, bytes(room))
    body = before + vec(2, extensions)
    record = b"\x16\x03\x01" + vec(2, b"\x01" + vec(3, body))
    assert len(record) == size
    return record


def threads(pid):
    try:
        return [f"/proc/{pid}/task/{t}" for t in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def tree(pid):
    """@pid and all below it."""
    found = [pid]
    for task in threads(pid):
        try:
            with open(task + "/children") as f:
                for child in f.read().split():
                    found += tree(int(child))
        except OSError:
            pass
    return found


def cpu(pids):
    """Seconds on a processor, of all threads that are or were, in the kernel
    too: clock_gettime(2) of another process's clock, to the nanosecond."""
    total = 0
    for pid in pids:
        try:
            total += time.clock_gettime(~pid << 3 | 2)
        except OSError:
            pass
    return total


def memory(pids):
    """Bytes that are theirs alone."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), \
                open(f"/proc/{pid}/smaps_rollup") as f:
            for line in f:
                if line.startswith(("Private_Clean:", "Private_Dirty:")):
                    total += int(line.split()[1]) * 1024
    return total


class World(lab.Lab):
    def network(self):
        super().network()
        mine = os.readlink("/proc/self/ns/net")
        self.clients = self.spawn("unshare", "--net", "sleep", "infinity")
        self.wait(lambda: os.readlink(
            f"/proc/{self.clients.pid}/ns/net") != mine)
        lab.sh("ip", "link", "add", "cl0", "type", "veth", "peer", "name",
               "cl1", "netns", str(self.clients.pid))
        lab.sh("ip", "addr", "add", MACHINE + "/24", "dev", "cl0")
        lab.sh("ip", "link", "set", "cl0", "up")
        for argv in (("ip", "link", "set", "lo", "up"),
                     ("ip", "addr", "add", CLIENT + "/24", "dev", "cl1"),
                     ("ip", "link", "set", "cl1", "up")):
            lab.sh(*self.at_clients(*argv))
        for ip in (*ORIGINS.values(), ANSWERER):
            self.net("ip", "addr", "add", ip + "/32", "dev", "lo")
        # Many short connections to one address: none may wait for a port.
        for into in (), self.at_clients(), self.at_internet():
            for setting in ("ip_local_port_range=1024 65535",
                            "tcp_max_tw_buckets=2000", "tcp_tw_reuse=1"):
                lab.sh(*into, "sysctl", "-qw", "net.ipv4." + setting)
        self.subjects = 0

    def at_clients(self, *argv):
        return ["nsenter", "-t", str(self.clients.pid), "-n", *argv]

    def at_internet(self, *argv):
        return ["nsenter", "-t", str(self.holder.pid), "-n", *argv]

    def servers(self):
        """The lab's, without its capture, and the origins."""
        self.capture = "/dev/null"
        self.spawn(*self.at_internet("nsd", "-d", "-c", self.dir + "/nsd.conf"))
        self.spawn(*self.at_internet("nginx", "-c", self.dir + "/nginx.conf"))
        ports = [x for kind, ip in ORIGINS.items()
                 for x in (kind, ip, "80" if kind == "http" else "443")]
        self.spawn(*self.pinned(LOAD_CORE, *self.at_internet(
            tool("origin"), *ports)))
        self.spawn(*self.pinned(LOAD_CORE, *self.at_internet(
            tool("floor_dns"), ANSWERER, "53", ORIGINS["echo"])))
        for ip, port in ((lab.DNS, 53), (lab.GOOD, 443),
                         (ORIGINS["once"], 443), (ORIGINS["http"], 80)):
            self.wait(lambda: self.listens(ip, port), f"{ip}:{port}")
        for name in ("echo", "once", "source"):
            with open(f"{self.dir}/{name}.hello", "wb") as f:
                f.write(hello(f"{name}.test"))
        self.write("http.hello", "GET http://http.test/ HTTP/1.1\r\n"
                   "Host: http.test\r\nUser-Agent: load\r\n\r\n")

    def address(self):
        self.subjects += 1
        ip = f"10.77.0.{10 + self.subjects}"
        lab.sh("ip", "addr", "add", ip + "/24", "dev", "cl0")
        return ip

    @staticmethod
    def pinned(core, *argv):
        return ["taskset", "-c", str(core), *argv]

    def load(self, name, *argv, into=None, timeout=60):
        """What a program of the load prints, as numbers; None if it failed."""
        run = subprocess.run((into or self.at_clients)(*self.pinned(
            LOAD_CORE, tool(name), *map(str, argv))), text=True,
            capture_output=True, timeout=timeout)
        words = run.stdout.split()
        if run.returncode or len(words) != 4:
            return None, (run.stdout + run.stderr).strip()[:200]
        return [float(w) for w in words], ""
