# SPDX-License-Identifier: Apache-2.0
"""Attacks on how sallyport is started, used and ended: from outside, by
signals and closed descriptors."""
import os
import signal
import subprocess
import time

from box_lab import (argv_of, box, delayed, ended, gone, ground, make, marked,
                     spawn, whole, words)
from harness import check, descendants, prompt, silent, within


# --- what a command may leave behind, and get ---------------------------------


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
    worst, ms = [], 300
    while len(worst) < 2:
        mark = f"att-time-{case.who}-{time.monotonic_ns()}"
        run = box(case, cwd, "python3", "-c", BUSY, args=("--timeout", f"{ms}ms"),
                  env={"MARK": mark})
        if os.path.exists(cwd + "/alive"):
            worst.append(still_writes(cwd + "/alive"))
        else:
            ms *= 2  # it had not begun
        check(run.status == 124 and not marked(mark), run)
    check(not any(worst), f"bytes written after sallyport had returned: {worst}")


@prompt
def test_killed_parts(case):
    """kill -9 of each process of a session, in turn: the rest ends, and the
    status says so."""
    cwd = ground(case, "parts")
    statuses = {}
    for which in "bwrap", "init", "ledger", "warden":
        mark = f"att-part-{case.who}-{time.monotonic_ns()}"
        p, log = spawn(case, cwd, "python3", "-c", BUSY, env={"MARK": mark})
        check(p.stdout.readline() == "up\n")
        case.lab.wait(lambda: os.path.exists(cwd + "/alive"), "who writes")
        below = descendants(p.pid)
        if which == "warden":
            pid = p.pid
        elif which == "ledger":
            pid = case.child(p, "ledger")
        else:
            word = "bwrap" if which == "bwrap" else "/run/.sallyport/init"
            pid = next(d for d in below if words(d)[:1] == [word])
        os.kill(pid, signal.SIGKILL)
        p.communicate(timeout=60)
        left = gone(mark)
        check(not left, (which, left))
        statuses[which] = p.returncode
        check(still_writes(cwd + "/alive") == 0, which)
        os.unlink(cwd + "/alive")  # the next one's is waited for
    check(all(s != 0 for s in statuses.values()), statuses)
    check(statuses["ledger"] == 125, statuses)


@prompt
def test_stopped_gate_does_not_stop_the_warden(case):
    """A gate that reads nothing more (it may be the enemy's) must not keep the
    warden from ending the session in time."""
    p, _ = spawn(case, ground(case, "stopped"), "sh", "-c", "echo up; sleep 60",
                 args=("--timeout", "6s"))
    check(p.stdout.readline() == "up\n")
    gate = case.child(p, "gate")
    os.kill(gate, signal.SIGSTOP)
    # Its routes change, as with containers that come and go.
    batch = "".join("addr add 203.0.113.77/32 dev up0\naddr del 203.0.113.77/32 dev up0\n"
                    for _ in range(20))
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        subprocess.run(["ip", "-batch", "-"], input=batch, text=True, check=True)
    began = time.monotonic()
    try:
        p.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.kill(gate, signal.SIGKILL)
        p.kill()
        p.communicate()
        raise AssertionError("the warden hangs on a gate that does not read")
    check(p.returncode == 124, p.returncode)
    within(14, time.monotonic() - began)  # 5 for a gate that does not end


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
    out, err = p.communicate(timeout=60)
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
                    "sh", "-c", "cat /proc/net/dev >/dev/null; curl -sk -m 20 "
                    "https://allowed.test/ -o got; exec python3 -c \"$0\"", code),
            cwd=cwd, env=case.env(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if 2 not in fds else subprocess.DEVNULL,
            preexec_fn=closed(*fds))
        try:
            _, err = p.communicate(timeout=90)
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


@prompt
def test_signal_before_init(case):
    """SIGTERM while bubblewrap still prepares: it counts once the command runs,
    or ends the start."""
    log = make(case, f"{case.lab.dir}/early-{case.who}")
    p = delayed(case, ground(case, "early"), log, "pivot_root", 500, "sleep", "30")
    end = time.monotonic() + 30
    while time.monotonic() < end and not any(
            words(x)[:1] == ["bwrap"] for x in descendants(p.pid)):
        time.sleep(0.005)
    time.sleep(0.75)  # the gate is up, pid 1 is not
    below = descendants(p.pid)
    ours = next(x for x in below if words(x)[1:2] == ["run"])
    began = time.monotonic()
    os.kill(ours, signal.SIGTERM)
    try:
        p.communicate(timeout=25)  # it sleeps for 30
    except subprocess.TimeoutExpired:
        os.kill(ours, signal.SIGKILL)
        p.communicate(timeout=60)
        raise AssertionError("SIGTERM was lost")
    check(p.returncode in (143, -15), p.returncode)
    within(5, time.monotonic() - began)


@prompt
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
    end, found = time.monotonic() + 30, False
    while time.monotonic() < end and not found:
        below = descendants(p.pid)
        found = any(words(x)[:1] == ["bwrap"] and descendants(x) for x in below)
    ours = [x for x in below if words(x)[1:2] == ["run"]]
    for pid in ours[:1]:
        os.kill(pid, signal.SIGKILL)
    left = ended(mark)
    p.kill()
    p.wait(60)
    check(found and not left, (found, left))


def test_no_stderr_and_something_to_say(case):
    """What we say to nobody must not be said into the log."""
    wrong = []
    for what in "note", "gate":
        cwd = "/etc" if what == "note" else ground(case, "nostderr")
        log = make(case, f"{case.lab.dir}/nostderr-{case.who}-{what}")
        p = subprocess.Popen(argv_of(case, "run", "--verbose", "--log", log, "--", "sh", "-c",
                                     "echo up; read x; exit 0"), cwd=cwd, env=case.env(),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             preexec_fn=closed(2))
        up = p.stdout.readline()
        if what == "gate" and up:
            case.kill(p, "gate")
            case.lab.wait(lambda: "the gate died" in open(log + "/audit.jsonl").read())
        p.communicate("\n", timeout=60)
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
    p.communicate(timeout=60)
    check(p.returncode == 5, f"status {p.returncode}: SIGHUP went through nohup")


def test_teardown_under_load(case):
    """Not a packet while it ends."""
    for args in ("--timeout", "2s"), ():
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
        p.communicate(timeout=60)
    silent(case)


def test_many_at_once(case):
    cwd = ground(case, "parallel")
    all_ = [spawn(case, cwd, "sh", "-c", f"curl -sk -m 60 https://allowed.test/; exit {i}",
                  args=("--allow", "allowed.test")) for i in range(20)]
    for i, (p, log) in enumerate(all_):
        out, err = p.communicate(timeout=120)
        check(p.returncode == i and "hello" in out, (i, p.returncode, out, err))
        whole(log)


def signalled(case, sig, ms, cwd, log, mark):
    """How long it took from the signal on, and its status."""
    # No pipes: what is left would hold them open for ever.
    p = subprocess.Popen(argv_of(case, "run", "--quiet", "--log", log, "--", "sleep", "20"),
                         cwd=cwd, env={**case.env(), "MARK": mark},
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    time.sleep(ms / 1000)
    began = time.monotonic()
    os.kill(p.pid, sig)
    try:
        p.wait(15)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()
        return 15, "none"
    return time.monotonic() - began, p.returncode


@prompt
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
            # What the machine does beside it only ever adds.
            for _ in range(3):
                took, status = signalled(case, sig, ms, cwd, log, mark)
                if status not in (-sig, 128 + sig):
                    odd.append((sig.name, ms, status))
                if took < 3:
                    break
            else:
                slow.append((sig.name, ms))
                if len(slow) == 3:
                    break
    left = ended(mark)
    check(not left, left)
    check(not slow, f"did not end: {slow}")
    check(not odd, f"odd status: {odd}")
    check(sorted(os.listdir("/sys/class/net")) == links)
    with open("/proc/self/mounts") as f:
        check(f.read() == mounts)


def test_zombies(case):
    """A session reaps what it starts, and what is orphaned inside."""
    p, _ = spawn(case, ground(case, "zombies"), "sh", "-c",
                 "for i in 1 2 3 4 5 6 7 8; do (true & ) ; done; sleep 0.3; echo up; read x",
                 stdin=subprocess.PIPE)
    check(p.stdout.readline() == "up\n")
    def zombie(pid):
        try:
            with open(f"/proc/{pid}/stat") as f:
                return f.read().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            return False
    end = time.monotonic() + 20
    while zombies := [pid for pid in descendants(p.pid) if zombie(pid)]:
        check(time.monotonic() < end, zombies)
        time.sleep(0.05)
    p.communicate("\n", timeout=60)
