# SPDX-License-Identifier: Apache-2.0
"""Attacks from inside on the files of the machine and of sallyport: logs,
policies, directories."""
import glob
import json
import os
import subprocess
import time

from box_lab import (argv_of, box, delayed, GROUND, ground, make, spawn,
                     whole)
from harness import check, USER


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
        capture_output=True, stdin=subprocess.DEVNULL, timeout=90)
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


# --- how it is started ---------------------------------------------------------


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
    _, err = slow.communicate(timeout=60)
    ended = 1 + (other.status == 0) + (slow.returncode == 0)
    logs = {os.stat(f).st_ino for f in logs_of(log)}
    check(len(logs) >= ended, f"{ended} sessions ended well, {len(logs)} logs are left: {err}")


def test_policy_fifo(case):
    cwd = ground(case, "fifo")
    os.mkfifo(cwd + "/p")
    case.mine(cwd + "/p")
    log = make(case, cwd + "/l")
    p = spawn(case, cwd, "cat", "p", args=("--policy", "p"), log=log)[0]
    with open(cwd + "/p", "w") as f:
        f.write("version: 1\nallow: [allowed.test]\n")
    out, err = p.communicate(timeout=60)
    check("allowed" not in out and p.returncode in (0, 1), (p.returncode, out, err))
    p = spawn(case, cwd, "true", args=("--policy", "p"), log=log)[0]  # no writer
    time.sleep(0.1)
    p.terminate()
    p.communicate(timeout=60)
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
                           env=case.env(), capture_output=True, text=True, timeout=90,
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
