# SPDX-License-Identifier: Apache-2.0
"""What test_attacks_nest.py runs in a sandbox. Each script prints lines; one that
begins with LEAK is a hole, and "done" is the last."""

PRELUDE = r"""
import ctypes, errno, os, socket, struct, subprocess, sys, fcntl
libc = ctypes.CDLL(None, use_errno=True)
MS_BIND, MS_REC, MS_MOVE, MS_REMOUNT, DETACH = 4096, 16384, 8192, 32, 2
NEWUSER, NEWNS, NEWNET, NEWPID = 0x10000000, 0x20000, 0x40000000, 0x20000000
NEWCGROUP = 0x02000000
def call(name, *a):
    ctypes.set_errno(0)
    a = [x.encode() if isinstance(x, str) else x for x in a]
    r = getattr(libc, name)(*a)
    return ctypes.get_errno() if r < 0 else 0
def number(nr, *a):
    ctypes.set_errno(0)
    r = libc.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in (nr, *a)])
    return (r, ctypes.get_errno())
def nested(flags):
    uid, gid = os.getuid(), os.getgid()
    if call("unshare", NEWUSER | flags):
        print("NO NAMESPACE"); sys.exit(1)
    open("/proc/self/setgroups", "w").write("deny")
    open("/proc/self/uid_map", "w").write(f"0 {uid} 1")
    open("/proc/self/gid_map", "w").write(f"0 {gid} 1")
def leak(*what):
    print("LEAK", *what, flush=True)
def ended(pid):
    if os.waitpid(pid, 0)[1]: leak("a part of this test died")
def ip(*args):
    return subprocess.run(["ip", *args], capture_output=True, text=True)
"""

OUT = r"""
target = sys.argv[1]
# With every capability, but in the sandbox's network namespace.
pid = os.fork()
if pid == 0:
    nested(0)
    for args in (("link", "set", "eth0", "down"), ("addr", "add", "192.0.2.9/24", "dev", "eth0"),
                 ("route", "add", "default", "dev", "eth0"), ("neigh", "add", "192.0.2.8", "lladdr", "2:0:0:0:0:1", "dev", "eth0"),
                 ("route", "add", "local", target, "dev", "lo"),
                 ("rule", "add", "fwmark", "1", "lookup", "100"),
                 ("link", "add", "dummy0", "type", "dummy"),
                 ("link", "add", "mv0", "link", "eth0", "type", "macvlan"),
                 ("link", "add", "v0", "type", "veth", "peer", "name", "v1"),
                 ("link", "add", "t0", "type", "ipip", "remote", target),
                 ("link", "set", "eth0", "netns", str(os.getpid()))):
        if ip(*args).returncode == 0:
            leak(*args)
    if subprocess.run(["tc", "qdisc", "add", "dev", "eth0", "clsact"],
                      capture_output=True).returncode == 0:
        leak("tc")
    for level, option in ((socket.SOL_SOCKET, 36), (socket.SOL_SOCKET, 33),
                          (socket.IPPROTO_IP, 19), (socket.IPPROTO_IPV6, 75)):
        s = socket.socket(socket.AF_INET6 if level == 41 else socket.AF_INET)
        try:
            s.setsockopt(level, option, 1); leak("option", level, option)
        except OSError: pass
    os._exit(0)
ended(pid)
# In a network namespace of its own.
r, w = os.pipe(); r2, w2 = os.pipe()
inner = os.fork()
if inner == 0:
    os.close(r); os.close(w2)
    nested(NEWNET | NEWNS)
    if sorted(i[1] for i in socket.if_nameindex()) != ["lo"]:
        leak("interfaces", socket.if_nameindex())
    os.write(w, b"x"); os.read(r2, 1)
    if sorted(i[1] for i in socket.if_nameindex()) != ["lo"]:
        leak("came in", socket.if_nameindex())
    for args in (("link", "set", "lo", "up"), ("link", "add", "d0", "type", "veth", "peer", "name", "d1"),
                 ("link", "set", "d1", "up"), ("addr", "add", "10.9.9.9/8", "dev", "d0"), ("link", "set", "d0", "up"),
                 ("route", "add", "default", "dev", "d0"),
                 ("route", "add", "default", "via", target, "dev", "d0", "onlink"),
                 ("link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", "1"),
                 ("link", "add", "br0", "type", "bridge"), ("link", "add", "w0", "type", "wireguard"),
                 ("link", "add", "x0", "type", "vxlan", "id", "1", "remote", target, "dstport", "53")):
        ip(*args)
    if "d0" not in [i[1] for i in socket.if_nameindex()]: leak("no link to try it with")
    for family, kind, proto in ((socket.AF_PACKET, socket.SOCK_RAW, 0x300), (socket.AF_INET, socket.SOCK_RAW, 255),
                                (socket.AF_INET6, socket.SOCK_RAW, 58), (socket.AF_NETLINK, socket.SOCK_RAW, 12),
                                (socket.AF_NETLINK, socket.SOCK_RAW, 4), (40, socket.SOCK_STREAM, 0), (44, socket.SOCK_RAW, 0)):
        try: socket.socket(family, kind, proto); leak("socket", family, kind, proto)
        except OSError: pass
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
        for mark in 0, 1:
            s = socket.socket(socket.AF_INET, kind); s.settimeout(0.5)
            try:
                if mark: s.setsockopt(socket.SOL_SOCKET, 36, mark)
                s.setsockopt(socket.IPPROTO_IP, 19, 1)
            except OSError: pass
            try:
                s.connect((target, 53)); s.send(b"leak from a nested namespace")
                if kind == socket.SOCK_STREAM: leak("connected")
            except OSError: pass
    os._exit(0)
os.read(r, 1)
if ip("link", "set", "eth0", "netns", str(inner)).returncode == 0: leak("moved eth0")
os.write(w2, b"x")
ended(inner)
if sorted(i[1] for i in socket.if_nameindex()) != ["eth0", "lo"]: leak("ours", socket.if_nameindex())
print("done")
"""

CALLS = r"""
def refused(what, nr, *a):
    r, e = number(nr, *a)
    if r >= 0 or e not in (errno.EPERM, errno.ENOSYS): leak(what, r, e)
def tries():
    buf = ctypes.create_string_buffer(256)
    refused("bpf", 321, 0, buf, 120)
    refused("io_uring_setup", 425, 8, buf)
    refused("keyctl", 250, 0, -3, 0)
    refused("add_key", 248, b"user", b"a", b"b", 1, -3)
    refused("userfaultfd", 323, 1)
    refused("perf_event_open", 298, buf, 0, -1, -1, 0)
    refused("init_module", 175, buf, 1, b"")
    refused("finit_module", 313, 0, b"", 0)
    refused("kexec_load", 246, 0, 0, 0, 0)
    refused("ptrace", 101, 16, 1, 0, 0)
    refused("process_vm_readv", 310, os.getpid(), 0, 0, 0, 0, 0)
    refused("open_by_handle_at", 304, 3, buf, 0)
    refused("name_to_handle_at", 303, -100, b"/", buf, buf, 0)
    refused("clone3", 435, buf, 88)
    refused("open_tree", 428, -100, b"/", 1)
    refused("fsopen", 430, b"proc", 0)
    refused("mount_setattr", 442, -100, b"/", 0, buf, 32)
    refused("syslog", 103, 3, buf, 100)
    refused("reboot", 169, 0, 0, 0, 0)
    refused("quotactl", 179, 0, b"/", 0, buf)
    refused("swapon", 167, b"/x", 0)
    for what in "net", "mnt", "user", "pid", "ipc", "uts", "cgroup":
        for pid in 1, os.getppid():
            try: fd = os.open(f"/proc/{pid}/ns/{what}", os.O_RDONLY)
            except OSError: continue
            refused("setns " + what, 308, fd, 0)
            os.close(fd)
    for request in 0x5412, 0x541C, 0x5423:  # TIOCSTI, TIOCLINUX, TIOCSETD
        try: fcntl.ioctl(0, request, b"x"); leak("ioctl", request)
        except OSError as e:
            if e.errno != errno.EPERM: leak("ioctl", request, e.errno)
    for mode in 0o4755, 0o2755:
        if call("chmod", sys.argv[1], mode) != errno.EPERM: leak("set-id", oct(mode))
tries()
pid = os.fork()
if pid == 0:
    nested(NEWNS | NEWNET | NEWCGROUP)
    tries()
    pid = os.fork()
    if pid == 0:  # and in one below that
        uid = os.getuid()
        if call("unshare", NEWUSER | NEWNS): leak("no second level")
        tries()
        os._exit(0)
    ended(pid)
    os._exit(0)
ended(pid)
print("done")
"""

MACHINE = r"""
outer = set(os.listdir("/proc"))
nested(NEWNS | NEWCGROUP | NEWNET)
os.mkdir("/tmp/m")
def mount(kind, *rest, source="none", flags=0, data=None):
    return call("mount", source, "/tmp/m", kind, flags, data) == 0
for kind in "devtmpfs", "debugfs", "tracefs", "securityfs", "configfs", "bpf", "binfmt_misc", "pstore", "efivarfs", "fusectl":
    if mount(kind):
        for name in os.listdir("/tmp/m"):
            if kind != "binfmt_misc" or name not in ("register", "status"): leak(kind, name)
        call("umount2", "/tmp/m", DETACH)
for disk in [d for d in os.listdir("/sys/block")] if os.path.isdir("/sys/block") else []:
    for kind in "ext4", "xfs", "btrfs", "vfat", "iso9660":
        if mount(kind, source="/dev/" + disk, flags=1): leak(disk, kind)
    if call("mknod", "/tmp/" + disk, 0o60600, os.makedev(254, 0)) == 0: leak("mknod", disk)
# Without a pid namespace of its own it has no /proc to mount; with one it sees itself.
if mount("proc"): leak("proc of the sandbox")
# What it mounts itself, it may not write to.
def poke(path, text):
    try:
        with open(path, "w") as f: f.write(text)
        leak("wrote", path)
    except OSError: pass
if mount("sysfs"):
    for path in "kernel/uevent_helper", "power/state", "kernel/mm/ksm/run", "module/printk/parameters/time":
        poke("/tmp/m/" + path, "0")
    call("umount2", "/tmp/m", DETACH)
for kind, data in (("cgroup2", None), ("cgroup", "memory"), ("cgroup", "pids"), ("cgroup", "cpu"), ("cgroup", "devices"),
                   ("cgroup", "none,name=mine"), ("cgroup", "release_agent=/tmp/x,memory")):
    if not mount(kind, data=data): continue
    for top, dirs, files in os.walk("/tmp/m"):
        for f in files:
            if f in ("release_agent", "cgroup.procs", "tasks", "memory.max", "memory.limit_in_bytes", "pids.max", "cpu.max",
                     "cpu.cfs_quota_us", "devices.allow", "notify_on_release"):
                poke(f"{top}/{f}", "0")
    call("umount2", "/tmp/m", DETACH)
for path in ("kernel/core_pattern", "kernel/modprobe", "vm/drop_caches", "kernel/sysrq", "fs/binfmt_misc/register",
             "kernel/yama/ptrace_scope", "kernel/dmesg_restrict"):
    poke("/proc/sys/" + path, "0")
poke("/proc/sysrq-trigger", "h")
pid = os.fork()
if pid == 0:
    call("unshare", NEWPID)
    if os.fork() == 0:
        if not mount("proc"): print("no proc"); os._exit(0)
        seen = [p for p in os.listdir("/tmp/m") if p.isdigit()]
        if seen != ["1"]: leak("processes", seen)
        for path in "sys/kernel/core_pattern", "sysrq-trigger", "sys/vm/drop_caches":
            poke("/tmp/m/" + path, "0")
        os._exit(0)
    os.wait(); os._exit(0)
ended(pid)
print("done")
"""

HIDDEN = r"""
secrets = sys.argv[1:]
word = b"top" + b"-secret"
def look(how, top=""):
    for path in secrets:
        for at in (top + path, top + path + "/key", top + path + "/id"):
            try:
                with open(at, "rb") as f:
                    if word in f.read(): leak(how, at)
            except OSError: pass
look("as it is")
def inner(fn):
    pid = os.fork()
    if pid == 0:
        nested(NEWNS)
        try: fn()
        except OSError as e: print(fn.__name__, e)
        os._exit(0)
    ended(pid)
def unmount():
    for path in secrets:
        for flags in 0, 1, DETACH, 4, 8:
            if call("umount2", path, flags) == 0: leak("unmounted", path)
    look("unmount")
def remount():
    for path in secrets + ["/", "/usr", "/etc"]:
        for flags in (MS_REMOUNT, MS_REMOUNT | MS_BIND):
            if call("mount", "none", path, None, flags, None) == 0:
                try: open(path + "/nest-was-here", "w"); leak("writable", path)
                except OSError: pass
def bind():
    os.mkdir("/tmp/b")
    for path in secrets:
        way = path
        while way != "/":
            way = os.path.dirname(way)
            if call("mount", way, "/tmp/b", None, MS_BIND, None) == 0:
                look("bind " + way, "/tmp/b")
                rest = path[len(way.rstrip("/")):]
                for end in "", "/key", "/id":
                    try:
                        if word in open("/tmp/b" + rest + end, "rb").read(): leak("bind", way)
                    except OSError: pass
                call("umount2", "/tmp/b", DETACH)
def move():
    os.mkdir("/tmp/v")
    for path in secrets:
        if call("mount", path, "/tmp/v", None, MS_MOVE, None) == 0: leak("moved", path)
    look("move")
def overlay():
    os.mkdir("/tmp/o"); os.mkdir("/tmp/ou"); os.mkdir("/tmp/ow")
    for path in secrets:
        way = path
        while way != "/":
            way = os.path.dirname(way)
            for data in (f"lowerdir={way}:/tmp", f"lowerdir={way},upperdir=/tmp/ou,workdir=/tmp/ow,userxattr"):
                if call("mount", "o", "/tmp/o", "overlay", 0, data) == 0:
                    rest = path[len(way.rstrip("/")):]
                    for end in "", "/key", "/id":
                        try:
                            if word in open("/tmp/o" + rest + end, "rb").read(): leak("overlay", way)
                        except OSError: pass
                    call("umount2", "/tmp/o", DETACH)
def detach():
    "All of it at once; descriptors into it are kept."
    held = [(os.open(os.path.dirname(p), os.O_RDONLY | os.O_DIRECTORY), os.path.basename(p)) for p in secrets
            if os.path.isdir(os.path.dirname(p))]
    call("mount", "none", "/tmp", "tmpfs", 0, None)
    os.mkdir("/tmp/old"); os.chdir("/tmp")
    if number(155, b"/tmp", b"/tmp/old")[0]: leak("pivot_root"); os._exit(1)
    os.chdir("/")
    look("old root", "/old")
    if call("umount2", "/old", DETACH): leak("the own root")
    for fd, name in held:
        for at in name, name + "/key", name + "/id", "../" + name:
            try:
                if word in os.read(os.open(at, os.O_RDONLY, dir_fd=fd), 100): leak("detached", at)
            except OSError: pass
        try: os.rename(name, name + ".gone", src_dir_fd=fd, dst_dir_fd=fd)
        except OSError: continue
        for at in name, name + ".gone", name + ".gone/key", name + ".gone/id":
            try:
                if word in os.read(os.open(at, os.O_RDONLY, dir_fd=fd), 100): leak("renamed", at)
            except OSError: pass
def root():
    "Other roots of other processes."
    for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
        look("root of " + pid, f"/proc/{pid}/root")
        look("cwd of " + pid, f"/proc/{pid}/cwd/..")
    call("chroot", "/tmp"); os.chdir("/"); os.chdir("..")
for fn in unmount, remount, bind, move, overlay, root, detach: inner(fn)
# Renamed from in there: still nobody reads it here.
look("afterwards")
for path in secrets:
    for end in ".gone", ".gone/key", ".gone/id":
        try:
            if word in open(path + end, "rb").read(): leak("afterwards", path + end)
        except OSError: pass
print("done")
"""

# What is mounted from inside must be a group without the limits; @argv: processes
# that may be made.
GROUPS = r"""
import time
nested(NEWNS | NEWCGROUP)
os.mkdir("/tmp/g")
for kind, data in ("cgroup", "pids"), ("cgroup", "memory"), ("cgroup2", None):
    if call("mount", "none", "/tmp/g", kind, 0, data): continue
    print("mounted", kind, data)
    for name, text in (("pids.max", "max"), ("memory.max", "max"), ("memory.memsw.limit_in_bytes", "-1"),
                       ("memory.limit_in_bytes", "-1"), ("cgroup.max.depth", "3"), ("notify_on_release", "1")):
        try:
            with open("/tmp/g/" + name, "w") as f: f.write(text)
        except OSError: pass
    call("umount2", "/tmp/g", DETACH)
n, most = 0, int(sys.argv[1])
try:
    while n < most:
        if os.fork() == 0: time.sleep(9); os._exit(0)
        n += 1
except OSError: print("refused")
print("made", n, "done")
"""
