#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The image's tree, made by the script that the Dockerfile runs too: its size,
and whether what is in it works there: as root with few capabilities, and as a
user with none.

    image.py SALLYPORT DEPLOY/DOCKER
"""
import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

BINARY, DOCKER = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
LIMIT = 30_000_000
NOBODY = 65534
# What docs/packages.md says that a gateway container gets.
CAPABILITIES = ("CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP",
                "CAP_KILL")
POLICY = """version: 1
name: image
allow:
  - host: allowed.test
    addresses: [192.0.2.0/24]
"""


def inside(root, who, *words):
    """The command line that runs `sallyport WORDS` in @root."""
    line = ["bwrap", "--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev",
            "--unshare-pid", "--unshare-ipc", "--unshare-uts",
            "--die-with-parent", "--clearenv", "--setenv", "PATH", "/usr/bin"]
    for volume in "/etc/sallyport", "/var/log/sallyport", "/tmp":
        line += ["--bind", root + volume, volume]
    if who == "root":
        line += ["--cap-drop", "ALL"]
        for capability in CAPABILITIES:
            line += ["--cap-add", capability]
        return line + ["sallyport", *words]
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
            "--clear-groups", "--no-new-privs", *line, "--unshare-user",
            "--setenv", "HOME", "/tmp", "sallyport", *words]


def name(host):
    return b"".join(bytes([len(part)]) + part.encode()
                    for part in host.split(".")) + b"\0"


def upstream(sock):
    """A name server: allowed.test, and nothing else, is 192.0.2.7."""
    while True:
        query, peer = sock.recvfrom(512)
        end = query.index(b"\0", 12) + 5
        known = query[12:end - 4].lower() == name("allowed.test")
        known = known and query[end - 4:end - 2] == b"\0\1"
        head = query[:2] + (b"\x81\x80" if known else b"\x81\x83")
        head += struct.pack("!4H", 1, int(known), 0, 0)
        answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + bytes([192, 0, 2, 7])
        sock.sendto(head + query[12:end] + (answer if known else b""), peer)


def ask(host, port):
    """(rcode, last four bytes) of the answer to a question for @host's A."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(30)
        sock.connect(("127.0.0.1", port))
        sock.send(struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + name(host) +
                  b"\0\1\0\1")
        reply = sock.recv(512)
    count = struct.unpack("!H", reply[6:8])[0]
    return reply[3] & 15, count, reply[-4:]


def check(what, ok, told=""):
    print("ok     " + what if ok else f"FAILED {what}: {told}", flush=True)
    return bool(ok)


def run(root, who, *words):
    return subprocess.run(inside(root, who, *words), capture_output=True,
                          text=True, timeout=60)


def command_line(pid):
    try:
        return open(f"/proc/{pid}/cmdline", "rb").read()
    except OSError:  # it has ended
        return b""


def serving(root, who, port):
    """`serve` answers, says that it runs, and leaves a log that verifies."""
    good = True
    words = ("serve", "--proxy", f"127.0.0.1:{port + 1}", "--dns",
             f"127.0.0.1:{port}", "--policy", "/etc/sallyport/policy.yaml",
             "--log", f"/var/log/sallyport/{who}")
    with subprocess.Popen(inside(root, who, *words), text=True,
                          stderr=subprocess.PIPE) as serve:
        line = serve.stderr.readline()
        while line and "serving" not in line:
            print("       " + line.strip())
            line = serve.stderr.readline()
        good &= check(f"{who}: serve starts", "serving" in line, line)
        if good:
            good &= check(f"{who}: an allowed name", ask("allowed.test", port)
                          == (0, 1, bytes([127, 0, 0, 1])),
                          ask("allowed.test", port))
            good &= check(f"{who}: another is refused",
                          ask("other.test", port)[0] == 3,
                          ask("other.test", port))
            alive = run(root, who, "reload", "--running",
                        f"/var/log/sallyport/{who}")
            good &= check(f"{who}: the health check", alive.returncode == 0 and
                          "serve" in alive.stdout, alive)
        # bwrap's only child is pid 1 inside, and that one's is ours.
        pids = descendants(serve.pid)
        for pid in pids:
            if command_line(pid).startswith(b"sallyport\0serve"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
        told = serve.stderr.read()
        good &= check(f"{who}: serve ends", serve.wait(30) == 0, told)
    gone = run(root, who, "reload", "--running", f"/var/log/sallyport/{who}")
    good &= check(f"{who}: the health check of none", gone.returncode == 125,
                  gone)
    held = run(root, who, "verify", f"/var/log/sallyport/{who}")
    return good & check(f"{who}: its log verifies", held.returncode in (0, 2)
                        and "holds" in held.stdout, held)


def descendants(pid):
    found = [pid]
    for parent in found:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(
                f"/proc/{parent}/task/{parent}/children") as children:
            found += [int(child) for child in children.read().split()]
    return found


def tree(root):
    good = True
    size = sum(os.lstat(os.path.join(at, file)).st_size
               for at, _, files in os.walk(root) for file in files)
    good &= check(f"size: {size / 1e6:.1f} MB", 5_000_000 < size < LIMIT)
    odd = [os.path.join(at, file) for at, folders, files in os.walk(root)
           for file in folders + files
           if os.lstat(os.path.join(at, file)).st_mode & 0o6000 or
           os.path.islink(os.path.join(at, file))]
    good &= check("neither set-uid files nor links", not odd, odd)
    programs = sorted(os.listdir(os.path.join(root, "usr/bin")))
    return good & check("no shell", programs == ["bwrap", "sallyport"],
                        programs)


def in_tree(root):
    good = True
    for who in "root", "user":
        version = run(root, who, "version")
        good &= check(f"{who}: version", version.returncode == 0 and
                      version.stdout.startswith("sallyport "), version)
        checked = run(root, who, "check", "--strict",
                      "/etc/sallyport/policy.yaml")
        good &= check(f"{who}: check", checked.returncode == 0, checked)
    # Only with the list of public suffixes is this one known as such.
    suffix = run(root, "root", "check", "--json", "/etc/sallyport/wide.yaml")
    good &= check("public suffixes are known",
                  "public-suffix" in suffix.stdout, suffix)
    for who, port in ("root", 5301), ("user", 5311):
        good &= serving(root, who, port)
    return good


def prepare(root):
    subprocess.run([os.path.join(DOCKER, "rootfs"), BINARY, root], check=True)
    good = tree(root)
    etc = os.path.join(root, "etc/sallyport")
    with open(os.path.join(etc, "policy.yaml"), "w") as out:
        out.write(POLICY)
    with open(os.path.join(etc, "wide.yaml"), "w") as out:
        out.write("version: 1\nallow: ['*.github.io']\n")
    with open(os.path.join(root, "etc/resolv.conf"), "w") as out:
        out.write("nameserver 127.0.0.1\n")
    # What an operator's volume would be.
    logs = os.path.join(root, "var/log/sallyport/user")
    os.mkdir(logs, 0o700)
    os.chown(logs, NOBODY, NOBODY)
    os.chmod(os.path.dirname(logs), 0o711)
    return good


def main():
    if len(sys.argv) < 4:   # again, in a network of our own
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv,
                              "inside"])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 53))
    threading.Thread(target=upstream, args=(sock,), daemon=True).start()
    top = tempfile.mkdtemp(prefix="sallyport-image-")
    os.chmod(top, 0o755)
    try:
        root = os.path.join(top, "root")
        good = prepare(root)
        good &= in_tree(root)
    finally:
        shutil.rmtree(top)
    return 0 if good else 1


sys.exit(main())
