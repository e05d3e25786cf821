# SPDX-License-Identifier: Apache-2.0
"""The boundary holds: against faults of ours, and against what a process inside
can do to its surroundings."""
import json
import os
import signal
import socket
import subprocess
import time

from harness import check, descendants, prompt, silent, within

# Tries everything, for ever; prints a line when something got out.
PROBER = """
import socket, sys, time
end = time.time() + {seconds}
n = 0
while time.time() < end:
    for address, port in (("93.184.216.66", 443), ("8.8.8.8", 80)):
        s = socket.socket(); s.settimeout(0.3)
        try: s.connect((address, port)); print("LEAK tcp", flush=True)
        except OSError: pass
        s.close()
        u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try: u.sendto(b"leak", (address, 9)); u.sendto(b"leak", (address, 53))
        except OSError: pass
        u.close()
    n += 1
    if n == 1: print("probing", flush=True)
    time.sleep(0.005)
print("probed", n)
"""


def rest(process):
    out, err = process.communicate(timeout=120)
    check("LEAK" not in out and "probed" in out, (out, err))
    return out, err


def test_gate_killed(case):
    process, log = case.start("python3", "-c", PROBER.format(seconds=4) + """
import subprocess
for i in range(300):
    r = subprocess.run(["curl", "-s", "-m", "3", "https://allowed.test/"], capture_output=True)
    if b"hello" in r.stdout: print("back"); break
    time.sleep(0.1)
""")
    check(process.stdout.readline() == "probing\n")
    gate = case.child(process, "gate")
    os.kill(gate, signal.SIGKILL)
    out, err = rest(process)
    check("back" in out, (out, err))
    with open(log + "/audit.jsonl") as f:
        lines = [json.loads(line) for line in f]
    check(any(r["class_uid"] == 2004 for r in lines), "no finding recorded")
    silent(case)


def test_leases_survive_the_gate(case):
    process, _ = case.start("python3", "-c", """
import socket, time, sys
a = socket.gethostbyname("allowed.test"); print(a, flush=True)
sys.stdin.readline()
for i in range(300):
    try:
        s = socket.create_connection((a, 80), 3)
        s.sendall(b"GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n")
        got = s.recv(1000)
        if b"200 OK" in got: print("same lease works"); break
    except OSError: pass
    time.sleep(0.1)
print(socket.gethostbyname("allowed.test") == a)
""", stdin=subprocess.PIPE)
    check(process.stdout.readline().startswith("198.18.0."))
    case.kill(process, "gate")
    out, err = process.communicate("go\n", timeout=60)
    check("same lease works" in out and "True" in out, (out, err))


def test_gate_killed_three_times(case):
    # One that dies before it serves is no third one, but the end.
    process, _ = case.start("sh", "-c", """
echo up
while read x; do
	until curl -s -m 5 https://allowed.test/; do sleep 0.05; done
done""", stdin=subprocess.PIPE)
    check(process.stdout.readline() == "up\n")
    for _ in range(2):
        case.kill(process, "gate")
        process.stdin.write("\n")
        process.stdin.flush()
        check("hello" in process.stdout.readline())
    case.kill(process, "gate")
    _, err = process.communicate(timeout=60)
    check(process.returncode == 125 and "three times" in err, err)


def test_ledger_killed(case):
    process, _ = case.start("sh", "-c", "curl -s https://allowed.test/ && echo ready; "
                            "read go; curl -si -m 5 http://allowed.test/; "
                            "curl -s -m 5 https://allowed.test/ ; echo status $?",
                            stdin=subprocess.PIPE)
    check("hello" in process.stdout.readline())
    check(process.stdout.readline() == "ready\n")
    before = len(case.lab.packets("dst host 93.184.216.34 and tcp[13] & 2 != 0"))
    case.kill(process, "ledger")
    out, err = process.communicate("go\n", timeout=60)
    check("hello" not in out, (out, err))
    after = len(case.lab.packets("dst host 93.184.216.34 and tcp[13] & 2 != 0"))
    check(after == before, "a SYN left without a record")


def left(case):
    """Questions and connections that left for the allowed host."""
    return case.lab.packets("port 53 or (dst host 93.184.216.34 and "
                            "tcp[13] & 2 != 0)")


def test_nothing_leaves_before_its_record(case):
    """A stopped ledger accepts nothing: not a question, not a SYN goes out
    until it goes on."""
    process, _ = case.start("sh", "-c", "echo up; read go; curl -s -m 30 "
                            "https://allowed.test/; curl -s --noproxy '*' -m 30 "
                            "https://allowed.test/", stdin=subprocess.PIPE)
    check(process.stdout.readline() == "up\n")
    ledger = case.child(process, "ledger")
    os.kill(ledger, signal.SIGSTOP)
    before = left(case)
    process.stdin.write("go\n")
    process.stdin.flush()
    time.sleep(1.5)
    after = left(case)
    os.kill(ledger, signal.SIGCONT)
    out, err = process.communicate(timeout=60)
    check(after == before, after[len(before):])
    check(out.count("hello") == 2 and len(left(case)) > len(before), (out, err))


def test_full_disk(case):
    """What can't be recorded does not leave."""
    log = f"{case.lab.dir}/full-{case.who}"
    os.mkdir(log)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", log], check=True)
    os.chmod(log, 0o700)
    case.mine(log)
    run = subprocess.run(
        [*case.drop(), case.binary, "run", "--allow", "allowed.test", "--log", log,
         "--", "sh", "-c", "for i in $(seq 200); do curl -s -m 5 "
         "http://allowed.test/ || echo failed; done"], cwd=case.work,
        env=case.env(), text=True, capture_output=True, stdin=subprocess.DEVNULL,
        timeout=300)
    answered = run.stdout.count("hello")
    with open(log + "/audit.jsonl") as f:
        recorded = [json.loads(line) for line in f]
    subprocess.run(["umount", log], check=True)
    asked = [r for r in recorded if r["class_uid"] == 4002]
    check(0 < answered < 200 and answered <= len(asked), (answered, len(asked)))


def test_host_firewall_flushed(case):
    """Rules in the machine's own namespace do not matter."""
    process, _ = case.start("python3", "-c", PROBER.format(seconds=2))
    check(process.stdout.readline() == "probing\n")
    subprocess.run(["nft", "flush", "ruleset"], check=True)
    rest(process)
    silent(case)


@prompt
def test_warden_killed(case):
    """Nobody is left, and nothing gets out."""
    process, _ = case.start("python3", "-c", PROBER.format(seconds=30))
    check(process.stdout.readline() == "probing\n")
    below = descendants(process.pid)
    # As the user, `setpriv` has become sallyport: the pid is the warden's.
    process.kill()
    process.communicate(timeout=60)
    began = time.monotonic()
    while time.monotonic() < began + 30 and any(alive(pid) for pid in below):
        time.sleep(0.05)
    took = time.monotonic() - began
    check(not any(alive(pid) for pid in below), below)
    silent(case)
    within(5, took)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_start_up(case):
    """The first thing that a command does meets the rules already."""
    for _ in range(25):
        run = case.python("""
import socket
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for address in "93.184.216.66", "8.8.8.8":
    for port in 53, 9:
        try: u.sendto(b"leak", (address, port))
        except OSError: pass
s = socket.socket(); s.settimeout(1)
try: s.connect(("93.184.216.66", 443)); print("LEAK")
except OSError: pass
""")
        check(run.status == 0 and "LEAK" not in run.out, run)
    silent(case)


def test_identity(case):
    run = case.run("cat", "/proc/self/status")
    status = dict(line.split(":\t", 1) for line in run.out.splitlines())
    for name in "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb":
        check(int(status[name], 16) == 0, run)
    check(status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", run)
    run = case.run("sh", "-c", "ls /proc/self/fd | wc -l; echo $PPID; "
                   "ls /proc | grep -c '^[0-9]'")
    fds, _, processes = run.out.split()
    check(int(fds) == 4 and int(processes) <= 6, run)


def test_log_is_out_of_reach(case):
    run = case.run("sh", "-c", f"ls -la {case.lab.dir}/log-{case.who}-{case.count + 1}; "
                   f"cat {case.lab.dir}/log-{case.who}-*/audit.jsonl; "
                   f"echo x >> {case.lab.dir}/log-{case.who}-{case.count + 1}/audit.jsonl")
    check("class_uid" not in run.out, run)
    check(run.records[-1]["class_uid"] == 6002, run)


def test_log_below_the_working_directory(case):
    """Also when its place is where the sandbox may write."""
    log = case.work + "/logs/here"
    run = subprocess.run(
        [*case.drop(), case.binary, "run", "--log", log, "--", "sh", "-c",
         "cat logs/here/*; echo x > logs/here/audit.jsonl; mv logs moved; "
         "mv logs/here logs/there; rm -rf logs; mkdir -p logs/here"],
        cwd=case.work, env=case.env(), text=True, capture_output=True,
        stdin=subprocess.DEVNULL)
    check("class_uid" not in run.stdout, run.stderr)
    with open(log + "/audit.jsonl") as f:
        lines = [json.loads(line) for line in f]
    check(lines[-1]["class_uid"] == 6002, lines)


def test_configuration_is_out_of_reach(case):
    """A sandbox must not write the policy of the next one."""
    subprocess.run(
        [*case.drop(), case.binary, "run", "--log", case.lab.dir + "/log-" +
         case.who + "-config", "--", "sh", "-c",
         "mkdir -p .config/sallyport; echo evil > .config/sallyport/policy.yaml; "
         "mv .config x; mkdir -p .config/sallyport; "
         "echo evil > .config/sallyport/policy.yaml"],
        cwd=case.work, env=case.env(), text=True, capture_output=True,
        stdin=subprocess.DEVNULL) if case.who == "root" else case.run(
        "sh", "-c", "mkdir -p .config/sallyport; echo evil > "
        ".config/sallyport/policy.yaml; mv .config x; mkdir -p .config/sallyport"
        "; echo evil > .config/sallyport/policy.yaml")
    check(not os.path.exists(case.work + "/.config/sallyport/policy.yaml"))


def test_files(case):
    run = case.run("sh", "-c", "echo a > here && cat here; "
                   "echo b > /etc/there || echo no; echo c > /usr/there || echo no; "
                   "ls /run | head; ls -A /tmp | wc -l; echo t > /tmp/t && echo tmp")
    check(run.out.startswith("a\nno\nno\n") and "tmp" in run.out, run)
    check(not os.path.exists("/tmp/t"))
    check(os.path.exists(case.work + "/here"))


def test_host_sockets(case):
    path = case.work + "/host.sock"
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    os.chmod(path, 0o777)
    server.listen(5)
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0sallyport-test")
    abstract.listen(5)
    run = case.python(f"""
import glob, os, socket, stat
def tried(path):
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET:
        s = socket.socket(socket.AF_UNIX, kind)
        try: s.connect(path); print("REACHED", path)
        except OSError as e: pass
tried({path!r}); tried("\\0sallyport-test")
for base in "/run", "/var/run", "/tmp", "/var/lib", "/dev", os.getcwd():
    for root, _, files in os.walk(base):
        for name in files:
            p = os.path.join(root, name)
            try:
                if stat.S_ISSOCK(os.stat(p).st_mode): tried(p)
            except OSError: pass
print("done")
""")
    server.close()
    abstract.close()
    os.unlink(path)
    check("REACHED" not in run.out and "done" in run.out, run)


def test_our_processes_are_out_of_reach(case):
    process, _ = case.start("python3", "-c", """
import ctypes, os, sys
pids = [int(p) for p in sys.stdin.readline().split()]
libc = ctypes.CDLL(None, use_errno=True)
for pid in pids:
    for what in ("ptrace", "kill"):
        r = libc.ptrace(16, pid, 0, 0) if what == "ptrace" else libc.kill(pid, 9)
        print("DID" if r == 0 else "refused", what, pid, flush=True)
    try: open(f"/proc/{pid}/mem", "rb"); print("DID open", pid)
    except OSError: print("refused mem")
print("init", libc.ptrace(16, 1, 0, 0), ctypes.get_errno())
""", stdin=subprocess.PIPE)
    gate, ledger = case.child(process, "gate"), case.child(process, "ledger")
    out, err = process.communicate(f"{process.pid} {gate} {ledger}\n", timeout=30)
    check("DID" not in out and out.count("refused") == 9 and "init -1 1" in out,
          (out, err))


def test_gate_and_ledger_are_confined(case):
    process, _ = case.start("sh", "-c", "echo up; read end",
                            stdin=subprocess.PIPE)
    check(process.stdout.readline() == "up\n")
    for role in "gate", "ledger":
        pid = case.child(process, role)
        with open(f"/proc/{pid}/status") as f:
            status = dict(line.split(":\t", 1) for line in f.read().splitlines())
        for name in "CapPrm", "CapEff", "CapBnd", "CapAmb":
            check(int(status[name], 16) == 0, (role, name, status[name]))
        check(status["Seccomp"] == "2" and status["NoNewPrivs"] == "1", status)
        if case.who == "root":
            check(int(status["Uid"].split()[0]) > 1900000000, status["Uid"])
        check(os.listdir(f"/proc/{pid}/root/") == [], role)
        mine = [os.readlink(f"/proc/{p}/ns/pid") for p in (pid, "self")]
        check(mine[0] != mine[1], mine)
    process.communicate("\n", timeout=30)


def test_sandbox_namespace(case):
    """One link; the gateway has no way on."""
    run = case.run("sh", "-c", "ls /sys/class/net /proc/sys/net/ipv4/conf; "
                   "cat /proc/net/route | wc -l; cat /proc/net/dev | grep -c ':'")
    check(run.out.rstrip().endswith("2"), run)


def test_nested_namespaces_have_no_exit(case):
    run = case.run("sh", "-c", "unshare -Urn curl -s -m 3 https://allowed.test/ "
                   "--noproxy '*'; echo status $?")
    check("hello" not in run.out, run)


def test_flood_is_folded(case):
    run = case.python("""
import socket
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(3000):
    try: u.sendto(b"x", ("8.8.8.8", 9999))
    except OSError: pass
import time; time.sleep(1.2)
""")
    packets = [r for r in run.denied("bypass")
               if r.get("dst_endpoint", {}).get("ip") == "8.8.8.8"]
    check(1 <= len(packets) <= 20, len(packets))
    check(sum(r.get("count", 1) for r in packets) > 100, packets)
    silent(case)
