# SPDX-License-Identifier: Apache-2.0
"""What a policy says of names, however they are spelled and by whatever door
they come: CONNECT, absolute-form HTTP, SOCKS5, the SNI and the Host of direct
connections, DNS. The first word of each row is where the attack is listed."""
from harness import check, silent
from lab import EVIL
from policy_rows import DOORS, leased, row, run_rows, serve_rows, served
from policy_world import world

POLICY = """
allow:
  - allowed.test
  - "*.wild.test"
  - { host: deep.er.wild.test, ports: [22] }
  - cdn.test
  - host.secret.wild.test
deny:
  - evil.wild.test
  - "*.secret.wild.test"
"""
LONG = ".".join(["a" * 63] * 3)  # 191 bytes

# A name, and what is wrong with it.
NAMES = [
    ("N1", "evil.test", "not_in_policy"),
    ("N2", "evil.test\0.allowed.test", "malformed"),
    ("N2", "allowed.test\0.evil.test", "malformed"),
    ("N2", "allowed.test\0", "malformed"),
    ("N2", "allowed.test\r\nX: y", "malformed"),
    ("N2", "allowed.test\t", "malformed"),
    ("N2", "allowed test", "malformed"),
    ("N3", "evilallowed.test", "not_in_policy"),
    ("N3", "allowedxtest", "not_in_policy"),
    ("N3", "allowed-test", "not_in_policy"),
    ("N3", "allowed.testx", "not_in_policy"),
    ("N3", "allowed.tes", "not_in_policy"),
    ("N3", "llowed.test", "not_in_policy"),
    ("N3", "sub.allowed.test", "not_in_policy"),
    ("N3", "allowed.test.evil.test", "not_in_policy"),
    ("N3", "evilwild.test", "not_in_policy"),
    ("N3", "www.wild.test.evil.test", "not_in_policy"),
    ("N4", "evil.wild.test", "deny_rule"),
    ("N4", "EVIL.wild.test.", "deny_rule"),
    ("N4", "host.secret.wild.test", "deny_rule"),
    ("N4", "a.b.secret.wild.test", "deny_rule"),
    ("N4", "*.wild.test", "malformed"),
    ("N5", "evil.test.", "not_in_policy"),
    ("N5", "allowed.test..", "malformed"),
    ("N5", ".allowed.test", "malformed"),
    ("N5", "allowed..test", "malformed"),
    ("N6", "[allowed.test]", "malformed"),
    ("N6", "[allowed.test", "malformed"),
    ("N6", "allowed.test]", "malformed"),
    ("N7", "EVIL.Test", "not_in_policy"),
    ("N8", "b\u00fccher.test".encode().decode("latin-1"), "malformed"),
    ("N8", "\uff41llowed.test".encode().decode("latin-1"), "malformed"),
    ("N8", "allowed\u3002test".encode().decode("latin-1"), "malformed"),
    ("N8", "allo\u00adwed.test".encode().decode("latin-1"), "malformed"),
    ("N8", "\u0430llowed.test".encode().decode("latin-1"), "malformed"),
    ("N8", "xn--llowed-2nf.test", "not_in_policy"),
    ("N13", "a" * 64 + ".allowed.test", "malformed"),
    ("N13", f"{LONG}.{'a' * 48}.allowed.test", "not_in_policy"),
    ("N13", f"{LONG}.{'a' * 49}.allowed.test", "malformed"),
    ("N13", "_x.allowed.test", "not_in_policy"),
    ("N13", "-x.allowed.test", "malformed"),
]


def makes_sense(door, name):
    """Can the name be said there at all? DNS has no empty labels, and what
    would end a header field or surround its value is not of the name."""
    if door == "dns":
        return "" not in name[:-1].split(".") and name[-2:] != ".."
    return door != "host" or name == name.strip() and "\n" not in name


def names(by):
    return [row(id, door, name, by(door, reason, name))
            for id, name, reason in NAMES for door in DOORS
            if makes_sense(door, name)]


# Where an address is a name's place. Nobody may resolve them, or dial them.
LITERALS = ["93.184.216.66", "93.184.216.34", "127.0.0.1", "203.0.113.2",
            "169.254.169.254", "198.18.0.1", "198.19.0.1", "2130706433",
            "0x7f.1", "0x5db8d842", "0177.0.0.1", "012.0.0.1", "127.1", "0",
            "93.184.216.66.", "[::1]", "[::ffff:93.184.216.66]",
            "[2606:2800:220:1::34]"]


def literals(leases):
    for name in LITERALS:
        for door in "connect", "http":
            yield row("N9", door, name, "literal_address")
        yield row("N9", "socks", name,
                  "malformed" if "[" in name else "literal_address")
        plain = name.count(".") == 3 and not name.startswith("0") or "[" in name
        yield row("N9", "host", name, "name_mismatch" if leases and plain
                  and not name.endswith(".") else "literal_address")
        yield row("N9", "sni", name, "malformed")
        yield row("N9", "dns", name, "malformed")
    for address in b"\x5d\xb8\xd8\x42", b"\x7f\0\0\1", b"\xc6\x12\0\1":
        yield row("N9", "socks", address.decode("latin-1"), "literal_address",
                  atyp=1)
        yield row("N9", "socks", (b"\0" * 10 + b"\xff\xff" + address).decode(
            "latin-1"), "literal_address", atyp=4)


# Spellings of what is allowed. By a lease they are said to its own host.
SAME = [("N4", "www.wild.test", "www.wild.test"),
        ("N5", "allowed.test.", "allowed.test"),
        ("N7", "ALLOWED.test", "allowed.test"),
        ("N7", "aLLoWeD.TeSt", "allowed.test"),
        ("N7", "WWW.Wild.tesT.", "www.wild.test")]


def same():
    for id, name, host in SAME:
        for door in DOORS:
            if door != "sni" or not name.endswith("."):
                yield row(id, door, name, via=host, host=host)


def matrix(leases):
    """N4: which of two patterns decides, and N11: ports."""
    for name in "wild.test", "test":
        for door in DOORS:
            # The apex is not below itself; but above names that exist.
            reason = leased(door, "not_in_policy", "") if leases else "not_in_policy"
            yield row("N4", door, name, reason,
                      "NOERROR 15" if door == "dns" else None)
    for door in "connect", "socks", "http":
        for port in 443, 80, 2222:
            yield row("N4", door, "deep.er.wild.test", "port", port=port)
        for port in 22, 25, 8080, 7000, 3128, 53, 1, 65535:
            yield row("N11", door, "allowed.test", "port", port=port)
        yield row("N11", door, "evil.test", "not_in_policy", port=22)
        yield row("N11", door, "evil.wild.test", "deny_rule", port=22)
    for port in "0", "00443", "99999", "65979", "-1", "443x", " 443", "0x1bb", "":
        yield row("N11", "connect", f"allowed.test:{port}", "malformed",
                  target=f"allowed.test:{port}")
    yield row("N11", "connect", "allowed.test", "malformed", target="allowed.test")
    yield row("N11", "socks", "allowed.test", "malformed", port=0)
    yield row("N4", "dns", "deep.er.wild.test")
    if not leases:
        yield row("N4", "sni", "deep.er.wild.test", "port")
        yield row("N4", "host", "deep.er.wild.test", "port")


def all_doors(case, rows, policy=POLICY):
    """Once in a sandbox, once with the gate alone, where SNI and Host decide.
    @rows is given whether there are leases."""
    faults = ["in a sandbox:", *run_rows(case, list(rows(True)), policy).faults()]
    faults += ["under serve:", *serve_rows(case, list(rows(False)), policy).faults()]
    if len(faults) > 2:
        raise AssertionError("\n".join(["", *faults]))


# -- what is refused ------------------------------------------------------------


def test_refused_names(case):
    all_doors(case, lambda leases: names(leased if leases else served))


def test_literals(case):
    all_doors(case, literals)


def test_wildcards_and_ports(case):
    all_doors(case, matrix)


def test_allowed_spellings(case):
    """N4, N5, N7: one name, one verdict, and one spelling in the log."""
    all_doors(case, lambda leases: same())
    tried = run_rows(case, list(same()), POLICY).check()
    for r in tried.records:
        for name in (r.get("dst_endpoint", {}).get("hostname"),
                     r.get("query", {}).get("hostname"),
                     r.get("tls", {}).get("sni")):
            check(name is None or name == name.lower().rstrip("."), name)
    for probe in tried.rows:  # 0x20: as it was asked
        if probe["door"] == "dns":
            got = "".join("." if ord(c) < 32 else c for c in probe["echo"])
            check(got.strip(".") == probe["name"].strip("."), probe)


def test_international_names(case):
    """N8: in a policy they may be written as such; on the wire only in ASCII."""
    world(case)
    rows = [row("N8", door, "xn--bcher-kva.test", port=80, via="xn--bcher-kva.test")
            for door in ("connect", "socks", "http", "host", "dns")]
    rows += [row("N8", door, "b\u00fccher.test".encode().decode("latin-1"), "malformed",
                 port=80, via="xn--bcher-kva.test")
             for door in ("connect", "socks", "http", "host", "dns")]
    for name in "b\u00fccher.test", "xn--bcher-kva.TEST.":
        run_rows(case, rows, f"allow: ['{name}']\n").check()


def test_ports_of_a_lease(case):
    """N11, direct: the kernel lets through what the policy has, and no more."""
    closed = [("N11", "allowed.test", port)
              for port in (22, 25, 8080, 7000, 3128, 1, 65535)]
    closed += [("N4", "deep.er.wild.test", port) for port in (443, 80)]
    rows = [row(id, "sni", name, "port", "ConnectionRefusedError", port=port,
                say="x", via=name) for id, name, port in closed]
    # Wherever it is asked, it is our resolver that answers.
    rows += [row("N11", "sni", "allowed.test", None, "nothing", port=53, say="x")]
    rows += [row("N4", "sni", "deep.er.wild.test", port=22, say="x\r\n",
                 via="deep.er.wild.test")]
    run_rows(case, rows, POLICY).check()


# -- N1 -------------------------------------------------------------------------

EMPTY = ["", "allow: []\n", "allow:\n", "allow: ~\n", "deny: []\n",
         "default: deny\nallow: []\n"]
BROKEN = {  # what is written, and what the message has to have
    "nothing": ("", "version"),
    "a comment": ("# nothing\n", "version"),
    "a text": ("version: 1\nallow: allowed.test\n", ":2:"),
    "empty text": ("version: 1\nallow: ['']\n", ":2:"),
    "a comma": ("version: 1\nallow: ['allowed.test,evil.test']\n", ":2:"),
    "a star": ("version: 1\nallow: ['*']\n", ":2:"),
    "an inner star": ("version: 1\nallow: ['a*.allowed.test']\n", ":2:"),
    "unclosed": ("version: 1\nallow: [allowed.test\n", ""),
    "tab": ("version: 1\nallow:\n\t- allowed.test\n", ""),
    "a list": ("- version: 1\n", ""),
    "a word": ("allow\n", ""),
    "twice": ("version: 1\nallow: [allowed.test]\nallow: []\n", ":3:"),
    "two documents": ("version: 1\n---\nversion: 1\nallow: [evil.test]\n", ""),
    "no version": ("allow: [allowed.test]\n", "version"),
    "another version": ("version: 2\nallow: [allowed.test]\n", "version"),
    "unknown key": ("version: 1\nallow: [allowed.test]\nalow: []\n", ":3:"),
    "unknown default": ("version: 1\ndefault: allow\n", ":2:"),
    "bad bounds": ("version: 1\nsandbox: {memory: lots}\n", ":2:"),
    "an anchor loop": ("version: 1\nallow: &a [*a]\n", ""),
    "NUL": ("version: 1\nallow: [\"allowed.test\\0.evil.test\"]\n", ":2:"),
    "binary": ("\0\1\2\3", ""),
}


def test_empty_policies(case):
    for text in EMPTY:
        rows = [row("N1", door, "allowed.test", "not_in_policy", note=repr(text))
                for door in ("connect", "http", "socks", "dns")]
        run_rows(case, rows, text).check()
        serve_rows(case, rows + [row("N1", door, "allowed.test", "not_in_policy")
                                 for door in ("sni", "host")], text).check()


def test_broken_policies(case):
    """Nothing is started, and the message says where and what."""
    faults = []
    for what, (text, words) in BROKEN.items():
        path = case.lab.dir + "/broken.yaml"
        with open(path, "w") as f:
            f.write(text)
        run = case.run("echo", "RAN", args=("--policy", path), allow=())
        if run.status != 125 or "RAN" in run.out or words not in run.err \
                or "broken.yaml" not in run.err:
            faults.append(f"N1 {what}: {run}")
    for path in "/nowhere.yaml", case.lab.dir, "/dev/null":
        run = case.run("echo", "RAN", args=("--policy", path), allow=())
        if run.status != 125 or "RAN" in run.out or path not in run.err:
            faults.append(f"N1 {path}: {run}")
    check(not faults, "\n".join(faults))


# -- clients --------------------------------------------------------------------


def test_without_variables(case):
    """N14: a client that is told of no proxy, or to use none, has none of it."""
    direct = ("env", "-i", "curl", "-sk", "-m", "30", "--noproxy", "*")
    seen = len(case.lab.packets("tcp or udp"))
    for what, command in {
            "N14 a name": (*direct, "https://evil.test/"),
            "N14 a name, 80": (*direct, "http://evil.test/"),
            "N14 an address": (*direct, f"https://{EVIL}/"),
            "N14 its address": (*direct, "--resolve", f"evil.test:443:{EVIL}",
                                "https://evil.test/"),
            "N14 of an allowed name": (*direct, "--resolve",
                                       f"allowed.test:443:{EVIL}",
                                       "https://allowed.test/"),
            "N14 DoH": (*direct, "--doh-url", "https://8.8.8.8/dns-query",
                        "https://evil.test/"),
            "N14 NO_PROXY": ("env", "NO_PROXY=*", "no_proxy=*", "curl", "-sk",
                             "-m", "30", "https://evil.test/")}.items():
        run = case.run(*command, allow=("allowed.test",))
        check(run.status in (6, 7, 35, 28) and run.status != 28 and not run.out
              and run.denied(), f"{what}: {run}")
    check(len(case.lab.packets("tcp or udp")) == seen, "seen outside")
    run = case.run(*direct, "https://allowed.test/")
    check("hello" in run.out, f"N14: what is allowed is: {run}")


RELAY = r"""
import os, socket, subprocess, sys, threading
gw, port = os.environ["http_proxy"].split("//")[1].split(":")
def pump(a, b):
    try:
        while d := a.recv(65536): b.sendall(d)
    except OSError: pass
    try: b.shutdown(1)
    except OSError: pass
def listening(local):
    s = socket.socket(); s.bind(("127.0.0.1", local)); s.listen(9)
    return s
def serve(where, s):
    while True:
        c, _ = s.accept(); u = socket.create_connection(where)
        for a, b in ((c, u), (u, c)):
            threading.Thread(target=pump, args=(a, b), daemon=True).start()
threading.Thread(target=serve, args=((gw, int(port)), listening(8001)), daemon=True).start()
threading.Thread(target=serve, args=(("allowed.test", 443), listening(8002)), daemon=True).start()
threading.Thread(target=serve, args=(("allowed.test", 80), listening(8003)), daemon=True).start()
def curl(*args):
    r = subprocess.run(["env", "-i", "curl", "-sk", "-m", "30", "-o", "/dev/null", "-w",
        "%{http_code}/%{http_connect}", *args], capture_output=True, text=True)
    print(r.returncode, r.stdout)
for name in "allowed.test", "evil.test":
    curl("-x", "http://127.0.0.1:8001", f"https://{name}/")
    curl("-x", "http://127.0.0.1:8001", f"http://{name}/")
    curl("-x", "socks5h://127.0.0.1:8001", f"https://{name}/")
    curl("--connect-to", f"{name}:443:127.0.0.1:8002", f"https://{name}/")
    curl("--connect-to", f"{name}:80:127.0.0.1:8003", f"http://{name}/")
"""


def test_relays(case):
    """N16: who in the sandbox says it, and by what detour, changes nothing."""
    run = case.python(RELAY)
    check(run.out.splitlines() == [
        "0 200/200", "0 200/000", "0 200/000", "0 200/000", "0 200/000",
        "56 000/403", "0 403/000", "97 000/000", "35 000/000", "0 403/000"], run)
    check(len(run.denied("not_in_policy", "evil.test")) == 3
          and len(run.denied("name_mismatch", "allowed.test")) == 2, run.records)
    silent(case)
