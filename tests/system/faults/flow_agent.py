# SPDX-License-Identifier: Apache-2.0
"""One flow of each kind, made inside a sandbox when told which: what came of
it is one word, "ok" if all went well. A flow that neither goes on nor ends is
"hung"; UDP, of which an answer may be missing, is "silent" sooner."""
from witness import CLIENT

AGENT = CLIENT + r"""
import ssl, struct
SECONDS, QUIET = 20, 0.1
asked = itertools.count()
def question():
    labels = b"n%d" % next(asked), b"tunnel", b"test"
    return struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + b"".join(
        bytes([len(l)]) + l for l in labels) + b"\0" + struct.pack(">2H", 1, 1)
def rcode(got): return "ok" if got[3] & 15 == 0 and got[7] else "rcode %d" % (got[3] & 15)
def dns(seconds=SECONDS):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(seconds)
        s.sendto(question(), (PROXY[0], 53))
        try: return rcode(s.recv(512))
        except TimeoutError: return "silent"
def dnstcp():
    q = question()
    with socket.create_connection((PROXY[0], 53), SECONDS) as s:
        s.sendall(struct.pack(">H", len(q)) + q)
        got = b""
        while len(got) < 14:
            more = s.recv(512)
            if not more: return "closed"
            got += more
        return rcode(got[2:])
def said(got): return "ok" if got == b"ok\n" else "said %r" % got[:30]
def connecting():
    s, got = connect(SECONDS)
    with s: return said(ask(s, "connect")) if " 200 " in got else "said " + got[:12]
def socks5():
    s = socket.create_connection(PROXY, SECONDS)
    with s:
        s.sendall(b"\5\1\0")
        if s.recv(2) != b"\5\0": return "closed"
        s.sendall(b"\5\1\0\3" + bytes([len(HOST)]) + HOST.encode() + PORT.to_bytes(2, "big"))
        got = s.recv(10)
        return said(ask(s, "socks")) if got[1:2] == b"\0" else "said %r" % got[:2]
def http():
    with socket.create_connection(PROXY, SECONDS) as s:
        s.sendall(b"GET http://%s:%d/%s HTTP/1.1\r\nConnection: close\r\nHost: %s:%d\r\n\r\n" % (
            HOST.encode(), PORT, name("http", s).encode(), HOST.encode(), PORT))
        got = b""
        while True:
            more = s.recv(4096)
            if not more: return "ok" if got.endswith(b"ok\n") else "said %r" % got[:12]
            got += more
def straight():
    with socket.create_connection((ADDRESS, PORT), SECONDS) as s: return said(ask(s, "direct"))
CONTEXT = ssl._create_unverified_context()
def sni():
    with socket.create_connection((ADDRESS, 443), SECONDS) as s:
        with CONTEXT.wrap_socket(s, server_hostname=HOST) as t:
            t.sendall(b"GET /index.html HTTP/1.0\r\nHost: allowed.test\r\n\r\n")
            got = b""
            while True:
                more = t.recv(4096)
                if not more: break
                got += more
            return "ok" if b"hello from the lab" in got else "said %r" % got[:12]
def published():
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("0.0.0.0", 3000)); s.listen(64)
    def one(c):
        try:
            if c.recv(64): c.sendall(b"ok\n")
        except OSError: pass  # it was cut: the next one is served
        finally: c.close()
    def serve():  # in whatever order they come and speak
        while True: threading.Thread(target=one, args=s.accept()[:1], daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
FLOWS = dict(dns=dns, briefly=lambda: dns(QUIET), dnstcp=dnstcp, connect=connecting, socks=socks5, http=http,
             direct=straight, sni=sni)
ADDRESS = socket.gethostbyname(HOST)
published()
print("ready", flush=True)
for line in sys.stdin:
    try: out = FLOWS[line.strip()]()
    except TimeoutError: out = "hung"
    except OSError as e: out = type(e).__name__
    print(out.replace("\n", " "), flush=True)
"""
