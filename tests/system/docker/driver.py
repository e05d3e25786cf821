# SPDX-License-Identifier: Apache-2.0
"""As little of a network driver as an engine accepts, for trying the lock
without the daemon. Each network has a gateway namespace of its own, in which a
name server answers everything, and writes it down. The tables are put there by
tests/system/docker/lock_tool.c, as the daemon does it."""
import http.server
import json
import os
import socketserver
import subprocess
import threading

from engine import PLUGINS, ready
from lab import sh

GROUP = "21328"  # LOCK_GROUP

SERVER = """
import select, socket, sys, threading
gateway, out = sys.argv[1], open(sys.argv[2], "a", buffering=1)
def answer(q, how):
    at, parts = 12, []
    while q[at]:
        parts.append(q[at + 1:at + 1 + q[at]].decode("latin1")); at += 1 + q[at]
    print(how, ".".join(parts).lower(), file=out)
    kind, end = q[at + 2], at + 5
    a = (b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\x3c\\0\\4" + socket.inet_aton("198.51.100.7")
         if kind == 1 else b"")
    return q[:2] + b"\\x81\\x80\\0\\1\\0" + bytes([1 if a else 0]) + b"\\0\\0\\0\\0" + q[12:end] + a
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind((gateway, 53))
tcp = socket.socket(); tcp.bind((gateway, 53)); tcp.listen(8)
print("ready -", file=out)
while True:
    for s in select.select([udp, tcp], [], [])[0]:
        try:
            if s is udp:
                q, who = udp.recvfrom(4096); udp.sendto(answer(q, "udp"), who)
            else:
                c, _ = tcp.accept(); c.settimeout(2); q = c.recv(4096)
                a = answer(q[2:], "tcp"); c.sendall(len(a).to_bytes(2, "big") + a); c.close()
        except (OSError, IndexError) as e: print("error", e, file=out)
"""


class Driver:
    """Serves /run/docker/plugins/NAME.sock."""

    def __init__(self, lab, tool, name="tiny", locks=True):
        self.lab, self.name, self.locks = lab, name, locks
        self.networks, self.ends, self.told = {}, {}, []
        self.tool = subprocess.Popen([tool], stdin=subprocess.PIPE, text=True,
                                     stdout=subprocess.PIPE)
        threading.Thread(target=self.listen, daemon=True).start()
        os.makedirs(PLUGINS, exist_ok=True)
        self.path = f"{PLUGINS}/{name}.sock"
        driver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or b"{}")
                try:
                    answer = driver.call(self.path.split(".")[-1], body)
                except Exception as e:  # told to the engine, and so to the test
                    answer = {"Err": repr(e)}
                text = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def address_string(self):
                return "engine"

            def log_message(self, *_):
                pass

        class Server(socketserver.ThreadingMixIn,
                     socketserver.UnixStreamServer):
            daemon_threads = True

        self.server = Server(self.path, Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def listen(self):
        for line in self.tool.stdout:
            self.told.append(line.split())

    def call(self, name, body):
        network, end = body.get("NetworkID"), body.get("EndpointID", "")[:7]
        if name == "Activate":
            return {"Implements": ["NetworkDriver"]}
        if name == "GetCapabilities":
            return {"Scope": "local", "ConnectivityScope": "local"}
        if name == "CreateNetwork":
            self.network(network, body["IPv4Data"][0]["Gateway"])
        elif name == "DeleteNetwork":
            self.networks.pop(network)["holder"].kill()
        elif name == "CreateEndpoint":
            self.ends[end] = body["Interface"]["Address"]
            return {"Interface": {}}
        elif name == "Join":
            return self.join(network, end, body["SandboxKey"])
        elif name == "Leave":
            subprocess.run(["ip", "link", "del", "s" + end],
                           capture_output=True)
        return {}

    def network(self, name, gateway):
        holder = self.lab.spawn("unshare", "--net", "sleep", "infinity")
        mine = os.readlink("/proc/self/ns/net")
        self.lab.wait(lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != mine)
        inside = ("nsenter", "-t", str(holder.pid), "-n")
        bits = gateway.split("/")[1]
        log = f"{self.lab.dir}/tiny-{name[:7]}"
        sh(*inside, "ip", "link", "set", "lo", "up")
        # One bridge for all that join: they see each other, we do not mind.
        sh(*inside, "ip", "link", "add", "br0", "type", "bridge")
        sh(*inside, "ip", "addr", "add", gateway, "dev", "br0")
        sh(*inside, "ip", "link", "set", "br0", "up")
        self.lab.spawn(*inside, "python3", "-c", SERVER,
                       gateway.split("/")[0], log)
        self.lab.wait(lambda: ready(log), "name server")
        self.networks[name] = {"holder": holder, "inside": inside, "log": log,
                               "gateway": gateway.split("/")[0], "bits": bits}

    def join(self, network, end, key):
        n = self.networks[network]
        sh("ip", "link", "add", "s" + end, "type", "veth", "peer", "name",
           "g" + end, "netns", str(n["holder"].pid))
        sh("ip", "link", "set", "s" + end, "group", GROUP)
        sh(*n["inside"], "ip", "link", "set", "g" + end, "master", "br0", "up")
        if self.locks:
            self.tool.stdin.write(f"{key} {n['gateway']}\n")
            self.tool.stdin.flush()
        return {"InterfaceName": {"SrcName": "s" + end, "DstPrefix": "eth"},
                "Gateway": n["gateway"], "DisableGatewayService": True}

    def questions(self):
        """What the gateways were asked: (udp or tcp, name)."""
        found = []
        for n in self.networks.values():
            with open(n["log"]) as f:
                found += [tuple(line.split()) for line in f]
        return [q for q in found if q[0] in ("udp", "tcp")]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        os.unlink(self.path)
        self.tool.stdin.close()
        self.tool.wait(10)
