# SPDX-License-Identifier: Apache-2.0
"""A container engine in the lab: Debian's dockerd with root, state and sockets
of its own, in the namespaces of "the machine" of tests/system/lab.py. Nothing
is pulled: images are tarballs of a static busybox.

    the machine (this process, the engine, sallyport)      the internet
      docker0 172.17.0.1   the engine's own network, with NAT: what a
      up0 203.0.113.2      container that is not kept in would leave by
      lo 127.0.0.1:53      a resolver, for hosts that have one there

All runs in a pid namespace whose first process is the test's: whatever the
engine leaves ends with it."""
import glob
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lab import DNS, Lab, sh  # noqa: E402

BUSYBOX = "/bin/busybox"
PLUGINS = "/run/docker/plugins"
SOCKET = "unix:///run/docker-lab/docker.sock"
APPLETS = """sh echo cat ls sleep true false wget nslookup nc ip ifconfig ping
    id env head tail grep sed awk touch mkdir rm tr wc printf test seq kill ps
    date httpd timeout""".split()

# Answers at 127.0.0.1:53 by asking the lab's name server, and writes each
# question down: what an engine asks on behalf of a container, we see here.
RESOLVER = """
import select, socket, sys
out = open(sys.argv[1], "a", buffering=1)
def name(q):
    at, parts = 12, []
    while q[at]:
        parts.append(q[at + 1:at + 1 + q[at]].decode("latin1")); at += 1 + q[at]
    return ".".join(parts).lower()
socks = []
for address in "127.0.0.1", "127.0.0.53":
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((address, 53))
    socks.append(s)
print("ready", file=out)
while True:
    for s in select.select(socks, [], [])[0]:
        q, who = s.recvfrom(4096)
        try:
            print(name(q), who[1], file=out)
            up = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            up.settimeout(2); up.sendto(q, ("%s", 53)); s.sendto(up.recv(4096), who)
            up.close()
        except (OSError, IndexError): pass
""" % DNS


class DockerLab(Lab):
    """The lab, with room for an engine and for the product's daemon."""

    def start(self):
        self.group = os.path.basename(self.dir)
        super().start()
        for place in ("/run/docker", "/run/docker-lab", "/run/sallyport",
                      "/run/containerd", "/var/lib/sallyport"):
            os.makedirs(place, exist_ok=True)
            sh("mount", "-t", "tmpfs", "-o", "mode=755", "lab", place)
        # Where the engine keeps its layers; and what people's files may say.
        os.mkdir(self.dir + "/docker")
        if os.path.isdir("/etc/docker"):
            sh("mount", "-t", "tmpfs", "-o", "mode=755", "lab", "/etc/docker")
        self.questions = self.dir + "/questions"
        self.spawn("python3", "-c", RESOLVER, self.questions)
        self.wait(lambda: ready(self.questions), "resolver")
        return self

    def resolv(self, text):
        """What the machine's /etc/resolv.conf says from now on."""
        with open(self.dir + "/resolv.conf", "r+") as f:
            f.truncate()
            f.write(text)

    def asked(self, name):
        """Was the machine's resolver on loopback asked for it, or the one on
        the internet?"""
        with open(self.questions) as f:
            here = [line for line in f if line.split()[0] == name]
        label = name.split(".")[0]
        there = [p for p in self.packets("port 53") if f" {label}." in p]
        return here + there

    def stop(self):
        engine = getattr(self, "engine", None)
        if engine:
            engine.stop()
        super().stop()
        # The one thing of the machine's own that an engine needs.
        for place in glob.glob(f"/sys/fs/cgroup/**/{self.group}",
                               recursive=True):
            self.wait(lambda: vanished(place), "the end of all in " + place)


def ready(path):
    """A server has said so there: it is bound."""
    try:
        with open(path) as f:
            return f.readline().startswith("ready")
    except FileNotFoundError:
        return False


def vanished(place):
    """A cgroup is there until the last of its processes is buried."""
    try:
        os.rmdir(place)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


class Engine:
    def __init__(self, lab, *options):
        self.lab, self.options = lab, options
        self.daemon = None
        self.log = open(lab.dir + "/dockerd.log", "a")
        lab.engine = self

    def start(self, *options, wait=True):
        if options:
            self.options = options
        # Not in the tests' way, nor slower than needed.
        self.daemon = subprocess.Popen(
            ["dockerd", "--data-root", self.lab.dir + "/docker",
             "--exec-root", "/run/docker", "--pidfile",
             "/run/docker-lab/docker.pid", "--host", SOCKET,
             "--storage-driver", "vfs", "--log-level", "warn",
             "--userland-proxy=false", "--shutdown-timeout", "3",
             "--exec-opt", "native.cgroupdriver=cgroupfs",
             "--cgroup-parent", self.lab.group,
             *self.options], stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log, start_new_session=True)
        if wait:
            self.lab.wait(self.up, "dockerd", 120)
        return self

    def up(self):
        if self.daemon.poll() is not None:
            raise RuntimeError("dockerd ended:\n" + self.tail())
        return self.run("version", check=False).returncode == 0

    def tail(self):
        with open(self.log.name) as f:
            return f.read()[-4000:]

    def kill(self, how=signal.SIGKILL):
        """By its pid; what it started goes on. For SIGTERM it ends them."""
        self.daemon.send_signal(how)
        self.daemon.wait(60)
        if how == signal.SIGKILL:
            # It is told to be one of a kind by this file.
            try:
                os.unlink("/run/docker-lab/docker.pid")
            except FileNotFoundError:
                pass

    def restart(self, how=signal.SIGTERM, *options):
        self.kill(how)
        return self.start(*options)

    def stop(self):
        if self.daemon and self.daemon.poll() is None:
            ids = self.run("ps", "-aq", check=False).stdout.split()
            if ids:
                self.run("rm", "-f", *ids, check=False)
            self.kill(signal.SIGTERM)

    def argv(self, *argv):
        return ["docker", "--host", SOCKET, *argv]

    def run(self, *argv, check=True, timeout=90):
        """The engine's own command line, as people use it."""
        done = subprocess.run(self.argv(*argv), text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=timeout,
                              env=dict(os.environ, HOME=self.lab.dir))
        if check and done.returncode:
            raise AssertionError(f"docker {' '.join(argv)}: "
                                 f"{done.returncode}\n{done.stdout}"
                                 f"{done.stderr}\n{self.tail()}")
        return done

    def out(self, *argv, **kw):
        return self.run(*argv, **kw).stdout.strip()

    def inspect(self, name):
        return json.loads(self.out("inspect", name))[0]

    def image(self, name="box"):
        """Imports a busybox with a user and a place to write."""
        path = f"{self.lab.dir}/{name}.tar"
        with tarfile.open(path, "w") as tar:
            def add(name, kind, data=b"", mode=0o755, link=""):
                info = tarfile.TarInfo(name)
                info.type, info.mode, info.linkname = kind, mode, link
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
            for d, mode in (("bin", 0o755), ("etc", 0o755), ("tmp", 0o1777),
                            ("proc", 0o755), ("sys", 0o755), ("dev", 0o755),
                            ("root", 0o700)):
                add(d, tarfile.DIRTYPE, mode=mode)
            with open(BUSYBOX, "rb") as f:
                add("bin/busybox", tarfile.REGTYPE, f.read())
            for applet in APPLETS:
                add("bin/" + applet, tarfile.SYMTYPE, link="busybox")
            add("etc/passwd", tarfile.REGTYPE, b"root:x:0:0:r:/root:/bin/sh\n"
                b"nobody:x:65534:65534:n:/tmp:/bin/sh\n", 0o644)
            add("etc/group", tarfile.REGTYPE, b"root:x:0:\n", 0o644)
            add("etc/nsswitch.conf", tarfile.REGTYPE, b"hosts: files dns\n",
                0o644)
        self.run("import", path, name)
        os.unlink(path)
        return name

    def sh(self, container, script):
        """Inside. What can't be run, or crashes (busybox's wget does with -T),
        is no refusal."""
        done = self.run("exec", container, "sh", "-c", script, check=False)
        assert done.returncode not in (126, 127, 139), (script, done)
        return done

    def pid(self, container):
        return self.inspect(container)["State"]["Pid"]

    def inside(self, container, *argv, check=True):
        """A program of the machine, in the container's network namespace."""
        return subprocess.run(["nsenter", "-t", str(self.pid(container)), "-n",
                               *argv], text=True, capture_output=True,
                              check=check).stdout

    def links(self, container):
        """The names of its interfaces."""
        out = self.inside(container, "ip", "-o", "link")
        return sorted(line.split(": ")[1].split("@")[0]
                      for line in out.splitlines())


def missing():
    """What a machine lacks to run these, or None."""
    for program in ("dockerd", "docker", "docker-compose", "containerd", "runc",
                    BUSYBOX):
        if not shutil.which(program):
            return program
    return None


def leftovers():
    """What an endpoint may leave behind on the machine; to be compared."""
    names = [line.split(": ")[1].split("@")[0]
             for line in sh("ip", "-o", "link").splitlines()]
    places = {}
    # Not the engine's own files: it collects them once a minute.
    for place in "/run/sallyport/netns", "/var/lib/sallyport/sandboxes":
        places[place] = sorted(os.listdir(place)) if os.path.isdir(place) else []
    return {"links": sorted(names), **places,
            "tables": sorted(sh("nft", "list", "tables").splitlines()),
            "mounts": mounts()}


def mounts():
    with open("/proc/self/mountinfo") as f:
        return sorted(line.split()[4] for line in f if " nsfs " in line)


def fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def steady(read, seconds=60):
    """What read() says once it has said the same for a second."""
    got, since = read(), time.monotonic()
    end = since + seconds
    while time.monotonic() < min(end, since + 1):
        time.sleep(0.1)
        if (now := read()) != got:
            got, since = now, time.monotonic()
    return got


def settle(read, want, seconds=60):
    """Waits until read() is @want; what it is in the end."""
    end = time.monotonic() + seconds
    while (got := read()) != want and time.monotonic() < end:
        time.sleep(0.1)
    return got
