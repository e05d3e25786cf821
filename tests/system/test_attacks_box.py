# SPDX-License-Identifier: Apache-2.0
"""Attacks from inside on the sockets and processes of the machine and of
sallyport."""
import fcntl
import glob
import os
import socket
import stat
import subprocess

from box_lab import box, GROUND, ground, make, spawn, whole
from harness import check, descendants

# --- unix sockets ------------------------------------------------------------

CONNECT = """
import socket, sys, os
for path in sys.argv[1:]:
    path = path.replace("@", "\\0", 1) if path.startswith("@") else path
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET:
        s = socket.socket(socket.AF_UNIX, kind)
        try: s.connect(path); print("REACHED", ascii(path), flush=True)
        except OSError: pass
        try: s.sendto(b"x", path); print("SENT", ascii(path), flush=True)
        except OSError: pass
        s.close()
print("done")
"""


def listener(case, path, bind=None, kind=socket.SOCK_STREAM, cwd=None):
    """A socket of the caller's at @path, bound by another name."""
    s = socket.socket(socket.AF_UNIX, kind)
    here = os.getcwd()
    try:
        if cwd:
            os.chdir(cwd)
        s.bind(bind or path)
    finally:
        os.chdir(here)
    if kind != socket.SOCK_DGRAM:
        s.listen(5)
    return s


def reach(case, cwd, *paths):
    for p in paths:
        if not p.startswith("@") and os.path.exists(p):
            os.chmod(p, 0o777)
            case.mine(p)
    run = box(case, cwd, "python3", "-c", CONNECT, *paths)
    check("done" in run.out and "REACHED" not in run.out and "SENT" not in run.out, run)


def test_socket_absolute(case):
    cwd, away = ground(case, "s-abs"), ground(case, "s-abs-away")
    socks = [listener(case, f"{d}/{k}", kind=k) for d in (cwd, away)
             for k in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET)]
    reach(case, cwd, *glob.glob(cwd + "/*"), *glob.glob(away + "/*"))
    del socks


def test_socket_bound_by_a_relative_path(case):
    cwd, away = ground(case, "s-rel"), ground(case, "s-rel-away")
    a = listener(case, cwd + "/rel", "rel", cwd=cwd)
    b = listener(case, away + "/rel", "./rel", cwd=away)
    reach(case, cwd, cwd + "/rel", away + "/rel")
    del a, b


def test_socket_renamed_after_bind(case):
    """bind, chmod, rename: how careful daemons do it."""
    away = ground(case, "s-ren-away")
    a = listener(case, away + "/sock.tmp")
    os.rename(away + "/sock.tmp", away + "/sock")
    reach(case, ground(case, "s-ren"), away + "/sock")
    del a


def test_socket_hard_link(case):
    away = ground(case, "s-link-away")
    a = listener(case, away + "/sock")
    os.mkdir(away + "/deep")
    case.mine(away + "/deep")
    os.link(away + "/sock", GROUND + "/second-" + case.who)
    reach(case, ground(case, "s-link"), GROUND + "/second-" + case.who)
    del a


def test_socket_with_a_newline(case):
    away = ground(case, "s-nl")
    a = listener(case, away + "/a\nb")
    reach(case, ground(case, "s-nl-cwd"), away + "/a\nb")
    del a


def test_socket_of_another_network_namespace(case):
    """A container's daemon with its socket in a shared directory."""
    away = ground(case, "s-net")
    p = subprocess.Popen(["unshare", "-n", "python3", "-c", f"""
import socket, time
s = socket.socket(socket.AF_UNIX); s.bind("{away}/sock"); s.listen(5)
print("up", flush=True); time.sleep(60)"""], stdout=subprocess.PIPE, text=True)
    try:
        check(p.stdout.readline() == "up\n")
        reach(case, ground(case, "s-net-cwd"), away + "/sock")
    finally:
        p.kill()
        p.communicate()


def test_socket_made_later(case):
    """In a directory where one was, and in the working directory."""
    cwd = ground(case, "s-later")
    away = make(case, ground(case, "s-later-away") + "/deep")
    first = listener(case, away + "/first")
    p, _ = spawn(case, cwd, "python3", "-c", "import sys\nprint('up', flush=True)\n"
                 "sys.stdin.readline()" + CONNECT, away + "/second", "@later",
                 stdin=subprocess.PIPE)
    check(p.stdout.readline() == "up\n")
    second = listener(case, away + "/second")
    os.chmod(away + "/second", 0o777)
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0later")
    abstract.listen(5)
    out, err = p.communicate("go\n", timeout=60)
    check("done" in out and "REACHED" not in out and "SENT" not in out, (out, err))
    del first, second, abstract


def test_many_sockets_do_not_stop_everybody(case):
    """Any user can bind sockets: that must not keep others from running."""
    away = ground(case, "s-many")
    socks = [listener(case, f"{away}/{i}", kind=socket.SOCK_DGRAM)
             for i in range(1100)]
    run = box(case, ground(case, "s-many-cwd"), "true")
    for s in socks:
        s.close()
    check(run.status == 0, run)


# --- what a command may leave behind, and get ---------------------------------

SETID = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
O_TMPFILE = 0o20200000
def tried(what, *a):
    r = libc.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in a])
    e = ctypes.get_errno()
    print(what, "ok" if r >= 0 else os.strerror(e), flush=True)
    return r
A = ctypes.c_long(-100)
for bits in 0o4755, 0o2755, 0o2644, 0o6711:
    n = "%o" % bits
    open("f" + n, "w").write("#!/bin/sh\\nid\\n")
    tried("chmod", 90, ("f" + n).encode(), bits)
    tried("fchmodat", 268, -100, ("f" + n).encode(), bits)
    tried("fchmodat2", 452, -100, ("f" + n).encode(), bits, 0)
    fd = os.open("f" + n, os.O_RDONLY)
    tried("fchmod", 91, fd, bits)
    tried("open", 2, ("o" + n).encode(), 0o102, bits)
    tried("openat", 257, -100, ("p" + n).encode(), 0o102, bits)
    tried("creat", 85, ("c" + n).encode(), bits)
    tried("mknod", 133, ("n" + n).encode(), 0o100000 | bits, 0)
    tried("mknodat", 259, -100, ("N" + n).encode(), 0o100000 | bits, 0)
    tried("mkdir", 83, ("d" + n).encode(), bits)
    for nr in 2, 257:
        dir = b"."
        a = (nr, dir) if nr == 2 else (nr, -100, dir)
        fd = tried("tmpfile", *a, O_TMPFILE | os.O_RDWR, bits)
        if fd >= 0:
            if not bits & 0o4000:
                os.write(fd, b"#!/bin/sh\\nid\\n")
            tried("linkat", 265, -100, b"/proc/self/fd/%d" % fd, -100, b"t%d" % nr + n.encode(), 0x400)
            # An ACL that lets everybody execute keeps the bit that chmod clears.
            acl = (2).to_bytes(4, "little") + b"".join(
                t.to_bytes(2, "little") + p.to_bytes(2, "little") + (0xffffffff).to_bytes(4, "little")
                for t, p in ((1, 7), (4, 5), (0x20, 5)))
            try: os.setxattr(fd, "system.posix_acl_access", acl); print("acl ok")
            except OSError as e: print("acl", e)
print("end")
"""


def test_no_set_id_file_is_left(case):
    """As root the file would be root's, on disk, to be run by anybody."""
    cwd = ground(case, "setid")
    run = box(case, cwd, "python3", "-c", SETID)
    left = []
    for root, dirs, files in os.walk(cwd):
        for name in files + dirs:
            st = os.lstat(os.path.join(root, name))
            if st.st_mode & (stat.S_ISUID | stat.S_ISGID):
                left.append(f"{name}: mode {st.st_mode:o}, of {st.st_uid}:{st.st_gid}, "
                            f"{st.st_size} bytes")
    check("end" in run.out and not left, ("\n".join(left), str(run)))


RIGHTS = """
import ctypes, os, socket, fcntl, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(what, *a):
    r = libc.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in a])
    if r >= 0: print("DID", what, r, flush=True)
for n, flags in (("user", 0x10000000), ("mnt", 0x20000), ("pid", 0x20000000), ("net", 0x40000000),
                 ("ipc", 0x08000000), ("uts", 0x04000000), ("cgroup", 0x02000000), ("time", 0x80)):
    call("unshare " + n, 272, flags)
    call("unshare high " + n, 272, flags | 1 << 40)
call("clone3", 435, 0, 0)
call("keyctl", 250, 0, -3 & 0xffffffff, 0)
call("add_key", 248, b"user", b"a", b"b", 1, -3 & 0xffffffff)
call("io_uring", 425, 8, ctypes.create_string_buffer(200))
call("bpf", 321, 0, ctypes.create_string_buffer(200), 72)
call("userfaultfd", 323, 0)
call("perf", 298, ctypes.create_string_buffer(200), 0, -1, -1, 0)
call("ptrace", 101, 16, 1, 0, 0)
call("process_vm_readv", 310, 1, 0, 0, 0, 0, 0)
call("mount", 165, b"none", b"/tmp", b"tmpfs", 0, 0)
call("chroot", 161, b"/")
call("pivot_root", 155, b".", b".")
call("open_tree", 428, -100, b"/", 1)
call("fsopen", 430, b"tmpfs", 0)
call("setns", 308, 0, 0)
call("open_by_handle_at", 304, 0, 0, 0)
call("setuid 0", 105, 0)
call("setgid 0", 106, 0)
call("setgroups", 116, 0, 0)
call("mknod", 133, b"dev", 0o20666, 0x103)
call("mknod block", 133, b"devb", 0o60666, 0xfe00)
call("swapon", 167, b"x", 0)
call("sethostname", 170, b"x", 1)
call("reboot", 169, 0xfee1dead, 672274793, 0, 0)
call("syslog", 103, 3, ctypes.create_string_buffer(100), 100)
call("fanotify", 300, 0x4, 0)
call("tiocsti", 16, 0, 0x5412, ctypes.create_string_buffer(b"x"))
call("tiocsti high", 16, 0, 0x5412 | 1 << 40, ctypes.create_string_buffer(b"x"))
call("tioclinux", 16, 0, 0x541c, ctypes.create_string_buffer(b"\\x02"))
call("kill all but us", 62, 1 << 20, 9)
for family, kind in ((17, 3), (2, 3), (10, 3), (40, 1), (16, 3), (38, 5), (29, 3), (31, 3)):
    if family == 16: continue
    try: socket.socket(family, kind, 0); print("DID socket", family)
    except OSError: pass
for path in ("/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/disable_ipv6",
             "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger",
             "/proc/sys/kernel/domainname", "/proc/1/mem", "/proc/1/environ", "/proc/1/fd/0",
             "/proc/kcore", "/proc/kmsg", "/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/fuse",
             "/dev/net/tun", "/dev/kvm", "/sys/kernel/uevent_helper", "/sys/fs/cgroup/cgroup.procs",
             "/sys/power/state", "/proc/self/uid_map", "/proc/self/gid_map",
             "/proc/self/setgroups"):
    for mode in os.O_WRONLY, os.O_RDONLY:
        if mode == os.O_RDONLY and path.startswith(("/proc/sys/", "/sys/", "/proc/self")): continue
        try: fd = os.open(path, mode)
        except OSError: continue
        if mode == os.O_WRONLY and path.startswith("/proc/self"):
            try: os.write(fd, b"0 0 1")
            except OSError: continue
        print("DID open", path, mode, flush=True)
print("ids", os.getresuid(), os.getresgid(), flush=True)
print("end")
"""


def test_rights(case):
    run = box(case, ground(case, "rights"), "python3", "-c", RIGHTS)
    check("end" in run.out and "DID" not in run.out, run)


def test_setuid_programs_do_not_work(case):
    run = box(case, ground(case, "sudo"), "sh", "-c",
              "sudo -n id; su -c id; for f in /usr/bin/su /usr/bin/passwd /usr/bin/mount; do "
              "test -e $f && find $f -perm -4000; done; mount -t tmpfs x /mnt && echo DID; id -u")
    check("uid=0" not in run.out and "DID" not in run.out, run)


def test_descriptors(case):
    """Only 0-2, also where the caller leaks more, some without close-on-exec."""
    cwd = ground(case, "fds")
    secret = os.open(make(case, cwd + "/secret", "secret"), os.O_RDWR)
    high = fcntl.fcntl(secret, fcntl.F_DUPFD, 900)
    a, b = socket.socketpair()
    run = box(case, cwd, "sh", "-c", "ls -l /proc/self/fd /proc/1/fd; echo end",
              pass_fds=(secret, high, a.fileno()))
    os.close(secret)
    os.close(high)
    fds = [line.split(" -> ")[0].split()[-1] for line in run.out.splitlines() if " -> " in line]
    check(set(fds) <= {"0", "1", "2", "3"} and "secret" not in run.out
          and "socket" not in run.out and "end" in run.out, run)


def test_environment(case):
    """Nothing of ours, nothing that leads to a host's service."""
    env = {k: "/secret/" + k for k in (
        "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "XDG_RUNTIME_DIR",
        "LD_PRELOAD", "LD_LIBRARY_PATH", "SALLYPORT_KEY", "NOTIFY_SOCKET", "LISTEN_FDS",
        "GPG_AGENT_INFO", "WAYLAND_DISPLAY", "BASH_ENV", "HTTP_PROXY", "Https_Proxy",
        "NO_PROXY", "no_proxy")}
    env.pop("LD_PRELOAD")
    run = box(case, ground(case, "env"), "sh", "-c",
              "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; cat /proc/*/cmdline | tr '\\0' ' '",
              env=env)
    check("/secret/" not in run.out and "--args" not in run.out, run)
    check("PATH=" in run.out, run)


def test_our_processes_by_id(case):
    """Every id of ours and of the machine, by every way to reach a process."""
    cwd = ground(case, "pids")
    p, log = spawn(case, cwd, "python3", "-c", """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pids = [int(x) for x in sys.stdin.readline().split()] + [1]
for pid in pids:
    for sig in 0, 9, 19:
        if pid == 1: break
        for target in pid, -pid:
            try: os.kill(target, sig); print("DID kill", target)
            except OSError: pass
    for what in "mem", "environ", "fd/0", "root/etc/passwd", "cwd/x", "maps", "stack", "syscall", "ns/net":
        try: open(f"/proc/{pid}/{what}", "rb").read(1); print("DID open", pid, what)
        except OSError: pass
    try:
        fd = os.pidfd_open(pid)
        if libc.syscall(438, fd, 0, 0) >= 0: print("DID getfd", pid)
    except OSError: pass
    try: os.setpriority(os.PRIO_PROCESS, pid, 19); pid != 1 and print("DID nice", pid)
    except OSError: pass
    try: os.sched_setaffinity(pid, {0}); pid != 1 and print("DID affinity", pid)
    except OSError: pass
import signal
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
os.kill(1, 9); os.kill(1, 19); os.kill(1, 10)
try: os.kill(-1, signal.SIGSTOP)
except OSError: pass
print("end", flush=True)
""", stdin=subprocess.PIPE)
    case.child(p, "gate")
    case.child(p, "ledger")
    ids = [p.pid, os.getpid(), os.getppid(), *descendants(p.pid)]
    out, err = p.communicate(" ".join(map(str, ids)) + "\n", timeout=90)
    check("end" in out and "DID" not in out, (out, err))
    check(p.returncode == 0, p.returncode)
    whole(log)
