# SPDX-License-Identifier: Apache-2.0
"""What schema.py tries of `sandbox`, where a policy says what its box is like."""

GOOD = """
sandbox: {}
===
sandbox: { fs: private, nest: false, rw: [], ro: [], hide: [], env: [] }
===
sandbox:
  fs: host
  nest: true
  rw: [~/.cache, ./x, ../y, /srv/z, .]
  ro: ["~"]
  hide: [./a b]
  env: [ANTHROPIC_API_KEY, _x1]
  memory: 2G
  pids: 200
  cpus: 1.5
  fsize: 1 GB
  nofile: "64"
  timeout: 30m
===
sandbox: { memory: 4194304, cpus: 2, fsize: 1, timeout: 30d }
"""

BAD = """
sandbox: []
===
sandbox: { disk: 1 }
===
sandbox: { fs: view }
===
sandbox: { nest: maybe }
===
sandbox: { rw: /srv }
===
sandbox: { rw: [""] }
===
sandbox: { hide: ["~root/x"] }
===
sandbox: { hide: [/srv/*.key] }
===
sandbox: { ro: [$HOME/x] }
===
sandbox: { env: [A=b] }
===
sandbox: { env: [1A] }
===
sandbox: { memory: 1 XB }
===
sandbox: { memory: 4194303 }
===
sandbox: { pids: 0 }
===
sandbox: { cpus: 0 }
===
sandbox: { cpus: "1.2345" }
===
sandbox: { cpus: 5000 }
===
sandbox: { fsize: 0 }
===
sandbox: { nofile: 1048577 }
===
sandbox: { timeout: 1w }
===
sandbox: { timeout: 2592001 }
"""
