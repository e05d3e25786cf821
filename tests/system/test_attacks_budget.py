# SPDX-License-Identifier: Apache-2.0
"""Attacks from inside on what a policy counts, and while it changes."""
import json
import os
import signal
import subprocess
import time

from harness import check
from lab import GOOD
from policy_attack_lab import DOORS, KB, origin, policy
from attack_lab import COMMON, status
from reload_lab import reload

# Counts what comes in all.
COUNTER = r"""
import os, socket, sys, threading
total = 0; lock = threading.Lock()
def one(c):
    global total
    while True:
        try: d = c.recv(65536)
        except OSError: return
        if not d: return
        with lock:
            total += len(d)
            with open(sys.argv[1] + ".new", "w") as f: f.write(str(total))
            os.replace(sys.argv[1] + ".new", sys.argv[1])
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[2], int(sys.argv[3]))); s.listen(256)
while True:
    c, _ = s.accept(); threading.Thread(target=one, args=(c,), daemon=True).start()
"""


def counter(case, port):
    path = f"{case.lab.dir}/counter-{port}"
    with open(path, "w") as f:
        f.write("0")
    child = case.lab.spawn("nsenter", "-t", str(case.lab.holder.pid), "-n", "python3",
                           "-c", COUNTER, path, GOOD, str(port))
    case.lab.wait(lambda: case.lab.listens(GOOD, port), "counter")

    def over():
        """Nobody is connected, so that all is counted that came."""
        return not case.lab.net("ss", "-Htn", "state", "established", "state",
                                "close-wait", "sport", "=", f":{port}")

    def read():
        case.lab.wait(over, "the last byte")
        child.terminate()
        child.wait()
        with open(path) as f:
            return int(f.read())
    return read


def test_budget_by_all_means(case):
    """Many at once, in small and large pieces, held bytes, half-closed ends,
    requests that are cut, all doors, and a gate that is killed in between: no
    byte more than the budget gets to the other side."""
    for text in ("allow:\n  - {host: allowed.test, ports: [8091], upload: 300 kB}\n",
                 "limits: {upload: 300 kB, connections_per_second: 5000}\n"
                 "allow:\n  - {host: allowed.test, ports: [8091]}\n",
                 "allow:\n  - {host: '*.test', ports: [8091], protocol: any, "
                 "upload: 300 kB}\n"):
        total = counter(case, 8091)
        process, _ = case.start("python3", "-c", COMMON + r"""
def one(i, turns):
    for turn in turns:
        try:
            if i % 3 == 0: s = dial(("allowed.test", 8091))
            elif i % 3 == 1:
                s = dial((GW, PORT))
                s.sendall(b"CONNECT allowed.test:8091 HTTP/1.1\r\nHost: allowed.test:8091\r\n\r\n")
                s.recv(4096)
            else:
                s = dial((GW, PORT)); s.sendall(b"\5\1\0"); s.recv(2)
                s.sendall(b"\5\1\0\3\x0callowed.test" + struct.pack(">H", 8091)); s.recv(10)
            kind = (i // 3 + turn) % 5
            if kind == 0: s.sendall(b"\0" * 60000)
            elif kind == 1:
                for j in range(300): s.sendall(b"\1" * 37)
            elif kind == 2:
                s.sendall(b"POST / HTTP/1.1\r\nHost: allowed.test:8091\r\nContent-Length: 200000\r\n\r\n" + b"p" * 150000)
            elif kind == 3:
                s.sendall(b"POST / HTTP/1.1\r\nHost: allowed.test:8091\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 9000)
            else:
                s.sendall(hello("allowed.test") + b"t" * 15000); s.shutdown(socket.SHUT_WR)
            time.sleep(0.3)
            s.close()
        except OSError: time.sleep(0.2)
ts = [threading.Thread(target=one, args=(i, range(6))) for i in range(45)]
[t.start() for t in ts]; time.sleep(0.35); print("going", flush=True)
[t.join() for t in ts]
# Those turns may all have been between two gates.
end = time.time() + 60
while time.time() < end:
    try:
        s = dial((GW, PORT), 20); s.sendall(b"\5\1\0")
        if s.recv(2) == b"\5\0": break
    except OSError: time.sleep(0.1)
ts = [threading.Thread(target=one, args=(i, range(6, 8))) for i in range(45)]
[t.start() for t in ts]; [t.join() for t in ts]
print("done")
""", stdin=subprocess.PIPE, **policy(case, text))
        check(process.stdout.readline() == "going\n")
        os.kill(case.child(process, "gate"), signal.SIGKILL)
        out, err = process.communicate(timeout=200)
        check("done" in out and "limit_bytes" in err, (out, err))
        got = total()
        check(20 * KB < got <= 300 * KB, (text, got, err))


def test_memory_under_refusals(case):
    """10,000 connections that are refused, by policy and by limit: the gate does
    not grow, and each is in the log."""
    process, log = case.start("python3", "-c", COMMON + r"""
n = [0] * 8
def one(k):
    for i in range(1250):
        try:
            s = dial((GW, PORT), 60)
            s.sendall(b"CONNECT nope%d.test:443 HTTP/1.1\r\nHost: nope%d.test:443\r\n\r\n" % (i, i) if k % 2 else
                      b"CONNECT allowed.test:9 HTTP/1.1\r\nHost: allowed.test:9\r\n\r\n")
            g = rest(s)
            n[k] += b"HTTP/1.1 4" in g
            s.close()
        except OSError as e: print(e)
ts = [threading.Thread(target=one, args=(k,)) for k in range(8)]
[t.start() for t in ts]; [t.join() for t in ts]
print("refused", sum(n), flush=True)
sys.stdin.readline()
""", stdin=subprocess.PIPE, **policy(case, "allow: [allowed.test]\n"))
    gate = case.child(process, "gate")
    check(process.stdout.readline() == "refused 10000\n")
    grown = int(status(gate)["VmRSS"])
    out, err = process.communicate("go\n", timeout=60)
    if not case.sanitized:
        check(grown < 40000, grown)
    with open(log + "/audit.jsonl") as f:
        count = sum(r.get("count", 1) for r in map(json.loads, f)
                    if r.get("action_id") == 2)
    check(count == 10000, (count, out, err))


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, "it did not come about")
        time.sleep(0.1)


def test_reload_storm(case):
    """Connections, requests, websockets, half a handshake and questions at every
    stage while the policy changes to and fro: the gate lives, nothing stays
    counted, and no connection to where a rule sends it lands elsewhere."""
    log = origin(case)
    first = """limits: {connections: 300, connections_per_second: 10000, dns_per_second: 10000}
allow:
  - {host: allowed.test, ports: [22, 80, 443, 2525, 7000, 8080, 8090], dns: {types: [TXT]}}
  - {host: other.test, ports: [443, 7000]}
"""
    policies = [
        first,
        "allow: [other.test]\n",
        first.replace("dns:", "upload: 300 kB, dns:"),
        "dns: {answers: real}\n" + first,
        first.replace("ports: [22, 80, 443, 2525, 7000, 8080, 8090]",
                      "ports: [80, 7000, 8080, 8090], methods: [GET], paths: [/a/**]"),
        first.replace("ports: [22, 80, 443, 2525, 7000, 8080, 8090]",
                      "ports: [22, 80, 443, 2525, 7000, 8080, 8090], protocol: any"),
        "mode: observe\ndefault: public\n",
        f"allow:\n  - {{host: allowed.test, ports: [80, 443, 7000, 8090], "
        f"connect: '{GOOD}:8090'}}\n",
        "default: public\ndeny: [allowed.test]\n",
        first.replace("ports: [22,", "doors: [proxy], ports: [22,"),
        first.replace("dns:", "expires: 2020-01-01, dns:"),
    ]
    path = policy(case, first)["args"][1]
    case.mine(path)
    process, where = case.start("python3", "-c", DOORS.join((COMMON, r"""
import random; over = threading.Event()
H = b" HTTP/1.1\r\nHost: allowed.test:%d\r\n"
def once(r):
    port = r.choice([22, 80, 443, 2525, 7000, 8080, 8090])
    door = r.randrange(4)
    where = (GW, PORT)
    if door == 0:
        q = query(name(b"allowed.test" if r.random() < .7 else b"www%d.wild.test" % r.randrange(9)),
                  r.choice([1, 16, 28, 255, 12]))
        (udp if r.random() < .7 else lambda d: tcp(struct.pack(">H", len(d)) + d))(q)
        return
    if door == 1: where = ("allowed.test", port)
    s = dial(where, 2)
    with s:
        if door == 2:
            s.sendall(b"CONNECT allowed.test:%d" % port + H % port + b"\r\n")
            if r.random() < .2: return
            if b" 200 " not in s.recv(4096): return
        if door == 3:
            s.sendall(b"\5\1\0"); s.recv(2); time.sleep(r.random() / 4)
            s.sendall(b"\5\1\0\3\x0callowed.test" + struct.pack(">H", port))
            if s.recv(10)[1:2] != b"\0": return
        if r.random() < .2: time.sleep(r.random())
        host = b"Host: allowed.test%s\r\n" % (b":%d" % port if port != 80 else b"")
        kind = r.randrange(7)
        h = hello(r.choice(["allowed.test", "evilcdn.test"]))
        if kind == 0: s.sendall(h[:r.randrange(len(h))]); time.sleep(r.random()); s.sendall(h)
        elif kind == 1: s.sendall(h)
        elif kind == 2: s.sendall(b"GET /a/ws HTTP/1.1\r\n" + host + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\nframe")
        elif kind == 3: s.sendall(b"POST /a/x HTTP/1.1\r\n" + host + b"Content-Length: 50000\r\n\r\n" + b"x" * r.randrange(50001))
        elif kind == 4:
            for i in range(3):
                s.sendall(b"GET /a/ok HTTP/1.1\r\n" + host + b"\r\n"); time.sleep(r.random() / 3)
        elif kind == 5: s.sendall(b"\0" * r.randrange(100000))
        else: s.sendall(b"GET /a/ok HTTP/1.1\r\n"); time.sleep(r.random())
        if r.random() < .3: s.shutdown(socket.SHUT_WR)
        s.settimeout(r.random())
        s.recv(4096); s.sendall(b"more"); s.recv(4096)
def work(i):
    r = random.Random(i)
    while not over.is_set():
        try: once(r)
        except OSError: pass
ts = [threading.Thread(target=work, args=(i,)) for i in range(60)]
print("going", flush=True)
time.sleep(0.3)
[t.start() for t in ts]
sys.stdin.readline(); over.set(); [t.join() for t in ts]
print("over", flush=True)
sys.stdin.readline()
held = 0
for i in range(280):
    try:
        s = dial((GW, PORT), 20); s.sendall(b"\5\1\0"); held += s.recv(2) == b"\5\0"; ts.append(s)
    except OSError: pass
print("held", held)
""")), stdin=subprocess.PIPE, allow=(), args=("--policy", path))
    check(process.stdout.readline() == "going\n")
    gate = case.child(process, "gate")
    idle = len(os.listdir(f"/proc/{gate}/fd"))
    end, count = time.monotonic() + 8, 0
    while time.monotonic() < end or count <= 5:
        count += 1
        with open(path, "w") as f:
            f.write("version: 1\n" + policies[count * 7 % len(policies)])
        out = reload(case, where)
        check(out.returncode == 0, out)
    print(file=process.stdin, flush=True)
    check(process.stdout.readline() == "over\n")
    with open(path, "w") as f:
        f.write("version: 1\n" + first)
    check(reload(case, where).returncode == 0)
    check(case.child(process, "gate") == gate, "another gate")
    # Half a handshake that nobody answers has a minute: not all are over.
    wait_for(lambda: len(os.listdir(f"/proc/{gate}/fd")) <= idle + 60, 70)
    out, err = process.communicate("go\n", timeout=120)
    check(int(out.split()[-1]) >= 230 and "Sanitizer" not in err, (out, err))
    with open(log, "rb") as f:
        check(b"/a/" in f.read())
