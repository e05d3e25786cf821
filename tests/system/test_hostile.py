# SPDX-License-Identifier: Apache-2.0
"""Whatever a sandbox writes into a name, a path, a method or a header, at each
door: one record of it, on one line, escaped and of bounded length, in a log that
verifies."""
import re
import subprocess

from harness import check, silent
from attack_lab import COMMON
from evidence_lab import sallyport, whole

ODD = [b"\r\nX: y", b"\n{\"class_uid\":1}\n", b"\x1b]0;owned\x07\x1b[2J", b"\xc2\x9b31m", b"\x9b2J",
       b'","x":"', b"'`$(reboot)", b"\\u0000\\", b"\xff\xfe\xc0\x80", b"\xed\xa0\x80",
       b"\xf4\x90\x80\x80\xe2", b"\xe2\x80\xaemoc.live", b"\xe2\x81\xa6", b"\x00", b"\x7f\x01", b"%s%n"]
BIG = 70000

# A line for each try: what, and the port that its record has.
TRIES = COMMON + """
import itertools
own = itertools.count(20000)  # that no other socket gets
def report(what, s):
    print("try", what, s.getsockname()[1], flush=True)
def tcp_try(what, where, *data):
    s = socket.create_connection(where, 30, ("", next(own))); s.settimeout(5)
    report(what, s)
    try:
        for d in data: s.sendall(d)
        s.shutdown(socket.SHUT_WR)
        rest(s)
    except OSError: pass
    s.close()
def dns_try(what, data):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)
    s.bind(("", next(own)))
    s.connect((GW, 53))
    report(what, s)
    s.send(data)
    try: s.recv(4096)
    except OSError: pass
def every(n, o, what):
    gw = (GW, PORT)
    tcp_try("connect " + what, gw, b"CONNECT " + n + b":443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    tcp_try("http " + what, gw, b"GET http://" + n + b"/ HTTP/1.1\\r\\nHost: " + n + b"\\r\\n\\r\\n")
    tcp_try("path " + what, gw, b"GET http://allowed.test/" + o + b" HTTP/1.1\\r\\n"
            b"Host: allowed.test\\r\\nConnection: close\\r\\n\\r\\n")
    tcp_try("method " + what, gw, b"M" + o + b" http://allowed.test/ HTTP/1.1\\r\\n"
            b"Host: allowed.test\\r\\nConnection: close\\r\\n\\r\\n")
    tcp_try("header " + what, gw, b"GET http://allowed.test/ HTTP/1.1\\r\\nHost: allowed.test\\r\\n"
            b"Connection: close\\r\\nX: " + o + b"\\r\\n\\r\\n")
    tcp_try("field " + what, gw, b"GET http://allowed.test/ HTTP/1.1\\r\\nHost: allowed.test\\r\\n"
            b"Connection: close\\r\\nX" + o + b": y\\r\\n\\r\\n")
    tcp_try("host " + what, ADDRESS + (80,), b"GET / HTTP/1.1\\r\\nHost: " + n +
            b"\\r\\nConnection: close\\r\\n\\r\\n")
    if len(n) < 16000:
        tcp_try("sni " + what, ADDRESS + (443,), record(client_hello(sni(n))))
    if len(n) < 256:
        tcp_try("socks " + what, gw, b"\\5\\1\\0", b"\\5\\1\\0\\3" + bytes([len(n)]) + n + b"\\1\\xbb")
    if len(n) < 64:
        dns_try("dns " + what, query(name(n)))
ADDRESS = (socket.gethostbyname("allowed.test"),)
"""


def verdicts(run, ports):
    """Of each try: what the log has of it."""
    found = {}
    for r in run.records:
        if r["unmapped"]["event"] in ("dns_query", "flow_open", "http_request"):
            found.setdefault(r["src_endpoint"]["port"], []).append(r)
    return {what: found.get(port, []) for what, port in ports.items()}


def one_line_each(case, run):
    """What every log is, whoever wrote into it."""
    records, _ = whole(case, run.log)
    with open(run.log + "/audit.jsonl", "rb") as f:
        data = f.read()
    for line in data.split(b"\n"):
        check(len(line) < 65000, len(line))
        text = line.decode("utf-8")  # which it has to be
        bad = re.findall("[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u202a-\\u202e"
                         "\\u2066-\\u2069\\ufeff]", text)
        check(not bad, (bad, text))
    check(all("x" not in r and r["class_uid"] > 1000 for r in records))
    done = sallyport(case, "verify", run.log)
    check(done.returncode == 0 and done.stdout.startswith("holds"), done)


def tries(case, code):
    run = case.run("python3", "-c", TRIES + code, allow=("allowed.test",),
                   timeout=200)
    check(run.status == 0, run)
    ports = {}
    for line in run.out.splitlines():
        what, port = line[4:].rsplit(" ", 1)
        check(int(port) not in ports.values(), (line, "a port twice"))
        ports[what] = int(port)
    return run, verdicts(run, ports)


def test_each_text_at_each_door(case):
    run, said = tries(case, f"""
for i, o in enumerate({ODD!r}):
    every(b"evil" + o + b".test", o, str(i))
""")
    check(len(said) == 10 * len(ODD), len(said))
    for what, records in said.items():
        door = what.split()[0]
        check(len(records) == 1, (what, [r["message"] for r in records]))
        if door not in ("path", "method", "header", "field"):
            check(records[-1]["action_id"] == 2, (what, records))
    one_line_each(case, run)
    for line in run.err.splitlines():
        check(line.isprintable() and line.isascii(), line)


def test_longer_than_a_line(case):
    run, said = tries(case, f"""
for size in 255, 4000, 16000, {BIG}:
    for o in b"a", b"\\x01", b"\\xff", b'"':
        every(b"evil" + o * size, o * size, "%d-%s" % (size, o.hex()))
""")
    check(len(said) > 100, len(said))
    for what, records in said.items():
        check(len(records) == 1, (what, [r["message"][:80] for r in records]))
    longest = max(len(line) for line in open(run.log + "/audit.jsonl", "rb"))
    check(longest > 8000, longest)  # they were not all cut to nothing
    one_line_each(case, run)
    shown = subprocess.run([case.binary, "log", run.log], text=True, timeout=60,
                           capture_output=True)
    check(shown.returncode == 0 and all(line.isascii() and line.isprintable()
                                        for line in shown.stdout.splitlines()), shown)
    silent(case)


def test_names_of_ours(case):
    """The session's name, the command and the rules are texts of others, too."""
    name = b'n\n\x1b[31m\xff"\xe2\x80\xae'.decode("utf-8", "surrogateescape")
    run = case.run("true", args=("--name", name))
    if run.status == 0:
        one_line_each(case, run)
    else:
        check(run.status == 125 and "name" in run.err, run)
    run = case.run(case.work + "/no\n\x1b[31m\u202esuch")
    check(run.status == 127, run)
    one_line_each(case, run)
    check("/no\n\x1b[31m" in run.records[0]["unmapped"]["detail"], run.records[0])
