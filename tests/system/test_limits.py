# SPDX-License-Identifier: Apache-2.0
"""How much a sandbox may: names, questions, connections. What it has used up
stays so when its gate dies."""
import json
import os
import signal
import subprocess
import time

from harness import check
from limits_lab import fetch, policy, said

# Sends the same thing @count times, then once more after a while.
ASK = """
import socket, struct, time
def ask(s, i, name):
    q = struct.pack(">6H", i, 0x100, 1, 0, 0, 0)
    for label in name.split("."): q += bytes([len(label)]) + label.encode()
    s.send(q + b"\\0" + struct.pack(">2H", 1, 1))
def rcodes(s, count):
    got = {{}}; s.settimeout(30)
    while len(got) < count:
        try: d = s.recv(4096)
        except OSError: break
        got[struct.unpack(">H", d[:2])[0]] = d[3] & 15
    return got
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("198.19.0.1", 53))
began = time.monotonic()
for i in range({count}): ask(s, i, "allowed.test")
got = rcodes(s, {count})  # each is answered, in the order in which they came
spent = time.monotonic() - began
ok = sum(1 for r in got.values() if r == 0)
print(ok, len(got), spent)
time.sleep(1.2)
ask(s, 60000, "allowed.test")
print("again", rcodes(s, 1))
"""


def test_names(case):
    hosts = ["allowed", "other", "six", "both", "alias", "cdn"]
    args = policy(case, "limits: {names: 4}\nallow: ["
                  + ", ".join(h + ".test" for h in hosts) + "]\n")
    run = case.python("import socket\nfor h in %r:\n"
                      "    try: print(h, socket.gethostbyname(h + '.test'))\n"
                      "    except OSError: print(h, 'refused')\n" %
                      (hosts + hosts[:1],), allow=(), args=args)
    check(run.out.count("198.18.0.") == 5 and run.out.count("refused") == 2, run)
    check(run.out.startswith("allowed 198.18.0.1"), run)
    said(run, "limit_names")
    # By the proxy they are the same names.
    run = case.run("curl", "-s", "-m", "50", *(f"http://{h}.test/" for h in hosts),
                   allow=(), args=args)
    check(run.out.count("hello") == 4 and run.denied("limit_names", "cdn.test"), run)


def test_names_per_wildcard(case):
    args = policy(case, "limits: {names_per_wildcard: 2}\n"
                  "allow: ['*.tunnel.test', '*.wild.test']\n")
    run = case.python("import socket\nfor h in ('a.tunnel', 'b.tunnel', 'c.tunnel', "
                      "'www.wild', 'a.tunnel'):\n"
                      "    try: socket.gethostbyname(h + '.test'); print('yes')\n"
                      "    except OSError: print('no')\n", allow=(), args=args)
    check(run.out.split() == ["yes", "yes", "no", "yes", "yes"], run)
    check(run.denied("limit_names", "c.tunnel.test"), run)


def test_names_survive_the_gate(case):
    args = policy(case, "limits: {names: 2}\nallow: ['*.tunnel.test']\n")
    process, log = case.start("python3", "-c", """
import socket, sys, time
def name(h):
    for i in range(100):
        try: return socket.gethostbyname(h)
        except socket.gaierror as e:
            if e.errno != socket.EAI_AGAIN: return "no"
            time.sleep(0.1)
print(name("a.tunnel.test"), name("b.tunnel.test"), flush=True)
sys.stdin.readline()
print(name("c.tunnel.test"), name("a.tunnel.test"))
""", allow=(), args=args, stdin=subprocess.PIPE)
    check(process.stdout.readline() == "198.18.0.1 198.18.0.2\n")
    case.kill(process, "gate")
    out, err = process.communicate("go\n", timeout=60)
    check(out == "no 198.18.0.1\n" and "limit_names" in err, (out, err))


def test_dns_per_second(case):
    args = policy(case, "limits: {dns_per_second: 20}\nallow: [allowed.test]\n")
    run = case.python(ASK.format(count=150), allow=(), args=args)
    ok, answers, spent = run.out.splitlines()[0].split()
    # One second's worth at once, then what a second brings.
    check(20 <= int(ok) <= 20 + 20 * (float(spent) + 1) and int(ok) <= int(answers),
          run)
    check("again {60000: 0}" in run.out, run)
    said(run, "limit_rate")
    run = case.python(ASK.format(count=150), allow=("allowed.test",))
    check(run.out.startswith("150 150 "), run)


CONNECT = """
import concurrent.futures, socket, sys, time
def one(door):
    try:
        if door == "direct":
            s = socket.create_connection(("allowed.test", 7000), 60)
            s.sendall(b"\\0 200 ")
        else:
            s = socket.create_connection(("198.19.0.1", 3128), 60)
            s.sendall(b"CONNECT allowed.test:443 HTTP/1.1\\r\\nHost: allowed.test:443\\r\\n\\r\\n")
        got = s.recv(100)
        s.close()
        return b" 200 " in got
    except OSError:
        return False
door = sys.argv[1]
socket.gethostbyname("allowed.test")
began = time.monotonic()
# At once: one after the other they may be no more than a second brings.
with concurrent.futures.ThreadPoolExecutor(60) as pool: n = sum(pool.map(one, [door] * 60))
print(n, time.monotonic() - began, flush=True)
time.sleep(1.2)
print("again", one(door))
"""


def test_connections_per_second(case):
    args = policy(case, "limits: {connections_per_second: 10}\nallow:\n"
                  "  - {host: allowed.test, ports: [443, 7000], protocol: any}\n")
    for door in "proxy", "direct":
        run = case.run("python3", "-c", CONNECT, door, allow=(), args=args)
        n, spent = run.out.splitlines()[0].split()
        check(10 <= int(n) <= 11 + 10 * float(spent) and int(n) < 60, run)
        check("again True" in run.out, run)
        said(run, "limit_rate")


def test_rates_survive_the_gate(case):
    """A gate that is killed and comes back has no new tokens to give."""
    args = policy(case, "limits: {connections_per_second: 1}\n"
                  "allow: [allowed.test]\n")
    process, _ = case.start("python3", "-c", """
import socket, sys, time
def status():
    while True:
        try:
            s = socket.create_connection(("198.19.0.1", 3128), 5)
            s.sendall(b"CONNECT allowed.test:443 HTTP/1.1\\r\\nHost: allowed.test:443\\r\\n\\r\\n")
            got = s.recv(100)
            if got: return got.split()[1].decode()
        except OSError: pass
        time.sleep(0.01)
while status() == "200": pass
print("empty", flush=True)
while sys.stdin.readline() != "go\\n":
    status()
    print("serves", flush=True)
began = time.monotonic()
n = 0
while time.monotonic() - began < 3 or not n: n += status() == "200"
print(n)
""", allow=(), args=args, stdin=subprocess.PIPE)
    check(process.stdout.readline() == "empty\n")
    for _ in range(2):
        case.kill(process, "gate")
        process.stdin.write("\n")
        process.stdin.flush()
        check(process.stdout.readline() == "serves\n")
    out, err = process.communicate("go\n", timeout=60)
    check(1 <= int(out) <= 5, (out, err))


# --- bytes ---------------------------------------------------------------------


def test_without_limits(case):
    run, got = fetch(case, "http://allowed.test/mid", "https://allowed.test/mid",
                     text="allow: [allowed.test]\n")
    check(got == [8 << 20, 8 << 20] and not run.denied(), run)


# What a sandbox may do without waiting, begun before the ledger stands still and
# gone on with after it: each is answered in the end.
STALLED = """
import select, socket, struct, sys, threading, time
PROXY = ("198.19.0.1", 3128)
def connect(): return socket.create_connection(PROXY, 60)
def question(i):
    name = b"".join(bytes([len(l)]) + l for l in (b"n%d" % i, b"evil", b"test"))
    return struct.pack(">6H", i, 0x100, 1, 0, 0, 0) + name + b"\\0" + struct.pack(">2H", 1, 1)
TUNNEL = b"CONNECT evil.test:443 HTTP/1.1\\r\\nHost: evil.test:443\\r\\n\\r\\n"
PLAIN = b"GET http://evil.test/ HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n"
KEPT = b"GET http://allowed.test/host HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n"
kept = [connect() for i in range(400)]
for s in kept:
    s.sendall(KEPT)
    while not s.recv(4096).endswith(b"allowed.test\\n"): pass
# The last ones: who says nothing for ten seconds is cut.
silent = [connect() for i in range(4500)]
print("go", flush=True)
sys.stdin.readline()
def flood():
    for i in range(1500):
        s = connect()
        s.sendall(TUNNEL)
        count("refused", s.recv(4096).startswith(b"HTTP/1.1 403"))
        s.close()
total, lock = dict(refused=0, plain=0, udp=0, tcp=0), threading.Lock()
def count(what, n):
    with lock: total[what] += n
def ask():
    for i in range(1500):
        with socket.create_connection(("198.19.0.1", 53), 60) as s:
            q = question(i)
            s.sendall(struct.pack(">H", len(q)) + q)
            count("tcp", len(s.recv(4096)) > 2)
def ask_udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("198.19.0.1", 53)); s.settimeout(0.5)
    for i in range(3000):
        answered = False
        while not answered:  # what is not read is asked again
            s.send(question(i + 5000))
            try:
                while s.recv(4096)[:2] != struct.pack(">H", i + 5000): pass
                answered = True
            except OSError: pass
        count("udp", 1)
threads = [threading.Thread(target=f) for f in (flood, flood, flood, ask, ask, ask_udp)]
for s in silent: s.sendall(TUNNEL)
for s in kept: s.sendall(PLAIN)
for t in threads: t.start()
for i in range(4000):
    try: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("203.0.113.9", 1000 + i % 500))
    except OSError: pass
    if i % 100 == 0: time.sleep(0.05)
for s in silent: count("refused", s.recv(4096).startswith(b"HTTP/1.1 403"))
for s in kept: count("plain", s.recv(4096).startswith(b"HTTP/1.1 403"))
for t in threads: t.join()
print(total["refused"], total["plain"], total["tcp"], total["udp"])
"""


def test_a_slow_ledger_loses_nothing(case):
    """More refusals by each door than anybody keeps for a ledger that stands
    still: clients wait instead, and each refusal has its record."""
    text = ("limits: {connections: 60000, connections_per_second: 100000, "
            "dns_per_second: 100000}\nallow: [allowed.test]\n")
    process, log = case.start("python3", "-c", STALLED, allow=(),
                              args=policy(case, text), stdin=subprocess.PIPE)
    check(process.stdout.readline() == "go\n", process)
    ledger = case.child(process, "ledger")
    gate = case.child(process, "gate")
    os.kill(ledger, signal.SIGSTOP)
    process.stdin.write("\n")
    process.stdin.flush()
    time.sleep(5)
    os.kill(ledger, signal.SIGCONT)
    check(gate == case.child(process, "gate"))
    out, err = process.communicate(timeout=400)
    refused, plain, tcp, udp = map(int, out.split())
    check((refused, plain, tcp, udp) == (9000, 400, 3000, 3000), (out, err))
    with open(log + "/audit.jsonl") as f:
        records = [json.loads(line) for line in f]

    def told(event, **unmapped):
        return sum(r.get("count", 1) for r in records
                   if r["unmapped"]["event"] == event
                   and r.get("status_code") == "not_in_policy"
                   and all(r["unmapped"].get(k) == v for k, v in unmapped.items()))
    lost = [r["message"] for r in records if r["class_uid"] == 2004]
    check(told("flow_open") == refused and told("http_request") == plain,
          (told("flow_open"), told("http_request"), out))
    check(told("dns_query", protocol="tcp") == tcp
          and told("dns_query", protocol="udp") >= udp, (out, lost))
    packets = sum(r.get("count", 1) for r in records
                  if r["unmapped"]["event"] == "packet")
    check(packets >= 4000 and not lost, (packets, lost, err))
