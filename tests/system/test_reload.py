# SPDX-License-Identifier: Apache-2.0
"""Policies that change while a sandbox runs, and rules that expire."""
import datetime
import json
import os
import re
import signal
import threading
import time

from harness import check, prompt, within
from lab import GOOD
from reload_lab import (BOTH, events, OTHER, reload, revoked, Session,
                        warden_of)


@prompt
def test_removed_rule_cuts(case):
    with Session(case, BOTH) as s:
        s.works("open", "tls", "tls", "allowed.test", 443)
        s.works("open", "raw", "raw", "allowed.test", 7000)
        s.works("open", "connect", "connect", "allowed.test", 7000)
        s.works("open", "stays", "tls", "other.test", 443)
        s.works("open", "stays2", "raw", "other.test", 7000)
        began = time.monotonic()
        out = s.reload(OTHER)
        check(re.search(r"sha256:\w{64} -> sha256:\w{64} .*1 rule", out.stdout), out)
        for name in "tls", "raw", "connect":
            s.cut(name)
        within(1.5, time.monotonic() - began)
        s.until(lambda r: len(revoked(r, "allowed.test")) >= 3)
        for kind, port in ("tls", 443), ("raw", 7000), ("connect", 7000):
            s.fails("try", kind, "allowed.test", port)
        check("Name or service not known" in s.fails("dns", "allowed.test"))
        # Who is still allowed did not notice, not for one packet.
        s.works("ping", "stays")
        s.works("ping", "stays2")
        s.works("try", "tls", "other.test", 443)
        records = s.records()
        change = events(records, "policy")
        check(len(change) == 1, change)
        check(records.index(change[0])
              < records.index(revoked(records, "allowed.test")[0]))
        check(not revoked(records, "other.test"))
        check(not [r for r in events(records, "packet")
                   if r["dst_endpoint"].get("hostname") == "other.test"])


@prompt
def test_added_rule_opens(case):
    with Session(case, OTHER) as s:
        s.fails("try", "tls", "allowed.test", 443)
        s.works("try", "raw", "other.test", 7000)
        s.fails("try", "raw", "other.test", 2525)
        s.reload(BOTH)
        s.works("try", "tls", "allowed.test", 443)
        s.works("try", "connect", "allowed.test", 7000)
        # A name that has its address already gets another port, and loses one.
        s.works("open", "held", "raw", "allowed.test", 7000)
        address = s.do("dns", "allowed.test")
        s.reload("allow:\n  - {host: allowed.test, ports: [80, 7000-7100]}\n")
        s.works("ping", "held")
        check("refused" in s.fails("try", "raw", address, 443))
        s.works("try", "raw", address, 7000)
        s.reload("allow:\n  - {host: allowed.test, ports: [443, 7050-7100]}\n")
        s.cut("held")
        check("refused" in s.fails("try", "raw", address, 7000))
        s.works("try", "tls", "allowed.test", 443)


MANY = """limits: {names: 4000, names_per_wildcard: 4000, dns_per_second: 100000}
allow:
  - {host: other.test, ports: [7000]}
  - {host: "*.tunnel.test", ports: [%s]}
"""


def closed(s, addresses, port):
    """The kernel refuses it, sooner or later."""
    end = time.monotonic() + 60
    for a in addresses:
        while "refused" not in s.do("try", "raw", a, port):
            check(time.monotonic() < end, (a, port))
            time.sleep(0.05)


@prompt
def test_many_names(case):
    """What the kernel has of many names changes within a second or so, and
    comes back after the gate died."""
    with Session(case, MANY % "443, 7000") as s:
        s.works("open", "stays", "raw", "other.test", 7000)
        address = s.do("many", 300).split()
        check(len(set(address)) == 300, len(set(address)))
        some = address[0], address[150], address[299]
        for a in some:
            s.works("try", "raw", a, 7000)
        began = time.monotonic()
        s.reload(MANY % "443, 8000-9000")
        if not case.sanitized:
            within(1, time.monotonic() - began)
        s.works("ping", "stays")
        for a in some:
            s.fails("try", "raw", a, 7000)
        # The kernel takes its time over so many; nobody waits for it.
        s.works("try", "raw", "other.test", 7000)
        closed(s, address, 7000)
        s.works("ping", "stays")
        s.reload(MANY % "7000-7003")
        kill_gate(s)
        s.until(lambda r: events(r, "finding", "the gate died"))
        for a in some:
            s.works("try", "raw", a, 7000)
        closed(s, some, 443)
        os.kill(s.gate(), signal.SIGSTOP)
        s.reload(MANY % "8000")
        for a in some:
            check("refused" in s.fails("try", "raw", a, 7000))
        s.reload(MANY % "443, 7000")
        for a in some:
            s.works("try", "raw", a, 7000)
        # What was to be closed, and is allowed again before it was, stays open.
        s.reload(MANY % "8000")
        s.reload(MANY % "6990-7010")
        closed(s, some, 443)
        time.sleep(1)
        for a in address:
            s.works("try", "raw", a, 7000)
        check(len(events(s.records(), "finding")) == 2,
              events(s.records(), "finding"))


@prompt
def test_literal_addresses(case):
    literal = f"allow:\n  - {{address: {GOOD}/32, ports: [7000]}}\n"
    with Session(case, OTHER) as s:
        check("refused" in s.fails("try", "raw", GOOD, 7000))
        s.reload(literal + "  - {host: other.test, ports: [7000]}\n")
        s.works("open", "held", "raw", GOOD, 7000)
        s.works("open", "stays", "raw", "other.test", 7000)
        s.reload("allow:\n  - {host: other.test, ports: [7000]}\n")
        s.cut("held")
        check("refused" in s.fails("try", "raw", GOOD, 7000))
        s.works("ping", "stays")
        # A range around everything, the leases' too, comes and goes.
        wide = "allow:\n  - {host: other.test, ports: [7000]}\n" \
               "  - {address: 0.0.0.0/0, ports: [6000-8000]}\n"
        s.reload(wide)
        s.works("try", "raw", GOOD, 7000)
        s.works("ping", "stays")
        s.reload(OTHER)
        check("refused" in s.fails("try", "raw", GOOD, 7000))
        s.works("ping", "stays")
        s.works("try", "raw", "other.test", 7000)
        check(not events(s.records(), "finding"), events(s.records(), "finding"))


@prompt
def test_bad_policies_change_nothing(case):
    with Session(case, BOTH) as s:
        s.works("open", "tls", "tls", "allowed.test", 443)
        bad = {
            "allow:\n  - bad host\n": f"{s.path}:3:5: ",
            "alow: []\n": f"{s.path}:2:1: ",
            "allow: [\n": f"{s.path}:3:1: ",
            "extends: [./missing.yaml]\n": "missing.yaml: ",
            "allow:\n  - {host: a.test, ports: [443], methods: [GET]}\n":
                f"{s.path}:3:",
            "default: public\nextends: [nosuchpreset]\n": f"{s.path}:3:",
            "#" * (11 << 20): "it is larger than",
        }
        for text, want in bad.items():
            out = s.reload(text, status=1)
            check(want in out.stderr and "old policy stays" in out.stderr
                  and not out.stdout, (text[:100], want, out))
        out = s.reload(status=1, args=("--json",))
        said = json.loads(out.stdout)
        check(not said["ok"] and "it is larger than" in said["error"], said)
        os.unlink(s.path)
        check("No such file" in s.reload(status=1).stderr)
        os.mkfifo(s.path)
        case.mine(s.path)
        check(s.path in s.reload(status=1).stderr)
        os.unlink(s.path)
        s.works("ping", "tls")
        s.works("try", "tls", "allowed.test", 443)
        found = events(s.records(), "finding", "was not reloaded")
        check(len(found) == len(bad) + 3, found)
        check(not events(s.records(), "policy"))
        # What is right at last is taken.
        s.reload(OTHER)
        s.cut("tls")


def test_options_are_kept(case):
    with Session(case, "allow: []\n", "--allow", "allowed.test", "--deny",
                 "other.test") as s:
        s.works("try", "tls", "allowed.test", 443)
        s.reload(OTHER)
        s.works("try", "tls", "allowed.test", 443)
        s.fails("try", "tls", "other.test", 443)
        # The same once more is no change.
        check("unchanged" in s.reload().stdout)
        said = json.loads(s.reload(args=("--json",)).stdout)
        check(said["ok"] and not said["changed"] and said["old"] == said["new"]
              and said["rules"] == 3, said)
        check(len(events(s.records(), "policy")) == 1)


def soon(seconds):
    at = datetime.datetime.now(datetime.timezone.utc) \
        + datetime.timedelta(seconds=seconds)
    return at.replace(microsecond=0)


@prompt
def test_expiry(case):
    def policy(at):
        return ("allow:\n  - {host: allowed.test, ports: [443, 7000], expires: "
                f"{at:%Y-%m-%dT%H:%M:%SZ}}}\n"
                "  - {host: other.test, ports: [7000]}\n")
    at = soon(4)
    with Session(case, policy(at)) as s:
        said = [s.do("open", "tls", "tls", "allowed.test", 443),
                s.do("open", "raw", "raw", "allowed.test", 7000),
                s.do("open", "stays", "raw", "other.test", 7000)]
        address = s.do("dns", "allowed.test")
        # So that the kernel goes on as before.
        warden = warden_of(s.process, s.gate())
        os.kill(warden, signal.SIGSTOP)
        within(at.timestamp(), time.time(), "too slow to tell")
        check(said == ["True"] * 3, said)
        check(s.do("end", "tls", 20) != "False")
        late = time.time() - at.timestamp()
        s.cut("raw")
        check(late > -0.1, late)
        within(1, late)
        s.fails("dns", "allowed.test")
        s.fails("try", "connect", "allowed.test", 7000)
        # What the kernel still lets in is refused by the gate.
        said = s.fails("try", "raw", address, 7000)
        check("reset" in said, said)
        s.until(lambda r: [x for x in r if x.get("status_code") == "expired" and
                           x["unmapped"]["event"] == "flow_open" and
                           x["dst_endpoint"].get("port") == 7000 and
                           x["unmapped"].get("door") == "transparent"])
        os.kill(warden, signal.SIGCONT)
        closed(s, [address], 7000)
        s.works("ping", "stays")
        s.until(lambda r: len(revoked(r, "allowed.test")) == 2)


@prompt
def test_expiry_after_reload(case):
    """One that came by a reload expires too."""
    with Session(case, OTHER) as s:
        s.works("open", "stays", "raw", "other.test", 7000)
        at = soon(3)
        s.reload("allow:\n  - {host: allowed.test, ports: [443, 7000], expires: "
                 f"{at:%Y-%m-%dT%H:%M:%SZ}}}\n"
                 "  - {host: other.test, ports: [7000]}\n")
        said = s.do("open", "raw", "raw", "allowed.test", 7000)
        within(at.timestamp(), time.time(), "too slow to tell")
        check(said == "True", said)
        check(s.do("end", "raw", 20) != "False")
        late = time.time() - at.timestamp()
        check(late > -0.1, late)
        within(1, late)
        s.works("ping", "stays")


def kill_gate(s):
    """As the warden does not die: in another process's children."""
    os.kill(s.gate(), signal.SIGKILL)


def test_gate_that_dies(case):
    """Killed before, during and after a reload, the gate that comes next has
    the new policy, never the old one."""
    for pause in 0, 0.002, 0.01:
        with Session(case, BOTH) as s:
            s.works("try", "tls", "allowed.test", 443)
            address = s.do("dns", "allowed.test")
            s.write(OTHER)
            pid = s.gate()
            killer = threading.Timer(pause, os.kill, (pid, signal.SIGKILL))
            killer.start()
            s.reload()
            killer.join()
            for _ in range(20):
                s.fails("try", "connect", "allowed.test", 7000)
                s.fails("try", "raw", address, 7000)
            # The one that is there now, or the next.
            s.until(lambda r: events(r, "finding", "the gate died"))
            s.works("try", "tls", "other.test", 443)
            s.fails("try", "connect", "allowed.test", 7000)
            kill_gate(s)
            s.until(lambda r: len(events(r, "finding", "the gate died")) == 2)
            s.works("try", "tls", "other.test", 443)
            s.fails("try", "connect", "allowed.test", 7000)
            check(len(events(s.records(), "policy")) == 1)


@prompt
def test_gate_that_hangs(case):
    """One that does not answer is replaced, by one with the new policy."""
    with Session(case, BOTH) as s:
        s.works("open", "raw", "raw", "allowed.test", 7000)
        address = s.do("dns", "allowed.test")
        os.kill(s.gate(), signal.SIGSTOP)
        s.reload(OTHER)
        s.cut("raw")
        s.fails("try", "connect", "allowed.test", 7000)
        check("refused" in s.fails("try", "raw", address, 7000))
        s.works("try", "tls", "other.test", 443)


@prompt
def test_ledger_that_hangs(case):
    """What is not recorded is not done."""
    with Session(case, BOTH) as s:
        s.works("open", "raw", "raw", "allowed.test", 7000)
        ledger = case.child(s.process, "ledger")
        os.kill(ledger, signal.SIGSTOP)
        s.write(OTHER)
        out = reload(case, s.log)
        os.kill(ledger, signal.SIGCONT)
        check(out.returncode == 1 and "ledger" in out.stderr, out)
        s.works("ping", "raw")
        s.works("try", "tls", "allowed.test", 443)
        # The last word of the log is what is in force.
        s.until(lambda r: len(events(r, "policy")) == 2)
        first = re.findall(r"sha256:(\w+)",
                           events(s.records(), "policy")[0]["unmapped"]["detail"])
        last = re.findall(r"sha256:(\w+)",
                          events(s.records(), "policy")[1]["unmapped"]["detail"])
        check(first == last[::-1], (first, last))
        s.reload(OTHER)
        s.cut("raw")


REAL = """dns: {answers: real}
allow:
  - {host: allowed.test, ports: [80, 443]}
  - {host: other.test, ports: [443]}
"""


@prompt
def test_real_addresses(case):
    """Names with one address: what one of them loses the other one keeps."""
    only = "dns: {answers: real}\nallow:\n  - {host: other.test, ports: [443]}\n"
    with Session(case, REAL) as s:
        check(s.do("dns", "allowed.test") == GOOD and
              s.do("dns", "other.test") == GOOD)
        s.works("open", "held", "tls", "other.test", 443)
        s.works("open", "gone", "tls", "allowed.test", 443)
        check("refused" not in s.do("try", "raw", GOOD, 80))
        s.reload(only)
        s.cut("gone")
        s.works("ping", "held")
        check("refused" in s.fails("try", "raw", GOOD, 80))
        # A literal range over it comes and goes.
        s.reload(only + f"  - {{address: {GOOD}/32, ports: [400-8000]}}\n")
        s.works("ping", "held")
        s.reload(only)
        s.works("try", "tls", "other.test", 443)
        s.works("ping", "held")
        s.reload("dns: {answers: real}\nallow: []\n")
        s.cut("held")
        check("refused" in s.fails("try", "raw", GOOD, 443))
        # And to synthetic ones, and back.
        s.reload(BOTH)
        check(s.do("dns", "other.test").startswith("198.18."))
        s.works("try", "tls", "other.test", 443)
        check("refused" in s.fails("try", "raw", GOOD, 443))
        s.reload(REAL)
        check(s.do("dns", "other.test") == GOOD)
        s.works("try", "tls", "other.test", 443)
        check(not events(s.records(), "finding"), events(s.records(), "finding"))


def test_a_range_over_a_name_comes_and_goes(case):
    """Without a gap: who is connected by the name, and says something all the
    time, notices nothing."""
    only = "dns: {answers: real}\nallow:\n  - {host: other.test, ports: [443]}\n"
    with Session(case, only) as s:
        s.works("open", "busy", "tls", "other.test", 443)
        s.works("busy", "busy")
        for ports in ("400-8000", "443", "443-444") * 5:
            s.reload(only + f"  - {{address: {GOOD}/32, ports: [{ports}]}}\n")
            s.reload(only)
        s.works("calm")
        s.works("try", "tls", "other.test", 443)
        check(not events(s.records(), "packet"), "packets were dropped")
        check("refused" in s.fails("try", "raw", GOOD, 444))
        check(not events(s.records(), "finding"), events(s.records(), "finding"))
