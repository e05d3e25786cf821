# SPDX-License-Identifier: Apache-2.0
"""`sallyport prove --docker`: from a container that a real engine makes. One of
a network of the driver's is held; where somebody opened a way, it is named."""
import json
import os
import signal
import subprocess

import product
from engine import SOCKET, settle
from lab import sh


class Case(product.Case):
    def last(self, failed):
        if failed:
            print("--- the daemon\n" + self.daemon.tail())
            print("--- the engine\n" + self.docker.tail())
        return True


def begin(case, network="agents", *more):
    return subprocess.Popen(
        [case.daemon.binary, "prove", "--docker", network, "--docker-host",
         SOCKET.removeprefix("unix://"), "--json", "--allow", "allowed.test",
         *more], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=dict(os.environ, HOME=case.lab.dir))


def prove(case, network="agents", *more):
    with begin(case, network, *more) as p:
        out, err = p.communicate(timeout=120)
    return subprocess.CompletedProcess(p.args, p.returncode, out, err)


def attacks(done):
    assert done.stdout, done.stderr
    said = json.loads(done.stdout)
    at = {a["id"]: a for a in said["attacks"]}
    return said, at, {a for a in at if at[a]["result"] == "got_out"}


def containers(case):
    return case.docker.out("ps", "-aq", "--filter", "label=sallyport.prove")


def images(case):
    return case.docker.out("images", "-q", "--filter", "dangling=true")


def nothing_left(case):
    assert containers(case) == "" and images(case) == ""


def test_held(case):
    done = prove(case)
    said, at, out = attacks(done)
    assert done.returncode == 0 and not out, (out, done.stderr, [
        at[a] for a in out])
    for name in ("tcp", "udp", "icmp", "dns-label", "dns-other-udp", "connect",
                 "sni-direct", "machine-tcp"):
        assert at[name]["result"] == "held" and at[name]["recorded"], at[name]
    # A container's root may have raw sockets: it was sent, and stopped.
    assert at["one-link"]["result"] == "held", at["one-link"]
    assert at["spoof-raw"]["result"] == "held", at["spoof-raw"]
    assert at["namespaces"]["result"] == "skipped", at["namespaces"]
    nothing_left(case)
    tells(case, said)


def tells(case, said):
    """The receipt of the session, which ended with the container."""
    assert said.get("reported", "").startswith("docker-"), said.get("reported", "")
    log = os.path.dirname(said["log"])
    receipt = log + "/receipt.dsse.json"
    settle(lambda: os.path.exists(receipt) and os.path.getsize(receipt) > 0, True)
    shown = subprocess.run([case.daemon.binary, "verify", "--json", log],
                           text=True, capture_output=True, timeout=60)
    told = json.loads(shown.stdout)["receipt"]["attacks"]
    assert told["held"] == said["held"] and told["reported_by"] == [0], told


def test_not_a_network_of_ours(case):
    """The engine's own kind: this machine, and others, are reached."""
    case.docker.run("network", "create", "-d", "bridge", "open")
    done = prove(case, "open")
    said, at, out = attacks(done)
    assert done.returncode == 1, (done, out)
    assert {"machine-tcp", "witness"} <= out, (out, done.stderr)
    assert "not sallyport" in done.stderr and said.get("reported", "") == "", done
    nothing_left(case)


def test_container_with_a_second_network(case):
    """One that runs: held, until somebody connects it to another network and
    takes the tables away that stop what goes there."""
    case.docker.run("run", "-d", "--name", "busy", "--network", "agents", "box",
                    "sleep", "1000")
    settle(lambda: "inet" in case.docker.inside("busy", "nft", "list",
                                                "tables"), True)
    done = prove(case, "agents", "--container", "busy")
    said, at, out = attacks(done)
    assert done.returncode == 0 and not out, (out, done.stderr, [
        at[a] for a in out])
    assert at["tcp"]["recorded"] and said.get("reported", ""), said
    case.docker.run("network", "connect", "bridge", "busy")
    case.docker.inside("busy", "nft", "flush", "ruleset")
    done = prove(case, "agents", "--container", "busy")
    said, at, out = attacks(done)
    assert done.returncode == 1 and "one-link" in out, (out, done.stderr)
    assert "eth1" in at["one-link"]["detail"], at["one-link"]
    case.docker.run("rm", "-f", "busy")


def test_told_to_end(case):
    """By a terminal that is gone, by people, by a shutdown, and by whoever says
    so twice: it takes away what the engine has made for it."""
    for made, told in ((images, [signal.SIGHUP]), (images, [signal.SIGINT]),
                       (containers, [signal.SIGTERM, signal.SIGINT])):
        with begin(case) as p:
            while not made(case):
                assert p.poll() is None, p.communicate()
            for number in told:
                p.send_signal(number)
            p.communicate(timeout=60)
        assert p.returncode == 125, (told, p.returncode)
        nothing_left(case)


def test_mistakes(case):
    for args, text in ((("no-such",), "not found"), (("a/b",), "no name"),
                       (("agents", "--guard"), "one at a time")):
        done = prove(case, *args)
        assert done.returncode in (2, 125) and text in done.stderr, done
    nothing_left(case)
