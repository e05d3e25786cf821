# SPDX-License-Identifier: Apache-2.0
"""A ledger that is slow, that dies, whose disk is full or broken: nothing leaves
without its record, and whoever waits or is cut off is told so."""
import json
import os
import signal
import subprocess
import time

from harness import check
from witness import CLIENT, Witness, policy, read_log, unrecorded

GRACE_S = 5  # LEDGER_GRACE_S
MB = 1000 * 1000

# As many flows as can be made, by each door; says when each door has had some.
LOAD = CLIENT + """
good, bad = dict.fromkeys(DOORS, 0), {}
def work(door):
    while True:
        try: got = door()
        except OSError as e: got = str(e).encode()
        if got == b"ok\\n": good[door] += 1
        else:
            bad[got] = bad.get(got, 0) + 1
            time.sleep(0.05)
for door in DOORS * 2: threading.Thread(target=work, args=(door,), daemon=True).start()
while min(good.values()) < 21: time.sleep(0.01)
print("go", flush=True)
"""


def begin(case, code, **kw):
    process, log = case.start("python3", "-c", code, allow=(),
                              args=kw.pop("args", ()) or policy(case),
                              stdin=subprocess.PIPE, **kw)
    line = process.stdout.readline()
    if line != "go\n":
        raise AssertionError((line, process.communicate()))
    return process, log


def say(process, line):
    process.stdin.write(line + "\n")
    process.stdin.flush()


def proven(witness, log):
    """Nothing arrived that is not in the log."""
    records = read_log(log + "/audit.jsonl")
    missing = unrecorded(witness.ids(), records)
    check(not missing, (len(missing), missing[:5]))
    return records


# --- slow ----------------------------------------------------------------------

def test_stopped(case):
    """Flows wait as long as it takes, at every door, and none is lost."""
    with Witness(case, "stopped") as witness:
        process, log = begin(case, LOAD + """
before = sum(good.values())
sys.stdin.readline()
print("seen", sum(good.values()) - before, bad, flush=True)
sys.stdin.readline()
""")
        ledger = case.child(process, "ledger")
        os.kill(ledger, signal.SIGSTOP)
        time.sleep(1)
        before = witness.count()
        time.sleep(5)
        check(witness.count() == before, (before, witness.count()))
        proven(witness, log)  # what came had its record before, not after it
        os.kill(ledger, signal.SIGCONT)
        time.sleep(2)
        check(witness.count() > before + 40, (before, witness.count()))
        say(process, "")
        seen = process.stdout.readline()
        check(seen.endswith(" {}\n"), seen)  # nobody was refused
        process.communicate("end\n", timeout=60)
        check(process.returncode == 0, process.returncode)
        records = proven(witness, log)
        check(not [r for r in records if r["class_uid"] == 2004], log)


# A transfer that says how much has come, or gone, and how far apart two bytes
# were at most.
BULK = CLIENT + """
way, door = sys.argv[1:]
if door == "http":
    s = socket.create_connection(PROXY, 60)
    if way == "down":
        s.sendall(b"GET http://allowed.test/big HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n")
    else:
        s.sendall(b"GET http://allowed.test:%d/up HTTP/1.1\\r\\nHost: allowed.test:%d\\r\\n"
                  b"Content-Length: 2000000000\\r\\n\\r\\n" % (PORT, PORT))
elif door == "proxy":
    s, _ = connect()
else:
    s = socket.create_connection((HOST, PORT), 60)
if door != "http":
    s.sendall(name("bulk", s).encode() + (b" 4000000000\\n" if way == "down" else b"\\n"))
moved = 0
def move():
    global moved
    block = bytes(1 << 16)
    while True:
        n = len(s.recv(1 << 20)) if way == "down" else s.send(block)
        if not n: break
        if not echoed: moved += n
        time.sleep(0.002)
# What came back has left; what was sent may wait in buffers of any size.
echoed = way == "up" and door != "http"
def echo():
    global moved
    while True:
        n = len(s.recv(1 << 20))
        if not n: break
        moved += n
threading.Thread(target=move, daemon=True).start()
if echoed: threading.Thread(target=echo, daemon=True).start()
while moved < 100000: time.sleep(0.001)
print("go", flush=True)
for line in sys.stdin:
    print(moved, flush=True)
    if line == "end\\n": os._exit(0)
"""


def test_stopped_in_the_middle(case):
    """A long transfer is recorded every 10 MB: without that it stands still, and
    goes on after it."""
    for way, door in (("down", "proxy"), ("up", "proxy"), ("down", "direct"),
                      ("down", "http")):
        with Witness(case, f"middle-{way}-{door}"):
            process, log = case.start("python3", "-c", BULK, way, door, allow=(),
                                      args=policy_with_http(case),
                                      stdin=subprocess.PIPE)
            check(process.stdout.readline() == "go\n", (way, door))

            def moved():
                say(process, "?")
                return int(process.stdout.readline())
            ledger = case.child(process, "ledger")
            before = moved()
            os.kill(ledger, signal.SIGSTOP)
            time.sleep(3)
            stopped = moved()
            time.sleep(1)
            # What is in the kernel's buffers is not ours to hold.
            check(stopped - before < 30 * MB and moved() == stopped,
                  (way, door, before, stopped, moved()))
            os.kill(ledger, signal.SIGCONT)
            time.sleep(2)
            check(moved() - stopped > 20 * MB, (way, door, stopped, moved()))
            process.communicate("end\n", timeout=30)
            told = [r["traffic"]["bytes"] for r in read_log(log + "/audit.jsonl")
                    if r["unmapped"]["event"] == "flow_progress"]
            steps = [b - a for a, b in zip([0] + told, told)]
            # The one before, and the next one that had to wait for it.
            check(steps and max(steps) < 13 * MB, (way, door, steps))


def policy_with_http(case):
    path = f"{case.lab.dir}/bulk-{case.who}.yaml"
    with open(path, "w") as f:
        f.write("version: 1\nallow:\n  - {host: allowed.test, ports: [80, 8082], "
                "protocol: any}\n")
    return ("--policy", path)


# --- dead ----------------------------------------------------------------------

# One flow that goes on, one that ends soon; then what each door says.
DOORS = CLIENT + """
import ssl, struct
def tls():
    with socket.create_connection((ADDRESS, 443), 10) as s:
        context = ssl._create_unverified_context()
        out, into = ssl.MemoryBIO(), ssl.MemoryBIO()
        hello = context.wrap_bio(into, out, server_hostname=HOST)
        try: hello.do_handshake()
        except ssl.SSLWantReadError: pass
        s.sendall(out.read())
        got = s.recv(7)
        return "alert %d" % got[6] if got[:1] == b"\\x15" else "type %d" % got[0]
def dns():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)
    name = b"".join(bytes([len(l)]) + l for l in (b"allowed", b"test"))
    s.sendto(struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + name + b"\\0" + struct.pack(">2H", 1, 1),
             ("198.19.0.1", 53))
    return "rcode %d" % (s.recv(512)[3] & 15)
def tries(f):
    try: return f()
    except OSError as e: return type(e).__name__
def http_says(got):
    status = got.split()[1] if " " in got else "none"
    return status + (" proxy-status" if "ledger_unavailable" in got
                     and "proxy-status: sallyport; error=proxy_internal_error" in got.lower() else "")
def plain():
    with socket.create_connection(PROXY, 10) as s:
        s.sendall(b"GET http://allowed.test:8082/http-x-1 HTTP/1.1\\r\\nHost: allowed.test:8082\\r\\n\\r\\n")
        got = b""
        while True:
            more = s.recv(65536)
            if not more: return http_says(got.decode())
            got += more
def tunnel():
    s, got = connect()
    if " 200 " in got:
        with s: return ask(s, "connect")
    return http_says(got)
def by_socks_now():
    s, got = socks(10)
    if got[1]: return "code %d" % got[1]
    with s: return ask(s, "socks")
def direct():
    with socket.create_connection((ADDRESS, PORT), 10) as s: return ask(s, "direct")
ADDRESS = socket.gethostbyname(HOST)
going, _ = connect(); ask(going, "connect")
short, _ = connect(); ask(short, "connect")
print("go", flush=True)
sys.stdin.readline()
began = time.monotonic()
time.sleep(0.3)
for f in tunnel, by_socks_now, plain, direct, tls, dns: print(f.__name__, tries(f), flush=True)
while time.monotonic() - began < 2.5:
    short.sendall(b"x"); assert short.recv(1) == b"x"
    time.sleep(0.1)
short.shutdown(socket.SHUT_WR)
print("short", short.recv(1), flush=True)
try:
    while True:
        going.sendall(b"x")
        if not going.recv(1): raise OSError()
        time.sleep(0.02)
except OSError: print("cut", time.monotonic(), tries(tunnel), flush=True)
time.sleep(60)
"""


def test_killed(case):
    """Nothing new from that moment on, at any door; what went on has time to end,
    then it is cut, and the session ends."""
    with Witness(case, "killed") as witness:
        process, log = begin(case, DOORS)
        before = witness.count()
        ledger = case.child(process, "ledger")
        began = time.monotonic()
        os.kill(ledger, signal.SIGKILL)
        out, err = process.communicate("killed\n", timeout=60)
        lasted = time.monotonic() - began
        said = dict(line.split(" ", 1) for line in out.splitlines())
        when, _, then = said.pop("cut").partition(" ")
        check(said == {"tunnel": "503 proxy-status", "by_socks_now": "code 1",
                       "plain": "503 proxy-status",
                       "direct": "ConnectionResetError", "tls": "alert 80",
                       "dns": "rcode 2", "short": "b''"}, (said, err))
        when = float(when) - began
        check(GRACE_S - 0.5 < when < GRACE_S + 1
              and then == "503 proxy-status", (when, then))
        check(GRACE_S + 0.5 < lasted < GRACE_S + 4, lasted)
        check(process.returncode == 125 and "the ledger died" in err
              and "the ledger is gone" in err, (process.returncode, err))
        check(witness.count() == before, witness.ids())


def not_known(err):
    """Who can't count claims no numbers."""
    check("reached and refused is not known" in err and
          "receipt: none" in err and "nothing was" not in err and
          "records)" not in err, err)


def lost_under_load(case, name, lose, where=None, says="the log is lost"):
    """The load runs until the session fails for it."""
    args = (*policy(case), *(("--log", where) if where else ()))
    with Witness(case, name) as witness:
        process, log = begin(case, LOAD + """
while not any(b"ledger_unavailable" in b for b in bad): time.sleep(0.01)
print("unavailable", flush=True)
time.sleep(60)
""", args=args)
        log = where or log
        undo = lose(case.child(process, "ledger"), log)
        out, err = process.communicate(timeout=300)
        if undo:
            undo()
        check(out == "unavailable\n" and process.returncode == 125, (out, err))
        check(says in err and "the ledger died" in err, err)
        not_known(err)
        check(witness.count() > 80, witness.count())
        proven(witness, log)


def test_killed_under_load(case):
    def lose(ledger, _):
        os.kill(ledger, signal.SIGKILL)
    with Witness(case, "load") as witness:
        process, log = begin(case, LOAD + "time.sleep(60)")
        lose(case.child(process, "ledger"), log)
        _, err = process.communicate(timeout=60)
        check(process.returncode == 125 and "the ledger died" in err, err)
        not_known(err)
        check(witness.count() > 80, witness.count())
        records = read_log(log + "/audit.jsonl", torn=True)
        missing = unrecorded(witness.ids(), records)
        check(not missing, (len(missing), missing[:5]))


def serving(case, *args, port):
    log = f"{case.lab.dir}/serve{port}-{case.who}"
    os.mkdir(log, 0o700)
    case.mine(log)
    process = subprocess.Popen(
        [*case.drop(), case.binary, "serve", "--allow", "allowed.test", "--log", log,
         "--proxy", f"127.0.0.1:{port}", *args], env=case.env(), text=True,
        stderr=subprocess.PIPE, cwd=case.work)
    line = process.stderr.readline()
    while "serving" not in line:
        check(line)
        line = process.stderr.readline()
    return process


def test_nothing_is_claimed(case):
    """For programs, and under `serve`: what is not known is null."""
    run, _ = case.start("sh", "-c", "echo go; sleep 600", args=("--json",))
    check(run.stdout.readline() == "go\n")
    table, line = serving(case, port=18094), serving(case, "--json", port=18095)
    for process in run, table, line:
        os.kill(case.child(process, "ledger"), signal.SIGKILL)
    said = [process.communicate(timeout=60)[1] for process in (run, table, line)]
    for process, err in zip((run, table, line), said):
        check(process.returncode == 125, (process.returncode, err))
    not_known(said.pop(1))
    for err in said:
        told = json.loads(err.splitlines()[-1])
        check({key for key in told if told[key] is None} ==
              {"records", "reached", "would_be_refused", "refused", "findings",
               "policy_changes"}, told)
        check("receipt" not in told, told)


def test_disk_full(case):
    """In the middle of a line, as it comes."""
    where = f"{case.lab.dir}/full-{case.who}"
    os.makedirs(where, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0777", "full",
                    where], check=True)
    try:
        os.mkdir(where + "/log", 0o700)
        case.mine(where + "/log")

        lost_under_load(case, "full", lambda ledger, log: None,
                        where=where + "/log")
    finally:
        subprocess.run(["umount", "-l", where], check=True)


def test_disk_broken(case):
    """EIO, of each write from now on."""
    def lose(ledger, _):
        strace = subprocess.Popen(
            ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=write",
             "-e", "inject=write:error=EIO", "-p", str(ledger)],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        return lambda: check(strace.wait(60) in (0, 1), strace.stderr.read())
    # It can't say so either.
    lost_under_load(case, "broken", lose, says="the ledger is gone")
