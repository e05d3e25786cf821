# SPDX-License-Identifier: Apache-2.0
"""Odd command lines and surroundings: sallyport says what is wrong, or works."""
import os
import pty
import select
import signal
import subprocess
import termios
import time

from box_lab import argv_of, box, ground, make, whole
from harness import check, Run


# --- how it is started ---------------------------------------------------------


def test_odd_command_lines(case):
    cwd = ground(case, "argv")
    def run(*args, **kw):
        kw.setdefault("cwd", cwd)
        kw.setdefault("env", case.env())
        return subprocess.run(argv_of(case, *args), text=True, capture_output=True, timeout=90,
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
                       timeout=90, capture_output=True)
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
                           timeout=90, text=True)
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
                       capture_output=True, env=case.env(), stdin=subprocess.DEVNULL, timeout=90)
    check(p.returncode == 125 and "max_user_namespaces" in p.stderr, (p, r))


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
    go, told = os.pipe()
    pid, fd = pty.fork()
    if pid == 0:
        try:
            os.read(go, 1)  # until it is known how the terminal was
            os.chdir(cwd)
            argv = argv_of(case, "run", "--log", log, "--", "python3", "-c", code)
            os.execvpe(argv[0], argv, case.env())
        finally:
            os._exit(99)
    before = termios.tcgetattr(fd)
    os.write(told, b"x")
    os.close(go)
    os.close(told)
    out, end = b"", time.monotonic() + 90
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
