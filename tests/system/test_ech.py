# SPDX-License-Identifier: Apache-2.0
"""Encrypted ClientHellos (ECH): a name server that gives keys for them to
everybody, and hellos that have the extension, by every door."""
import json
import os
import struct
import subprocess

from harness import check
from lab import DNS, GOOD, sh
from attack_lab import COMMON
from policy_world import reload_zone

PUBLIC = b"cloudflare-ech.com"
# draft-13 and RFC 9849: version, config id, KEM, key, suites, name, extensions
CONTENTS = (b"\x07\x00\x20\x00\x20" + b"K" * 32 + b"\x00\x04\x00\x01\x00\x01\x00"
            + bytes([len(PUBLIC)]) + PUBLIC + b"\x00\x00")
CONFIG = b"\xfe\x0d" + struct.pack(">H", len(CONTENTS)) + CONTENTS
LIST = struct.pack(">H", len(CONFIG)) + CONFIG
# 1 . alpn=h2 ech=... (RFC 9460): both types look the same
RDATA = (b"\x00\x01\x00" + b"\x00\x01\x00\x03\x02h2"
         + b"\x00\x05" + struct.pack(">H", len(LIST)) + LIST)
RECORDS = f"""
ech A {GOOD}
ech TYPE65 \\# {len(RDATA)} {RDATA.hex()}
_x.ech TYPE64 \\# {len(RDATA)} {RDATA.hex()}
ech TYPE64 \\# {len(RDATA)} {RDATA.hex()}
front A {GOOD}
"""

# An outer one (RFC 9849 section 5).
HELLO = r"""
OUTER = b"\0\0\1\0\1\x07" + struct.pack(">H", 32) + b"e" * 32 + struct.pack(">H", 200) + b"p" * 200
def hello_for(name, body=OUTER): return record(client_hello(sni(name), ext(0xfe0d, body)))
def through(door, data, name=b"allowed.test", first=False):
    "What it is told to its end, or the first byte: nobody closes."
    try:
        if door == "transparent": s = dial((name, 443))
        else: s = dial((GW, PORT))
        s.settimeout(60)
        if door == "connect":
            s.sendall(b"CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n" % (name, name)); s.recv(4096)
        if door == "socks":
            s.sendall(b"\5\1\0"); s.recv(2)
            s.sendall(b"\5\1\0\3" + bytes([len(name)]) + name + b"\1\xbb"); s.recv(10)
        s.sendall(data)
        return s.recv(1) if first else rest(s)
    except OSError as e:
        return b"[" + type(e).__name__.encode() + b"]"
DOORS = "transparent", "connect", "socks"
"""


def prepare(case):
    lab = case.lab
    with open(lab.dir + "/test.zone", "r+") as f:
        if "TYPE65" in f.read():
            return
        f.write(RECORDS)
    reload_zone(lab, lambda: PUBLIC.hex() in asked(lab, 65))


def asked(lab, kind):
    """The answer's bytes in hex, as the name server gives them to anybody;
    while it reads its zone, perhaps none."""
    try:
        return "".join(lab.net("dig", "+short", "+tries=1", "+unknownformat",
                               "@" + DNS, "ech.test", f"TYPE{kind}").split()).lower()
    except subprocess.CalledProcessError:
        return ""


def flows(run, reason=None):
    return [r for r in run.records
            if r["unmapped"].get("event") in ("flow_open", "flow_close")
            and reason in (None, r["status_code"])]


def test_no_keys_from_dns(case):
    """Whatever is asked for, by UDP or TCP: no key for ECH comes in, and the
    name server is not even asked for one."""
    prepare(case)
    check(PUBLIC.hex() in asked(case.lab, 64) + asked(case.lab, 65))
    run = case.python(COMMON + r"""
ok = name(b"ech.test")
opt = b"\0" + struct.pack(">2HIH", 41, 4096, 0x8000, 0)
for qname in ok, name(b"_x.ech.test"), name(b"_443._https.ech.test"):
    for kind in 1, 28, 64, 65, 255, 16, 5:
        for q in query(qname, kind), query(qname, kind, counts=(1, 0, 0, 1), tail=opt):
            a = udp(q, 30); b = tcp(struct.pack(">H", len(q)) + q, 30)
            print("ASKED", qname == ok, kind, a[3] & 15 if a else "-", struct.unpack(">H", a[6:8])[0] if a else "-",
                  any(x in a + b for x in (b"cloudflare", b"\xfe\x0d", b"KKKK")))
""", allow=("*.test",))
    lines = [l.split()[1:] for l in run.out.splitlines() if l.startswith("ASKED")]
    check(len(lines) == 42, run)
    check(all(l[4] == "False" for l in lines), run)
    for ours, kind, rcode, answers, _ in lines:
        if ours == "True":
            check(rcode == "0" and answers == ("1" if kind in ("1", "255") else "0"), run)
    kinds = case.lab.packets(f"src host 203.0.113.2 and dst host {DNS} and port 53")
    check(kinds and not [p for p in kinds if "65" in p.split("?")[0].split()[-1]
                         or "HTTPS" in p or "SVCB" in p or "Type6" in p], kinds)
    check({r["query"]["type"] for r in run.denied("record_type", "ech.test")}
          >= {"HTTPS", "SVCB"}, run.records)


def test_doors(case):
    """The outer name decides; what it hides is recorded, or refused."""
    run = case.python(COMMON + HELLO + r"""
for door in DOORS:
    print(door, "same", through(door, hello_for(b"allowed.test"), first=True))
    print(door, "front", through(door, hello_for(b"cloudflare-ech.com"))[-7:].hex())
    print(door, "inner", through(door, hello_for(b"allowed.test", b"\1"))[-7:].hex())
    print(door, "short", through(door, hello_for(b"allowed.test", OUTER[:-1]))[-7:].hex())
""")
    for door in "transparent", "connect", "socks":
        # nginx knows no ECH, and answers the outer hello.
        check(f"{door} same b'\\x16'" in run.out or f"{door} same b'\\x15'" in run.out, run)
        check(f"{door} front 15030300020231" in run.out, run)  # access_denied
        check(f"{door} inner 15030300020232" in run.out, run)  # decode_error
        check(f"{door} short 15030300020232" in run.out, run)
        mine = [r for r in flows(run) if r["unmapped"]["door"] == door]
        closed = [r for r in mine if r["unmapped"]["event"] == "flow_close"
                  and r["status_code"] == "rule" and r["unmapped"].get("ech")]
        check(len(closed) == 1 and closed[0]["tls"]["sni"] == "allowed.test", mine)
        refused = [r for r in mine if r["status_code"] == "ech"
                   and r["unmapped"]["event"] == "flow_open"]
        check(len(refused) == 1 and refused[0]["unmapped"]["ech"] is True
              and refused[0]["tls"]["sni"] == PUBLIC.decode(), mine)
        check(len([r for r in mine if r["status_code"] == "malformed"
                   and r["unmapped"]["event"] == "flow_open"]) == 2, mine)
    said(case, run)


def said(case, run):
    """People are told: by `log`, and in the report."""
    log = subprocess.run([case.binary, "log", run.log], env=case.env(),
                         capture_output=True, text=True).stdout
    check("ECH" in log and " ech " in log, log)
    report = json.loads(subprocess.run(
        [case.binary, "report", "--format", "json", run.log],
        env=case.env(), capture_output=True, text=True).stdout or "{}")
    text = json.dumps(report)
    check('"ech": 3' in text and '"intent": "ech"' in text, text[:3000])


def test_policy(case):
    """What a rule says holds: refused, with how to allow it, or let pass."""
    prepare(case)
    policy = os.path.join(case.work, "ech.yaml")
    with open(policy, "w") as f:
        f.write("version: 1\nallow:\n"
                "  - {host: allowed.test, tls: {ech: deny}}\n"
                "  - {host: front.test, tls: {ech: allow}}\n")
    run = case.python(COMMON + HELLO + r"""
for door in DOORS:
    print(door, "deny", through(door, hello_for(b"allowed.test"))[-7:].hex())
    print(door, "plain", through(door, hello("allowed.test"), first=True).hex())
    print(door, "allow", through(door, hello_for(b"front.test"), b"front.test", True).hex())
    print(door, "other", through(door, hello_for(b"allowed.test"), b"front.test")[-7:].hex())
""", allow=(), args=("--policy", policy))
    for door in "transparent", "connect", "socks":
        check(f"{door} deny 15030300020231" in run.out, run)
        check(f"{door} plain 16" in run.out, run)
        check(f"{door} allow 16" in run.out or f"{door} allow 15" in run.out, run)
        check(f"{door} other 15030300020270" in run.out, run)  # unrecognized_name
    check(len(run.denied("ech", "allowed.test")) == 3, run.records)
    check(len(run.denied("name_mismatch", "front.test")) == 3, run.records)
    explained = sh(case.binary, "explain", policy, "https://front.test/")
    check("encrypted ClientHello allowed" in explained, explained)
    explained = sh(case.binary, "explain", policy, "https://allowed.test/")
    check("encrypted ClientHello refused" in explained, explained)
