# SPDX-License-Identifier: Apache-2.0
"""An internet in namespaces, for tests/system and deploy/try.

    this process            another namespace
    "the machine"           "the internet"
    203.0.113.2 ------veth------ 203.0.113.1
                                 93.184.216.53   name server (nsd)
                                 93.184.216.34   allowed.test and friends
                                 93.184.216.40   shared: cdn.test, evilcdn.test
                                 93.184.216.66   evil.test: must stay silent

Neither has a way to the real network: a bug can't leak a packet. Origins have
ordinary global addresses, since special-purpose ones are refused anyway. All
packets between the two are captured, so that a test can say what was not sent.
"""
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
MARKED = 0x88B5  # for experiments (IEEE 802): nobody else sends it

DNS = "93.184.216.53"
GOOD = "93.184.216.34"
CDN = "93.184.216.40"
EVIL = "93.184.216.66"
GOOD6 = "2606:2800:220:1::34"

ZONE = f"""
$ORIGIN test.
$TTL 60
@ SOA ns.test. admin.test. 1 3600 600 86400 30
@ NS ns.test.
ns A {DNS}
allowed A {GOOD}
allowed TXT "a text record"
other A {GOOD}
www.wild A {GOOD}
deep.er.wild A {GOOD}
six AAAA {GOOD6}
both A {GOOD}
both AAAA {GOOD6}
both AAAA 2606:2800:220:1::dead
alias CNAME allowed
private A 10.1.2.3
metadata A 169.254.169.254
loop A 127.0.0.1
mapped AAAA ::ffff:10.0.0.1
uplink A 203.0.113.2
mixed A 10.9.9.9
mixed A {GOOD}
cdn A {CDN}
evilcdn A {CDN}
evil A {EVIL}
*.tunnel A {GOOD}
refused A {GOOD}
git A {GOOD}
registry A {GOOD}
index A {GOOD}
"""

NGINX = """
daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/nginx.err;
events {{ worker_connections 1024; }}
http {{
  access_log {dir}/access.log;
  client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2;
  fastcgi_temp_path {dir}/t3; uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
  ssl_certificate {dir}/server.pem; ssl_certificate_key {dir}/server.key;
  client_max_body_size 64m; keepalive_requests 100000; sendfile on;
  server {{
    listen {good}:80; listen {good}:443 ssl; listen {good}:8080;
    listen [{good6}]:80; listen [{good6}]:443 ssl;
    listen {cdn}:80; listen {cdn}:443 ssl;
    listen {evil}:80; listen {evil}:443 ssl;
    server_name _; root {dir}/www; autoindex off;
    location = /host {{ return 200 "$host\\n"; }}
    location = /upload {{ return 200 "$content_length\\n"; }}
    location = /move {{ return 302 http://evil.test/; }}
    location /git/ {{ proxy_pass http://127.0.0.1:8090; }}
    location /npm/ {{ default_type application/json; }}
  }}
}}
"""

SSHD = """
Port 22
ListenAddress {good}
HostKey {dir}/ssh_host
PidFile {dir}/sshd.pid
AuthorizedKeysFile {dir}/client.pub
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
Subsystem sftp internal-sftp
"""

# An echo server, and one that speaks first.
TCP_SERVERS = """
import socket, threading
def serve(port, greet):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("{good}", port)); s.listen(64)
    def one(c):
        if greet: c.sendall(greet)
        while True:
            d = c.recv(65536)
            if not d: break
            c.sendall(d)
        c.shutdown(socket.SHUT_WR); c.close()
    while True:
        c, _ = s.accept(); threading.Thread(target=one, args=(c,), daemon=True).start()
threading.Thread(target=serve, args=(7000, b""), daemon=True).start()
serve(2525, b"220 ready\\r\\n")
"""


def sh(*argv, **kw):
    return subprocess.run(argv, check=True, text=True, capture_output=True, **kw).stdout


class Lab:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="sallyport-lab-")
        os.chmod(self.dir, 0o755)
        self.children, self.settled = [], 0
        self.libc = ctypes.CDLL(None, use_errno=True)

    # -- building -----------------------------------------------------------

    def start(self):
        if self.libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
            sys.exit("lab: can't make namespaces: run as root, or in "
                     "`unshare -Urmn`")
        sh("mount", "--make-rprivate", "/")
        self.own_config()
        self.holder = self.spawn("unshare", "--net", "sleep", "infinity")
        mine = os.readlink("/proc/self/ns/net")
        self.wait(lambda: os.readlink(f"/proc/{self.holder.pid}/ns/net") != mine)
        self.network()
        self.files()
        self.servers()
        resolv = self.write("resolv.conf", f"nameserver {DNS}\n")
        sh("mount", "--bind", resolv, os.path.realpath("/etc/resolv.conf"))
        return self

    def own_config(self):
        """Root's key and logs are made here, and gone with us."""
        for place, mode in ("/etc/sallyport", 755), ("/var/log/sallyport", 700):
            try:
                os.makedirs(place, mode=int(str(mode), 8), exist_ok=True)
            except PermissionError:
                return  # nor can the product
            sh("mount", "-t", "tmpfs", "-o", f"mode={mode}", "lab", place)

    def network(self):
        sh("ip", "link", "set", "lo", "up")
        sh("ip", "link", "add", "up0", "type", "veth", "peer", "name", "in0",
           "netns", str(self.holder.pid))
        sh("ip", "addr", "add", "203.0.113.2/30", "dev", "up0")
        sh("ip", "-6", "addr", "add", "2001:db8:1::2/64", "dev", "up0", "nodad")
        sh("ip", "link", "set", "up0", "up")
        sh("ip", "route", "add", "default", "via", "203.0.113.1")
        self.net("ip", "link", "set", "lo", "up")
        self.net("ip", "addr", "add", "203.0.113.1/30", "dev", "in0")
        self.net("ip", "-6", "addr", "add", "2001:db8:1::1/64", "dev", "in0",
                 "nodad")
        self.net("ip", "link", "set", "in0", "up")
        for ip in DNS, GOOD, CDN, EVIL:
            self.net("ip", "addr", "add", ip + "/32", "dev", "lo")
        self.net("ip", "-6", "addr", "add", GOOD6 + "/128", "dev", "lo", "nodad")
        sh("ip", "-6", "route", "add", "default", "via", "2001:db8:1::1")

    def net(self, *argv):
        """Runs something in the internet's namespace."""
        return sh("nsenter", "-t", str(self.holder.pid), "-n", *argv)

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write(textwrap.dedent(text))
        os.chmod(path, mode)
        return path

    def files(self):
        d = self.dir
        names = ("allowed", "other", "six", "both", "alias", "cdn", "evilcdn",
                 "evil", "www.wild", "deep.er.wild", "mixed", "git", "registry",
                 "index")
        san = ",".join(f"DNS:{n}.test" for n in names)
        sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
           "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
           "/CN=lab CA", "-keyout", d + "/ca.key", "-out", d + "/ca.pem")
        sh("openssl", "req", "-newkey", "ec", "-pkeyopt",
           "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=lab",
           "-keyout", d + "/server.key", "-out", d + "/server.csr")
        self.write("san", "subjectAltName=" + san + "\n")
        sh("openssl", "x509", "-req", "-in", d + "/server.csr", "-CA",
           d + "/ca.pem", "-CAkey", d + "/ca.key", "-days", "2", "-extfile",
           d + "/san", "-out", d + "/server.pem")
        self.ca = d + "/ca.pem"
        os.mkdir(d + "/www")
        self.write("www/index.html", "hello from the lab\n")
        with open(d + "/www/big", "wb") as f:
            f.truncate(1 << 30)
        with open(d + "/www/mid", "wb") as f:
            f.write(os.urandom(8 << 20))
        self.write("nginx.conf", NGINX.format(dir=d, good=GOOD, good6=GOOD6,
                                              cdn=CDN, evil=EVIL))
        self.write("test.zone", ZONE)
        self.write("nsd.conf", f"""
            server:
              ip-address: {DNS}
              username: ""
              chroot: ""
              zonesdir: {d}
              database: ""
              pidfile: {d}/nsd.pid
              xfrdfile: {d}/xfrd
              xfrdir: {d}
              zonelistfile: {d}/zonelist
              logfile: {d}/nsd.log
              server-count: 1
            remote-control:
              control-enable: no
            zone:
              name: test
              zonefile: test.zone
            """)
        sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", d + "/ssh_host")
        sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", d + "/client")
        self.write("sshd.conf", SSHD.format(dir=d, good=GOOD))
        with open(d + "/ssh_host.pub") as f:
            self.write("known_hosts", "allowed.test " + f.read())
        env = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null",
                   GIT_AUTHOR_NAME="lab", GIT_AUTHOR_EMAIL="lab@lab.test",
                   GIT_COMMITTER_NAME="lab", GIT_COMMITTER_EMAIL="lab@lab.test")
        sh("git", "init", "-q", d + "/work", env=env)
        self.write("work/README", "a repository\n")
        sh("git", "-C", d + "/work", "add", "README", env=env)
        sh("git", "-C", d + "/work", "commit", "-q", "-m", "first", env=env)
        sh("git", "clone", "-q", "--bare", d + "/work", d + "/www/repo.git", env=env)
        sh("git", "-C", d + "/www/repo.git", "update-server-info", env=env)

    def servers(self):
        d = self.dir
        inside = ("nsenter", "-t", str(self.holder.pid), "-n")
        self.capture = d + "/capture.pcap"
        self.tcpdump = self.spawn(*inside, "tcpdump", "-i", "in0", "-U", "-n",
                                  "--immediate-mode",
                                  "-s", "256", "-Z", "root", "-w", self.capture)
        os.makedirs("/run/sshd", exist_ok=True)
        servers = [(self.spawn(*inside, *argv), address, ports)
                   for address, ports, argv in (
            (DNS, (53,), ("nsd", "-d", "-c", d + "/nsd.conf")),
            (GOOD, (443, 80), ("nginx", "-c", d + "/nginx.conf")),
            (GOOD, (22,), ("/usr/sbin/sshd", "-D", "-e", "-f", d + "/sshd.conf")),
            (GOOD, (7000, 2525), ("python3", "-c", TCP_SERVERS.format(good=GOOD))))]
        for child, address, ports in servers:
            for port in ports:
                self.wait_for(child, address, port)
        self.wait(lambda: os.path.exists(self.capture), "tcpdump")

    def wait_for(self, child, address, port):
        """Until a server listens; says what became of it if it does not."""
        end = time.monotonic() + 30
        while not self.listens(address, port):
            if child.poll() is not None or time.monotonic() > end:
                self.told(child)
            time.sleep(0.02)

    def told(self, child):
        at = f"/proc/{child.pid}"
        print(f"lab: it does not listen; its status: {child.poll()}")
        for path in (at + "/status", at + "/wchan", at + "/stack", *(
                f"{self.dir}/{name}" for name in os.listdir(self.dir)
                if name.endswith((".log", ".out")))):
            with contextlib.suppress(OSError), open(path, errors="replace") as f:
                print(f"--- {path}\n{f.read()[-2000:]}")
        raise RuntimeError(f"lab: {child.args[:8]} did not come up")

    def listens(self, address, port):
        try:
            return f"{address}:{port} " in self.net("ss", "-Hltn")
        except subprocess.CalledProcessError:  # it found /proc in motion
            return False

    def spawn(self, *argv):
        log = open(os.path.join(self.dir, f"{os.path.basename(argv[-1])[:20]}"
                                f"-{len(self.children)}.out"), "w")
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log,
                                 stderr=log, start_new_session=True)
        self.children.append(child)
        return child

    def wait(self, condition, what="", seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return
            time.sleep(0.02)
        raise RuntimeError(f"lab: {what} did not come up; logs in {self.dir}")

    def trust(self, ca=None):
        """Environment that makes clients trust the lab's CA."""
        return {name: ca or self.ca for name in (
            "CURL_CA_BUNDLE", "SSL_CERT_FILE", "GIT_SSL_CAINFO",
            "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")}

    # -- asking -------------------------------------------------------------

    def settle(self):
        """Until the capture's file has all that has left. A frame that is no
        packet of anybody's goes the same way, and waits for its turn, which
        each processor has of its own."""
        cpus = os.sched_getaffinity(0)
        marks = [os.urandom(46) for _ in cpus]
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
            s.bind(("up0", MARKED))
            try:
                for cpu, mark in zip(cpus, marks):
                    os.sched_setaffinity(0, {cpu})
                    s.send(b"\2\0\0\0\0\1\2\0\0\0\0\2" +
                           MARKED.to_bytes(2, "big") + mark)
            except OSError:  # a guard is up, which lets none of this out
                time.sleep(0.3)
                return
            finally:
                os.sched_setaffinity(0, cpus)

        def there():
            with open(self.capture, "rb") as f:
                f.seek(self.settled)
                new = f.read()
            if not all(mark in new for mark in marks):
                return False
            self.settled += len(new)
            return True
        self.wait(there, "a mark in the capture")

    def packets(self, expression, *options):
        """The captured packets that match a pcap filter, one line each."""
        self.settle()
        out = subprocess.run(["tcpdump", "-n", *options, "-r", self.capture,
                              f"({expression}) and not ether proto {MARKED}"],
                             capture_output=True, text=True).stdout
        return out.splitlines()

    def evil(self):
        return self.packets(f"host {EVIL} or host 8.8.8.8 or host 1.1.1.1")

    def stop(self):
        for child in reversed(self.children):
            try:
                os.killpg(child.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        for child in reversed(self.children):
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()
