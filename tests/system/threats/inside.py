# SPDX-License-Identifier: Apache-2.0
"""Runs in a sandbox, and calls the functions that a test sends it by a pipe:
one line each way, as Python literals. What they find beside Python's own:

    doors   a policy_probe.Doors: probes by name and door
    all of attack_lab.COMMON (say, hello, client_hello, query, udp, ...)
    wire(where)       a connection from a port that no other socket gets
    talk(where, pieces, ...)    says something raw: (own port, what came, how it ended)
    ask(message, tcp)           a raw DNS message: (own port, the answer)
"""
import ast
import os
import socket
import struct
import subprocess
import sys
import time
import traceback
import types

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
texts = ast.literal_eval(sys.stdin.readline())


def module(name):
    made = sys.modules[name] = types.ModuleType(name)
    exec(compile(texts[name], name, "exec"), made.__dict__)
    return made


common, probe = module("common"), module("policy_probe")
doors = probe.Doors({})
doors.port = 10000  # below those that the kernel gives out
proxy = doors.proxy
PATIENCE = 30  # what is waited for comes, on a slow machine later
bind_only = doors.bind


def bind(s):
    bind_only(s).settimeout(PATIENCE)
    return s


doors.bind = bind


def wire(where=None, timeout=PATIENCE):
    s = doors.bind(socket.socket())
    s.settimeout(timeout)
    s.connect(where or proxy)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def until_end(s, enough=None):
    """What came, and how it ended: eof, reset, timeout, or enough came."""
    got = b""
    while True:
        try:
            more = s.recv(65536)
        except socket.timeout:
            return got, "timeout"
        except OSError:
            return got, "reset"
        if not more:
            return got, "eof"
        got += more
        if enough and enough in got:
            return got, "enough"


def talk(where=None, pieces=(), pause=0, end=False, timeout=PATIENCE, first=0, enough=None):
    """@first: how much is read after the first piece."""
    s = wire(where, timeout)
    own, got = s.getsockname()[1], b""
    try:
        for i, piece in enumerate(pieces):
            s.sendall(piece)
            if first and not i:
                got += probe.exactly(s, first)
            time.sleep(pause)
        if end:
            s.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    more, how = until_end(s, enough)
    s.close()
    return own, got + more, how


def command(*argv, **env):
    """(exit status, what it said) of a program; @env is added to ours."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, **env))
    return done.returncode, done.stdout + done.stderr


def gateway():
    return proxy


def know(name):
    """Asks for its address, once: what is said there is then not the first."""
    return doors.address(name)


def ahead(door, host, port):
    """Where a door is, and what is said there before host:port is spoken with."""
    if door == "connect":
        return None, b"CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (
            host, port, host, port)
    if door == "socks":
        return None, (b"\5\1\0\5\1\0\3" + bytes([len(host)]) + host +
                      struct.pack(">H", port))
    return None if door == "http" else (doors.address(host.decode()), port), b""


def through(door, host, port=80, timeout=PATIENCE):
    """A connection by a door, where @host is spoken with."""
    where, first = ahead(door, host, port)
    s = wire(where, timeout)
    s.sendall(first)
    if door == "connect":
        probe.head(s)
    if door == "socks":
        probe.exactly(s, 12)
    return s


def converse(door, host, pieces, port=80, timeout=PATIENCE, pause=0, end=False, enough=None):
    """Says something raw to @host by a door: like talk()."""
    s = through(door, host, port, timeout)
    own = s.getsockname()[1]
    try:
        for piece in pieces:
            s.sendall(piece)
            time.sleep(pause)
        if end:
            s.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    got, how = until_end(s, enough)
    s.close()
    return own, got, how


def ask(message, tcp=False, timeout=PATIENCE):
    """Sends a DNS message: (own port, the answer or what came instead)."""
    if tcp:
        own, got, _ = talk(doors.resolver, [struct.pack(">H", len(message)) + message],
                           end=True, timeout=timeout)
        return own, got[2:]
    s = doors.bind(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    s.settimeout(timeout)
    s.connect(doors.resolver)
    own = s.getsockname()[1]
    s.send(message)
    try:
        return own, s.recv(65536)
    except OSError as e:
        return own, type(e).__name__.encode()


names = dict(common.__dict__, **{k: v for k, v in globals().items()
                                 if not k.startswith("__")})
doors.warm([{"door": "sni"}])
print("ready", file=answers, flush=True)
for line in sys.stdin:
    source, name, args, more = ast.literal_eval(line)
    try:
        if source:
            exec(compile(source, name, "exec"), names)
        said = "ok", names[name](*args, **more)
    except BaseException:
        said = "raised", traceback.format_exc()
    print(repr(said), file=answers, flush=True)
