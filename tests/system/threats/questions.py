# SPDX-License-Identifier: Apache-2.0
"""Questions as bytes."""
import struct

from fdns import wire_name


def questions(messages, tcp=False, wait=30):
    """Asks each from a port of its own: [(port, answer)]."""
    said = []
    for m in messages:
        if tcp:
            port, got, _ = talk((GW, 53), [struct.pack(">H", len(m)) + m],
                                end=True, timeout=wait)
            said.append((port, got[2:]))
            continue
        s = doors.bind(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        s.settimeout(wait)
        s.connect((GW, 53))
        s.send(m)
        try:
            got = s.recv(4096)
        except OSError:
            got = b""
        said.append((s.getsockname()[1], got))
    return said


def message(name, kind=1, klass=1, flags=0x100, counts=(1, 0, 0, 0), tail=b""):
    name = name if isinstance(name, bytes) else wire_name(name)
    return (struct.pack(">6H", 77, flags, *counts) + name +
            struct.pack(">2H", kind, klass) + tail)


def asked(box, kind, name):
    """What is known of a question that the probes have no type for."""
    return box.call(questions, [message(name, kind)])[0]


def rcode(answer):
    return answer[3] & 15 if len(answer) > 3 else None


def answers(answer):
    return struct.unpack(">H", answer[6:8])[0]
