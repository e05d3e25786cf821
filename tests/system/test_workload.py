# SPDX-License-Identifier: Apache-2.0
"""What developers and their agents do all day, under the default bounds: none of
it may meet a refusal that it would not meet outside."""
import os
import shlex
import shutil
import subprocess

from box_lab import box, ground, make
from harness import check, silent
from run_lab import BY_DAEMON, world
from workload_lab import Terminal, services

HOSTS = ("git.test", "registry.test", "index.test")
ALLOW = [x for host in HOSTS for x in ("--allow", host)]


def place(case, name):
    """A project's directory, and the home beside it with a little in it."""
    services(case)
    top = ground(case, name)
    home = make(case, top + "/home")
    make(case, home + "/.gitconfig",
         "[user]\n\tname = A Developer\n\temail = dev@lab.test\n"
         "[init]\n\tdefaultBranch = main\n")
    make(case, home + "/.inputrc", "set bell-style none\n")
    work = make(case, top + "/work")
    shutil.copy(case.lab.ca, work + "/ca.pem")
    os.chmod(work + "/ca.pem", 0o644)
    # Root's home is not shown to a uid that owns nothing.
    env = {"HOME": home, "npm_config_registry": "https://registry.test/npm/",
           "npm_config_cafile": work + "/ca.pem", "npm_config_fund": "false", "npm_config_audit": "false",
           "npm_config_update_notifier": "false",
           "PIP_INDEX_URL": "https://index.test/simple/",
           "PIP_CERT": work + "/ca.pem",
           "PIP_DISABLE_PIP_VERSION_CHECK": "1",
           **case.lab.trust(work + "/ca.pem")}
    return work, env


def script(case, name, text, expect, **kw):
    work, env = place(case, name)
    run = box(case, work, "bash", "-euc", text, args=ALLOW, env=env,
              timeout=300, **kw)
    check(run.status == 0, run)
    for word in expect:
        check(word in run.out, (word, str(run)))
    return run


BUILD = """
test -f ~/.gitconfig || git config --global user.name A
test -f ~/.gitconfig && git config --global user.email dev@lab.test
git clone -q https://git.test/git/project.git
cd project
npm install --no-progress
npm run build
node --test >/dev/null
node_modules/.bin/greet reader
grep -q Linux node_modules/greeting/built.json
make -j2 check
echo "more" > more.txt
git config core.abbrev 12
git add -A
git commit -q -m "More"
git tag -a -m "A tag" v1
git log --oneline | wc -l
git stash list; git gc -q; git worktree add -q ../other; git -C ../other status -s
git push -q origin HEAD:$1
echo all done
"""


def test_clone_install_build(case):
    script(case, "build", "set -- box-" + case.who + BUILD,
           ("hello reader", "sum 285", "all done"))


PIP = """
/usr/bin/python3 -m venv venv
. venv/bin/activate
pip install -q lab-words
lab-shout
python -m pip list 2>/dev/null | grep lab
pip uninstall -q -y lab-words
echo all done
"""


def test_venv_and_pip(case):
    if case.who == "root":
        return  # slow, and the same there
    script(case, "pip", PIP, ("PIP", "lab-words", "all done"))


PYTHON = r"""
import asyncio, concurrent.futures, fcntl, locale, mmap, multiprocessing, os, pty
import resource, select, signal, socket, sqlite3, subprocess, sys, tempfile
import threading, time
from multiprocessing import shared_memory

def square(n): return n * n

async def talk():
    p = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    out, _ = await p.communicate(b"piped")
    server = await asyncio.start_server(
        lambda r, w: (w.write(b"served"), w.close()), "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    r, w = await asyncio.open_connection(host, port)
    got = await r.read()
    unix = await asyncio.start_unix_server(
        lambda r, w: (w.write(b"local"), w.close()), "/tmp/own.sock")
    r2, _ = await asyncio.open_unix_connection("/tmp/own.sock")
    return out + got + await r2.read()

if __name__ == "__main__":
    for way in "fork", "spawn", "forkserver":
        context = multiprocessing.get_context(way)
        with context.Pool(2) as pool:
            assert pool.map(square, range(4)) == [0, 1, 4, 9]
    lock, queue = multiprocessing.Lock(), multiprocessing.Queue()
    with lock: queue.put(1)
    assert queue.get() == 1
    shared = shared_memory.SharedMemory(create=True, size=1 << 20)
    shared.buf[0] = 7; shared.close(); shared.unlink()
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        assert list(pool.map(square, [3])) == [9]
    assert asyncio.run(talk()) == b"pipedservedlocal"
    with tempfile.NamedTemporaryFile() as a, tempfile.TemporaryFile() as b:
        fcntl.flock(a, fcntl.LOCK_EX); b.write(b"x"); b.flush()
        mmap.mmap(b.fileno(), 1)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as d:
        db = sqlite3.connect(d + "/a.db")
        db.execute("pragma journal_mode=wal"); db.execute("create table t(a)")
    open("here.db", "w").close()
    os.mkfifo("fifo"); os.link("here.db", "hard"); os.symlink("fifo", "soft")
    os.chmod("here.db", 0o600); os.utime("here.db", (1, 1))
    os.chown("here.db", os.getuid(), os.getgid())
    os.setxattr("here.db", "user.note", b"x") if hasattr(os, "setxattr") else 0
    os.posix_fallocate(os.open("here.db", os.O_RDWR), 0, 4096)
    master, slave = os.openpty()
    assert os.ttyname(slave).startswith("/dev/pts/")
    pid, fd = pty.fork()
    if pid == 0: os.execvp("tty", ["tty"])
    assert b"/dev/pts/" in os.read(fd, 100); os.waitpid(pid, 0)
    for name in "null", "zero", "full", "random", "urandom", "tty", "ptmx", \
            "fd", "stdin", "stdout", "stderr", "shm":
        assert os.path.lexists("/dev/" + name), name
    open("/dev/shm/x", "w").close()
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    assert time.localtime(0).tm_year in (1969, 1970)
    os.environ["TZ"] = "Europe/Berlin"; time.tzset()
    assert time.tzname[0] == "CET", time.tzname
    assert socket.gethostbyname("localhost") == "127.0.0.1"
    socket.gethostbyname(socket.gethostname())
    one, two = socket.socketpair(); one.send(b"x"); assert two.recv(1) == b"x"
    s = socket.socket(socket.AF_INET6); s.bind(("::", 0)); s.listen()
    socket.create_connection(("127.0.0.1", s.getsockname()[1]))
    os.nice(1); os.sched_setaffinity(0, os.sched_getaffinity(0))
    os.sched_yield(); os.getpriority(os.PRIO_PROCESS, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.memfd_create("x"); os.eventfd(0); os.pidfd_open(os.getpid())
    os.killpg(os.getpgrp(), 0); os.setsid() if os.getsid(0) != os.getpid() else 0
    signal.setitimer(signal.ITIMER_REAL, 100)
    print("python", len(os.sched_getaffinity(0)))
"""


def test_python(case):
    work, env = place(case, "python")
    make(case, work + "/all.py", PYTHON)
    run = box(case, work, "python3", "all.py", env=env, timeout=120)
    check(run.status == 0 and "python " in run.out, run)


NODE = r"""
const { Worker, isMainThread, parentPort } = require("worker_threads");
const cp = require("child_process"), fs = require("fs"), os = require("os");
const http = require("http"), path = require("path"), net = require("net");
const { once } = require("events");
async function main() {
  const worker = new Worker(__filename);
  const [answer] = await once(worker, "message");
  const child = cp.fork(__filename, ["child"]);
  const [said] = await once(child, "message");
  const shell = cp.execSync("echo shell", { encoding: "utf8" }).trim();
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "w-"));
  const watcher = fs.watch(".");
  const change = once(watcher, "change");
  fs.writeFileSync("changed", "x");
  await change; watcher.close();
  const deep = fs.watch(".", { recursive: true }); deep.close();
  await fs.promises.cp("changed", dir + "/copy");
  fs.rmSync(dir, { recursive: true });
  const server = http.createServer((q, r) => r.end("local"));
  server.listen(0, "localhost"); await once(server, "listening");
  const url = "http://localhost:" + server.address().port;
  const text = await (await fetch(url)).text();
  const curl = await new Promise((ok) => cp.execFile("curl", ["-s", url],
    (e, out) => ok(out)));
  server.close(); server.closeAllConnections();
  const pipe = net.createServer((c) => c.end("unix")).listen("./node.sock");
  const [chunk] = await once(net.connect("./node.sock"), "data");
  pipe.close();
  if (!os.userInfo().username || !os.cpus().length || !os.hostname() ||
      !os.networkInterfaces().lo || os.totalmem() <= 0) throw "os";
  process.kill(process.pid, 0); os.setPriority(5); process.memoryUsage();
  console.log("node", answer, said, shell, text, curl, "" + chunk);
}
if (!isMainThread) parentPort.postMessage("worker");
else if (process.argv[2] === "child") process.send("child", () => process.exit());
else main().catch((e) => { console.error(e); process.exit(1); });
"""


def test_node(case):
    work, env = place(case, "node")
    make(case, work + "/all.js", NODE)
    run = box(case, work, "node", "all.js", env=env, timeout=120)
    check(run.status == 0 and
          "node worker child shell local local unix" in run.out, run)


TOOLS = """
test "$(whoami)" = "$(id -un)"; id >/dev/null; groups >/dev/null
test "$(id -gn)"
ps -ef | grep -q 'ps -ef'; ps aux >/dev/null; pgrep -f bash >/dev/null
test "$(nproc)" -ge 1
df . >/dev/null; df -h / /tmp >/dev/null; free >/dev/null; uptime >/dev/null
test "$(stat -c %U .)" = "$(id -un)"
test "$(hostname)"; uname -a >/dev/null; date >/dev/null; env >/dev/null
mktemp >/dev/null; mktemp -d >/dev/null
touch a; mv a b; cp -a b c; ln -s b d; install -m 755 b e; rm -r b c d e
tar cf t.tar ca.pem; mkdir x; tar xpf t.tar -C x; rsync --version >/dev/null 2>&1 || :
find / -xdev -maxdepth 2 >/dev/null 2>&1 || :
{ echo x >/dev/stdout; } | cat >/dev/null
cat <(echo substituted) | grep -q substituted
timeout 5 true; nohup true >/dev/null 2>&1; setsid true; nice true; ionice true
xargs -P2 -n1 echo <<< "1 2" >/dev/null; flock lock true; sleep 0 & wait
ulimit -a >/dev/null; umask 077; umask 022
printf '#include <stdio.h>\nint main(void){puts("ran");}' > h.c
gcc -g -o h h.c && ./h
strace -f -o trace sh -c 'true; ./h' >/dev/null && grep -q execve trace
gdb -q -batch -ex 'break main' -ex run -ex bt -ex continue ./h 2>&1 | tail -20
openssl rand -hex 4 >/dev/null; curl -sf https://index.test/ >/dev/null
getent hosts localhost >/dev/null; getent passwd "$(id -u)" >/dev/null
ls -la /proc/self/fd /dev /dev/pts >/dev/null
cat /proc/cpuinfo /proc/meminfo /proc/loadavg /proc/self/maps >/dev/null
cat /proc/sys/kernel/pid_max /proc/sys/fs/inotify/max_user_watches >/dev/null
echo all done
"""


def test_tools(case):
    run = script(case, "tools", TOOLS, ("ran", "Breakpoint 1", "all done"))
    check("exited normally" in run.out and "warning" not in run.out, run)


def test_home(case):
    """What is no secret of it can be read; changes are the sandbox's alone.
    Root's is not shown at all: an empty one is in its place."""
    work, env = place(case, "home")
    home = env["HOME"]
    make(case, home + "/.ssh", mode=0o700)
    make(case, home + "/.ssh/id", "secret\n")
    make(case, home + "/.netrc", "secret\n", 0o600)
    make(case, home + "/.keep")
    make(case, home + "/.keep/sub")
    make(case, home + "/.keep/sub/file", "old\n")
    run = box(case, work, "bash", "-c", """
cd; echo $(cat .keep/sub/file); grep -c Developer .gitconfig
cat .ssh/id .netrc; mv .ssh moved; rm -rf .ssh; cat */id
mkdir -p .npm/x .keep/sub && echo new > .keep/sub/file && cat .keep/sub/file
git config --global user.name Other && git config user.name
rm -rf .keep; ls .keep; mkdir .keep && ls .keep | wc -l
""", env=env)
    shown = "old\n1\n" if case.who == "user" else "\n"
    check(run.out == shown + "new\nOther\n0\n" and "secret" not in run.out, run)
    with open(home + "/.keep/sub/file") as f:
        check(f.read() == "old\n", "changed outside")
    with open(home + "/.gitconfig") as f:
        check("A Developer" in f.read(), "changed outside")
    left = {".gitconfig", ".inputrc", ".ssh", ".netrc", ".keep", ".config"}
    check(set(os.listdir(home)) <= left, os.listdir(home))


def test_home_that_holds_a_mount(case):
    """An overlay would not show it: all is shown, and can't be changed."""
    work, env = place(case, "mounted")
    disk = make(case, env["HOME"] + "/disk")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "none", disk],
                   check=True)
    make(case, disk + "/file", "on the disk\n")
    run = box(case, work, "bash", "-c", "cat ~/disk/file; echo x >> ~/.inputrc",
              env=env)
    subprocess.run(["umount", disk], check=True)
    if case.who == "user":
        check(run.out == "on the disk\n" and run.status, run)
    else:
        check(run.out == "" and run.status == 0, run)


# --- at a terminal -------------------------------------------------------------


def test_terminal(case):
    """An interactive shell, what people do in one, and the shell that it was
    called from, which finds its terminal as it left it."""
    work, env = place(case, "terminal")
    make(case, work + "/text", "".join(f"line {i}.\n" for i in range(200)))
    log = make(case, f"{case.lab.dir}/shell-{case.who}", mode=0o700)
    run = shlex.join([*case.drop(), case.binary, "run", "--quiet", "--log", log,
                      "--", "bash", "--norc", "-i"])
    t = Terminal(["bash", "--norc", "-i"], work,
                 {**case.env(), **env, "TERM": "xterm", "PS1": "outside> ",
                  "LESS": "", "LANG": "C.UTF-8"})
    try:
        t.until("outside> ")
        before = t.say("stty -g\n", "outside> ")
        t.say(run + "; s=$?; PS1='after'wards'> '\n", "outside> ")
        t.say("PS1='in'side'> '\n", "inside> ")
        inside(t)
        t.say("exit 7\n", "afterwards> ")
        check("it=7" in t.say("echo it''=$s\n", "afterwards> "))
        check(t.say("stty -g\n", "afterwards> ") == before, before)
        t.type("exit\n")
        check(t.wait() == 0)
    finally:
        t.close()


def inside(t):
    check("/dev/" in t.say("tty\n", "inside> "))
    # Job control. What a program echoes itself says that it runs.
    t.say("echo beg''un; cat\n", "begun\r\n")
    t.say("one\n", "one\r\none\r\n")
    t.say("\x1a", "Stopped")
    t.until("inside> ")
    check("Stopped" in t.say("jobs\n", "inside> "))
    t.say("fg\n", "cat\r\n")
    t.say("two\n", "two\r\ntwo\r\n")
    t.say("\x03", "inside> ")
    check("130" in t.say("echo $?\n", "inside> "))
    t.say("sleep 1000 & jobs\n", "Running")
    t.until("inside> ")
    t.say("kill %1; wait %1 2>/dev/null; echo go''ne\n", "gone")
    t.until("inside> ")
    # Another size, which is told.
    t.say("trap 'echo re''sized' WINCH; echo s''et\n", "set\r\n")
    t.until("inside> ")
    t.size(30, 100)
    t.say("\n", "resized")
    check("30 100" in t.say("stty size\n", "30 100") + "30 100")
    t.say("trap - WINCH\n", "inside> ")
    # Programs that take the whole screen.
    t.say("less text\n", "line 5.")
    t.say("G", "line 199.")
    t.say("q", "inside> ")
    t.say("vi -u NONE note\n", "[New")
    t.say("iwritten\x1b:wq\r", "inside> ")
    t.say("cat note\n", "written\r\n")
    t.until("inside> ")
    t.say("script -qc 'tty; echo re''corded' typescript\n", "recorded\r\n")
    t.until("inside> ")
    t.say("stty raw -echo; echo ra''w; head -c 3 | tr a-c A-C; stty sane\n",
          "raw\n")
    t.say("abc", "ABC")
    t.until("inside> ")


# --- a daemon's sandbox --------------------------------------------------------


def test_by_a_daemon(case):
    if case.who == "root":
        return  # a daemon's owner needs no daemon: users ask it
    work, env = place(case, "daemon")
    with world(case) as w:
        run = subprocess.run(
            w.argv("run", *ALLOW, "--", "bash", "-euc", "set -- daemon-" +
                   case.who + BUILD), cwd=work, env={**w.env(), **env},
            text=True, capture_output=True, stdin=subprocess.DEVNULL)
        check(run.returncode == 0 and "all done" in run.stdout and
              BY_DAEMON in run.stderr, run)


def test_no_packet_left(case):
    silent(case)
