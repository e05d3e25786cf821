# SPDX-License-Identifier: Apache-2.0
"""Sessions that a row changes or ends."""
import subprocess

from box import unheard


def reload(world, box, text):
    """Puts the text into the policy's file, and has the session read it."""
    with open(box.policy_path, "w") as f:
        f.write("version: 1\n" + text)
    return subprocess.run([*world.case.drop(), world.binary, "reload", box.directory],
                          cwd=world.case.work, env=world.case.env(), text=True,
                          capture_output=True, timeout=60)


def gone(world, box):
    """It was ended on purpose: no more of it is looked at."""
    for key in [k for k, b in world.boxes.items() if b is box]:
        del world.boxes[key]
    try:
        box.process.stdin.close()
    except BrokenPipeError:
        pass  # of what was asked when there was nobody any more
    box.process.stdout.close()


def run(world, *command, args=(), allow=("allowed.test",), **more):
    """A session of its own: (status, out, err)."""
    log, argv = world.case.argv(command, allow, args)
    more.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run(argv, cwd=world.case.work, text=True, timeout=60,
                          capture_output=True, env=world.case.env(**more.pop("env", {})),
                          **more)
    return done.returncode, done.stdout, done.stderr


def start(world, *command, args=(), **more):
    log, argv = world.case.argv(command, ("allowed.test",), args)
    more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(argv, cwd=world.case.work, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, env=world.case.env(), **more)


def left(world):
    """What has left since the row began; see box.silent()."""
    uplink = world.uplink
    return [p for p in uplink.since() if unheard(p) not in uplink.old]
