# SPDX-License-Identifier: Apache-2.0
"""ClientHellos that name another host, or hide which."""
import struct

from frame import CONNECT, SNI, SOCKS, TLS_DOORS, check, equal, row
from hellos import (ALERTS, alert, client_hello, ext, hello, message, record, sni, USUAL)
from lab import CDN, EVIL, GOOD

CDN_NAME = b"cdn.test"


def tunnel(door):
    """A tunnel is recorded when it is opened, before it is known what is in it."""
    return [] if door == SNI else ["rule"]


def cut(box, door, pieces, reason, host=CDN_NAME, at=CDN, **more):
    """The alert of this reason and the end; no byte of it is seen outside."""
    box.call("know", host.decode())
    box.quiet()
    pieces = pieces if isinstance(pieces, list) else [pieces]
    port, got, how = box.call("converse", door, host, pieces, port=443, **more)
    about = box.world.row, pieces
    equal(got, alert(ALERTS[reason]), *about, how)
    check(how in ("eof", "reset"), *about, how)
    box.recorded(port, tunnel(door) + [reason])
    box.silent(*about, dialled=None if door == SNI else at)


def passes(box, door, pieces, host=CDN_NAME, **more):
    """The control: a server answers it."""
    pieces = pieces if isinstance(pieces, list) else [pieces]
    port, got, how = box.call("converse", door, host, pieces, port=443,
                              enough=b"\x16\x03\x03", **more)
    check(got[:1] == b"\x16", box.world.row, got[:50], how)
    box.recorded(port, "rule", denied=False)


def records(body, *sizes):
    """The handshake message in records of these sizes, and the rest."""
    ret, at = b"", 0
    for size in (*sizes, len(body)):
        if at < len(body):
            ret += record(body[at:at + size])
        at += size
    return ret


@row("T1", doors=TLS_DOORS)
def other_name(world, door):
    """The SNI is the name that the connection is to, or the hello goes nowhere: also
    if it is allowed itself, and served by the same address."""
    box = world.box("allow: [cdn.test, evilcdn.test, allowed.test]")
    for name in ("evilcdn.test", "allowed.test", "evil.test", "x.cdn.test", "test",
                 "cdn.test.evil.test", "cdn.tes", "xcdn.test", "EVILcdn.test"):
        cut(box, door, hello(name), "name_mismatch")
    cut(box, door, hello("cdn.test"), "name_mismatch", b"evilcdn.test")
    for name in "cdn.test", "CDN.test":
        passes(box, door, hello(name))


@row("T2", doors=TLS_DOORS)
def bytewise(world, door):
    """In as many pieces as one likes it is the same hello."""
    box = world.box()
    for name, reason in ("evilcdn.test", "name_mismatch"), ("", "no_name"):
        cut(box, door, [bytes([c]) for c in hello(name)], reason)
    for size in 2, 5, 6, 43, 60:
        h = hello("evilcdn.test")
        cut(box, door, [h[:size], h[size:]], "name_mismatch", pause=0.002)
    passes(box, door, [bytes([c]) for c in hello("cdn.test")])


@row("T3", doors=TLS_DOORS)
def several_records(world, door):
    """A hello may lie in several records, and is put together before it is judged; a
    record that is empty or of another kind has no place in it."""
    box = world.box()
    evil, fine = message("evilcdn.test", ext(21, bytes(600))), message("cdn.test")
    for sizes in (511, 1), (1,) * 20, (3, 1), (4,), (5,), (38,), (1, 500):
        cut(box, door, records(evil, *sizes), "name_mismatch")
    for h in (record(b"") + record(evil), record(b"") + record(fine),
              record(fine[:9]) + record(b"") + record(fine[9:]),
              record(fine[:9]) + b"\x15\3\1\0\2\1\0" + record(fine[9:]),
              record(fine[:9]) + b"\x14\3\1\0\1\1" + record(fine[9:])):
        cut(box, door, h, "malformed")
    for h in (b"\x14\3\1\0\1\1" + record(fine), b"\x15\3\1\0\2\1\x5a" + record(fine),
              b"\x18\3\1\0\3\1\0\0" + record(fine), b"\x17\3\1\0\0" + record(fine)):
        cut(box, door, h, "protocol")
    for sizes in (1,), (4, 1, 1), (40,), (1,) * 30:
        passes(box, door, records(fine, *sizes))


@row("T4", doors=TLS_DOORS)
def far_behind(world, door):
    """The name is found wherever it is; a hello beyond the bound is refused."""
    box = world.box()
    for size in 1200, 8000, 12000:
        pad = ext(21, bytes(size))
        body = client_hello(pad, sni(b"evilcdn.test"))
        cut(box, door, records(body, 16000), "name_mismatch")
        # What a server takes: the padding is not what it ends on.
        passes(box, door, records(client_hello(pad, sni(CDN_NAME), *USUAL), 16000))
    big = client_hello(ext(21, bytes(40000)), sni(CDN_NAME))
    cut(box, door, records(big, 16000, 16000), "malformed")
    endless = b"\1\xff\xff\xff" + bytes(15000)
    cut(box, door, record(endless) + record(bytes(16000)) * 4, "malformed")
    cut(box, door, b"\x16\3\1\xff\xff" + message("cdn.test"), "malformed")


@row("T5", doors=TLS_DOORS)
def no_name(world, door):
    """A hello without a name is refused, whatever the certificate would say."""
    box = world.box()
    for h in (hello(None), record(b"\1\0\0\x29\3\3" + b"R" * 32 + b"\0\0\2\xc0\x2f\1\0")):
        cut(box, door, h, "no_name")
    for e in ext(0, b""), ext(0, b"\0\0"), ext(0, b"\0\3\0\0\0"):
        cut(box, door, record(client_hello(e, *USUAL)), "no_name")
    for e in ext(0, b"\0\x0b\1\0\x08cdn.test"), ext(0, b"\0\1\0"), ext(0, b"\0"):
        cut(box, door, record(client_hello(e, *USUAL)), "malformed")
    got, _ = box.call("command", "timeout", "20", "openssl", "s_client", "-noservername",
                      "-connect", "cdn.test:443")
    check(got != 0)
    passes(box, door, hello("cdn.test"))


@row("T7", doors=TLS_DOORS)
def odd_names(world, door):
    """An SNI is one host name as RFC 6066 has it: no dot at its end, no address, no
    other byte; two names, or two extensions, are none."""
    box = world.box()
    for name in (b"cdn.test\0", b"cdn.test\0.evilcdn.test", b"evilcdn.test\0cdn.test",
                 b"cdn.test\x1b[2J", b"cdn.test.", b"cdn.test..", b".cdn.test", b"cdn..test",
                 b"93.184.216.40", b"::1", b"[::1]", b"2001:db8::1", b"0x5db8d828", b"127.1",
                 "cdn\u3002test".encode(), "\uff43dn.test".encode(), b"cdn.test\xff", b"cdn.test ",
                 b" cdn.test", b"cdn.test:443", b"*.test", b"*", b"-cdn.test", b"a" * 64 + b".test",
                 b"x." * 140 + b"test", b"cdn.test\r\n", b"cdn.test,evilcdn.test", b"u@cdn.test"):
        cut(box, door, hello(name), "malformed")
    for extensions in ((sni(CDN_NAME, b"evilcdn.test"),), (sni(b"evilcdn.test", CDN_NAME),),
                       (sni(CDN_NAME), sni(b"evilcdn.test")), (sni(CDN_NAME), sni(CDN_NAME)),
                       (sni(CDN_NAME), *USUAL, USUAL[0]),
                       (ext(0, b"\0\x0c\0\0\x08cdn.test"),), (ext(0, b"\0\x0b\0\0\x09cdn.test"),)):
        cut(box, door, record(client_hello(*extensions)), "malformed")
    fine = message("cdn.test")
    for body in (client_hello(sni(CDN_NAME), tail=b"\0"), fine + message("evilcdn.test"),
                 client_hello(sni(CDN_NAME), session=b"s" * 33), fine + b"\0"):
        cut(box, door, record(body), "malformed")
    for name in "cdn.test", "CDN.TEST":
        passes(box, door, hello(name))


# RFC 9849 section 5: an outer one.
OUTER = (b"\0\0\1\0\1\x07" + struct.pack(">H", 32) + b"e" * 32 + struct.pack(">H", 200) +
         b"p" * 200)
ECH = ext(0xFE0D, OUTER)
FRONTS = "cloudflare-ech.com", "public.tls-ech.dev"
ECH_POLICY = """
allow:
  - cdn.test
  - cloudflare-ech.com
  - { host: allowed.test, tls: { ech: deny } }
"""


@row("T8", doors=TLS_DOORS)
def encrypted_hello(world, door):
    """The outer name decides, a front that hides others is refused even where it is
    allowed, a rule may refuse all (`tls.ech`), and the log says that there was one."""
    box = world.box(ECH_POLICY)
    for front in FRONTS:
        cut(box, door, hello(front, ECH), "ech")
    for name in "evilcdn.test", "evil.test":
        cut(box, door, hello(name, ECH), "ech")
    cut(box, door, hello(None, ECH), "ech")
    cut(box, door, hello("allowed.test", ECH), "ech", b"allowed.test", GOOD)
    for body in b"\1", OUTER[:-1], OUTER + b"x", b"", b"\2" + OUTER[1:], OUTER[:6]:
        cut(box, door, hello("cdn.test", ext(0xFE0D, body)), "malformed")
    passes(box, door, hello("cdn.test", ECH))  # as GREASE looks, too
    world.wait(lambda: [r for r in box.log.read() if r["unmapped"].get("ech")
                        and r.get("status_code") == "rule"], "an ECH in the log")
    passes(box, door, hello("allowed.test"), b"allowed.test")


@row("T9", doors=(SNI,))
def name_and_address(world, door):
    """Whatever address a client has for a name, the one that we resolve is dialled; at
    an address that it was not given nobody answers."""
    box = world.box()
    for ip in EVIL, GOOD, CDN, "198.18.200.200":
        box.quiet()
        got, said = box.call("command", "curl", "-sS", "-m", "20", "--noproxy", "*",
                             "--resolve", f"cdn.test:443:{ip}", "https://cdn.test/host")
        equal(got, 7, ip, said)
        box.dropped("bypass", ip, 443)
        box.silent(ip)
    box.denied(door, "cdn.test", "name_mismatch", via="allowed.test")
    # Names that have their real addresses, and a client that has another.
    real = world.box("dns: {answers: real}\nallow: [cdn.test, evilcdn.test]")
    real.call("know", "cdn.test")
    real.denied(door, "evilcdn.test", "name_mismatch", to=CDN)
    real.denied(door, "evil.test", "name_mismatch", to=CDN)
    real.quiet()
    equal(real.probe(door, "cdn.test", to=EVIL)["got"], "ConnectionRefusedError")
    real.dropped("bypass", EVIL, 443)
    real.silent()
    real.allowed(door, "cdn.test", to=CDN)
    box.allowed(door, "cdn.test", via="cdn.test")


@row("T10", doors=TLS_DOORS)
def host_inside(world, door):
    """What is said inside TLS is not seen: where rules would need it (methods, paths),
    a policy for 443 is refused; otherwise it is a residual risk (SECURITY.md), and the
    log has the SNI."""
    box = world.box()
    p = box.probe(door, "cdn.test", whole=True, host="evilcdn.test", via="cdn.test")
    equal(p["got"], "ok evilcdn.test")
    box.recorded(p["source"], "rule", denied=False)
    world.wait(lambda: [r for r in box.log.read()
                        if r.get("src_endpoint", {}).get("port") == p["source"]
                        and r.get("tls", {}).get("sni") == "cdn.test"], "the SNI in the log")
    refused_policy(world, "allow: [{host: cdn.test, ports: [443], paths: [/x]}]\n", "443")


def refused_policy(world, text, word):
    path = world.lab.write("tls.yaml", "version: 1\n" + text)
    run = world.case.run("echo", "RAN", allow=(), args=("--policy", path))
    check(run.status == 125 and "RAN" not in run.out and word in run.err, run)


@row("T11", doors=TLS_DOORS)
def not_tls(world, door):
    """Port 443 is for TLS: anything else is refused by its first bytes."""
    box = world.box()
    for said in (b"SSH-2.0-x\r\n", b"GET / HTTP/1.1\r\nHost: cdn.test\r\n\r\n", b"\0\1\2\3\4\5",
                 b"\x80\x2e\1\3\1\0\x15\0\0\0\x10" + bytes(37), b"\x16\xfe\xff" + bytes(40),
                 b"\x16\2\0\0\5hello", b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n", b"\5\1\0",
                 b"\r\n" + hello("cdn.test"), b"EHLO x\r\n"):
        cut(box, door, [said], "protocol", end=True)
    passes(box, door, hello("cdn.test"))


SLOW = "allow: [cdn.test]\n# slow\n"


def open_slow(ways):
    """By each door two connections that will speak slowly, and what they will say."""
    global slow
    slow = [(door, p, through(door, b"cdn.test", 443))
            for door in ways for p in (hello("cdn.test"), b"\x16")]


def never_whole():
    """By each a byte now and then, until the end comes."""
    import threading
    results = {}

    def one(door, pieces, s):
        own, at, got, how = s.getsockname()[1], 0, b"", "timeout"
        s.settimeout(0.5)
        began = time.monotonic()
        while how == "timeout" and time.monotonic() < began + 100:
            try:
                s.sendall(pieces[at:at + 1])
                at += 1
            except OSError:
                pass
            more, how = until_end(s)
            got += more
        results[door, len(pieces)] = own, got, how
    threads = [threading.Thread(target=one, args=each) for each in slow]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return results


def start_slow(world):
    box = world.box(SLOW)
    box.call(open_slow, TLS_DOORS)
    box.start(never_whole)
    box.slow = None


@row("T14", early=start_slow)
def never_ends(world):
    """A hello has ten seconds, however its bytes come; then the alert and the end."""
    box = world.box(SLOW)
    box.world.uplink.read()
    results = box.finish()
    equal(len(results), 6)
    for (door, _), (port, got, how) in results.items():
        equal(got, alert(ALERTS["timeout"]), door)
        check(how in ("eof", "reset"), door, how)
        box.recorded(port, tunnel(door) + ["timeout"])
    passes(box, SNI, hello("cdn.test"))


@row("T15")
def inspection(world):
    """Nothing is inspected, and a policy that asks for it starts nothing: no
    inspection can fail open."""
    refused_policy(world, "allow: [{host: cdn.test, inspect: true}]\n", "inspect")
    refused_policy(world, "allow: [{host: cdn.test, methods: [GET]}]\n", "443")
    check("RAN" in world.case.run("echo", "RAN").out)
