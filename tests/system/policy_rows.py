# SPDX-License-Identifier: Apache-2.0
"""Tables of things to try, and of what has to come of each: for the client, in
the log, and on the wire. What is refused must not be seen outside at all."""
import contextlib
import json
import os
import signal
import subprocess
import time

from harness import Run, so_far
from lab import DNS

DOORS = ("connect", "http", "socks", "sni", "host", "dns")

# How a refusal looks by each door, see policy/reason.c.
def denied(word, status=403, socks=2, alert=49, rcode="NXDOMAIN", ede=15):
    return {"connect": f"{status} {word}", "http": f"{status} {word}",
            "host": f"{status} {word}", "socks": f"socks {socks}",
            "sni": f"alert {alert}", "dns": f"{rcode} {ede}"}


LOOKS = {
    "malformed": denied("malformed", 400, 1, 50, "FORMERR", 0),
    "name_mismatch": denied("name_mismatch", 403, 2, 112),
    "no_name": denied("no_name", 400, 2, 109, "FORMERR", 0),
    "forbidden_address": denied("forbidden_address", 502),
    "resolve_failed": denied("resolve_failed", 502, 4, 80, "NXDOMAIN", 0),
    "protocol": denied("protocol", 400, 7, 40, "REFUSED", 21),
    "connect_failed": denied("connect_failed", 502, 5, 80, "SERVFAIL", 23),
    "record_type": denied("record_type", rcode="NOERROR", ede=0),
}


def looks(reason, door):
    return LOOKS.get(reason, denied(reason))[door]


def served(door, reason, name):
    """In TLS no name ends in a dot (RFC 6066)."""
    return "malformed" if door == "sni" and name.endswith(".") else reason


def leased(door, reason, name):
    """By an address that was given for another name, the name does not get to
    be judged: it disagrees."""
    reason = served(door, reason, name)
    if door in ("sni", "host") and reason in ("not_in_policy", "deny_rule"):
        return "name_mismatch"
    return reason


def row(id, door, name, reason="rule", want=None, **more):
    """@reason is the word in the log; one that allows wants "ok"."""
    allowed = reason in ("rule", "public", "observe")
    if want is None:
        want = "ok" if allowed else looks(reason, door)
    return {"id": id, "door": door, "name": name, "reason": reason,
            "want": want, "denied": not allowed, **more}


def write_policy(case, text):
    case.count += 1
    path = f"{case.lab.dir}/policy-{case.who}-{case.count}.yaml"
    with open(path, "w") as f:
        f.write("version: 1\n" + text)
        if "limits:" not in text:  # hundreds of rows at once
            f.write("limits: {connections_per_second: 10000, "
                    "dns_per_second: 10000}\n")
    return path


def title(row):
    name = row["name"] if len(row["name"]) < 50 else row["name"][:47] + "..."
    port = f":{row['port']}" if "port" in row else ""
    more = " ".join(str(row[k]) for k in ("method", "path", "sni", "type", "note")
                    if k in row)
    return f"{row['id']}: {row['door']} {name!r}{port} {more}".rstrip()


def packets(case, expression):
    """(time, text) of what was captured outside."""
    return [(float(line.split(" ", 1)[0]), line)
            for line in case.lab.packets(expression, "-tt", "-q")]


class Tried:
    """What came of the probes, and the records of it."""

    def __init__(self, case, rows, log, grows=False):
        """@grows: somebody still writes the log; a refusal may be there sooner
        than its record."""
        self.case, self.rows = case, rows
        end = time.monotonic() + 30
        run = Run(subprocess.CompletedProcess([], 0, "", ""), log)
        self.records = so_far(log) if grows else run.records
        while grows and not self.recorded() and time.monotonic() < end:
            time.sleep(0.02)
            self.records = so_far(log)

    def recorded(self):
        return all(self.records_of(row) for row in self.rows
                   if row["reason"] is not None)

    def records_of(self, row):
        """By the port that the client came from."""
        return [r for r in self.records
                if r.get("src_endpoint", {}).get("port") == row.get("source")
                and row.get("source")
                and (r["class_uid"] == 4003) == (row["door"] == "dns")]

    def faults(self):
        ret = []
        for row in self.rows:
            ret += [f"{title(row)}: {fault}" for fault in self.faults_of(row)]
        return ret + self.seen_outside()

    def faults_of(self, row):
        got = row["got"]
        if not (got == row["want"] or (row["want"] == "ok" and
                                       got.startswith("ok"))):
            yield f"wanted {row['want']!r}, got {got!r}"
        if row["reason"] is None:
            return
        records = self.records_of(row)
        action = 2 if row["denied"] else 3 if row["reason"] == "observe" else 1
        words = {r.get("status_code") for r in records
                 if r.get("action_id") == action}
        if words != {row["reason"]}:
            yield f"wanted {row['reason']!r} in the log, got {sorted(words)}"
        if row["denied"] and not row.get("opened") and not row.get("asked") and any(r.get("action_id") == 1 for r in records):
            yield "the log says that it was allowed"

    def seen_outside(self):
        """Packets while something was refused. Where the address is what is
        wrong, it was asked for; where the server may speak first there is a
        connection, but no byte of the client's. What a name server says is an
        answer, perhaps late, to whoever asked: the question is what counts."""
        rows = [r for r in self.rows if r["denied"]]
        if not rows:
            return []
        ret, seen_all = [], packets(self.case, "tcp or udp")
        for r in rows:
            seen = [line for at, line in seen_all
                    if r["began"] <= at <= r["ended"] + 0.002
                    and not (r.get("asked") and f"{DNS}.53" in line)
                    and f"IP {DNS}.53 > " not in line
                    and not (r.get("dialled") and (line.endswith(" 0") or
                                                   "> 203.0.113.2." in line))]
            if seen:
                ret.append(f"{title(r)}: {len(seen)} packets outside: {seen[0]}")
        return ret

    def check(self):
        faults = self.faults()
        if faults:
            raise AssertionError("\n".join(["", *faults]))
        return self


def loudness(row):
    return (not row["denied"], bool(row.get("dialled")), bool(row.get("asked")))


def job(case, rows, doors=None):
    """A file in the working directory, which the sandbox sees. What is not to
    be seen outside comes first, so that nothing else is under way then."""
    rows = sorted(rows, key=loudness)
    for before, r in zip(rows, rows[1:]):
        if loudness(before) != loudness(r):
            r["pause"] = 0.05
    case.count += 1
    path = f"{case.work}/job-{case.count}.json"
    with open(path, "w") as f:
        json.dump({"doors": doors or {}, "probes": rows}, f)
    with open(os.path.join(os.path.dirname(__file__), "policy_probe.py")) as f:
        code = f.read()
    return ["python3", "-c", code, path]


def run_rows(case, rows, text=None, **kw):
    """In a sandbox, all in one session."""
    if text is not None:
        kw["args"] = ("--policy", write_policy(case, text), *kw.get("args", ()))
        kw.setdefault("allow", ())
    kw.setdefault("timeout", 240)
    run = case.run(*job(case, rows), **kw)
    if run.status:
        raise AssertionError(str(run))
    tried = Tried(case, json.loads(run.out), run.log)
    tried.run = run
    return tried


BASE = 20000


@contextlib.contextmanager
def serving(case, text, *args, port=None):
    """(doors, log, process) of `sallyport serve` on loopback."""
    case.count += 1
    log = f"{case.lab.dir}/log-{case.who}-{case.count}"
    os.mkdir(log, 0o700)
    case.mine(log)
    port = port or BASE + case.count * 8
    doors = {name: ("127.0.0.1", port + i)
             for i, name in enumerate(("proxy", "dns", "tls", "http"))}
    options = [x for name, (ip, p) in doors.items()
               for x in ("--" + name, f"{ip}:{p}")]
    process = subprocess.Popen(
        [*case.drop(), case.binary, "serve", "--log", log, *options, "--policy",
         write_policy(case, text), *args], cwd=case.work, text=True,
        stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=case.env())
    try:
        line = process.stderr.readline()
        if "serving" not in line:
            raise AssertionError(line + process.stderr.read())
        yield doors, log, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def try_rows(case, rows, doors, log):
    run = subprocess.run(job(case, rows, doors), text=True, cwd=case.work,
                         capture_output=True, env=case.env(), timeout=240)
    if run.returncode:
        raise AssertionError(run.stderr)
    return Tried(case, json.loads(run.stdout), log, grows=True)


def serve_rows(case, rows, text, *args):
    with serving(case, text, *args) as (doors, log, _):
        return try_rows(case, rows, doors, log)
