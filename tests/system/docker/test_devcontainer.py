# SPDX-License-Identifier: Apache-2.0
"""deploy/devcontainer in a real engine: the Feature built into an image and
started as editors start it, and the containers that the Compose template
describes. The base image is busybox, the C library and ldconfig."""
import json
import os
import shutil
import subprocess

import yaml
from engine import BUSYBOX, Engine, settle
from lab import DNS, EVIL, GOOD

TOP = os.path.abspath(__file__ + "/../../../..")
DEVCONTAINER = TOP + "/deploy/devcontainer"
BINARY = os.environ["SALLYPORT_BINARY"]
SCRIPT = "/usr/local/bin/init-firewall.sh"
CONF = "/etc/sallyport/init-firewall.conf"
FEATURE = json.load(open(DEVCONTAINER + "/sallyport/devcontainer-feature.json"))
OPTIONS = {name.upper(): str(option["default"]).lower()
           if option["type"] == "boolean" else option["default"]
           for name, option in FEATURE["options"].items()}
LAB = {"POLICY": "", "DNS": DNS, "ALLOW": "allowed.test,other.test:80",
       "DENIEDURL": "http://evil.test/", "ALLOWEDURL": "http://allowed.test/"}


def base(root):
    """What a Debian image has that matters here."""
    subprocess.run([TOP + "/deploy/docker/rootfs", BINARY, root], check=True)
    shutil.rmtree(root + "/etc/sallyport")
    shutil.rmtree(root + "/usr/share")
    for at, _, files in os.walk(root):
        for file in files:
            if not file.startswith(("libc.so", "ld-linux")) and "etc" not in at:
                os.unlink(os.path.join(at, file))
    for folder in "bin", "sbin", "usr/local/bin", "home":
        os.makedirs(f"{root}/{folder}", exist_ok=True)
    shutil.copy("/sbin/ldconfig", root + "/sbin/ldconfig")
    with open(root + "/etc/ld.so.conf", "w") as out:
        out.write("include /etc/ld.so.conf.d/*.conf\n")
    with open(root + "/etc/passwd", "a") as out:
        out.write("node:x:1000:1000:n:/tmp:/bin/sh\n")
    with open(root + "/etc/nsswitch.conf", "w") as out:
        out.write("hosts: files dns\n")
    shutil.copy(BUSYBOX, root + "/bin/busybox")
    for applet in subprocess.run([BUSYBOX, "--list"], text=True, check=True,
                                 capture_output=True).stdout.split():
        if applet not in ("busybox", "ldconfig"):
            os.symlink("busybox", f"{root}/bin/{applet}")


class Case:
    def __init__(self, lab):
        self.lab, self.count = lab, 0

    def start(self):
        self.lab.resolv(f"nameserver {DNS}\n")
        self.docker = Engine(self.lab).start()
        self.load("base", base)
        subprocess.run([DEVCONTAINER + "/pack", BINARY, self.lab.dir + "/p"],
                       check=True)
        self.docker.run("network", "create", "--subnet", "172.31.1.0/24", "dev")
        done = self.install("dev", **LAB)
        assert done.returncode == 0, done

    def load(self, image, make):
        root, tar = f"{self.lab.dir}/{image}", f"{self.lab.dir}/{image}.tar"
        make(root)
        subprocess.run(["tar", "-C", root, "-cf", tar, "."], check=True)
        self.docker.run("import", "--change", "ENV PATH=/usr/local/bin:/usr/bin"
                        ":/sbin:/bin", tar, image)
        os.unlink(tar)

    def stop(self):
        if hasattr(self, "docker"):
            self.docker.stop()

    def last(self, failed):
        return True

    def install(self, image, packed=True, **options):
        """The Feature on top of the base image, as its users' tools build it:
        the options as variables, install.sh in its own directory."""
        feature = self.lab.dir + "/p/sallyport" if packed else \
            DEVCONTAINER + "/sallyport"
        words = []
        for option in {**OPTIONS, "_REMOTE_USER": "node", **options}.items():
            words += ["-e", "=".join(option)]
        self.docker.run("create", "--name", "build", "--network", "none", *words,
                        "-v", feature + ":/tmp/f:ro", "base", "/tmp/f/install.sh")
        done = self.docker.run("start", "-a", "build", check=False)
        if done.returncode == 0:
            self.docker.run("commit", "-c", "CMD []", "build", image)
        self.docker.run("rm", "build")
        return done

    def container(self, *options, image="dev", rights=True):
        """With what the Feature asks for."""
        self.count += 1
        name = f"c{self.count}"
        words = [f"--cap-add={c}" for c in FEATURE["capAdd"]] if rights else []
        if "--network" not in options:
            words += ["--network", "dev"]
        self.docker.run("run", "-d", "--init", "--name", name, *words,
                        *options, image, "sleep", "1000")
        return name

    def firewall(self, name, *words, user="0"):
        return self.docker.run("exec", "-u", user, name, SCRIPT, *words,
                               check=False)

    def sh(self, name, script, user="1000"):
        return self.docker.run("exec", "-u", user, name, "sh", "-c", script,
                               check=False)

    def set(self, name, **values):
        for key, value in values.items():
            self.docker.run("exec", name, "sed", "-i",
                            f's|^{key}=.*|{key}="{value}"|', CONF)

    def fetch(self, name, host):
        return self.sh(name, f"timeout 5 wget -qO- http://{host}/host")

    def held(self, name):
        got = self.fetch(name, "allowed.test")
        assert got.stdout == "allowed.test\n", got
        for host in "evil.test", EVIL, "www.wild.test":
            got = self.fetch(name, host)
            assert got.returncode and not got.stdout, (host, got)

    def nothing_leaves(self, name):
        for host in "allowed.test", GOOD, EVIL:
            got = self.fetch(name, host)
            assert got.returncode and not got.stdout, (host, got)


def test_firewall(case):
    """Up, tested, and again; and what people leave their old script for."""
    name = case.container()
    assert case.fetch(name, "evil.test").stdout == "evil.test\n"
    done = case.firewall(name)
    assert done.returncode == 0, done
    assert done.stdout.count("verification passed") == 2, done
    case.held(name)
    done = case.firewall(name)
    assert done.returncode == 0 and "was up" in done.stdout, done
    case.held(name)


def test_user(case):
    """Who is kept in starts it by sudo, and nothing else by that: its line
    says "without arguments", and the script listens to no environment."""
    name = case.container()
    rule = case.sh(name, "cat /etc/sudoers.d/*; stat -c %a:%u /etc/sudoers.d/*",
                   "0").stdout
    assert rule == f'node ALL=(root) NOPASSWD: {SCRIPT} ""\n440:0\n', rule
    done = case.firewall(name, user="1000")
    assert done.returncode == 1 and "needs root" in done.stderr, done
    done = case.firewall(name, "--policy", "/tmp/mine")
    assert done.returncode == 1 and "no arguments" in done.stderr, done
    case.sh(name, "printf 'version: 1\\ndefault: public\\n' >/tmp/mine")
    done = case.docker.run("exec", "-e", "POLICY=/tmp/mine", "-e",
                           "SALLYPORT_POLICY=/tmp/mine", "-e", "ALLOWED=x",
                           "-e", "http_proxy=http://127.0.0.1:9", name, SCRIPT)
    assert done.returncode == 0, done
    case.held(name)


def test_status(case):
    """Not 0 when the denied host can be reached, or the allowed one can't."""
    name = case.container()
    case.set(name, DENIED="http://other.test/no-such-page")
    done = case.firewall(name)
    assert done.returncode == 1 and "was able to reach" in done.stderr, done
    case.set(name, DENIED="http://evil.test/", ALLOWED="http://www.wild.test/")
    done = case.firewall(name)
    assert done.returncode == 1 and "unable to reach http://www" in done.stderr
    case.set(name, ALLOWED="http://other.test/")
    done = case.firewall(name)
    assert done.returncode == 0, done


def test_fails_closed(case):
    """A policy that is wrong, or another's: then nothing leaves, and the next
    start mends it."""
    for spoil, word in (("echo wrong: 1 >>", "wrong"), ("chmod 666", "alone"),
                        ("chown 1000", "alone"), ("rm", "alone")):
        name = case.container()
        policy = "/etc/sallyport/devcontainer.yaml"
        case.sh(name, f"cp -p {policy} /etc/saved; {spoil} {policy}", "0")
        done = case.firewall(name)
        assert done.returncode == 1 and word in done.stderr and \
            "nothing leaves this container now" in done.stderr, done
        case.nothing_leaves(name)
        case.sh(name, f"cat /etc/saved >{policy}; chmod 644 {policy}; "
                f"chown 0 {policy}", "0")
        done = case.firewall(name)
        assert done.returncode == 0, done
        case.held(name)
        case.docker.run("rm", "-f", name)


def test_without_right(case):
    """It says that it could not close the container."""
    name = case.container(rights=False)
    done = case.firewall(name)
    assert done.returncode == 1 and "CONTAINER IS OPEN" in done.stderr, done


def test_restart(case):
    """As editors do: stopped, started, and postStartCommand again."""
    name = case.container()
    assert case.firewall(name).returncode == 0
    case.docker.run("restart", "-t", "5", name)
    done = case.firewall(name)
    assert done.returncode == 0 and "was up" not in done.stdout, done
    case.held(name)


def test_resolvers(case):
    """Docker's own resolver may ask from inside the container, and so in a
    circle: whom it asks, newer engines say in resolv.conf; where nobody says
    it, the message does."""
    name = case.container()
    case.set(name, DNS="")
    done = case.firewall(name)
    assert done.returncode == 1 and "option dns" in done.stderr, done
    for line, works in ((f"# ExtServers: [{DNS}]", True),
                        (f"# ExtServers: [host({DNS})]", False)):
        name = case.container()
        case.set(name, DNS="")
        case.sh(name, f"echo '{line}' >>/etc/resolv.conf", "0")
        done = case.firewall(name)
        assert (done.returncode == 0) == works, (line, done)
    # On the engine's own network there is none of it.
    name = case.container("--network", "bridge")
    case.set(name, DNS="")
    done = case.firewall(name)
    assert done.returncode == 0, done


def test_install(case):
    """What is refused when the image is built."""
    for packed, options, word in (
            (False, {}, "the program is neither"),
            (True, {"POLICY": "no-such-preset"}, "no-such-preset"),
            (True, {"POLICY": 'x"], mode: observe'}, "only"),
            (True, {"ALLOW": 'a.test"\n'}, "only"),
            (True, {"ALLOWEDURL": "http://a.test/$(id)"}, "only"),
            (True, {"VERSION": "9.9.9"}, "not version 9.9.9"),
            (True, {"_REMOTE_USER": "ALL ALL"}, "only")):
        done = case.install("no", packed, **options)
        assert done.returncode and word in done.stderr, (options, done)
    for options in ({}, {"POLICY": "anthropic, github", "ALLOW": "*.a.test"},
                    {"POLICY": "/etc/sallyport/mounted.yaml"}):
        done = case.install("yes", **options)
        assert done.returncode == 0, (options, done)


