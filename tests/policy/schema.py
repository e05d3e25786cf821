#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/policy.schema.json says what the loader says: everything shipped is
valid, everything in bad/ is refused, but for what only the loader can see."""
import glob
import os
import re
import sys

import policy_yaml
import schema_sandbox
from policy_yaml import TOP

V = "version: 1\n"

GOOD = """
allow:
===
allow: []
deny:
===
name: a
note: |
  two
  lines
===
default: public
mode: observe
===
extends: []
===
extends: [github, ./base.yaml, base.yml, ../team/base]
===
dns: {}
limits: {}
===
dns: { answers: real, upstream: [system, 192.0.2.53, "192.0.2.53:5353", "2001:db8::53", "[2001:db8::53]:53"] }
===
limits: { connections: "1", connections_per_second: 2, names: 3, names_per_wildcard: 4, dns_per_second: 5, upload: 1 GB, download: 12 }
===
log: {}
===
log: { sign: every, durability: record, rotate: 64 KiB, rotate_after: 24h }
===
log: { sign: batch, durability: batch, rotate: 65536, rotate_after: 1 }
===
log: { rotate: 1000 TB, rotate_after: 365d }
===
allow: [a.example, "*.a.example", localhost, _srv._tcp.example, A.Example., xn--bcher-kva.example]
===
allow: [bücher.example, "*.παράδειγμα.example"]
===
allow: [7.example, 0x7f.1.example, "1-2.example", true.example]
===
allow:
  - { host: a.example, ports: [1, 65535, 22-22, "443", 8000-8100] }
===
allow:
  - { host: a.example, addresses: [10.0.0.0/8, "fc00::/7", 127.0.0.1, "::1", "::ffff:10.0.0.0/104"] }
===
allow:
  - { host: a.example, addresses: [] }
===
allow:
  - { address: 198.51.100.0/24, ports: [8443] }
  - { address: "2001:db8::/32" }
===
allow:
  - { host: a.example, ports: [80], methods: [GET, HEAD, PROPFIND, M-SEARCH], paths: [/, /a/**, /a/*/c, "/**", /a/, "/~a/.b/...", "/a:b,c=@[d]"] }
===
allow:
  - { host: a.example, ports: [80, 442, 444-500, 1-442], methods: [GET] }
  - { host: b.example, ports: [80], methods: [GET], protocol: http }
===
allow:
  - { host: a.example, protocol: any, ports: [443] }
  - { host: b.example, protocol: tls }
  - { host: c.example, protocol: http, ports: [8080] }
===
allow:
  - { host: a.example, tls: { ech: allow } }
  - { host: b.example, tls: { ech: deny }, protocol: tls }
  - { address: 192.0.2.0/24, tls: {} }
===
allow:
  - { host: llm.example, connect: "127.0.0.1:11434", ports: [80] }
  - { host: llm6.example, connect: "[::1]:11434" }
===
allow:
  - { host: a.example, doors: [proxy] }
  - { host: b.example, doors: [proxy, transparent] }
===
allow:
  - { host: a.example, dns: { types: [TXT, MX, SRV] } }
  - { host: b.example, dns: {} }
===
allow:
  - { host: a.example, expires: 2027-01-01T00:00:00Z }
  - { host: b.example, expires: "2027-12-31" }
  - { host: c.example, expires: 2028-02-29 }
===
allow:
  - { host: a.example, upload: 10 MB, download: 1 GiB }
  - { host: b.example, upload: 10MB, download: 1000 }
  - { host: c.example, upload: 5 kB, download: 7 B }
  - { host: d.example, upload: "5", download: 010 TB }
===
allow:
  - host: a.example
    note: "a: b"
===
deny: [a.example, "*.b.example", github]
===
deny:
  - { host: a.example, ports: [25] }
  - { address: 10.0.0.0/8, note: x }
  - { file: ./list.txt, note: y }
"""

BAD = """
alow: [a.example]
===
Allow: []
===
version: 2
===
version: "1"
===
allow: a.example
===
allow: { a.example: 1 }
===
allow: [[a.example]]
===
allow: [~]
===
allow: [7]
===
allow: [true]
===
allow: [a.example]
allow: [b.example]
===
<<: { name: a }
===
name: ""
===
name: 7
===
name: "a\\tb"
===
note: [a]
===
default: allow
===
default: [deny]
===
mode: monitor
===
extends: github
===
extends: [githb]
===
extends: [7]
===
inspect: true
===
ceiling: {}
===
dns: []
===
dns: { answer: real }
===
dns: { answers: fake }
===
dns: { upstream: [] }
===
dns: { upstream: 192.0.2.53 }
===
dns: { upstream: [dns.example] }
===
dns: { upstream: ["192.0.2.53:0"] }
===
dns: { upstream: ["192.0.2.53:70000"] }
===
limits: []
===
limits: { connection: 5 }
===
limits: { connections: many }
===
limits: { connections: -1 }
===
limits: { connections: 1.5 }
===
limits: { upload: 1 gb }
===
limits: { upload: 1  GB }
===
limits: { upload: -1 }
===
limits: { upload: GB }
===
limits: { upload: 0 }
===
limits: { upload: 0 MB }
===
limits: { upload: 1.5 GB }
===
limits: { connections: 0 }
===
limits: { connections: 65536 }
===
limits: { names: 4001 }
===
log: []
===
log: { file: x }
===
log: { sign: never }
===
log: { durability: every }
===
log: { rotate: 65535 }
===
log: { rotate: 0 }
===
log: { rotate: never }
===
log: { rotate_after: 0 }
===
log: { rotate_after: 0h }
===
log: { rotate_after: 1.5h }
===
log: { rotate_after: 1 h }
===
log: { rotate_after: 1w }
===
allow: ["*"]
===
allow: ["*.*.example"]
===
allow: ["a*.example"]
===
allow: ["a.*.example"]
===
allow: [""]
===
allow: [a..example]
===
allow: [.a.example]
===
allow: [-a.example]
===
allow: [a-.example]
===
allow: ["https://a.example/"]
===
allow: ["a.example:443"]
===
allow: [a.example/x]
===
allow: [user@a.example]
===
allow: ["a b.example"]
===
allow: [10.0.0.1]
===
allow: [0x7f.1]
===
allow: ["::1"]
===
allow: [aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example]
===
allow: [github]
===
allow: [{}]
===
allow: [{ ports: [1] }]
===
allow: [{ host: a.example, address: 192.0.2.1 }]
===
allow: [{ host: [a.example] }]
===
allow: [{ host: a.example, port: [443] }]
===
allow: [{ host: a.example, file: ./x }]
===
allow: [{ host: a.example, inspect: true }]
===
allow: [{ host: a.example, ports: 443 }]
===
allow: [{ host: a.example, ports: [] }]
===
allow: [{ host: a.example, ports: [0] }]
===
allow: [{ host: a.example, ports: [65536] }]
===
allow: [{ host: a.example, ports: [https] }]
===
allow: [{ host: a.example, ports: [5-] }]
===
allow: [{ host: a.example, ports: [4.5] }]
===
allow: [{ host: a.example, ports: ["0443"] }]
===
allow: [{ host: a.example, addresses: 10.0.0.0/8 }]
===
allow: [{ host: a.example, addresses: [10.0.0.0/33] }]
===
allow: [{ host: a.example, addresses: [ten] }]
===
allow: [{ host: a.example, addresses: [010.0.0.1] }]
===
allow: [{ address: 192.0.2.1, addresses: [192.0.2.1] }]
===
allow: [{ address: a.example }]
===
allow: [{ host: a.example, methods: [GET] }]
===
allow: [{ host: a.example, paths: [/a] }]
===
allow: [{ host: a.example, ports: [80, 443], methods: [GET] }]
===
allow: [{ host: a.example, ports: ["443"], methods: [GET] }]
===
allow: [{ host: a.example, ports: [400-500], methods: [GET] }]
===
allow: [{ host: a.example, ports: [1-65535], paths: [/a] }]
===
allow: [{ host: a.example, ports: [80], methods: GET }]
===
allow: [{ host: a.example, ports: [80], methods: [] }]
===
allow: [{ host: a.example, ports: [80], methods: ["G T"] }]
===
allow: [{ host: a.example, ports: [80], paths: [a/b] }]
===
allow: [{ host: a.example, ports: [80], paths: [/a/**/b] }]
===
allow: [{ host: a.example, ports: [80], paths: [/a**] }]
===
allow: [{ host: a.example, ports: [80], paths: ["/a?b=c"] }]
===
allow: [{ host: a.example, ports: [80], paths: [/a/*.txt] }]
===
allow: [{ host: a.example, ports: [80], paths: [/a/../b] }]
===
allow: [{ host: a.example, ports: [80], paths: [//a] }]
===
allow: [{ host: a.example, ports: [80], paths: [/%61] }]
===
allow: [{ host: a.example, ports: [80], paths: [/ä] }]
===
allow: [{ host: a.example, ports: [80], methods: [get] }]
===
allow: [{ host: a.example, ports: [80], methods: [CONNECT] }]
===
allow: [{ host: a.example, ports: [80], methods: [GET], protocol: tls }]
===
allow: [{ address: 192.0.2.1, dns: { types: [TXT] } }]
===
allow: [{ host: a.example, dns: { types: [HTTPS] } }]
===
deny: [{ file: ./x, ports: [443] }]
===
allow: [{ host: a.example, expires: 1969-12-31 }]
===
allow: [{ host: a.example, protocol: https }]
===
allow: [{ host: a.example, protocol: [tls] }]
===
allow: [{ host: a.example, tls: deny }]
===
allow: [{ host: a.example, tls: { ech: grease } }]
===
allow: [{ host: a.example, tls: { sni: deny } }]
===
allow: [{ host: a.example, ports: [8080], protocol: http, tls: { ech: deny } }]
===
allow: [{ host: a.example, ports: [80], methods: [GET], tls: { ech: deny } }]
===
deny: [{ host: a.example, tls: { ech: deny } }]
===
allow: [{ host: "*.example", connect: "127.0.0.1:80" }]
===
allow: [{ address: 192.0.2.1, connect: "127.0.0.1:80" }]
===
allow: [{ host: a.example, connect: 127.0.0.1 }]
===
allow: [{ host: a.example, connect: "localhost:80" }]
===
allow: [{ host: a.example, connect: "127.0.0.1:0" }]
===
allow: [{ host: a.example, doors: proxy }]
===
allow: [{ host: a.example, doors: [socks] }]
===
allow: [{ host: a.example, dns: [TXT] }]
===
allow: [{ host: a.example, dns: { types: [txt] } }]
===
allow: [{ host: a.example, dns: { upstream: [system] } }]
===
allow: [{ host: a.example, expires: tomorrow }]
===
allow: [{ host: a.example, expires: 2027-13-01 }]
===
allow: [{ host: a.example, expires: 2027-01-01T24:00:00Z }]
===
allow: [{ host: a.example, expires: 2027-01-01T00:00:00 }]
===
allow: [{ host: a.example, expires: 2027 }]
===
allow: [{ host: a.example, upload: 10 MiBs }]
===
allow: [{ host: a.example, upload: 10 Mb }]
===
allow: [{ host: a.example, note: [x] }]
===
deny: [{ host: a.example, methods: [GET] }]
===
deny: [{ host: a.example, expires: 2027-01-01 }]
===
deny: [{ host: a.example, file: ./x }]
===
deny: [{ host: a.example, addresses: [10.0.0.0/8] }]
===
deny: [{ address: 10.0.0.0/8, ports: [22] }]
===
deny: [{ file: "" }]
===
deny: [{ ports: [22] }]
===
deny: [10.0.0.0/8]
===
deny: 7
===
allow: [a.example
"""

failed = 0


def fail(what):
    global failed
    failed += 1
    print("FAILED:", what)


def read(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def inline(*texts):
    return [V * ("version:" not in part) + part
            for text in texts for part in text.strip("\n").split("\n===\n")]


def shipped():
    """Everything that we give people as a policy: (name, text)."""
    for folder in ("policy/presets", "deploy/examples"):
        paths = sorted(glob.glob(os.path.join(TOP, folder, "*.yaml")))
        if not paths:
            fail(f"{folder} is empty")
        yield from ((path, read(path)) for path in paths)
    blocks = re.findall(r"^```yaml\n(.*?)^```", read(TOP + "/README.md"),
                        re.M | re.S)
    if not blocks:
        fail("README.md has no policy")
    for i, block in enumerate(blocks):
        yield f"README.md, block {i + 1}", block


def check_presets():
    """The schema offers the presets by name: all of them, and no others."""
    have = sorted(os.path.basename(path)[:-len(".yaml")]
                  for path in glob.glob(TOP + "/policy/presets/*.yaml"))
    schema = policy_yaml.schema()
    said = schema["properties"]["extends"]["items"]["anyOf"][0]["enum"]
    entry = schema["definitions"]["allowEntry"]["anyOf"][0]["allOf"][1]
    if said != have or entry["not"]["enum"] != have:
        fail(f"the presets in the schema are not {have}")


def check_bad_files(check):
    """Each file in bad/ is refused, or listed as what a schema can't see."""
    folder = os.path.join(TOP, "tests", "policy", "bad")
    paths = sorted(glob.glob(folder + "/*.yaml"))
    listing = folder + "/SEMANTIC"
    semantic = set(read(listing).split()) if os.path.exists(listing) else set()
    for path in paths:
        name = os.path.basename(path)
        found = policy_yaml.faults(check, read(path))
        if name in semantic and found:
            fail(f"bad/{name} is in SEMANTIC, but refused: {found[0]}")
        if name not in semantic and not found:
            fail(f"bad/{name} is accepted, and not in SEMANTIC")
    for name in semantic - {os.path.basename(path) for path in paths}:
        fail(f"SEMANTIC names {name}, which is not there")
    return len(paths)


def main():
    check = policy_yaml.validator()
    check_presets()
    good = list(shipped()) + [(text, text) for text in
                              inline(GOOD, schema_sandbox.GOOD)]
    for name, text in good:
        for fault in policy_yaml.faults(check, text):
            fail(f"{name}: {fault}")
    bad = inline(BAD, schema_sandbox.BAD)
    for text in bad:
        if not policy_yaml.faults(check, text):
            fail(f"accepted: {text}")
    files = check_bad_files(check)
    print(f"schema: {len(good)} valid, {len(bad)} and {files} files refused")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
