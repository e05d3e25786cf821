# SPDX-License-Identifier: Apache-2.0
"""How many bytes a sandbox may move, and who counts them when its gate dies."""
import os
import signal
import subprocess
import time

from harness import check
from limits_lab import fetch, moved, policy, said

KB, MB = 1000, 1000 * 1000
GOOD = "93.184.216.34"


def cut(run):
    """What went on when its budget was used up; the summary says so too."""
    check([r for r in run.records if r.get("status_code") == "limit_bytes"
           and "traffic" in r], run)
    check("limit_bytes: " in run.err and "cut while going on" in run.err, run)


# --- bytes ---------------------------------------------------------------------


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
c.timeout = 60
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
s = socket.create_connection(("allowed.test", 7000), 60)
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
def get(path, *more, code=False):
    r = subprocess.run(["curl", "-s", "-m", "20", "-o", "/dev/null", "-w",
                        "%{size_download}", *more, "http://allowed.test" + path],
                       capture_output=True, text=True)
    return int(r.stdout.split()[-1] if code else r.stdout)
first = get("/mid")
slow = subprocess.Popen(["curl", "-s", "-o", "/dev/null", "--limit-rate", "2M",
                         "-w", "%{size_download}", "http://allowed.test/big"],
                        stdout=subprocess.PIPE, text=True)
time.sleep(0.5)
print("half", flush=True)
sys.stdin.readline()
total = first + int(slow.communicate()[0])
end = time.monotonic() + 60
while time.monotonic() < end:
    got = get("/big")
    if got > 1000: total += got
    elif get("/", "-w", " %{http_code}", code=True) == 403: break  # there is no more
    time.sleep(0.1)
print("total", total, get("/big"))
""", allow=(), args=policy(case, text), stdin=subprocess.PIPE)
    check(process.stdout.readline() == "half\n")
    case.kill(process, "gate")
    out, err = process.communicate("go\n", timeout=200)
    words = out.split()
    check(words[0] == "total" and 8 * MB < int(words[1]) <= 20 * MB
          and int(words[2]) < 1 * KB, (out, err))
    check("limit_bytes: " in err, err)
