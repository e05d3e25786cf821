# SPDX-License-Identifier: Apache-2.0
"""Attacks from inside by mere number, and faults of the gate's surroundings
at the wrong moment."""
import json
import os
import resource
import signal
import subprocess
import time

from attack_lab import attack, COMMON, status
from harness import check, silent
from lab import sh


# -- leases and packets -----------------------------------------------------


def test_packet_flood_is_counted(case):
    """No dropped packet is missing from the log's counts, kinds beyond the table
    included; the gate serves on meanwhile."""
    run = attack(case, r"""
import subprocess
n = 0
s = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(8)]
end = time.time() + 2
while time.time() < end:
    for i in range(500):
        try: s[i % 8].sendto(b"x" * 100, ("8.8.%d.%d" % (i % 200, n // 500 % 200), 1 + (n + i) % 60000))
        except OSError: pass
    n += 500
print("sent", n)
print(subprocess.run(["curl", "-s", "-m", "30", "https://allowed.test/"], capture_output=True).stdout)
time.sleep(1.3)
""")
    check("hello" in run.out, run)
    sent = int(run.out.split("sent ")[1].split()[0])
    bypass = run.denied("bypass")
    counted = sum(r.get("count", 1) for r in bypass)
    print(f"       flood: {sent} sent, {counted} counted, {len(bypass)} records")
    check(len(bypass) < 2000 and counted > 0, (len(bypass), counted))
    check(counted >= sent * 0.9 or "lost" in json.dumps(bypass) or
          "more than" in json.dumps(bypass), (sent, counted, len(bypass)))
    silent(case)


# -- exhaustion -------------------------------------------------------------


def test_connection_flood(case):
    """600 connections, each with 30 kB of a head that never ends: a bounded
    gate, the rest refused and recorded, and afterwards all is as before."""
    process, log = case.start("python3", "-c", COMMON + r"""
import subprocess, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, min(4000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
a = socket.gethostbyname("allowed.test")
print("before", flush=True); sys.stdin.readline()
held = []
for i in range(600):
    try:
        s = socket.socket(); s.settimeout(3); s.connect([(GW, PORT), (a, 80), (a, 7000)][i % 3])
        s.setblocking(False)
        try: s.send(b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n" + (b"X: " + b"y" * 1000 + b"\r\n") * 12)
        except OSError: pass
        held.append(s)
    except OSError: pass
print("held", len(held), flush=True); sys.stdin.readline()
[s.close() for s in held]
for i in range(300):
    r = subprocess.run(["curl", "-s", "-m", "3", "https://allowed.test/"], capture_output=True)
    if b"hello" in r.stdout: print("back", flush=True); break
    time.sleep(0.1)
else: print("gone", flush=True)
sys.stdin.readline()
""", allow=("allowed.test", "allowed.test:7000"), stdin=subprocess.PIPE)

    def go():
        process.stdin.write("\n")
        process.stdin.flush()

    try:
        check(process.stdout.readline() == "before\n")
        gate = case.child(process, "gate")
        before = int(status(gate)["VmRSS"])
        go()
        line = process.stdout.readline()
        for _ in range(300):  # the gate takes them one at a time
            with open(log + "/audit.jsonl") as f:
                if "limit_connections" in f.read():
                    break
            time.sleep(0.1)
        during = int(status(gate)["VmRSS"])
        fds = len(os.listdir(f"/proc/{gate}/fd"))
        go()
        check(process.stdout.readline() == "back\n", line)
        check(case.child(process, "gate") == gate, "the gate died")
        for _ in range(150):  # refused ones linger a little
            after = len(os.listdir(f"/proc/{gate}/fd"))
            if after < 100:
                break
            time.sleep(0.2)
        print(f"       gate: {before} kB, {during} kB with {fds} fds, then {after}")
        check(during - before < 100000 and fds < 2000 and after < 100,
              (before, during, fds, after))
        go()
    finally:
        process.communicate(timeout=60)
    with open(log + "/audit.jsonl") as f:
        check("limit_connections" in f.read(), log)


def test_memory_does_not_grow(case):
    """Thousands of refusals of each kind."""
    process, _ = case.start("python3", "-c", COMMON + r"""
def work(k, n):
    for i in range(n):
        x = b"r%d-%d.evil.test" % (k, i)
        udp(query(name(x)), 0.05) if i % 2 else say((GW, PORT), b"CONNECT " + x + b":443 HTTP/1.1\r\n\r\n", 0, True, 1)
        if i % 4 == 0: say((GW, PORT), os.urandom(200), 0, True, 1)
        if i % 4 == 2: say((GW, PORT), b"\5\1\0\5\1\0\3\x09evil.test\1\xbb", 0, True, 1)
def round(n):
    ts = [threading.Thread(target=work, args=(k, n)) for k in range(4)]
    [t.start() for t in ts]; [t.join() for t in ts]
round(60); print("warm", flush=True); sys.stdin.readline()
round(400); print("done", flush=True); sys.stdin.readline()
""", stdin=subprocess.PIPE)
    check(process.stdout.readline() == "warm\n")
    gate = case.child(process, "gate")
    before = int(status(gate)["VmRSS"])
    process.stdin.write("\n")
    process.stdin.flush()
    check(process.stdout.readline() == "done\n")
    after = int(status(gate)["VmRSS"])
    check(case.child(process, "gate") == gate, "the gate died")
    process.communicate("\n", timeout=60)
    print(f"       gate: {before} kB, then {after} kB")
    check(case.sanitized or after - before < 2000, (before, after))
    silent(case)


def test_out_of_descriptors(case):
    """The gate without a descriptor left refuses, lives, and recovers."""
    process, _ = case.start("python3", "-c", COMMON + r"""
import subprocess
a = socket.gethostbyname("allowed.test")
print("ready", flush=True); sys.stdin.readline()
children = []
for k in range(5):
    child = os.fork()
    if not child:
        held = []
        for i in range(30):
            try: held.append(dial((a, 7000) if i % 4 else (GW, 53), 0.2))
            except OSError: pass
        udp(query(name(b"allowed.test")), 0.3)
        os._exit(0)
    children.append(child)
[os.waitpid(c, 0) for c in children]
for i in range(150):
    r = subprocess.run(["curl", "-s", "-m", "3", "https://allowed.test/"], capture_output=True)
    if b"hello" in r.stdout: print("back", flush=True); break
    time.sleep(0.2)
else: print("gone", flush=True)
sys.stdin.readline()
""", allow=("allowed.test", "allowed.test:7000"), stdin=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    check(process.stdout.readline() == "ready\n", process.stderr)
    gate = case.child(process, "gate")
    process.stdin.write("\n")
    process.stdin.flush()
    line = process.stdout.readline()
    check(case.child(process, "gate") == gate, "the gate died")
    process.communicate("\n", timeout=60)
    check(line == "back\n", line)


def test_garbage_does_not_kill_the_gate(case):
    process, _ = case.start("python3", "-c", COMMON + r"""
import random
random.seed(7)
seeds = [hello("allowed.test"), b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
         b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test\r\n\r\n" + hello("allowed.test"),
         b"\5\1\0\5\1\0\3\x0callowed.test\1\xbb" + hello("allowed.test")]
def mutate(d):
    d = bytearray(d)
    for _ in range(random.randrange(1, 6)):
        i = random.randrange(len(d)); k = random.randrange(4)
        if k == 0: d[i] = random.randrange(256)
        elif k == 1: del d[i:i + random.randrange(1, 9)]
        elif k == 2: d[i:i] = os.urandom(random.randrange(1, 9))
        else: d[i:i] = d[max(0, i - 20):i] * random.randrange(1, 50)
        if not d: d = bytearray(b"x")
    return bytes(d)
q = query(name(b"allowed.test"), counts=(1, 0, 0, 1), tail=b"\0\0\x29\x10\0\0\0\0\0\0\0")
def work():
    end = time.time() + 4
    while time.time() < end:
        i = random.randrange(6)
        if i == 4: udp(mutate(q), 0.02)
        elif i == 5: m = mutate(q); tcp(struct.pack(">H", len(m)) + m, 0.2)
        else:
            m = mutate(seeds[i]); c = random.randrange(len(m) + 1)
            say(random.choice([(GW, PORT), ("allowed.test", 443), ("allowed.test", 80), ("allowed.test", 7000)]), [m[:c], m[c:]], 0.002, True, 0.3)
ts = [threading.Thread(target=work) for _ in range(8)]; [t.start() for t in ts]
print("began", flush=True); [t.join() for t in ts]
print("done", flush=True); sys.stdin.readline()
""", allow=("allowed.test", "allowed.test:7000"), stdin=subprocess.PIPE)
    check(process.stdout.readline() == "began\n")
    gate = case.child(process, "gate")
    check(process.stdout.readline() == "done\n")
    check(case.child(process, "gate") == gate, "the gate died")
    process.communicate("\n", timeout=60)


def test_ledger_stopped(case):
    """A ledger that takes nothing: no byte goes out, whatever the door; the gate
    stays small; when it goes on, all goes on, and what was lost is said."""
    process, log = case.start("python3", "-c", COMMON + r"""
import subprocess
print("ready", flush=True); sys.stdin.readline()
def work(k):
    for i in range(700):
        udp(query(name(b"s%d-%d.evil.test" % (k, i))), 0.001)
        if i % 20 == 0: say((GW, PORT), b"GET http://allowed.test/stopped HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 0, True, 0.1)
        if i % 20 == 1: udp(query(name(b"other.test")), 0.01)
ts = [threading.Thread(target=work, args=(k,)) for k in range(8)]; [t.start() for t in ts]; [t.join() for t in ts]
print("flooded", flush=True); sys.stdin.readline()
for i in range(150):
    r = subprocess.run(["curl", "-s", "-m", "3", "https://allowed.test/"], capture_output=True)
    if b"hello" in r.stdout: print("back", flush=True); break
    time.sleep(0.2)
else: print("gone", flush=True)
sys.stdin.readline()
""", allow=("allowed.test", "other.test"), stdin=subprocess.PIPE)
    check(process.stdout.readline() == "ready\n")
    gate, ledger = case.child(process, "gate"), case.child(process, "ledger")
    seen = len(case.lab.packets("src host 203.0.113.2"))
    before = int(status(gate)["VmRSS"])
    os.kill(ledger, signal.SIGSTOP)
    try:
        process.stdin.write("\n")
        process.stdin.flush()
        check(process.stdout.readline() == "flooded\n")
        left = case.lab.packets("src host 203.0.113.2")[seen:]
        during = int(status(gate)["VmRSS"])
    finally:
        os.kill(ledger, signal.SIGCONT)
    process.stdin.write("\n")
    process.stdin.flush()
    line = process.stdout.readline()
    process.communicate(timeout=60)
    print(f"       gate: {before} kB, then {during} kB")
    left = [p for p in left if "ARP" not in p]
    check(not left, left[:10])
    check(line == "back\n" and during - before < 60000, (line, before, during))


def test_gate_killed_within_a_transfer(case):
    """What was under way ends; the lease is good for the new gate, and only for
    its own name."""
    process, log = case.start("python3", "-c", COMMON + r"""
a = socket.gethostbyname("cdn.test")
s = dial((a, 80), 30); s.sendall(b"GET /big HTTP/1.1\r\nHost: cdn.test\r\n\r\n"); s.recv(65536)
print("ready", flush=True); sys.stdin.readline()
got = rest(s)
print("ended" if len(got) < 1 << 30 else "whole", flush=True)
for i in range(300):
    r = say((a, 80), b"GET /host HTTP/1.1\r\nHost: cdn.test\r\nConnection: close\r\n\r\n", 0)
    if b"cdn.test\n" in r: print("back"); break
    time.sleep(0.1)
print(say((a, 80), b"GET /host HTTP/1.1\r\nHost: evilcdn.test\r\nConnection: close\r\n\r\n", 0, timeout=20)[:12])
""", allow=("cdn.test",), stdin=subprocess.PIPE)
    check(process.stdout.readline() == "ready\n")
    os.kill(case.child(process, "gate"), signal.SIGKILL)
    process.stdin.write("\n")
    process.stdin.flush()
    out, err = process.communicate(timeout=120)
    check("ended" in out and "back" in out and "b'HTTP/1.1 403'" in out, (out, err))


def test_log_flood_is_bounded(case):
    """What a sandbox can make us write: refusals of the longest kind, as fast as
    it can for two seconds."""
    run = attack(case, r"""
n = [0] * 8
def work(k, what):
    end = time.time() + 2
    while time.time() < end or sum(n) < 200: say((GW, PORT), what, 0, True, 1); n[k] += 1
long = b"GET http://evil.test/" + b"x" * 15000 + b" HTTP/1.1\r\nHost: evil.test\r\n\r\n"
ts = [threading.Thread(target=work, args=(k, long if k % 2 else b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n")) for k in range(8)]
[t.start() for t in ts]; [t.join() for t in ts]
print("refused", sum(n))
""")
    refused = int(run.out.split("refused ")[1])
    size = os.path.getsize(run.log + "/audit.jsonl")
    print(f"       log: {refused} refusals, {size} bytes")
    check(refused > 100 and size < 5000 * refused, (refused, size))
    silent(case)


def test_text_of_the_sandbox_is_no_text_of_ours(case):
    """Names and targets with escapes, line ends and odd UTF-8: each record is one
    line of valid JSON, and the terminal gets none of it."""
    run = attack(case, r"""
odd = [b"\x1b[2J", b"\xc2\x9b2J", b"\x9b2J", b"a\rb", b"a\nb", b'","x":"', b"\xff\xfe", b"\xe2\x80\xaeevil", b"\xed\xa0\x80", b"\0", b"\x7f", b"\\u0000", b"\xf5\x80\x80\x80"]
for o in odd:
    n = b"evil" + o + b".test"
    udp(query(name(n)), 0.1)
    for d in (b"CONNECT " + n + b":443 HTTP/1.1\r\n\r\n", b"GET http://" + n + b"/ HTTP/1.1\r\nHost: " + n + b"\r\n\r\n",
              b"GET http://evil.test/" + o + b" HTTP/1.1\r\nHost: evil.test\r\n\r\n", o + b" / HTTP/1.1\r\n\r\n",
              b"\5\1\0\5\1\0\3" + bytes([len(n)]) + n + b"\1\xbb"):
        say((GW, PORT), d, 0, False, 0.5)
    say(("allowed.test", 443), record(client_hello(sni(n))), 0, True, 0.5)
    say(("allowed.test", 80), b"GET / HTTP/1.1\r\nHost: " + n + b"\r\n\r\n", 0, True, 0.5)
print("tried")
""")
    check("tried" in run.out and len(run.denied("malformed")) > 20, run)
    with open(run.log + "/audit.jsonl", "rb") as f:
        text = f.read()
    for line in text.decode("utf-8").splitlines():
        json.loads(line)
    for what, shown in ("log", text.decode()), ("summary", run.err):
        bad = [c for c in shown if c != "\n" and (ord(c) < 32 or
               0x7f <= ord(c) < 0xa0 or 0x202a <= ord(c) <= 0x202e)]
        check(not bad, (what, bad))
    silent(case)


# -- serve ------------------------------------------------------------------


SERVED = COMMON + r"""
T = float(sys.argv[1])
def show(w, x): print(w, x[:40])
def first(where, data, enough):  # of what may then stay open
    try:
        s = dial(where, T); s.sendall(data); got = b""
        while enough not in got and (d := s.recv(4096)): got += d
        return got
    except OSError as e: return b"[" + type(e).__name__.encode() + b"]"
p = ("203.0.113.2", 3199)
for n in b"allowed.test:443", b"uplink.test:3199", b"loop.test:3199", b"evil.test:443", b"203.0.113.2:3199", b"127.0.0.1:3199":
    show(n, first(p, b"CONNECT " + n + b" HTTP/1.1\r\nHost: " + n + b"\r\n\r\n", b"\r\n\r\n"))
show("metrics", say(p, b"GET /metrics HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 0, True, T))
show("http", say(("203.0.113.2", 8099), b"GET /host HTTP/1.1\r\nHost: cdn.test\r\nConnection: close\r\n\r\n", 0, timeout=T))
show("http evil", say(("203.0.113.2", 8099), b"GET /host HTTP/1.1\r\nHost: evilcdn.test\r\nConnection: close\r\n\r\n", 0, timeout=T))
show("http next", say(("203.0.113.2", 8099), b"GET /host HTTP/1.1\r\nHost: cdn.test\r\n\r\nGET /host HTTP/1.1\r\nHost: evilcdn.test\r\nConnection: close\r\n\r\n", 0, timeout=T)[-40:])
show("http self", say(("203.0.113.2", 8099), b"GET / HTTP/1.1\r\nHost: uplink.test:3199\r\n\r\n", 0, True, T))
show("tls", first(("203.0.113.2", 4439), hello("allowed.test"), b"\x16"))
show("tls evil", say(("203.0.113.2", 4439), hello("evilcdn.test"), timeout=T))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(T)
for n in b"allowed.test", b"evil.test":
    s.sendto(query(name(n)), ("203.0.113.2", 5399))
    try: show("dns " + n.decode(), bytes([s.recv(512)[3] & 15]))
    except OSError: print("dns no answer")
"""


def test_serve_attacked(case):
    """Strangers, loops to itself by name and address, and the doors of 80 and
    443, where a name is all there is."""
    case.count += 1
    log = f"{case.lab.dir}/log-{case.who}-{case.count}"
    os.mkdir(log, 0o700)
    case.mine(log)
    process = subprocess.Popen(
        [*case.drop(), case.binary, "serve", "--log", log, "--proxy",
         "203.0.113.2:3199", "--dns", "203.0.113.2:5399", "--tls",
         "203.0.113.2:4439", "--http", "203.0.113.2:8099", "--client",
         "203.0.113.2/32", "--allow", "allowed.test", "--allow", "cdn.test",
         "--allow", "uplink.test:3199", "--allow", "loop.test:3199",
         "--permit", "203.0.113.0/30", "--permit", "127.0.0.0/8"],
        cwd=case.work, env=case.env(), text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)
    try:
        check("serving" in process.stderr.readline())
        mine = sh("python3", "-c", SERVED, "20")
        there = case.lab.net("python3", "-c", SERVED, "2")
    finally:
        process.terminate()
        process.communicate(timeout=60)
    with open(log + "/audit.jsonl") as f:
        text = f.read()
    lines = dict(l.split(" b'", 1) if " b'" in l else (l.split(' b"')[0], l)
                 for l in mine.splitlines())
    both = mine + "\n--- strangers\n" + there
    check("HTTP/1.1 200" in mine.splitlines()[0], both)
    for l in mine.splitlines()[1:7]:
        check("HTTP/1.1 4" in l or "HTTP/1.1 5" in l, both)
    check('"self"' in text, both)
    check("HTTP/1.1 200" in lines["http"] and "403" in lines["http evil"], both)
    check("evilcdn.test\\n" not in mine and "x15" in lines["tls evil"]
          and "x16" in lines["tls"], both)
    check("HTTP/1.1" not in there and "\\x16" not in there
          and "dns allowed.test b'\\x00'" not in there, both)
    silent(case)


def test_serve_on_all_addresses(case):
    """A name is answered with an address that clients can connect to, not with
    0.0.0.0, which to them is themselves."""
    case.count += 1
    log = f"{case.lab.dir}/log-{case.who}-{case.count}"
    os.mkdir(log, 0o700)
    case.mine(log)
    process = subprocess.Popen(
        [*case.drop(), case.binary, "serve", "--log", log, "--proxy",
         "0.0.0.0:3199", "--dns", "0.0.0.0:5399", "--client",
         "203.0.113.0/30", "--allow", "allowed.test"], cwd=case.work,
        env=case.env(), text=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE)
    try:
        started = "serving" in process.stderr.readline()
        out = started and sh("dig", "@203.0.113.2", "-p", "5399", "+short",
                             "+tries=1", "+time=20", "allowed.test")
    finally:
        process.terminate()
        process.communicate(timeout=60)
    check(not started or "0.0.0.0" not in out, out)
