# SPDX-License-Identifier: Apache-2.0
"""Attacks on what a session leaves: what is done and undone before anybody
looks, names that want to be more than text, a directory that others own."""
import html.parser
import json
import os
import subprocess
import threading

from harness import USER, check
from test_tamper import Session, receipt_of

# Done and undone by one process: a millisecond or less lies between.
MOMENTS = [
    ("sandbox", "ip", ["addr add 10.9.8.7/24 dev eth0",
                       "addr del 10.9.8.7/24 dev eth0"], "10.9.8.7"),
    ("gateway", "ip", ["addr add 10.9.8.7/24 dev sp0",
                       "addr del 10.9.8.7/24 dev sp0"], "10.9.8.7"),
    ("sandbox", "ip", ["link add exit0 type veth peer name exit1",
                       "link del exit0"], "exit"),
    ("gateway", "ip", ["rule add from all table 99",
                       "rule del from all table 99"], "table 99"),
    ("sandbox", "ip", ["route add 10.9.8.0/24 dev eth0",
                       "route del 10.9.8.0/24 dev eth0"], "10.9.8.0/24"),
    ("gateway", "sysctl", ["net.ipv4.ip_forward=1", "net.ipv4.ip_forward=0"],
     "forwarding"),
]


def test_for_a_moment(case):
    """Who had a second way out for a moment had one."""
    for where, tool, steps, word in MOMENTS:
        session = Session(case)
        if tool == "ip":
            session.tool(where, "sh", "-c", "printf '%s\\n' \"$@\" | ip -b -",
                         "sh", *steps)
        else:
            session.tool(where, "sysctl", "-qw", *steps)
        session.ended(f"in the {where}'s namespace", word)


HOSTILE = r"""
import socket, os, sys
gate = None
for line in open("/etc/resolv.conf"):
    if line.startswith("nameserver"): gate = line.split()[1]
BAD = [b"<img src=x onerror=alert(1)>", b"\x1b]0;owned\x07\x1b[2J",
       "\u202egpj.exe\u2066".encode(), b"a\r\nX: y", b'","verdict":"allowed',
       b"=HYPERLINK(1)", b"|a|b|", b"`x` [a](javascript:1)", b"</script><marquee>",
       b"\xff\xfe\x80", b"a" * 70000, b"%00%0a", b"&lt;img&gt;", b"\x00x",
       "\u2028\u2029\ufeff\u200b".encode(), b"\x9b31m"]
def send(port, data):
    s = socket.socket(); s.settimeout(3)
    try:
        s.connect((gate, port)); s.sendall(data)
        while s.recv(4096): pass
    except OSError: pass
    s.close()
proxy = 3128
for name in ("http_proxy", "HTTP_PROXY"):
    if name in os.environ:
        proxy = int(os.environ[name].rstrip("/").rsplit(":", 1)[1])
for b in BAD:
    send(proxy, b"CONNECT " + b + b":443 HTTP/1.1\r\nHost: " + b + b"\r\n\r\n")
    send(proxy, b"GET http://allowed.test/" + b.replace(b" ", b"+")
         + b" HTTP/1.1\r\nHost: allowed.test\r\nX-A: " + b + b"\r\n\r\n")
    send(proxy, b + b" http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
    send(proxy, b"\5\1\0\5\1\0\3" + bytes([len(b[:255])]) + b[:255] + b"\1\xbb")
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(1)
    label = b[:60]
    u.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0" + bytes([len(label)]) + label
             + b"\4test\0\0\1\0\1", (gate, 53))
    try: u.recv(4096)
    except OSError: pass
    u.close()
"""

FORBIDDEN = [b"\x1b", b"\x07", "\u202e".encode(), "\u2066".encode(), b"\r",
             "\u2028".encode(), b"\x9b3", b"\xff"]


class Tags(html.parser.HTMLParser):
    """The elements of a page, and what they do by themselves."""

    def __init__(self):
        super().__init__()
        self.found, self.handlers = set(), []

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)
        self.handlers += [a for a in attrs if a[0].startswith("on")
                          or "javascript:" in (a[1] or "")]


def ours(case, *argv):
    """Another command of ours, as who ran the session."""
    return subprocess.run([*case.drop(), case.binary, *argv], timeout=120,
                          cwd=case.work, capture_output=True,
                          stdin=subprocess.DEVNULL, env=case.env(),
                          check=False)


def verified(case, log, status=0):
    done = ours(case, "verify", "--json", log)
    check(done.returncode == status, (done.stdout, done.stderr))
    return json.loads(done.stdout)


def test_hostile_names(case):
    """They are text in whatever is made of them."""
    run = case.python(HOSTILE, args=("--name", "<marquee>n"))
    check(len(run.records) > 30, run)
    verified(case, run.log)
    for kind in "html", "md", "csv", "json":
        done = ours(case, "report", "--format", kind, run.log)
        check(done.returncode == 0, done)
        done.stdout.decode()  # UTF-8
        for bad in FORBIDDEN:
            check(bad not in done.stdout.replace(b"\r\n", b"\n")
                  if kind == "csv" else bad not in done.stdout, (kind, bad))
        if kind == "html":
            tags = Tags()
            tags.feed(done.stdout.decode())
            check(not tags.found & {"img", "script", "iframe", "marquee"}, tags.found)
            check(not tags.handlers, tags.handlers)
        if kind == "csv":
            check(b"\n=" not in done.stdout and b",=" not in done.stdout
                  and b'"=' not in done.stdout, done.stdout)
        if kind == "json":
            json.loads(done.stdout)
    done = ours(case, "log", run.log)
    check(done.returncode == 0, done)
    for bad in FORBIDDEN:
        check(bad not in done.stdout, (bad, done.stdout))
    for bad in FORBIDDEN:
        check(bad not in run.err.encode(), (bad, run.err))


MANY = r"""
import socket
gate = [l.split()[1] for l in open("/etc/resolv.conf")
        if l.startswith("nameserver")][0]
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(5)
for i in range(3000):
    name = b"n%05d" % i
    u.sendto(i.to_bytes(2, "big") + b"\1\0\0\1\0\0\0\0\0\0"
             + bytes([len(name)]) + name + b"\6hidden\4test\0\0\1\0\1",
             (gate, 53))
    try: u.recv(4096)
    except OSError: pass
for i in range(600):
    u.sendto(b"x", ("8.8.%d.%d" % (i // 250, i % 250), 1000 + i))
"""


def test_many(case):
    """More hosts and packets than any table has rows: all of it is counted."""
    run = case.python(MANY, timeout=180)
    check(run.status == 0, run)
    verified(case, run.log)
    said = receipt_of(run.log)
    refused = sum(1 for r in run.records
                  if r["unmapped"]["event"] == "dns_query"
                  and r["action_id"] == 2)
    check(said["verdicts"]["refused"] == refused > 100,
          (said["verdicts"], refused))
    packets = said["packets"]
    counted = sum(packets["counted"].values())
    check(packets["recorded"] + packets["unreported"] == counted >= 600, packets)
    check(said["findings_total"] == 0, said["findings"])


def test_a_place_that_others_own(case):
    """Somebody who may write to the directory of the log can lose us the log;
    he can't have it pass for whole, nor turn what we write elsewhere."""
    victim = case.work + "/victim"
    with open(victim, "w") as f:
        f.write("untouched")
    process, log = case.start("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do "
                              "curl -s https://allowed.test/; sleep .2; done")
    end = threading.Event()
    os.chmod(log, 0o777)

    def turn():
        """In the place of each file that comes: a link to another."""
        while not end.wait(0.001):
            for name in "audit.jsonl", "receipt.dsse.json.new", "checkpoints":
                path = f"{log}/{name}"
                try:
                    if not os.path.islink(path):
                        os.rename(path, path + ".theirs")
                        os.symlink(victim, path)
                except OSError:
                    pass

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        process.communicate(timeout=60)
    finally:
        end.set()
        thread.join()
    with open(victim) as f:
        check(f.read() == "untouched")
    done = ours(case, "verify", log)
    check(done.returncode == 1, (done.stdout, done.stderr))
