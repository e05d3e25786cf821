#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian package: made, looked through by lintian, installed into an empty
root with its maintainer scripts, run from there, and removed again.

    package.py BUILD VERSION
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUILD, VERSION = os.path.abspath(sys.argv[1]), sys.argv[2]
EXPECTED = """
usr/bin/sallyport
usr/share/man/man1/sallyport.1.gz
usr/share/man/man1/sallyport-prove.1.gz
usr/share/man/man5/sallyport-policy.5.gz
usr/share/man/man5/sallyport-log.5.gz
usr/share/bash-completion/completions/sallyport
usr/share/zsh/vendor-completions/_sallyport
usr/share/doc/sallyport/copyright
usr/share/doc/sallyport/changelog.gz
usr/share/doc/sallyport/README.md.gz
usr/share/doc/sallyport/examples/coding-agent.yaml
usr/share/doc/sallyport/examples/kubernetes/pod.yaml
usr/share/sallyport/policy.schema.json
usr/share/sallyport/apparmor/sallyport
usr/lib/systemd/system/sallyport.service
usr/lib/systemd/system/sallyport.socket
usr/lib/sysusers.d/sallyport.conf
""".split()
good = True


def check(what, ok, told=""):
    global good
    print("ok     " + what if ok else f"FAILED {what}: {told}", flush=True)
    good = good and bool(ok)


def run(*argv, **more):
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, **more)


def make(top):
    """Of what is built; the build directory stays as it is."""
    made = run("cpack", "-G", "DEB", "--config",
               os.path.join(BUILD, "CPackConfig.cmake"), "-B", top,
               cwd=top)
    found = glob.glob(os.path.join(top, "*.deb"))
    check("the package is made", made.returncode == 0 and len(found) == 1,
          made.stdout)
    return found[0]


def lint(deb):
    told = run("lintian", "--allow-root", "--fail-on", "error,warning", deb)
    check("lintian: no error, no warning", told.returncode == 0 and
          not re.search("^[EW]:", told.stdout, re.M), told.stdout)
    shown = run("lintian", "--allow-root", "--show-overrides", deb).stdout
    known = {"embedded-library", "uses-dpkg-database-directly"}
    overridden = set(re.findall(r"^O: \S+ (\S+)", shown, re.M))
    check("and only these are excused", overridden == known, overridden)


def fields(deb):
    depends = run("dpkg-deb", "-f", deb, "Depends").stdout
    check("it depends on its libraries and bubblewrap",
          all(word in depends for word in ("libc6 (>=", "libmnl0 (>=",
                                           "bubblewrap")), depends)
    version = run("dpkg-deb", "-f", deb, "Version").stdout.strip()
    check("its version", version == VERSION, version)


def files(deb, root):
    run("dpkg-deb", "-x", deb, root)
    for path in EXPECTED:
        check(path, os.path.isfile(os.path.join(root, path)))
    modes = [f"{os.path.join(at, name)} {mode:o}"
             for at, folders, names in os.walk(root)
             for name in folders + names
             for mode in [os.lstat(os.path.join(at, name)).st_mode & 0o7777]
             if mode not in (0o755, 0o644)]
    check("modes", not modes, modes)
    told = run(os.path.join(root, "usr/bin/sallyport"), "version")
    check("it runs", told.stdout == f"sallyport {VERSION}\n", told)
    example = os.path.join(root, "usr/share/doc/sallyport/examples")
    told = run(os.path.join(root, "usr/bin/sallyport"), "check",
               os.path.join(example, "coding-agent.yaml"))
    check("its example is valid", told.returncode == 0, told)


def install(deb, root):
    """With dpkg into an empty root: its scripts act there and nowhere else."""
    for folder in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "etc"):
        os.makedirs(os.path.join(root, folder))
    for file, text in (("var/lib/dpkg/status", ""),
                       ("etc/passwd", "root:x:0:0::/root:/bin/sh\n"),
                       ("etc/group", "root:x:0:\n")):
        with open(os.path.join(root, file), "w") as out:
            out.write(text)
    dpkg = ["dpkg", f"--root={root}", "--force-script-chrootless",
            "--force-depends", f"--log={root}/log"]
    before = open("/etc/group").read()
    told = run(*dpkg, "--install", deb)
    check("dpkg installs it", told.returncode == 0, told.stdout)
    groups = open(os.path.join(root, "etc/group")).read()
    check("there is a group", re.search("^sallyport:", groups, re.M), groups)
    check("in that root only", open("/etc/group").read() == before)
    told = run(os.path.join(root, "usr/bin/sallyport"), "version")
    check("it runs there", told.stdout == f"sallyport {VERSION}\n", told)
    told = run(*dpkg, "--install", deb)
    check("installed again", told.returncode == 0, told.stdout)
    evidence = os.path.join(root, "var/log/sallyport/session")
    state = os.path.join(root, "var/lib/sallyport/sandboxes")
    os.makedirs(evidence)
    os.makedirs(state)
    told = run(*dpkg, "--purge", "sallyport")
    check("dpkg purges it", told.returncode == 0, told.stdout)
    check("state goes, evidence stays", os.path.isdir(evidence) and
          not os.path.exists(os.path.dirname(state)))
    left = [path for path in EXPECTED
            if os.path.lexists(os.path.join(root, path))]
    check("nothing else is left", not left, left)


def main():
    top = tempfile.mkdtemp(prefix="sallyport-package-")
    try:
        deb = make(top)
        print(f"       {os.path.getsize(deb) / 1e6:.1f} MB")
        lint(deb)
        fields(deb)
        for name, step in ("files", files), ("root", install):
            root = os.path.join(top, name)
            os.mkdir(root)
            step(deb, root)
    finally:
        shutil.rmtree(top)
    return 0 if good else 1


sys.exit(main())
