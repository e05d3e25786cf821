# SPDX-License-Identifier: Apache-2.0
"""Sandboxes on ground that is not /tmp, which is private in a sandbox and would
hide most mistakes."""
import base64
import contextlib
import json
import os
import signal
import subprocess
import time

from harness import check, Run, within

GROUND = "/srv"


def ground(case, name):
    """A new directory of the caller's on a file system of our mount namespace."""
    if not os.path.ismount(GROUND):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "none", GROUND],
                       check=True)
    top = f"{GROUND}/{case.who}"
    if not os.path.isdir(top):
        os.mkdir(top, 0o755)
        case.mine(top)
    path = f"{top}/{name}"
    if os.path.exists(path):  # another round of a test that is @prompt
        path += f"-{time.monotonic_ns()}"
    os.mkdir(path, 0o755)
    case.mine(path)
    return path


def make(case, path, text=None, mode=None):
    """A file, or without a text a directory, of the caller's."""
    if text is None:
        os.makedirs(path, exist_ok=True)
    else:
        with open(path, "w") as f:
            f.write(text)
    if mode is not None:
        os.chmod(path, mode)
    case.mine(path)
    return path


def argv_of(case, *args):
    return [*case.drop(), case.binary, *args]


def box(case, cwd, *command, args=(), log=None, env=None, timeout=120, unset=(),
        prefix=(), **kw):
    """`sallyport run` in this directory; state below its parent unless told."""
    log = log or make(case, f"{case.lab.dir}/box-{case.who}-{time.monotonic_ns()}")
    os.chmod(log, 0o700) if os.path.isdir(log) else None
    full = {**case.env(), **(env or {})}
    for name in unset:
        full.pop(name, None)
    kw.setdefault("stdin", subprocess.DEVNULL)
    kw.setdefault("stdout", subprocess.PIPE)
    kw.setdefault("stderr", subprocess.PIPE)
    p = subprocess.run([*prefix, *argv_of(case, "run", "--log", log, *args, "--",
                                          *command)],
                       cwd=cwd, env=full, text=True, timeout=timeout, **kw)
    return Run(p, log)


def spawn(case, cwd, *command, args=(), log=None, env=None, **kw):
    log = log or make(case, f"{case.lab.dir}/box-{case.who}-{time.monotonic_ns()}")
    kw.setdefault("stdin", subprocess.DEVNULL)
    p = subprocess.Popen(argv_of(case, "run", "--log", log, *args, "--", *command),
                         cwd=cwd, env={**case.env(), **(env or {})}, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
    return p, log


def records(log):
    with open(log + "/audit.jsonl") as f:
        return [json.loads(line) for line in f]


def receipt(log):
    """Its predicate."""
    with open(log + "/receipt.dsse.json") as f:
        return json.loads(base64.b64decode(json.load(f)["payload"]))["predicate"]


def whole(log):
    """The log is whole lines of JSON from the opening to the close."""
    lines = records(log)
    check(lines and lines[-1]["class_uid"] == 6002, lines[-1:])
    return lines


def marked(mark):
    """Pids of processes whose arguments or environment hold this mark."""
    found = []
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        for what in "cmdline", "environ":
            try:
                with open(f"/proc/{pid}/{what}", "rb") as f:
                    if mark.encode() in f.read():
                        found.append(int(pid))
                        break
            except OSError:
                pass
    return found


def gone(mark, but=lambda pid: False, seconds=3):
    """Who is left in the end, @but for some; whoever asks is @prompt."""
    began = time.monotonic()
    while left := [pid for pid in marked(mark) if not but(pid)]:
        if time.monotonic() - began > 30:
            return left
        time.sleep(0.02)
    within(seconds, time.monotonic() - began, "they ended too late")
    return []


def words(pid):
    """Its arguments; none if it is over."""
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            return f.read().split("\0")[:-1]
    except OSError:
        return []


def tool(pid):
    return words(pid)[:1] in ([], ["strace"])


def ended(mark):
    """The command lines of those that are left, which are then killed: see
    gone()."""
    left = gone(mark, tool)
    said = []
    for pid in left:
        said.append(f"{pid}: " + " ".join(words(pid)))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return said


# --- how it is started ---------------------------------------------------------


def delayed(case, cwd, log, call, ms, *command, out=subprocess.PIPE):
    """A session in which each @call comes late."""
    return subprocess.Popen(
        [*case.drop(), "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e",
         f"inject={call}:delay_enter={ms * 1000}", case.binary, "run", "--quiet", "--log", log,
         "--", *command], cwd=cwd, stdin=subprocess.DEVNULL,
        # LeakSanitizer does not work under strace.
        env=dict(case.env(), ASAN_OPTIONS="detect_leaks=0"),
        stdout=out, stderr=out, text=True)
