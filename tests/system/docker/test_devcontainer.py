# SPDX-License-Identifier: Apache-2.0
"""deploy/devcontainer in a real engine: the Feature built into an image and
started as editors start it, and the containers that the Compose template
describes. The base image is busybox, the C library and ldconfig."""
import json
import os
import shutil
import subprocess

import yaml
from engine import BUSYBOX, SOCKET, Engine, settle, steady
from lab import DNS, EVIL, GOOD, sh
from test_image import settings

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
        self.load("base", base, ["ENV PATH=/usr/local/bin:/usr/bin:/sbin:/bin"])
        subprocess.run([DEVCONTAINER + "/pack", BINARY, self.lab.dir + "/p"],
                       check=True)
        self.docker.run("network", "create", "--subnet", "172.31.1.0/24", "dev")
        done = self.install("dev", **LAB)
        assert done.returncode == 0, done

    def load(self, image, make, changes):
        root, tar = f"{self.lab.dir}/{image}", f"{self.lab.dir}/{image}.tar"
        make(root)
        subprocess.run(["tar", "-C", root, "-cf", tar, "."], check=True)
        words = [word for line in changes for word in ("--change", line)]
        self.docker.run("import", *words, tar, image)
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

    def fetch(self, name, host, seconds=5):
        return self.sh(name, f"timeout {seconds} wget -qO- http://{host}/host")

    def held(self, name):
        got = self.fetch(name, "allowed.test", 30)
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
    name = case.container("--cap-drop", "NET_RAW")
    assert case.fetch(name, "evil.test", 30).stdout == "evil.test\n"
    done = case.firewall(name)
    assert done.returncode == 0, done
    assert done.stdout.count("verification passed") == 2, done
    assert "NET_RAW" not in done.stderr, done
    case.held(name)
    done = case.firewall(name)
    assert done.returncode == 0 and "was up" in done.stdout, done
    leaves = f"dst host {EVIL} or (dst host {GOOD} and port 22)"
    before = steady(lambda: len(case.lab.packets(leaves)))
    assert before
    case.held(name)
    for script in (f"timeout 2 nc {GOOD} 22 </dev/null",
                   f"timeout 5 nslookup secret.tunnel.test {DNS}"):
        assert case.sh(name, script).returncode, script
    assert len(case.lab.packets(leaves)) == before
    assert not case.lab.asked("secret.tunnel.test")


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
    """Docker's own resolver asks from inside the container where the machine's
    is not on loopback: the gate then asks whom that asks, all of them, and
    follows nobody into a circle. Where it asks from the machine, the gate asks
    it."""
    for network, resolv in (("dev", f"nameserver {EVIL}\nnameserver {DNS}\n"),
                            ("dev", "nameserver 127.0.0.53\n"),
                            ("bridge", f"nameserver {DNS}\n")):
        case.lab.resolv(resolv)
        name = case.container("--network", network)
        case.set(name, DNS="")
        done = case.firewall(name)
        assert done.returncode == 0, (network, resolv, done)
        case.held(name)
        assert not case.lab.asked("secret.tunnel.test")
        got = case.sh(name, "timeout 5 nslookup secret.tunnel.test")
        assert got.returncode and not case.lab.asked("secret.tunnel.test"), got
        case.docker.run("rm", "-f", name)
    case.lab.resolv(f"nameserver {DNS}\n")


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




# --- the Compose template ---------------------------------------------------

TEMPLATE = DEVCONTAINER + "/compose/.devcontainer"
GATEWAY = "172.31.2.2"


def template():
    with open(TEMPLATE + "/compose.yaml") as text:
        return yaml.safe_load(text)


def compose(case):
    """The project, as Compose makes it of the template, with images that are
    here under the names that it asks for."""
    if hasattr(case, "composed"):
        return
    case.composed = True
    workspace = case.lab.dir + "/workspace"
    shutil.copytree(TEMPLATE, workspace + "/.devcontainer")
    with open(workspace + "/.devcontainer/policy.yaml", "w") as out:
        out.write("version: 1\nallow: [allowed.test]\n")
    case.load("gateway", lambda root: subprocess.run(
        [TOP + "/deploy/docker/rootfs", BINARY, root], check=True), settings())
    services = template()["services"]
    case.docker.run("tag", "gateway", services["gateway"]["image"])
    case.docker.run("tag", "base", services["agent"]["image"])
    done = subprocess.run(
        ["docker-compose", "-p", "project", "up", "-d", "--no-build"], text=True,
        cwd=workspace + "/.devcontainer", capture_output=True,
        stdin=subprocess.DEVNULL, timeout=120,
        env=dict(os.environ, HOME=case.lab.dir, DOCKER_HOST=SOCKET))
    assert done.returncode == 0, (done, case.docker.run(
        "logs", "project_gateway_1", check=False))
    # It has waited until the gateway was healthy.
    health = case.docker.out("inspect", "-f", "{{.State.Health.Status}}",
                             "project_gateway_1")
    assert health == "healthy", health
    for name in "gateway", "agent":
        case.docker.run("rename", f"project_{name}_1", name)


def inside(case, script, user="1000"):
    done = case.sh("agent", script, user)
    assert done.returncode not in (126, 127, 139), (script, done)
    return done


def test_template_rights(case):
    """The agent has none, whoever it is there; the files that say so are not
    its to change."""
    compose(case)
    for user in "0", "1000":
        done = inside(case, "grep -c '^Cap.*:.0*$' /proc/self/status; "
                      "grep NoNewPrivs /proc/self/status", user)
        assert done.stdout == "5\nNoNewPrivs:\t1\n", done
        done = inside(case, "cd /workspace/.devcontainer && echo >>policy.yaml ||"
                      " rm compose.yaml || mv ../.devcontainer ../x", user)
        assert done.returncode, done
    with open(TEMPLATE + "/devcontainer.json") as text:
        settings = json.load(text)
    services = template()["services"]
    assert settings["service"] == "agent" in services
    assert settings["dockerComposeFile"] == "compose.yaml"
    assert not {"runArgs", "capAdd", "privileged", "features"} & set(settings)


def test_template_names(case):
    """By DNS alone, as programs do that know of no proxy, and by the proxy."""
    compose(case)
    for prefix in "", f"http_proxy=http://{GATEWAY}:3128 ":
        clear = prefix or "unset http_proxy; "
        got = inside(case, clear + "timeout 30 wget -qO- http://allowed.test/host")
        assert got.stdout == "allowed.test\n", (prefix, got)
        got = inside(case, clear + "timeout 9 wget -qO- http://evil.test/host")
        assert got.returncode and not got.stdout, (prefix, got)
    for host, good in ("allowed.test", True), ("evil.test", False):
        got = inside(case, f"(printf 'CONNECT {host}:443 HTTP/1.1\\r\\nHost: {host}"
                     f":443\\r\\n\\r\\n'; sleep 10) | timeout 30 nc {GATEWAY} 3128 | head -n1")
        assert got.stdout.startswith("HTTP/1.1 200" if good else "HTTP/1.1 403"), \
            got
        # TLS for the name, from the machine's own client in that network.
        got = subprocess.run(
            ["nsenter", "-t", str(case.docker.pid("agent")), "-n", "curl", "-sS",
             "-m", "30", "--noproxy", "*", "--cacert", case.lab.ca, "--resolve",
             f"{host}:443:{GATEWAY}", f"https://{host}/host"], text=True,
            capture_output=True)
        assert (got.stdout == host + "\n") == good and \
            (got.returncode == 0) == good, (host, got)


def test_template_no_other_way(case):
    """Not by address, not by routes, not to the host, not by a resolver."""
    compose(case)
    before = len(case.lab.packets(f"dst host {EVIL} or dst host 8.8.8.8"))
    case.lab.spawn("socat", "TCP-LISTEN:8099,fork,reuseaddr", "EXEC:echo host")
    case.lab.wait(lambda: ":8099 " in sh("ss", "-Hltn"), "port 8099")
    for host, port in ((EVIL, 80), (GOOD, 80), ("8.8.8.8", 53), (DNS, 53),
                       ("172.31.2.1", 8099), ("172.31.1.1", 8099),
                       ("203.0.113.2", 8099)):
        got = inside(case, f"timeout 2 nc {host} {port} </dev/null", "0")
        assert got.returncode, (host, got)
    for server in "", "127.0.0.11", GATEWAY:
        got = inside(case, f"timeout 9 nslookup secret.tunnel.test {server}")
        assert got.returncode and GOOD not in got.stdout, got
    assert not case.lab.asked("secret.tunnel.test")
    # Nor by the gateway as a router, if somebody had the right to say so.
    forward = "/proc/sys/net/ipv4/ip_forward"
    assert case.docker.inside("gateway", "cat", forward) == "0\n"
    case.docker.inside("agent", "ip", "route", "add", EVIL, "via", GATEWAY)
    got = inside(case, f"timeout 2 nc {EVIL} 80 </dev/null")
    assert got.returncode, got
    after = len(case.lab.packets(f"dst host {EVIL} or dst host 8.8.8.8"))
    assert after == before, after
    # On another network the same tries succeed.
    for place in f"{EVIL} 80", "172.31.1.1 8099":
        case.docker.run("run", "--rm", "--network", "dev", "base", "sh", "-c",
                        f"timeout 30 nc {place} </dev/null")


def test_template_log(case):
    """It takes another policy when it is told to; then, what it leaves."""
    compose(case)
    with open(case.lab.dir + "/workspace/.devcontainer/new", "w") as out:
        out.write("version: 1\nallow: [allowed.test, other.test]\n")
    os.rename(out.name, os.path.dirname(out.name) + "/policy.yaml")
    fetch = "timeout 5 wget -qO- http://other.test/host"
    assert not inside(case, fetch).stdout
    case.docker.run("kill", "-s", "HUP", "gateway")
    got = settle(lambda: inside(case, fetch).stdout, "other.test\n")
    assert got == "other.test\n", case.docker.run("logs", "gateway")
    done = case.docker.run("exec", "gateway", "sallyport", "log")
    assert "other.test" in done.stdout, done
    case.docker.run("stop", "-t", "20", "gateway")
    done = case.docker.run("run", "--rm", "--volumes-from", "gateway",
                           "gateway", "verify", check=False)
    assert done.returncode == 0 and "holds" in done.stdout, done


def test_feature(case):
    """What tools demand of it, and that editors start what is installed."""
    assert FEATURE["id"] == "sallyport" and FEATURE["capAdd"] == ["NET_ADMIN"]
    version = case.docker.out("run", "--rm", "dev", "sallyport", "version")
    assert version == "sallyport " + FEATURE["version"], version
    for option in FEATURE["options"].values():
        assert option["type"] in ("string", "boolean") and "default" in option
    name = case.container()
    done = case.sh(name, FEATURE["postStartCommand"], "0")
    assert done.returncode == 0 and "passed" in done.stdout, done
