# SPDX-License-Identifier: Apache-2.0
"""What a policy can say beside names and ports: public hosts, observing, services
of the machine, doors, other records; and learning one."""
import contextlib
import http.server
import subprocess
import threading

from harness import check
from lab import GOOD
from policy_rows import (DOORS, row, run_rows, serve_rows, serving, try_rows,
                         write_policy)
from policy_world import world

PROXY, DIRECT = ("connect", "http", "socks"), ("sni", "host", "dns")

# -- default: public ------------------------------------------------------------

LIST = """# plain
[Adblock Plus 2.0]
! comment
evil.test
0.0.0.0 evilcdn.test other-evil.test
127.0.0.1 localhost
||wild.test^
*.tunnel.test
"""


def public(case):
    path = f"{case.lab.dir}/public-{case.who}.list"
    with open(path, "w") as f:
        f.write(LIST)
    return ("default: public\nallow:\n  - { host: allowed.test, ports: [80] }\n"
            "  - { host: both.test, ports: [443], doors: [transparent] }\n"
            f"deny:\n  - file: {path}\n  - six.test\n")


def public_rows():
    for door in "connect", "socks", "sni", "dns":
        yield row("public", door, "other.test", "public", via="other.test")
        yield row("public", door, "allowed.test", via="allowed.test",
                  reason="rule" if door == "dns" else "public")
    for door in PROXY:  # 443 only
        for port in 80, 8443, 22:
            yield row("public", door, "other.test", "not_in_policy", port=port)
    yield row("public", "http", "allowed.test")
    yield row("public", "host", "allowed.test")
    for name in "private", "metadata", "loop", "mapped", "uplink":
        for door in "connect", "socks", "dns":
            yield row("internal", door, name + ".test", "forbidden_address", asked=True)
    for name in ("printer", "x.local", "x.internal", "x.home.arpa", "x.onion",
                 "x.alt", "x.invalid", "a.b.c.internal", "localhost", "x.localhost"):
        for door in "connect", "socks":
            yield row("internal", door, name, "not_in_policy")
    for name in GOOD, "127.0.0.1", "169.254.169.254", "[::1]", "2130706433":
        yield row("N9", "connect", name, "literal_address")
    for name in ("evil.test", "www.evil.test", "evilcdn.test", "wild.test",
                 "www.wild.test", "deep.er.wild.test", "x.tunnel.test", "six.test",
                 "OTHER-evil.test."):
        for door in "connect", "socks", "dns":
            yield row("listed", door, name, "deny_rule")
    # What the policy says of 443 is not undone by what is public.
    yield row("doors", "connect", "both.test", "not_in_policy")
    yield row("T11", "connect", "other.test", "protocol", "alert 40", say="SSH-2.0\r\n",
              opened=True, asked=True, dialled=True, half=False)
    yield row("T1", "connect", "other.test", "name_mismatch", "alert 112",
              say="hello evil.test", opened=True, asked=True, dialled=True)
    yield row("T1", "sni", "evil.test", "name_mismatch", via="other.test")


def test_public(case):
    run_rows(case, public_rows(), public(case)).check()


def test_public_is_not_inherited(case):
    parent = write_policy(case, "default: public\n")
    run = case.run("echo", "RAN", allow=(), args=("--policy", write_policy(
        case, f"extends: [{parent}]\n")))
    check(run.status == 125 and "public" in run.err and "RAN" not in run.out, run)


# -- mode: observe --------------------------------------------------------------

OBSERVING = """
mode: observe
allow:
  - { host: web.test, ports: [80], methods: [GET], paths: [/a/**] }
  - { host: allowed.test, ports: [443] }
  - { host: six.test, expires: 2020-01-01 }
  - private.test
deny: [other.test]
"""


def observed_rows():
    def passes(observed, door, name, **more):
        return row("observe " + observed, door, name, "observe", observed=observed,
                   via=name, **more)
    for door in DOORS:
        yield passes("not_in_policy", door, "cdn.test")
        yield passes("deny_rule", door, "other.test")
    yield passes("port", "connect", "allowed.test", port=7000, say="x\n")
    yield passes("port", "socks", "allowed.test", port=7000, say="x\n")
    yield passes("port", "http", "allowed.test")
    for door in "http", "host":
        yield passes("path", door, "web.test", path="/b")
        yield passes("path", door, "web.test", path="/a/../b")
        yield passes("method", door, "web.test", path="/a/b", method="DELETE")
        yield row("observe rule", door, "web.test", path="/a/b", via="web.test")
        yield row("observe malformed", door, "web.test", "malformed", path="/a/..;/b",
                  via="web.test")


def held_rows():
    """All other checks are as ever."""
    for door in "sni", "host":
        yield row("name_mismatch", door, "evil.test", "name_mismatch")
    for door in PROXY:
        yield row("literal_address", door, GOOD, "literal_address")
        yield row("malformed", door, "evil..test", "malformed")
        yield row("expired", door, "six.test", "expired")
        for name in "private.test", "metadata.test", "loop.test", "uplink.test":
            yield row("forbidden_address", door, name, "forbidden_address",
                      asked=True)
    for name in "private.test", "metadata.test", "loop.test":
        yield row("forbidden_address", "dns", name, "forbidden_address", asked=True)
    yield row("expired", "dns", "six.test", "expired")
    yield row("no_name", "connect", "allowed.test", "no_name", "alert 109",
              say="hello ", opened=True, dialled=True, asked=True)
    yield row("protocol", "connect", "allowed.test", "protocol", "alert 40",
              say="SSH-2.0\r\n", opened=True, dialled=True, half=False)
    yield row("record_type", "dns", "allowed.test", "record_type", type="TXT")


def test_observe(case):
    world(case)
    tried = run_rows(case, [*observed_rows(), *held_rows()], OBSERVING).check()
    faults = []
    for r in tried.rows:
        got = {x["unmapped"].get("observed") for x in tried.records_of(r)
               if x.get("status_code") == "observe"}
        if r["reason"] == "observe" and got != {r["observed"]}:
            faults.append(f"{r['id']}: {r['door']} {r['name']}: observed {got}")
    check(not faults, "\n".join(faults))
    check("would be refused\n" in tried.run.err, tried.run)


# -- connect --------------------------------------------------------------------


@contextlib.contextmanager
def service(port=0):
    """Of the machine, on its loopback: the port, and what it was asked."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.headers["Host"] + self.path)
            self.send_response(200)
            self.send_header("Content-Length", "9")
            self.end_headers()
            self.wfile.write(b"the model")

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1], asked
    finally:
        server.shutdown()
        server.server_close()


def test_connect(case):
    with service() as (port, asked):
        policy = f"""
allow:
  - {{ host: llm.internal, ports: [80], connect: "127.0.0.1:{port}" }}
  - {{ host: dead.internal, ports: [80], connect: "127.0.0.1:9" }}
  - {{ host: loop.test, ports: [{port}, 80] }}
  - {{ host: allowed.test, ports: [443] }}
"""
        def rows(leases):
            for door, more in {"http": {}, "host": {}, "connect": {"port": 80},
                               "socks": {"port": 80}}.items():
                yield row("connect", door, "llm.internal", want="ok the model",
                          via="llm.internal", **more)
                yield row("connect", door, "LLM.internal.", want="ok the model",
                          via="llm.internal", **more)
                if door in ("http", "host"):  # allowed, but nobody is there
                    yield row("connect", door, "dead.internal", None,
                              "502 connect_failed", via="dead.internal")
            if leases:
                yield row("connect", "dns", "llm.internal")
            for door in PROXY:
                for other in 443, port, 9:
                    yield row("connect", door, "llm.internal", "port", port=other)
                yield row("connect", door, "127.0.0.1", "literal_address", port=port)
                yield row("connect", door, "x.llm.internal", "not_in_policy", port=80)
                yield row("connect", door, "loop.test", "forbidden_address",
                          port=port, asked=True)
            yield row("connect", "dns", "loop.test", "forbidden_address", asked=True)
        for tried in (run_rows(case, rows(True), policy),
                      serve_rows(case, rows(False), policy)):
            tried.check()
        check(set(asked) == {"llm.internal/host"}, asked)
        check(not any("internal" in p for p in case.lab.packets("port 53")))


def test_connect_to_ourselves(case):
    """Under `serve` our own listeners are addresses of the machine too."""
    port = 24001
    for text in (f'{{ host: me.internal, ports: [80], connect: "127.0.0.1:{port}" }}',
                 f'{{ host: loop.test, ports: [{port}], addresses: [127.0.0.0/8] }}'):
        with serving(case, f"allow:\n  - {text}\n", port=port) as (doors, log, _):
            name, to = ("me.internal", 80) if "me." in text else ("loop.test", port)
            rows = [row("H14", door, name, "self", "403 self" if to == 80 else None,
                        port=to, asked=True) for door in PROXY]
            try_rows(case, rows, doors, log).check()


# -- doors ----------------------------------------------------------------------


def test_doors(case):
    policy = """
allow:
  - { host: allowed.test, doors: [proxy] }
  - { host: other.test, doors: [transparent] }
  - { host: cdn.test, ports: [443], doors: [proxy] }
  - { host: cdn.test, ports: [80], doors: [transparent] }
"""
    def rows(leases):
        for door in PROXY:
            yield row("doors", door, "allowed.test")
            yield row("doors", door, "other.test", "not_in_policy")
        for door in DIRECT:
            yield row("doors", door, "other.test", via="other.test")
            if door == "dns" or not leases:
                yield row("doors", door, "allowed.test", "not_in_policy")
        yield row("doors", "connect", "cdn.test")
        yield row("doors", "connect", "cdn.test", "port", port=80)
        yield row("doors", "http", "cdn.test", "port")
        yield row("doors", "host", "cdn.test", via="cdn.test")
        if not leases:
            yield row("doors", "sni", "cdn.test", "port")
    run_rows(case, rows(True), policy).check()
    serve_rows(case, rows(False), policy).check()


# -- dns ------------------------------------------------------------------------

RECORDS = """
allow:
  - { host: rec.test, ports: [80], dns: { types: [TXT, MX] } }
  - { host: "*.rec.test", ports: [80], dns: { types: [SRV] } }
  - { host: only.test, dns: { types: [TXT] } }
  - allowed.test
"""


def test_records(case):
    world(case)
    rows = [row("D12", "dns", name, type=kind, tcp=tcp)
            for name, kind in (("rec.test", "TXT"), ("rec.test", "MX"),
                               ("_sip._tcp.rec.test", "SRV"), ("only.test", "TXT"),
                               ("rec.test", "A"))
            for tcp in (False, True)]
    rows += [row("D12", "dns", name, "record_type", type=kind, tcp=tcp)
             for name, kind in (("rec.test", "SRV"), ("rec.test", "HTTPS"),
                                ("_sip._tcp.rec.test", "TXT"), ("only.test", "MX"),
                                ("allowed.test", "TXT"), ("allowed.test", "MX"))
             for tcp in (False, True)]
    rows += [row("D12", "dns", "evil.test", "not_in_policy", type=kind)
             for kind in ("TXT", "MX", "SRV", "ANY")]
    run_rows(case, rows, RECORDS).check()
    serve_rows(case, rows, RECORDS).check()


def test_what_records_say(case):
    """As the name server has them; what they name is not allowed by that."""
    world(case)
    run = case.run("sh", "-c", "dig +short rec.test TXT | sort; dig +short rec.test MX |"
                   " sort; dig +short _sip._tcp.rec.test SRV; dig +short evil.test A;"
                   "dig +short +tcp rec.test TXT | sort",
                   allow=(), args=("--policy", write_policy(case, RECORDS)))
    text = '"one" "two"\n"v=spf1 -all"\n'
    check(run.out == text + "10 web.test.\n20 evil.test.\n1 2 5060 web.test.\n" + text,
          run)
    check(run.denied("not_in_policy", "evil.test"), run.records)


def test_ttl(case):
    """D20: an answer of today does not live for a day in somebody's cache."""
    world(case)
    for answers in "synthetic", "real":
        tried = run_rows(case, [
            row("D20", "dns", "web.test"), row("D20", "dns", "rec.test", type="TXT"),
            row("D20", "dns", "rec.test", type="MX")], f"dns: {{answers: {answers}}}\n"
            "allow: [web.test, {host: rec.test, dns: {types: [TXT, MX]}}]\n").check()
        for r in tried.rows:
            check(0 < r["ttl"] <= 60, f"D20 {answers}: {r}")


def test_upstream(case):
    """D23: who is asked is what the policy says, with no fallback."""
    world(case)
    for server, ok in (("93.184.216.54", True), ('"93.184.216.54:5353"', True),
                       ("93.184.216.34", False)):
        seen = len(case.lab.packets("port 53 and host 93.184.216.53"))
        rows = [row("D23", door, "nowhere.test", "rule", port=80)
                for door in ("connect", "socks")] if ok else [
            {**row("D23", "connect", "nowhere.test", None, "504 resolve_failed"),
             "denied": False}]
        if ok:
            rows += [row("D23", "dns", "nowhere.test"), row("D23", "http",
                     "nowhere.test", want="ok GET /host HTTP/1.1")]
        for r in rows:
            r["timeout"] = 30
        run_rows(case, rows, f"dns: {{ upstream: [{server}] }}\n"
                 "allow: [nowhere.test]\n").check()
        check(len(case.lab.packets("port 53 and host 93.184.216.53")) == seen,
              f"D23 {server}: the system's server was asked")


# -- learn ----------------------------------------------------------------------


def learned_rows(reason):
    for door in "connect", "http", "socks":
        yield row("learn", door, "allowed.test", reason)
        yield row("learn", door, "other.test", reason)
    yield row("learn", "sni", "both.test", reason, via="both.test")
    for door in "host", "dns":
        yield row("learn", door, "cdn.test", reason, via="cdn.test")
    yield row("learn", "connect", "allowed.test", reason, port=7000, say="x\n")
    yield row("learn", "http", "web.test", reason, path="/a/b")


def unlearned_rows():
    for door in PROXY:
        yield row("learn", door, "evil.test", "not_in_policy")
        yield row("learn", door, "evilcdn.test", "not_in_policy")
        yield row("learn", door, "other.test", "port", port=7000)
    # Somebody said another name there, which no policy would allow.
    yield row("learn", "connect", "cdn.test", "port")
    yield row("learn", "dns", "six.test", "not_in_policy")
    yield row("learn", "sni", "evil.test", "name_mismatch", via="both.test")
    yield row("learn", "connect", GOOD, "literal_address")


def test_learn_from_observing(case):
    """Observe, learn, enforce: the same passes, and nothing else does."""
    world(case)
    tried = [row("learn", "connect", "private.test", "forbidden_address", asked=True),
             row("learn", "sni", "evilcdn.test", "name_mismatch", via="cdn.test")]
    first = run_rows(case, [*learned_rows("observe"), *tried], "mode: observe\n").check()
    text = subprocess.run([case.binary, "learn", first.run.log], text=True,
                          capture_output=True, timeout=60, check=True).stdout
    rules = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    check(not any(word in line for word in ("mode:", "evil", "private", "default:")
                  for line in rules), text)
    path = case.lab.dir + f"/learned-{case.who}.yaml"
    with open(path, "w") as f:
        f.write(text + "\nlimits: { connections_per_second: 10000 }\n"
                if "limits:" not in text else text)
    run_rows(case, [*learned_rows("rule"), *unlearned_rows()],
             args=("--policy", path), allow=()).check()
