# SPDX-License-Identifier: Apache-2.0
"""How much a sandbox may: names, questions, connections, bytes. What it has used
up stays so when its gate dies."""
import json
import os
import signal
import subprocess
import time

from harness import check

KB, MB = 1000, 1000 * 1000
GOOD = "93.184.216.34"


def policy(case, text):
    path = f"{case.lab.dir}/limits-{case.who}.yaml"
    with open(path, "w") as f:
        f.write("version: 1\n" + text)
    return ("--policy", path)


def moved(run, way, host="allowed.test"):
    """Bytes of all finished connections to @host, as recorded: way is "out" or
    "in"."""
    closed = {}
    for r in run.records:
        if r.get("dst_endpoint", {}).get("hostname") == host and "traffic" in r:
            key = r.get("connection_info", {}).get("uid", r["metadata"]["uid"])
            got = r["traffic"].get(f"bytes_{way}", 0)
            closed[key] = max(closed.get(key, 0), got)
    return sum(closed.values())


def said(run, reason):
    """The reason is in the records and in the summary."""
    check(run.denied(reason) and f"{reason}: " in run.err, run)


def cut(run):
    """What went on when its budget was used up; the summary says so too."""
    check([r for r in run.records if r.get("status_code") == "limit_bytes"
           and "traffic" in r], run)
    check("limit_bytes: " in run.err and "cut while going on" in run.err, run)


# Sends the same thing @count times, then once more after a while.
ASK = """
import socket, struct, time
def ask(s, i, name):
    q = struct.pack(">6H", i, 0x100, 1, 0, 0, 0)
    for label in name.split("."): q += bytes([len(label)]) + label.encode()
    s.send(q + b"\\0" + struct.pack(">2H", 1, 1))
def rcodes(s, seconds):
    got = {{}}; s.settimeout(seconds)
    while True:
        try: d = s.recv(4096)
        except OSError: return got
        got[struct.unpack(">H", d[:2])[0]] = d[3] & 15
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("198.19.0.1", 53))
began = time.monotonic()
for i in range({count}): ask(s, i, "allowed.test")
spent = time.monotonic() - began
got = rcodes(s, 1)
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
    run = case.run("curl", "-s", "-m", "5", *(f"http://{h}.test/" for h in hosts),
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
    os.kill(case.child(process, "gate"), signal.SIGKILL)
    time.sleep(0.2)
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
import socket, sys, time
def one(door):
    try:
        if door == "direct":
            s = socket.create_connection(("allowed.test", 7000), 5)
            s.sendall(b"\\0 200 ")
        else:
            s = socket.create_connection(("198.19.0.1", 3128), 5)
            s.sendall(b"CONNECT allowed.test:443 HTTP/1.1\\r\\nHost: allowed.test:443\\r\\n\\r\\n")
        got = s.recv(100)
        s.close()
        return b" 200 " in got
    except OSError:
        return False
door = sys.argv[1]
socket.gethostbyname("allowed.test")
began = time.monotonic()
n = sum(one(door) for i in range(60))
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
sys.stdin.readline()
began = time.monotonic()
n = 0
while time.monotonic() - began < 3: n += status() == "200"
print(n)
""", allow=(), args=args, stdin=subprocess.PIPE)
    check(process.stdout.readline() == "empty\n")
    for _ in range(2):
        os.kill(case.child(process, "gate"), signal.SIGKILL)
        time.sleep(0.4)
    out, err = process.communicate("go\n", timeout=60)
    check(1 <= int(out) <= 5, (out, err))


# --- bytes ---------------------------------------------------------------------

def fetch(case, *urls, text, **kw):
    """curl, each URL after the other; what each got."""
    run = case.run("curl", "-s", "-m", "30", "-w", "%{size_download}\n", "-o",
                   "/dev/null", *[x for u in urls for x in (u, "-o", "/dev/null")
                                  ][:-2], allow=(), args=policy(case, text), **kw)
    return run, [int(n) for n in run.out.split()]


def test_download_is_cut(case):
    """In the middle, whatever the protocol; and the next one does not begin."""
    text = "allow:\n  - {host: allowed.test, download: 3 MB}\n  - other.test\n"
    for url in "http://allowed.test/big", "https://allowed.test/big":
        for proxy in True, False:
            run, got = fetch(case, url, url, "http://other.test/mid", text=text,
                             proxy=proxy)
            check(got[0] <= 3 * MB and got[1] < 1 * KB
                  and got[2] == 8 << 20, run)
            check(2 * MB < moved(run, "in") <= 3 * MB, run)
            cut(run)
            said(run, "limit_bytes")


# Reads a request to its end, and only then answers: in plain HTTP and by TLS.
READER = """
import http.server, ssl, sys, threading
class H(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        left = int(self.headers["Content-Length"])
        while left:
            n = len(self.rfile.read(min(left, 65536)))
            if not n: return
            left -= n
        self.send_response(200); self.send_header("Content-Length", "3")
        self.end_headers(); self.wfile.write(b"all")
def serve(port, tls):
    server = http.server.ThreadingHTTPServer(("%s", port), H)
    if tls: server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.serve_forever()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(*sys.argv[1:])
threading.Thread(target=serve, args=(8443, context), daemon=True).start()
serve(8081, None)
""" % GOOD

UPLOAD = """
import http.client, ssl, sys
scheme, door = sys.argv[1:]
if scheme == "https":
    context = ssl.create_default_context()
    c = (http.client.HTTPSConnection("allowed.test", 8443, context=context) if door == "direct"
         else http.client.HTTPSConnection("198.19.0.1", 3128, context=context))
    if door == "proxy": c.set_tunnel("allowed.test", 8443)
    path = "/"
else:
    c = (http.client.HTTPConnection("allowed.test", 8081) if door == "direct"
         else http.client.HTTPConnection("198.19.0.1", 3128))
    path = "/" if door == "direct" else "http://allowed.test:8081/"
c.timeout = 20
try:
    c.request("POST", path, bytes(20000000))
    print("sent it, got", c.getresponse().status)
except (OSError, http.client.HTTPException) as e:
    print("cut", e)
"""


def test_upload_is_cut(case):
    if not case.lab.listens(GOOD, 8081):
        case.lab.spawn("nsenter", "-t", str(case.lab.holder.pid), "-n", "python3",
                       "-c", READER, case.lab.dir + "/server.pem",
                       case.lab.dir + "/server.key")
        case.lab.wait(lambda: case.lab.listens(GOOD, 8081)
                      and case.lab.listens(GOOD, 8443), "reader")
    rule = ("allow:\n  - {host: allowed.test, ports: [8081]%s}\n"
            "  - {host: allowed.test, ports: [8443], protocol: tls%s}\n")
    for scheme in "http", "https":
        for door in "direct", "proxy":
            args = ("python3", "-c", UPLOAD, scheme, door)
            run = case.run(*args, allow=(), args=policy(
                case, rule % ((", upload: 2 MB",) * 2)))
            check(1 * MB < moved(run, "out") <= 2 * MB
                  and "got 200" not in run.out, run)
            cut(run)
            run = case.run(*args, allow=(), args=policy(case, rule % ("", "")))
            check(moved(run, "out") > 20 * MB
                  and "sent it, got 200" in run.out, run)


def test_budget_is_exact(case):
    """Not a byte more reaches the other side: what it echoed is what came."""
    text = ("allow:\n  - {host: allowed.test, ports: [7000], upload: 100 kB, "
            "protocol: any}\n")
    run = case.python("""
import socket, threading, time
s = socket.create_connection(("allowed.test", 7000), 10)
got = 0
def read():
    global got
    while True:
        try: d = s.recv(65536)
        except OSError: return
        if not d: return
        got += len(d)
t = threading.Thread(target=read); t.start()
sent = 0
try:
    while sent < 99000: sent += s.send(b"x" * 1000)  # all of this must come
    while got < sent: time.sleep(0.01)
    print("all of", sent, flush=True)
    for i in range(1000): s.sendall(b"y" * 1000)
except OSError: pass
t.join(10)
print("got", got)
""", allow=(), args=policy(case, text))
    check("all of 99000" in run.out, run)
    got = int(run.out.split()[-1])
    check(99 * KB <= got <= 100 * KB and moved(run, "out") <= 100 * KB, run)
    cut(run)


def test_session_budget(case):
    """Over all hosts, also without a rule's own, also at the same time."""
    text = "limits: {download: 4 MB}\nallow: [allowed.test, other.test]\n"
    run = case.run("sh", "-c", "for h in allowed other allowed other; do "
                   "curl -s -m 30 -o /dev/null -w '%{size_download}\\n' "
                   "http://$h.test/big & done; wait; "
                   "curl -s -m 30 -o /dev/null -w 'then %{http_code}\\n' "
                   "http://other.test/", allow=(), args=policy(case, text))
    *sizes, last = run.out.splitlines()
    # What is refused at once gets a page of ours, which is no download.
    got = [int(n) for n in sizes if int(n) > 1000]
    check(sum(got) <= 4 * MB and "then 200" != last, run)
    check(3 * MB < moved(run, "in") + moved(run, "in", "other.test") <= 4 * MB, run)
    cut(run)


def test_stricter_of_both(case):
    text = ("limits: {download: 2 MB}\nallow:\n"
            "  - {host: allowed.test, download: 1 GB}\n")
    run, got = fetch(case, "http://allowed.test/big", text=text)
    check(got[0] <= 2 * MB and 1 * MB < moved(run, "in") <= 2 * MB, run)


def test_budget_survives_the_gate(case):
    """Half of it before the gate is killed, in the midst of more; then there is
    no more than the rest."""
    text = "allow:\n  - {host: allowed.test, download: 20 MB}\n"
    process, log = case.start("python3", "-c", """
import subprocess, sys, time
def get(path, *more):
    r = subprocess.run(["curl", "-s", "-m", "20", "-o", "/dev/null", "-w",
                        "%{size_download}", *more, "http://allowed.test" + path],
                       capture_output=True, text=True)
    return int(r.stdout)
first = get("/mid")
slow = subprocess.Popen(["curl", "-s", "-o", "/dev/null", "--limit-rate", "2M",
                         "-w", "%{size_download}", "http://allowed.test/big"],
                        stdout=subprocess.PIPE, text=True)
time.sleep(0.5)
print("half", flush=True)
sys.stdin.readline()
total = first + int(slow.communicate()[0])
for i in range(20):
    got = get("/big")
    if got > 1000: total += got  # else it was refused
    time.sleep(0.1)
print("total", total, get("/big"))
""", allow=(), args=policy(case, text), stdin=subprocess.PIPE)
    check(process.stdout.readline() == "half\n")
    os.kill(case.child(process, "gate"), signal.SIGKILL)
    time.sleep(0.2)
    out, err = process.communicate("go\n", timeout=90)
    words = out.split()
    check(words[0] == "total" and 8 * MB < int(words[1]) <= 20 * MB
          and int(words[2]) < 1 * KB, (out, err))
    check("limit_bytes: " in err, err)


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
silent = [connect() for i in range(4500)]
kept = [connect() for i in range(400)]
for s in kept:
    s.sendall(KEPT)
    while not s.recv(4096).endswith(b"allowed.test\\n"): pass
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
    out, err = process.communicate(timeout=100)
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
