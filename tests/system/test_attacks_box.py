# SPDX-License-Identifier: Apache-2.0
"""Attacks on the box: from inside on the files, sockets and processes of the
machine and of sallyport; from outside on how sallyport is started and ended.

Everything happens outside of /tmp, which is private in a sandbox and would hide
most mistakes."""
import fcntl
import glob
import json
import os
import pty
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
import time

from harness import USER, Run, check, descendants, silent

GROUND = "/srv"


def ground(case, name):
    """A directory of the caller's on a file system of our mount namespace."""
    if not os.path.ismount(GROUND):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "none", GROUND],
                       check=True)
    top = f"{GROUND}/{case.who}"
    if not os.path.isdir(top):
        os.mkdir(top, 0o755)
        case.mine(top)
    path = f"{top}/{name}"
    os.mkdir(path, 0o755)
    case.mine(path)
    return path


def make(case, path, text=None, mode=None):
    """A file, or without a text a directory, of the caller's."""
    if text is None:
        os.makedirs(path, exist_ok=True)
    else:
        with open(path, "w") as f:
            f.write(text)
    if mode is not None:
        os.chmod(path, mode)
    case.mine(path)
    return path


def argv_of(case, *args):
    return [*case.drop(), case.binary, *args]


def box(case, cwd, *command, args=(), log=None, env=None, timeout=30, unset=(),
        prefix=(), **kw):
    """`sallyport run` in this directory; state below its parent unless told."""
    log = log or make(case, f"{case.lab.dir}/box-{case.who}-{time.monotonic_ns()}")
    os.chmod(log, 0o700) if os.path.isdir(log) else None
    full = {**case.env(), **(env or {})}
    for name in unset:
        full.pop(name, None)
    kw.setdefault("stdin", subprocess.DEVNULL)
    kw.setdefault("stdout", subprocess.PIPE)
    kw.setdefault("stderr", subprocess.PIPE)
    p = subprocess.run([*prefix, *argv_of(case, "run", "--log", log, *args, "--",
                                          *command)],
                       cwd=cwd, env=full, text=True, timeout=timeout, **kw)
    return Run(p, log)


def spawn(case, cwd, *command, args=(), log=None, env=None, **kw):
    log = log or make(case, f"{case.lab.dir}/box-{case.who}-{time.monotonic_ns()}")
    kw.setdefault("stdin", subprocess.DEVNULL)
    p = subprocess.Popen(argv_of(case, "run", "--log", log, *args, "--", *command),
                         cwd=cwd, env={**case.env(), **(env or {})}, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
    return p, log


def records(log):
    with open(log + "/audit.jsonl") as f:
        return [json.loads(line) for line in f]


def whole(log):
    """The log is whole lines of JSON from the opening to the close."""
    lines = records(log)
    check(lines and lines[-1]["class_uid"] == 6002, lines[-1:])
    return lines


def processes():
    """What runs our binary, our init or bwrap, of everybody: {pid: argv}."""
    found = {}
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                argv = f.read()
            ns = os.readlink(f"/proc/{pid}/ns/mnt")
        except OSError:
            continue
        if argv:
            found[int(pid)] = (argv, ns)
    return found


def marked(mark):
    """Pids of processes whose arguments or environment hold this mark."""
    found = []
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        for what in "cmdline", "environ":
            try:
                with open(f"/proc/{pid}/{what}", "rb") as f:
                    if mark.encode() in f.read():
                        found.append(int(pid))
                        break
            except OSError:
                pass
    return found


def gone(mark, seconds=3):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not marked(mark):
            return []
        time.sleep(0.02)
    return marked(mark)


def tool(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            return f.read().startswith("strace")
    except OSError:
        return True


def ended(mark):
    """The command lines of those that are left, which are then killed."""
    left = [pid for pid in gone(mark) if not tool(pid)]
    said = []
    for pid in left:
        with open(f"/proc/{pid}/cmdline") as f:
            said.append(f"{pid}: " + f.read().replace("\0", " "))
        os.kill(pid, signal.SIGKILL)
    return said


# --- the log, the policy, the configuration ----------------------------------

def test_log_below_cwd_every_way(case):
    """Rename, hard link, symlink, /proc/self/root, /proc/self/cwd."""
    cwd = ground(case, "log-in-cwd")
    run = box(case, cwd, "sh", "-c", r"""
for way in logs/a /proc/self/cwd/logs/a /proc/self/root$PWD/logs/a /proc/1/root$PWD/logs/a \
    /proc/1/cwd/logs/a ./logs/../logs/a; do
    cat $way/audit.jsonl 2>/dev/null && echo READ $way
    ln $way/audit.jsonl stolen 2>/dev/null && echo LINKED $way
    echo evil >> $way/audit.jsonl 2>/dev/null && echo WROTE $way
    rm -f $way/audit.jsonl 2>/dev/null
    echo evil > $way/audit.jsonl.1 2>/dev/null && echo MADE $way
done
mv logs gone 2>/dev/null && echo MOVED
mv logs/a b 2>/dev/null && echo MOVED
mv -T logs/a logs/b 2>/dev/null && echo MOVED
rmdir logs/a logs 2>/dev/null && echo REMOVED
python3 -c '
import ctypes
libc = ctypes.CDLL(None)
for a, b in (b"logs", b"x"), (b"logs/a", b"x"), (b"x", b"logs"):
    import os
    try: os.mkdir("x")
    except OSError: pass
    if libc.renameat2(-100, a, -100, b, 2) == 0: print("EXCHANGED", a, b)
'
mount --bind . logs 2>/dev/null && echo MOUNTED
umount -l logs/a 2>/dev/null && echo UMOUNTED
echo end
""", log=cwd + "/logs/a")
    check(run.out.strip().splitlines()[-1:] == ["end"], run)
    check(run.out.split() == ["end"], run)
    whole(cwd + "/logs/a")


def test_cwd_is_home(case):
    """The default places of log and configuration, below a HOME that is the
    working directory."""
    home = ground(case, "home")
    p = subprocess.run(argv_of(case, "run", "--", "sh", "-c", r"""
find . -name audit.jsonl | grep . && echo FOUND
cat .local/state/sallyport/*/audit.jsonl 2>/dev/null && echo READ
mkdir -p .config/sallyport .local/state/sallyport/x && echo MADE
echo evil > .config/sallyport/policy.yaml && echo WROTE
mv .config c && echo MOVED
mv .local l && echo MOVED
mv .local/state s && echo MOVED
ln -s /tmp .local/state/sallyport/y && echo LINKED
rm -rf .local .config
echo end
"""), cwd=home, env={**case.env(), "HOME": home, "XDG_STATE_HOME": ""}, text=True,
        capture_output=True, stdin=subprocess.DEVNULL, timeout=30)
    words = [w for w in p.stdout.split() if w.isupper()]
    if case.who == "root":  # HOME is private for its uid; the log in /var/log
        check("end" in p.stdout and "READ" not in words and "FOUND" not in words,
              (p.stdout, p.stderr))
    else:
        # `mkdir -p` of what is there says nothing was made beyond the mask.
        check("end" in p.stdout and not words, (p.stdout, p.stderr))
        logs = glob.glob(home + "/.local/state/sallyport/*/audit.jsonl")
        check(len([x for x in logs if "/host/" in x]) == 1 and len(logs) == 2,
              logs)
    check(not os.path.exists(home + "/.config/sallyport/policy.yaml"))


def test_cwd_below_what_is_hidden(case):
    """Refused in words, not run with the log in view."""
    cwd = ground(case, "hidden")
    sub = make(case, cwd + "/sub")
    for log in cwd, sub:
        run = box(case, sub, "sh", "-c", "ls -la; cat audit.jsonl", log=log)
        check(run.status == 125 and "hidden" in run.err
              and "class_uid" not in run.out, run)


def test_system_directories(case):
    """cwd = /, /etc, /tmp, /usr/bin, /proc, /dev, /run: no writing, no log."""
    for cwd in "/", "/etc", "/usr/bin", "/proc", "/dev", "/run", "/sys", "/tmp", \
            "/var/log", "/boot":
        run = box(case, cwd, "sh", "-c",
                  "for d in / /etc /usr/bin /sys /boot /var/log /run/systemd; do "
                  "touch $d/sallyport-att 2>/dev/null && echo WROTE $d; done; "
                  "cat /var/log/sallyport/*/audit.jsonl 2>/dev/null && echo READ; "
                  f"cat {case.lab.dir}/*/audit.jsonl 2>/dev/null && echo READ; echo end")
        check(run.status == 0 and run.out.split() == ["end"], (cwd, str(run)))
        for d in "/", "/etc", "/usr/bin", "/tmp":
            check(not os.path.exists(d + "/sallyport-att"), d)


def test_policy_is_out_of_reach(case):
    cwd = ground(case, "policy")
    make(case, cwd + "/conf")
    policy = make(case, cwd + "/conf/p.yaml", "version: 1\nallow: [allowed.test]\n")
    run = box(case, cwd, "sh", "-c",
              "cat conf/p.yaml && echo end; echo evil > conf/p.yaml; rm -f conf/p.yaml; "
              "mv conf/p.yaml q; mv conf c; ln conf/p.yaml q; ls q c 2>/dev/null; "
              "cp conf/p.yaml r; echo x > new && mv new conf/p.yaml; true",
              args=("--policy", "conf/p.yaml"))
    check("allowed" not in run.out, run)
    with open(policy) as f:
        check("allowed.test" in f.read())


def test_policy_by_symlink(case):
    """The *name* that the next session will use must not be for the sandbox to
    replace: a link to the policy, or a link on the way to it."""
    cwd = ground(case, "policy-link")
    away = ground(case, "policy-away")
    real = make(case, away + "/real.yaml", "version: 1\nallow: [allowed.test]\n")
    os.symlink(real, cwd + "/link.yaml")
    os.symlink(away, cwd + "/dir")
    for path in "link.yaml", "dir/real.yaml":
        run = box(case, cwd, "sh", "-c",
                  "rm -f link.yaml dir; mkdir -p dir; for f in link.yaml dir/real.yaml; do "
                  "printf 'version: 1\\nallow: [evil.test]\\n' > $f; done; true",
                  args=("--policy", path))
        if run.status == 125:
            continue  # refused to start: fine too
        with open(cwd + "/" + path) as f:
            check("evil.test" not in f.read(), f"{path}: the next session loads "
                  "the sandbox's policy")


def test_configuration_by_symlink(case):
    """~/.config is a link (dotfiles): the same with the directory that later
    sessions trust."""
    if case.who == "root":
        return  # HOME is private
    home = ground(case, "dotfiles")
    make(case, home + "/dot/config")
    case.mine(home + "/dot")
    os.symlink("dot/config", home + "/.config")
    box(case, home, "sh", "-c",
        "rm .config; mkdir -p .config/sallyport; echo evil > .config/sallyport/policy.yaml",
        env={"HOME": home})
    check(not os.path.exists(home + "/.config/sallyport/policy.yaml"))


def test_policy_on_stdin(case):
    """`--policy /dev/stdin < file`: fd 0 is the policy, which could be opened
    again for writing, past every mask."""
    if case.who == "root":
        return  # another uid
    cwd = ground(case, "policy-stdin")
    policy = make(case, cwd + "/p.yaml", "version: 1\nallow: [allowed.test]\n")
    with open(policy) as f:
        run = box(case, cwd, "sh", "-c", "echo evil > /proc/self/fd/0 || echo refused",
                  args=("--policy", "/dev/stdin"), stdin=f)
    with open(policy) as f:
        check("evil" not in f.read(), run)


def test_directory_as_stdin(case):
    """A directory as fd 0-2 is the machine's file tree, without our masks."""
    cwd = ground(case, "dir-stdin")
    log = make(case, ground(case, "dir-log") + "/l")
    top = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    run = box(case, cwd, "sh", "-c", 'exec python3 -c "$0" 3<&0 </dev/null', f"""
import os
def tried(what, *a, **k):
    try: f = what(*a, **k); print("DID", a, flush=True); return f
    except OSError as e: print("refused", e, flush=True)
f = tried(os.open, "{log[1:]}/audit.jsonl", os.O_RDWR | os.O_APPEND, dir_fd=3)
if f is not None: os.write(f, b"evil\\n")
tried(os.listdir, "/proc/self/fd/3/proc/1/task")
tried(os.open, "{cwd[1:]}/../made", os.O_RDWR | os.O_CREAT, dir_fd=3)
""", log=log, stdin=top)
    os.close(top)
    check("DID" not in run.out, run)
    check(run.status == 125 and "is a directory" in run.err, run)


def test_log_through_other_mounts(case):
    """The log at a second mount of the same file system."""
    if case.who == "user":
        return  # one uid on both sides: SECURITY of a log needs root or a daemon
    state = ground(case, "twice")
    second = ground(case, "second")
    cwd = ground(case, "twice-cwd")
    subprocess.run(["mount", "--bind", state, second], check=True)
    try:
        log = state + "/log"
        run = box(case, cwd, "sh", "-c", f"cat {second}/log/audit.jsonl && echo READ; "
                  f"cat {state}/log/audit.jsonl && echo READ; echo end", log=log)
    finally:
        subprocess.run(["umount", second], check=True)
    check("READ" not in run.out and "end" in run.out, run)


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
    out, err = p.communicate("go\n", timeout=20)
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
    out, err = p.communicate(" ".join(map(str, ids)) + "\n", timeout=20)
    check("end" in out and "DID" not in out, (out, err))
    check(p.returncode == 0, p.returncode)
    whole(log)


def test_nobody_is_left(case):
    """Double forks, sessions, ignored signals: all end with the command."""
    mark = f"att-left-{case.who}-{os.getpid()}"
    cwd = ground(case, "left")
    run = box(case, cwd, "sh", "-c", """
for i in 1 2 3 4 5; do
    setsid sh -c 'trap "" TERM HUP INT; (setsid sleep 300 & sleep 300) &' >/dev/null 2>&1 </dev/null &
done
(trap "" TERM INT HUP; while :; do date +%s%N > alive; done) >/dev/null 2>&1 &
sleep 0.3; exit 7""", env={"MARK": mark})
    first = marked(mark)
    check(run.status == 7 and not first, (first, str(run)))


BUSY = """
import os, signal, sys, time
for s in signal.SIGTERM, signal.SIGINT, signal.SIGHUP: signal.signal(s, signal.SIG_IGN)
for i in range(60):
    if os.fork() == 0:
        keep = bytearray(8 << 20)
        os.setsid()
        f = os.open("alive", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        while True: os.write(f, b"x"); time.sleep(0.001)
print("up", flush=True)
time.sleep(300)
"""


def still_writes(path):
    before = os.stat(path).st_size
    time.sleep(0.3)
    return os.stat(path).st_size - before


def test_timeout_ends_everything_first(case):
    """When sallyport has returned, nobody in the sandbox runs."""
    cwd = ground(case, "timeout")
    worst = []
    for _ in range(2):
        mark = f"att-time-{case.who}-{time.monotonic_ns()}"
        run = box(case, cwd, "python3", "-c", BUSY, args=("--timeout", "300ms"),
                  env={"MARK": mark}, timeout=20)
        worst.append(still_writes(cwd + "/alive"))
        check(run.status == 124 and not marked(mark), run)
    check(not any(worst), f"bytes written after sallyport had returned: {worst}")


def test_killed_parts(case):
    """kill -9 of each process of a session, in turn: the rest ends, and the
    status says so."""
    cwd = ground(case, "parts")
    statuses = {}
    for which in "bwrap", "init", "ledger", "warden":
        mark = f"att-part-{case.who}-{time.monotonic_ns()}"
        p, log = spawn(case, cwd, "python3", "-c", BUSY, env={"MARK": mark})
        check(p.stdout.readline() == "up\n")
        below = descendants(p.pid)
        if which == "warden":
            pid = p.pid
        elif which == "ledger":
            pid = case.child(p, "ledger")
        else:
            word = b"bwrap" if which == "bwrap" else b"/run/.sallyport/init"
            pid = next(d for d in below
                       if open(f"/proc/{d}/cmdline", "rb").read().split(b"\0")[0] == word)
        os.kill(pid, signal.SIGKILL)
        p.communicate(timeout=20)
        left = gone(mark, 3)
        check(not left, (which, left))
        statuses[which] = p.returncode
        check(still_writes(cwd + "/alive") == 0, which)
    check(all(s != 0 for s in statuses.values()), statuses)
    check(statuses["ledger"] == 125, statuses)


def test_stopped_gate_does_not_stop_the_warden(case):
    """A gate that reads nothing more (it may be the enemy's) must not keep the
    warden from ending the session in time."""
    p, _ = spawn(case, ground(case, "stopped"), "sh", "-c", "echo up; sleep 60",
                 args=("--timeout", "3s"))
    check(p.stdout.readline() == "up\n")
    gate = case.child(p, "gate")
    os.kill(gate, signal.SIGSTOP)
    # Its routes change, as with containers that come and go.
    batch = "".join("addr add 203.0.113.77/32 dev up0\naddr del 203.0.113.77/32 dev up0\n"
                    for _ in range(20))
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        subprocess.run(["ip", "-batch", "-"], input=batch, text=True, check=True)
    try:
        p.communicate(timeout=11)  # 5 for a gate that does not end
    except subprocess.TimeoutExpired:
        os.kill(gate, signal.SIGKILL)
        p.kill()
        p.communicate()
        raise AssertionError("the warden hangs on a gate that does not read")
    check(p.returncode == 124, p.returncode)


def test_stopped_warden(case):
    """SIGSTOP of the warden: nothing more gets out, and it ends after SIGCONT."""
    p, log = spawn(case, ground(case, "stopwarden"), "sh", "-c",
                   "echo up; read x; curl -s -m 2 --noproxy '*' https://evil.test/; echo $?",
                   stdin=subprocess.PIPE)
    check(p.stdout.readline() == "up\n")
    os.kill(p.pid, signal.SIGSTOP)
    p.stdin.write("go\n")
    p.stdin.flush()
    time.sleep(0.7)
    os.kill(p.pid, signal.SIGCONT)
    out, err = p.communicate(timeout=20)
    check("hello" not in out and p.returncode == 0, (out, err))
    whole(log)
    silent(case)


# --- how it is started ---------------------------------------------------------

def closed(*fds):
    def close():
        for fd in fds:
            os.close(fd)
    return close


def test_closed_descriptors(case):
    """0-2 closed by the caller: none of ours may come to lie there."""
    wrong = []
    for fds in (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2):
        cwd = ground(case, "closed" + "".join(map(str, fds)))
        code = (f"import os\nf = open('{cwd}/seen', 'w')\nfor n in range(10):\n"
                " try: f.write('%d %s\\n' % (n, os.readlink('/proc/self/fd/%d' % n)))\n"
                " except OSError: pass\nf.write('end')\n")
        log = make(case, cwd + "-log")
        p = subprocess.Popen(
            argv_of(case, "run", "--verbose", "--allow", "allowed.test", "--log", log, "--",
                    "sh", "-c", "cat /proc/net/dev >/dev/null; curl -sk -m 5 "
                    "https://allowed.test/ -o got; exec python3 -c \"$0\"", code),
            cwd=cwd, env=case.env(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if 2 not in fds else subprocess.DEVNULL,
            preexec_fn=closed(*fds))
        try:
            _, err = p.communicate(timeout=25)
        except subprocess.TimeoutExpired:
            p.kill()
            p.communicate()
            wrong.append((fds, "hangs"))
            continue
        if p.returncode == 125:
            wrong.append((fds, "refused", (err or b"")[-200:]))
            continue
        try:
            with open(cwd + "/seen") as f:
                seen = [x for x in f.read().splitlines() if not x.endswith("/seen")]
        except OSError:
            seen = ["nothing ran"]
        odd = [x for x in seen if x != "end" and "/dev/null" not in x and "pipe:" not in x]
        if odd or "end" not in seen or p.returncode:
            wrong.append((fds, p.returncode, seen))
        if not os.path.exists(cwd + "/got"):
            wrong.append((fds, "the gate does not work"))
        try:
            whole(log)
        except (ValueError, AssertionError) as e:
            wrong.append((fds, "log", repr(e)[:300]))
    check(not wrong, "\n".join(map(str, wrong)))


def logs_of(log):
    return glob.glob(log + "/audit.jsonl*") + glob.glob(log + "/earlier-*/audit.jsonl*")


def test_one_log_directory_for_many(case):
    """An old log is kept, never removed, also when sessions begin together."""
    cwd, log = ground(case, "many"), make(case, ground(case, "many-logs") + "/l")
    total = 0
    for _ in range(2):
        all_ = [spawn(case, cwd, "true", log=log, args=("--quiet",))[0] for _ in range(16)]
        for p in all_:
            _, err = p.communicate(timeout=60)
            check(p.returncode in (0, 125), err)
            total += p.returncode == 0
    kept = logs_of(log)
    inodes = {os.stat(f).st_ino for f in kept}
    check(len(inodes) == total, f"{total} sessions ended well, {len(inodes)} logs are there "
          f"under {len(kept)} names")
    for f in kept:
        with open(f) as g:
            check(json.loads(g.read().splitlines()[-1])["class_uid"] == 6002, f)


def delayed(case, cwd, log, call, ms, *command, out=subprocess.PIPE):
    """A session in which each @call comes late."""
    return subprocess.Popen(
        [*case.drop(), "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e",
         f"inject={call}:delay_enter={ms * 1000}", case.binary, "run", "--quiet", "--log", log,
         "--", *command], cwd=cwd, stdin=subprocess.DEVNULL,
        # LeakSanitizer does not work under strace.
        env=dict(case.env(), ASAN_OPTIONS="detect_leaks=0"),
        stdout=out, stderr=out, text=True)


def test_two_begin_in_one_log_directory(case):
    """One has begun to move the old log away, and is slow: what it moves must
    not be the log of the other, which began meanwhile."""
    cwd, log = ground(case, "two"), make(case, ground(case, "two-logs") + "/l")
    box(case, cwd, "true", log=log)
    slow = delayed(case, cwd, log, "renameat2", 800, "true")
    end = time.monotonic() + 5
    while not os.path.exists(log + "/earlier-000001") and time.monotonic() < end:
        time.sleep(0.005)
    other = box(case, cwd, "sh", "-c", "sleep 1.5", log=log)
    _, err = slow.communicate(timeout=20)
    ended = 1 + (other.status == 0) + (slow.returncode == 0)
    logs = {os.stat(f).st_ino for f in logs_of(log)}
    check(len(logs) >= ended, f"{ended} sessions ended well, {len(logs)} logs are left: {err}")


def test_signal_before_init(case):
    """SIGTERM while bubblewrap still prepares: it counts once the command runs,
    or ends the start."""
    log = make(case, f"{case.lab.dir}/early-{case.who}")
    p = delayed(case, ground(case, "early"), log, "pivot_root", 500, "sleep", "30")
    end = time.monotonic() + 5
    def line(pid):
        try:
            with open(f"/proc/{pid}/cmdline") as f:
                return f.read()
        except OSError:
            return ""
    while time.monotonic() < end and not any(
            line(x).startswith("bwrap") for x in descendants(p.pid)):
        time.sleep(0.005)
    time.sleep(0.75)  # the gate is up, pid 1 is not
    below = descendants(p.pid)
    ours = next(x for x in below if line(x).split("\0")[1:2] == ["run"])
    os.kill(ours, signal.SIGTERM)
    try:
        p.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        os.kill(ours, signal.SIGKILL)
        p.communicate(timeout=10)
        raise AssertionError("SIGTERM was lost")
    check(p.returncode in (143, -15), p.returncode)


def test_killed_while_bubblewrap_forks(case):
    """SIGKILL of the warden between bubblewrap's clone and the moment at which
    its child asks to die with it."""
    mark = f"att-fork-{case.who}-{os.getpid()}"
    cwd, log = ground(case, "fork"), make(case, f"{case.lab.dir}/fork-{case.who}")
    os.environ["MARK"] = mark
    try:
        p = delayed(case, cwd, log, "capset", 250, "sleep", "20", out=subprocess.DEVNULL)
    finally:
        del os.environ["MARK"]
    def line(pid):
        try:
            with open(f"/proc/{pid}/cmdline") as f:
                return f.read()
        except OSError:
            return ""
    end, found = time.monotonic() + 8, False
    while time.monotonic() < end and not found:
        below = descendants(p.pid)
        found = any(line(x).startswith("bwrap") and descendants(x) for x in below)
    ours = [x for x in below if line(x).split("\0")[1:2] == ["run"]]
    for pid in ours[:1]:
        os.kill(pid, signal.SIGKILL)
    left = ended(mark)
    p.kill()
    p.wait(5)
    check(found and not left, (found, left))


def test_policy_fifo(case):
    cwd = ground(case, "fifo")
    os.mkfifo(cwd + "/p")
    case.mine(cwd + "/p")
    log = make(case, cwd + "/l")
    p = spawn(case, cwd, "cat", "p", args=("--policy", "p"), log=log)[0]
    with open(cwd + "/p", "w") as f:
        f.write("version: 1\nallow: [allowed.test]\n")
    out, err = p.communicate(timeout=10)
    check("allowed" not in out and p.returncode in (0, 1), (p.returncode, out, err))
    p = spawn(case, cwd, "true", args=("--policy", "p"), log=log)[0]  # no writer
    time.sleep(0.1)
    p.terminate()
    p.communicate(timeout=5)
    check(p.returncode == -15, p.returncode)


def test_earlier_logs(case):
    """--log ./logs/2 while ./logs/1 is there: only the operator knows of the
    earlier one, so at least he is told."""
    cwd = ground(case, "earlier")
    make(case, cwd + "/logs")
    box(case, cwd, "true", log=cwd + "/logs/1")
    run = box(case, cwd, "sh", "-c", "cat logs/2/audit.jsonl", log=cwd + "/logs/2")
    check("class_uid" not in run.out, run)
    check("earlier sessions" in run.err, run)


def test_no_stderr_and_something_to_say(case):
    """What we say to nobody must not be said into the log."""
    wrong = []
    for what in "note", "gate":
        cwd = "/etc" if what == "note" else ground(case, "nostderr")
        log = make(case, f"{case.lab.dir}/nostderr-{case.who}-{what}")
        p = subprocess.Popen(argv_of(case, "run", "--verbose", "--log", log, "--", "sh", "-c",
                                     "echo up; sleep 1"), cwd=cwd, env=case.env(),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                             preexec_fn=closed(2))
        up = p.stdout.readline()
        if what == "gate" and up:
            os.kill(case.child(p, "gate"), signal.SIGKILL)
        p.communicate(timeout=20)
        with open(log + "/audit.jsonl") as f:
            text = f.read()
        odd = [line[:200] for line in text.splitlines() if not line.startswith("{")]
        if odd or p.returncode or '"session_close"' not in text:
            wrong.append((what, p.returncode, odd, text[-200:]))
    check(not wrong, wrong)


def test_nohup(case):
    """What the caller ignores is not passed on."""
    p, log = spawn(case, ground(case, "nohup"), "sh", "-c", "echo up; sleep 1; exit 5",
                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    check(p.stdout.readline() == "up\n")
    time.sleep(0.1)
    os.kill(p.pid, signal.SIGHUP)
    p.communicate(timeout=10)
    check(p.returncode == 5, f"status {p.returncode}: SIGHUP went through nohup")


def test_teardown_under_load(case):
    """Not a packet while it ends."""
    for args in ("--timeout", "400ms"), ():
        p, _ = spawn(case, ground(case, f"teardown{len(args)}"), "python3", "-c", """
import os, signal, socket, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
for _ in range(3): os.fork()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    for a in ("93.184.216.66", 53), ("8.8.8.8", 9):
        try: u.sendto(b"leak", a)
        except OSError: pass
    s = socket.socket(); s.setblocking(False)
    try: s.connect(("93.184.216.66", 443))
    except OSError: pass
    s.close()
""", args=args)
        check(p.stdout.readline() == "up\n")
        if not args:
            time.sleep(0.3)
            p.kill()
        p.communicate(timeout=15)
    silent(case)


def test_many_at_once(case):
    cwd = ground(case, "parallel")
    all_ = [spawn(case, cwd, "sh", "-c", f"curl -sk -m 20 https://allowed.test/; exit {i}",
                  args=("--allow", "allowed.test")) for i in range(20)]
    for i, (p, log) in enumerate(all_):
        out, err = p.communicate(timeout=60)
        check(p.returncode == i and "hello" in out, (i, p.returncode, out, err))
        whole(log)


def test_signals_during_start_up(case):
    """At any moment: nobody stays, nothing stays mounted, no link remains."""
    cwd = ground(case, "startup")
    mark = f"att-start-{case.who}-{os.getpid()}"
    log = make(case, f"{case.lab.dir}/startup-{case.who}")
    links = sorted(os.listdir("/sys/class/net"))
    with open("/proc/self/mounts") as f:
        mounts = f.read()
    slow, odd = [], []
    for sig in signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        for ms in range(0, 44, 3) if len(slow) < 3 else ():
            # No pipes: what is left would hold them open for ever.
            p = subprocess.Popen(argv_of(case, "run", "--quiet", "--log", log, "--", "sleep",
                                         "20"), cwd=cwd, env={**case.env(), "MARK": mark},
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
            time.sleep(ms / 1000)
            os.kill(p.pid, sig)
            try:
                p.wait(3)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
                slow.append((sig.name, ms))
                if len(slow) == 3:
                    break
                continue
            if p.returncode not in (-sig, 128 + sig):
                odd.append((sig.name, ms, p.returncode))
    left = ended(mark)
    check(not left, left)
    check(not slow, f"did not end: {slow}")
    check(not odd, f"odd status: {odd}")
    check(sorted(os.listdir("/sys/class/net")) == links)
    with open("/proc/self/mounts") as f:
        check(f.read() == mounts)


def test_odd_command_lines(case):
    cwd = ground(case, "argv")
    def run(*args, **kw):
        kw.setdefault("cwd", cwd)
        kw.setdefault("env", case.env())
        return subprocess.run(argv_of(case, *args), text=True, capture_output=True, timeout=20,
                              stdin=subprocess.DEVNULL, errors="replace", **kw)
    long = "a." * 5000 + "test"
    for args, status in (
            ((), 125), (("run",), 125), (("run", "--"), 125), (("run", "--", ""), 127),
            (("run", "--", "/"), 126), (("run", "--", "/etc/passwd"), 126),
            (("run", "--", "no\x1bsuch"), 127), (("run", "-x", "--", "true"), 125),
            (("run", "--log"), 125), (("run", "--timeout", "-1", "--", "true"), 125),
            (("run", "--timeout", "99999999999999999999h", "--", "true"), 125),
            (("run", "--allow", long, "--", "true"), 125),
            (("run", "--allow", "a" * 64 + ".test", "--", "true"), 125),
            (("run", "--allow", "", "--", "true"), 125),
            (("run", "--permit", "0.0.0.0/33", "--", "true"), 125),
            (("run", "--policy", "/", "--", "true"), 125),
            (("run", "--policy", "-", "--", "true"), 125),
            (("run", "--policy", "", "--", "true"), 125),
            (("run", "--policy", "/dev/null", "--", "true"), 125),
            (("run", "--policy", "/dev/zero", "--", "true"), 125),
            (("run", "--log", "/etc/passwd", "--", "true"), 125),
            (("run", "--log", "", "--", "true"), 125),
            (("run", "--log", "x" * 5000, "--", "true"), 125),
            (("run", "--user", "root", "--", "true"), 125),
            (("run", "--user", "nosuch\x1b", "--", "true"), 125),
            (("gate",), None), (("ledger",), None), (("nosuch",), 125)):
        r = run(*args)
        want = status is None or r.returncode == status
        if args[1:3] == ("--log", "") and r.returncode == 0:
            os.unlink("/audit.jsonl")  # it was root's to make
        if args[1:3] == ("--policy", "/dev/null"):
            want = r.returncode in (0, 125)
        check(want and r.returncode >= 0 and "\x1b" not in r.stderr,
              (args[:3], r.returncode, r.stderr[-300:]))
    r = run("run", "--name", "n\n\x1b[31m\xff\"" + "x" * 300, "--log",
            make(case, cwd + "/l1"), "--", "true")
    check(r.returncode == 0, r.stderr)
    whole(cwd + "/l1")
    # argv[0] missing altogether
    r = subprocess.run([*case.drop(), "python3", "-c",
                        f"import ctypes; a=(ctypes.c_char_p*1)(None); "
                        f"ctypes.CDLL(None).execve({case.binary.encode()!r}, a, a)"],
                       timeout=10, capture_output=True)
    check(r.returncode == 125, r)


def test_odd_surroundings(case):
    wrong = []
    def expect(what, run, *statuses):
        if run.status not in statuses:
            wrong.append((what, run.status, run.out[-200:], run.err[-300:]))
    cwd = ground(case, "odd")
    expect("no HOME", box(case, cwd, "true", unset=("HOME", "XDG_STATE_HOME")), 0)
    expect("relative state", box(case, cwd, "true", env={"XDG_STATE_HOME": "rel",
                                                         "XDG_CONFIG_HOME": "rel",
                                                         "HOME": "rel"}), 0)
    check(not os.path.exists(cwd + "/rel"))
    expect("HOME=/", box(case, cwd, "true", env={"HOME": "/"}), 0)
    expect("no HOME dir", box(case, cwd, "true", env={"HOME": cwd + "/absent/x"}), 0)
    if os.path.exists(cwd + "/absent"):
        wrong.append("made a HOME that is not there")
    for path in (["PATH="], ["-u", "PATH"]):
        p = subprocess.run([*case.drop(), "env", *path, case.binary, "run", "--log",
                            make(case, f"{cwd}-{len(path)}"), "--", "/bin/true"], cwd=cwd,
                           env=case.env(), stdin=subprocess.DEVNULL, capture_output=True,
                           timeout=20, text=True)
        expect(f"env {path}", Run(p, None), 0)
    expect("big environment", box(case, cwd, "true", env={f"E{i}": "x" * 120000
                                                          for i in range(12)}), 0)
    expect("huge environment", box(case, cwd, "true",
                                   env={f"E{i}": "" for i in range(20000)}), 0)
    # The leak check needs descriptors for itself.
    for n in range(3, 40, 4):
        expect(f"ulimit -n {n}", box(case, cwd, "true", prefix=("prlimit", f"--nofile={n}:{n}"),
                                     args=("--quiet",),
                                     env={"ASAN_OPTIONS": "detect_leaks=0"}), 0, 125, 127)
    expect("fsize 0", box(case, cwd, "true", prefix=("prlimit", "--fsize=0")), 0, 125)
    # The sanitizers need more address space than that for themselves.
    if not case.sanitized:
        expect("as small", box(case, cwd, "true", prefix=("prlimit", "--as=30000000")), 0, 125, 127)
    for ignored in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGTERM):
        expect(f"ignored {ignored}", box(case, cwd, "true", preexec_fn=lambda:
                                         signal.signal(ignored, signal.SIG_IGN)), 0)
    every = set(range(1, 65))
    expect("all blocked", box(case, cwd, "true", preexec_fn=lambda:
                              signal.pthread_sigmask(signal.SIG_SETMASK, every)), 0)
    expect("umask", box(case, cwd, "true", preexec_fn=lambda: os.umask(0o777)), 0, 125)
    # a deleted directory, and one that can't be read
    away = make(case, cwd + "/deleted")
    expect("deleted cwd", box(case, away, "true", preexec_fn=lambda: os.rmdir(away)), 125)
    dark = make(case, cwd + "/dark", mode=0o100)
    expect("unreadable cwd", box(case, dark, "true"), 0, 125)
    if case.who == "user":
        os.mkdir(cwd + "/foreign", 0o700)
        os.chmod(cwd + "/foreign", 0o700)
        expect("foreign cwd", box(case, cwd + "/foreign", "true",
                                  prefix=()), 0, 125)
    check(not wrong, "\n".join(map(str, wrong)))


def test_no_user_namespaces(case):
    """The switch off, in a namespace of our own: says which one."""
    if case.who == "root":
        return
    r = subprocess.run(["unshare", "-Ur", "--map-users=0,0,100000", "true"], capture_output=True)
    log = make(case, case.lab.dir + "/log-nouserns")
    p = subprocess.run([*case.drop(), "unshare", "-Ur", "sh", "-c",
                        f"echo 0 > /proc/sys/user/max_user_namespaces && "
                        f"{case.binary} run --log {log} -- true"], cwd=case.work, text=True,
                       capture_output=True, env=case.env(), stdin=subprocess.DEVNULL, timeout=20)
    check(p.returncode == 125 and "max_user_namespaces" in p.stderr, (p, r))


def test_log_of_another_user(case):
    """As root, --log in a directory that another user prepared: nothing of
    root's is overwritten, followed or given away."""
    if case.who != "root":
        return
    cwd = ground(case, "foreign")
    victim = make(case, ground(case, "victim") + "/file", "precious")
    place = cwd + "/place"
    os.mkdir(place, 0o777)
    os.chown(place, USER, USER)
    for what in "link", "dangling", "fifo", "dir", "hard":
        at = f"{place}/audit.jsonl"
        if what == "link":
            os.symlink(victim, at)
        elif what == "dangling":
            os.symlink(victim + "-new", at)
        elif what == "fifo":
            os.mkfifo(at)
        elif what == "dir":
            os.mkdir(at)
        else:
            os.link(victim, at)
        p = subprocess.run(argv_of(case, "run", "--log", place, "--", "true"), cwd=cwd,
                           env=case.env(), capture_output=True, text=True, timeout=10,
                           stdin=subprocess.DEVNULL)
        check(p.returncode in (0, 125), (what, p))
        check(open(victim).read() == "precious" and not os.path.exists(victim + "-new"), what)
        subprocess.run(["rm", "-rf", place])
        os.mkdir(place, 0o777)
        os.chown(place, USER, USER)


def test_root_with_a_users_home(case):
    """sudo keeps HOME on some systems: root must not make directories there
    that the user then can't enter."""
    if case.who != "root":
        return
    home = ground(case, "sudo-home")
    os.chown(home, USER, USER)
    box(case, ground(case, "sudo-home-cwd"), "true", env={"HOME": home})
    made = [p for p in (home + "/.config",) if os.path.exists(p)]
    check(all(os.stat(p).st_uid == USER for p in made), f"root's, 0700: {made}")
    os.symlink(ground(case, "sudo-victim"), home + "/link")
    box(case, ground(case, "sudo-home-cwd2"), "true",
        env={"HOME": home, "XDG_CONFIG_HOME": home + "/link"})
    check(not os.path.exists(f"{GROUND}/root/sudo-victim/sallyport"),
          "followed the user's link as root")


def test_terminal(case):
    """On a terminal: no TIOCSTI, and what we were given is put right again."""
    cwd = ground(case, "tty")
    log = make(case, cwd + "-log")
    code = r"""
import fcntl, os, termios
for what, n in (("sti", 0x5412), ("sti high", 0x5412 | 1 << 40), ("linux", 0x541c), ("setd", 0x5423), ("cons", 0x541d)):
    for fd in 0, 1, 2:
        try:
            fcntl.ioctl(fd, n & 0xffffffff, b"")
            print("DID", what)
        except OSError: pass
a = termios.tcgetattr(0); a[3] = 0; a[0] = 0; termios.tcsetattr(0, termios.TCSANOW, a)
print("end", os.getsid(0))
"""
    pid, fd = pty.fork()
    if pid == 0:
        try:
            os.chdir(cwd)
            argv = argv_of(case, "run", "--log", log, "--", "python3", "-c", code)
            os.execvpe(argv[0], argv, case.env())
        finally:
            os._exit(99)
    import termios
    before = termios.tcgetattr(fd)
    out, end = b"", time.monotonic() + 20
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.2)[0]:
            try:
                got = os.read(fd, 4096)
            except OSError:
                break
            if not got:
                break
            out += got
    try:
        after = termios.tcgetattr(fd)
    except termios.error:
        after = before
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    check(status == 0 and b"end" in out and b"DID" not in out, (status, out))
    check(after == before, "the terminal was left as the command made it")


def test_zombies(case):
    """A session reaps what it starts, and what is orphaned inside."""
    p, _ = spawn(case, ground(case, "zombies"), "sh", "-c",
                 "for i in 1 2 3 4 5 6 7 8; do (true & ) ; done; sleep 0.3; echo up; read x",
                 stdin=subprocess.PIPE)
    check(p.stdout.readline() == "up\n")
    zombies = []
    for pid in descendants(p.pid):
        with open(f"/proc/{pid}/stat") as f:
            if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                zombies.append(pid)
    p.communicate("\n", timeout=10)
    check(not zombies, zombies)


def test_resources_of_the_machine(case):
    """Private file systems have a bound, so that one sandbox can't take the
    machine's memory with dd."""
    run = box(case, ground(case, "memory"), "sh", "-c",
              "for d in /tmp /var/tmp /run /dev/shm /dev; do df -Pk $d | tail -1; done")
    with open("/proc/meminfo") as f:
        total = int(f.readline().split()[1])
    print("        private file systems may hold (kB):",
          [line.split()[1] for line in run.out.splitlines()], "of", total)
    check(run.status == 0, run)
