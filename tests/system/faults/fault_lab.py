# SPDX-License-Identifier: Apache-2.0
"""A session of the faulty binary, and flows through it one by one."""
import json
import os
import socket
import subprocess

from flow_agent import AGENT
from harness import check
from witness import PORT

POLICY = f"""version: 1
limits: {{connections: 2000, connections_per_second: 100000, dns_per_second: 100000,
          names: 4000, names_per_wildcard: 4000}}
allow:
  - "*.tunnel.test"
  - {{host: allowed.test, ports: [443]}}
  - {{host: allowed.test, ports: [{PORT}], protocol: any}}
"""
FLOWS = "dns", "dnstcp", "connect", "socks", "http", "direct", "sni", "published"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def write_policy(case, text=POLICY):
    case.count += 1
    path = f"{case.lab.dir}/faults-{case.count}.yaml"
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o644)
    return path


def verified(case, log):
    """What `sallyport verify` says of a log, which has no wound."""
    done = subprocess.run([case.binary, "verify", "--json", log], text=True,
                          capture_output=True, timeout=60)
    told = json.loads(done.stdout)
    check(told["problems"] == [], (log, told))
    return told


class Session:
    """`run` of a faulty binary, of which the processes of one role are so."""

    def __init__(self, case, faulty, **kw):
        self.case, self.faulty, role = case, faulty, faulty.role
        self.port, self.reloads, self.flows = free_port(), 0, 0
        self.policy = write_policy(case)
        plain, case.binary = case.binary, self.faulty.binary
        try:
            self.process, self.log = case.start(
                "python3", "-c", AGENT, allow=(), stdin=subprocess.PIPE,
                args=("--policy", self.policy, "--publish",
                      f"{self.port}:3000", "--quiet"), **kw)
        finally:
            case.binary = plain
        line = self.process.stdout.readline()
        check(line == "ready\n", line or self.process.communicate())
        self.pid = (self.process.pid if role == "run"
                    else case.child(self.process, role))

    def flow(self, kind):
        """What came of it: nothing if the session has ended."""
        self.flows += 1
        if kind in ("published", "reload"):
            return getattr(self, kind)()
        try:
            self.process.stdin.write(kind + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return ""
        return self.process.stdout.readline().strip()

    def prepare(self, kind):
        pass

    def reload(self):
        """To the same, with a host more or less."""
        self.reloads += 1
        with open(self.policy, "w") as f:
            f.write(POLICY + f"  - host{self.reloads % 2}.test\n")
        done = subprocess.run(
            [*self.case.drop(), self.case.binary, "reload", self.log],
            cwd=self.case.work, env=self.case.env(), text=True,
            capture_output=True, timeout=60)
        return "ok" if done.returncode == 0 else f"status {done.returncode}"

    def published(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 20) as s:
                s.sendall(b"hello")
                return "ok" if s.recv(3) == b"ok\n" else "closed"
        except TimeoutError:
            return "hung"
        except OSError as e:
            return type(e).__name__

    def warm_up(self, at_once=40):
        """Pools and tables that keep what they have once grown to do so now."""
        held = [socket.create_connection(("127.0.0.1", self.port), 20)
                for _ in range(at_once)]
        for s in held:
            s.sendall(b"hello")
            check(s.recv(3) == b"ok\n")
        for s in held:
            s.close()
        for kind in FLOWS:
            check(self.flow(kind) == "ok", kind)

    def alive(self):
        return (os.path.exists(f"/proc/{self.pid}") and
                self.process.poll() is None)

    def end(self):
        return self.process.communicate(timeout=60)[1]

    def ends_well(self):
        """With a receipt, and a log that holds."""
        err = self.end()
        check(self.process.returncode == 0, (self.process.returncode, err))
        check("Sanitizer" not in err, err)
        told = verified(self.case, self.log)
        check(told["closed"] and told["has_receipt"], told)
