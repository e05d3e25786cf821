# SPDX-License-Identifier: Apache-2.0
"""What is written down, and what of it can be forged."""
import json
import os
import re
import signal
import subprocess
import threading
import time

from frame import NAME_DOORS, check, equal, row
from lab import GOOD
from packets import wire
from sessions import gone
from uplink import news, of

# --- R7, R8, R9: what is written down ----------------------------------------------------

ODD = ["\r\nX: y", "\n{\"class_uid\":1}\n", "\x1b]0;owned\x07", "\x9b31m", '","a":"',
       "\\u0000\\", "\xff\xfe\xc0\x80", "\xe2\x80\xae", "\0", "%s%n", "\x7f"]


@row("R7", doors=NAME_DOORS)
def bytes_that_forge(world, door):
    """Line ends, escapes, quotes, NUL, invalid and reversing UTF-8 within a name,
    by every door: one record on one line, valid and printable JSON, and not a
    word outside."""
    box = world.box()
    for odd in ODD:
        box.quiet()
        p = box.probe(door, "evil" + odd + ".test")
        check(not p["got"].startswith("ok"), odd.encode(), p["got"])
        world.wait(lambda: box.log.of_port(p["source"]), "its record")
        records = box.log.of_port(p["source"])
        equal(len(records), 1, odd.encode())
        equal(records[0]["action_id"], 2)
        box.silent(door, odd.encode())
    with open(box.log.path, "rb") as f:
        for line in f.read().split(b"\n")[:-1]:
            text = line.decode("utf-8")
            json.loads(text)
            check(text.isprintable() and len(line) < 65536, line[:300])


@row("R8", who=("root",))
def a_disk_that_is_full(world):
    """A log on 64 KiB: when no record fits any more, no question and no connection
    leaves either."""
    log = f"{world.lab.dir}/small-{world.who}"
    os.mkdir(log)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", log], check=True)
    os.chmod(log, 0o700)
    world.case.mine(log)
    try:
        run = subprocess.run(
            [*world.case.drop(), world.binary, "run", "--allow", "allowed.test", "--log", log,
             "--", "python3", "-c", FILL], cwd=world.case.work, env=world.case.env(), text=True,
            capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
        with open(log + "/audit.jsonl") as f:
            lines = [json.loads(line) for line in f if line.endswith("\n")]
    finally:
        subprocess.run(["umount", log], check=True)
    asked = [r for r in lines if r["unmapped"]["event"] == "flow_open" and r["action_id"] == 1]
    # The kernel sends one again that is not answered soon.
    syns = {of(p) for p in world.led(GOOD) if p.kind == "syn"}
    check(0 < len(syns) <= len(asked) < 300, len(syns), len(asked), run.stdout)


FILL = """
import os, socket
host, port = os.environ["http_proxy"].split("//")[1].strip("/").split(":")
good = 0
for i in range(300):
    try:
        s = socket.create_connection((host, int(port)), 30)
        s.settimeout(30)
        s.sendall(b"CONNECT allowed.test:443 HTTP/1.1\\r\\nHost: allowed.test:443\\r\\n\\r\\n")
        if b" 200 " in s.recv(1000): good += 1
        s.close()
    except OSError: break
print(good)
"""


@row("R9")
def bytes_before_their_record(world):
    """A ledger that is stopped: by no door a question, SYN or byte leaves until it
    goes on; then what was asked is answered."""
    box = world.box("allow: [allowed.test, both.test]\n")
    box.allowed("sni", "allowed.test")
    ledger = world.case.child(box.process, "ledger")
    box.quiet()
    os.kill(ledger, signal.SIGSTOP)
    try:
        box.start(all_doors, "both.test")
        world.wait(lambda: all_read(box), "the gate to read them")
        time.sleep(0.4)
        box.silent()
    finally:
        os.kill(ledger, signal.SIGCONT)
    said = box.finish()
    check(all(x.startswith("ok") for x in said), said)
    check([p for p in news(world.uplink.read()) if p.kind == "syn"])


def all_read(box):
    """Has the gate read what all_doors() says, and done with it what it can?"""
    read, w = set(), wire(box)
    for line in w.tool(w.gateway, "ss", "-HtniO").splitlines():
        _, waiting, _, _, peer = line.split()[:5]
        port = int(peer.rsplit(":", 1)[1])
        got = re.search(r"\bbytes_received:(\d+)", line)
        # By SOCKS the first three only greet.
        if 52000 <= port < 53000 and waiting == "0" and got and int(got[1]) > 3:
            read.add(port // 100)
    with open(f"/proc/{box.case.child(box.process, 'gate')}/stat") as f:
        return len(read) == 3 and f.read().rsplit(")", 1)[1].split()[0] == "S"


def all_doors(name):
    """At once, for the gate to have them all before one is answered."""
    said = {}

    def one(door):
        p = {"door": door, "name": name, "timeout": 30}
        mine = probe.Doors({})
        mine.port = 52000 + 100 * len(door)
        mine.run(p)
        said[door] = p["got"]
    threads = [threading.Thread(target=one, args=(d,)) for d in ("connect", "http", "socks")]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return list(said.values())


@row("R9", who=("root",))
def logs_that_were_edited(world):
    """Of a log that ended: a record changed, removed, doubled, two swapped, the end
    cut off, another session's line put in, the receipt taken away or changed:
    `verify` says no each time, and yes to the original."""
    box = world.box("allow: [cdn.test]\n")
    for door in "connect", "http":
        box.allowed(door, "cdn.test")
        box.denied(door, "evil.test", "not_in_policy")
    equal(box.stop(), 0)
    gone(world, box)
    equal(verify(world, box.directory), 0)
    path, receipt = box.log.path, box.directory + "/receipt.dsse.json"
    with open(path, "rb") as f:
        lines = f.read().splitlines(keepends=True)
    edits = {"changed": [*lines[:2], lines[2].replace(b"evil", b"good").replace(b"cdn", b"cdm"),
                         *lines[3:]],
             "removed": [*lines[:2], *lines[3:]], "doubled": [*lines[:3], *lines[2:]],
             "swapped": [lines[0], lines[2], lines[1], *lines[3:]], "cut": lines[:-1],
             "empty": [], "space": [*lines[:-1], lines[-1][:-1] + b" \n"],
             "denial allowed": [x.replace(b'"action_id":2', b'"action_id":1') for x in lines]}
    for what, edited in edits.items():
        rewrite(path, b"".join(edited))
        check(verify(world, box.directory) != 0, what)
    rewrite(path, b"".join(lines))
    with open(receipt, "rb") as f:
        signed = f.read()
    for what, text in (("changed", signed.replace(b"A", b"B", 3)), ("empty", b"")):
        rewrite(receipt, text)
        check(verify(world, box.directory) != 0, "receipt " + what)
    rewrite(receipt, signed)
    equal(verify(world, box.directory), 0)


def verify(world, directory):
    return subprocess.run([*world.case.drop(), world.binary, "verify", directory],
                          cwd=world.case.work, env=world.case.env(), capture_output=True,
                          timeout=60).returncode


def rewrite(path, data):
    with open(path, "wb") as f:
        f.write(data)
