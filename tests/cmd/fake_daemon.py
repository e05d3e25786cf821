# SPDX-License-Identifier: Apache-2.0
"""A server that speaks the daemon's routes, with sandboxes that are only said
to be there: for what clients ask, and what they make of odd answers."""
import base64
import http.server
import json
import os
import socketserver
import struct
import threading

NAMES = {1: "file", 2: "allow", 3: "deny", 4: "permit", 5: "observe",
         6: "included", 7: "list"}


def sandbox(name, **more):
    return {"name": name, "state": "ready", "uid": os.geteuid(),
            "session": "20261122T000000Z-0000000000", "log": "/nowhere",
            "netns": "/nowhere/net", "ruleset": "ab" * 32,
            "ip": "198.19.0.2", "gateway": "198.19.0.1", "proxy_port": 3128,
            "made": 1700000000, "docker": False,
            "policy": {"digest": "cd" * 32, "text": "t.yaml"}, "publish": [],
            "counts": {"records": 5, "allowed": 1234, "refused": 2,
                       "up": 999, "down": 1500000, "held": "held"}, **more}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close")
        self.end_headers()
        if text:
            self.wfile.write(text)
        self.close_connection = True

    def serve(self):
        daemon = self.server.daemon
        length = int(self.headers["Content-Length"])
        raw = self.rfile.read(length)
        body = json.loads(raw) if raw else None
        daemon.seen.append((self.command, self.path, body))
        if daemon.canned:
            self.answer(*daemon.canned)
        else:
            self.answer(*daemon.route(self.command, self.path, body))

    do_GET = do_POST = do_PUT = do_DELETE = serve


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def get_request(self):
        request, _ = super().get_request()
        return request, ("unix", 0)


class FakeDaemon:
    def __init__(self, path):
        self.path, self.seen, self.sandboxes = path, [], {}
        self.canned = None  # (status, body) for whatever comes
        self.server = Server(path, Handler)
        self.server.daemon = self
        os.chmod(path, 0o666)
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       kwargs={"poll_interval": 0.02})
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
        os.unlink(self.path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def route(self, method, path, body):
        parts = path.strip("/").split("/")
        if path == "/v1/version":
            return 200, {"version": "0", "api": 1}
        if path == "/v1/reload":
            return 200, {"ok": True}
        if path == "/v1/sandboxes" and method == "GET":
            return 200, {"sandboxes": list(self.sandboxes.values())}
        if path == "/v1/sandboxes":
            name = body["name"]
            if name in self.sandboxes:
                return 409, {"error": "there is one of that name"}
            self.sandboxes[name] = sandbox(name)
            return 201, self.sandboxes[name]
        if parts[:2] != ["v1", "sandboxes"] or parts[2] not in self.sandboxes:
            return 404, {"error": "there is no such sandbox",
                         "hint": "`sallyport status` lists them"}
        if method == "DELETE":
            del self.sandboxes[parts[2]]
            return 200, {"name": parts[2], "held": "held",
                         "receipt": "/nowhere/receipt.json"}
        return 200, self.sandboxes[parts[2]]


def parts(text):
    """The parts of a bundle as it is sent: (kind, origin, text)."""
    data, found = base64.b64decode(text, validate=True), []
    while data:
        kind, origin, length = struct.unpack_from(">BHI", data)
        at = struct.calcsize(">BHI")
        found.append((NAMES[kind], data[at:at + origin].decode(),
                      data[at + origin:at + origin + length].decode()))
        data = data[at + origin + length:]
    return found
