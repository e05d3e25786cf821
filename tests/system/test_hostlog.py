# SPDX-License-Identifier: Apache-2.0
"""The log of all sessions: it names each, and what vanishes shows."""
import base64
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time

from harness import check, so_far

SHOW = os.path.join(os.path.dirname(os.environ["SALLYPORT_BINARY"]), "tests",
                    "hostlog_show")


class World:
    """A key of its own; so also root's sessions have a log to themselves."""

    def __init__(self, case, name):
        self.case = case
        self.key = os.path.join(case.work, name + ".key")
        subprocess.run([*case.drop(), case.binary, "key", "new", "--out",
                        self.key, "--json"], check=True,
                       env=case.env(), stdout=subprocess.DEVNULL)
        with open(self.key[:-4] + ".vkey") as f:
            self.vkey = f.read().strip()
        self.home = ("/var/log/sallyport" if case.who == "root" else
                     case.work + "/.state/sallyport")
        self.host = f"{self.home}/host-{self.vkey.split('+')[1]}"
        self.args = ("--key", self.key)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.case.who == "root":
            shutil.rmtree(self.host, ignore_errors=True)

    def run(self, *command, **kw):
        return self.case.run(*command, args=self.args, **kw)

    def records(self, place=""):
        try:
            return [r["unmapped"] for r in so_far(os.path.join(self.host, place))]
        except FileNotFoundError:
            return []

    def wait(self):
        """Whoever appends has done so."""
        with open(self.host + "/tree", "rb") as tree:
            fcntl.flock(tree, fcntl.LOCK_EX)

    def show(self):
        """What is said of each of our sessions, by the name of its directory;
        and of the log."""
        shown = subprocess.run([SHOW, self.home, self.vkey], text=True,
                               capture_output=True, check=True).stdout
        words = [line.split(" ", 2) for line in shown.splitlines()]
        ours = os.path.basename(self.host)
        return ({w[2]: w[1] for w in words if w[0][:2] == "20"},
                [line for line in shown.splitlines()
                 if line.startswith("problem " + ours)])


def until(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def test_names_them_all(case):
    with World(case, "three") as world:
        first, second = world.run("true"), world.run("true")
        check(first.status == 0, first)
        process, third = case.start("sleep", "60", args=world.args)
        until(lambda: len(world.records()) == 5)
        world.wait()
        os.kill(case.child(process, "ledger"), signal.SIGKILL)
        process.communicate(timeout=30)
        said = [(r["event"], r.get("directory")) for r in world.records()]
        assert said == [("session_opened", first.log),
                        ("session_receipt", None),
                        ("session_opened", second.log),
                        ("session_receipt", None),
                        ("session_opened", third)], said
        assert world.records()[0]["session"] == first.records[0][
            "metadata"]["correlation_uid"]
        sessions, problems = world.show()
        assert not problems, problems
        assert sessions[first.log] == sessions[second.log] == "fine", sessions
        assert sessions[third] == "not_ended", sessions

        with open(second.log + "/receipt.dsse.json", "a") as f:
            f.write("\n")
        shutil.rmtree(first.log)
        shutil.rmtree(third)
        sessions, problems = world.show()
        assert not problems, problems
        assert sessions[first.log] == sessions[third] == "gone", sessions
        assert sessions[second.log] == "receipt_other", sessions


def test_sixteen_at_once(case):
    with World(case, "many") as world:
        runs = [case.start("true", args=world.args) for _ in range(16)]
        for process, log in runs:
            out, err = process.communicate(timeout=60)
            assert process.returncode == 0, out + err
        sessions, problems = world.show()
        assert not problems, problems
        assert all(sessions[log] == "fine" for _, log in runs), sessions
        assert len(world.records()) == 32
        assert "earlier-000001" not in os.listdir(world.host)


def test_edited_log(case):
    """Who edits a line of it is seen; and nothing is added to what does not
    fit."""
    with World(case, "edited") as world:
        first = world.run("true")
        path = world.host + "/audit.jsonl"
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(text.replace(first.log, first.log[:-1] + "x"))
        _, problems = world.show()
        assert len(problems) == 1 and "checkpoint 1 is of other records" in \
            problems[0], problems
        with open(path, "w") as f:
            f.write(text.splitlines(keepends=True)[0])
        second = world.run("true")
        check(second.status == 0, second)
        assert not [r for r in second.records
                    if r["unmapped"]["event"] == "finding"]
        quote = world.records()[0]["earlier"]
        assert quote["directory"] == "earlier-000001", quote
        assert quote["records"] == 1 and "\n2\n" in quote["checkpoint"], quote
        sessions, problems = world.show()
        assert sessions[first.log] == sessions[second.log] == "fine" or \
            sessions[first.log] == "not_ended", sessions
        assert any("more than the 1 records" in p for p in problems), problems
        shutil.rmtree(world.host + "/earlier-000001")
        _, problems = world.show()
        assert any("a log was put there" in p for p in problems), problems


def test_held(case):
    """A session that was stopped as it wrote holds up no other, and what could
    not be written is said."""
    with World(case, "held") as world:
        world.run("true")
        with open(world.host + "/tree", "rb") as tree:
            fcntl.flock(tree, fcntl.LOCK_EX)
            run = world.run("sh", "-c", "date +%s.%N")
            check(run.status == 0, run)
        opened = run.records[0]["time"] / 1000
        assert float(run.out) - opened < 1, (run.out, opened)
        found = [r["finding_info"]["title"] for r in run.records
                 if r["unmapped"]["event"] == "finding"]
        assert found == ["the log of all sessions could not be written: "
                         "another session holds it"], found
        with open(run.log + "/receipt.dsse.json") as f:
            statement = json.loads(base64.b64decode(json.load(f)["payload"]))
        told = statement["predicate"]["findings"]
        assert [f["text"] for f in told] == found, told
        sessions, problems = world.show()
        assert not problems, problems
        assert sum(word == "fine" for word in sessions.values()) >= 1


def test_out_of_reach(case):
    """The sandbox neither sees it nor writes to it."""
    with World(case, "reach") as world:
        world.run("true")
        before = world.records()
        run = world.run("sh", "-c", f"cat {world.host}/audit.jsonl; "
                        f"ls {world.host}; echo x >> {world.host}/tree; "
                        f"mkdir -p {world.host}; mv {world.home} {world.home}2;"
                        f" cat {world.key}")
        check(run.out == "", run)
        assert world.records()[:2] == before and len(world.records()) == 4
        _, problems = world.show()
        assert not problems, problems


def test_verify_and_log(case):
    """As people see it: `verify --sessions`, and `log` of the log of all."""
    with World(case, "seen") as world:
        def sallyport(*argv):
            return subprocess.run([*case.drop(), case.binary, *argv], text=True,
                                  capture_output=True, env=case.env(),
                                  check=False)

        def verify(*argv):
            return sallyport("verify", "--key", world.vkey, *argv)

        fine, gone, other = (world.run("true") for _ in range(3))
        world.wait()
        # A copy: nothing of others is in the way.
        home = f"{case.work}/seen-{case.who}"
        subprocess.run([*case.drop(), "mkdir", home], check=True)
        subprocess.run([*case.drop(), "cp", "-r", world.host, home], check=True)
        all_ = verify("--sessions", home)
        assert (all_.returncode, all_.stderr) == (0, ""), all_
        assert "names 3 sessions, 3 as they ended\n" in all_.stdout, all_
        one = verify(fine.log)
        assert one.returncode == 0, one
        assert "\n  host log  names it, with this receipt\n" in one.stdout, one
        shown = sallyport("log", f"{home}/{os.path.basename(world.host)}")
        assert (shown.returncode, shown.stderr) == (0, ""), shown
        rows = shown.stdout.splitlines()
        assert [r.split()[2] for r in rows] == ["opened", "receipt"] * 3, rows
        assert fine.log in rows[0] and "records receipt sha256:" in rows[1]
        shutil.rmtree(gone.log)
        shutil.copy(fine.log + "/receipt.dsse.json",
                    other.log + "/receipt.dsse.json")
        all_ = verify("--sessions", home)
        assert all_.returncode == 1, all_
        assert f"its log is gone: {gone.log}\n" in all_.stdout, all_
        assert f"the one that it ended with: {other.log}\n" in all_.stdout, all_
        found = json.loads(verify("--sessions", "--json", home).stdout)
        assert found["verdict"] == "broken", found
        assert found["host"]["verdict"] == "holds", found
        assert sorted(x["word"] for x in found["host"]["broken"]) == \
            ["gone", "receipt_other"], found
        one = verify(other.log)
        assert one.returncode == 1, one
        assert "ended with another receipt" in one.stdout, one
        # Damaged, and not there.
        path = f"{home}/{os.path.basename(world.host)}/audit.jsonl"
        with open(path) as f:
            lines = f.readlines()
        with open(path, "w") as f:
            f.writelines(lines[:-1])
        all_ = verify("--sessions", home)
        assert all_.returncode == 1 and "were signed" in all_.stdout, all_
        shutil.rmtree(world.host)
        one = verify(fine.log)
        assert one.returncode == 0, one
        assert "\n  host log  there is none of this key\n" in one.stdout, one
        shutil.rmtree(os.path.dirname(path))
        all_ = verify("--sessions", home)
        assert all_.returncode == 125, all_
