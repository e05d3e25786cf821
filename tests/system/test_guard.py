# SPDX-License-Identifier: Apache-2.0
"""`sallyport guard`, in place, in a network that is there already: what gets out of
it, and what does not."""
import glob
import json
import os
import re
import subprocess
import sys
import time

from guarded import (Guard, attempt, fetch, nft, own_place, refused, run,
                     seen_at_evil, tables, user)
from harness import check, prompt, within
from lab import CDN, DNS, EVIL, GOOD, GOOD6, sh

ALLOW = ("--allow", "allowed.test")


def test_00_a_place_of_its_own(case):
    own_place()
    r = Guard(case).call("status")
    check(r.returncode == 1 and "no guard" in r.stdout, r)


# --- what gets out ----------------------------------------------------------

def test_allowed_hosts(case):
    with Guard(case, *ALLOW) as guard:
        state = guard.status()
        check(state["up"] and state["rules"] and state["serving"], state)
        check(state["boundary"] == "in-container", state)
        for uid in 33, 0, 12345:
            for url in "http://allowed.test/host", "https://allowed.test/host":
                r = fetch(case, url, uid=uid)
                check(r.stdout == "allowed.test\n", r)
        r = fetch(case, "https://allowed.test/host", "-x",
                  "http://" + state["proxy"])
        check(r.stdout == "allowed.test\n", r)
        r = run(case, "python3", "-c", "import urllib.request as u;"
                "print(u.urlopen('https://allowed.test/host').read())")
        check(r.stdout == "b'allowed.test\\n'\n", r)
        # Started before, asks after; and much at once.
        r = fetch(case, "https://allowed.test/mid", "-o", "/dev/null", "-w",
                  "%{size_download}")
        check(r.stdout == str(8 << 20), r)
    guard.verified()
    check(any(r["status_code"] == "rule" and r["class_uid"] == 4001
              for r in guard.records() if "status_code" in r))


def test_a_name_at_any_port_and_an_address(case):
    with Guard(case, "--allow", "allowed.test:7000", "--allow",
               f"{GOOD}:2525") as guard:
        word, _ = attempt(case, "tcp", "allowed.test", 7000)
        check(word == "got b'leak\\n'", word)
        word, _ = attempt(case, "tcp", GOOD, 2525)
        check(word.startswith("got b'220 "), word)
        for port in 7000, 80:
            check((word := refused(case, "tcp", GOOD, port)) == "refused 111", word)
        check((word := refused(case, "tcp", "allowed.test", 80)) == "refused 111", word)
        check(guard.status()["up"])
    guard.verified()


def test_real_answers(case):
    policy = case.lab.write("real.yaml", "version: 1\ndns: {answers: real}\n"
                            "allow: [allowed.test]\n")
    with Guard(case, "--policy", policy) as guard:
        r = fetch(case, "https://allowed.test/host", "-w", "%{remote_ip}")
        check(r.stdout == "allowed.test\n" + GOOD, r)
        check((word := refused(case, "tcp", CDN, 443)) == "refused 111", word)
    guard.verified()


def test_loopback_stays(case):
    server = subprocess.Popen(
        [*user(33), "python3", "-c", "import socket\n"
         "s=socket.create_server(('127.0.0.1',4567))\n"
         "while True: s.accept()[0].sendall(b'local')"])
    try:
        with Guard(case, *ALLOW):
            for _ in range(50):
                word, _ = attempt(case, "tcp", "127.0.0.1", 4567, uid=12345)
                if word == "got b'local'":
                    break
                time.sleep(0.05)
            check(word == "got b'local'", word)
    finally:
        server.kill()
        server.wait()


# --- what does not ----------------------------------------------------------

@prompt
def test_denied_names(case):
    with Guard(case, *ALLOW) as guard:
        began = time.monotonic()
        for url in "https://evil.test/", "http://other.test/":
            r = fetch(case, url)
            check(r.returncode == 6, r)
        r = fetch(case, "https://evil.test/", "-x",
                  "http://" + guard.status()["proxy"])
        check(r.returncode == 56 and "403" in r.stderr, r)
        within(3, time.monotonic() - began)
        # Another name at the address of the one that is allowed.
        r = fetch(case, "https://cdn.test/host", "--connect-to",
                  "cdn.test:443:allowed.test:443")
        check(r.returncode not in (0, 28), r)
        case.lab.wait(lambda: {"not_in_policy", "name_mismatch"} <= {
            r.get("status_code") for r in guard.records()}, "the records")
    guard.verified()


def test_names_are_asked_here_alone(case):
    with Guard(case, *ALLOW):
        for server in "8.8.8.8", "1.1.1.1", DNS, EVIL:
            for how in "+notcp", "+tcp":
                r = run(case, "dig", "+short", "+tries=1", "+time=20", how,
                        "@" + server, "allowed.test")
                check(r.stdout.startswith("198.18."), r)
                r = run(case, "dig", "+tries=1", "+time=20", how, "@" + server,
                        "a.secret.evil.test")
                check("NXDOMAIN" in r.stdout and "not_in_policy" in r.stdout,
                      r)
        # Whoever has another port for it.
        for port in 853, 5353, 443:
            check((word := refused(case, "udp-connected", "8.8.8.8", port)) == "refused 1", word)
    check(not case.lab.packets("host 8.8.8.8 or host 1.1.1.1"))
    # Only the gate asked, and only what is allowed.
    check(not [p for p in case.lab.packets(f"host {DNS}") if "secret" in p])


def test_other_ways_out(case):
    """Of a user and of root, each refused at once."""
    with Guard(case, *ALLOW) as guard:
        for uid in 33, 0:
            for kind, host, port in (
                    ("tcp", EVIL, 443), ("tcp", EVIL, 22), ("tcp", GOOD, 22),
                    ("tcp", "203.0.113.1", 80), ("udp", EVIL, 443),
                    ("udp", EVIL, 123), ("udp", "203.0.113.1", 514),
                    ("udp", "239.1.2.3", 5000), ("tcp", GOOD6, 443),
                    ("udp", GOOD6, 443), ("tcp", "2001:db8:1::1", 80)):
                refused(case, kind, host, port, uid=uid)
        for host, protocol in ((EVIL, 1), (EVIL, 47), (EVIL, 132), (EVIL, 255),
                               (GOOD6, 58)):
            refused(case, "raw", host, protocol, uid=0)
        r = run(case, "ping", "-c", "1", "-W", "2", EVIL, uid=0)
        check(r.returncode == 1 and "Packet filtered" in r.stdout, r)
        case.lab.wait(lambda: {EVIL, GOOD, GOOD6, "203.0.113.1"} <= {
            p.get("dst_endpoint", {}).get("ip") for p in guard.records()
            if p["unmapped"]["event"] == "packet"}, "the records")
    guard.verified()
    check(not seen_at_evil(case))
    check(not case.lab.packets("udp port 5000 or udp port 514 or tcp port 22"))


def test_forged(case):
    """What looks as if it had come from outside is answered to nobody there."""
    with Guard(case, *ALLOW) as guard:
        proxy = int(guard.status()["proxy"].split(":")[1])
        for kind, host, port in (("forged-udp", "8.8.8.8", 53),
                                 ("forged-udp", DNS, 53),
                                 ("forged-udp", "127.0.0.1", 53),
                                 ("forged-udp", "127.0.0.1", 9),
                                 ("forged-udp", GOOD, 9),
                                 ("forged-syn", "127.0.0.1", proxy),
                                 ("forged-syn", "127.0.0.1", 9),
                                 ("forged-syn", "198.18.0.1", 443),
                                 ("forged-syn", GOOD, 80)):
            attempt(case, kind, host, port, EVIL, uid=0)
        # By the uplink, to an address of the loopback.
        for host, port in (("127.0.0.1", 53), ("127.0.0.9", 514)):
            word, took = attempt(case, "bound", host, port, "up0", uid=0)
            check(word.startswith("refused") or word == "silence", word)
        check(fetch(case, "http://allowed.test/host").returncode == 0)
        # They did come to where somebody answers.
        case.lab.wait(lambda: [
            r for r in guard.records() if r["class_uid"] == 4003
            and r["src_endpoint"]["ip"] == EVIL], "questions")
        case.lab.wait(lambda: [
            r for r in guard.records() if r["unmapped"]["event"] == "packet"
            and r.get("dst_endpoint", {}).get("ip") == EVIL], "answers")
    guard.verified()
    check(not seen_at_evil(case), seen_at_evil(case))
    check(not case.lab.packets("net 127.0.0.0/8 or port 514"))


def test_from_outside(case):
    """Whoever comes in gets no answer: that would be a way out."""
    server = subprocess.Popen([*user(33), "python3", "-c",
                               "import socket; s = socket.create_server(('', "
                               "4568))\nwhile True: s.accept()[0].sendall("
                               "b'secret')"])
    def knock(port, seconds=2):
        return subprocess.run(
            ["nsenter", "-t", str(case.lab.holder.pid), "-n", "python3", "-c",
             "import socket; print(socket.create_connection(('203.0.113.2', "
             f"{port}), {seconds}).recv(9))"], capture_output=True, text=True)
    try:
        case.lab.wait(lambda: ":4568 " in sh("ss", "-Hltn"), "the server")
        r = knock(4568, 30)
        check(r.stdout == "b'secret'\n", r)
        with Guard(case, *ALLOW):
            r = knock(4568)
            check("timed out" in r.stderr, r)
            # Nor do the gate's own doors open.
            r = knock(3128)
            check("timed out" in r.stderr, r)
    finally:
        server.kill()
        server.wait()


def test_packet_sockets(case):
    """They see no rule of IP."""
    with Guard(case, *ALLOW) as guard:
        check(guard.status()["packet_sockets_met"])
        for kind in "packet", "packet-bypass":
            word, _ = attempt(case, kind, EVIL, 5556, "up0", uid=0)
            check(word == "refused 105", (kind, word))
        word, _ = attempt(case, "arp", EVIL, 0, "up0", uid=0)
        check(word == "refused 105", word)
        # On an interface that was not there when the guard came up.
        sh("ip", "link", "add", "new0", "type", "veth", "peer", "name", "new1",
           "netns", str(case.lab.holder.pid))
        try:
            case.lab.net("ip", "link", "set", "new1", "up")
            sh("ip", "link", "set", "new0", "up")
            case.lab.wait(lambda: any(w in nft(
                "list", "table", "netdev", "sallyport_guard")
                for w in ('"new0"', "new0,")), "the rule")
            word, _ = attempt(case, "packet", EVIL, 5556, "new0", uid=0)
            check(word == "refused 105", word)
        finally:
            sh("ip", "link", "del", "new0")
        time.sleep(2.5)  # it is looked at all the same
        check(guard.status()["up"], guard.status())
        case.lab.wait(lambda: [
            r for r in guard.records() if r["unmapped"]["event"] == "packet"
            and r.get("dst_endpoint", {}).get("ip") == EVIL], "recorded")
    guard.verified()
    check(not seen_at_evil(case))


def test_straight_to_the_gate(case):
    """Whoever was not redirected has no destination but the gate itself."""
    with Guard(case, *ALLOW) as guard:
        with open(glob.glob("/run/sallyport/guard-*.json")[0]) as f:
            state = json.load(f)
        word, took = attempt(case, "tcp", "127.0.0.1", state["transparent"])
        check(word in ("got b''", "refused 104") and took < 2, (word, took))
        r = run(case, "dig", "+tries=1", "+time=20", "-p", str(state["dns_udp"]),
                "@127.0.0.1", "evil.test")
        check("NXDOMAIN" in r.stdout, r)
        for name in "127.0.0.1", "localhost", "203.0.113.2":
            r = fetch(case, f"http://{name}:{state['transparent']}/", "-x",
                      "http://" + guard.status()["proxy"], "-o", "/dev/null",
                      "-w", "%{http_code}")
            check(r.stdout == "403", r)
        case.lab.wait(guard.denied, "the records")
        check("rule" not in guard.denied(), guard.denied())
    guard.verified()


def test_connections_of_before(case):
    """What was connected before the guard is cut: nothing more leaves."""
    code = f"""
import socket, sys, time
t = socket.create_connection(("{GOOD}", 7000)); t.sendall(b"before")
assert t.recv(9) == b"before"
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.connect(("{GOOD}", 9999))
u.send(b"before"); print("ready", flush=True); sys.stdin.readline()
t.settimeout(3)
for what in t, u:
    try: what.send(b"after!"); what.recv(9); print("through")
    except OSError as e: print("cut", e)
"""
    p = subprocess.Popen([*user(33), "python3", "-c", code], text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    check(p.stdout.readline() == "ready\n")
    with Guard(case, *ALLOW):
        out, _ = p.communicate("go\n", timeout=60)
        check(out.count("cut") == 2 and "through" not in out, out)
    lines = case.lab.packets(f"src 203.0.113.2 and host {GOOD} and "
                             "(udp port 9999 or tcp port 7000)")
    udp = [x for x in lines if "UDP" in x]
    check(len(udp) == 1, lines)
    # Once: in as many packets as its way took.
    check(len({re.search(r"seq [0-9:]+", x)[0] for x in lines
               if "UDP" not in x and "length 6" in x}) == 1, lines)


def test_forwarded(case):
    """A container inside of the container."""
    sh("ip", "netns", "add", "inner")
    try:
        sh("ip", "link", "add", "br-in", "type", "veth", "peer", "name", "eth0",
           "netns", "inner")
        sh("ip", "addr", "add", "10.77.0.1/24", "dev", "br-in")
        sh("ip", "link", "set", "br-in", "up")
        inner = ("ip", "netns", "exec", "inner")
        sh(*inner, "ip", "addr", "add", "10.77.0.2/24", "dev", "eth0")
        sh(*inner, "ip", "link", "set", "eth0", "up")
        sh(*inner, "ip", "route", "add", "default", "via", "10.77.0.1")
        with open("/proc/sys/net/ipv4/ip_forward", "w") as f:
            f.write("1")
        nft("add", "table", "ip", "engine")
        nft("add chain ip engine post { type nat hook postrouting priority "
            "100; }")
        nft("add", "rule", "ip", "engine", "post", "oifname", "up0",
            "masquerade")
        def get(seconds=30):
            return subprocess.run(
                (*inner, "curl", "-sS", "-m", str(seconds),
                 f"http://{GOOD}/host"), capture_output=True, text=True)
        before = get()
        check(before.stdout == GOOD + "\n", before)
        rules = nft("list", "table", "ip", "engine")
        with Guard(case, *ALLOW) as guard:
            r = get(2)
            check(r.returncode in (7, 28), r)
            r = subprocess.run((*inner, "dig", "+tries=1", "+time=1", "@" + DNS,
                                "evil.test"), capture_output=True, text=True)
            check(r.returncode == 9, r)
            check(nft("list", "table", "ip", "engine") == rules)
            case.lab.wait(lambda: [
                p for p in guard.records() if p["unmapped"]["event"] == "packet"
                and p.get("src_endpoint", {}).get("ip") == "10.77.0.2"], "it")
        guard.verified()
        check(nft("list", "table", "ip", "engine") == rules)
        r = get()
        check(r.stdout == GOOD + "\n", r)
    finally:
        subprocess.run(["nft", "delete", "table", "ip", "engine"])
        subprocess.run(["ip", "link", "del", "br-in"])
        subprocess.run(["ip", "netns", "del", "inner"])
        with open("/proc/sys/net/ipv4/ip_forward", "w") as f:
            f.write("0")


# --- an engine's resolver ---------------------------------------------------

# Listens in the container at a random port, asks in another namespace, as the
# resolver of a container engine does.
RESOLVER = """
import ctypes, os, socket, sys, threading
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); here.bind(("127.0.0.11", 0))
tcp = socket.create_server(("127.0.0.11", 0))
ns = os.open("/proc/%s/ns/net" % sys.argv[1], os.O_RDONLY)
assert ctypes.CDLL(None).setns(ns, 0) == 0
out = open(sys.argv[3], "ab", 0)
def ask(q):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2)
    s.sendto(q, (sys.argv[2], 53)); return s.recv(4096)
def serve():
    while True:
        c, _ = tcp.accept(); q = c.recv(4096); out.write(q + b"\\n")
threading.Thread(target=serve, daemon=True).start()
print(here.getsockname()[1], tcp.getsockname()[1], flush=True)
while True:
    q, peer = here.recvfrom(4096); out.write(q + b"\\n")
    try: here.sendto(ask(q), peer)
    except OSError: pass
"""


def test_resolver_of_an_engine(case):
    seen = case.lab.dir + "/resolver.seen"
    resolv = os.path.realpath("/etc/resolv.conf")
    p = subprocess.Popen([sys.executable, "-c", RESOLVER,
                          str(case.lab.holder.pid), DNS, seen],
                         stdout=subprocess.PIPE, text=True)
    mine = case.lab.write("resolv.docker", "nameserver 127.0.0.11\n")
    sh("mount", "--bind", mine, resolv)
    try:
        udp, tcp = p.stdout.readline().split()
        nft("add", "table", "ip", "docker_dns")
        nft("add chain ip docker_dns out { type nat hook output priority -100; "
            "}")
        nft("add", "rule", "ip", "docker_dns", "out", "ip", "daddr",
            "127.0.0.11", "udp", "dport", "53", "dnat", "to", ":" + udp)
        nft("add", "rule", "ip", "docker_dns", "out", "ip", "daddr",
            "127.0.0.11", "tcp", "dport", "53", "dnat", "to", ":" + tcp)
        r = run(case, "dig", "+short", "evil.test")
        check(r.stdout == EVIL + "\n", r)
        rules = nft("list", "table", "ip", "docker_dns")
        open(seen, "w").close()
        with Guard(case, *ALLOW) as guard:
            r = fetch(case, "https://allowed.test/host")
            check(r.stdout == "allowed.test\n", r)
            for at in ((), ("@127.0.0.11",), ("@127.0.0.11", "+tcp"),
                       ("@127.0.0.1",)):
                r = run(case, "dig", "+tries=1", "+time=20", *at,
                        "leak1.evil.test")
                check("NXDOMAIN" in r.stdout and "not_in_policy" in r.stdout,
                      r)
            for uid in 33, 0:
                r = run(case, "dig", "+tries=1", "+time=2", "@127.0.0.11", "-p",
                        udp, "leak2.evil.test", uid=uid)
                check(r.returncode == 9, r)
                word = refused(case, "tcp", "127.0.0.11", tcp, uid=uid)
                check(word == "refused 111", word)
            check(nft("list", "table", "ip", "docker_dns") == rules)
            # The engine renews its own rules: nobody minds.
            nft("add", "rule", "ip", "docker_dns", "out", "counter")
            time.sleep(2.5)
            check(guard.status()["up"], guard.status())
            check(fetch(case, "http://allowed.test/host").returncode == 0)
        guard.verified()
        with open(seen, "rb") as f:
            asked = f.read()
        check(b"allowed" in asked and b"leak" not in asked, asked)
    finally:
        subprocess.run(["nft", "delete", "table", "ip", "docker_dns"])
        sh("umount", resolv)
        p.kill()
        p.wait()


def test_resolver_that_would_ask_in_a_circle(case):
    resolv = os.path.realpath("/etc/resolv.conf")
    mine = case.lab.write("resolv.stub", "nameserver 127.0.0.53\n")
    p = subprocess.Popen([sys.executable, "-c", "import socket, time\n"
                          "s = socket.socket(socket.AF_INET, 2)\n"
                          "s.bind(('127.0.0.53', 53)); print(1, flush=True)\n"
                          "time.sleep(600)"], stdout=subprocess.PIPE)
    p.stdout.readline()
    sh("mount", "--bind", mine, resolv)
    try:
        r = Guard(case, *ALLOW).up(check=False)
        check(r.returncode == 125 and "dns: { upstream" in r.stderr, r)
        check(not tables(), tables())
        policy = case.lab.write("upstream.yaml", "version: 1\ndns: {upstream: "
                                f"[{DNS}]}}\nallow: [allowed.test]\n")
        with Guard(case, "--policy", policy):
            r = fetch(case, "https://allowed.test/host")
            check(r.stdout == "allowed.test\n", r)
    finally:
        sh("umount", resolv)
        p.kill()
        p.wait()
