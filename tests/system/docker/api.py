# SPDX-License-Identifier: Apache-2.0
"""HTTP over unix sockets: the engine's own API, for what the command line is
too slow for, and the driver's, as an engine calls it."""
import http.client
import json
import socket


class Unix(http.client.HTTPConnection):
    """One connection, kept."""

    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def ask(self, method, path, body=None):
        """Status, and the answer as JSON or text."""
        text = None if body is None else json.dumps(body)
        self.request(method, path, text,
                     {"Content-Type": "application/json"} if text else {})
        answer = self.getresponse()
        got = answer.read().decode()
        try:
            return answer.status, json.loads(got) if got else None
        except ValueError:
            return answer.status, got


class Api(Unix):
    """The engine's."""

    def __init__(self, host):
        super().__init__(host.removeprefix("unix://"))

    def must(self, method, path, body=None):
        status, got = self.ask(method, path, body)
        assert status < 300, (method, path, status, got)
        return got


class Plugin(Unix):
    """The driver's."""

    def __init__(self, path="/run/docker/plugins/sallyport.sock"):
        super().__init__(path)

    def call(self, name, **body):
        status, got = self.ask("POST", "/NetworkDriver." + name, body)
        assert status == 200, (name, status, got)
        return got

    def must(self, name, **body):
        got = self.call(name, **body)
        assert "Err" not in got, (name, body, got)
        return got
