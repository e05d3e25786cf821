# SPDX-License-Identifier: Apache-2.0
"""The launcher's bounds: how much a command may have, and what it may ask the
kernel for. What it must not reach is tried from inside."""
import os

from box_lab import box, ground, receipt
from harness import check, silent


BOMB = """
import os, time
n = 0
try:
    while n < 60:
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)
        n += 1
except OSError as e:
    print("refused", n, e.errno)
print("forked", n)
"""


def pids(case):
    """Where the sessions of noted() are written down."""
    return f"{case.lab.dir}/pids-{case.who}"


def noted(case, *args, **kw):
    """box(), whose pid is kept: what another test has killed beside us may
    leave groups, too."""
    return box(case, *args, **kw, prefix=(
        "sh", "-c", f'echo $$ >> {pids(case)}; exec "$@"', "sh"))


def groups(case):
    """Directories of ours that are left, anywhere."""
    with open(pids(case)) as f:
        ours = {"sallyport-run-" + pid for pid in f.read().split()}
    return [f"{top}/{d}" for top, dirs, _ in os.walk("/sys/fs/cgroup")
            for d in dirs if d in ours]


def test_limits(case):
    top = ground(case, "limits")
    how = "cgroup" if case.who == "root" else "rlimit"
    eat = "x = bytearray(200 << 20); x[::4096] = b'x' * len(x[::4096]); print(len(x))"
    run = noted(case, top, "python3", "-c", eat, args=("--memory", "100M"))
    check(run.status != 0 and "209715200" not in run.out, run)
    check(f"memory by {how}" in start(run.log), run)
    if how == "cgroup":  # an rlimit tells nobody
        check("limit reached: memory" in run.err, run)
        check("limit reached: memory" in str(receipt(run.log)["findings"]), run)
    run = noted(case, top, "python3", "-c", eat, args=("--memory", "600M"))
    check(run.status == 0 and "209715200" in run.out, run)
    check("limit reached" not in run.err, run)

    run = noted(case, top, "python3", "-c", BOMB, args=("--pids", "20"))
    check(run.status == 0 and "refused 19 11" in run.out, run)
    check(f"pids by {how}" in start(run.log), run)
    if how == "cgroup":
        check("limit reached: 20 pids" in run.err, run)
        check("20 pids" in str(receipt(run.log)["findings"]), run)

    script = ("head -c 2000000 /dev/zero > big; stat -c %s big;"
              "python3 -c 'x = [open(\"/dev/null\") for i in range(60)]' 2>&1 |"
              "tail -1; ulimit -f unlimited; ulimit -n 4000")
    run = noted(case, top, "bash", "-c", script,
              args=("--fsize", "1MB", "--nofile", "50"))
    check("1000000" in run.out and "Too many open files" in run.out, run)
    check("fsize by rlimit, nofile by rlimit" in start(run.log), run)
    check(run.err.count("ulimit") == 2, run)
    check(not groups(case), groups(case))


def start(log):
    with open(log + "/audit.jsonl") as f:
        return f.readline()


def test_cpus(case):
    top = ground(case, "cpus")
    spin = ("import os, time\nend = time.monotonic() + 1\n"
            "while time.monotonic() < end: pass\n"
            "print(sum(os.times()[:2]))")
    run = box(case, top, "python3", "-c", spin, args=("--cpus", "0.2"))
    if case.who == "user":  # no control group is ours
        check(run.status == 125 and "control group" in run.err, run)
        return
    check(run.status == 0 and float(run.out) < 0.45, run)
    check("cpus by cgroup" in start(run.log), run)


def test_groups_are_out_of_reach(case):
    top = ground(case, "groups")
    script = ("import glob, os\n"
              "for f in glob.glob('/sys/fs/cgroup/**/cgroup.procs', recursive=True)"
              " + glob.glob('/sys/fs/cgroup/**/pids.max', recursive=True):\n"
              "    try:\n"
              "        open(f, 'w').write('0')\n"
              "        print('wrote', f)\n"
              "    except OSError: pass\n" + BOMB)
    for args in (), ("--fs", "host"):
        run = noted(case, top, "python3", "-c", script,
                  args=("--pids", "10", *args))
        check("wrote" not in run.out and "refused 9 11" in run.out, run)
    # A session that can't begin leaves none behind either.
    run = noted(case, top, "true", args=("--pids", "10", "--rw", "/dev"))
    check(run.status == 125 and not groups(case), run)
    for args in (("--memory", "1k"), ("--pids", "0"), ("--cpus", "x"),
                 ("--fsize", "1 XB"), ("--memory", "")):
        run = noted(case, top, "true", args=args)
        check(run.status == 125 and args[0].strip("-") not in run.out, run)


CALLS = r"""
import ctypes, os, signal, socket
libc = ctypes.CDLL(None, use_errno=True)
import fcntl, termios

def call(name, number, *args):
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, args))
    print(name, "worked" if r >= 0 else ctypes.get_errno())

def sock(name, *args):
    try:
        socket.socket(*args).close()
        print(name, "worked")
    except OSError as e:
        print(name, e.errno)

def child(name, fn):
    pid = os.fork()
    if pid == 0:
        fn()
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    print(name, "killed" if os.WIFSIGNALED(status) else "worked")

IN, IN6, NL = socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK
ST, DG, RAW, SEQ = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW,
                    socket.SOCK_SEQPACKET)
sock("tcp", IN, ST, 0); sock("udp", IN6, DG, 0)
sock("route", NL, RAW, 0); sock("mptcp", IN, ST, 262)
for p in (2, 4, 5, 6, 7, 9, 10, 11, 12, 15, 16, 20, 21, 22):
    sock(f"netlink{p}", NL, RAW, p)
    sock(f"netlink-dgram{p}", NL, DG, p)
sock("raw", IN, RAW, 255); sock("raw6", IN6, RAW, 58); sock("icmp-raw", IN, RAW, 1)
sock("sctp", IN, SEQ, 132); sock("sctp-stream", IN6, ST, 132)
sock("dccp", IN, 6, 33); sock("udplite", IN, DG, 136); sock("l2tp", IN, DG, 115)
sock("smc", IN, ST, 256); sock("packet-type", IN, 10, 768)
for f in (4, 5, 9, 15, 17, 21, 29, 30, 31, 32, 36, 38, 39, 40, 41, 42, 43, 44, 45):
    sock(f"family{f}", f, DG, 0); sock(f"family-raw{f}", f, RAW, 0)
sock("high-family", 17, RAW, 0)
call("family-high-half", 41, (1 << 32) | 17, 3, 0)
call("raw-high-half", 41, 2, (1 << 32) | 3, 1)
call("netlink-high-half", 41, 16, 3, (1 << 32) | 12)
for name, number, args in (
        ("io_uring_setup", 425, (1, 0)), ("io_uring_enter", 426, (0,) * 6),
        ("ptrace", 101, (16, 1, 0, 0)), ("mount", 165, (0,) * 5),
        ("umount2", 166, (0, 0)), ("pivot_root", 155, (0, 0)),
        ("chroot", 161, (0,)), ("init_module", 175, (0, 0, 0)),
        ("finit_module", 313, (0, 0, 0)), ("delete_module", 176, (0, 0)),
        ("keyctl", 250, (0,) * 5), ("add_key", 248, (0,) * 5),
        ("bpf", 321, (0, 0, 0)), ("perf_event_open", 298, (0,) * 5),
        ("userfaultfd", 323, (0,)), ("unshare", 272, (0x10000000,)),
        ("unshare-net", 272, (0x40000000,)), ("setns", 308, (0, 0)),
        ("clone", 56, (0x10000000 | 17, 0, 0, 0, 0)),
        ("clone3", 435, (0, 0)), ("kexec_load", 246, (0,) * 4),
        ("open_tree", 428, (-100, 0, 1)), ("move_mount", 429, (0,) * 5),
        ("fsopen", 430, (0, 0)), ("mount_setattr", 442, (0,) * 5),
        ("open_by_handle_at", 304, (0, 0, 0)), ("openat2", 437, (0,) * 4),
        ("process_vm_readv", 310, (1, 0, 0, 0, 0, 0)),
        ("pidfd_getfd", 438, (0, 0, 0)), ("modify_ldt", 154, (0, 0, 0)),
        ("tiocsti", 16, (0, 0x5412, 0)), ("tioclinux", 16, (0, 0x541c, 0)),
        ("tiocsti-high", 16, (0, (1 << 32) | 0x5412, 0))):
    call(name, number, *args)

import mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
# mov eax, 20 (getpid); int 0x80; ret
code.write(bytes.fromhex("b814000000cd80c3"))
entry = ctypes.addressof(ctypes.c_char.from_buffer(code))
child("i386", ctypes.CFUNCTYPE(ctypes.c_int)(entry))
child("x32", lambda: libc.syscall(ctypes.c_long(0x40000000 | 39)))
"""


def test_system_calls(case):
    if os.uname().machine != "x86_64":
        return  # the numbers are its
    top = ground(case, "calls")
    run = box(case, top, "python3", "-c", CALLS)
    said = dict(line.split() for line in run.out.splitlines())
    worked = {"tcp", "udp", "route", "mptcp"}
    check(run.status == 0 and "x32" in said and len(said) > 90, run)
    for name, result in said.items():
        if name in worked:  # a kernel may be without MPTCP
            check(result == "worked" or name == "mptcp", (name, result))
        elif name in ("i386", "x32"):
            check(result == "killed", (name, result))
        else:  # refused by the filter: EPERM, ENOSYS or what says "none such"
            check(result in ("1", "38", "93", "97"), (name, result))


def test_no_packet_left(case):
    silent(case)
