# SPDX-License-Identifier: Apache-2.0
"""Somebody with every right over our namespaces changes rules, links and
settings while a session goes on, with the tools that anybody has."""
import base64
import json
import os
import select
import subprocess
import threading
import time

from harness import check, descendants, networks, silent, so_far

# Tries to get out all the time, which the lab would see; and each line of its
# input asks for a page.
INSIDE = """
import select, socket, subprocess, sys
def page():
    for i in range(100):
        r = subprocess.run(["curl", "-s", "-m", "3", "--noproxy", "*",
                            "http://allowed.test/"], capture_output=True)
        if b"hello" in r.stdout: return "page"
        select.select([], [], [], 0.05)
    return "nothing"
def leased(a):
    for i in range(100):
        try:
            s = socket.create_connection((a, 80), 2)
            s.sendall(b"GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n"
                      b"Connection: close\\r\\n\\r\\n")
            if b"200 OK" in s.recv(1000): return "lease"
        except OSError: pass
        select.select([], [], [], 0.05)
    return "nothing"
print(page(), flush=True)
a = socket.gethostbyname("allowed.test")
while True:
    for address, port in (("93.184.216.66", 443), ("8.8.8.8", 80)):
        s = socket.socket(); s.settimeout(0.1)
        try: s.connect((address, port)); s.sendall(b"leak")
        except OSError: pass
        s.close()
        u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try: u.sendto(b"leak", (address, 9)); u.sendto(b"leak", (address, 53))
        except OSError: pass
        u.close()
    if select.select([sys.stdin], [], [], 0.002)[0]:
        word = sys.stdin.readline().strip()
        if not word: break
        print(page() if word == "page" else leased(a), flush=True)
"""


class Session:
    """A session whose boundary can be touched."""

    def __init__(self, case):
        self.case = case
        self.process, self.log = case.start("python3", "-c", INSIDE,
                                            stdin=subprocess.PIPE)
        self.expect("page")
        self.pid = self.process.pid
        self.gate = case.child(self.process, "gate")

    def expect(self, word):
        line = self.process.stdout.readline()
        if line != word + "\n":
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError((word, line, out, err, self.findings()))

    def ask(self, word, answer):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        self.expect(answer)

    def namespaces(self):
        """The network namespaces that the warden holds: the sandbox's, and the
        gateway's, in which nobody is."""
        inside = {os.readlink(f"/proc/{p}/ns/net"): p
                  for p in descendants(self.pid)
                  if command(p)[:2] == ["python3", "-c"]}
        found = {"sandbox" if name in inside else "gateway": path
                 for name, path in networks(self.pid).items()}
        check(sorted(found) == ["gateway", "sandbox"], (found, inside))
        return found

    def begin(self, where, *argv):
        """Starts a tool there. As the user: with the rights that the user has
        over namespaces of its own."""
        enter = ["nsenter", f"--net={self.namespaces()[where]}"]
        if self.case.who == "user":
            enter.insert(1, f"--user=/proc/{self.pid}/ns/user")
            enter += ["--preserve-credentials"]
        return subprocess.Popen([*self.case.drop(), *enter, *argv],
                                text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def tool(self, where, *argv):
        """Runs it; its pid."""
        child = self.begin(where, *argv)
        out, _ = child.communicate(timeout=60)
        check(child.returncode == 0, (argv, out))
        return child.pid

    def records(self):
        return so_far(self.log)

    def findings(self):
        return [r for r in self.records() if r["class_uid"] == 2004]

    def wait(self, count):
        """Until there are so many findings."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found = self.findings()
            if len(found) >= count:
                return found
            time.sleep(0.005)
        raise AssertionError((count, found))

    def restored(self, count=1):
        """The last of @count changes was put back, and all works."""
        self.wait(count)
        self.ask("lease", "lease")
        self.ask("page", "page")
        gate = self.case.child(self.process, "gate")
        check(gate != self.gate, "the same gate")
        self.gate = gate
        self.case.lab.wait(lambda: len(self.back()) >= count, "the record")
        check(len(self.back()) == count, (count, self.back()))

    def back(self):
        return [r for r in self.records()
                if r.get("unmapped", {}).get("event") == "ruleset"]

    def end(self):
        """Ends it by itself: nothing was wrong in the end."""
        out, err = self.process.communicate("\n", timeout=60)
        check(self.process.returncode == 0, (out, err))
        silent(self.case)
        self.receipt("restored")

    def ended(self, *words):
        """It was ended, with a finding that has these words."""
        self.process.wait(60)  # its command would end with its input
        out, err = self.process.communicate(timeout=60)
        check(self.process.returncode == 125, (self.process.returncode, out, err))
        text = [r["finding_info"]["title"] for r in self.findings()]
        check(any(all(w in t for w in words) for t in text), (words, text))
        silent(self.case)
        self.receipt("broken")

    def receipt(self, held):
        """It says so, too."""
        said = receipt_of(self.log)
        check(said["boundary"]["held"] == held, said)
        found = [r["metadata"]["sequence"] for r in self.findings()]
        check([r["sequence"] for r in said["findings"]] == found, said)
        if held == "restored":
            rules = said["ruleset"]
            check(rules["start"] == rules["end"], rules)
            check({r["process"] for r in rules["changes"]} == {"nft"}, rules)


def receipt_of(log):
    with open(log + "/receipt.dsse.json") as f:
        return json.loads(base64.b64decode(json.load(f)["payload"]))["predicate"]


def command(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            return f.read().split("\0")
    except OSError:
        return []


def done_by(finding, name, pid):
    process = finding["evidences"][0]["process"]
    check(process["name"] == name, finding)
    check(process["pid"] == pid, (pid, finding))
    check(f"pid {pid} as the kernel counts" in finding["finding_info"]["title"],
          finding)


def put_back(case, *nft):
    session = Session(case)
    pid = session.tool("gateway", "nft", *nft)
    finding = session.wait(1)[0]
    done_by(finding, "nft", pid)
    session.restored()
    check(len(session.findings()) == 1, session.findings())
    session.end()
    return finding["finding_info"]["title"]


def test_flush(case):
    text = put_back(case, "flush", "ruleset")
    check("lacks" in text, text)


def test_delete_table(case):
    text = put_back(case, "delete", "table", "inet", "sallyport")
    check("lacks" in text, text)


def test_add_rule(case):
    text = put_back(case, "insert", "rule", "inet", "sallyport", "pre", "accept")
    check("accept" in text, text)


def test_change_policy(case):
    text = put_back(case, "chain", "inet", "sallyport", "pre",
                    "{ policy accept; }")
    check("pre" in text, text)


def test_add_element(case):
    """The set that changes all the time anyway: only the kernel's word tells."""
    put_back(case, "add", "element", "inet", "sallyport", "flows",
             '{ "sp0" . 93.184.216.66 . 443 }')


def test_change_and_back(case):
    """What was taken back before anybody looked was a change."""
    put_back(case, "insert rule inet sallyport pre accept; "
             "add table inet other; delete table inet other")


def test_other_table(case):
    session = Session(case)
    pid = session.tool("gateway", "nft", "add", "table", "inet", "other")
    done_by(session.wait(1)[0], "nft", pid)
    session.ended("another table", "could not be put back")


def test_again_and_again(case):
    session = Session(case)
    for count in range(1, 4):
        session.tool("gateway", "nft", "flush", "ruleset")
        session.restored(count)
    session.tool("gateway", "nft", "flush", "ruleset")
    session.ended("more often")


def test_storm(case):
    """Changes without end: ended, and nothing gets out meanwhile."""
    session = Session(case)
    storm = session.begin("gateway", "sh", "-c",
                          "trap exit TERM; while :; do nft flush ruleset; done")
    try:
        session.ended("more often")
    finally:
        storm.terminate()
        storm.communicate(timeout=60)


def test_second_interface(case):
    for where in "sandbox", "gateway":
        session = Session(case)
        session.tool(where, "ip", "link", "add", "exit0", "type", "veth",
                     "peer", "name", "exit1")
        session.ended(f"in the {where}'s namespace", "interface", "exit0")


def test_address(case):
    for where, name in ("sandbox", "eth0"), ("gateway", "sp0"):
        session = Session(case)
        session.tool(where, "ip", "addr", "add", "10.9.8.7/24", "dev", name)
        session.ended(f"in the {where}'s namespace", "10.9.8.7")


def test_address6(case):
    session = Session(case)
    session.tool("gateway", "ip", "addr", "add", "2001:db8::7/64", "dev", "sp0")
    session.ended("in the gateway's namespace", "2001:db8::")


def test_route(case):
    for where, name in ("sandbox", "eth0"), ("gateway", "sp0"):
        session = Session(case)
        session.tool(where, "ip", "route", "add", "10.9.8.0/24", "dev", name)
        session.ended(f"in the {where}'s namespace", "route to 10.9.8.0/24")


def test_rule_for_routes(case):
    session = Session(case)
    session.tool("gateway", "ip", "rule", "add", "from", "all", "table", "99")
    session.ended("in the gateway's namespace", "rule", "table 99")


def test_link_gone(case):
    session = Session(case)
    session.tool("gateway", "ip", "link", "del", "sp0")
    session.ended("namespace", "sp0")


def test_link_down(case):
    session = Session(case)
    session.tool("sandbox", "ip", "link", "set", "eth0", "down")
    session.ended("in the sandbox's namespace")


def test_forwarding(case):
    for key in "ipv4.ip_forward", "ipv6.conf.all.forwarding":
        session = Session(case)
        # The kernel shows /proc/sys/net of the namespace of who looks.
        session.tool("gateway", "sysctl", "-qw", f"net.{key}=1")
        session.ended("in the gateway's namespace", "forwarding")


def test_speed(case):
    """From the change to the end of the gate."""
    took = []
    session = Session(case)
    trace = f"{case.work}/nft"
    for count in range(1, 4):
        gone = []
        pidfd = os.pidfd_open(session.gate)
        seen = threading.Thread(target=lambda: gone.append(
            (select.select([pidfd], [], [], 60), time.time())))
        seen.start()
        session.tool("gateway", "strace", "-ttt", "-qq", "-e", "trace=sendmsg",
                     "-o", trace, "nft", "flush", "ruleset")
        seen.join()
        os.close(pidfd)
        with open(trace) as f:
            # The last message is the change.
            sent = float(f.read().splitlines()[-1].split()[0])
        took.append((gone[0][1] - sent) * 1000)
        session.restored(count)
    print("        change to gate gone: "
          + ", ".join(f"{t:.1f}" for t in took) + " ms")
    check(max(took) < 1000, took)
    session.end()


def untouched(run):
    check(run.status == 0, run)
    check(not [r for r in run.records if r["class_uid"] == 2004], run.records)
    check(receipt_of(run.log)["boundary"]["held"] == "held", run)


def test_clean(case):
    """Nobody does anything, and nothing is found."""
    for _ in range(200):
        untouched(case.run("true"))
    # Long enough for looks without news.
    run = case.run("sh", "-c", "curl -s https://allowed.test/; sleep 5; "
                   "curl -s https://allowed.test/")
    check(run.out.count("hello") == 2, run)
    untouched(run)
