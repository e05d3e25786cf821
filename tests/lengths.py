# SPDX-License-Identifier: Apache-2.0
"""What a reader has to hold in mind at once has a bound: 450 lines a file, 60 a
function; of C as clang-format leaves it, and of Python. What is longer is named
here, and may become shorter only."""
import ast
import os
import re
import subprocess
import sys

FILE_MAX, FUNCTION_MAX = 450, 60

# How long each is. The functions are tests, and most of their lines are tables of
# what is tried; so is schema.py, which grows by some lines with each key.
EXCEPTIONS = {
    "tests/audit/damage.py": 983,
    "tests/audit/test_hostlog_check.c:test_the_log": 63,
    "tests/audit/test_verify.c:test_what_is_no_line": 63,
    "tests/base/test_addr.c:test_cidr": 61,
    "tests/cmd/report_sample.c": 481,
    "tests/cmd/test_ledger_log.c:test_receipt": 80,
    "tests/cmd/test_log_run.c:test_filters": 66,
    "tests/launch/test_link_view.c:test_changes": 62,
    "tests/policy/schema.py": 524,
    "tests/policy/test_language.c:test_http": 117,
    "tests/policy/test_language_observe.c:test_observe": 79,
    "tests/proxy/test_http_response.c:test_path": 65,
    "tests/system/test_attacks_budget.py:test_reload_storm": 108,
    "tests/system/test_attacks_net.py:test_http_smuggling": 86,
    "tests/system/test_attacks_policy.py:test_what_is_matched_is_what_is_sent": 95,
}


def c_functions(lines):
    """(name, lines) of each: clang-format puts its braces in column 0, and what
    is before it ends with a blank line, a comment or another item."""
    begin = 0
    for end, line in enumerate(lines):
        if line == "{":
            begin = end
            while begin and not re.search(r"^$|^#|\*/$|;$|^}", lines[begin - 1]):
                begin -= 1
        elif line == "}" and begin:
            name = re.search(r"(\w+)\(", " ".join(lines[begin:end]))
            yield name.group(1) if name else "?", end - begin + 1
            begin = 0


def py_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.end_lineno - node.lineno + 1


def main():
    top = os.path.abspath(sys.argv[1])
    listed = subprocess.run(["find", *"base policy dns proxy firewall audit "
                             "launch cmd deploy tests".split(), "-name", "*.[ch]",
                             "-o", "-name", "*.py"], cwd=top, text=True,
                            stdout=subprocess.PIPE, check=True).stdout.split()
    found, seen = [], 0
    for path in sorted(listed):
        with open(os.path.join(top, path), encoding="utf-8") as f:
            text = f.read()
        lines = text.splitlines()
        seen += 1
        if len(lines) > FILE_MAX:
            found.append((path, len(lines)))
        functions = py_functions(text) if path.endswith(".py") else c_functions(lines)
        found += [(f"{path}:{name}", n) for name, n in functions
                  if n > FUNCTION_MAX]
    bad = [f"{what}: {n} lines" for what, n in found if n > EXCEPTIONS.get(what, 0)]
    for what in EXCEPTIONS.keys() - dict(found).keys():
        print(f"{what}: no longer an exception, please strike it out")
    print("\n".join(bad) or f"lengths: {seen} files, {len(EXCEPTIONS)} exceptions")
    return 1 if bad or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
