#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each command of `sallyport help`, and each option of COMMAND --help, is
offered by bash and by zsh: asked of the shells themselves, zsh in a terminal.

    completion.py SALLYPORT DEPLOY/COMPLETION
"""
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time

BINARY, FOLDER = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


def run(*argv, **more):
    return subprocess.run(argv, capture_output=True, text=True, check=True,
                          **more).stdout


def commands():
    """Those of the help, read otherwise than the completions do."""
    part = run(BINARY, "help").split("commands:\n")[1].split("\n\n")[0]
    return {line.split()[0] for line in part.splitlines()}


def options(command):
    found = set()
    for line in run(BINARY, *command.split(), "--help").splitlines():
        head = re.match(r"  +((?:-[a-z], )?--?[a-z][a-z-]*(?:=[a-z]+)?)", line)
        if head:
            more = "=" if line[head.end():head.end() + 1] == "=" else ""
            found.update((head.group(1) + more).split(", "))
    return found


def in_bash(*words, home="/"):
    script = """
        source "$1/sallyport.bash"
        shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        [[ $(complete -p sallyport) == "complete -F _sallyport sallyport" ]] ||
            exit 1
        _sallyport "$1" "${@: -1}" "${@: -2:1}"
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    out = run("bash", "-c", script, "-", FOLDER, BINARY, *words, cwd=home,
              env={"PATH": os.environ["PATH"], "HOME": home})
    return {line for line in out.splitlines() if line}


class Zsh:
    """In a terminal that is wide and high enough for any list."""

    def __init__(self, home):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            os.environ.update(
                PATH=f"{os.path.dirname(BINARY)}:{os.environ['PATH']}",
                TERM="dumb", PS1="$ ", HOME=home)
            os.execvp("zsh", ["zsh", "-f", "-i"])
        for line in ("stty cols 300 rows 400", "COLUMNS=300 LINES=400",
                     "LISTMAX=10000; unsetopt prompt_sp beep",
                     f"fpath=({FOLDER} $fpath)", "autoload -U compinit",
                     "compinit -u -D"):
            os.write(self.fd, (line + "\n").encode())
        self.after("echo READY$((3*4))\n", {"READY12"})

    def after(self, keys, words, seconds=30):
        """Types @keys, and waits for all @words: those that did not come."""
        os.write(self.fd, keys.encode())
        got, end = "", time.monotonic() + seconds
        missing = words
        while missing and time.monotonic() < end:
            if not select.select([self.fd], [], [], 0.2)[0]:
                continue
            got += os.read(self.fd, 65536).decode(errors="replace")
            plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", " ", got)
            missing = words - set(plain.split())
        self.seen = got
        return missing

    def missing(self, line, words):
        left = self.after(line + "\t\t", words)
        if self.after("\x15echo END$((5*5))\n", {"END25"}):
            sys.exit(f"zsh does not answer after {line!r}: {self.seen!r}")
        return left

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def check(what, ok, told=""):
    print("ok     " + what if ok else f"FAILED {what}: {told}", flush=True)
    return bool(ok)


def main():
    good = True
    known = commands()
    home = tempfile.mkdtemp()
    sessions = os.path.join(home, ".local/state/sallyport/S1")
    policy = os.path.join(home, "agent.yaml")
    os.makedirs(sessions)
    open(policy, "w").close()
    good &= check("there are commands", len(known) >= 14, known)

    got = in_bash("")
    good &= check("bash: commands", got == known, got ^ known)
    optioned = sorted(known - {"help", "version", "guard"}) + ["guard up"]
    for command in optioned:
        want, got = options(command), in_bash(*command.split(), "-")
        good &= check(f"bash: options of {command}",
                      got == want and "--help" in want, got ^ want)
    presets = {line.split()[0] for line in
               run(BINARY, "presets").splitlines()}
    got = in_bash("run", "--allow", "")
    good &= check("bash: presets", got >= {"github", "npm"} and
                  got <= presets, got ^ presets)
    good &= check("bash: words", in_bash("log", "--verdict", "re") ==
                  {"refused"})
    good &= check("bash: files", in_bash("check", "ag", home=home) ==
                  {"agent.yaml"})
    good &= check("bash: files of an option", "agent.yaml" in
                  in_bash("run", "--policy", "", home=home))
    good &= check("bash: no file where none is taken",
                  in_bash("run", "--timeout", "ag", home=home) == set())

    zsh = Zsh(home)
    good &= check("zsh: commands", not zsh.missing("sallyport ", known))
    for command in optioned:
        left = zsh.missing(f"sallyport {command} -", options(command))
        good &= check(f"zsh: options of {command}", not left,
                      (left, zsh.seen))
    for line, words in (("sallyport run --allow ", {"github", "npm"}),
                        ("sallyport log --verdict ", {"refused"}),
                        ("sallyport check ", {"agent.yaml"}),
                        ("sallyport run --policy ", {"agent.yaml"}),
                        ("sallyport key ", {"new", "show"})):
        good &= check(f"zsh: {line}", not zsh.missing(line, words), zsh.seen)
    zsh.close()
    return 0 if good else 1


sys.exit(main())
