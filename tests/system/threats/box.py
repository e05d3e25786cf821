# SPDX-License-Identifier: Apache-2.0
"""A sandbox that lives for a whole table, and what is asked of it: each attack is
told to the agent in it, and its record and its silence are looked at at once."""
import ast
import inspect
import json
import os
import subprocess
import sys
import textwrap


HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from attack_lab import COMMON
from policy_rows import LOOKS, denied as looks_of
from frame import check, equal
from uplink import dns_name, news

VERDICTS = ("dns_query", "flow_open", "http_request")


def text(*path):
    with open(os.path.join(*path)) as f:
        return f.read()


def looks(reason, door):
    """How a refusal for @reason looks to the client at @door."""
    return LOOKS.get(reason, looks_of(reason))[door]


class Log:
    """Of a session, read as it grows."""

    def __init__(self, path):
        self.path, self.at, self.records = path + "/audit.jsonl", 0, []

    def read(self):
        with open(self.path, "rb") as f:
            f.seek(self.at)
            data = f.read()
        data = data[:data.rfind(b"\n") + 1]
        self.at += len(data)
        self.records += [json.loads(line) for line in data.splitlines()]
        return self.records

    def of_port(self, port):
        """The verdicts on what came from this port of the sandbox."""
        return [r for r in self.read() if r["unmapped"]["event"] in VERDICTS
                and r.get("src_endpoint", {}).get("port") == port]


class Box:
    def __init__(self, world, policy, args=(), wrap=(), env=None):
        """@wrap: a command that starts the agent's, inside."""
        self.world, self.case = world, world.case
        path = None
        if policy is not None:
            path = world.lab.write(f"policy-{world.count()}.yaml",
                                   "version: 1\n" + textwrap.dedent(policy))
            self.case.mine(path)
            args = ("--policy", path, *args)
        self.policy_path = path
        agent = (*wrap, "python3", "-c", text(HERE, "inside.py"))
        log, argv = self.case.argv(agent, (), args)
        self.directory, self.log = log, Log(log)
        self.err = open(f"{log}.err", "w+")
        self.process = subprocess.Popen(
            argv, cwd=self.case.work, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.err,
            env=self.case.env(**(env or {})))
        self.write({"common": COMMON, "policy_probe": text(
            os.path.dirname(HERE), "policy_probe.py")})
        if self.process.stdout.readline() != "ready\n":
            raise AssertionError(f"no agent: {text(log + '.err')}")
        self.sent, self.expected = set(), []

    def write(self, what):
        self.process.stdin.write(repr(what) + "\n")
        self.process.stdin.flush()

    # -- telling it ---------------------------------------------------------

    def start(self, fn, *args, **more):
        """Calls a function inside, whose result finish() waits for. It is sent
        as source, so it sees what inside.py has and nothing of its own file;
        or the name of one that is there."""
        name = fn if isinstance(fn, str) else fn.__name__
        source = ""
        if name not in self.sent and not isinstance(fn, str):
            source = textwrap.dedent(inspect.getsource(fn))
        self.sent.add(name)
        self.write((source, name, args, more))

    def finish(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the agent is gone: {text(self.err.name)[-2000:]}")
        word, value = ast.literal_eval(line)
        if word != "ok":
            raise AssertionError("inside: " + value)
        return value

    def call(self, fn, *args, **more):
        self.start(fn, *args, **more)
        return self.finish()

    def probe(self, door, name, **more):
        """See policy_probe.py; @name is text, or bytes of any kind."""
        if isinstance(name, bytes):
            name = name.decode("latin-1")
        return self.call(run_probe, {"door": door, "name": name, **more})

    def talk(self, *args, **more):
        """(own port, what came, how it ended), see inside.py."""
        return self.call("talk", *args, **more)

    def ask(self, message, **more):
        """(own port, answer) of a raw DNS message, see inside.py."""
        return self.call("ask", message, **more)

    # -- what has to come of it --------------------------------------------

    def recorded(self, port, reasons, denied=True):
        """Waits for the verdicts on what came from @port, and that in the end
        there are no others. @reasons: one word, or a word for each."""
        reasons = [reasons] if isinstance(reasons, str) else list(reasons)
        self.expected.append((self.world.row, port, reasons))
        self.world.wait(lambda: len(self.log.of_port(port)) >= len(reasons),
                        lambda: f"{reasons} of port {port} in the log")
        records = self.log.of_port(port)
        equal(words(records), reasons, *(r["message"] for r in records))
        if denied is not None:
            equal(records[-1]["action_id"], 2 if denied else 1, records[-1]["message"])
        return records

    def denials(self, where, reason):
        """Records of refusals of this name or address; a packet that the kernel
        dropped has a record, too, which may count several."""
        return [r for r in self.log.read() if r.get("action_id") == 2
                and r.get("status_code") == reason
                and where in (r.get("dst_endpoint", {}).get("hostname"),
                              r.get("dst_endpoint", {}).get("ip"),
                              r.get("query", {}).get("hostname"))]

    def dropped(self, reason, ip, port=None, count=1):
        """Waits for the record of packets to this address that the kernel did
        not let pass; they may be many in one record."""
        def seen():
            return sum(r.get("count", 1) for r in self.denials(ip, reason)
                       if port in (None, r["dst_endpoint"].get("port")))
        self.world.wait(lambda: seen() >= count,
                        lambda: f"{count} packets dropped as {reason} to {ip}:{port}")

    def closed(self, port):
        """How a flow ended."""
        return [r for r in self.log.read() if r["unmapped"]["event"] == "flow_close"
                and r.get("src_endpoint", {}).get("port") == port]

    def ended(self, port, reason, event="flow_dial"):
        """Waits for the one record that says that what the policy let in could
        not go on, for @reason; a question has a "dns_answer"."""
        def found():
            return [r for r in self.log.read() if r["unmapped"]["event"] == event
                    and r.get("src_endpoint", {}).get("port") == port]
        self.world.wait(found, f"{event} of port {port}")
        equal([(r["status_code"], r["action_id"]) for r in found()], [(reason, 2)])

    def silent(self, *about, dialled=None):
        """Since the uplink was last looked at nothing has left; but a connection
        to @dialled, that the policy allows, may have been begun: with no byte."""
        uplink = self.world.uplink
        left = [p for p in uplink.since() if unheard(p) not in uplink.old]
        new = [p for p in news(left) if not (p.kind == "syn" and p.to == dialled)]
        check(not new, *about, "but outside was seen:", *new)
        said = [p for p in left if p.data]
        check(not said, *about, "but this was said outside:", *said)

    def quiet(self):
        """What earlier probes began has ended; from here on is new."""
        self.world.uplink.mark()

    def denied(self, door, name, reason, want=None, records=None, **more):
        """The probe is refused as @reason is at this door, is recorded so,
        once, and nothing of it is seen outside. @records: all verdicts, where
        there are others before it."""
        self.quiet()
        p = self.probe(door, name, **more)
        about = (self.world.row, door, p["name"])
        want = want or looks(reason, door)
        check(p["got"] in (want if isinstance(want, tuple) else (want,)), *about,
              "got", p["got"], "want", want)
        found = self.recorded(p["source"], records or reason)
        self.silent(*about)
        return p, found[-1]

    def refused(self, talked, reason, want, how="eof"):
        """The same of something raw that was said: the answer begins with
        @want (bytes), and the connection is closed."""
        port, got, end = talked
        check(got.startswith(want), self.world.row, got[:300], "want", want)
        if how:
            equal(end, how, self.world.row, got[:300])
        records = self.recorded(port, reason)
        self.silent(self.world.row)
        return records[-1]

    def allowed(self, door, name, reasons="rule", want="ok", **more):
        """The control: said like this it works, and is recorded so."""
        p = self.probe(door, name, **more)
        about = (self.world.row, door, p["name"])
        check(p["got"].startswith(want), *about, "got", repr(p["got"]))
        self.recorded(p["source"], reasons, denied=False)
        return p

    # -- the end ------------------------------------------------------------

    def late(self):
        """After the end: the rows whose verdicts are not what they were."""
        return [(row, f"port {port}: {words(self.log.of_port(port))}, not {reasons}")
                for row, port, reasons in self.expected
                if words(self.log.of_port(port)) != reasons]

    def stop(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode


def unheard(packet):
    """The question (see uplink.of) whose answer came when nobody waited for it any
    more: the kernel says so to the server (ICMP: port unreachable)."""
    if packet.kind != "proto 1" or packet.data[:2] != b"\3\3":
        return None
    answer = packet.data[8:]
    udp = answer[(answer[0] & 15) * 4:]
    return (packet.to, dns_name(udp[8:])) if udp[:2] == b"\0\x35" else None


def words(records):
    return [r["status_code"] for r in records]


def run_probe(p):
    if "say" not in p:  # else it may be a silence that is waited for
        p.setdefault("timeout", PATIENCE)
    doors.run(p)
    return p
