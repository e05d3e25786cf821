#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon as its unit has it: without capabilities, below a read-only file
system and with a mount namespace of its own, its rights in a builder. What it
makes is seen outside; what both do is what their units' filters let them.

systemd itself is not needed: what it would do is done here.

    split.py SALLYPORT DEPLOY/SYSTEMD
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import split_spare

BINARY, UNITS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
# A sanitized program can't be traced, and its calls are not those that ship.
TRACED = b"__asan_init" not in open(BINARY, "rb").read()
NOBODY = 65534
POLICY = "version: 1\nname: split\nallow: [allowed.test]\n"
good = True


def check(what, ok, told=""):
    global good
    print("ok     " + what if ok else f"FAILED {what}: {told}", flush=True)
    good = good and bool(ok)


def unit(name, key):
    """The words of all lines of @key, in order; lines as lists."""
    with open(os.path.join(UNITS, name)) as text:
        return [line.split("=", 1)[1].split() for line in text
                if line.startswith(key + "=")]


def filter_of(name):
    """The system calls that a unit may make."""
    sets, current = {}, None
    told = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager"],
                          capture_output=True, text=True, check=True).stdout
    for line in re.sub(r"\x1b\[[0-9;]*m", "", told).splitlines():
        if line.startswith("@"):
            current = sets.setdefault(line.strip(), [])
        elif line.startswith("    ") and not line.strip().startswith("#"):
            current.append(line.strip())

    def expand(word):
        if not word.startswith("@"):
            return {word}
        return set().union(*(expand(entry) for entry in sets[word]))

    allowed = expand("@default")
    for line in unit(name, "SystemCallFilter"):
        for word in line:
            if line[0].startswith("~"):
                allowed -= expand(word.lstrip("~"))
            else:
                allowed |= expand(word)
    return allowed


def used(prefix):
    """What strace saw of us, in all processes: what came before is of sh and
    setpriv."""
    calls = set()
    for file in os.listdir(os.path.dirname(prefix)):
        if file.startswith(os.path.basename(prefix) + "."):
            with open(os.path.join(os.path.dirname(prefix), file),
                      errors="replace") as text:
                told = text.read()
                own = told.rfind('\nexecve("' + BINARY)
                calls.update(match.group(1) for match in re.finditer(
                    r"^(\w+)\(", told[max(own, 0):], re.M))
    return calls


def limited(name, *argv):
    """@argv with the capabilities of a unit."""
    kept = [word.removeprefix("CAP_").lower()
            for line in unit(name, "CapabilityBoundingSet") for word in line]
    bounds = ",".join(["-all"] + ["+" + word for word in kept])
    return ["setpriv", "--no-new-privs", f"--bounding-set={bounds}",
            "--inh-caps=-all", *argv]


def traced(prefix):
    return ["strace", "-ff", "-qq", "-o", prefix] if TRACED else []


class Machine:
    """Where the two services run, and what systemd would do for them."""

    def __init__(self, top):
        self.top = top
        self.run = os.path.join(top, "run")
        self.path = os.path.join(self.run, "builder.sock")
        self.control = os.path.join(self.run, "control.sock")
        self.builders = []
        for folder in ("run", "state", "trace", "etc"):
            os.mkdir(os.path.join(top, folder), 0o755)
        self.trace = os.path.join(top, "trace")
        self.config = os.path.join(top, "etc/daemon.yaml")
        with open(self.config, "w") as out:
            out.write("version: 1\ngroup: nogroup\n")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o600)
        self.listener.listen()
        # The control socket is systemd's, too, and stays the same.
        self.asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.asked.bind(self.control)
        os.chown(self.control, 0, NOBODY)
        os.chmod(self.control, 0o660)
        self.asked.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        """Accept=yes: a builder a connection, with it as descriptor 3."""
        while True:
            connection, _ = self.listener.accept()
            line = limited("sallyport-builder@.service",
                           *traced(os.path.join(self.trace, "builder")), BINARY, "builder", self.run)
            # sh, because 3 may be anything here.
            builder = subprocess.Popen(
                ["sh", "-c", 'exec 3<&$1; shift; exec "$@"', "-",
                 str(connection.fileno()), *line],
                pass_fds=[connection.fileno()], stdin=subprocess.DEVNULL)
            connection.close()
            self.builders = [b for b in self.builders if b.poll() is None]
            self.builders.append(builder)

    def start(self):
        """Where ProtectSystem=strict and its like leave it."""
        cage = """
            mount -o bind,ro,remount / /
            mount -t proc -o hidepid=invisible,subset=pid proc /proc
            exec "$@"
        """
        rw = "\n".join(f"mount --rbind {self.top}/{d} {self.top}/{d}"
                       for d in ("run", "state", "trace"))
        line = limited("sallyport.service",
                       *traced(os.path.join(self.trace, "daemon")), "sh", "-c",
                       'exec 3<&$0; export LISTEN_PID=$$ LISTEN_FDS=1 '
                       'LISTEN_FDNAMES=control; exec "$@"',
                       str(self.asked.fileno()), BINARY, "daemon", "--config", self.config, "--state",
                       os.path.join(self.top, "state"), "--run", self.run,
                       "--socket", self.control)
        self.daemon = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "unchanged", "sh", "-ec",
             "mount --make-rslave /\n" + rw + cage, "-", *line],
            pass_fds=[self.asked.fileno()],
            env={**os.environ, "SALLYPORT_BUILDER": self.path},
            stdin=subprocess.DEVNULL)
        end = time.monotonic() + 120
        while self.call("status", "--json").returncode:
            if time.monotonic() > end or self.daemon.poll() is not None:
                sys.exit("FAILED the daemon does not come up")
            time.sleep(0.1)

    def call(self, *words, **more):
        return subprocess.run([BINARY, words[0], "--socket", self.control,
                               *words[1:]], capture_output=True, text=True,
                              timeout=60, **more)

    def end(self):
        """As systemd would."""
        for pid in find(self, b"daemon"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        self.daemon.wait(60)
        for builder in self.builders:
            builder.wait(60)

    def kill(self):
        """The daemon alone, as if it had crashed: not strace, which waits."""
        for pid in find(self, b"daemon"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.daemon.wait(60)


def descendants(pid):
    found = [pid]
    for parent in found:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(
                f"/proc/{parent}/task/{parent}/children") as children:
            found += [int(child) for child in children.read().split()]
    return found


def is_over(pid):
    """Whoever inherits it may not have buried it yet."""
    try:
        return status_of(pid, "State") == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def status_of(pid, key):
    with open(f"/proc/{pid}/status") as text:
        return re.search(f"^{key}:\\s*(\\S+)", text.read(), re.M).group(1)


def find(machine, word):
    """The processes of the daemon or a builder with @word as argument: not what
    has just been forked by one, and is to become another program."""
    found = []
    for top in [machine.daemon] + machine.builders:
        for pid in descendants(top.pid) if top.poll() is None else ():
            # It may be over by now.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                with open(f"/proc/{pid}/cmdline", "rb") as line:
                    words = line.read().split(b"\0")
                if words[:2] in ([b"sallyport", word], [BINARY.encode(), word]) \
                        and int(status_of(pid, "PPid")) not in found:
                    found.append(pid)
    return found


def sandbox(machine, who, name):
    """Made, seen from outside, used, and gone."""
    ids = {}
    if who == "user":
        home = tempfile.mkdtemp(dir=machine.top)
        os.chown(home, NOBODY, NOBODY)
        ids = {"user": NOBODY, "group": NOBODY, "extra_groups": [],
               "env": {"PATH": os.environ["PATH"], "HOME": home}}
    policy = os.path.join(machine.top, "etc/policy.yaml")
    with open(policy, "w") as out:
        out.write(POLICY)
    made = machine.call("create", "--policy", policy, "--json", name, **ids)
    check(f"{who}: create", made.returncode == 0, made)
    if made.returncode:
        return
    facts = json.loads(made.stdout)
    pin = os.path.join(machine.run, "netns", name)
    inside = subprocess.run(["nsenter", f"--net={pin}", "ip", "-4", "-o", "addr"],
                            capture_output=True, text=True)
    check(f"{who}: its namespace is seen from outside", facts["netns"] == pin
          and facts["ip"] in inside.stdout, (facts, inside))
    ran = machine.call("exec", "--quiet", name, "--", "cat", "/proc/net/dev",
                       cwd="/", **ids)
    check(f"{who}: exec", ran.returncode == 0 and "lo:" in ran.stdout, ran)


def life(machine):
    machine.start()
    daemon, = find(machine, b"daemon")
    end = time.monotonic() + 30
    while not find(machine, b"builder") and time.monotonic() < end:
        time.sleep(0.1)
    builder, = find(machine, b"builder")
    # CAP_NET_BIND_SERVICE
    check("the daemon has no right", status_of(daemon, "CapBnd") ==
          f"{1 << 10:016x}" and status_of(daemon, "NoNewPrivs") == "1",
          status_of(daemon, "CapBnd"))
    for who, name in ("root", "ours"), ("user", "theirs"):
        sandbox(machine, who, name)
    keepers = find(machine, b"keeper")
    check("keepers are the builder's", len(keepers) == 2 and all(
        pid in descendants(builder) for pid in keepers), keepers)
    machine.kill()
    machine.builders.pop(0).wait(60)
    end = time.monotonic() + 30
    while time.monotonic() < end and not all(map(is_over, keepers)):
        time.sleep(0.05)
    check("a killed daemon takes its builder and keepers along", all(
        is_over(pid) for pid in [builder, *keepers]))
    machine.start()
    end = time.monotonic() + 30
    while time.monotonic() < end:
        told = json.loads(machine.call("status", "--json").stdout)
        states = [entry["state"] for entry in told["sandboxes"]]
        if states == ["ready", "ready"]:
            break
        time.sleep(0.2)
    check("the next one finds its sandboxes", states == ["ready", "ready"],
          states)
    for name in "ours", "theirs":
        gone = machine.call("rm", name)
        check(f"rm {name}", gone.returncode == 0, gone)
    left = os.listdir(os.path.join(machine.run, "netns")) + os.listdir(
        os.path.join(machine.run, "user"))
    check("no name is left", not left, left)
    machine.end()
    check("the builder ends with the daemon", machine.builders and all(
        b.returncode == 0 for b in machine.builders), machine.builders)


def request(what, name=b"", uid=0):
    return struct.pack("=3I64s17s3x", what, uid, uid, name, bytes(17))


def say(machine, data, fds=()):
    """Its answer, and what whoever does it says later."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(30)
        s.connect(machine.path)
        if fds:
            socket.send_fds(s, [data], fds)
        else:
            s.send(data)
        answer, came, _, _ = socket.recv_fds(s, 4096, 1)
        later = b""
        for fd in came:
            with socket.socket(fileno=fd) as maker:
                maker.settimeout(30)
                later, given, _, _ = socket.recv_fds(maker, 4, 1)
                for ns in given:
                    os.close(ns)
                # It ends before its builder does.
                check("the builder: a maker ends", maker.recv(4) == b"")
        return answer[:4] + later if later else answer


def slow_owner(machine):
    """A user who stops whatever has his namespace, as soon as it is his: no
    other request waits for him. What the machine does beside it only ever
    adds."""
    worst = next((w for _ in range(3) if (w := slowest_request(machine)) < 1), 1)
    check("the builder: nobody waits for a slow owner", worst < 1, worst)


def slowest_request(machine):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(30)
        s.connect(machine.path)
        worst, made = 0, []
        for i in range(20):
            began = time.monotonic()
            s.send(request(1, b"slow%d" % i, NOBODY))
            answer, came, _, _ = socket.recv_fds(s, 4096, 1)
            worst = max(worst, time.monotonic() - began)
            check("the builder: starts to make one", len(came) == 1, answer)
            maker = socket.socket(fileno=came[0])
            maker.settimeout(30)
            # The child of whom does it: ours to stop, as it is nobody's.
            for pid in descendants(struct.unpack_from("=i", answer, 4)[0])[1:]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            made.append(maker)
        for i, maker in enumerate(made):
            with maker:
                said, given, _, _ = socket.recv_fds(maker, 4, 1)
                for ns in given:
                    os.close(ns)
                check("the builder: it is made, or is not", len(said) == 4 and
                      (said == bytes(4)) == bool(given), said)
            s.send(request(3, b"slow%d" % i))
            check("the builder: and dropped", s.recv(4096)[:4] == bytes(4))
    return worst


def nonsense(machine):
    """Whatever is said that is no request ends a builder, and makes nothing."""
    null = os.open("/dev/null", os.O_RDONLY)
    host = os.open("/proc/self/ns/net", os.O_RDONLY)
    whole = request(1, b"whole")
    answer = say(machine, whole)
    check("the builder: a request as it should be", answer == bytes(8) and
          os.listdir(os.path.join(machine.run, "netns")) == ["whole"], answer)
    answer = say(machine, request(1, b"whole"))
    check("the builder: a name that is taken", answer and
          answer[:4] == bytes(4) and answer[4:] != bytes(4), answer)
    slow_owner(machine)
    check("the builder: it is dropped", say(machine, request(3, b"whole"))[:4] ==
          bytes(4))
    for what, data, fds in (
            ("short", whole[:-1], ()), ("long", whole + b"x", ()),
            ("unknown", request(9, b"a"), ()), ("no name", request(1), ()),
            ("a path", request(1, b"../state/a"), ()),
            ("a dot", request(3, b".."), ()),
            ("no end", request(1, b"a" * 64), ()),
            ("upper case", request(1, b"A"), ()),
            ("a descriptor too much", whole, (null,)),
            ("no descriptors", request(0), ()),
            ("one too few", request(0), (null,)),
            ("a lock without an address", request(4), (null,))):
        check(f"the builder: {what}", say(machine, data, fds) == b"")
    lock = struct.pack("=3I64sB16s3x", 4, 0, 0, b"", 4, bytes([10, 0, 0, 1]))
    answer = say(machine, lock, (host,))
    check("the builder: the host's own namespace is not locked",
          b"host's own" in answer and answer[:4] != bytes(4), answer)
    for fd in null, host:
        os.close(fd)
    left = os.listdir(os.path.join(machine.run, "netns"))
    check("nothing came of it", not left, left)
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        try:
            say(machine, whole)
        except PermissionError:
            os._exit(0)
        os._exit(1)
    check("nobody but root asks", os.waitpid(child, 0)[1] == 0)


def filters(machine):
    for name, prefix in (("sallyport.service", "daemon"),
                         ("sallyport-builder@.service", "builder")):
        calls = used(os.path.join(machine.trace, prefix))
        # What strace itself and setpriv need is before execve.
        over = calls - filter_of(name)
        check(f"{name}: its filter lets pass what is called",
              len(calls) > 30 and not over, sorted(over))


def main():
    # Again, on a machine of our own, where nothing outlives us.
    if len(sys.argv) < 4:
        os.execvp("unshare", ["unshare", "--net", "--mount", "--propagation",
                              "private", "--pid", "--fork", "--kill-child",
                              "--mount-proc", sys.executable, *sys.argv,
                              "inside"])
    for folder in "/etc/sallyport", "/var/log/sallyport":
        os.makedirs(folder, exist_ok=True)
    top = tempfile.mkdtemp(prefix="sallyport-split-")
    for line in ("ip link set lo up", "mount --make-rshared /",
                 "mount -t tmpfs -o mode=755 tmpfs /etc/sallyport",
                 "mount -t tmpfs -o mode=700 tmpfs /var/log/sallyport",
                 f"mount -t tmpfs tmpfs {top}"):
        subprocess.run(line.split(), check=True)
    os.chmod(top, 0o755)
    machine = Machine(top)
    life(machine)
    nonsense(machine)
    split_spare.spares(machine, check, find, sandbox, request, say)
    if TRACED:
        filters(machine)
    else:
        print("       (sanitized: without the filters)")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
