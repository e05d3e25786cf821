# SPDX-License-Identifier: Apache-2.0
"""A session and what a stranger makes of what it left."""
import base64
import glob
import hashlib
import json
import os
import stat
import subprocess

from harness import check

EM = "\u2014 "
DER = bytes.fromhex("302a300506032b6570032100")

# Names that nobody allowed, as fast as they are refused.
ASK = """
import random, socket, time
server = [line.split()[1] for line in open("/etc/resolv.conf")
          if line.startswith("nameserver")][0]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(60)
for i in range(%d):
    name = b"".join(bytes([len(x)]) + x for x in
                    (b"n%%06d" %% i, b"x" * 60, b"y" * 60, b"refused", b"test"))
    s.sendto(i.to_bytes(2, "big") + b"\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + name + b"\\0\\0\\1\\0\\1",
             (server, 53))
    s.recv(4096)
    time.sleep(%s)
"""


def read(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def mode(*path):
    return stat.S_IMODE(os.stat(os.path.join(*path)).st_mode)


def parts(log):
    """The parts of a log, oldest first."""
    return sorted(glob.glob(log + "/audit.jsonl.*")) + [log + "/audit.jsonl"]


def lines(log):
    data = b"".join(read(p) for p in parts(log))
    check(data.endswith(b"\n"), data[-200:])
    return data[:-1].split(b"\n")


def leaf(line):
    return hashlib.sha256(b"\0" + line).digest()


def root(leaves):
    """RFC 6962."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return hashlib.sha256(b"\1" + root(leaves[:k]) + root(leaves[k:])).digest()


def checkpoints(log):
    """[(size, root)], and the texts."""
    text = read(log, "checkpoints").decode()
    rows = text.split("\n")
    check(rows.pop() == "" and len(rows) % 5 == 0, text)
    notes = ["\n".join(rows[i:i + 5]) + "\n" for i in range(0, len(rows), 5)]
    return notes


def signed(log):
    """Is there a checkpoint, whole?"""
    rows = read(log, "checkpoints").count(b"\n")
    return rows and rows % 5 == 0


def receipt(log):
    envelope = json.loads(read(log, "receipt.dsse.json"))
    check(envelope["payloadType"] == "application/vnd.in-toto+json", envelope)
    return json.loads(base64.b64decode(envelope["payload"]))


def public_of(vkey):
    key = base64.b64decode(vkey.strip().split("+", 2)[2])  # which may have a '+'
    check(key[0] == 1 and len(key) == 33, vkey)
    return key[1:]


def openssl(case, vkey, body, signature):
    """With nothing of ours."""
    where = f"{case.work}/by-hand"
    os.makedirs(where, exist_ok=True)
    for name, data in (("pub.der", DER + public_of(vkey)), ("body", body), ("sig", signature)):
        with open(f"{where}/{name}", "wb") as f:
            f.write(data)
    run = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER",
                          "-inkey", "pub.der", "-rawin", "-in", "body", "-sigfile", "sig"],
                         cwd=where, capture_output=True, text=True)
    return run.returncode == 0


def whole(case, log):
    """Everything that can be checked without us: lines, tree, checkpoints,
    receipt. Returns the records and the receipt's predicate."""
    raw = lines(log)
    records = [json.loads(line) for line in raw]
    for i, record in enumerate(records):
        check(record["metadata"]["sequence"] == i, record)
        prev = record.get("unmapped", {}).get("prev")
        check(prev == (leaf(raw[i - 1]).hex() if i else None), record)
    check(records[0]["unmapped"]["event"] == "session_open", records[0])
    check(records[-1]["unmapped"]["event"] == "session_close", records[-1])
    leaves = [leaf(line) for line in raw]
    vkey = read(log, "session.vkey").decode()
    notes = checkpoints(log)
    sizes = []
    for note in notes:
        origin, size, head, empty, signature = note[:-1].split("\n")
        check(origin == vkey.split("+")[0] and empty == "", note)
        check(base64.b64decode(head) == root(leaves[:int(size)]), note)
        check(signature.startswith(EM + origin + " "), note)
        sizes.append(int(size))
    check(sizes == sorted(set(sizes)) and sizes[-1] == len(raw), sizes)
    body, signature = notes[-1].split("\n\n")
    blob = base64.b64decode(signature.split(" ")[2])
    check(blob[:4].hex() == vkey.split("+")[1], (blob, vkey))
    check(openssl(case, vkey, body.encode() + b"\n", blob[4:]), notes[-1])
    check(not openssl(case, vkey, body.encode(), blob[4:]))

    envelope = json.loads(read(log, "receipt.dsse.json"))
    payload = base64.b64decode(envelope["payload"])
    pae = b"DSSEv1 28 application/vnd.in-toto+json %d " % len(payload) + payload
    signature = base64.b64decode(envelope["signatures"][0]["sig"])
    check(openssl(case, vkey, pae, signature))
    check(not openssl(case, vkey, payload, signature))
    said = receipt(log)
    digests = {s["name"]: s["digest"]["sha256"] for s in said["subject"]}
    for path in parts(log):
        check(digests.pop(os.path.basename(path)) ==
              hashlib.sha256(read(path)).hexdigest(), path)
    predicate = said["predicate"]
    check(digests.pop("policy") == predicate["policy"]["digest"], said)
    check(digests.pop("ruleset", None) == predicate["ruleset"].get("start"), said)
    check(not digests, digests)
    told = predicate["log"]
    check(told["records"] == len(raw) and told["parts"] == len(parts(log)), told)
    check(base64.b64decode(told["root"]) == root(leaves), told)
    check(told["last_checkpoint"] == notes[-1] and
          told["first_checkpoint"] == notes[0], told)
    check(predicate["key"]["vkey"] == vkey.strip(), predicate["key"])
    return records, predicate


def sallyport(case, *argv, config=None, cwd=None, env=None):
    more = {"XDG_CONFIG_HOME": config} if config else {}
    return subprocess.run([*case.drop(), case.binary, *argv], text=True,
                          capture_output=True, cwd=cwd or case.work,
                          stdin=subprocess.DEVNULL, timeout=60,
                          env={**case.env(), **more, **(env or {})})


def folder(case, name):
    path = f"{case.lab.dir}/{name}-{case.who}"
    os.mkdir(path, 0o700)
    case.mine(path)
    return path


def policy(case, name, text):
    path = f"{case.work}/{name}.yaml"
    with open(path, "w", encoding="utf8") as f:
        f.write("version: 1\n" + text)
    case.mine(path)
    return ("--policy", path)
