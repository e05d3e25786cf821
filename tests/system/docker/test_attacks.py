# SPDX-License-Identifier: Apache-2.0
"""What containers try that were given more than they should have: NET_RAW and
NET_ADMIN, alone and together with another network that an engine connects them
to. A forbidden host and the engine's own network are watched by captures, which
must stay silent; the bridge of that network, too."""
import contextlib
import glob
import json
import os
import subprocess
import time

from engine import leftovers, settle, steady
from lab import EVIL
from product import Case as Product
from product import wait

ADMIN = ("--cap-add", "NET_ADMIN", "--cap-add", "NET_RAW")
# Marks a frame that must not be seen anywhere.
MARK = "leaked-by-a-container"

# Sends MARK by every interface but lo, in all ways: packet sockets (also past
# the queueing discipline), raw IP, UDP and TCP bound to a device, IPv6. Run by
# `nsenter` with the container's own rights, as there is no python in there.
SENDER = """
import socket, struct, sys, time
mark = b"%s"
def raw(name):
    for bypass in 0, 1:
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        s.setsockopt(263, 20, bypass)
        s.bind((name, 0))
        s.send(b"\\xff" * 6 + s.getsockname()[4] + b"\\x88\\xb5" + mark + bytes(40))
def udp(name):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, 25, name.encode() + b"\\0")
    for to in sys.argv[1:]: s.sendto(mark, (to, 9))
def ip(name):
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 200)
    s.setsockopt(socket.SOL_SOCKET, 25, name.encode() + b"\\0")
    for to in sys.argv[1:]: s.sendto(mark, (to, 0))
def six(name):
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.sendto(mark, ("ff02::1", 9, 0, socket.if_nametoindex(name)))
end = time.monotonic() + float(sys.argv.pop(1))
print("sending", flush=True)
while time.monotonic() < end:
    for _, name in socket.if_nameindex():
        if name == "lo": continue
        for how in raw, udp, ip, six:
            try: how(name)
            except OSError: pass
    time.sleep(0.005)
""" % MARK

# Makes a table of the lock's name, its own as long as it runs (NFT_TABLE_F_OWNER).
OWNER = """
import socket, struct, time
def message(kind, flags, family, seq, body=b"", res=0):
    return struct.pack("=IHHIIBBH", 20 + len(body), kind, flags, seq, 0, family,
                       0, socket.htons(res)) + body
name = b"sallyport_lock\\0\\0"
body = (struct.pack("=HH", 4 + 15, 1) + name +
        struct.pack("=HH", 8, 2) + struct.pack(">I", 2))
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
s.bind((0, 0))
s.send(message(16, 1, 0, 1, res=10) + message(10 << 8, 0x405, 1, 2, body) +
       message(17, 1, 0, 3, res=10))
error = struct.unpack("=i", s.recv(4096)[16:20])[0]
print(error, flush=True)
time.sleep(1000)
"""


class Case(Product):
    def start(self):
        self.pids = {}
        super().start()
        self.docker.run("network", "create", "other")
        bridge = "br-" + self.docker.out("network", "inspect", "-f", "{{.Id}}",
                                         "other")[:12]
        self.peer = self.docker.out(
            "network", "inspect", "-f", "{{(index .IPAM.Config 0).Gateway}}",
            "other")
        self.seen = self.lab.dir + "/other.pcap"
        self.lab.spawn("tcpdump", "-i", "any", "-U", "-n", "--immediate-mode",
                       "-s", "256", "-Z", "root", "-w", self.seen,
                       "not port 53")
        self.lab.wait(lambda: os.path.exists(self.seen), "tcpdump on " + bridge)
        # What these captures are worth: a container without us is seen.
        c = self.container("--cap-add", "NET_RAW", network="other")
        with self.sending(c):
            pass
        self.lab.wait(lambda: self.leaks(), "the control")
        self.remove(c)
        # A capture is written a while after what it has seen.
        self.known = steady(self.leaks)
        self.control = len(steady(self.evil))

    @contextlib.contextmanager
    def sending(self, c, seconds=0.4):
        """All the while, from inside, as whoever is root there."""
        with subprocess.Popen(
                self.argv(c, "python3", "-c", SENDER, str(seconds), self.peer,
                          EVIL), stdout=subprocess.PIPE) as sender:
            assert sender.stdout.readline() == b"sending\n"
            yield
        assert sender.returncode == 0

    def argv(self, c, *argv):
        """With the capabilities of the container's root, and no more."""
        if c not in self.pids:
            self.pids[c] = self.docker.pid(c)
        with open(f"/proc/{self.pids[c]}/status") as f:
            status = f.read()
        caps = int(status.split("CapEff:")[1].split()[0], 16)
        names = [n for bit, n in ((12, "net_admin"), (13, "net_raw"),
                                  (21, "sys_admin")) if caps >> bit & 1]
        keep = "-all" + "".join(",+" + n for n in names)
        return ["nsenter", "-t", str(self.pids[c]), "-n", "setpriv",
                f"--bounding-set={keep}", f"--inh-caps={keep}",
                "--no-new-privs", *argv]

    def join(self, c, network):
        """While it sends."""
        with self.sending(c, 1.2):
            self.docker.run("network", "connect", network, c)

    def leaks(self):
        """Frames with the mark, by what we see of the host's interfaces; the
        link to our own gateway is none of them."""
        time.sleep(0.2)
        with open(self.seen, "rb") as f:
            return f.read().count(MARK.encode())

    def told(self, text):
        """Is it a finding of a session that has its receipt, and verifies?"""
        found = []
        for log in glob.glob("/var/log/sallyport/*/audit.jsonl"):
            with open(log) as f:
                found += [os.path.dirname(log) for line in f if text in line]
        assert len(found) == 1, (text, found)
        done = subprocess.run([self.daemon.binary, "verify", found[0]],
                              text=True, capture_output=True)
        assert done.returncode == 0 and "receipt   good" in done.stdout, done

    def silent(self, what):
        assert self.leaks() == self.known, (what, self.leaks() - self.known)

    def deeds(self, c, *deeds):
        """None has to succeed. It sends before, meanwhile and after."""
        for deed in deeds:
            with self.sending(c):
                got = subprocess.run(self.argv(c, "sh", "-c", deed), text=True,
                                     capture_output=True)
            self.silent((deed, got))


def tables(c, case):
    return case.docker.inside(c, "nft", "-s", "list", "ruleset")


def test_flush(case):
    """The rules: with no other network there is nothing that they hold back
    but the engine's resolver."""
    c = case.container(*ADMIN)
    before = tables(c, case)
    case.deeds(c, "nft flush ruleset", "nft delete table inet sallyport_lock",
               "nft delete table netdev sallyport_lock",
               "nft add rule inet sallyport_lock out accept",
               "nft 'add table inet mine; add chain inet mine c { type filter "
               "hook output priority -500; }; add rule inet mine c accept'")
    wait(lambda: "sallyport_lock" in tables(c, case), "the tables")
    if "owner" in before:
        assert tables(c, case).count("table inet sallyport_lock") == 1
    assert "hello" in case.fetch(c, "allowed.test").stdout
    name = case.name()
    case.docker.sh(c, f"timeout 5 nslookup {name}")
    assert not case.lab.asked(name)
    case.remove(c)


def test_own_link(case):
    """Another address, route, name or device on our link: the gateway knows
    one address, and has no way on."""
    c = case.container(*ADMIN)
    sandbox = case.sandbox(c)
    case.deeds(
        c, "ip addr add 203.0.113.2/30 dev eth0",
        f"ip route replace {EVIL} dev eth0",
        "ip route replace default dev eth0",
        "ip link add link eth0 name mac0 type macvlan mode bridge && "
        "ip link set mac0 up && ip addr add 203.0.113.9/24 dev mac0",
        "ip link add link eth0 name ipv0 type ipvlan && ip link set ipv0 up",
        "ip link add link eth0 name eth0.5 type vlan id 5 && "
        "ip link set eth0.5 up",
        "ip link add gre0x type gretap remote 93.184.216.66 && "
        "ip link set gre0x up",
        "ip link add a0 type veth peer name b0 && ip link set a0 up && "
        "ip link set b0 up",
        "sysctl -w net.ipv4.ip_forward=1",
        "ip link set eth0 down; ip link set eth0 name wan0; "
        "ip link set wan0 up")
    wait(lambda: case.findings(sandbox), "a finding")
    assert not case.fetch(c, "evil.test").stdout
    case.remove(c)


def test_programs_on_links(case):
    """tc: what leaves our link is sent elsewhere; nothing is elsewhere."""
    c = case.container(*ADMIN)
    case.join(c, "other")
    case.deeds(
        c, "tc qdisc add dev eth0 clsact",
        "tc filter add dev eth0 egress matchall action mirred egress redirect "
        "dev eth1",
        "tc qdisc add dev lo clsact; tc filter add dev lo egress matchall "
        "action mirred egress mirror dev eth1",
        "tc qdisc replace dev eth1 root pfifo", "tc qdisc add dev eth1 clsact; "
        "tc filter add dev eth1 egress matchall action pass")
    case.remove(c)


def test_other_network(case):
    """Another network, and rights over the namespace: what no table inside can
    hold is held outside."""
    c = case.container(*ADMIN)
    sandbox = case.sandbox(c)
    case.join(c, "other")
    case.deeds(
        c, "true", "ip route replace default dev eth1",
        f"ip route replace default via {case.peer} dev eth1",
        "nft flush ruleset", "ip link set eth1 group 21328",
        "nft delete table netdev sallyport_lock",
        "ip link set eth1 down; ip link set eth1 name tun7; "
        "ip link set tun7 up; ip link set tun7 group 21328",
        "ip link add link tun7 name eth9 type macvlan mode bridge; "
        "ip link set eth9 group 21328; ip link set eth9 up",
        "ip link set tun7 promisc on; ip link set tun7 arp off",
        "i=$(cat /sys/class/net/eth0/ifindex); ip link del eth0; "
        "ip link add link tun7 name eth0 index $i type macvlan mode bridge; "
        "ip link set eth0 group 21328; ip link set eth0 up; "
        "ip route replace default dev eth0")
    found = wait(lambda: [r for r in case.findings(sandbox)
                          if "eth1" in str(r)], "a finding")
    assert found
    case.remove(c)


def test_other_network_first(case):
    """Connected before it starts, so that its first breath has it."""
    for network in "other", "bridge":
        case.count += 1
        c = f"c{case.count}"
        case.docker.run("create", "--name", c, "--network", "agents", *ADMIN,
                        "box", "sleep", "1000")
        case.docker.run("network", "connect", network, c)
        case.docker.run("start", c)
        case.deeds(c, "true", "ip link set eth1 down; ip link set eth1 name x1; "
                   "ip link set x1 up", "nft flush ruleset")
        case.remove(c)


def test_raw(case):
    """The default set has NET_RAW: frames of any kind on our link, under any
    address, and on the other network's."""
    c = case.container()
    case.deeds(c, "true")
    case.join(c, "other")
    case.silent("the other network")
    case.deeds(c, "true")
    case.remove(c)


def test_other_namespaces(case):
    """A namespace of its own has no link; and who may make one, may move ours
    there, where it still leads to the gateway alone."""
    c = case.container(*ADMIN, "--cap-add", "SYS_ADMIN", "--security-opt",
                       "seccomp=unconfined", "--security-opt",
                       "apparmor=unconfined")
    case.deeds(c, "unshare -n sleep 1 & sleep 0.2; ip link set eth0 netns $!; "
               "wait")
    got = case.fetch(c, EVIL)
    assert "hello" not in got.stdout, got
    case.remove(c)


def test_host_network(case):
    """A container joins another's namespace (`--network container:`): it is
    where that one is."""
    c = case.container()
    d = case.container(network=f"container:{c}")
    got = case.fetch(d, EVIL)
    assert got.returncode and "hello" not in got.stdout, got
    assert "hello" in case.fetch(d, "allowed.test").stdout
    case.remove(d, c)


def test_tables_taken_first(case):
    """Somebody inside owns a table of that name before we come: then nothing
    of ours comes, and the log of its session says why."""
    c = case.container(*ADMIN, network="other")
    case.pids[c] = case.docker.pid(c)
    with subprocess.Popen(case.argv(c, "python3", "-c", OWNER), text=True,
                          stdout=subprocess.PIPE) as owner:
        said = owner.stdout.readline().strip()
        try:
            if said == "0":  # from Linux 5.12 on
                got = case.docker.run("network", "connect", "agents", c,
                                      check=False)
                assert got.returncode and "no table" in got.stderr, got
                assert case.docker.links(c) == ["eth0", "lo"]
                wait(lambda: not case.daemon.sandboxes(), "its end")
                case.told("its container was not started: no table")
        finally:
            owner.kill()
    case.docker.run("network", "connect", "agents", c)
    case.remove(c)


def test_nothing_stays(case):
    """All of them are gone, and so is what they made."""
    wait(lambda: not case.daemon.sandboxes(), "their ends")
    now = settle(lambda: [n for n in leftovers()["links"]
                          if n.startswith("sp")], [])
    assert now == [], now
    assert "sallyport_lock" not in json.dumps(leftovers())
