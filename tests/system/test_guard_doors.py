# SPDX-License-Identifier: Apache-2.0
"""`sallyport guard`: who may come in, names by IPv6, networks that come later."""
import contextlib
import subprocess
import sys

from guarded import (Guard, attempt, fetch, nft, own_place, refused, run,
                     seen_at_evil, user)
from harness import check
from lab import EVIL, GOOD, GOOD6, sh

ALLOW = ("--allow", "allowed.test")
SERVER = """
import socket, sys
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    c, who = s.accept(); c.sendall(b"from " + who[0].encode()); c.close()
"""


def test_00_a_place_of_its_own(case):
    own_place()
    r = Guard(case).call("status")
    check(r.returncode == 1 and "no guard" in r.stdout, r)


# --- from outside -----------------------------------------------------------

@contextlib.contextmanager
def server(case, port):
    p = subprocess.Popen([*user(33), sys.executable, "-c", SERVER, str(port)])
    try:
        case.lab.wait(lambda: f":{port} " in sh("ss", "-Hltn"), "the server")
        yield
    finally:
        p.kill()
        p.wait()


def knock(case, port, data=b"", host="203.0.113.2", seconds=2):
    """What a client on the internet gets there."""
    code = (f"import socket; s = socket.create_connection(('{host}', {port}),"
            f" {seconds}); s.sendall({data!r}); print(s.recv(99))")
    return subprocess.run(["nsenter", "-t", str(case.lab.holder.pid), "-n",
                           "python3", "-c", code], capture_output=True,
                          text=True)


def test_inbound(case):
    with server(case, 4568), server(case, 4569):
        with Guard(case, *ALLOW, "--inbound", "4568", "--inbound", "9") as guard:
            # Not even the address was the client's to reach.
            r = knock(case, 4568, seconds=30)
            check(r.stdout == "b'from 127.0.0.1'\n", r)
            # Nobody listens at the one, the other is not among them.
            r = knock(case, 9, seconds=30)
            check(r.stdout in ("b''\n", "") and "timed out" not in r.stderr, r)
            for port in 4569, 3128:
                r = knock(case, port)
                check("timed out" in r.stderr, (port, r))
            r = fetch(case, "http://allowed.test/host")
            check(r.stdout == "allowed.test\n", r)
            check(guard.status()["up"], guard.status())
            records = [r for r in guard.records() if r["class_uid"] == 4001 and
                       r.get("src_endpoint", {}).get("ip") == "203.0.113.1"]
            check(any("4568" in str(r) and r["action_id"] == 1
                      for r in records), records)
        # Without a gate there is no answer.
        r = knock(case, 4568)
        check(r.returncode, r)
    guard.verified()


def test_inbound_is_no_way_out(case):
    """The listener is the gate's, whose answers leave: it has none for what was
    not sent from outside."""
    with server(case, 4568), Guard(case, *ALLOW, "--inbound", "4568") as guard:
        listeners = {int(line.split()[3].rsplit(":", 1)[1])
                     for line in sh("ss", "-Hltn").splitlines()
                     if line.split()[3].startswith("0.0.0.0:")}
        check(listeners, "none")
        for port in listeners | {4568}:
            for host in "127.0.0.1", "203.0.113.2":
                attempt(case, "forged-syn", host, port, EVIL, uid=0)
        for port in listeners:
            word, _ = attempt(case, "tcp", "203.0.113.2", port)
            check(not word.startswith("got"), word)
        # A program of in here that takes the port can't use it, either.
        for host, port in ((EVIL, 4568), (GOOD, 4568)):
            check((word := refused(case, "tcp", host, port)) == "refused 111", word)
    guard.verified()
    check(not seen_at_evil(case), seen_at_evil(case))


def test_inbound_after_a_kill(case):
    guard = Guard(case, *ALLOW, "--inbound", "4568")
    with server(case, 4568):
        guard.up()
        try:
            pid = guard.status()["pid"]
            subprocess.run(["kill", "-9", str(pid)], check=True)
            case.lab.wait(lambda: not guard.status()["serving"], "its end")
            check(guard.status()["rules"])
            r = knock(case, 4568)
            check("timed out" in r.stderr, r)
            guard.up()
            r = knock(case, 4568, seconds=30)
            check(r.stdout == "b'from 127.0.0.1'\n", r)
        finally:
            guard.down()


def test_bad_options(case):
    for words, said in ((("--inbound", "0"), "not a port"),
                        (("--inbound", "65536"), "not a port"),
                        (("--inbound", "80x"), "not a port"),
                        (("--inbound", "4568") * 17, "too many"),
                        (("--upstream", "dns.test"), "not ADDR"),
                        (("--upstream", "192.0.2.1:0"), "not ADDR"),
                        (("--upstream", "192.0.2.1") * 9, "too many")):
        r = Guard(case, *ALLOW, *words).up(check=False)
        check(r.returncode == 125 and said in r.stderr, (words, r))


# --- names ------------------------------------------------------------------

def test_names_by_ipv6(case):
    """Whoever asks a server by its IPv6 address is answered by the gate."""
    with Guard(case, *ALLOW) as guard:
        for server in GOOD6, "2001:db8:1::1", "::1":
            for how in "+notcp", "+tcp":
                r = run(case, "dig", "+short", "+tries=1", "+time=20", how,
                        "@" + server, "allowed.test")
                check(r.stdout.startswith("198.18."), r)
                r = run(case, "dig", "+tries=1", "+time=20", how, "@" + server,
                        "a.secret.evil.test")
                check("NXDOMAIN" in r.stdout and "not_in_policy" in r.stdout,
                      r)
        for kind in "tcp", "udp-connected":
            refused(case, kind, GOOD6, 853)
        check(guard.status()["up"], guard.status())
    guard.verified()
    check(not case.lab.packets("ip6 and port 53"))


def test_no_ipv6_on_loopback(case):
    """As engines have it, mostly."""
    sh("ip", "addr", "del", "::1/128", "dev", "lo")
    try:
        with Guard(case, *ALLOW) as guard:
            r = run(case, "dig", "+tries=1", "+time=2", "@" + GOOD6, "evil.test")
            check(r.returncode == 9 and "refused" in r.stdout, r)
            r = fetch(case, "http://allowed.test/host")
            check(r.stdout == "allowed.test\n", r)
        guard.verified()
    finally:
        sh("ip", "addr", "add", "::1/128", "dev", "lo")


def test_upstream(case):
    """The servers that are said, and not those of the system."""
    with Guard(case, *ALLOW, "--upstream", "93.184.216.99", "--upstream",
               f"[{GOOD6}]:5353") as guard:
        # Nobody is there.
        r = run(case, "dig", "+tries=1", "+time=8", "allowed.test")
        check("SERVFAIL" in r.stdout or r.returncode, r)
        check(case.lab.packets("dst host 93.184.216.99 and udp port 53"))
    guard.verified()


# --- networks that come later -----------------------------------------------

def test_another_network(case):
    """An engine connects a second network, with a default route by it."""
    with Guard(case, *ALLOW) as guard:
        sh("ip", "link", "add", "late0", "type", "veth", "peer", "name",
           "late1", "netns", str(case.lab.holder.pid))
        try:
            case.lab.net("ip", "addr", "add", "172.19.0.1/16", "dev", "late1")
            case.lab.net("ip", "-6", "addr", "add", "2001:db8:9::1/64", "dev",
                         "late1", "nodad")
            case.lab.net("ip", "link", "set", "late1", "up")
            sh("ip", "addr", "add", "172.19.0.2/16", "dev", "late0")
            sh("ip", "-6", "addr", "add", "2001:db8:9::2/64", "dev", "late0",
               "nodad")
            sh("ip", "link", "set", "late0", "up")
            sh("ip", "route", "add", EVIL, "via", "172.19.0.1")
            sh("ip", "route", "add", GOOD, "via", "172.19.0.1")
            case.lab.wait(lambda: 'late0' in nft(
                "list", "table", "netdev", "sallyport_guard"), "the rule")
            for kind, host, port in (
                    ("tcp", EVIL, 443), ("udp", EVIL, 443), ("tcp", GOOD, 80),
                    ("tcp", "172.19.0.1", 80), ("udp", "172.19.0.1", 514),
                    ("tcp", "2001:db8:9::1", 80)):
                for uid in 33, 0:
                    refused(case, kind, host, port, uid=uid)
            for uid in 33, 0:
                r = run(case, "dig", "+tries=1", "+time=20", "@172.19.0.1",
                        "a.secret.evil.test", uid=uid)
                check("NXDOMAIN" in r.stdout, r)
            word, _ = attempt(case, "packet", EVIL, 5556, "late0", uid=0)
            check(word == "refused 105", word)
            # Its addresses are the gate's to refuse, too: they are on-link.
            r = fetch(case, "http://172.19.0.1/", "-x", "http://" +
                      guard.status()["proxy"], "-o", "/dev/null", "-w",
                      "%{http_code}")
            check(r.stdout == "403", r)
            check(guard.status()["up"], guard.status())
        finally:
            sh("ip", "link", "del", "late0")
    guard.verified()
    check(not seen_at_evil(case))
