# SPDX-License-Identifier: Apache-2.0
"""Which policy is in force, who may have written it, and that a sandbox can't
see or change anything that it is made of."""
import json
import os
import signal
import subprocess

from harness import USER, check
from box_lab import box, ground, make

STRANGER = 65530  # neither root nor the ordinary user
DENY_ALL = "version: 1\n"


def allow(*hosts):
    return "version: 1\nallow: [" + ", ".join(hosts) + "]\n"


def at(case, name, **env):
    """A fresh HOME, and how to run there: (home, run). The working directory is
    another one."""
    home = ground(case, name)
    cwd = ground(case, name + "-cwd")
    variables = {"HOME": home, "XDG_STATE_HOME": home + "/state",
                 "XDG_CONFIG_HOME": "", "SALLYPORT_POLICY": "", **env}

    def run(*args, command=("true",), **more):
        return box(case, cwd, *command, args=args, env={**variables, **more})
    return home, run


def config(case, home, text, directory=".config"):
    make(case, f"{home}/{directory}")
    make(case, f"{home}/{directory}/sallyport")
    return make(case, f"{home}/{directory}/sallyport/policy.yaml", text)


def opening(run):
    """The detail of the opening record."""
    return json.dumps(run.records[0])


def uses(run, path):
    check(run.status == 0 and f"policy: {path}\n" in run.err
          and f"; policy {path}" in opening(run), (str(run), opening(run)))


def refused(run, *words):
    check(run.status == 125 and all(word in run.err for word in words), run)


# --- the order -----------------------------------------------------------------

def test_order(case):
    home, run = at(case, "order")
    there = config(case, home, DENY_ALL)
    uses(run(), there)
    xdg = config(case, home, DENY_ALL, "xdg")
    uses(run(XDG_CONFIG_HOME=home + "/xdg"), xdg)
    # One that does not count leaves the default; one without a file, nothing.
    uses(run(XDG_CONFIG_HOME="xdg"), there)
    uses(run(XDG_CONFIG_HOME=home + "/none"), "none")
    named = make(case, home + "/named.yaml", DENY_ALL)
    uses(run(SALLYPORT_POLICY=named, XDG_CONFIG_HOME=home + "/xdg"), named)
    given = make(case, home + "/given.yaml", DENY_ALL)
    uses(run("--policy", given, SALLYPORT_POLICY=named), given)
    # What is not in force need not even be there.
    uses(run("--policy", given, SALLYPORT_POLICY="nowhere"), given)
    uses(run("--policy", given, "--policy", named), f"{given}, {named}")


def test_it_is_in_force(case):
    home, run = at(case, "in-force")
    config(case, home, allow("allowed.test", "other.test"))
    both = ("curl", "-s", "http://allowed.test/", "http://other.test/",
            "http://evil.test/")
    got = run(command=both)
    check(got.out.count("hello") == 2 and got.denied("not_in_policy", "evil.test"),
          got)
    # Options add to it, and a denial wins.
    got = run("--deny", "allowed.test", "--allow", "six.test", command=(
        *both, "http://six.test/"))
    check(got.out.count("hello") == 2 and got.denied("deny_rule", "allowed.test")
          and not got.denied(host="six.test"), got)
    check("policy.yaml, options" in got.err, got)


def test_nothing(case):
    home, run = at(case, "nothing")
    got = run(command=("curl", "-s", "http://allowed.test/"))
    check("no policy: everything is refused" in got.err
          and f"{home}/.config/sallyport/policy.yaml" in got.err
          and got.denied("not_in_policy", "allowed.test"), got)
    check(run("--quiet").err == "")
    for args in (("--allow", "allowed.test"), ("--observe",)):
        check("no policy" not in run(*args).err, args)
    check("no policy" in run("--deny", "allowed.test").err)


def test_never_the_working_directory(case):
    cwd = ground(case, "tree")
    for name in "policy.yaml", "sallyport.yaml", ".sallyport.yaml":
        make(case, f"{cwd}/{name}", allow("allowed.test"))
    config(case, cwd, allow("allowed.test"))
    env = {"HOME": ground(case, "tree-home"), "XDG_CONFIG_HOME": ""}
    got = box(case, cwd, "curl", "-s", "http://allowed.test/", env=env)
    check(got.denied("not_in_policy", "allowed.test") and "policy: none\n" in got.err,
          got)
    for name in "policy.yaml", "./policy.yaml", "../tree/policy.yaml":
        refused(box(case, cwd, "true", env={**env, "SALLYPORT_POLICY": name}),
                "SALLYPORT_POLICY=" + name, "absolute")


def test_serve(case):
    home, _ = at(case, "serve")
    path = config(case, home, allow("allowed.test"))
    log = make(case, home + "/log")
    process = subprocess.Popen(
        [*case.drop(), case.binary, "serve", "--log", log, "--proxy",
         "127.0.0.1:18090"], cwd=home, text=True, stderr=subprocess.PIPE,
        env={**case.env(), "HOME": home, "XDG_CONFIG_HOME": ""})
    try:
        # Before it: that a key was made.
        check(any("serving" in process.stderr.readline() for _ in range(2)))
        got = subprocess.run(["curl", "-s", "-x", "http://127.0.0.1:18090",
                              "http://allowed.test/"], text=True,
                             capture_output=True)
        check("hello" in got.stdout, got)
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    check(f"policy: {path}\n" in err, err)
    with open(log + "/audit.jsonl") as f:
        check(f"; policy {path}" in f.readline())


def test_what_is_named(case):
    """All that it is made of, for people, for programs and in the record."""
    home, run = at(case, "named")
    make(case, home + "/parts")
    make(case, home + "/parts/more.yaml", allow("other.test"))
    base = make(case, home + "/base.yaml",
                "version: 1\nextends: [parts/more.yaml]\nallow: [allowed.test]\n")
    want = f"{base}, {home}/parts/more.yaml"
    uses(run("--policy", base), want)
    got = run("--policy", base, "--json", "--allow", "six.test")
    text = json.loads(got.err[got.err.index("{"):])
    check(text["policy"] == want + ", options", text)


# --- what is no policy ---------------------------------------------------------

def test_broken(case):
    home, run = at(case, "broken")
    path = config(case, home, "version: 1\nalow: []\n")
    refused(run(), f"{path}:2:1: ", "alow")
    refused(run("--allow", "allowed.test"), f"{path}:2:1: ")
    refused(run(SALLYPORT_POLICY=path), f"{path}:2:1: ")
    os.unlink(path)
    os.symlink("nowhere", path)
    refused(run(), path)
    os.unlink(path)
    os.mkdir(path)
    refused(run(), path)
    os.rmdir(path)
    refused(run(SALLYPORT_POLICY=path), path)
    refused(run(SALLYPORT_POLICY="/" + "x" * 5000))
    make(case, path, "version: 1\nextends: [gone.yaml]\n")
    refused(run(), f"{path}:2:", "gone.yaml")
    if case.who == "user":
        make(case, path, allow("allowed.test"), 0)
        refused(run(), path, "Permission denied")
        os.unlink(path)
        os.chmod(os.path.dirname(path), 0)
        refused(run(), path, "Permission denied")


def test_everybody_may_write(case):
    home, run = at(case, "writable")
    path = config(case, home, allow("allowed.test"))
    os.chmod(path, 0o646)
    refused(run(), path, "everybody" if case.who == "user" else "others")
    refused(run("--policy", path), path, "everybody")
    os.chmod(path, 0o644)
    os.chmod(os.path.dirname(path), 0o777)
    refused(run("--policy", path), path, "replace")
    os.chmod(os.path.dirname(path), 0o1777)
    check(run("--policy", path).status == 0)
    os.chmod(os.path.dirname(path), 0o755)
    # A file that it extends is as good as itself.
    base = make(case, home + "/base.yaml", DENY_ALL, 0o666)
    make(case, path, f"version: 1\nextends: [{base}]\n")
    refused(run("--policy", path), base, "everybody")
    os.chmod(base, 0o644)
    check(run("--policy", path).status == 0)


def test_a_group_may_write(case):
    home, run = at(case, "group")
    path = config(case, home, DENY_ALL)
    own = USER if case.who == "user" else 0
    os.chmod(path, 0o664)
    check("its group" not in run().err)  # the user's own group
    os.chown(path, own, STRANGER)
    got = run("--policy", path)
    check(got.status == 0 and f"{path}: its group" in got.err, got)
    os.chmod(path, 0o644)
    check("its group" not in run("--policy", path).err)


def test_whose_it_is(case):
    """Nobody follows a policy of somebody else without having named it."""
    home, run = at(case, "owner")
    path = config(case, home, allow("allowed.test"))
    os.chown(path, STRANGER, STRANGER)
    for env in {}, {"SALLYPORT_POLICY": path}:
        refused(run(**env), path, f"user {STRANGER}", "--policy")
    check(run("--policy", path).status == 0)
    os.chown(path, 0, 0)
    check(run().status == 0)
    if case.who != "root":
        return
    # Whose directories lead there could lead elsewhere.
    for part in path[:path.rindex("/")], home:
        os.chown(part, USER, USER)
        refused(run(), part, f"user {USER}")
        os.chown(part, 0, 0)
    os.chmod(home + "/.config", 0o777)
    refused(run(), home + "/.config", "others than root")
    os.chmod(home + "/.config", 0o755)
    # So could whose link it is, and what it leads through.
    theirs = ground(case, "theirs")
    os.symlink(path, theirs + "/link.yaml")
    os.chown(theirs, USER, USER)
    os.symlink(theirs + "/link.yaml", home + "/mine.yaml")
    refused(run(SALLYPORT_POLICY=home + "/mine.yaml"), theirs, f"user {USER}")
    os.chown(theirs, 0, 0)
    os.chown(theirs + "/link.yaml", USER, USER, follow_symlinks=False)
    refused(run(SALLYPORT_POLICY=home + "/mine.yaml"), theirs, f"user {USER}")
    os.chown(theirs + "/link.yaml", 0, 0, follow_symlinks=False)
    check(run(SALLYPORT_POLICY=home + "/mine.yaml").status == 0)


# --- out of reach --------------------------------------------------------------

# Every way that a file could be read, changed, moved or replaced.
REACH = r"""
import ctypes, os, sys
libc = ctypes.CDLL(None)
def tried(word, what, *args):
    try:
        got = what(*args)
    except OSError:
        return
    if word != "read" or got:
        print("DID", word, args, flush=True)
def read(path):
    with open(path) as f: return f.read()
def write(path):
    with open(path, "w") as f: f.write("version: 1\nallow: [evil.test]\n")
def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2): raise OSError()
os.makedirs("mine/d", exist_ok=True); write("mine/f")
for path in sys.argv[1:]:
    for way in path, "/proc/self/cwd/" + path, "/proc/self/root" + os.getcwd() + "/" + path:
        tried("read", read, way)
        tried("write", write, way)
        tried("link", os.link, way, "mine/link")
        tried("chmod", os.chmod, way, 0o666)
        tried("truncate", os.truncate, way, 0)
        tried("remove", os.unlink, way)
        tried("move", os.rename, way, "mine/moved")
        tried("replace", os.rename, "mine/f", way)
        tried("exchange", exchange, "mine/f", way)
    while "/" in path:
        path = os.path.dirname(path)
        tried("move dir", os.rename, path, "mine/moved-dir")
        tried("exchange dir", exchange, "mine/d", path)
        tried("remove dir", os.rmdir, path)
print("end")
"""


def contents(top):
    found = {}
    for directory, _, names in os.walk(top):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as f:
                found[path] = (f.read(), os.stat(path).st_ino)
    return found


def out_of_reach(case, cwd, paths, args, env=None):
    for name in "conf", ".config":
        if os.path.isdir(f"{cwd}/{name}"):
            break
    before = contents(f"{cwd}/{name}")
    check(len(before) >= len(paths), before)
    run = box(case, cwd, "python3", "-c", REACH, *paths, args=args, env=env)
    check(run.status == 0 and run.out.split() == ["end"], run)
    check(contents(f"{cwd}/{name}") == before, contents(f"{cwd}/{name}"))


def test_what_it_extends_is_out_of_reach(case):
    cwd = ground(case, "extends")
    make(case, cwd + "/conf")
    make(case, cwd + "/conf/a")
    make(case, cwd + "/conf/a/b")
    make(case, cwd + "/conf/p.yaml",
         "version: 1\nextends: [a/one.yaml, a/b/three.yml]\nallow: [allowed.test]\n")
    make(case, cwd + "/conf/a/one.yaml", "version: 1\nextends: [./two.yaml]\n")
    make(case, cwd + "/conf/a/two.yaml", allow("other.test"))
    make(case, cwd + "/conf/a/b/three.yml", allow("six.test"))
    out_of_reach(case, cwd, ("conf/p.yaml", "conf/a/one.yaml", "conf/a/two.yaml",
                             "conf/a/b/three.yml"), ("--policy", "conf/p.yaml"))
    # Where they are not in force they are files like all others.
    run = box(case, cwd, "python3", "-c", REACH, "conf/a/b/three.yml")
    check(all(f"DID {word} (" in run.out for word in (
        "read", "write", "link", "chmod", "remove", "replace", "move dir",
        "exchange dir")), run)


def test_lists_are_out_of_reach(case):
    cwd = ground(case, "lists")
    make(case, cwd + "/conf")
    make(case, cwd + "/conf/lists")
    make(case, cwd + "/conf/p.yaml",
         "version: 1\nallow: ['*.wild.test']\ndeny:\n  - file: lists/ads.txt\n")
    make(case, cwd + "/conf/lists/ads.txt", "www.wild.test\n")
    out_of_reach(case, cwd, ("conf/p.yaml", "conf/lists/ads.txt"),
                 ("--policy", "conf/p.yaml"))


def test_the_one_found_is_out_of_reach(case):
    """A HOME that is the working directory, and one above it."""
    home = ground(case, "own")
    config(case, home, allow("allowed.test"))
    env = {"HOME": home, "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": ""}
    # The key that the first session makes is there, too.
    box(case, home, "true", env=env)
    out_of_reach(case, home, (".config/sallyport/policy.yaml",), (), env)
    named = make(case, home + "/.config/named.yaml", allow("allowed.test"))
    out_of_reach(case, home, (".config/sallyport/policy.yaml",
                              ".config/named.yaml"), (),
                 {**env, "SALLYPORT_POLICY": named})


def test_out_of_sight_elsewhere(case):
    """Not below the working directory, but readable."""
    away = ground(case, "away")
    base = make(case, away + "/base.yaml", allow("other.test"))
    path = make(case, away + "/p.yaml", f"version: 1\nextends: [{base}]\n")
    got = box(case, ground(case, "away-cwd"), "cat", path, base,
              args=("--policy", path))
    check("test" not in got.out, got)


def test_many_files(case):
    cwd = ground(case, "many")
    make(case, cwd + "/conf")
    names = [f"{i}.yaml" for i in range(60)]
    for name in names:
        make(case, f"{cwd}/conf/{name}", allow("allowed.test"))
    make(case, cwd + "/conf/p.yaml",
         "version: 1\nextends: [" + ", ".join("./" + n for n in names) + "]\n")
    run = box(case, cwd, "sh", "-c", "cat conf/*; for f in conf/*; do "
              "echo x > $f && echo WROTE; done; echo end",
              args=("--policy", "conf/p.yaml"))
    check(run.out.split() == ["end"] and len(contents(cwd + "/conf")) == 61, run)


def test_hard_link(case):
    """A second name of the file is not masked: an earlier command may have made
    it."""
    cwd = ground(case, "hard")
    path = make(case, cwd + "/p.yaml", allow("allowed.test"))
    base = make(case, cwd + "/base.yaml", f"version: 1\nextends: [{path}]\n")
    os.link(path, cwd + "/second")
    for policy in path, base, "p.yaml":
        refused(box(case, cwd, "true", args=("--policy", policy)), "p.yaml",
                "hard link")
    os.unlink(cwd + "/second")
    check(box(case, cwd, "true", args=("--policy", base)).status == 0)


def test_link_on_the_way(case):
    """From outside, by a link that the command could replace, to outside."""
    cwd = ground(case, "way")
    away = ground(case, "way-away")
    make(case, away + "/p.yaml", allow("allowed.test"))
    base = make(case, away + "/base.yaml",
                f"version: 1\nextends: [{away}/link.yaml]\n")
    os.symlink(away + "/p.yaml", cwd + "/inside.yaml")
    os.symlink(cwd + "/inside.yaml", away + "/link.yaml")
    for policy in away + "/link.yaml", "inside.yaml", base:
        refused(box(case, cwd, "true", args=("--policy", policy)),
                cwd + "/inside.yaml is a link")
    # By another name of the working directory.
    os.symlink(cwd, away + "/alias")
    refused(box(case, cwd, "true", args=("--policy", away + "/alias/inside.yaml")),
            "is a link")
    check(box(case, away, "true", args=("--policy", away + "/p.yaml")).status == 0)


# --- --observe -----------------------------------------------------------------

def test_observe(case):
    home, run = at(case, "observe")
    config(case, home, allow("allowed.test"))
    fetch = ("curl", "-s", "http://allowed.test/", "http://other.test/")
    got = run(command=fetch)
    check("observing" not in got.err and got.out.count("hello") == 1, got)
    got = run("--observe", "--quiet", command=fetch)
    check("observing" in got.err and len(got.err.splitlines()) == 1, got)
    check(got.out.count("hello") == 2 and not got.denied(host="other.test"), got)
    # The machine's neighbours stay where they are.
    got = run("--observe", command=("curl", "-s", "http://private.test/"))
    check(got.denied("forbidden_address"), got)
