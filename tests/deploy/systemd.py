#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The units are ones for systemd, and confine as much as docs/packages.md says.

    systemd.py SALLYPORT DEPLOY/SYSTEMD
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

BINARY, UNITS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
# Of 10; the builder has no mount namespace, which alone is 2.
EXPOSED = {"sallyport.service": 3.0, "sallyport-builder@.service": 5.5}
# What would hide the names of namespaces from everybody else.
MOUNT_NAMESPACE = """BindPaths BindReadOnlyPaths InaccessiblePaths PrivateDevices
PrivateMounts PrivateTmp ProcSubset ProtectControlGroups ProtectHome
ProtectKernelLogs ProtectKernelModules ProtectKernelTunables ProtectProc
ProtectSystem ReadOnlyPaths ReadWritePaths RootDirectory TemporaryFileSystem
MountFlags DynamicUser PrivateIPC ExecPaths NoExecPaths""".split()
good = True


def check(what, ok, told=""):
    global good
    print("ok     " + what if ok else f"FAILED {what}: {told}", flush=True)
    good = good and bool(ok)


def read(name):
    with open(os.path.join(UNITS, name)) as text:
        return [line.strip().split("=", 1) for line in text
                if "=" in line and line[0] not in "#["]


def value(name, key):
    return " ".join(text for word, text in read(name) if word == key)


def exposure():
    for name, limit in EXPOSED.items():
        told = subprocess.run(
            ["systemd-analyze", "security", "--offline=true", "--no-pager",
             os.path.join(UNITS, name)], capture_output=True, text=True)
        score = re.search(r"exposure level for \S+: ([0-9.]+)", told.stdout)
        check(f"{name}: exposure {score and score.group(1)}, at most {limit}",
              score and float(score.group(1)) <= limit, told)


def verify():
    """As systemd reads them, with the programs that they name."""
    with tempfile.TemporaryDirectory() as top:
        for name in os.listdir(UNITS):
            if not name.endswith((".service", ".socket")):
                continue
            with open(os.path.join(UNITS, name)) as text, \
                    open(os.path.join(top, name), "w") as out:
                for line in text:
                    if not line.startswith("Documentation="):
                        out.write(line.replace("/usr/bin/sallyport", BINARY))
        # A template is read as an instance.
        shutil.copy(os.path.join(top, "sallyport-builder@.service"),
                    os.path.join(top, "sallyport-builder@1.service"))
        for name in sorted(os.listdir(top)):
            if "@." in name:
                continue
            told = subprocess.run(
                ["systemd-analyze", "verify", "--no-pager", "--man=no",
                 os.path.join(top, name)], capture_output=True, text=True,
                env={**os.environ, "SYSTEMD_UNIT_PATH": top + ":"})
            check(f"{name}: systemd has nothing to say",
                  told.returncode == 0 and not told.stderr, told)


def agree():
    """What one unit says and another relies on."""
    path = value("sallyport-builder.socket", "ListenSequentialPacket")
    check("the daemon knows its builder", value("sallyport.service",
          "Environment") == f"SALLYPORT_BUILDER={path}", path)
    check("only root knows it", value("sallyport-builder.socket",
                                      "SocketMode") == "0600" and
          value("sallyport-builder.socket", "Accept") == "yes")
    names = {value(name, "FileDescriptorName") for name in
             ("sallyport.socket", "sallyport-docker.socket")}
    check("sockets have the names that the daemon looks for",
          names == {"control", "docker"}, names)
    check("who may ask", value("sallyport.socket", "SocketMode") == "0660" and
          value("sallyport.socket", "SocketGroup") == "sallyport" and
          value("sallyport-docker.socket", "SocketMode") == "0600")
    with open(os.path.join(UNITS, "sysusers.conf")) as text:
        check("the group is made", "\ng sallyport -\n" in text.read())
    check("pins outlive the daemon", value(
        "sallyport.service", "RuntimeDirectoryPreserve") == "yes")
    check("sockets are there before Docker is", "docker.service" in value(
        "sallyport-docker.socket", "Before"))
    found = [key for key, text in read("sallyport-builder@.service")
             if key in MOUNT_NAMESPACE]
    check("the builder is in the host's mount namespace", not found, found)


exposure()
verify()
agree()
sys.exit(0 if good else 1)
