# SPDX-License-Identifier: Apache-2.0
"""A policy that changes under a running sandbox, and rules that expire: what
goes on and is no longer allowed ends, by whatever door it came."""
import contextlib
import json
import os
import socket
import subprocess
import time

from harness import Run, check
from policy_rows import packets, serving, write_policy
from policy_world import WEB, world

# Holds a connection by each door, then says when which of them ended, and what
# is answered afterwards. Each line that it reads is a list of things to try.
HOLD = r"""
import json, os, select, socket, ssl, struct, sys, threading, time
DOORS = json.loads(sys.argv[1])
PROXY, DNS = tuple(DOORS["proxy"]), tuple(DOORS["dns"])
context = ssl.create_default_context()
context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
next_port = 33000
def bound(s):
    # From a port of its own: by it the records are told apart.
    global next_port
    while True:
        next_port += 1
        try: s.bind(("", next_port))
        except OSError: continue
        return s
def dial(where):
    s = bound(socket.socket()); s.settimeout(5); s.connect(where)
    return s
def tls(s, name):
    return context.wrap_socket(s, server_hostname=name)
def connect(name, port):
    s = dial(PROXY)
    s.sendall(f"CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n".encode())
    got = b""
    while b"\r\n\r\n" not in got:
        d = s.recv(1)
        if not d: break
        got += d
    if b" 200 " not in got:
        raise OSError(got.split(b" ")[1].decode() + " " +
                      got.split(b"X-Sallyport-Reason: ")[1].split(b"\r")[0].decode())
    return s
def socks(name, port):
    s = dial(PROXY)
    s.sendall(b"\5\1\0"); s.recv(2)
    s.sendall(b"\5\1\0\3" + bytes([len(name)]) + name.encode() + struct.pack(">H", port))
    got = s.recv(10)
    if got[1]: raise OSError(f"socks {got[1]}")
    return s
def where(name, port):
    if port == 443 and DOORS.get("tls"): return tuple(DOORS["tls"])
    if port == 80 and DOORS.get("http"): return tuple(DOORS["http"])
    return address(name), port
def direct(name, port):
    return dial(where(name, port))
def question(name):
    s = bound(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)); s.settimeout(5); s.connect(DNS)
    s.send(struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + b"".join(
        bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0\0\1\0\1")
    d = s.recv(512)
    return d, s.getsockname()[1]
seen = {}
def address(name):
    d, _ = question(name)
    if d[3] & 15 or not d[7]:
        if name in seen: return seen[name]
        raise OSError(f"rcode {d[3] & 15}")
    at = 12 + len(name) + 2 + 4
    seen[name] = socket.inet_ntoa(d[at + 12:at + 16])
    return seen[name]
def slow(s, target, name):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.sendall(f"GET {target} HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
    return s
def said(s):
    s.sendall(b"SSH-2.0-x\r\n")
    s.recv(100)
    return s
MAKE = {
    "connect": lambda n: tls(connect(n, 443), n),
    "socks": lambda n: tls(socks(n, 443), n),
    "sni": lambda n: tls(direct(n, 443), n),
    "raw": lambda n: direct(n, 7000),
    "said": lambda n: said(direct(n, 7000)),
    "tunnel": lambda n: connect(n, 7000),
    "absolute": lambda n: slow(dial(PROXY),
                               f"http://{n}/big", n),
    "host": lambda n: slow(direct(n, 80), "/big", n),
}
def watch(key, s, port):
    try:
        s.settimeout(None)
        while d := s.recv(512):
            heard[key] = d.decode("latin-1")
            time.sleep(0.002)
    except OSError: pass
    if held.get(key) == port: ended[key] = time.time()
held, ended, heard, open_now = {}, {}, {}, {}
def hold(key):
    door, name = key.split(" ")
    try: s = MAKE[door](name)
    except OSError as e: return type(e).__name__ if not e.args or e.errno else str(e)
    held[key] = s.getsockname()[1]
    ended.pop(key, None)
    open_now[key] = s
    threading.Thread(target=watch, args=(key, s, held[key]), daemon=True).start()
    return "ok"
def dns(name):
    d, port = question(name)
    return f"{d[3] & 15} {d[7]} {port}"
for line in sys.stdin:
    what = json.loads(line)
    ret = {"hold": {k: hold(k) for k in what.get("hold", [])},
           "dns": {n: dns(n) for n in what.get("dns", [])}}
    for key, text in what.get("say", {}).items():
        try: open_now[key].sendall(text.encode("latin-1"))
        except OSError: pass
    if "until" in what:
        while time.time() < what["until"] and len(ended) < len(held): time.sleep(0.01)
    if what.get("drop"):
        held.clear(); ended.clear(); heard.clear()
        for s in open_now.values():
            try: s.shutdown(socket.SHUT_RDWR)
            except OSError: pass
        open_now.clear()
    ret["heard"] = dict(heard)
    ret["ended"], ret["held"] = dict(ended), dict(held)
    print(json.dumps(ret), flush=True)
"""
DIRECT = ("connect", "socks", "sni", "absolute", "host")
ALL = (*DIRECT, "raw", "tunnel")


def event(record):
    return record.get("unmapped", {}).get("event")


class Session:
    """A running sandbox, or gate, with somebody in it who holds connections."""

    def __init__(self, case, process, log, policy):
        self.case, self.process, self.log = case, process, log
        self.policy = policy

    def tell(self, **what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        check(line, "the holder is gone")
        return json.loads(line)

    def write(self, text):
        with open(self.policy, "w") as f:
            f.write("version: 1\n" + text)

    def reload(self, text, status=0):
        """When it was asked for, and when it was answered."""
        self.write(text)
        began = time.time()
        self.said = subprocess.run(
            [*self.case.drop(), self.case.binary, "reload", self.log], text=True,
            capture_output=True, env=self.case.env(), timeout=60)
        check(self.said.returncode == status, self.said)
        return began, time.time()

    def records(self):
        return Run(subprocess.CompletedProcess([], 0, "", ""), self.log).records

    def reasons(self, port, wait=2):
        """Not of a last packet that is still under way. What is cut is seen at
        once; the line that says so may come a moment later."""
        until = time.time() + wait
        while True:
            words = [r["status_code"] for r in self.records() if "status_code" in r
                     and r.get("src_endpoint", {}).get("port") == port
                     and r.get("action_id") == 2 and event(r) != "packet"]
            if words or time.time() > until:
                return words
            time.sleep(0.02)

    def dropped(self, host, port):
        return {r["status_code"] for r in self.records() if event(r) == "packet"
                and r["dst_endpoint"].get("hostname") == host
                and r["dst_endpoint"].get("port") == port}


@contextlib.contextmanager
def sandbox(case, text):
    path = write_policy(case, text)
    doors = {"proxy": ["198.19.0.1", 3128], "dns": ["198.19.0.1", 53]}
    process, log = case.start("python3", "-c", HOLD, json.dumps(doors), allow=(),
                              args=("--policy", path), stdin=subprocess.PIPE)
    try:
        session = Session(case, process, log, path)
        session.tell()  # it runs
        yield session
    finally:
        process.stdin.close()
        process.wait(20)
        process.stdout.close()
        process.stderr.close()


@contextlib.contextmanager
def gate(case, text):
    """The same under `serve`."""
    with serving(case, text) as (doors, log, server):
        path = server.args[server.args.index("--policy") + 1]
        process = subprocess.Popen(["python3", "-c", HOLD, json.dumps(doors)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, env=case.env())
        try:
            yield Session(case, process, log, path)
        finally:
            process.stdin.close()
            process.wait(20)
            process.stdout.close()


def rules(*hosts):
    return "allow:\n" + "".join(f"  - {{ host: {h}.test, ports: [443, 80, 7000] }}\n"
                                for h in hosts)


def revoked(case, session, ways, text, why, before=lambda: None):
    """R3, D20: all that allowed.test has ends, and nothing of it begins; what
    other.test has goes on."""
    doomed = [f"{door} allowed.test" for door in ways]
    kept = [f"{door} other.test" for door in ways]
    got = session.tell(hold=doomed + kept, dns=["allowed.test", "other.test"])
    check(set(got["hold"].values()) == {"ok"} and not got["ended"], got)
    check(got["dns"]["allowed.test"].startswith("0 1"), got)
    before()
    _, done = session.reload(text)
    got = session.tell(until=done + 1.2)
    for key in doomed:
        took = got["ended"].get(key, 1e12) - done
        check(took < 1, f"R3 {key}: ended {took:.1f} s after the reload")
    check(not set(kept) & set(got["ended"]), f"R3: what is allowed ended: {got}")
    for key in doomed:
        words = session.reasons(got["held"][key])
        check(words == ["policy_revoked"], f"R3 {key}: {words}")
    seen = time.time()
    got = session.tell(hold=doomed, dns=["allowed.test"])
    tries, code = got["hold"], got["dns"]["allowed.test"].split()
    check(code[:2] == ["3", "0"] and session.reasons(int(code[2])) == [why],
          f"D20: {got}")
    for key, want in tries.items():
        check(want != "ok" or key.split()[0] in ("absolute", "host"), f"R3 {key}: {want}")
    check(tries["connect allowed.test"] == f"403 {why}"
          and tries["socks allowed.test"] == "socks 2", tries)
    got = session.tell(until=time.time() + 0.3)
    check(session.reasons(got["held"]["absolute allowed.test"]) == [why], got)
    if "raw" in ways:  # to the address that it had
        words = session.dropped("allowed.test", 7000)
        check(words == {why}, f"R3 a stale address: {words}")
    new = [line for at, line in packets(case, "tcp[tcpflags] & tcp-syn != 0 or port 53")
           if at > seen]
    check(not new, f"R3, D20: seen outside: {new}")
    got = session.tell(hold=[f"{door} other.test" for door in ("connect", "socks")],
                       dns=["other.test"])
    check(set(got["hold"].values()) == {"ok"}, got)


def test_a_rule_is_removed(case):
    with sandbox(case, rules("allowed", "other")) as session:
        revoked(case, session, ALL, rules("other"), "not_in_policy")


def test_a_rule_is_removed_under_serve(case):
    with gate(case, rules("allowed", "other")) as session:
        revoked(case, session, (*DIRECT, "tunnel"), rules("other"), "not_in_policy")


def test_a_rule_is_removed_from_a_shared_address(case):
    """With real answers both names have the same one."""
    text = "dns: {answers: real}\n"
    with sandbox(case, text + rules("allowed", "other")) as session:
        revoked(case, session, (*DIRECT, "tunnel"), text + rules("other"),
                "not_in_policy")


def test_a_denial_is_added(case):
    with sandbox(case, rules("allowed", "other")) as session:
        revoked(case, session, ALL, rules("allowed", "other") +
                "deny: [allowed.test]\n", "deny_rule")


def test_a_listed_denial_is_added(case):
    """The policy's text stays; the list that it names changes."""
    path = f"{case.lab.dir}/list-{case.who}"
    with open(path, "w") as f:
        f.write("evil.test\n")
    text = rules("allowed", "other") + f"deny: [{{file: {path}}}]\n"
    with sandbox(case, text) as session:
        def change():
            with open(path, "a") as f:
                f.write("allowed.test\n")
        revoked(case, session, ALL, text, "deny_rule", change)


def test_ports_and_doors_are_narrowed(case):
    """What no longer fits ends, what does stays."""
    with sandbox(case, rules("allowed")) as session:
        keys = [f"{door} allowed.test" for door in ALL]
        check(set(session.tell(hold=keys)["hold"].values()) == {"ok"})
        _, done = session.reload("allow: [{host: allowed.test, ports: [443], "
                                 "doors: [proxy]}]\n")
        got = session.tell(until=done + 1)
        ended = {key.split()[0] for key in got["ended"]}
        check(ended == {"sni", "raw", "tunnel", "absolute", "host"}, ended)
        check(all(t - done < 1 for t in got["ended"].values()), got)


BIG = "  - { host: allowed.test, ports: [80]"
RAW = "  - { host: allowed.test, ports: [7000]"
TLS = "  - { host: allowed.test, ports: [443] }\n"
# What is held, by which policy, and what another one makes of it.
NARROWED = [
    ("connect", "mode: observe\n", "", "policy_revoked"),
    ("raw", "mode: observe\nallow:\n" + RAW + "}\n", "mode: observe\n", None),
    ("connect", "allow:\n" + TLS, "mode: observe\n", None),
    ("sni", "default: public\n", "", "policy_revoked"),
    ("sni", "default: public\n", "default: public\ndeny: [allowed.test]\n",
     "policy_revoked"),
    ("sni", "allow:\n" + TLS, "default: public\n", None),
    ("sni", "allow: ['*.test']\n", "allow: ['*.test']\nname: same\n", None),
    ("sni", "allow: ['*.test']\n", "allow:\n" + TLS, None),
    ("sni", "allow: ['*.test']\n", "allow: ['*.test', {host: allowed.test, "
     "ports: [22]}]\n", "policy_revoked"),
    ("socks", "allow: ['*.test']\n", "allow: ['*.allowed.test']\n",
     "policy_revoked"),
    ("connect", "allow: [allowed.test]\n", "allow: [{host: allowed.test, "
     "expires: 2020-01-01}]\n", "policy_revoked"),
    ("connect", "allow: [allowed.test]\n", "allow: [{host: allowed.test, "
     "expires: 2999-01-01}]\n", None),
    ("connect", "allow: [allowed.test]\n", "allow: [allowed.test]\n"
     "limits: {download: 10}\n", "limit_bytes"),
    ("connect", "allow: [allowed.test]\n", "allow: [{host: allowed.test, "
     "upload: 10 MB}]\n", None),
    ("connect", "allow: [allowed.test]\n", "allow: [{host: allowed.test, "
     "protocol: http, ports: [443]}]\n", "policy_revoked"),
    ("said", "allow:\n" + RAW + "}\n", "allow:\n" + RAW + ", protocol: any }\n", None),
    ("said", "allow:\n" + RAW + "}\n", "allow:\n" + RAW + ", protocol: tls }\n",
     "policy_revoked"),
    ("said", "allow:\n" + RAW + "}\n", "allow:\n" + RAW + ", methods: [GET] }\n",
     "policy_revoked"),
    ("absolute", "allow:\n" + BIG + "}\n", "allow:\n" + BIG + ", paths: [/big] }\n",
     None),
    ("absolute", "allow:\n" + BIG + "}\n", "allow:\n" + BIG + ", paths: [/a/**] }\n",
     "policy_revoked"),
    ("host", "allow:\n" + BIG + "}\n", "allow:\n" + BIG + ", methods: [POST] }\n",
     "policy_revoked"),
    ("host", "allow:\n" + BIG + "}\n", "allow:\n" + BIG + ", doors: [proxy] }\n",
     "policy_revoked"),
    ("absolute", "allow:\n" + BIG + "}\n", "allow:\n" + BIG + ", doors: [proxy] }\n",
     None),
]


def test_what_still_fits(case):
    """R3: what the new policy would not have allowed ends; nothing else does."""
    faults = []
    with sandbox(case, "") as session:
        for door, before, after, want in NARROWED:
            key = f"{door} allowed.test"
            session.reload(before)
            got = session.tell(hold=[key])
            port = got["held"].get(key)
            row = f"R3 {door}: {before!r} -> {after!r}"
            if got["hold"][key] != "ok" or got["ended"]:
                faults.append(f"{row}: not held: {got}")
                continue
            _, done = session.reload(after)
            got = session.tell(until=done + (1 if want else 0.3))
            words = session.reasons(port, 2 if want else 0)
            if bool(got["ended"]) != bool(want) or words != ([want] if want else []):
                faults.append(f"{row}: wanted {want}, ended {got['ended']}, {words}")
            session.tell(drop=True)
    check(not faults, "\n".join(faults))


def test_what_is_said_later(case):
    """A connection on which nobody has said anything stays; what is then said has
    to be what the new rule wants."""
    faults = []
    with sandbox(case, "") as session:
        for narrow in "protocol: tls", "protocol: http", "methods: [POST]":
            session.reload("allow:\n" + RAW + "}\n")
            key = "raw allowed.test"
            got = session.tell(hold=[key])
            port = got["held"][key]
            session.reload("allow:\n" + RAW + f", {narrow} }}\n")
            got = session.tell(say={key: "SSH-2.0-x\r\n"}, until=time.time() + 1)
            words = session.reasons(port)
            if "SSH" in got["heard"].get(key, "") or words not in (
                    ["protocol"], ["policy_revoked"]):
                faults.append(f"R3 {narrow}: {got} {words}")
            session.tell(drop=True)
    check(not faults, "\n".join(faults))


def test_another_address(case):
    """What a name leads to is part of the rule."""
    with socket.create_server(("127.0.0.1", 0)) as one, \
            socket.create_server(("127.0.0.1", 0)) as two, \
            socket.create_server(("203.0.113.2", 7000)):
        def policy(server, addresses):
            to = "%s:%d" % server.getsockname()
            return "allow:\n  - { host: llm.internal, ports: [7000], connect: " \
                f'"{to}" }}\n  - {{ host: uplink.test, ports: [7000]{addresses} }}\n'
        keys = ["tunnel llm.internal", "tunnel uplink.test"]
        permitted = ", addresses: [203.0.113.2]"
        with sandbox(case, policy(one, permitted)) as session:
            got = session.tell(hold=keys)
            check(set(got["hold"].values()) == {"ok"}, got)
            _, done = session.reload(policy(one, permitted) + "name: same\n")
            check(not session.tell(until=done + 0.3)["ended"])
            _, done = session.reload(policy(two, permitted))
            check(set(session.tell(until=done + 1)["ended"]) == {keys[0]})
            _, done = session.reload(policy(two, ""))
            got = session.tell(until=done + 1)
            check(set(got["ended"]) == set(keys), got)
            for key in keys:
                check(session.reasons(got["held"][key]) == ["policy_revoked"], key)
            got = session.tell(hold=keys)
            check(got["hold"] == {keys[0]: "ok",
                                  keys[1]: "502 forbidden_address"}, got)


def test_a_bad_policy_changes_nothing(case):
    """R2: the old one stays, whole, and it is said what is wrong."""
    with sandbox(case, rules("allowed")) as session:
        check(session.tell(hold=["connect allowed.test", "raw allowed.test"]))
        for text in ("allow: [allowed.test\n", "alow: []\n", "allow: ['*']\n",
                     "deny: [allowed.test]\nallow: [other.test, 'b..d']\n",
                     "extends: [./nowhere.yaml]\n",
                     "deny: [{file: /nowhere}, allowed.test]\n", "version: 1\n"):
            session.reload(text, status=1)
            check("policy" in session.said.stderr and session.policy.rsplit("/", 1)[1]
                  in session.said.stderr or "nowhere" in session.said.stderr,
                  session.said)
        os.unlink(session.policy)
        said = subprocess.run([*case.drop(), case.binary, "reload", session.log],
                              capture_output=True, text=True, env=case.env())
        check(said.returncode == 1, said)
        got = session.tell(until=time.time() + 0.3, hold=["socks allowed.test",
                           "connect other.test"], dns=["allowed.test"])
        check(not got["ended"] and got["hold"] == {
            "socks allowed.test": "ok", "connect other.test": "403 not_in_policy"}, got)
        check(got["dns"]["allowed.test"].startswith("0 1"), got)
        check("was not reloaded" in json.dumps(session.records()))


def test_back_again(case):
    """What was refused is allowed with the next policy: no denial is stale."""
    with sandbox(case, rules("other")) as session:
        got = session.tell(hold=["connect allowed.test"], dns=["allowed.test"])
        check(got["hold"]["connect allowed.test"] == "403 not_in_policy", got)
        session.reload(rules("allowed", "other"))
        got = session.tell(hold=[f"{door} allowed.test" for door in ALL],
                           dns=["allowed.test"])
        check(set(got["hold"].values()) == {"ok"}, got)


def test_expiry(case):
    """A rule that expires is a rule removed, without anybody asking."""
    at = int(time.time()) + 3
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    text = rules("other") + "  - { host: allowed.test, ports: [443, 80, 7000], " \
        f"expires: {when} }}\n"
    with sandbox(case, text) as session:
        keys = [f"{door} allowed.test" for door in ALL]
        got = session.tell(hold=keys + ["connect other.test"])
        check(set(got["hold"].values()) == {"ok"} and not got["ended"], got)
        check(time.time() < at - 0.2, "too slow to tell")
        got = session.tell(until=at + 1.2)
        for key in keys:
            took = got["ended"].get(key, 1e12) - at
            check(-0.1 < took < 1, f"{key}: ended {took:.1f} s after its time")
            check(session.reasons(got["held"][key]) in (["policy_revoked"],
                  ["expired"]), session.reasons(got["held"][key]))
        check("connect other.test" not in got["ended"], got)
        got = session.tell(hold=keys[:2] + keys[5:], dns=["allowed.test"])
        check(got["hold"]["connect allowed.test"] == "403 expired"
              and got["hold"]["socks allowed.test"] == "socks 2"
              and got["hold"]["raw allowed.test"] == "ConnectionRefusedError"
              and got["dns"]["allowed.test"].startswith("3 0"), got)
        check(session.dropped("allowed.test", 7000) == {"expired"})


def test_a_websocket_is_cut(case):
    """Also where it was a request that opened it."""
    world(case)
    code = r"""
import socket, sys, time
s = socket.create_connection(("web.test", 80), 5)
s.sendall(b"GET /ws HTTP/1.1\r\nHost: web.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
          b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
got = b""
while b"free" not in got: got += s.recv(100)
print("open", flush=True)
s.settimeout(5)
try: s.recv(1)
except ConnectionResetError: pass
print(time.time(), flush=True)
"""
    path = write_policy(case, "allow: [web.test]\n")
    process, log = case.start("python3", "-c", code, allow=(),
                              args=("--policy", path))
    session = Session(case, process, log, path)
    check(process.stdout.readline() == "open\n")
    _, done = session.reload("allow: [other.test]\n")
    ended = float(process.stdout.readline())
    process.communicate(timeout=20)
    check(ended - done < 1, f"R3: {ended - done}")
    check(any(r.get("status_code") == "policy_revoked"
              and r.get("dst_endpoint", {}).get("ip") == WEB
              for r in session.records()), session.records())
