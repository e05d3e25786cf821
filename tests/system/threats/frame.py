# SPDX-License-Identifier: Apache-2.0
"""How a row of the catalogue becomes a test.

    @row("N5", doors=NAME_DOORS)
    def trailing_dots(world, door):
        \"\"\"What we do, for docs/threats.md.\"\"\"

A row is called once for each door, or once with the world alone if it has none.
An id may have several functions. What can't be tested here has a reason instead:

    not_here("X1", "why")
"""
import sys

# CONNECT, absolute-form HTTP, SOCKS5, and what arrives with no proxy: by SNI, by
# Host, and DNS; see policy_probe.py.
CONNECT, HTTP, SOCKS, SNI, HOST, DNS = "connect", "http", "socks", "sni", "host", "dns"
NAME_DOORS = (CONNECT, HTTP, SOCKS, SNI, HOST, DNS)
FLOW_DOORS = (CONNECT, HTTP, SOCKS, SNI, HOST)
TLS_DOORS = (CONNECT, SOCKS, SNI)
HTTP_DOORS = (HTTP, HOST)

ROWS, REASONS = [], {}


class Row:
    def __init__(self, id, fn, doors, technique, who, early):
        self.id, self.fn, self.doors, self.who = id, fn, doors, who
        self.technique, self.early = technique, early
        self.file = sys.modules[fn.__module__].__name__
        self.does = " ".join((fn.__doc__ or "").split())

    def __str__(self):
        return f"{self.id} {self.fn.__name__}"


def row(id, doors=None, technique=None, who=("root", "user"),
        early=None):
    """@technique: of cases that are not in the catalogue. @who runs it. @early is
    called with the world before all rows: for what takes its time."""
    def register(fn):
        if not fn.__doc__:
            raise SyntaxError(f"{id} {fn.__name__}: no word on what we do")
        ROWS.append(Row(id, fn, doors, technique, who, early))
        return fn
    return register


def not_here(id, why):
    REASONS[id] = why


def check(condition, *about):
    if not condition:
        raise AssertionError(" ".join(short(x) for x in about))


def short(x):
    text = x if isinstance(x, str) else repr(x)
    return text if len(text) < 500 else f"{text[:300]} ... {text[-150:]}"


def equal(got, want, *about):
    check(got == want, "got", short(got), "want", short(want), *about)
