# SPDX-License-Identifier: Apache-2.0
"""The key that a session's evidence is signed with: where it is, who may read
it, who can't."""
import base64
import json
import os
import subprocess
import time

from evidence_lab import folder, mode, public_of, read, sallyport, whole
from harness import check


def session_key(log):
    return public_of(read(log, "session.vkey").decode())


def fresh(case, name):
    """A configuration of its own: root's would be in /etc/sallyport."""
    path = f"{case.work}/config-{name}"
    os.makedirs(path)
    case.mine(path)
    return path


# --- keys --------------------------------------------------------------------


def test_key_command(case):
    config = fresh(case, "command")
    run = sallyport(case, "key", "show", config=config)
    check(run.returncode == 125 and "sallyport key new" in run.stderr, run)
    run = sallyport(case, "key", "new", "--name", "build.example/farm", config=config)
    vkey = run.stdout.strip()
    check(run.returncode == 0 and vkey.startswith("build.example/farm+"), run)
    where = config + "/sallyport"
    check(mode(where, "signing.key") == 0o600 and mode(where, "signing.vkey") == 0o644)
    check(read(where, "signing.vkey").decode() == vkey + "\n")
    key = read(where, "signing.key")
    run = sallyport(case, "key", "new", config=config)
    check(run.returncode == 125 and "never overwritten" in run.stderr, run)
    check(read(where, "signing.key") == key)
    for name in "signing.key", "signing.vkey":
        run = sallyport(case, "key", "show", f"{where}/{name}")
        check(run.stdout == vkey + "\n", run)
    told = json.loads(sallyport(case, "key", "show", "--json", config=config).stdout)
    check(told["vkey"] == vkey and told["name"] == "build.example/farm" and
          told["id"] == vkey.split("+")[1], told)
    # The one that openssl reads.
    public = subprocess.run(["openssl", "pkey", "-pubout", "-outform", "DER"], input=key,
                            capture_output=True, check=True).stdout
    check(public_of(vkey) == public[-32:])
    run = case.run("true", env={"XDG_CONFIG_HOME": config})
    check(read(run.log, "session.vkey").decode().startswith("build.example/farm/2"), run)
    _, said = whole(case, run.log)
    check(public_of(said["key"]["vkey"]) == public[-32:])


def test_key_mistakes(case):
    for argv, word in ((("key",), "`new` or `show`"), (("key", "make"), "make"),
                       (("key", "new", "--name", "a b"), "without space"),
                       (("key", "new", "--name", "x" * 192), "191"),
                       (("key", "new", "--out", ""), "needs a file"),
                       (("key", "new", "--out", "/nonexistent/k"), "No such file"),
                       (("key", "new", "extra"), "extra"),
                       (("key", "show", "a", "b"), "what is b"),
                       (("key", "show", "--name", "x"), "for `key new`"),
                       (("key", "new", "--nam"), "--nam"),
                       (("key", "show", "/nonexistent"), "No such file"),
                       (("key", "show", "/etc/passwd"), "/etc/passwd"),
                       (("run", "--key", "/nonexistent/k", "--", "true"), "key new --out"),
                       (("run", "--key", "/etc/passwd", "--", "true"), "/etc/passwd")):
        run = sallyport(case, *argv, config=case.work + "/config-mistakes")
        check(run.returncode == 125 and word in run.stderr and not run.stdout,
              (argv, run))
    check(not os.path.exists(case.work + "/config-mistakes/sallyport/signing.key"))


def test_first_use(case):
    """Of many that begin at once one makes the key, and says so."""
    config = fresh(case, "first")
    logs = [folder(case, f"first-{i}") for i in range(8)]
    all_ = [subprocess.Popen([*case.drop(), case.binary, "run", "--log", log, "--", "true"],
                             cwd=case.work, env=case.env(XDG_CONFIG_HOME=config), text=True,
                             stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for log in logs]
    said = [p.communicate(timeout=60)[1] for p in all_]
    check(all(p.returncode == 0 for p in all_), said)
    check(sum("made a key" in err for err in said) == 1, said)
    keys = {session_key(log) for log in logs}
    check(len(keys) == 1, keys)
    check(sorted(os.listdir(config + "/sallyport")) == ["signing.key", "signing.vkey"],
          os.listdir(config + "/sallyport"))
    check(mode(config, "sallyport/signing.key") == 0o600)
    check(public_of(read(config, "sallyport/signing.vkey").decode()) in keys)
    run = case.run("true", env={"XDG_CONFIG_HOME": config})
    check("key" not in run.err.replace("--key", ""), run)
    quiet = case.run("true", args=("--quiet",),
                     env={"XDG_CONFIG_HOME": fresh(case, "quiet")})
    check(quiet.status == 0 and "made a key" not in quiet.err, quiet)


def test_where_root_has_it(case):
    """Not in the home of who called sudo."""
    run = case.run("true")
    where = "/etc/sallyport" if case.who == "root" else case.work + "/.config/sallyport"
    check(run.status == 0 and mode(where, "signing.key") == 0o600, run)
    check(public_of(read(where, "signing.vkey").decode()) == session_key(run.log))


def test_key_that_others_read(case):
    config = fresh(case, "open")
    sallyport(case, "key", "new", config=config)
    key = config + "/sallyport/signing.key"

    def refused(word):
        run = case.run("touch", "ran", env={"XDG_CONFIG_HOME": config})
        check(run.status == 125 and word in run.err and "--key FILE" in run.err, run)
        check(not os.path.exists(case.work + "/ran"))
        check(os.listdir(run.log) == [], os.listdir(run.log))
    os.chmod(key, 0o640)
    refused("chmod 600")
    os.chmod(key, 0o600)
    os.rename(key, key + ".real")
    os.symlink("signing.key.real", key)
    refused("symbolic link")
    os.unlink(key)
    run = case.run("true", env={"XDG_CONFIG_HOME": config})
    check(run.status == 125 and "public half" in run.err, run)
    os.rename(key + ".real", key)
    os.chown(key, 12345, -1)
    # An ordinary user can't even open it.
    refused("somebody else" if case.who == "root" else "Permission denied")


def test_ephemeral(case):
    run = case.run("true", env={"XDG_CONFIG_HOME": "/proc/none"})
    check(run.status == 0 and "a key of its own" in run.err, run)
    _, said = whole(case, run.log)
    check(said["key"]["ephemeral"] is True, said)
    other = case.run("true", env={"XDG_CONFIG_HOME": "/proc/none"})
    check(session_key(run.log) != session_key(other.log))
    # With one named, nothing has to be stored.
    key = case.work + "/named.key"
    sallyport(case, "key", "new", "--out", key)
    run = case.run("true", args=("--key", key), env={"XDG_CONFIG_HOME": "/proc/none"})
    _, said = whole(case, run.log)
    check(not said["key"]["ephemeral"] and "of its own" not in run.err, run)
    check(public_of(read(case.work, "named.vkey").decode()) ==
          public_of(said["key"]["vkey"]))


ATTACK = """
for key in "$@"; do
    cat "$key" 2>/dev/null && echo READ "$key"
    head -c 20 "$(dirname "$key")/../$(basename "$(dirname "$key")")/$(basename "$key")" \
        2>/dev/null | grep -q BEGIN && echo READ again "$key"
    cat "/proc/1/root$key" "/proc/self/root$key" 2>/dev/null && echo READ by proc
    echo evil > "$key" 2>/dev/null
    echo evil > "${key%.key}.vkey" 2>/dev/null
    rm -f "$key" 2>/dev/null; mv "$key" "$key.away" 2>/dev/null && echo MOVED "$key"
    ln "$key" stolen 2>/dev/null && grep -q BEGIN stolen 2>/dev/null && echo LINKED "$key"
    d=$(dirname "$key"); mv "$d" "$d.away" 2>/dev/null && echo MOVED "$d"
    mkdir -p "$d" 2>/dev/null; cp /etc/hostname "$d/signing.key" 2>/dev/null
done
grep -rl "PRIVATE KEY" /proc/*/fd 2>/dev/null
exit 0
"""


def test_out_of_reach(case):
    """A command in any directory reads no key, changes none, makes none."""
    home = folder(case, "home")
    config = home + "/.config"
    named = home + "/named/my.key"
    env = {"HOME": home, "XDG_CONFIG_HOME": config}
    os.mkdir(home + "/named")
    os.mkdir(home + "/work")
    case.mine(home + "/named")
    case.mine(home + "/work")
    check(sallyport(case, "key", "new", env=env).returncode == 0)
    check(sallyport(case, "key", "new", "--out", named, env=env).returncode == 0)
    own = config + "/sallyport/signing.key"
    files = [own, own[:-4] + ".vkey", named, named[:-4] + ".vkey"]
    before = {f: read(f) for f in files}
    ids = {f: os.stat(f).st_ino for f in files}
    if case.who == "root":
        # Whoever the command is, it may do what it wants there.
        os.chmod(home, 0o777)
        for place in "named", "work":
            os.chmod(f"{home}/{place}", 0o777)
    for cwd in (home, home + "/work", config, config + "/sallyport", home + "/named"):
        for args in ((), ("--key", named)):
            log = folder(case, f"reach-{time.monotonic_ns()}")
            run = subprocess.run(
                [*case.drop(), case.binary, "run", "--quiet", "--log", log, *args, "--",
                 "sh", "-c", ATTACK, "sh", own, *(args[1:])], cwd=cwd, text=True,
                capture_output=True, stdin=subprocess.DEVNULL, timeout=60,
                env={**case.env(), **env})
            check(run.stdout == "", (cwd, args, run))
            check(run.returncode in (0, 125), (cwd, args, run))
            for f in files:
                check(read(f) == before[f] and os.stat(f).st_ino == ids[f], (cwd, args, f, run))


def test_not_in_memory(case):
    """The warden never has the private half; nor has the gate."""
    if case.sanitized:
        return
    config = fresh(case, "memory")
    sallyport(case, "key", "new", config=config)
    seed = base64.b64decode(read(config, "sallyport/signing.key").split(b"\n")[1])[16:]
    log = folder(case, "memory-log")
    process = subprocess.Popen([*case.drop(), case.binary, "run", "--log", log, "--", "sh",
                                "-c", "echo go; sleep 300"], text=True, cwd=case.work,
                               env=case.env(XDG_CONFIG_HOME=config), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    check(process.stdout.readline() == "go\n")

    def holds(pid):
        with open(f"/proc/{pid}/maps", encoding="utf8") as maps, \
                open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
            for line in maps:
                if " rw" not in line or "[v" in line:
                    continue
                begin, end = (int(x, 16) for x in line.split()[0].split("-"))
                mem.seek(begin)
                if seed in (mem.read(end - begin) or b""):
                    return True
        return False
    try:
        run = process.pid
        check(not holds(run), "the warden")
        check(not holds(case.child(process, "gate")), "the gate")
        check(holds(case.child(process, "ledger")), "the test finds nothing at all")
        for pid in run, case.child(process, "gate"), case.child(process, "ledger"):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                check("signing.key" not in os.readlink(f"/proc/{pid}/fd/{fd}"), (pid, fd))
    finally:
        process.terminate()
        process.communicate(timeout=60)
