# SPDX-License-Identifier: Apache-2.0
"""Plain HTTP: methods and paths, in every spelling and by every door, and what
of it the server gets to see. Then what a connection must speak at all."""
import re
import time

from harness import check
from policy_rows import looks, row, run_rows, serve_rows, write_policy
from policy_world import WEB, world

# By each of them the same requests. A tunnel is there before they are judged.
TUNNEL = {"port": 80, "opened": True}
WAYS = {"http": {}, "host": {}, "connect": TUNNEL, "socks": TUNNEL}

JUDGED = """
allow:
  - host: web.test
    ports: [80]
    methods: [GET, HEAD, OPTIONS]
    paths: [/repos/acme/**, /v1/models, /x/*/tags]
  - { host: web.test, ports: [80], methods: [POST], paths: [/v1/models] }
  - { host: web2.test, ports: [80] }
"""

# H13: what is asked for; what the server is asked for, or the reason.
PATHS = [
    ("/repos/acme/a", "/repos/acme/a"),
    ("/repos/acme/a/b/c?d=e", "/repos/acme/a/b/c?d=e"),
    ("/repos/acme/", "/repos/acme/"),
    ("/repos/acme", "path"),
    ("/repos/acmex/a", "path"),
    ("/Repos/acme/a", "path"),
    ("/", "path"),
    # Dots are resolved before anybody looks.
    ("/repos/acme/./a", "/repos/acme/a"),
    ("/repos/evil/../acme/a", "/repos/acme/a"),
    ("/repos/acme/../evil/a", "path"),
    ("/repos/acme/../../secret", "path"),
    ("/repos/acme/a/../../evil", "path"),
    ("/repos/acme/..", "path"),
    ("/repos/acme/.", "/repos/acme/"),
    ("/../repos/acme/a", "malformed"),
    ("/repos/acme/../../../../repos/acme/a", "malformed"),
    ("/repos/acme/.../a", "/repos/acme/.../a"),
    # Escapes that need not be are undone, once.
    ("/repos/%61cme/a", "/repos/acme/a"),
    ("/repos/acme/%2e%2e/evil", "path"),
    ("/repos/acme/%2E./%2e%2E/secret", "path"),
    ("/repos/acme/.%2e/acme/a", "/repos/acme/a"),
    ("/repos/acme/%7ea%20b", "/repos/acme/~a%20b"),
    ("/repos/acme/%e2%82%ac", "/repos/acme/%E2%82%AC"),
    ("/secret%3f/repos/acme/a", "path"),
    ("/secret%23/repos/acme/a", "path"),
    # What servers may take for separators, ends or escapes.
    ("/repos/acme/%252e%252e/evil", "malformed"),
    ("/repos/acme/%25%32%65/a", "malformed"),
    ("/repos/acme/..%2fevil", "malformed"),
    ("/repos/acme%2f..%2f..%2fsecret", "malformed"),
    ("/repos%2Facme/a", "malformed"),
    ("/repos/acme/..%5cevil", "malformed"),
    ("/repos/acme/..\\evil", "malformed"),
    ("/repos\\acme\\a", "malformed"),
    ("/repos/acme/a%00.html", "malformed"),
    ("/repos/acme/..;/evil", "malformed"),
    ("/repos/acme/..;x=y/evil", "malformed"),
    ("/repos/acme/%2e%2e;/evil", "malformed"),
    ("/repos/acme/a;x", "malformed"),
    ("/repos/acme;x/a", "malformed"),
    ("/repos/acme/a%3bx", "malformed"),
    ("//repos/acme/a", "malformed"),
    ("/repos//acme/a", "malformed"),
    ("/repos/acme//a", "malformed"),
    ("/repos/acme/a//", "malformed"),
    ("//evil.test/repos/acme/a", "malformed"),
    ("/repos/acme/a%", "malformed"),
    ("/repos/acme/a%2", "malformed"),
    ("/repos/acme/%zz", "malformed"),
    ("/repos/acme/%u002e%u002e/evil", "malformed"),
    ("/repos/acme/a\x7f", "malformed"),
    ("/repos/acme/a\x01", "malformed"),
    # The query decides nothing, and is handed on as it is.
    ("/v1/models?a=/../../secret&b=%2e%2e;//", "/v1/models?a=/../../secret&b=%2e%2e;//"),
    ("/v1/models?", "/v1/models?"),
    ("/secret?/v1/models", "path"),
    ("/secret?/../v1/models", "path"),
    ("/v1/models/", "path"),
    ("/v1/models/x", "path"),
    ("/v1/model", "path"),
    # '*' is one segment, and not none.
    ("/x/1/tags", "/x/1/tags"),
    ("/x/%2a/tags", "/x/%2A/tags"),
    ("/x/1/2/tags", "path"),
    ("/x/tags", "path"),
    ("/x//tags", "malformed"),
    ("/x/../tags", "path"),
    ("/x/1/tags/", "path"),
    ("/x/%2e%2e/x/1/tags", "/x/1/tags"),
]
WORDS = {"path", "malformed", "method", "protocol"}


def requests(id, table, host="web.test", ways=WAYS, **more):
    for path, want in table:
        for door, how in ways.items():
            if want in WORDS:
                yield row(id, door, host, want, looks(want, "http"), path=path,
                          via=host, **how, **more)
            else:
                method = more.get("method", "GET")
                yield row(id, door, host, path=path, via=host, want="ok" if
                          method == "HEAD" else f"ok {method} {want} HTTP/1.1",
                          **how, **more)


def first_lines(case):
    return sorted(head.split("\r\n")[0] for head in world(case).heard())


def test_paths(case):
    """What came to the server is what was judged, in its one spelling."""
    for do in run_rows, serve_rows:
        world(case).forget()
        do(case, list(requests("H13", PATHS)), JUDGED).check()
        check(first_lines(case) == sorted(f"GET {want} HTTP/1.1" for _, want in PATHS
                                          if want not in WORDS for _ in WAYS),
              first_lines(case))


def test_methods(case):
    world(case).forget()
    models, acme = [("/v1/models", "/v1/models")], [("/repos/acme/a",) * 2]
    rows = [*requests("H13", models, method="HEAD"),
            *requests("H13", models, method="POST"),
            # Of the two rules the one that came closest says why.
            *requests("H13", [("/repos/acme/a", "path")], method="POST"),
            *requests("H13", acme, method="OPTIONS")]
    for method in "PUT", "DELETE", "PATCH", "PROPFIND", "TRACE":
        rows += requests("H13", [("/v1/models", "method")], method=method)
    for method in "get", "Get", "GETX":
        rows += ({**r, "want": "501 malformed"} for r in requests(
            "H13", [("/v1/models", "malformed")], method=method))
    # The header that some frameworks take for the method is not one.
    rows += requests("H13", [("/repos/acme/a", "method")], method="PUT",
                     fields="X-HTTP-Method-Override: GET\r\n")
    run_rows(case, rows, JUDGED).check()
    got = {line.split()[0] for line in first_lines(case)}
    check(got == {"HEAD", "POST", "OPTIONS"}, got)


def test_without_paths(case):
    """A rule that has none leaves the path to the server, but for its dots."""
    table = [("//a//b", "//a//b"), ("/a;x/b", "/a;x/b"), ("/a%2fb", "/a%2Fb"),
             ("/a/../b", "/b"), ("/%252e%252e/a", "/%252e%252e/a"),
             ("/..;/a", "malformed"), ("/../a", "malformed")]
    world(case).forget()
    run_rows(case, requests("H13", table, "web2.test"), JUDGED).check()
    check(not any("/../" in line or "..;" in line for line in first_lines(case)))


SECOND = r"""
import os, socket, sys
gw, port = os.environ["http_proxy"].split("//")[1].split(":")
def both(where, before):
    s = socket.create_connection(where, 30)
    ok = b"GET " + before + b"/v1/models HTTP/1.1\r\nHost: web.test\r\n\r\n"
    s.sendall(ok * 2 + b"GET " + before + b"/secret HTTP/1.1\r\nHost: web.test\r\n\r\n" + ok)
    got = b""
    while d := s.recv(65536): got += d
    print(got.count(b"HTTP/1.1 200"), got.count(b"HTTP/1.1 403"), got.count(b"secret"))
both((gw, int(port)), b"http://web.test")
both(("web.test", 80), b"")
"""


def test_each_request_by_itself(case):
    """H11 of paths: what was allowed says nothing of the next."""
    world(case).forget()
    run = case.python(SECOND, allow=(), args=("--policy", write_policy(case, JUDGED)))
    check(run.out.splitlines() == ["2 1 0", "2 1 0"], run)
    check(first_lines(case) == ["GET /v1/models HTTP/1.1"] * 4, first_lines(case))
    check(len(run.denied("path", "web.test")) == 2, run.records)


UPGRADE = ("Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
H2C = "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"


def test_upgrade(case):
    """A websocket would be a tunnel: not where each request is judged."""
    world(case).forget()
    rows = list(requests("H12", [("/v1/models", "protocol")], fields=UPGRADE,
                         connection="Upgrade"))
    for door, how in WAYS.items():
        rows.append(row("H12", door, "web2.test", "rule", via="web2.test", path="/",
                        want="HTTP/1.1 101 Switching Protocols", fields=UPGRADE,
                        connection="Upgrade", enough="free", **how))
    rows += requests("H12", [("/v1/models",) * 2], fields=H2C,
                     enough="/v1/models HTTP/1.1",
                     connection="Upgrade, HTTP2-Settings")
    run_rows(case, rows, JUDGED).check()
    for head in world(case).heard():
        check("h2c" not in head and "HTTP2" not in head, head)


# -- what is spoken -------------------------------------------------------------

PROTOCOLS = """
allow:
  - { host: talk.test, ports: [443, 80, 7000], protocol: any }
  - { host: cdn.test, protocol: any }
  - { host: web.test, ports: [443, 7000], protocol: http }
  - { host: allowed.test, ports: [443, 7000], protocol: tls }
  - { host: other.test, ports: [443, 80, 7000] }
"""
GET = "GET /host HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n"
# Host, port, what is said there, and what is heard, or the reason and how the
# client hears it. In a tunnel that is as for direct connections.
SPOKEN = [
    *[("talk.test", port, said, "ok hello first\r\n" + said)
      for port in (443, 80, 7000) for said in ("SSH-2.0-x\r\n", "\0\1\2\3")],
    *[("talk.test", port, "hello evil.test", "name_mismatch",
       "ok hello first\r\n\x15\3\3\0\2\2p") for port in (443, 80, 7000)],
    # Requests are answered one by one, which is too late here.
    *[("talk.test", port, GET.format("evil.test"), "protocol",
       "ok hello first\r\n") for port in (443, 80, 7000)],
    ("cdn.test", 443, "hello evilcdn.test", "name_mismatch", "alert 112"),
    ("cdn.test", 80, GET.format("evilcdn.test"), "name_mismatch",
     "403 name_mismatch"),
    ("cdn.test", 80, GET.format("cdn.test"), "ok cdn.test\n"),
    ("web.test", 443, GET.format("web.test:443"), "ok GET /host HTTP/1.1"),
    ("web.test", 7000, GET.format("web.test:7000"), "ok GET /host HTTP/1.1"),
    ("web.test", 7000, GET.format("web.test"), "name_mismatch",
     "403 name_mismatch"),
    ("web.test", 7000, GET.format("evil.test:7000"), "name_mismatch",
     "403 name_mismatch"),
    ("web.test", 443, "hello web.test", "protocol", "400 protocol"),
    ("web.test", 7000, "hello web.test", "protocol", "400 protocol"),
    ("web.test", 7000, "SSH-2.0-x\r\n", "protocol", "400 protocol"),
    ("allowed.test", 443, "SSH-2.0-x\r\n", "protocol", "alert 40"),
    ("allowed.test", 443, GET.format("allowed.test"), "protocol", "alert 40"),
    ("allowed.test", 7000, "SSH-2.0-x\r\n", "protocol", "alert 40"),
    ("allowed.test", 7000, GET.format("allowed.test"), "protocol", "alert 40"),
    ("allowed.test", 7000, "hello evil.test", "name_mismatch", "alert 112"),
    ("allowed.test", 7000, "hello ", "no_name", "alert 109"),
    ("other.test", 443, "SSH-2.0-x\r\n", "protocol", "alert 40"),
    ("other.test", 443, GET.format("other.test"), "protocol", "alert 40"),
    ("other.test", 80, "SSH-2.0-x\r\n", "protocol", "400 protocol"),
    ("other.test", 80, "hello other.test", "protocol", "400 protocol"),
    ("other.test", 7000, "SSH-2.0-x\r\n", "ok SSH-2.0-x\r\n"),
    ("other.test", 7000, "hello evil.test", "name_mismatch", "alert 112"),
    ("other.test", 7000, GET.format("evil.test"), "name_mismatch",
     "403 name_mismatch"),
]


def test_protocols(case):
    """T11, T1: what is not spoken there, or is about another host, is not sent."""
    world(case).forget()
    rows = []
    for host, port, say, *want in SPOKEN:
        for door in "connect", "socks", "sni":
            rows.append(row("T11", door, host, want[0] if len(want) > 1 else "rule",
                            want[-1], port=port, say=say, via=host, opened=True,
                            dialled=True, wait=host == "talk.test",
                            half=len(want) == 1))
    run_rows(case, rows, PROTOCOLS).check()
    check(not any("evil" in text for text in world(case).heard()))


# -- how much -------------------------------------------------------------------


def sent_since(case, began, host):
    """Bytes of the client's that were seen outside: those that TCP sent again
    are counted once."""
    flows = {}
    for line in case.lab.packets(f"tcp and dst host {host}", "-tt", "-S"):
        got = re.match(r"(\S+) IP (\S+) > (\S+): .* seq (\d+):(\d+),", line)
        if got and float(got[1]) > began:
            flows.setdefault(got.group(2, 3), []).append((int(got[4]), int(got[5])))
    total = 0
    for pieces in flows.values():
        end = 0
        for first, last in sorted(pieces):
            total += max(0, last - max(first, end))
            end = max(end, last)
    return total


def test_upload_to_an_allowed_host(case):
    """N15: what an allowed host may be told is recorded, and has an end. The
    budget is one, whatever the door."""
    world(case).forget()
    began = time.time()
    rows = [row("N15", door, "web.test", None, "", path="/upload", via="web.test",
                method="POST", body=8000, fields="Content-Length: 8000\r\n", **how)
            for door, how in WAYS.items() for _ in range(2)]
    tried = run_rows(case, rows, "allow: [{host: web.test, upload: 20 kB}]\n")
    got = [r["got"] for r in tried.rows]
    check(got[:2] == ["ok POST /upload HTTP/1.1"] * 2 and not any(
        g.startswith("ok") for g in got[2:]), got)
    check(got[-1] == "socks 2" and "403 limit_bytes" in got[3:], got)
    cut = [r for r in tried.records if r.get("status_code") == "limit_bytes"]
    check({r["unmapped"]["door"] for r in cut} == {"transparent", "connect",
                                               "socks"}, cut)
    told = sum(r["traffic"]["bytes_out"] for r in tried.records
               if r.get("unmapped", {}).get("event") == "flow_close")
    sent = sent_since(case, began, WEB)
    check(16000 < sent <= told <= 20000, (sent, told))
    check("limit_bytes" in tried.run.err, tried.run)
