# SPDX-License-Identifier: Apache-2.0
"""The command line: statuses, errors, signals, terminals, serve."""
import json
import os
import re
import signal
import subprocess
import time

from harness import Run, USER, check, silent


def test_exit_status(case):
    for status in 0, 3, 100:
        run = case.run("sh", "-c", f"exit {status}")
        check(run.status == status, run)
    check(case.run("sh", "-c", "kill -9 $$").status == 137)
    check(case.run("no-such-command-here").status == 127)
    check(case.run("/etc/passwd").status == 126)


def test_missing_command_says_so(case):
    run = case.run("no-such-command-here")
    check("no-such-command-here" in run.err and "not found" in run.err, run)


def test_timeout(case):
    began = time.monotonic()
    run = case.run("sleep", "60", args=("--timeout", "1s"))
    check(run.status == 124 and time.monotonic() - began < 10, run)
    run = case.run("sh", "-c", "trap '' TERM; while :; do sleep 1; done",
                   args=("--timeout", "1s"))
    check(run.status == 124 and time.monotonic() - began < 20, run)


def test_signals_are_forwarded(case):
    process, _ = case.start("sh", "-c", "trap 'echo caught; exit 9' TERM; "
                            "echo ready; while :; do sleep 0.1; done")
    check(process.stdout.readline() == "ready\n")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    check(process.returncode == 9 and "caught" in out, (process.returncode, out, err))


def test_bad_policies(case):
    bad = {
        "version: 1\nalow: []\n": (2, 1, "alow"),
        "version: 1\nallow:\n  - a.b.*\n": (3, 5, "*"),
        "version: 1\nallow:\n  - host: a.test\n    ports: [0]\n": (4, 13, "port"),
        "version: 1\nallow:\n  - host: a.test\n    ports: [70000]\n": (4, 13, "port"),
        "version: 1\nversion: 1\n": (2, 1, "version"),
        "version: 1\nallow: 3\n": (2, 8, "allow"),
        "version: 1\nallow:\n  - 'bad host'\n": (3, 5, "host"),
        "version: 2\n": (1, 10, "version"),
    }
    path = case.work + "/bad.yaml"
    for text, (line, column, word) in bad.items():
        with open(path, "w") as f:
            f.write(text)
        run = case.run("true", allow=(), args=("--policy", path))
        check(run.status == 125 and f"{path}:{line}:{column}: " in run.err
              and word in run.err, (text, str(run)))
    os.unlink(path)
    check(case.run("true", args=("--policy", "/no/such")).status == 125)
    check(case.run("true", args=("--allow", "githubb")).status == 125)
    check(case.run("true", args=("--nonsense",)).status == 125)
    check(case.run("true", args=("--timeout", "soon")).status == 125)


def test_policy_file(case):
    path = case.lab.dir + "/policy.yaml"
    with open(path, "w") as f:
        f.write("version: 1\nname: t\nallow:\n  - host: allowed.test\n    ports: "
                "[443]\n  - host: private.test\n    addresses: [10.0.0.0/8]\n"
                "deny:\n  - other.test\n")
    run = case.run("curl", "-s", "-w", "%{http_connect} ", "https://allowed.test/",
                   "https://other.test/", "http://allowed.test/",
                   allow=("other.test",), args=("--policy", path))
    check("hello" in run.out and run.denied("deny_rule", "other.test")
          and run.denied("port", "allowed.test"), run)
    check("policy.yaml:" in json.dumps(run.records), run.records)


def test_permit(case):
    """10.1.2.3 is nobody here, but it may be tried now."""
    run = case.run("curl", "-si", "-m", "20", "http://private.test/",
                   allow=("private.test",), args=("--permit", "10.0.0.0/8"))
    check("forbidden_address" not in run.out, run)


def test_environment(case):
    run = case.run("env")
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY",
                 "HTTPS_PROXY", "ALL_PROXY"):
        check(f"{name}=http://198.19.0.1:3128" in run.out, run)


def test_json_summary(case):
    run = case.run("curl", "-s", "https://allowed.test/", "http://evil.test/",
                   args=("--json",))
    text = run.err[run.err.index("{"):]
    check("allowed.test" in text and "not_in_policy" in text
          and json.loads(text), run)


def test_quiet(case):
    run = case.run("true", args=("--quiet",))
    check(run.status == 0 and run.err == "", run)


def test_default_log_directory(case):
    process = subprocess.run(
        [*case.drop(), case.binary, "run", "--", "true"], cwd=case.work,
        env=case.env(), text=True, capture_output=True, stdin=subprocess.DEVNULL)
    path = [w for w in process.stderr.split() if w.endswith("audit.jsonl")]
    check(process.returncode == 0 and path and os.path.exists(path[0]),
          process.stderr)
    want = "/var/log/sallyport/" if case.who == "root" else case.work + "/.state/sallyport/"
    check(path[0].startswith(want), path)
    check(os.stat(path[0]).st_mode & 0o777 == 0o600)
    if case.who == "root":
        subprocess.run(["rm", "-r", os.path.dirname(path[0])], check=True)


PTY = """
import os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
got = ""
def until(word, seconds=60):
    global got
    end = time.time() + seconds
    while time.time() < end and word not in got:
        if select.select([fd], [], [], 0.2)[0]:
            try: data = os.read(fd, 4096)
            except OSError: break
            got += data.decode(errors="replace")
    assert word in got, got
    got = got.partition(word)[2]
os.write(fd, b"PS1='rea''dy> '\\n"); until("ready> ")
os.write(fd, b"tty; echo one-$((1+1))\\n"); until("one-2"); until("ready> ")
# What it says itself says that the terminal is its own.
os.write(fd, b"sh -c 'echo be''gun; exec sleep 1000'\\n"); until("begun"); os.write(fd, b"\\x03"); until("ready> ")
os.write(fd, b"sleep 999 & jobs\\n"); until("Running"); until("ready> ")
os.write(fd, b"kill %1; exit 5\\n")
_, status = os.waitpid(pid, 0)
print("exit", os.waitstatus_to_exitcode(status))
"""


def test_interactive_shell(case):
    log, argv = case.argv(["bash", "--norc", "--noprofile", "-i"],
                          ("allowed.test",), ())
    process = subprocess.run(["python3", "-c", PTY, *argv], cwd=case.work,
                             env=case.env(), text=True, capture_output=True,
                             timeout=300)
    check("exit 5" in process.stdout, Run(process, log))


SERVE_PORT = 18080


def test_serve(case):
    log = f"{case.lab.dir}/log-serve-{case.who}"
    os.mkdir(log, 0o700)
    case.mine(log)
    process = subprocess.Popen(
        [*case.drop(), case.binary, "serve", "--allow", "allowed.test", "--log",
         log, "--proxy", f"127.0.0.1:{SERVE_PORT}", "--dns", "127.0.0.1:15353",
         "--tls", "127.0.0.1:18443"], env=case.env(), text=True,
        stderr=subprocess.PIPE, cwd=case.work)
    try:
        check("serving" in process.stderr.readline())

        def curl(*args):
            return subprocess.run(["curl", "-s", *args], text=True,
                                  capture_output=True, env=case.env()).stdout
        proxy = f"http://127.0.0.1:{SERVE_PORT}"
        check("hello" in curl("-x", proxy, "https://allowed.test/"))
        check("hello" in curl("-x", proxy, "http://allowed.test/"))
        check("not_in_policy" in curl("-x", proxy, "http://evil.test/"))
        check("hello" in curl("--connect-to", "allowed.test:443:127.0.0.1:18443",
                              "https://allowed.test/"))
        check("hello" not in curl("--connect-to", "evil.test:443:127.0.0.1:18443",
                                  "https://evil.test/"))
        # Itself, and the machine, are no way in.
        check("HTTP/1.1 200" not in curl("-i", "-x", proxy,
                                         f"http://127.0.0.1:{SERVE_PORT}/"))
        dig = subprocess.run(["dig", "+short", "-p", "15353", "@127.0.0.1",
                              "allowed.test"], text=True, capture_output=True)
        check(dig.stdout.strip() == "127.0.0.1", dig)
        dig = subprocess.run(["dig", "-p", "15353", "@127.0.0.1", "evil.test"],
                             text=True, capture_output=True)
        check("NXDOMAIN" in dig.stdout, dig)
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    check(process.returncode == 0 and "allowed.test" in err, err)
    with open(log + "/audit.jsonl") as f:
        check(all(json.loads(line) for line in f))
    silent(case)


def test_serve_is_never_open(case):
    process = subprocess.run([*case.drop(), case.binary, "serve", "--proxy",
                              "203.0.113.2:18081"], env=case.env(), text=True,
                             capture_output=True, cwd=case.work)
    check(process.returncode == 125 and "--client" in process.stderr, process)


def test_user_option(case):
    if case.who == "user":
        run = case.run("id", "-u")
        check(run.out.strip() == str(USER), run)
        check(case.run("true", args=("--user", "nobody")).status == 125)
        return
    run = case.run("id", "-un", args=("--user", "nobody"))
    check(run.out.strip() == "nobody", run)
    run = case.run("id", "-u")
    check(int(run.out) > 1900000000, run)
    check(case.run("true", args=("--user", "root")).status == 125)


def test_help(case):
    for argv in (["--help"], ["run", "--help"], ["serve", "--help"],
                 ["presets"], ["presets", "github"], ["version"]):
        out = subprocess.run([case.binary, *argv], text=True, capture_output=True)
        check(out.returncode == 0 and out.stdout and not out.stderr, out)
    listed = subprocess.run([case.binary, "--help"], text=True,
                            capture_output=True).stdout
    commands = re.findall(r"(?m)^  ([a-z]+)  ", listed)
    check(len(commands) > 15, listed)
    for command in commands:
        if command in ("help", "version"):
            continue
        out = subprocess.run([case.binary, command, "--help"], text=True,
                             capture_output=True)
        wide = [x for x in out.stdout.splitlines() if len(x) > 80]
        check(out.returncode == 0 and command in out.stdout and not wide,
              (out, wide))
