# SPDX-License-Identifier: Apache-2.0
"""log on a terminal: its width, its colours, and nothing that it obeys."""
import fcntl
import os
import pty
import struct
import sys
import tempfile
import termios

BINARY = os.environ["SALLYPORT_BINARY"]
SEEDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir,
                     "fuzz", "observed")
NAMES = ("session_open_rule", "dns_query_rule", "flow_open_name_mismatch",
         "flow_close_observe", "http_request_rule", "finding_rule")


def check(truth, what):
    if not truth:
        raise AssertionError(what)


def seed(name):
    with open(os.path.join(SEEDS, name), "rb") as f:
        return f.read().rstrip(b"\n") + b"\n"


def on_terminal(*args, width=80, **env):
    """Status and output of `log` with its standard output a terminal; its
    errors come there, too."""
    pid, master = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        keep = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        os.execve(BINARY, [BINARY, "log", *args], {**keep, "TERM": "xterm",
                                                   **env})
    out = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    os.close(master)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), out.replace(b"\r\n", b"\n")


def test_width():
    for width in 20, 80, 100, 120, 133, 200:
        status, out = on_terminal("log", "--color=never", width=width)
        rows = out.splitlines()
        check(status == 0 and len(rows) == len(NAMES), out)
        check(max(map(len, rows)) <= width, (width, out))
    status, out = on_terminal("log", "--color=never", "--wide", width=20)
    check(b".811+00:00 allowed  query    rule " in out and b".." not in out,
          out)


def test_colours():
    red = b"\033[31mrefused \033[0m"
    check(red in on_terminal("log")[1], "auto")
    for args, env in ((("--color=never",), {}), ((), {"NO_COLOR": "1"}),
                      ((), {"TERM": "dumb"})):
        out = on_terminal("log", *args, **env)[1]
        check(b"\033" not in out and b" refused " in out, (args, env, out))
    check(red in on_terminal("log", "--color=always", NO_COLOR="1")[1],
          "always")
    check(red in on_terminal("log", NO_COLOR="")[1], "empty is not set")


def test_json():
    whole = b"".join(map(seed, NAMES))
    check(on_terminal("log", "--json") == (0, whole), "as it is")
    # No ledger writes these, but who hands out a log might.
    evil = seed("dns_query_rule").rstrip()
    lines = [evil[:-1] + b',"x":"' + bad + b'"}\n' for bad in
             (b"\xc2\x9b31m", b"\xe2\x80\xae", b"\xe2\x81\xa6", b"\x7f")]
    with open("evil", "wb") as f:
        f.write(b"".join(lines) + evil.replace(b",", b",\t", 1) + b"\n"
                + evil[:-1] + ',"x":"ü–€"}\n'.encode())
    status, out = on_terminal("evil", "--json")
    check(status == 1 and "ü–€".encode() in out and out.count(b"{") ==
          seed("dns_query_rule").count(b"{"), out)
    check(b"evil: line 1: not a record: has what a terminal would obey; so "
          b"are 5 lines" in out, out)
    # Shown, it is harmless.
    check(on_terminal("evil")[0] == 0, "text")


def main():
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_")]
    os.environ["TZ"] = "UTC"
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        with open("log", "wb") as f:
            f.write(b"".join(map(seed, NAMES)))
        for name, test in tests:
            test()
            print("ok", name)
        os.chdir("/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
