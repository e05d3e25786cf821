# SPDX-License-Identifier: Apache-2.0
"""`sallyport exec`, with namespaces that are there and a daemon that is not: a
server in its place says where the sandbox is, rightly or wrongly."""
import contextlib
import os
import signal
import subprocess
import sys
import time

from harness import USER, check
from lab import HERE, sh

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cmd"))
from fake_daemon import FakeDaemon, sandbox  # noqa: E402

# Makes namespaces as the daemon does for a user, says so, and waits.
HOLD = """
import ctypes, os, sys, time
uid = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
def unshare(flags):
    if libc.unshare(flags):
        raise OSError(ctypes.get_errno(), "unshare")
if uid:
    os.setgroups([]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
    libc.prctl(4, 1, 0, 0, 0)
    unshare(0x10000000)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"),
                       ("gid_map", f"0 {uid} 1")):
        with open("/proc/self/" + name, "w") as f:
            f.write(text)
unshare(0x40000000)
print("made", flush=True)
time.sleep(1000)
"""


@contextlib.contextmanager
def namespace(case, uid, name):
    """A pinned network namespace of a user: its path."""
    path = f"{case.lab.dir}/{name}-{case.who}"
    holder = subprocess.Popen(["python3", "-c", HOLD, str(uid)], text=True,
                              stdout=subprocess.PIPE)
    check(holder.stdout.readline() == "made\n")
    open(path, "w").close()
    sh("mount", "--bind", f"/proc/{holder.pid}/ns/net", path)
    holder.kill()
    holder.wait()
    holder.stdout.close()
    try:
        yield path
    finally:
        sh("umount", path)
        os.unlink(path)


def me(case):
    return USER if case.who == "user" else 0


@contextlib.contextmanager
def world(case, **more):
    """A sandbox "box" of ours, and the daemon that says so."""
    with namespace(case, me(case), "net") as path, \
            FakeDaemon(f"{case.lab.dir}/control-{case.who}") as daemon:
        daemon.netns = path
        daemon.sandboxes["box"] = sandbox("box", uid=me(case), netns=path,
                                          **more)
        yield daemon


def argv(case, daemon, *args):
    return [*case.drop(), case.binary, "exec", "--socket", daemon.path, *args]


def execute(case, daemon, *args, **kw):
    kw.setdefault("env", case.env())
    return subprocess.run(argv(case, daemon, *args), cwd=case.work, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL,
                          timeout=60, **kw)


def inode(path):
    return os.stat(path).st_ino


def test_it_is_in_the_sandbox(case):
    with world(case) as daemon:
        out = execute(case, daemon, "box", "--", "sh", "-c",
                      "readlink /proc/self/ns/net; echo $http_proxy; "
                      "cat /etc/resolv.conf; id -u; cat /proc/net/dev")
        check(out.returncode == 0, out)
        ns, proxy, resolv, uid, *links = out.stdout.splitlines()
        check(ns == f"net:[{inode(daemon.netns)}]", out)
        check(inode("/proc/self/ns/net") != inode(daemon.netns), out)
        check(proxy == "http://198.19.0.1:3128", out)
        check(resolv == "nameserver 198.19.0.1", out)
        check(int(uid) == USER if case.who == "user" else
              int(uid) > 1900000000, out)
        check([x.split(":")[0].strip() for x in links[2:]] == ["lo"], out)


def test_many_times_at_once(case):
    with world(case) as daemon:
        all_of_them = [subprocess.Popen(
            argv(case, daemon, "box", "readlink", "/proc/self/ns/net"),
            cwd=case.work, env=case.env(), text=True, stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL) for _ in range(8)]
        want = f"net:[{inode(daemon.netns)}]\n"
        for one in all_of_them:
            check(one.communicate(timeout=60)[0] == want and
                  one.returncode == 0, one.returncode)


def test_statuses(case):
    with world(case) as daemon:
        for command, status in (("exit 7", 7), ("kill -TERM $$", 143),
                                ("no-such-command", 127), ("/etc", 126)):
            out = execute(case, daemon, "box", "--", "sh", "-c", command)
            check(out.returncode == status, (status, out))
        check(execute(case, daemon, "box", "no-such-command").returncode
              == 127)
        began = time.monotonic()
        out = execute(case, daemon, "--timeout", "1", "box", "sleep", "60")
        check(out.returncode == 124 and "time limit" in out.stderr and
              time.monotonic() - began < 20, out)


def test_signals_and_terminal(case):
    from test_commands import PTY
    with world(case) as daemon:
        p = subprocess.Popen(
            argv(case, daemon, "box", "sh", "-c",
                 "trap 'echo got it; exit 9' TERM; echo up; "
                 "while :; do sleep 0.05; done"),
            cwd=case.work, env=case.env(), text=True, stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL)
        check(p.stdout.readline() == "up\n")
        p.send_signal(signal.SIGTERM)
        check(p.communicate(timeout=30)[0] == "got it\n" and
              p.returncode == 9, p.returncode)
        # Who waits dies: what was run dies too.
        # That no other test has.
        asleep = f"sleep {2000000 + os.getpid()}"
        p = subprocess.Popen(
            argv(case, daemon, "box", "sh", "-c", "echo up; exec " + asleep),
            cwd=case.work, env=case.env(), text=True, stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL)
        check(p.stdout.readline() == "up\n")
        p.kill()
        p.wait()
        p.stdout.close()
        end = time.monotonic() + 30
        while asleep in sh("ps", "-eo", "args"):
            check(time.monotonic() < end, "it outlived its caller")
            time.sleep(0.05)
        out = subprocess.run(
            ["python3", "-c", PTY, *argv(case, daemon, "box", "bash", "--norc",
                                         "--noprofile", "-i")],
            cwd=case.work, env=dict(case.env(), TERM="dumb"), text=True,
            capture_output=True, timeout=300)
        check(out.stdout.endswith("exit 5\n"), out)


def test_environment(case):
    with world(case) as daemon:
        env = case.env(SSH_AUTH_SOCK="/x", http_proxy="http://evil.test",
                       SALLYPORT_SOCKET="/x")
        out = execute(case, daemon, "--env", "A=b c", "box", "--env",
                      "LD_PRELOAD=/x", "--env", "HTTPS_PROXY=http://evil.test",
                      "env", env=env)
        lines = out.stdout.splitlines()
        check(out.returncode == 0 and "A=b c" in lines, out)
        check("HTTPS_PROXY=http://198.19.0.1:3128" in lines and
              "evil" not in out.stdout, out)
        for name in ("SSH_AUTH_SOCK", "LD_PRELOAD", "SALLYPORT_SOCKET"):
            check(name not in out.stdout, out)


def test_view(case):
    """What later sessions trust is out of its reach, as under `run`."""
    with world(case) as daemon:
        # It came from a file in the working directory.
        policy = case.work + "/box.yaml"
        with open(policy, "w") as f:
            f.write("version: 1\nallow: [allowed.test]\n")
        os.chmod(policy, 0o644)
        case.mine(policy)
        out = subprocess.run([*case.drop(), case.binary, "policy", "box",
                              "box.yaml", "--socket", daemon.path],
                             cwd=case.work, env=case.env(), text=True,
                             capture_output=True, timeout=60)
        check(out.returncode == 0, out)
        out = execute(case, daemon, "box", "sh", "-c",
                      "cat box.yaml; echo mine > box.yaml; echo w > written; "
                      f"ls -A .state/sallyport; ls -A {case.lab.dir}/control*")
        check("allowed.test" not in out.stdout, out)
        with open(policy) as f:
            check("allowed.test" in f.read(), out)
        check(os.path.exists(case.work + "/written"), out)
        check(case.who == "root" or "made" not in out.stdout, out)
        check("control-" not in out.stdout, out)
        os.unlink(policy)
        os.unlink(case.work + "/written")


def refused(case, daemon, word, **more):
    mark = case.work + "/ran"
    daemon.sandboxes["box"] = sandbox("box", **{
        "uid": me(case), "netns": daemon.netns, **more})
    out = execute(case, daemon, "box", "touch", mark)
    check(out.returncode == 125 and word in out.stderr, (word, out))
    check(not os.path.exists(mark), out)


def test_never_our_own_network(case):
    """Whatever the daemon says."""
    own = f"{case.lab.dir}/own-{case.who}"
    link = f"{case.lab.dir}/link-{case.who}"
    open(own, "w").close()
    sh("mount", "--bind", "/proc/self/ns/net", own)
    with world(case) as daemon:
        os.symlink(daemon.netns, link)
        try:
            refused(case, daemon, "this machine's own network", netns=own)
            refused(case, daemon, "Too many levels", netns=link)
            refused(case, daemon, "", netns="/proc/self/ns/net")
            refused(case, daemon, "is no network namespace",
                    netns="/etc/passwd")
            user = f"{case.lab.dir}/usr-{case.who}"
            open(user, "w").close()
            sh("mount", "--bind", "/proc/self/ns/user", user)
            refused(case, daemon, "is no network namespace", netns=user)
            sh("umount", user)
            os.unlink(user)
        finally:
            os.unlink(link)
            sh("umount", own)
            os.unlink(own)


def test_whose_it_is(case):
    with world(case) as daemon, namespace(case, 34, "other") as other, \
            namespace(case, 0, "roots") as roots:
        if case.who == "user":
            # Of somebody else, and of root, whoever they are said to be.
            refused(case, daemon, "belongs to user 34", netns=other)
            refused(case, daemon, "belongs to user 34", netns=other, uid=34)
            refused(case, daemon, "is not its user's", netns=roots)
            refused(case, daemon, "is not its user's", netns=roots, uid=0)
            # Only root runs things as others.
            out = execute(case, daemon, "--user", "nobody", "box", "true")
            check(out.returncode == 125 and "--user needs root" in out.stderr,
                  out)
        else:
            refused(case, daemon, "belongs to user 34", netns=other)
            refused(case, daemon, "is not its user's", netns=roots, uid=34)
            # Root may help a user.
            daemon.sandboxes["box"] = sandbox("box", uid=34, netns=other)
            out = execute(case, daemon, "--user", "nobody", "box", "sh", "-c",
                          "readlink /proc/self/ns/net; id -un")
            check(out.stdout == f"net:[{inode(other)}]\nnobody\n", out)


def test_who_answers(case):
    """Nobody enters what another user's server names."""
    place = f"{case.lab.dir}/stranger-{case.who}"
    os.mkdir(place)
    os.chown(place, 34, 34)
    server = subprocess.Popen(
        ["setpriv", "--reuid", "34", "--regid", "34", "--clear-groups",
         "python3", "-c", "import os, socket\n"
         "s = socket.socket(socket.AF_UNIX)\n"
         f"s.bind('{place}/control'); os.chmod('{place}/control', 0o777)\n"
         "s.listen(); print('up', flush=True); s.accept()"],
        stdout=subprocess.PIPE, text=True)
    check(server.stdout.readline() == "up\n")
    out = subprocess.run([*case.drop(), case.binary, "exec", "--socket",
                          place + "/control", "box", "true"], text=True,
                         capture_output=True, timeout=60)
    check(out.returncode == 125 and "user 34 answers there" in out.stderr, out)
    server.kill()
    server.wait()
    server.stdout.close()
