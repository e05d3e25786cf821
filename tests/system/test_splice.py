# SPDX-License-Identifier: Apache-2.0
"""What a download costs the gate: its payload is not copied. Run alone, for who
has the processors beside us makes more of what begins a burst, and that is."""
import json
import os
import subprocess

from harness import check


def traced(pid):
    """All of it."""
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status") as f:
            if "TracerPid:\t0\n" in f.read():
                return False
    return True


def download(case):
    """1 GiB by CONNECT: bytes that were spliced, and that were copied."""
    process, log = case.start("sh", "-c", "echo up; read go; curl -s "
                              "https://allowed.test/big | wc -c",
                            stdin=subprocess.PIPE)
    check(process.stdout.readline() == "up\n")
    gate = case.child(process, "gate")
    trace = case.lab.dir + "/strace-" + case.who
    strace = subprocess.Popen(["strace", "-f", "-qq", "-e", "trace=read,write,"
                               "recvfrom,sendto,splice", "-o", trace, "-p",
                               str(gate)], stderr=subprocess.DEVNULL)
    case.lab.wait(lambda: traced(gate), "strace")
    out, err = process.communicate("go\n", timeout=300)
    strace.wait(60)
    check(str(1 << 30) in out, (out, err))
    spliced = copied = 0
    with open(trace) as f:
        for line in f:
            call = line.split("(")[0].split()[-1]
            result = line.rsplit("= ", 1)[-1].split()[0]
            if result.isdigit():
                if call == "splice":
                    spliced += int(result)
                elif call in ("read", "write", "recvfrom", "sendto"):
                    copied += int(result)
    with open(log + "/audit.jsonl") as f:
        progress = [r for r in map(json.loads, f)
                    if r.get("unmapped", {}).get("event") == "flow_progress"]
    check(len(progress) >= 50, len(progress))
    print(f"        spliced {spliced >> 20} MiB, copied {copied >> 10} KiB")
    return spliced, copied


def test_download_is_spliced(case):
    """The payload never enters our process, in and out."""
    for _ in range(3):
        spliced, copied = download(case)
        check(copied < 8 << 20, copied)
        if spliced >= 2 << 30:
            return
    check(False, (spliced, copied))
