# SPDX-License-Identifier: Apache-2.0
"""A faulty daemon, and what is asked of it."""
import http.client
import time

from daemon_lab import Daemon, policy


def steady(read):
    """What it says once it has said the same for half a second: a connection that
    was closed is, a while later, for the daemon, too."""
    got, since = read(), time.monotonic()
    while time.monotonic() < since + 0.5:
        time.sleep(0.02)
        if (now := read()) != got:
            got, since = now, time.monotonic()
    return got


class Control:
    def __init__(self, case, faulty):
        self.case, self.faulty = case, faulty
        self.d = Daemon(case)
        plain = self.d.argv()
        self.d.argv = lambda: [faulty.binary, *plain[1:]]
        self.d.start()
        self.n = 0
        self.d.create("stays", "allowed.test")

    def alive(self):
        return self.d.process.poll() is None

    def flow(self, kind):
        try:
            status, _ = self.d.ask(*getattr(self, kind)())
        except TimeoutError:
            return "hung"
        except (OSError, http.client.HTTPException) as e:
            return type(e).__name__
        finally:
            if kind == "make":
                self.clear()
        return "ok" if status in (200, 201) else f"status {status}"

    def prepare(self, kind):
        if kind == "end":
            self.clear()
            self.d.good(*self.make())

    def clear(self):
        for s in self.d.good("GET", "/v1/sandboxes")["sandboxes"]:
            if s["name"] != "stays":
                self.d.ask("DELETE", "/v1/sandboxes/" + s["name"])

    def list(self):
        return "GET", "/v1/sandboxes"

    def narrow(self):
        self.n += 1
        return "PUT", "/v1/sandboxes/stays/policy", {
            "policy": policy("allowed.test", f"h{self.n % 2}.test")}

    def make(self):
        self.n += 1
        return "POST", "/v1/sandboxes", {
            "name": f"n{self.n}", "policy": policy("allowed.test")}

    def end(self):
        return "DELETE", f"/v1/sandboxes/n{self.n}"
