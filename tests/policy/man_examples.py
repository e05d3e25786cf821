#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every policy that sallyport-policy(5) shows is one: `sallyport check` takes
it, and so does the schema. Every key of the language is shown at least once,
and every reason is explained. The page has no faults that man can see."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

import policy_yaml
from policy_yaml import TOP

PAGE = os.path.join(TOP, "deploy", "man", "sallyport-policy.5")
BINARY = os.environ.get("SALLYPORT_BINARY", TOP + "/build/sallyport")
ROFF = {r"\-": "-", r"\(aq": "'", r"\(dq": '"', r"\(ti": "~", r"\(ha": "^",
        r"\(ga": "`", r"\e": "\\", r"\&": ""}
failed = 0


def fail(what):
    global failed
    failed += 1
    print("FAILED:", what)


def plain(text):
    for escape, char in ROFF.items():
        text = text.replace(escape, char)
    if "\\" in text.replace("\\\\", ""):
        fail(f"an escape that this test does not know: {text!r}")
    return text


def examples(page):
    """The blocks that are policies: (line, text)."""
    for block in re.finditer(r"^\.EX\n(.*?)^\.EE$", page, re.M | re.S):
        text = plain(block[1])
        if text.startswith("version:"):
            yield page.count("\n", 0, block.start()) + 2, text


def keys_of(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys_of(inner)
    if isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def known_keys(part):
    """Every property that the schema has, at any depth."""
    if isinstance(part, dict):
        for name, inner in part.items():
            if name == "properties":
                yield from inner
            yield from known_keys(inner)
    if isinstance(part, list):
        for inner in part:
            yield from known_keys(inner)


def check_page():
    for tool, command in (("man", ["man", "-l", "--warnings", PAGE]),
                          ("groff", ["groff", "-ww", "-man", "-z", PAGE])):
        if not shutil.which(tool):
            continue
        env = dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="80", MANPAGER="cat")
        done = subprocess.run(command, capture_output=True, text=True,
                              env=env, check=False)
        if done.returncode or done.stderr:
            fail(f"{tool}: {done.stderr}")


def check_reasons(page):
    with open(TOP + "/policy/reason.c", encoding="utf-8") as file:
        words = re.findall(r"\[REASON_\w+\] = (?:\w+\(|\{ )\"(\w+)\"",
                           file.read())
    section = page[page.index(".SH REASONS"):page.index(".SH RELOADING")]
    said = set(re.findall(r"\w+", plain(section)))
    if len(words) < 25 or set(words) - said:
        fail(f"reasons that are not explained: {set(words) - said}")


def run_check(path, name):
    try:
        done = subprocess.run([BINARY, "check", path], capture_output=True,
                              text=True, timeout=60, check=False)
    except OSError as error:
        fail(f"{BINARY}: {error}")
        return
    if done.returncode:
        fail(f"{name}: check says {done.returncode}: "
             f"{(done.stderr or done.stdout).strip()[:300]}")


def check_examples(shown, folder):
    """Under their names, where they can extend each other."""
    check = policy_yaml.validator()
    paths, keys = [], set()
    shutil.copy(TOP + "/deploy/examples/blocklist.txt", folder)
    for line, text in shown:
        where = f"sallyport-policy.5:{line}"
        for fault in policy_yaml.faults(check, text):
            fail(f"{where}: {fault}")
        value = yaml.load(text, policy_yaml.Loader)
        keys |= set(keys_of(value))
        name = value.get("name", f"line-{line}")
        path = os.path.join(folder, name + ".yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        paths.append((path, where))
    missing = set(known_keys(policy_yaml.schema())) - keys
    if missing:
        fail(f"keys without an example: {missing}")
    for path, where in paths:
        run_check(path, where)


def main():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    shown = list(examples(page))
    if len(shown) < 15:
        fail(f"only {len(shown)} examples found")
    check_page()
    check_reasons(page)
    with tempfile.TemporaryDirectory() as folder:
        check_examples(shown, folder)
    files = sorted(glob.glob(TOP + "/deploy/examples/*.yaml"))
    for path in files:
        run_check(path, os.path.relpath(path, TOP))
    print(f"man: {len(shown)} examples, {len(files)} files")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
