# SPDX-License-Identifier: Apache-2.0
"""The launcher's bounds: which files a command sees, what of the environment it
inherits. What it must not reach is tried from inside."""
import contextlib
import os
import re
import socket
import subprocess
import tempfile
import threading
import time

from box_lab import box, ground, make, receipt
from harness import USER, check, silent
from lab import TOP

SECRET = "5ecret-of-the-user"


def home(case, name):
    """A home with credentials, and a project in it."""
    top = ground(case, name)
    for path in (".aws", ".ssh", ".config", ".config/gh", "proj", "dotfiles"):
        make(case, f"{top}/{path}")
    for path in (".aws/credentials", ".ssh/id_ed25519", ".netrc",
                 ".config/gh/hosts.yml", ".git-credentials"):
        make(case, f"{top}/{path}", SECRET, 0o600)
    make(case, f"{top}/.gitconfig", "[user]\nname = Ada\n")
    make(case, f"{top}/proj/file", "mine")
    # As root, without --user, a command's HOME is root's.
    return top


def args_for(case):
    return ("--user", "www-data") if case.who == "root" else ()


def own(case, top):
    """The home's files become those of the uid that the command has."""
    subprocess.run(["chown", "-Rh", f"{USER}:{USER}", top], check=True)


def grep(case, top, *args, cwd=None, env=None, script=None, owned=False):
    """Everything below @top that says the secret."""
    if not owned:
        own(case, top)
    return box(case, cwd or top + "/proj", "sh", "-c", script or
               f"grep -rl {SECRET} {top} 2>/dev/null; true",
               args=(*args_for(case), *args), env={"HOME": top, **(env or {})})


def test_masks_are_read_only(case):
    """What hides a file is not the command's to change, though it may be its uid's:
    in a home that is an overlay as elsewhere."""
    if case.who == "root":
        return  # the home of another user's: of the password file
    top = home(case, "masks")
    run = grep(case, top, script="chmod 600 $HOME/.netrc; echo x >> $HOME/.netrc;"
               "touch $HOME/.ssh/x; cat $HOME/.netrc $HOME/.git-credentials;"
               "ls $HOME/.ssh; touch $HOME/other && echo end")
    check(run.out == "end\n" and "Read-only file system" in run.err, run)
    check("changing permissions" in run.err, run)


def test_credentials_are_hidden(case):
    top = home(case, "hidden")
    run = grep(case, top)
    check(run.status == 0 and run.out == "", run)
    check(receipt(run.log)["boundary"]["files"] == "private", run)
    # In the home itself, which then is writable, too; nor can they be moved.
    script = (f"grep -rl {SECRET} . 2>/dev/null; mv .aws x; mv .config y;"
              "rm .netrc; rmdir .ssh; cat .gitconfig; ls -A .aws .ssh;"
              "echo a > .netrc; echo b > .ssh/authorized_keys; true")
    run = grep(case, top, cwd=top, script=script)
    check("Ada" in run.out and SECRET not in run.out, run)
    check("credentials" not in run.out and "hosts" not in run.out, run)
    for path in (".aws/credentials", ".netrc", ".config/gh/hosts.yml"):
        with open(f"{top}/{path}") as f:
            check(f.read() == SECRET)
    check(not os.path.exists(top + "/.ssh/authorized_keys"))


def test_credentials_elsewhere(case):
    top = home(case, "elsewhere")
    keys = make(case, f"{top}/dotfiles/aws")
    make(case, keys + "/credentials", SECRET)
    make(case, f"{top}/dotfiles/kube", SECRET)
    make(case, f"{top}/dotfiles/token", SECRET)
    make(case, f"{top}/.docker")
    os.unlink(top + "/.aws/credentials")
    os.rmdir(top + "/.aws")
    os.symlink("dotfiles/aws", top + "/.aws")             # the whole
    os.symlink("../dotfiles/token", top + "/.docker/config.json")  # a part
    run = grep(case, top, env={"KUBECONFIG": f"{top}/none:{top}/dotfiles/kube"})
    check(run.status == 0 and run.out == "", run)
    run = grep(case, top, cwd=top)
    check(run.out.strip().endswith("kube"), run)  # no variable said so


def test_credentials_by_another_mount(case):
    top = home(case, "mounted")
    second = make(case, f"{top}/second")
    part = make(case, f"{top}/part")
    own(case, top)
    subprocess.run(["mount", "--bind", top, second], check=True)
    subprocess.run(["mount", "--bind", top + "/.aws", part], check=True)
    try:
        run = grep(case, top, owned=True)
        check(run.status == 0 and run.out == "", run)
        run = grep(case, top, cwd=top, owned=True)
        check(run.out == "", run)
        # Standing in the second one is no way either.
        run = grep(case, top, cwd=part, owned=True)
        check(run.status == 125 and "by another mount" in run.err, run)
    finally:
        subprocess.run(["umount", part, second], check=True)


def test_shown_by_name(case):
    top = home(case, "shown")
    run = grep(case, top, "--ro", top + "/.aws")
    check(run.out.split() == [f"{top}/.aws/credentials"], run)
    # One file of a hidden directory, and not the others.
    make(case, f"{top}/.aws/config", SECRET)
    run = grep(case, top, "--ro", top + "/.aws/config", script=
               f"grep -rl {SECRET} {top}; ls -A {top}/.aws;"
               f"echo x >> {top}/.aws/config; echo x > {top}/.aws/new")
    check(run.out.split() == [f"{top}/.aws/config", "config"], run)
    # What is above does not show it.
    run = grep(case, top, "--rw", top)
    check(run.out == "", run)
    run = grep(case, top, cwd=top + "/.aws")
    check(run.status == 125 and "holds credentials" in run.err, run)
    run = grep(case, top, "--rw", top + "/.aws", cwd=top + "/.aws")
    check(f"{top}/.aws/credentials" in run.out, run)


def test_rw_ro_hide(case):
    top = home(case, "paths")
    for path in ("other", "proj/keep", "proj/gone", "proj/a"):
        make(case, f"{top}/{path}")
    make(case, top + "/proj/gone/x", SECRET)
    make(case, top + "/proj/a/b", "b")
    script = (f"echo 1 > {top}/other/new; echo 2 > keep/new; ls gone;"
              f"echo 3 > {top}/new; echo 4 > a/b; mv a c; mv gone elsewhere;"
              "mv keep elsewhere; cat a/b; true")
    run = grep(case, top, "--rw", top + "/other", "--ro", top + "/proj/keep",
               "--hide", top + "/proj/gone", "--ro", top + "/proj/a/b",
               script=script)
    check(run.status == 0 and run.out == "b", run)
    check(os.path.exists(top + "/other/new"), run)
    check(not os.path.exists(top + "/proj/keep/new"), run)
    check(not os.path.exists(top + "/new"), run)
    check(sorted(os.listdir(top + "/proj")) == ["a", "file", "gone", "keep"])
    # In a private tree, and there only that.
    shared = f"/var/tmp/sallyport-box-{case.who}"
    os.mkdir(shared)
    try:
        make(case, shared + "/file", "shared")
        own(case, shared)
        run = grep(case, top, "--rw", shared, script=
                   f"ls -A /var/tmp; echo more >> {shared}/file")
        check(run.out.split() == [os.path.basename(shared)], run)
        with open(shared + "/file") as f:
            check(f.read() == "sharedmore\n")
    finally:
        subprocess.run(["rm", "-r", shared], check=True)


def test_of_another_owner(case):
    """As root a command has a uid that nobody uses: what is named is shown as
    that uid's, and stays its owner's."""
    if case.who != "root":
        return
    top = ground(case, "owned")
    work = make(case, top + "/work")
    closed = make(case, top + "/closed", mode=0o700)
    inner = make(case, closed + "/inner", mode=0o700)
    make(case, inner + "/file", "one ", 0o600)
    one = make(case, closed + "/one", "single ", 0o600)
    run = box(case, work, "sh", "-c", f"ls {closed}; cat {inner}/file {one};"
              f"echo more >> {inner}/file; echo x >> {one}; cat {one}; id -u;"
              f"stat -c %u {inner}/file", args=("--rw", inner, "--ro", one))
    out = run.out.split()
    check(out[:5] == ["inner", "one", "one", "single", "single"], run)
    check(out[5] == out[6] and int(out[5]) > 10 ** 9, run)
    with open(inner + "/file") as f:
        check(f.read() == "one more\n")
    check(os.stat(inner + "/file").st_uid == 0)
    run = box(case, work, "true", args=("--rw", "/usr/share"))
    check(run.status == 125 and "part of the system" in run.err, run)


def test_not_shown(case):
    top = home(case, "refused")
    own(case, top)
    log = make(case, f"{case.lab.dir}/box-log-{case.who}", mode=0o700)
    policy = make(case, top + "/proj/p.yaml", "version: 1\nname: x\n")
    sock = top + "/socket"
    import socket
    s = socket.socket(socket.AF_UNIX)
    s.bind(sock)
    state = case.work + "/.state/sallyport"
    below_run = "/run/sshd"  # the lab's: others come and go
    for args, word in ((("--rw", "/"), "--fs host"),
                       (("--ro", below_run), "own"),
                       (("--rw", "/proc/sys"), "own"),
                       (("--ro", "/dev"), "own"), (("--rw", "/run"), "own"),
                       (("--rw", sock), "neither a file"),
                       (("--rw", log), "hidden"),
                       (("--rw", log + "/../" + os.path.basename(log)), "hidden"),
                       (("--policy", policy, "--ro", policy), "hidden"),
                       (("--hide", top, "--rw", top + "/proj"), "below"),
                       (("--hide", "/etc"), "nothing runs"),
                       (("--rw", top + "/none"), "no such file"),
                       (("--fs", "some"), "neither host")):
        run = box(case, top + "/proj", "true", args=(*args_for(case), *args),
                  log=log, env={"HOME": top})
        check(run.status == 125 and word in run.err, run)
    # A socket in what is shown is masked, and nobody answers.
    s.listen()
    run = grep(case, top, "--rw", top, script=
               f"python3 -c 'import socket; s = socket.socket(socket.AF_UNIX);"
               f"s.connect(\"{sock}\")' 2>&1 | tail -1")
    check("ConnectionRefused" in run.out or "denied" in run.out.lower(), run)
    s.close()


def test_replaced_while_it_starts(case):
    """A link in place of what was named shows nothing else."""
    top = home(case, "swapped")
    spot = make(case, f"{top}/proj/spot")
    make(case, spot + "/plain", "plain")
    own(case, top)
    swap = subprocess.Popen(["python3", "-c", f"""
import os
import re
os.chdir({top + "/proj"!r})
while True:
    os.rename("spot", "was"); os.symlink("../.aws", "spot")
    os.unlink("spot"); os.rename("was", "spot")
"""])
    try:
        for _ in range(8):
            run = grep(case, top, "--rw", spot, "--ro", spot, cwd="/usr",
                       owned=True, script=f"cat {spot}/*")
            check(SECRET not in run.out and run.status in (0, 1, 125), run)
    finally:
        swap.kill()
        swap.wait()


def test_link_to_credentials(case):
    """A link that an earlier command left does not name what it leads to."""
    top = home(case, "link")
    os.symlink("../.aws", top + "/proj/spot")
    os.symlink("../.aws/credentials", top + "/proj/file2")
    for args in (("--rw", top + "/proj/spot"), ("--ro", "spot"),
                 ("--ro", "./spot/credentials"), ("--ro", "file2")):
        run = grep(case, top, *args)
        check(run.status == 125 and "holds credentials" in run.err, run)
    run = grep(case, top, "--ro", top + "/.aws/")
    check(run.out.split() == [f"{top}/.aws/credentials"], run)


def test_host_files(case):
    top = home(case, "host")
    make(case, f"{top}/outside")
    state = make(case, top + "/state")
    shared = f"/tmp/sallyport-host-{case.who}"
    policy = make(case, top + "/p.yaml", "version: 1\nname: x\n")
    script = (f"grep -rl {SECRET} {top}; echo 1 > {top}/outside/new;"
              f"echo 2 > {shared}; cat {policy}; mv {policy} {policy}.x;"
              f"ls -A $XDG_STATE_HOME/sallyport; ls /run")
    run = grep(case, top, "--fs", "host", "--policy", policy, script=script,
               env={"XDG_STATE_HOME": state})
    check(run.out.count(top) == 5 and "name: x" not in run.out, run)
    check(os.path.exists(top + "/outside/new"), run)
    check(os.path.exists(policy) and os.path.exists(shared), run)
    os.unlink(shared)
    check(receipt(run.log)["boundary"]["files"] == "host", run)
    with open(run.log + "/audit.jsonl") as f:
        check("files host" in f.readline(), run)
    # The log can't be reached, nor put another in its place.
    run = grep(case, top, "--fs", "host", "--log", run.log, script=
               f"ls -A {run.log}; mv {run.log} {run.log}.x; true")
    check(run.out == "" and os.path.isdir(run.log), run)


def test_environment(case):
    top = ground(case, "env")
    secret = {"ANTHROPIC_API_KEY": "a1", "GITHUB_TOKEN": "b2", "db_password": "c3",
              "AWS_PROFILE": "d4", "EMPTY_TOKEN": ""}
    plain = {"AWS_REGION": "e5", "EDITOR": "f6", "TOKENIZERS": "g7"}
    run = box(case, top, "env", env={**secret, **plain})
    env = dict(line.split("=", 1) for line in run.out.splitlines())
    check(not set(secret) & set(env), run)
    check(all(env.get(k) == v for k, v in plain.items()), run)
    for name in secret:
        check((name in run.err) == (name != "EMPTY_TOKEN"), run)
    check("--env NAME" in run.err and "a1" not in run.err, run)
    run = box(case, top, "env", env={**secret, **plain},
              args=("--env", "ANTHROPIC_API_KEY", "--env", "GITHUB_TOKEN=own",
                    "--env", "MORE=1", "--env", "NONE", "--env",
                    "LD_PRELOAD=/x.so", "--env", "HTTPS_PROXY=http://evil:1"))
    env = dict(line.split("=", 1) for line in run.out.splitlines())
    check(env["ANTHROPIC_API_KEY"] == "a1" and env["GITHUB_TOKEN"] == "own", run)
    check(env["MORE"] == "1" and "NONE" not in env and "LD_PRELOAD" not in env, run)
    check("evil" not in env["HTTPS_PROXY"] and "db_password" not in env, run)
    check("GITHUB_TOKEN" not in run.err and "db_password" in run.err, run)
    # The values are not in reach of the command in another way.
    run = box(case, top, "sh", "-c", "cat /proc/*/environ | tr '\\0' '\\n'",
              env=secret)
    check("a1" not in run.out and "PATH=" in run.out, run)
    run = box(case, top, "true", args=("--env", "=x"))
    check(run.status == 125 and "NAME" in run.err, run)


LANDLOCK = ("import ctypes; print(ctypes.CDLL(None).syscall(444, 0, 0, 1))")


def test_second_wall(case):
    """Landlock: what leads around the view of the files leads to no writing."""
    top = ground(case, "wall")
    given = make(case, top + "/given", "to read\n", 0o666)
    out = make(case, top + "/out", "", 0o666)
    work = make(case, top + "/work")
    version = int(subprocess.run(["python3", "-c", LANDLOCK], text=True,
                                 capture_output=True, check=True).stdout)
    check(version >= 3, "this kernel has no Landlock")
    script = ("cat; echo evil > /proc/self/fd/0; echo more >> /proc/self/fd/1;"
              "echo a > a; mkdir b c; ln a b/l; mv b/l c/m; ln -s a s; : > a;"
              "mv c /tmp/c; cat /tmp/c/m; echo b > /dev/null; rm -r b s /tmp/c;"
              "echo t > /dev/shm/x; echo x > /tmp/y; mkfifo f; echo 5 >"
              " /proc/self/oom_score_adj; sleep 9 & kill $!; wait $!;"
              "echo killed $?; : > /dev/stdout; ls")
    with open(given) as stdin, open(out, "a") as stdout:
        run = box(case, work, "bash", "-c", script, stdin=stdin, stdout=stdout)
    with open(given) as f:
        check(f.read() == "to read\n", run)
    check(run.status == 0 and run.err.count("denied") == 1, run)
    with open(out) as f:
        check(f.read() == "a\nf\n", run)


def test_lists_of_the_manual(case):
    """sallyport(1) names all that is hidden and left out."""
    with open(TOP + "/deploy/man/sallyport.1") as f:
        manual = f.read().replace("\\-", "-")
    for path, least in (("credentials.c", 60), ("env_secrets.c", 40)):
        with open(f"{TOP}/launch/{path}") as f:
            text = f.read()
        listed = re.findall(r'^\t"([^"]+)"', text, re.M)
        check(len(listed) > least, path)
        missing = [x for x in listed if x not in manual]
        check(not missing, missing)


def test_no_packet_left(case):
    silent(case)


def test_sockets_that_come_and_go(case):
    """What is gone before it can be hidden does not fail a start."""
    top = ground(case, "flicker")
    work = make(case, f"{top}/work")
    done = threading.Event()

    def flicker():
        for n in range(1 << 30):
            path = f"{top}/{n % 7}.sock"
            with socket.socket(socket.AF_UNIX) as s:
                s.bind(path)
                s.listen(1)
                done.wait(0.002)
                os.unlink(path)
            if done.is_set():
                return
    thread = threading.Thread(target=flicker)
    thread.start()
    try:
        for _ in range(20):
            run = box(case, work, "true", args=args_for(case),
                      env={"HOME": top})
            check(run.status == 0, run)
    finally:
        done.set()
        thread.join()


def known_place(case):
    """Where what is known is written."""
    if case.who == "root":
        return contextlib.nullcontext("/run")
    return tempfile.TemporaryDirectory(prefix="sallyport-test-", dir="/run")


def test_known_directories(case):
    """Directories that are known to have no socket are not read again, but for
    those that were changed; a command doesn't see what is known."""
    top = ground(case, "known")
    for i in range(80):
        make(case, f"{top}/d{i}")
    while time.time() < os.stat(f"{top}/d79").st_ctime + 3:
        time.sleep(0.05)
    with known_place(case) as place:
        if case.who == "user":
            case.mine(place)
        known = place + "/sallyport.directories"

        def refused():
            run = box(case, top, "python3", "-c", f"""
import os, socket
try: socket.socket(socket.AF_UNIX).connect("d7/sock"); print("REACHED")
except OSError: print("refused")
print(os.path.exists({known!r}))
""", env={"XDG_RUNTIME_DIR": place})
            check(run.status == 0 and run.out == "refused\nFalse\n", run)

        refused()
        st = os.stat(known)
        check(st.st_mode & 0o7777 == 0o600 and
              st.st_uid == (USER if case.who == "user" else 0), oct(st.st_mode))
        with socket.socket(socket.AF_UNIX) as server:
            # By a name that the kernel's list of sockets does not have.
            server.bind(top + "/before")
            os.chmod(top + "/before", 0o777)
            os.rename(top + "/before", top + "/d7/sock")
            server.listen(5)
            refused()
