# SPDX-License-Identifier: Apache-2.0
"""ClientHellos, built by hand from the pieces of attack_lab.py."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from attack_lab import COMMON

common = {}
exec(COMMON, common)
client_hello, record, sni, ext = (common[x] for x in
                                  ("client_hello", "record", "sni", "ext"))

# RFC 8446 section 6, by our reasons.
ALERTS = {"name_mismatch": 112, "no_name": 109, "malformed": 50, "protocol": 40,
          "ech": 49, "timeout": 80}

# What a server needs to answer: without them it is no hello to it.
USUAL = (ext(10, b"\0\4\0\x1d\0\x17"), ext(11, b"\1\0"),
         ext(13, b"\0\x08\4\3\x08\4\4\1\5\1"), ext(23, b""))


def alert(code):
    return bytes([21, 3, 3, 0, 2, 2, code])


def message(name, *more):
    """A handshake message; @name: str, bytes, or None for no extension."""
    if isinstance(name, str):
        name = name.encode()
    first = () if name in (None, b"") else (sni(name),)
    return client_hello(*first, *USUAL, *more)


def hello(name, *more):
    return record(message(name, *more))
