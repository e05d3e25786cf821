# SPDX-License-Identifier: Apache-2.0
"""`dns.answers: real`: the addresses that a name has, and nobody else's."""

from harness import check, silent
from lab import CDN, GOOD
from policy_rows import write_policy
from policy_world import WEB, world

# -- dns ------------------------------------------------------------------------

REAL = """
dns: { answers: real }
allow: [allowed.test, cdn.test, evilcdn.test, private.test,
        { host: web.test, ports: [80, 7000] }, { host: rec.test, ports: [80, 7000] }]
"""


def real(case, code, policy=REAL):
    run = case.python(REAL_CODE + code, allow=(),
                      args=("--policy", write_policy(case, policy)), proxy=False)
    check(run.status == 0, run)
    return run


REAL_CODE = r"""
import socket, ssl, sys
context = ssl.create_default_context()
context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
def ask(name):
    try: return socket.gethostbyname(name)
    except OSError: return "none"
def said(name):
    return f"GET /host HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode()
def get(address, name, port=443):
    try:
        s = socket.create_connection((address, port), 30)
        if port == 443: s = context.wrap_socket(s, server_hostname=name)
        s.sendall(said(name))
        got = b""
        while d := s.recv(9999): got += d
        return got.split(b" ")[1].decode() + " " + got.split(b"\r\n\r\n")[1].decode().strip()[:60]
    except OSError as e: return type(e).__name__
def raw(address, port, text):
    try:
        s = socket.create_connection((address, port), 30); s.sendall(text)
        return "got " + s.recv(99).decode()[:12]
    except OSError as e: return type(e).__name__
"""


def test_real_answers(case):
    run = real(case, f"""
print(get("{GOOD}", "allowed.test"))  # nobody asked for it yet
print(ask("allowed.test"), get("{GOOD}", "allowed.test"), get("{GOOD}", "allowed.test", 80))
print(ask("private.test"), ask("evil.test"))
print(get("{GOOD}", "other.test"), get("{CDN}", "cdn.test"))
print(raw("{GOOD}", 22, b"x"), raw("{GOOD}", 7000, b"x"))
""")
    check(run.out.splitlines() == [
        "ConnectionRefusedError", f"{GOOD} 200 allowed.test 200 allowed.test",
        "none none", "SSLError ConnectionRefusedError",
        "ConnectionRefusedError ConnectionRefusedError"], run)
    for reason, host in (("name_mismatch", "allowed.test"), ("not_in_policy", "evil.test"),
                         ("forbidden_address", "private.test"), ("bypass", None)):
        check(run.denied(reason, host), f"{reason}: {run.records}")
    silent(case)


def test_real_shared_address(case):
    """D22: two names, one address: what was opened for one is not the other's."""
    world(case)
    run = real(case, f"""
print(ask("cdn.test"), get("{CDN}", "cdn.test"), get("{CDN}", "evilcdn.test"))
print(get("{CDN}", "cdn.test", 80)[:3], get("{CDN}", "evilcdn.test", 80)[:3])
print(ask("evilcdn.test"), get("{CDN}", "cdn.test"), get("{CDN}", "evilcdn.test"))
print(get("{CDN}", "cdn.test", 80), get("{CDN}", "evilcdn.test", 80))
print(get("{CDN}", "allowed.test"), get("{CDN}", "allowed.test", 80)[:3])
print(raw("{CDN}", 443, b"SSH-2.0-x\\r\\n"), raw("{CDN}", 80, b"\\0\\1\\2\\3"))
print(ask("web.test"), raw("{WEB}", 7000, said("web.test:7000")))
print(ask("rec.test"), raw("{WEB}", 7000, said("web.test:7000")), raw("{WEB}", 7000, b"SSH-2.0-x\\r\\n"))
""")
    lines = run.out.splitlines()
    check(lines[0] == f"{CDN} 200 cdn.test SSLError" and lines[1] == "200 403"
          and lines[2] == f"{CDN} 200 cdn.test 200 evilcdn.test"
          and lines[3] == "200 cdn.test 200 evilcdn.test"
          and lines[4] == "SSLError 403", run)
    for got in lines[5].split(" "):
        check(got in ("got", "ConnectionResetError", "\x15\x03\x03"), run)
    check("200" not in lines[5], run)
    check(lines[6].startswith(f"{WEB} got HTTP/1.1 200"), run)
    check(lines[7].startswith(f"{WEB} got HTTP/1.1 200"), run)
    check("hello" not in lines[7] and (run.denied("no_name") or run.denied("protocol")),
          run.records)


def test_real_denied_neighbour(case):
    """D22: the other name of the address is denied: it stays so."""
    run = real(case, f"""
print(ask("cdn.test"), ask("evilcdn.test"), get("{CDN}", "cdn.test"),
      get("{CDN}", "evilcdn.test"), get("{CDN}", "evilcdn.test", 80)[:3])
""", "dns: {answers: real}\nallow: [cdn.test]\n")
    check(run.out.strip() == f"{CDN} none 200 cdn.test SSLError 403", run)
    check(len(run.denied("name_mismatch")) == 2, run.records)
