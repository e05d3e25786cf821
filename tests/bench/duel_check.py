# SPDX-License-Identifier: Apache-2.0
"""A number says something only of what works: each relay passes 100 MiB of TLS
unchanged, and refuses another host."""
import hashlib
import os
import subprocess

SIZE = 100 << 20


def curl(world, subject, host, *args):
    via = ["--proxy", f"http://{subject.ip}:{subject.proxy_port}"] \
        if "connect" in subject.doors else \
        ["--connect-to", f"::{subject.ip}:443"]
    return subprocess.run(world.at_clients(
        "curl", "-s", "-m", "120", "--cacert", world.ca, *via, *args,
        f"https://{host}/large"), capture_output=True)


def check_relays(world, subjects):
    data = os.urandom(1 << 20) * (SIZE >> 20)
    with open(world.dir + "/www/large", "wb") as f:
        f.write(data)
    want = hashlib.sha256(data).hexdigest()
    print(f"\n{'':26}100 MiB of TLS   another host")
    for subject in subjects:
        got = hashlib.sha256(curl(world, subject, "allowed.test").stdout)
        other = curl(world, subject, "evil.test")
        same = got.hexdigest() == want
        refused = other.returncode != 0 and not other.stdout
        print(f"  {subject.name:24}{'the same' if same else 'DIFFERENT':16} "
              f"{'refused' if refused else 'REACHED'}", flush=True)
        if not same or not refused:
            raise SystemExit(f"{subject.name} is no subject: {other.stderr}")
