#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The loader agrees with the schema about every policy that schema.py knows:
what editors take for valid is loaded, what they underline is refused."""
import os
import subprocess
import sys
import tempfile

import schema
import schema_sandbox

BINARY = os.environ.get("SALLYPORT_BINARY", schema.TOP + "/build/sallyport")
BESIDE = {"base.yaml": schema.V, "base.yml": schema.V, "team/base": schema.V,
          "in/list.txt": "tracker.example\n", "in/x": "tracker.example\n"}


def loads(folder, text):
    """Does `sallyport check` take @text? And what it said."""
    path = os.path.join(folder, "in", "policy.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run([BINARY, "check", path], capture_output=True,
                          text=True, timeout=60, check=False)
    said = (done.stderr + done.stdout).strip()
    # A crash or an unknown command is no verdict about the file.
    if done.returncode and "policy.yaml" not in said:
        schema.fail(f"exit status {done.returncode}: {said[:200]}")
    return done.returncode == 0, said


def main():
    good = schema.inline(schema.GOOD, schema_sandbox.GOOD)
    bad = schema.inline(schema.BAD, schema_sandbox.BAD)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in BESIDE.items():
            for below in ("", "in"):
                path = os.path.join(folder, below, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
        for text in good:
            fine, said = loads(folder, text)
            if not fine:
                schema.fail(f"refused: {text}: {said[:200]}")
        for text in bad:
            if loads(folder, text)[0]:
                schema.fail(f"loaded: {text}")
    print(f"schema_check: {len(good)} loaded, {len(bad)} refused")
    return 1 if schema.failed else 0


if __name__ == "__main__":
    sys.exit(main())
