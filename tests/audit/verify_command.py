#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""verify_command.py - the command line around verification: many sessions,
proofs, what is printed and how it ends. verify_command.py SESSION SALLYPORT.
"""
import json
import os
import pty
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SESSION, SALLYPORT = (os.path.abspath(p) for p in sys.argv[1:3])
ID = "20261121T120000Z-0123456789"
with open(SALLYPORT, "rb") as binary:
    SANITIZED = b"__asan_init" in binary.read()
BIG = 40 * 1000 * 1000  # bytes


def make(path, **words):
    os.makedirs(path)
    subprocess.run([SESSION, "make", path,
                    *(f"{k}={v}" for k, v in words.items())], check=True)
    return path


class Verify(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.top)
        self.dir = make(self.top + "/home/one")
        with open(self.dir + "/session.vkey", encoding="ascii") as f:
            self.key = f.read().strip()
        self.env = dict(os.environ, HOME="/nonexistent",
                        XDG_CONFIG_HOME=self.top + "/config",
                        XDG_STATE_HOME=self.top + "/state", TERM="xterm")

    def run_it(self, *argv, cwd=None):
        done = subprocess.run([SALLYPORT, "verify", *argv], env=self.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120, check=False, cwd=cwd)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_text(self):
        status, out, err = self.run_it(self.dir, "--key", self.key)
        self.assertEqual((status, err), (0, ""))
        self.assertTrue(out.startswith(f"holds: session {ID}\n"), out)
        for word in ("netns, held", "sha256:1111", "300 in 3 files",
                     "by 7 checkpoints", self.key, "--key"):
            self.assertIn(word, out)
        status, out, err = self.run_it(self.dir)
        self.assertEqual((status, err), (2, ""))
        self.assertTrue(out.startswith("incomplete: "), out)
        self.assertIn("the key came with the log: whoever changed the log "
                      "could have made it", out)

    def test_names(self):
        for name in (".", "audit.jsonl", "audit.jsonl.000001", "./"):
            status, out, err = self.run_it(name, "--key", "session.vkey",
                                           cwd=self.dir)
            self.assertEqual((status, err), (0, ""), (name, out))
        os.symlink(self.dir, self.top + "/link")
        self.assertEqual(self.run_it(self.top + "/link", "--key", self.key)[0],
                         0)

    def test_quiet(self):
        self.assertEqual(self.run_it("-q", self.dir, "--key", self.key),
                         (0, "", ""))
        self.assertEqual(self.run_it("-q", "--json", self.dir), (2, "", ""))
        os.unlink(self.dir + "/audit.jsonl.000002")
        self.assertEqual(self.run_it("--quiet", self.dir), (1, "", ""))

    def test_what_cannot_be_verified(self):
        for argv in (("/nonexistent",), (self.dir + "/checkpoints",),
                     (self.dir, "--key", "/nonexistent"),
                     (self.dir, "--key", "x+y+z"),
                     (self.dir, "--key", self.dir + "/checkpoints"),
                     (self.dir, "--receipt", "/nonexistent"),
                     (self.dir, "--checkpoint", "/nonexistent"),
                     (self.dir, self.dir), (self.dir, "--nonsense"),
                     (self.dir, "--proof", "x"), (self.dir, "-o", "x"),
                     (self.dir, "--proof", "1", "--json"),
                     ("--record", "x"), ("--with", "x"),
                     (self.top + "/config",), (SALLYPORT,)):
            status, out, err = self.run_it(*argv)
            self.assertEqual((status, out), (125, ""), (argv, err))
            self.assertTrue(err.startswith("sallyport: "), (argv, err))

    def test_bad_key_of_the_configuration(self):
        os.makedirs(self.top + "/config/sallyport")
        with open(self.top + "/config/sallyport/signing.vkey", "w",
                  encoding="ascii") as f:
            f.write("rubbish\n")
        self.assertEqual(self.run_it(self.dir)[0], 125)

    def test_many(self):
        home = self.top + "/home"
        make(home + "/two")
        make(home + "/two/earlier-000001", session="20261121T110000Z-0000000000")
        make(home + "/three", close=0, receipt=0)
        os.mkdir(home + "/no-session")
        status, out, err = self.run_it(home, "--key", self.key)
        self.assertEqual((status, err), (2, ""), out)
        self.assertEqual([x.split()[:2] for x in out.splitlines()],
                         [["holds", "one"], ["incomplete", "three"],
                          ["holds", "two"], ["holds", "two/earlier-000001"],
                          ["There", "is"]])
        self.assertIn("\nThere is no log of all sessions (host): ", out)
        os.unlink(home + "/two/earlier-000001/checkpoints")
        status, out, err = self.run_it(home, "--key", self.key, "--json")
        self.assertEqual((status, err), (1, ""))
        found = json.loads(out)
        self.assertEqual(found["verdict"], "broken")
        self.assertEqual([(x["log"], x["verdict"]) for x in found["logs"]],
                         [("one", "holds"), ("three", "incomplete"),
                          ("two", "holds"), ("two/earlier-000001", "broken")])
        self.assertEqual(found["logs"][3]["problems"][0]["word"], "unreadable")
        # Of one session, what was there before counts too.
        status, out, err = self.run_it(home + "/two", "--key", self.key)
        self.assertEqual((status, err), (1, ""))
        self.assertTrue(out.startswith("holds: "))
        self.assertIn("broken      earlier-000001", out)
        status, out, err = self.run_it(home + "/two", "--key", self.key,
                                       "--json")
        found = json.loads(out)
        self.assertEqual((status, found["verdict"]), (1, "holds"))
        self.assertEqual(found["earlier"][0]["verdict"], "broken")

    def test_killed_as_it_ended(self):
        """Closed, but neither a last checkpoint nor a receipt."""
        path = make(self.top + "/killed", receipt=0)
        with open(path + "/checkpoints", encoding="utf-8") as f:
            notes = f.read().splitlines(True)
        with open(path + "/checkpoints", "w", encoding="utf-8") as f:
            f.write("".join(notes[:-5]))
        status, out, err = self.run_it(path, "--key", self.key)
        self.assertEqual((status, err), (2, ""), out)
        self.assertIn("but its last records are not signed: it was killed as "
                      "it ended, or somebody removed", out)
        self.assertIn("but there is no receipt", out)

    def test_another_session_in_its_place(self):
        other = "20261121T130000Z-abcdefabcd"
        for name, status in ((ID, 0), (other, 1)):
            path = make(self.top + "/" + name)
            got, out, err = self.run_it(path, "--key", self.key)
            self.assertEqual((got, err), (status, ""), out)
        self.assertIn(f"{other}: other_session: the directory of this session "
                      f"has session {ID} in it", out)

    def test_only_what_was_here_before(self):
        # Whoever takes the newest log away leaves the one before it, which
        # holds; or puts another one below.
        home = self.top + "/place"
        make(home)
        make(home + "/earlier-000001", session="20261121T110000Z-0000000000")
        for name in os.listdir(home):
            if name != "earlier-000001":
                os.unlink(home + "/" + name)
        for path, told in ((home, "audit.jsonl: unreadable: the records: it "
                            "is missing"), (self.top, "broken      place ")):
            status, out, err = self.run_it(path, "--key", self.key)
            self.assertEqual((status, err), (1, ""), out)
            self.assertIn(told, out)
        os.rename(home + "/earlier-000001", home + "/earlier-000002")
        self.assertEqual(self.run_it(home, "--key", self.key)[0], 1)
        shutil.rmtree(home)
        for name in ("session.vkey", "audit.jsonl.000001",
                     "receipt.dsse.json.new"):
            make(home + "/" + ID)
            with open(home + "/" + name, "wb"):
                pass
            self.assertEqual(self.run_it(home, "--key", self.key)[0], 1, name)
            shutil.rmtree(home)

    def test_no_session_is_passed_over(self):
        # The logs of all sessions lie beside the sessions; their names hide
        # nothing.
        home = self.top + "/home"
        os.mkdir(home + "/host")
        os.mkdir(home + "/host-0123abcd")
        self.assertEqual(self.run_it(home, "--key", self.key)[0], 0)
        for name in ("host", "host-0123abcd"):
            shutil.rmtree(f"{home}/{name}")
            make(f"{home}/{name}")
            os.unlink(f"{home}/{name}/checkpoints")
            status, out, err = self.run_it(home, "--key", self.key)
            self.assertEqual((status, err), (1, ""), (name, out))
            shutil.rmtree(f"{home}/{name}")

    def test_what_was_here_before(self):
        old = make(self.top + "/old", parts=1,
                   session="20261121T110000Z-0000000000")
        path = make(self.top + "/new", earlier=old)
        status, out, err = self.run_it(path, "--key", self.key)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("but a log of 300 records was in this place", out)
        status, out, err = self.run_it(path, "--key", self.key, "--json")
        found = json.loads(out)
        self.assertEqual((status, found["earlier_fits"], found["earlier"]),
                         (0, False, []))
        shutil.copytree(old, path + "/earlier-000001")
        status, out, err = self.run_it(path, "--key", self.key)
        self.assertEqual((status, err), (0, ""), out)
        self.assertIn("\nholds       earlier-000001", out)
        shutil.rmtree(path + "/earlier-000001")
        make(path + "/earlier-000001", parts=1, backwards=1,
             session="20261121T110000Z-0000000000")
        status, out, err = self.run_it(path, "--key", self.key)
        self.assertEqual((status, err), (1, ""), out)
        self.assertIn("earlier-000001 is not the log that was here before "
                      f"session {ID}", out)
        status, out, err = self.run_it(path, "--key", self.key, "--json")
        self.assertEqual((status, json.loads(out)["earlier_fits"]), (1, False))

    def test_proofs(self):
        record, proof = self.top + "/record", self.top + "/proof"
        lines = []
        for name in ("audit.jsonl.000001", "audit.jsonl.000002",
                     "audit.jsonl"):
            with open(f"{self.dir}/{name}", "rb") as f:
                lines += f.read().splitlines(keepends=True)
        for number in (0, 1, 99, 100, 255, 256, 299):
            status, out, err = self.run_it(self.dir, "--key", self.key,
                                           "--proof", str(number))
            self.assertEqual((status, err), (0, ""))
            self.assertTrue(out.startswith("c2sp.org/tlog-proof@v1\nindex "
                                           f"{number}\n"))
            with open(record, "wb") as f:
                f.write(lines[number])
            with open(proof, "w", encoding="utf-8") as f:
                f.write(out)
            argv = ("--record", record, "--with", proof, "--key", self.key)
            status, out, err = self.run_it(*argv)
            self.assertEqual((status, err), (0, ""), out)
            self.assertTrue(out.startswith(f"holds: record {number} of session "
                                           f"{ID}, whose first 300 records "))
            status, out, err = self.run_it(*argv, "--json")
            self.assertEqual(json.loads(out)["record"], number)
            with open(record, "wb") as f:
                f.write(lines[number - 1])
            self.assertEqual(self.run_it(*argv)[0], 1)
        self.assertEqual(self.run_it("--record", record, "--with", proof)[0],
                         125)

    def test_proof_file(self):
        proof = self.top + "/p"
        argv = (self.dir, "--key", self.key, "--proof", "3", "-o", proof)
        self.assertEqual(self.run_it(*argv), (0, "", ""))
        self.assertTrue(os.path.getsize(proof) > 100)
        self.assertEqual(self.run_it(*argv)[0], 125)  # nothing is overwritten
        status, out, err = self.run_it(self.dir, "--key", self.key, "--proof",
                                       "300")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("can't be proved", err)

    def test_proof_of_a_broken_log(self):
        """Of what comes before the edit, but not of what comes after."""
        path = self.dir + "/audit.jsonl.000002"
        with open(path, "rb") as f:
            data = f.read()
        with open(path, "wb") as f:
            f.write(data.replace(b"h150.test", b"h151.test"))
        for number, want in ((20, 0), (127, 0), (128, 1), (299, 1)):
            status, _, err = self.run_it(self.dir, "--key", self.key,
                                         "--proof", str(number))
            self.assertEqual(status, want, (number, err))

    def big(self):
        path = make(self.top + "/big", records=BIG // 950, parts=2)
        return path

    def on_terminal(self, *argv, until=None):
        """What a terminal shows; a signal is sent when it shows @until."""
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(SALLYPORT, [SALLYPORT, "verify", *argv], self.env)
        shown, sent, deadline = b"", False, time.monotonic() + 120
        while time.monotonic() < deadline:
            if not select.select([fd], [], [], 1)[0]:
                continue
            try:
                data = os.read(fd, 65536)
            except OSError:
                break
            if not data:
                break
            shown += data
            if until and not sent and until in shown:
                os.kill(pid, signal.SIGINT)
                sent = True
        os.close(fd)
        return os.waitpid(pid, 0)[1], shown

    def slow(self):
        """Many signatures: longer than it takes for a bar to be shown."""
        return make(self.top + "/slow", records=40000, parts=1, every=3)

    def test_progress(self):
        status, shown = self.on_terminal(self.slow(), "--key", self.key)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        # What was drawn is gone before the result is printed.
        drawn, rest = shown.rsplit(b"\r\x1b[K", 1)
        self.assertIn(b" % of 38 MB", drawn)
        self.assertTrue(rest.startswith(b"\x1b[32mholds\x1b[0m: "), rest)

    def test_interrupted(self):
        status, shown = self.on_terminal(self.slow(), "--key", self.key,
                                         until=b"verifying [")
        self.assertEqual(os.waitstatus_to_exitcode(status), -signal.SIGINT)
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown[-100:])

    def test_memory(self):
        """The same for a small log and for a large one."""
        peak = []
        for path in (self.dir, self.big()):
            pid = os.posix_spawn(SALLYPORT,
                                 [SALLYPORT, "verify", "-q", path, "--key",
                                  self.key], self.env)
            _, status, used = os.wait4(pid, 0)
            self.assertEqual(os.waitstatus_to_exitcode(status), 0)
            peak.append(used.ru_maxrss)
        # A sanitizer keeps for a while what was freed.
        self.assertLess(peak[1], peak[0] + (16384 if SANITIZED else 1024),
                        "KB")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    unittest.main(argv=sys.argv[:1])
