# SPDX-License-Identifier: Apache-2.0
"""Names, however they are spelled, by whatever door."""
import os
import struct
import subprocess

from box import looks
from frame import (CONNECT, DNS, FLOW_DOORS, HOST, HTTP, NAME_DOORS, SNI, SOCKS,
                   check, equal, row)
from lab import EVIL, GOOD
from policy_rows import leased
from policy_world import WEB
from test_policy_names import BROKEN, EMPTY, LITERALS, NAMES, makes_sense
from uplink import said

POLICY = """
allow:
  - allowed.test
  - "*.wild.test"
  - { host: deep.er.wild.test, ports: [22] }
  - cdn.test
  - web.test
  - xn--bcher-kva.test
  - host.secret.wild.test
deny:
  - evil.wild.test
  - "*.secret.wild.test"
"""


def names(world, door, id, more=()):
    """All spellings of this id that can be said at @door."""
    box = world.box(POLICY)
    spellings = [(n, r) for i, n, r in NAMES if i == id] + list(more)
    for name, reason in spellings:
        if makes_sense(door, name):
            box.denied(door, name, leased(door, reason, name))
    box.allowed(door, "allowed.test")
    return box


def dns_malformed(box, *messages):
    """As it is, by UDP and by TCP: FORMERR, and no question goes up."""
    for message in messages:
        for tcp in False, True:
            box.quiet()
            port, got = box.ask(message, tcp=tcp)
            equal(got[3] & 15, 1, message)
            box.recorded(port, "malformed")
            box.silent(message)


def question(*labels, kind=1, raw=b""):
    """Of labels as they are, dots and all."""
    return (struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) +
            b"".join(bytes([len(x)]) + x for x in labels) + raw + b"\0" +
            struct.pack(">2H", kind, 1))


# -- N1 ---------------------------------------------------------------------


@row("N1", doors=(CONNECT, HTTP, SOCKS, DNS))
def empty_policy(world, door):
    """A policy that allows nothing allows nothing."""
    for policy in EMPTY:
        world.box(policy).denied(door, "allowed.test", "not_in_policy")
    world.box(POLICY).allowed(door, "allowed.test")


def start(world, *args):
    case = world.case
    return subprocess.run(
        [*case.drop(), case.binary, "run", "--log", world.place(), *args, "--",
         "echo", "RAN"], cwd=case.work, text=True, env=case.env(),
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60)


@row("N1")
def unreadable_policy(world):
    """What can't be read or understood is an error with file and line, and nothing
    is started; so it is with an `--allow` that is empty or no name."""
    for what, (text, words) in BROKEN.items():
        path = world.lab.write("broken.yaml", text)
        done = start(world, "--policy", path)
        check(done.returncode == 125 and "RAN" not in done.stdout, what, done)
        check(words in done.stderr and "broken.yaml" in done.stderr, what, done)
    for path in "/nowhere.yaml", world.lab.dir, "/dev/null", "":
        done = start(world, "--policy", path)
        check(done.returncode == 125 and "RAN" not in done.stdout, path, done)
    for name in "", ",", "allowed.test,evil.test", "*", "*.", ".", "a b", "[]":
        done = start(world, "--allow", name)
        check(done.returncode == 125 and "RAN" not in done.stdout, name, done)
    done = start(world, "--allow", "allowed.test")
    check(done.returncode == 0 and done.stdout == "RAN\n", done)


# -- N2 to N9: spellings ----------------------------------------------------


@row("N2", doors=NAME_DOORS)
def nul_and_controls(world, door):
    """A name with a byte that is of no host name is malformed, before any match."""
    box = names(world, door, "N2", [
        (name, "malformed") for name in (
            "\0allowed.test", "evil.test\x7fallowed.test", "evil.test\x1b.allowed.test",
            "allowed.test\x0b", "evil.test%00.allowed.test", "allowed.test\xff")])
    if door == DNS:
        dns_malformed(box, question(b"evil", b"test\0", b"allowed", b"test"),
                      question(b"allowed", b"te\0st"), question(b"evil\0.allowed", b"test"))
    if door == SOCKS:
        name = b"evil.test\0.allowed.test"
        box.quiet()
        box.refused(box.talk(pieces=[b"\5\1\0", b"\5\1\0\3" + bytes([len(name)]) + name +
                                     b"\1\xbb"], first=2), "malformed", b"\5\0\5\1")


@row("N3", doors=NAME_DOORS)
def neighbours(world, door):
    """Names are compared label by label, and a dot is a dot."""
    names(world, door, "N3", [(name, "not_in_policy") for name in (
        "allowed.test.x", "xallowed.test", "allowed.tests", "a.allowed.test",
        "allowed.test.allowed.tes", "wwwxwild.test", "cdn.test.evil.test")])


@row("N4", doors=NAME_DOORS)
def wildcard_edges(world, door):
    """`*.x` is every name below x at any depth and not x; deny wins over allow."""
    box = names(world, door, "N4")
    apex = leased(door, "not_in_policy", "wild.test")
    for name in "wild.test", "test":
        box.denied(door, name, apex, "NOERROR 15" if door == DNS else None)
    for name in "www.wild.test", "WWW.wild.test":
        via = {"via": "www.wild.test"} if door in (SNI, HOST) else {}
        box.allowed(door, name, **via)


@row("N5", doors=NAME_DOORS)
def dots(world, door):
    """One trailing dot is dropped, except in TLS, where no name has one; an empty
    label is malformed."""
    box = names(world, door, "N5", [("allowed.test...", "malformed"),
                                    ("..", "malformed"), ("evil.test..", "malformed")])
    if door == SNI:
        box.denied(door, "allowed.test.", "malformed")
    else:
        box.allowed(door, "allowed.test.", host="allowed.test")
    if door == DNS:  # a dot in a label is no dot between labels
        dns_malformed(box, question(b"allowed.test"), question(b"allowed", b"test."),
                      question(b"evil.test", b"allowed", b"test"))


@row("N6", doors=NAME_DOORS)
def brackets(world, door):
    """Brackets hold an IPv6 address and nothing else."""
    names(world, door, "N6", [(name, "malformed") for name in (
        "]allowed.test[", "[[allowed.test]]", "[allowed.test]evil.test",
        "evil.test[allowed.test]", "[evil.test", "[]", "[", "]")])


@row("N7", doors=NAME_DOORS)
def mixed_case(world, door):
    """Case is ignored in every door, and the log has lower case; DNS answers in the
    case of the question."""
    box = names(world, door, "N7")
    for name in "ALLOWED.TEST", "aLLoWeD.tEsT":
        p = box.allowed(door, name)
        if door == DNS:
            check(p["echo"][1:8] == name[:7] and p["echo"][9:13] == name[8:], p)
        r = box.log.of_port(p["source"])[0]
        for said in (r.get("dst_endpoint", {}).get("hostname"),
                     r.get("query", {}).get("hostname"), r.get("tls", {}).get("sni")):
            check(said in (None, "allowed.test"), said)


@row("N8", doors=NAME_DOORS)
def unicode(world, door):
    """On the wire a name is ASCII: A-labels, or it is malformed."""
    box = names(world, door, "N8", [(name.encode().decode("latin-1"), "malformed")
                                    for name in (
        "allowed.te\u017ft", "allowed\uff0etest", "allowed\uff61test", "\u200ballowed.test",
        "allowed.test\u200b", "allowed.test\ufeff", "\u24d0llowed.test", "allowed.test\u2024",
        "a\u0301llowed.test", "\u202eallowed.test", "evil.test\u2215allowed.test")])
    if door != SNI:  # that server has no certificate
        flow = ("rule",) * (2 if door in (CONNECT, SOCKS) else 1)
        box.allowed(door, "xn--bcher-kva.test", flow, port=80, via="xn--bcher-kva.test")


@row("N9", doors=NAME_DOORS)
def literals(world, door):
    """An address in the place of a name is refused in every spelling, and no
    resolver is asked for it."""
    box = world.box(POLICY)
    more = ["0x5d.0xb8.0xd8.0x42", "1570297922", "0135.0270.0330.0102", "93.12113986",
            "93.184.55362", "0xa9fea9fe", "169.254.43518", "127.0.0.1.", "00.0.0.0",
            "0000000127.0.0.1", "[::]", "[::ffff:7f00:1]", "[64:ff9b::5db8:d842]",
            "256.256.256.256.", "1.2.3", "999999999999", "93.184.216.66x.0x1"]
    for name in LITERALS + more:
        reason = "literal_address"
        if door in (SNI, DNS) or door == SOCKS and "[" in name:
            reason = "malformed"
        plain = name.count(".") == 3 and not name.startswith("0") or "[" in name
        if door == HOST and plain and not name.endswith("."):
            reason = "name_mismatch"
        box.denied(door, name, reason)
    if door == SOCKS:
        for ip in b"\x5d\xb8\xd8\x42", b"\x7f\0\0\1", b"\xc6\x12\0\1", b"\0\0\0\0":
            box.denied(door, ip, "literal_address", atyp=1)
            box.denied(door, b"\0" * 10 + b"\xff\xff" + ip, "literal_address", atyp=4)
    box.allowed(door, "allowed.test")


# -- N11, N13 ---------------------------------------------------------------


@row("N11", doors=(CONNECT, HTTP, SOCKS))
def other_ports(world, door):
    """A rule has ports; the host at another is refused, in every door alike."""
    box = world.box(POLICY)
    for port in 22, 25, 53, 3128, 7000, 8080, 1, 65535:
        box.denied(door, "allowed.test", "port", port=port)
        box.denied(door, "evil.test", "not_in_policy", port=port)
    box.denied(door, "deep.er.wild.test", "port", port=443)
    box.denied(door, "evil.wild.test", "deny_rule", port=22)
    if door == CONNECT:
        for port in ("0", "00443", "99999", "65979", "-1", "443x", " 443", "0x1bb", "",
                     "+443", "443 ", "443:443", "4\t43"):
            box.denied(door, "", "malformed", target=f"allowed.test:{port}")
        box.denied(door, "", "malformed", target="allowed.test")
    if door == SOCKS:
        box.denied(door, "allowed.test", "malformed", port=0)
    box.allowed(door, "allowed.test")


@row("N11")
def other_ports_of_a_lease(world):
    """To the address that a name was given the kernel lets only its ports pass."""
    box = world.box(POLICY)
    address = box.probe(DNS, "allowed.test")["answers"][0]
    for port in 22, 25, 8080, 3128, 65535:
        box.quiet()
        p = box.probe(SNI, "allowed.test", port=port, say="x", timeout=30)
        equal(p["got"], "ConnectionRefusedError", port)
        box.dropped("port", address, port)
        box.silent(port)
    box.allowed(SNI, "allowed.test")


# Who goes on writing after the end may not get to read why.
TOO_LONG = ("400 malformed", "414 malformed", "431 malformed", "closed",
            "BrokenPipeError", "ConnectionResetError")


@row("N13", doors=NAME_DOORS)
def lengths(world, door):
    """Labels up to 63, names up to 253 bytes; what is longer or empty is malformed."""
    long = ".".join(["a" * 63] * 4)
    more = ["a" * 250 + ".test", "a" * 64 + ".test", "-"]
    more += [""] if door == SOCKS else [long + ".test"]
    box = names(world, door, "N13", [(name, "malformed") for name in more])
    if door in (CONNECT, HTTP, HOST):
        for name in "a." * 4000 + "test", "a" * 70000:
            box.denied(door, name, "malformed", want=TOO_LONG)
    if door == DNS:
        dns_malformed(box, question(b"x", raw=b"\x40" + b"a" * 64),
                      question(*[b"a" * 63] * 4), question(*[b"a"] * 128),
                      question(b"allowed", raw=b"\xc0\x0c"))


# -- N14 to N16 -------------------------------------------------------------


@row("N14")
def no_proxy(world):
    """Who uses no proxy is led through the same gate, or nowhere."""
    box = world.box(POLICY)
    direct = ("env", "-i", "curl", "-sSk", "-m", "20", "--noproxy", "*")
    for argv, status, where, reason in (
            ((*direct, "https://evil.test/"), 6, "evil.test", "not_in_policy"),
            ((*direct, "http://evil.test/"), 6, "evil.test", "not_in_policy"),
            ((*direct, f"https://{EVIL}/"), 7, EVIL, "bypass"),
            ((*direct, "--resolve", f"evil.test:443:{EVIL}", "https://evil.test/"), 7,
             EVIL, "bypass"),
            ((*direct, "--resolve", f"allowed.test:80:{GOOD}", "http://allowed.test/"), 7,
             GOOD, "bypass"),
            (("env", "NO_PROXY=*", "no_proxy=*", "curl", "-sSk", "-m", "20",
              "https://evil.test/"), 6, "evil.test", "not_in_policy")):
        box.quiet()
        before = len(box.denials(where, reason))
        got, said = box.call("command", *argv)
        equal(got, status, argv, said)
        world.wait(lambda: len(box.denials(where, reason)) > before, f"{argv} in the log")
        box.silent(argv)
    for argv in (*direct, "https://allowed.test/"), (*direct, "http://allowed.test/"):
        got, said = box.call("command", *argv)
        check(got == 0 and "hello" in said, argv, said)


UPLOADS = {CONNECT: "web.test", HTTP: "web2.test", SOCKS: "a.web.test", HOST: "b.web.test"}
UPLOAD = "allow: [%s]" % ", ".join(
    "{host: %s, ports: [80], upload: 100 kB}" % name for name in UPLOADS.values())


def post(how, host, size):
    """How much the proxy took before it ended the flow, and what it said."""
    first = (b"POST %s/up HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n" %
             (b"http://" + host if how == "http" else b"", host, size))
    s = wire((socket.gethostbyname(host.decode()), 80) if how == "host" else None)
    if how == "connect":
        s.sendall(b"CONNECT %s:80 HTTP/1.1\r\nHost: %s:80\r\n\r\n" % (host, host))
        probe.head(s)
    if how == "socks":
        s.sendall(b"\5\1\0\5\1\0\3" + bytes([len(host)]) + host + b"\0\x50")
        probe.exactly(s, 12)
    own, sent = s.getsockname()[1], 0
    try:
        s.sendall(first)
        while sent < size:
            sent += s.send(b"x" * min(16384, size - sent))
    except OSError:
        pass
    return own, sent, until_end(s, b"/up")[0]


@row("N15", doors=tuple(UPLOADS))
def allowed_host_as_channel(world, door):
    """An allowed host can be told anything: what goes there is recorded, and a
    budget (`upload`) ends it in mid-stream."""
    box, host = world.box(UPLOAD), UPLOADS[door].encode()
    whole, sent, got = box.call(post, door, host, 50_000)
    check(sent == 50_000 and b" 200 OK" in got, got)
    cut, sent, got = box.call(post, door, host, 10_000_000)
    world.uplink.read()
    first, second = said(p for p in world.uplink.seen if p.to == WEB).values()
    check(first > 50_000 and first + second <= 100_000 < sent,
          f"{first} and {second} bytes of {sent} got out")
    world.wait(lambda: box.closed(whole) and box.closed(cut), "the ends in the log")
    equal(box.closed(cut)[0]["status_code"], "limit_bytes")
    told = [sum(r["traffic"]["bytes_out"] for r in box.closed(port)
                if r["dst_endpoint"]["hostname"] == UPLOADS[door])
            for port in (whole, cut)]
    # What was answered had left. What is cut is reset, so it may have been counted
    # and not have left; never the other way round.
    equal(told, [first, 100_000 - first], "the log, the wire and the budget")
    _, _, got = box.call(post, door, host, 10)
    check(b" 200 OK" not in got, got)


RELAYS = {}


def relay():
    """A program of the sandbox passes on what others of it say, as it comes."""
    import threading

    def pump(a, b):
        try:
            while d := a.recv(65536):
                b.sendall(d)
        except OSError:
            pass
        try:
            b.shutdown(1)
        except OSError:
            pass

    def serve(listener, where):
        while True:
            c, _ = listener.accept()
            u = wire(where)
            sources.append(u.getsockname()[1])
            for pair in (c, u), (u, c):
                threading.Thread(target=pump, args=pair, daemon=True).start()
    global sources
    sources, ports = [], []
    for where in (proxy, (doors.address("allowed.test"), 443),
                  (doors.address("allowed.test"), 80)):
        s = socket.create_server(("127.0.0.1", 0))
        ports.append(s.getsockname())
        threading.Thread(target=serve, args=(s, where), daemon=True).start()
    return ports


def by_relay(relays, probes):
    """Asked by another process, by way of the relay: and the relay's own ports."""
    import json, subprocess
    with open("relay-job.json", "w") as f:
        json.dump({"doors": {"proxy": relays[0], "tls": relays[1], "http": relays[2]},
                   "probes": [dict(p, timeout=PATIENCE) for p in probes]}, f)
    sources.clear()
    done = subprocess.run([sys.executable, "-c", texts["policy_probe"], "relay-job.json"],
                          capture_output=True, text=True, check=True, env={})
    return [dict(p, source=port) for p, port in zip(json.loads(done.stdout), sources)]


@row("N16", doors=FLOW_DOORS)
def relayed(world, door):
    """Who in the sandbox asks, and by what detour, changes nothing."""
    box = world.box(POLICY)
    if box not in RELAYS:
        RELAYS[box] = box.call(relay)
    refused = {"evil.test": "not_in_policy", "evil.wild.test": "deny_rule",
               "[evil.test": "malformed"}
    box.quiet()
    probes = box.call(by_relay, RELAYS[box], [{"door": door, "name": n} for n in refused])
    equal(len(probes), len(refused))
    for p in probes:
        reason = leased(door, refused[p["name"]], p["name"])
        equal(p["got"], looks(reason, door), p["name"])
        box.recorded(p["source"], reason)
    box.silent(door)
    p, = box.call(by_relay, RELAYS[box], [{"door": door, "name": "allowed.test"}])
    check(p["got"].startswith("ok"), p)
    box.recorded(p["source"], "rule", denied=False)
