# SPDX-License-Identifier: Apache-2.0
"""What all rows of a table share: the lab (lab.py, policy_world.py), its uplink,
sandboxes that live long, and servers out there that do what a row wants."""
import os
import shutil
import socket
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import policy_world
from box import Box
from frame import check
from harness import Case
from lab import CDN, DNS, EVIL, GOOD, GOOD6
from netns import in_netns
from uplink import Uplink, news

# What anybody may be seen to ask for, and to be led to.
POLICY = """
allow: [allowed.test, other.test, cdn.test, web.test, "*.wild.test"]
deny: [evil.wild.test]
"""
FRIENDS = {DNS, GOOD, GOOD6, CDN, policy_world.WEB, policy_world.TALK,
           policy_world.DNS2}
# What a row hides behind something else, and wants to be seen nowhere.
CONTRABAND = b"/smuggled"


class World:
    def __init__(self, lab, who, binary):
        os.environ["SALLYPORT_NO_DAEMON"] = "1"
        self.lab, self.who = lab, who
        self.binary = shutil.copy(binary, lab.dir + "/sallyport")
        os.chmod(self.binary, 0o755)
        self.case = Case(lab, who, self.binary)
        self.servers = policy_world.world(self.case)
        self.boxes, self.counter, self.row = {}, 0, None
        self.friends, self.strangers = set(FRIENDS), ("evil.", "smuggled")
        self.uplink = Uplink()

    def count(self):
        self.counter += 1
        return self.counter

    def box(self, policy=POLICY, args=(), **more):
        """The sandbox of this policy: one for all that want the same."""
        key = policy, tuple(args), repr(more)
        if key not in self.boxes:
            self.boxes[key] = Box(self, policy, args, **more)
        return self.boxes[key]

    def place(self):
        """A new directory of who runs the product, for a log."""
        path = f"{self.lab.dir}/place-{self.count()}"
        os.mkdir(path, 0o700)
        self.case.mine(path)
        return path

    def wait(self, condition, what="", seconds=60):
        end = time.monotonic() + seconds
        while not (got := condition()):
            check(time.monotonic() < end, "waited in vain for",
                  what() if callable(what) else what)
            time.sleep(0.005)
        return got

    # -- out there ----------------------------------------------------------

    def outside(self, fn):
        """Calls @fn in the internet's namespace: sockets made there stay there."""
        return in_netns(f"/proc/{self.lab.holder.pid}/ns/net", fn)

    def address(self, ip):
        """Gives the internet one more address, which is a friend's."""
        if ip not in self.lab.net("ip", "-o", "addr", "show", "dev", "lo"):
            self.lab.net("ip", "addr", "add", ip + "/32", "dev", "lo")
        self.friends.add(ip)

    def serve(self, ip, port, handler):
        """A TCP server: @handler gets each connection, in a thread of its own."""
        def listen():
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind((ip, port))
            s.listen(256)
            return s

        def one(c):
            try:
                handler(c)
            except OSError:
                pass
            finally:
                c.close()

        def loop(s):
            while True:
                try:
                    c, _ = s.accept()
                except OSError:
                    return
                threading.Thread(target=one, args=(c,), daemon=True).start()
        s = self.outside(listen)
        threading.Thread(target=loop, args=(s,), daemon=True).start()
        return s

    # -- a row --------------------------------------------------------------

    def begin(self, row):
        self.row = row
        self.uplink.forget()

    def end(self):
        """Whatever the row did: no packet to a stranger, no strange name."""
        self.uplink.read()
        bad = [p for p in self.uplink.seen
               if p.to not in self.friends
               or any(x in p.what.lower() for x in self.strangers)]
        check(not bad, "seen outside:", *bad[:5])
        bad = [p for p in self.uplink.seen if CONTRABAND in p.data]
        check(not bad, "smuggled:", *bad[:5])

    def led(self, to):
        """Packets that began something at this address, in this row."""
        self.uplink.read()
        return [p for p in news(self.uplink.seen) if p.to == to]

    def stop(self):
        """Ends all sandboxes; what their whole logs say of earlier rows."""
        late = []
        for box in self.boxes.values():
            status = box.stop()
            late += box.late()
            if status:
                late.append((None, f"a sandbox ended with {status}"))
        return late


__all__ = ["World", "POLICY", "EVIL"]
