# SPDX-License-Identifier: Apache-2.0
"""What README.md says under "Docker", typed as it stands there, and the Compose
file of deploy/examples, with Debian's docker-compose. Images have the names that
are said there, but are a busybox: nothing is pulled."""
import os
import pty
import re
import select
import shutil
import subprocess
import time

from engine import SOCKET, Engine
from lab import DNS
from product import wait

TOP = os.path.abspath(__file__ + "/../../../..")
IMAGES = "debian:12", "debian:12-slim"
# What is typed at the prompt inside; the quotes keep it apart from its echo.
TYPED = """
wget -qO- http://evil.test/ || echo re"fused"
nslookup evil.test; id; echo in"side"
exit
"""


def block(section):
    """The indented lines of a section of README.md, up to the next one."""
    with open(TOP + "/README.md") as f:
        text = f.read().split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines()
             if line.startswith("    ") or not line]
    return "\n".join(line[4:] for line in lines).strip() + "\n"


class Case:
    def __init__(self, lab):
        self.lab = lab
        self.daemon = None

    def start(self):
        self.lab.resolv(f"nameserver {DNS}\n")
        self.bin = self.lab.dir + "/bin"
        os.mkdir(self.bin)
        shutil.copy(os.environ["SALLYPORT_BINARY"], self.bin + "/sallyport")
        self.env = dict(os.environ, DOCKER_HOST=SOCKET, HOME=self.lab.dir,
                        PATH=self.bin + ":" + os.environ["PATH"],
                        COMPOSE_PROJECT_NAME="example")
        self.docker = Engine(self.lab).start()
        self.docker.image("plain")
        build = self.lab.dir + "/build"
        os.mkdir(build)
        with open(build + "/Dockerfile", "w") as f:
            f.write("FROM plain\nRUN printf '#!/bin/sh\\nexec /bin/sh \"$@\"\\n'"
                    " >/bin/bash && chmod +x /bin/bash\n")
        self.docker.run("build", "--network", "none", "-t", IMAGES[0], build)
        self.docker.run("tag", *IMAGES)

    def stop(self):
        if hasattr(self, "docker"):
            self.docker.stop()

    def last(self, failed):
        asked = self.lab.asked("evil.test")
        if asked:
            print("FAILED leaked:", *asked)
        return not asked

    def run(self, *argv, **kw):
        return subprocess.run(argv, text=True, capture_output=True,
                              env=self.env, timeout=90, **kw)

    def typed(self, argv, keys, seconds=200):
        """At a terminal. What appears on it."""
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(TOP)
            os.execvpe(argv[0], argv, self.env)
        seen, end, sent = b"", time.monotonic() + seconds, False
        while time.monotonic() < end:
            if not sent and re.search(rb"[#$] (\x1b\[6n)?$", seen):
                os.write(fd, keys.encode())
                sent = True
            if not select.select([fd], [], [], 0.2)[0]:
                # What runs on in the background keeps it open.
                if os.waitpid(pid, os.WNOHANG)[0]:
                    break
                continue
            try:
                got = os.read(fd, 4096)
            except OSError:
                break  # the last process has closed it
            if not got:
                break
            seen += got
        os.close(fd)
        return seen.decode(errors="replace").replace("\r", "")


def test_readme(case):
    """To the letter."""
    script = block("Docker")
    assert "sallyport daemon &" in script and "docker run" in script, script
    seen = case.typed(["sh", "-e", case.lab.write("typed.sh", script)], TYPED)
    assert "\nrefused\n" in seen and "\ninside\n" in seen, seen
    assert "uid=0" in seen and "hello" not in seen, seen
    # The daemon of that "&" went with its terminal.
    subprocess.Popen([case.bin + "/sallyport", "daemon"], env=case.env,
                     stdin=subprocess.DEVNULL, stdout=case.docker.log,
                     stderr=case.docker.log, start_new_session=True)
    wait(lambda: case.run("sallyport", "status").returncode == 0, "a daemon")
    log = case.run("sh", "-c", "grep -h evil.test "
                   "/var/log/sallyport/*/audit.jsonl").stdout
    assert '"not_in_policy"' in log, log
    assert case.docker.out("network", "inspect", "-f", "{{.Driver}}",
                           "agents") == "sallyport"
    case.docker.run("network", "rm", "agents")


def test_compose(case):
    """deploy/examples/docker/compose.yaml, by itself and with a command."""
    file = TOP + "/deploy/examples/docker/compose.yaml"
    got = case.run("docker-compose", "-f", file, "config", "-q")
    assert got.returncode == 0, got
    seen = case.typed(["docker-compose", "-f", file, "run", "--rm", "agent"],
                      TYPED)
    assert "\nrefused\n" in seen and "uid=65534" in seen, seen
    got = case.run("docker-compose", "-f", file, "run", "--rm", "-T", "agent",
                   "sh", "-c", "touch /x || touch /tmp/x && echo written; "
                   "grep -c eth /proc/net/dev; grep CapEff /proc/self/status")
    assert "written\n1\nCapEff:\t0000000000000000\n" in got.stdout, got
    got = case.run("docker-compose", "-f", file, "down")
    assert got.returncode == 0, got
    assert "example_agents" not in case.docker.out("network", "ls")
