# SPDX-License-Identifier: Apache-2.0
"""What a developer's tools ask for: a forge, a package registry, an index of
wheels, and a small project that needs all three. They are files of the lab's
web server; only git over HTTP has a program behind it."""
import base64
import hashlib
import io
import json
import os
import pty
import select
import signal
import struct
import fcntl
import subprocess
import tarfile
import termios
import time
import zipfile

from harness import check
from lab import GOOD, sh

GIT_PORT = 8090  # what is behind the web server's /git/

GIT_SERVER = """
import http.server, os, subprocess, sys
from urllib.parse import urlsplit

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self):
        url = urlsplit(self.path)
        env = dict(os.environ, GIT_PROJECT_ROOT=sys.argv[1],
                   GIT_HTTP_EXPORT_ALL="1", REMOTE_USER="lab",
                   GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_COUNT="1",
                   GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*",
                   REQUEST_METHOD=self.command, QUERY_STRING=url.query,
                   PATH_INFO=url.path.removeprefix("/git"),
                   CONTENT_TYPE=self.headers.get("Content-Type", ""))
        for header in "Content-Encoding", "Git-Protocol":
            if header in self.headers:
                name = "HTTP_" + header.upper().replace("-", "_")
                env[name] = self.headers[header]
        out = subprocess.run(["git", "http-backend"], input=self.body(),
                             env=env, capture_output=True).stdout
        head, _, body = out.partition(b"\\r\\n\\r\\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\\r\\n")]
        status = [v for k, v in fields if k == "Status"] or ["200 OK"]
        self.send_response(int(status[0].split()[0]))
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])),
                                Handler).serve_forever()
"""

# --- packages of the registry and the index ------------------------------------

INSTALL = """
const fs = require("fs"), os = require("os"), cp = require("child_process");
const out = cp.execFileSync("uname", ["-s"]).toString().trim();
fs.writeFileSync(require("path").join(__dirname, "built.json"),
    JSON.stringify({ system: out, user: os.userInfo().uid >= 0 }));
"""
NPM = {
    "greeting": {
        "package.json": json.dumps({
            "name": "greeting", "version": "1.2.0", "main": "index.js",
            "bin": {"greet": "cli.js"}, "dependencies": {"pad-words": "^2.0.0"},
            "scripts": {"install": "node install.js"}}),
        "index.js": "const pad = require('pad-words');\n"
                    "exports.greet = (who) => pad('hello') + who;\n",
        "cli.js": "#!/usr/bin/env node\nconsole.log("
                  "require('./index.js').greet(process.argv[2]));\n",
        "install.js": INSTALL},
    "pad-words": {
        "package.json": json.dumps({"name": "pad-words", "version": "2.0.1",
                                    "main": "index.js"}),
        "index.js": "module.exports = (word) => word + ' ';\n"},
}
WHEEL = {
    "lab_words/__init__.py": "def shout(word):\n    return word.upper()\n",
    "lab_words-1.0.dist-info/METADATA":
        "Metadata-Version: 2.1\nName: lab-words\nVersion: 1.0\n",
    "lab_words-1.0.dist-info/WHEEL":
        "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    "lab_words-1.0.dist-info/entry_points.txt":
        "[console_scripts]\nlab-shout = lab_words:main\n",
    "lab_words-1.0.dist-info/RECORD": "",
}

# --- the project ---------------------------------------------------------------

PROJECT = {
    "package.json": json.dumps({
        "name": "project", "version": "0.1.0", "private": True,
        "dependencies": {"greeting": "^1.0.0"},
        "scripts": {"build": "node build.js", "test": "node --test"}}),
    "build.js": "const fs = require('fs');\nfs.mkdirSync('dist', {recursive: "
                "true});\nfs.writeFileSync('dist/out.js', '// built\\n' + "
                "fs.readFileSync('src.js'));\n",
    "src.js": "const { greet } = require('greeting');\n"
              "module.exports = greet('project');\n",
    "src.test.js": "const test = require('node:test');\n"
                   "const assert = require('assert');\n"
                   "test('greets', () => assert.equal(require('./dist/out.js'),"
                   " 'hello project'));\n",
    "Makefile": "CFLAGS = -O2 -Wall -g\nall: tool\ntool: main.o part.o\n"
                "\t$(CC) -o $@ $^ -lm -pthread\ncheck: all\n\t./tool | grep -x "
                "'sum 285'\n.PHONY: all check\n",
    "main.c": "#include <stdio.h>\nint part(int);\nint main(void)\n{\n"
              "\tprintf(\"sum %d\\n\", part(9));\n\treturn 0;\n}\n",
    "part.c": "int part(int n)\n{\n\treturn n ? n * n + part(n - 1) : 0;\n}\n",
    ".gitignore": "node_modules/\ndist/\n*.o\ntool\n",
}


def add(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb" if isinstance(text, bytes) else "w") as f:
        f.write(text)


def npm_package(www, name, files):
    """As a registry shows it: a document, and a tarball."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for path, text in files.items():
            info = tarfile.TarInfo("package/" + path)
            info.size, info.mode = len(text), 0o755
            tar.addfile(info, io.BytesIO(text.encode()))
    manifest = json.loads(files["package.json"])
    file = f"{name}-{manifest['version']}.tgz"
    add(f"{www}/npm/tar/{file}", packed.getvalue())
    digest = hashlib.sha512(packed.getvalue()).digest()
    manifest["dist"] = {
        "tarball": f"https://registry.test/npm/tar/{file}",
        "integrity": "sha512-" + base64.b64encode(digest).decode()}
    if "scripts" in manifest:
        manifest["hasInstallScript"] = True
    add(f"{www}/npm/{name}", json.dumps({
        "name": name, "dist-tags": {"latest": manifest["version"]},
        "versions": {manifest["version"]: manifest}}))


def wheel(www):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as z:
        for path, text in WHEEL.items():
            z.writestr(path, text + "def main():\n    print(shout('pip'))\n"
                       if path.endswith(".py") else text)
    add(f"{www}/simple/lab-words/lab_words-1.0-py3-none-any.whl",
        packed.getvalue())
    add(f"{www}/simple/lab-words/index.html",
        '<a href="lab_words-1.0-py3-none-any.whl">lab_words</a>\n')


def forge(lab):
    """The project, as a repository that takes pushes by HTTP and by ssh."""
    env = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null",
               GIT_AUTHOR_NAME="lab", GIT_AUTHOR_EMAIL="lab@lab.test",
               GIT_COMMITTER_NAME="lab", GIT_COMMITTER_EMAIL="lab@lab.test")
    tree, bare = lab.dir + "/project", lab.dir + "/git/project.git"
    for path, text in PROJECT.items():
        add(f"{tree}/{path}", text)
    sh("git", "init", "-q", "-b", "main", tree, env=env)
    sh("git", "-C", tree, "add", ".", env=env)
    sh("git", "-C", tree, "commit", "-q", "-m", "first", env=env)
    sh("git", "clone", "-q", "--bare", tree, bare, env=env)
    sh("git", "-C", bare, "config", "http.receivepack", "true")
    return bare


def services(case):
    """Once a lab: all of it, served."""
    lab = case.lab
    if os.path.exists(lab.dir + "/git"):
        return
    for name, files in NPM.items():
        npm_package(lab.dir + "/www", name, files)
    wheel(lab.dir + "/www")
    forge(lab)
    server = lab.write("git_server.py", GIT_SERVER)
    lab.spawn("nsenter", "-t", str(lab.holder.pid), "-n", "python3", server,
              lab.dir + "/git", str(GIT_PORT))
    lab.wait(lambda: lab.listens("127.0.0.1", GIT_PORT), "the forge")


# --- a person at a terminal ----------------------------------------------------


class Terminal:
    """A command that has a terminal, and what is typed into that."""

    def __init__(self, argv, cwd, env, rows=24, columns=80):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(cwd)
                os.execvpe(argv[0], argv, env)
            finally:
                os._exit(127)
        self.text = ""
        self.size(rows, columns)

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            more = os.read(self.fd, 65536)
        except OSError:
            more = b""
        self.text += more.decode(errors="replace")
        return bool(more)

    def until(self, what, seconds=60):
        """What was shown up to @what, which is then gone."""
        end = time.monotonic() + seconds
        while what not in self.text:
            check(time.monotonic() < end and self.read(end - time.monotonic()),
                  f"no {what!r} in {self.text!r}")
        before, _, self.text = self.text.partition(what)
        return before

    def say(self, text, expect):
        self.type(text)
        return self.until(expect)

    def wait(self):
        """Its exit status."""
        while self.read(60):
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)

    def close(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self.fd)
        except (ProcessLookupError, ChildProcessError, OSError):
            pass
