# SPDX-License-Identifier: Apache-2.0
"""Policies with limits, and what is moved under them."""

from harness import check


def policy(case, text):
    path = f"{case.lab.dir}/limits-{case.who}.yaml"
    with open(path, "w") as f:
        f.write("version: 1\n" + text)
    return ("--policy", path)


def moved(run, way, host="allowed.test"):
    """Bytes of all finished connections to @host, as recorded: way is "out" or
    "in"."""
    closed = {}
    for r in run.records:
        if r.get("dst_endpoint", {}).get("hostname") == host and "traffic" in r:
            key = r.get("connection_info", {}).get("uid", r["metadata"]["uid"])
            got = r["traffic"].get(f"bytes_{way}", 0)
            closed[key] = max(closed.get(key, 0), got)
    return sum(closed.values())


def said(run, reason):
    """The reason is in the records and in the summary."""
    check(run.denied(reason) and f"{reason}: " in run.err, run)


# --- bytes ---------------------------------------------------------------------


def fetch(case, *urls, text, **kw):
    """curl, each URL after the other; what each got."""
    run = case.run("curl", "-s", "-m", "100", "-w", "%{size_download}\n", "-o",
                   "/dev/null", *[x for u in urls for x in (u, "-o", "/dev/null")
                                  ][:-2], allow=(), args=policy(case, text), timeout=400, **kw)
    return run, [int(n) for n in run.out.split()]
