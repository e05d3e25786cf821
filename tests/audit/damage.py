#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""damage.py - a good log, damaged in every way we could think of.

Each case says what `sallyport verify` has to find first: the word, the file and
the line; or that nothing is wrong. damage.py SESSION SALLYPORT, see session.c.
"""
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SESSION, SALLYPORT = (os.path.abspath(p) for p in sys.argv[1:3])
ID = "20261121T120000Z-0123456789"
OTHER = "20261121T130000Z-abcdefabcd"
NAME = "box.example"
KEY = f"{NAME}/{ID}"
P1, P2, P3 = "audit.jsonl.000001", "audit.jsonl.000002", "audit.jsonl"
PARTS = (P1, P2, P3)  # 100 records each
NOTES, RECEIPT, VKEY = "checkpoints", "receipt.dsse.json", "session.vkey"
TYPE = "application/vnd.in-toto+json"
# Checkpoints are of 64, 100, 128, 192, 200, 256 and 300 records.

CASES = []


def case(word, file=None, line=None, **how):
    """Expect @word (a fault, or the verdict when nothing is wrong)."""
    def register(function):
        CASES.append((function.__name__, word, file, line, how, function))
        return function
    return register


def run(*argv, data=None):
    return subprocess.run(argv, input=data, stdout=subprocess.PIPE, check=True,
                          timeout=60).stdout


def make(path, **words):
    os.makedirs(path)
    run(SESSION, "make", path, *(f"{k}={v}" for k, v in words.items()))
    return path


class Log:
    """The files of a log, to be read and written."""
    def __init__(self, path):
        self.path = path
        self.argv = []
        self.top = path

    def file(self, name):
        return os.path.join(self.path, name)

    def read(self, name):
        with open(self.file(name), "rb") as f:
            return f.read()

    def write(self, name, data):
        with open(self.file(name), "wb") as f:
            f.write(data)

    def lines(self, name):
        return self.read(name).split(b"\n")[:-1]

    def put(self, name, lines):
        self.write(name, b"".join(line + b"\n" for line in lines))

    def sub(self, name, number, old, new):
        """In line @number, from 1."""
        lines = self.lines(name)
        assert old in lines[number - 1], lines[number - 1]
        lines[number - 1] = lines[number - 1].replace(old, new, 1)
        self.put(name, lines)

    def notes(self):
        lines = self.read(NOTES).split(b"\n")[:-1]
        return [b"".join(x + b"\n" for x in lines[i:i + 5])
                for i in range(0, len(lines), 5)]

    def put_notes(self, notes):
        self.write(NOTES, b"".join(notes))

    def rechain(self):
        """What who has no key can do about an edit."""
        before = None
        for name in PARTS:
            lines = self.lines(name)
            for i, line in enumerate(lines):
                if before:
                    line = re.sub(rb'"prev":"[0-9a-f]{64}"',
                                  b'"prev":"' + before + b'"', line)
                lines[i] = line
                before = leaf(line).hex().encode()
            self.put(name, lines)

    def renumber(self):
        count = 0
        for name in PARTS:
            lines = self.lines(name)
            for i, line in enumerate(lines):
                line = re.sub(rb'"sequence":\d+', b'"sequence":%d' % count,
                              line)
                lines[i] = re.sub(rb'(-[0-9a-f]{10})/\d+"', rb'\1/%d"' % count,
                                  line)
                count += 1
            self.put(name, lines)

    def all_lines(self):
        return [x for name in PARTS for x in self.lines(name)]

    def statement(self):
        envelope = json.loads(self.read(RECEIPT))
        return json.loads(base64.b64decode(envelope["payload"]))

    def sign(self, statement, seed=1, name=KEY, media=TYPE):
        body = json.dumps(statement).encode()
        self.write(RECEIPT, run(SESSION, "dsse", name, str(seed), media,
                                data=body))


def leaf(data):
    return hashlib.sha256(b"\0" + data).digest()


def root(leaves):
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return hashlib.sha256(b"\1" + root(leaves[:k]) + root(leaves[k:])).digest()


def note(size, digest, seed=1, name=KEY):
    return run(SESSION, "checkpoint", name, str(seed), str(size), digest.hex())


# Nothing wrong.

@case("holds")
def good(log):
    pass


@case("incomplete", key=None)
def good_without_a_key(log):
    pass


@case("holds", key="config")
def good_with_the_key_of_the_configuration(log):
    pass


@case("holds", make={"backwards": 1})
def clock_goes_backwards(log):
    pass


@case("holds", make={"hostile": 1})
def hostile_text_in_every_field(log):
    for name in PARTS:
        lines = log.lines(name)
        assert len(lines) == 100, (name, len(lines))
        for line in lines:
            assert json.loads(line) and not re.search(
                rb"[\x00-\x1f\x7f]|\xe2\x80\xae|\xc2\x9b", line)


@case("holds", make={"every": 1})
def a_checkpoint_for_each_record(log):
    pass


@case("holds", make={"parts": 1, "records": 2})
def shortest_session(log):
    pass


@case("incomplete", make={"close": 0, "receipt": 0})
def session_that_goes_on(log):
    pass


@case("incomplete")
def receipt_removed(log):
    os.unlink(log.file(RECEIPT))


@case("incomplete", make={"close": 0, "receipt": 0})
def killed_within_a_line(log):
    log.write(P3, log.read(P3) + log.lines(P3)[-1][:100])


@case("incomplete", make={"close": 0, "receipt": 0})
def killed_within_a_checkpoint(log):
    log.write(NOTES, log.read(NOTES) + log.notes()[0][:50])


@case("incomplete", make={"close": 0, "receipt": 0})
def killed_before_a_checkpoint(log):
    log.put_notes(log.notes()[:-1])


@case("holds")
def checkpoint_kept_elsewhere(log):
    log.write("kept", log.notes()[2])
    log.argv += ["--checkpoint", log.file("kept")]


@case("holds")
def receipt_kept_elsewhere(log):
    os.rename(log.file(RECEIPT), log.file("r.json"))
    log.argv += ["--receipt", log.file("r.json")]


# Edits: every kind of field, in every kind of place.

def edit(name, file, number, old, new, word="edited", at=None):
    def function(log):
        log.sub(file, number, old, new)
    function.__name__ = "edit_" + name
    case(word, *(at or (file, number)))(function)


edit("host", P2, 17, b"h116.test", b"h117.test")
edit("time", P1, 5, b'"time":17', b'"time":18')
edit("port", P1, 4, b'"port":443', b'"port":444')
edit("verdict", P2, 44, b'"status_id":1', b'"status_id":2')
edit("reason", P1, 4, b"not_in_policy", b"rule")
edit("message", P1, 12, b'"message":"', b'"message":"x')
edit("policy_digest", P3, 9, b"sha256:1111", b"sha256:1112")
edit("class", P1, 60, b'"class_uid":4', b'"class_uid":5')
edit("product_version", P1, 60, b'"version":"0', b'"version":"9')
edit("last_of_a_part", P1, 100, b"h99.test", b"h98.test")
edit("first_of_a_part", P2, 1, b"h100.test", b"h101.test")
edit("first_record", P1, 1, b"p.yaml", b"q.yaml")
edit("ruleset_of_the_first", P1, 1, b"sha256:2222", b"sha256:2223")
edit("sequence", P1, 50, b'"sequence":49', b'"sequence":50')
edit("sequence_far", P1, 50, b'"sequence":49', b'"sequence":5000')
edit("uid", P2, 2, ID.encode() + b"/101", ID.encode() + b"/102")
edit("session", P2, 2, b'"correlation_uid":"2026', b'"correlation_uid":"2027')
edit("prev_digit", P2, 30, b'"prev":"', b'"prev":"0', "edited")
edit("boundary", P2, 3, b'"boundary":"netns"', b'"boundary":"external"')
edit("event_unknown", P2, 3, b'"event":"', b'"event":"x', "not_a_record")
edit("product", P2, 3, b'"name":"sallyport"', b'"name":"sallyp0rt"',
     "not_a_record")
edit("key_twice", P2, 9, b'"metadata":{', b'"metadata":{"uid":"x",',
     "not_a_record")
edit("white_space", P2, 9, b'"metadata":{', b'"metadata": {', "not_a_record")
edit("key_renamed", P2, 9, b'"sequence"', b'"sequencf"', "not_a_record")
edit("brace", P2, 9, b"}}", b"}", "not_a_record")
edit("number_as_text", P2, 9, b'"sequence":108', b'"sequence":"108"',
     "not_a_record")
edit("float", P2, 9, b'"sequence":108', b'"sequence":108.0', "not_a_record")
edit("cr_lf", P2, 9, b"}}", b"}}\r", "not_a_record")
edit("nul", P2, 9, b"h108", b"h\x0008", "not_a_record")
edit("escape_character", P2, 9, b"h108", b"h\x1b08", "not_a_record")
edit("bad_utf8", P2, 9, b"h108", b"h\xff08", "not_a_record")
edit("overlong_utf8", P2, 9, b"h108", b"h\xc0\xaf8", "not_a_record")
edit("surrogate", P2, 9, b"h108", b"h\\ud8008", "not_a_record")
edit("too_long", P2, 9, b'"message":"', b'"message":"' + b"x" * 70000,
     "too_long")
edit("far_too_long", P2, 9, b'"message":"', b'"message":"' + b"x" * 700000,
     "too_long")
edit("nested_deep", P2, 9, b'"metadata":{',
     b'"x":' + b"[" * 5000 + b"]" * 5000 + b',"metadata":{', "not_a_record")
# Nothing comes after it, so only the checkpoint knows.
edit("last_record", P3, 100, b"p.yaml", b"q.yaml", "root", (P3, 57))
edit("rotated_split", P2, 40, b"}}", b"}}\n", "not_a_record", (P2, 41))


@case("edited", P1, 20)
def prev_of_a_line_before_a_checkpoint(log):
    """Both lines are possible; which one it is, is in the text."""
    log.sub(P1, 21, b'"prev":"', b'"prev":"' + b"0" * 64 + b'","x":"')


@case("edited", P1, 65)
def prev_of_the_line_after_a_checkpoint(log):
    line = log.lines(P1)[64]
    prev = re.search(rb'"prev":"([0-9a-f]{64})"', line).group(1)
    log.sub(P1, 65, prev, b"0" * 64)


@case("edited", P2, 77)
def prev_missing(log):
    lines = log.lines(P2)
    lines[76] = re.sub(rb',"prev":"[0-9a-f]{64}"', b"", lines[76])
    log.put(P2, lines)


@case("edited", P2, 10)
def two_edits(log):
    log.sub(P3, 50, b"p.yaml", b"q.yaml")
    log.sub(P2, 10, b"p.yaml", b"q.yaml")


@case("edited", P2, 10)
def neighbours_edited(log):
    for number in (10, 11, 12):
        log.sub(P2, number, b"p.yaml", b"q.yaml")


def bit(file, offset, which, word, line):
    def function(log):
        data = bytearray(log.read(file))
        at = offset(data) if callable(offset) else offset
        data[at] ^= 1 << which
        log.write(file, bytes(data))
        if callable(line):
            function.line = line(data, at)
    function.__name__ = f"bit_{len(CASES)}_{file}"
    case(word, file, line)(function)


# One bit: in each of these bytes of line 30 of a part, any of the lower six.
def in_line(number, share):
    def offset(data):
        lines = bytes(data).split(b"\n")
        start = sum(len(x) + 1 for x in lines[:number - 1])
        return start + int(len(lines[number - 1]) * share)
    return offset


for share in (0.0, 0.13, 0.37, 0.5, 0.77, 0.999):
    bit(P2, in_line(30, share), 0, ("edited", "not_a_record"), 30)


# Lines that come and go.

def lines_of(file, word, at, change, then=()):
    def register(name):
        def function(log):
            lines = log.lines(file)
            change(lines)
            log.put(file, lines)
            for step in then:
                getattr(log, step)()
        function.__name__ = name
        case(word, file, at)(function)
    return register


def swap(a, b):
    def change(lines):
        lines[a], lines[b] = lines[b], lines[a]
    return change


def delete(a, b=None):
    def change(lines):
        del lines[a:b or a + 1]
    return change


def insert(at, source):
    return lambda lines: lines.insert(at, lines[source])


lines_of(P2, "missing", 30, delete(29))("delete_one")
lines_of(P2, "missing", 30, delete(29, 50))("delete_many")
lines_of(P1, "missing", 1, delete(0))("delete_the_first")
lines_of(P2, "missing", 1, delete(0))("delete_the_first_of_a_part")
lines_of(P2, "repeated", 31, insert(30, 29))("repeat_one")
lines_of(P2, "repeated", 81, insert(80, 3))("repeat_one_later")
lines_of(P2, "order", 11, insert(10, 70))("insert_one_from_later")
lines_of(P2, "order", 30, swap(29, 30))("swap_two_neighbours")
lines_of(P2, "order", 30, swap(29, 60))("swap_two")
lines_of(P2, "not_a_record", 30, lambda x: x.insert(29, b""))("empty_line")
lines_of(P2, "not_a_record", 30, lambda x: x.insert(29, b"{}"))("empty_object")
lines_of(P2, "not_a_record", 30, lambda x: x.insert(29, b"# hello"))("comment")
lines_of(P2, "repeated", 31, lambda x: x.insert(30, x[29].replace(
    b"p.yaml", b"q.yaml")))("insert_a_forged_one")
lines_of(P3, "after_the_end", 101, lambda x: x.append(x[-1]))("close_twice")
lines_of(P3, "not_a_record", 101, lambda x: x.append(b"x"))("rubbish_at_the_end")
lines_of(P2, "root", 29, lambda x: x.__setitem__(
    39, x[39].replace(b"p.yaml", b"q.yaml")), ("rechain",))("rechained_edit")
lines_of(P2, "root", 29, delete(39), ("renumber", "rechain"))(
    "rechained_deletion")
lines_of(P2, "root", 29, insert(39, 38), ("renumber", "rechain"))(
    "rechained_insertion")
lines_of(P2, "root", 29, swap(39, 40), ("renumber", "rechain"))(
    "rechained_swap")
lines_of(P2, "missing", 40, delete(39), ("rechain",))("rechained_gap")
lines_of(P2, "repeated", 30, lambda x: x.__setitem__(29, x[29].replace(
    b'"event":"dns_query"', b'"event":"session_open"').replace(
        b'"event":"flow_open"', b'"event":"session_open"').replace(
        b'"event":"flow_close"', b'"event":"session_open"')), ("rechain",))(
            "opened_twice")
lines_of(P1, "edited", 1, lambda x: x.__setitem__(0, x[0].replace(
    b'"event":"session_open"', b'"event":"policy"')))("never_opened")


@case("after_the_end", P2, 31)
def closed_in_the_middle(log):
    lines = log.lines(P2)
    lines[29] = re.sub(rb'"event":"[a-z_]+"', b'"event":"session_close"',
                       lines[29])
    log.put(P2, lines)
    log.rechain()


@case("after_the_end", P3, 101)
def record_after_close(log):
    lines = log.lines(P3)
    line = lines[-2].replace(b'"sequence":298', b'"sequence":300')
    line = line.replace(ID.encode() + b"/298", ID.encode() + b"/300")
    line = re.sub(rb'"prev":"[0-9a-f]{64}"',
                  b'"prev":"' + leaf(lines[-1]).hex().encode() + b'"', line)
    log.put(P3, lines + [line])


@case("other_session", P2, 1)
def part_of_another_session(log):
    other = Log(make(log.path + ".o", session=OTHER))
    log.write(P2, other.read(P2))


@case("other_session", P2, 12)
def line_of_another_session(log):
    other = Log(make(log.path + ".o", session=OTHER))
    lines = log.lines(P2)
    lines[11] = other.lines(P2)[11]
    log.put(P2, lines)


@case("other_session", P1, 1)
def records_of_another_session(log):
    other = Log(make(log.path + ".o", session=OTHER))
    for name in PARTS:
        log.write(name, other.read(name))


# Truncation.

@case("truncated", P3, 99)
def last_line_gone(log):
    log.put(P3, log.lines(P3)[:-1])


@case("truncated", P3, 10)
def many_last_lines_gone(log):
    log.put(P3, log.lines(P3)[:10])


@case("truncated", P3, 99)
def last_line_gone_and_the_receipt(log):
    log.put(P3, log.lines(P3)[:-1])
    os.unlink(log.file(RECEIPT))


@case("torn", P3, 100)
def last_line_cut(log):
    log.write(P3, log.read(P3)[:-20])


@case("torn", P3, 100)
def last_line_feed_gone(log):
    log.write(P3, log.read(P3)[:-1])


@case("torn", P1, 100)
def part_cut(log):
    log.write(P1, log.read(P1)[:-20])


@case("truncated", P3, 99, make={"close": 0, "receipt": 0})
def open_log_cut_behind_its_checkpoint(log):
    log.write(P3, log.read(P3)[:-20])


@case("truncated", NOTES, 30)
def last_checkpoint_gone(log):
    log.put_notes(log.notes()[:-1])


@case("truncated", NOTES, 5)
def all_checkpoints_but_one_gone(log):
    log.put_notes(log.notes()[:1])


@case("receipt", RECEIPT, 1)
def first_checkpoint_gone(log):
    log.put_notes(log.notes()[1:])


@case("receipt", RECEIPT, 1)
def second_checkpoint_gone(log):
    notes = log.notes()
    log.put_notes(notes[:1] + notes[2:])


@case("truncated", P3, 56)
def cut_at_a_checkpoint(log):
    """Cut there, the log and its checkpoints: only the receipt knows."""
    log.put(P3, log.lines(P3)[:56])
    log.put_notes(log.notes()[:-1])


@case("checkpoint", NOTES, 31)
def last_checkpoint_cut(log):
    log.write(NOTES, log.read(NOTES)[:-30])


@case("receipt", RECEIPT, 1)
def receipt_cut(log):
    log.write(RECEIPT, log.read(RECEIPT)[:-30])


@case("receipt", RECEIPT, 1)
def receipt_empty(log):
    log.write(RECEIPT, b"")


@case("truncated", P3, None, make={"parts": 1})
def log_empty(log):
    log.write(P3, b"")


@case("missing", P3, 1)
def part_empty(log):
    log.write(P2, b"")


@case("unreadable", NOTES)
def checkpoints_removed(log):
    os.unlink(log.file(NOTES))


@case("truncated", NOTES, 0)
def checkpoints_empty(log):
    log.write(NOTES, b"")


@case("unreadable", P3)
def newest_part_removed(log):
    os.unlink(log.file(P3))


@case("missing", P3, 1)
def middle_part_removed(log):
    os.unlink(log.file(P2))


@case("missing", P1, 1)
def first_part_removed_and_renumbered(log):
    os.unlink(log.file(P1))
    os.rename(log.file(P2), log.file(P1))
    os.rename(log.file(P3), log.file(P2))
    log.write(P3, b"")


@case("missing", P1)
def oldest_part_removed(log):
    os.unlink(log.file(P1))


@case("order", P1, 1)
def parts_swapped(log):
    a, b = log.read(P1), log.read(P2)
    log.write(P1, b)
    log.write(P2, a)


@case("after_the_end", P3, 1)
def part_twice(log):
    os.rename(log.file(P3), log.file("audit.jsonl.000003"))
    log.write(P3, log.read(P2))


@case("unreadable", VKEY)
def key_removed(log):
    os.unlink(log.file(VKEY))


# What is no file.

def instead(file, word, what):
    def function(log):
        if what == "link":
            os.rename(log.file(file), log.path + ".elsewhere")
            os.symlink(log.path + ".elsewhere", log.file(file))
            return
        os.unlink(log.file(file))
        if what == "directory":
            os.mkdir(log.file(file))
        else:
            os.mkfifo(log.file(file))
    function.__name__ = f"{what}_instead_of_{file}"
    case(word, file, None)(function)


for some_file in (P1, P3, NOTES, RECEIPT, VKEY):
    for thing in ("link", "directory", "fifo"):
        instead(some_file, "unreadable", thing)


# Checkpoints.

@case("checkpoint", NOTES, 16)
def checkpoints_swapped(log):
    notes = log.notes()
    notes[2], notes[3] = notes[3], notes[2]
    log.put_notes(notes)


@case("checkpoint", NOTES, 11)
def checkpoint_repeated(log):
    notes = log.notes()
    log.put_notes(notes[:2] + notes[1:])


@case("signature", NOTES, 11)
def checkpoint_of_another_size(log):
    notes = log.notes()
    notes[2] = notes[2].replace(b"\n128\n", b"\n129\n")
    log.put_notes(notes)


@case("signature", NOTES, 6)
def checkpoint_of_another_root(log):
    notes = log.notes()
    lines = notes[1].split(b"\n")
    lines[2] = base64.b64encode(bytes(32))
    notes[1] = b"\n".join(lines)
    log.put_notes(notes)


@case("signature", NOTES, 31)
def signature_bit(log):
    notes = log.notes()
    head, text = notes[-1][:-1].rsplit(b" ", 1)
    raw = bytearray(base64.b64decode(text))
    raw[40] ^= 1
    notes[-1] = head + b" " + base64.b64encode(bytes(raw)) + b"\n"
    log.put_notes(notes)


@case("wrong_key", NOTES, 1)
def key_id_bit(log):
    notes = log.notes()
    head, text = notes[0][:-1].rsplit(b" ", 1)
    raw = bytearray(base64.b64decode(text))
    raw[1] ^= 1
    notes[0] = head + b" " + base64.b64encode(bytes(raw)) + b"\n"
    log.put_notes(notes)


@case("signature", NOTES, 1)
def signature_of_another_checkpoint(log):
    notes = log.notes()
    tail = notes[1].split(b"\n")[4]
    lines = notes[0].split(b"\n")
    lines[4] = tail
    notes[0] = b"\n".join(lines)
    log.put_notes(notes)


@case("other_session", NOTES, 6)
def checkpoint_of_another_session(log):
    other = Log(make(log.path + ".o", session=OTHER))
    notes = log.notes()
    notes[1] = other.notes()[1]
    log.put_notes(notes)


@case("other_session", NOTES, 1)
def checkpoints_of_another_session(log):
    other = Log(make(log.path + ".o", session=OTHER))
    log.write(NOTES, other.read(NOTES))


@case("checkpoint", NOTES, 6)
def rubbish_in_checkpoints(log):
    notes = log.notes()
    log.put_notes(notes[:1] + [b"rubbish\n"] + notes[1:])


@case("checkpoint", NOTES, 1)
def nul_in_checkpoints(log):
    log.write(NOTES, b"\0" + log.read(NOTES))


@case("checkpoint", NOTES, 1)
def cr_lf_in_checkpoints(log):
    log.write(NOTES, log.read(NOTES).replace(b"\n", b"\r\n"))


@case("checkpoint", NOTES, 36)
def long_line_in_checkpoints(log):
    log.write(NOTES, log.read(NOTES) + b"x" * 1000000)


# Keys.

@case("wrong_key", VKEY, 1)
def all_signed_with_another_key(log):
    shutil.rmtree(log.path)
    make(log.path, seed=2)


@case("wrong_key", VKEY, 1, key="config")
def all_signed_with_a_key_that_the_configuration_does_not_know(log):
    shutil.rmtree(log.path)
    make(log.path, seed=2)


@case("incomplete", key=None)
def all_signed_with_another_key_that_nobody_knows(log):
    shutil.rmtree(log.path)
    make(log.path, seed=2)


@case("wrong_key", VKEY, 1)
def only_the_key_replaced(log):
    other = Log(make(log.path + ".o", seed=2))
    log.write(VKEY, other.read(VKEY))


@case("wrong_key", NOTES, 1, key=None)
def only_the_key_replaced_and_none_known(log):
    other = Log(make(log.path + ".o", seed=2))
    log.write(VKEY, other.read(VKEY))


@case("wrong_key", NOTES, 31)
def last_checkpoint_with_another_key(log):
    leaves = [leaf(x) for x in log.all_lines()]
    log.put_notes(log.notes()[:-1] + [note(300, root(leaves), seed=2)])


@case("other_session", VKEY, 1)
def key_of_another_session(log):
    other = Log(make(log.path + ".o", session=OTHER))
    log.write(VKEY, other.read(VKEY))


@case("unreadable", VKEY, 1)
def key_is_rubbish(log):
    log.write(VKEY, b"hello\n")


@case("unreadable", VKEY, 1)
def key_bit(log):
    data = bytearray(log.read(VKEY))
    data[-10] ^= 1
    log.write(VKEY, bytes(data))


@case("unreadable", VKEY, 1)
def two_keys(log):
    log.write(VKEY, log.read(VKEY) * 2)


# Forks: what only who has the key can do.

@case("forked", NOTES, 16)
def two_roots_of_one_size(log):
    notes = log.notes()
    log.put_notes(notes[:3] + [note(128, leaf(b"x"))] + notes[3:])


@case("forked", NOTES, 11)
def checkpoint_of_other_records(log):
    notes = log.notes()
    log.put_notes(notes[:2] + [note(110, leaf(b"x"))] + notes[2:])


@case("root", P3, 57)
def last_checkpoint_of_other_records(log):
    log.put_notes(log.notes()[:-1] + [note(300, leaf(b"x"))])


@case("forked", "kept", 1)
def another_log_than_the_one_kept(log):
    log.write("kept", note(150, leaf(b"x")))
    log.argv += ["--checkpoint", log.file("kept")]


@case("truncated", P3, 100)
def kept_checkpoint_is_longer(log):
    log.write("kept", note(400, leaf(b"x")))
    log.argv += ["--checkpoint", log.file("kept")]


@case("signature", "kept", 1)
def kept_checkpoint_is_forged(log):
    log.write("kept", log.notes()[2].replace(b"\n128\n", b"\n129\n"))
    log.argv += ["--checkpoint", log.file("kept")]


@case("forked", "kept", 1)
def history_rewritten_with_the_key(log):
    log.write("kept", log.notes()[3])
    shutil.move(log.file("kept"), log.path + ".kept")
    shutil.rmtree(log.path)
    make(log.path, backwards=1)
    shutil.move(log.path + ".kept", log.file("kept"))
    log.argv += ["--checkpoint", log.file("kept")]


# Receipts.

def receipt(word, change, **how):
    def register(name):
        def function(log):
            statement = log.statement()
            change(statement)
            log.sign(statement, **how)
        function.__name__ = "receipt_" + name
        case(word, RECEIPT, 1)(function)
    return register


def counts(s):
    s["predicate"]["verdicts"]["refused"] = 0


def reasons(s):
    by = s["predicate"]["verdicts"]["by_reason"]
    by["port"] = by.pop("not_in_policy")


def one_reason_more(s):
    s["predicate"]["verdicts"]["by_reason"]["port"] = 1


def set_log(key, value):
    return lambda s: s["predicate"]["log"].__setitem__(key, value)


receipt("wrong_key", counts, seed=2)("counts_changed_by_another")
receipt("wrong_key", counts, seed=2, name="other.example")("of_another_signer")
receipt("receipt", counts)("counts_changed")
receipt("receipt", reasons)("reasons_changed")
receipt("receipt", one_reason_more)("with_one_reason_more")
receipt("receipt", set_log("records", 299))("of_fewer_records")
receipt("receipt", set_log("root", base64.b64encode(bytes(32)).decode()))(
    "of_another_root")
receipt("receipt", set_log("parts", 2))("of_other_parts")
receipt("receipt", set_log("last_checkpoint", "x"))("without_a_checkpoint")
receipt("receipt", lambda s: s["predicate"]["log"].pop("first_checkpoint"))(
    "without_the_first_checkpoint")
receipt("receipt", lambda s: s["predicate"].pop("log"))("without_a_log")
receipt("receipt", lambda s: s["predicate"].pop("key"))("without_a_key")
receipt("other_session", lambda s: s["predicate"].__setitem__(
    "session", OTHER))("of_another_session")
receipt("receipt", lambda s: s["subject"].pop(0))("without_a_part")
receipt("receipt", lambda s: s["subject"].append(
    {"name": "audit.jsonl.000007", "digest": {"sha256": "0" * 64}}))(
        "with_a_part_too_many")
receipt("receipt", lambda s: s["subject"][1]["digest"].__setitem__(
    "sha256", "0" * 64))("of_another_file")
receipt("receipt", lambda s: s["subject"][3]["digest"].__setitem__(
    "sha256", "0" * 64))("of_another_policy")
receipt("receipt", lambda s: s["subject"].pop())("without_the_ruleset")
receipt("receipt", lambda s: s.__setitem__("predicateType", "x"))(
    "of_another_claim")
receipt("receipt", lambda s: s.__setitem__("_type", "x"))("of_no_statement")
receipt("receipt", lambda s: None, media="text/plain")("of_another_type")


@case("signature", RECEIPT, 1)
def receipt_edited(log):
    envelope = json.loads(log.read(RECEIPT))
    body = base64.b64decode(envelope["payload"])
    edited = re.sub(rb'"refused":\d', b'"refused":', body)
    assert edited != body
    envelope["payload"] = base64.b64encode(edited).decode()
    log.write(RECEIPT, json.dumps(envelope).encode())


@case("other_session", RECEIPT, 1)
def receipt_file_of_another_session(log):
    other = Log(make(log.path + ".o", session=OTHER))
    log.write(RECEIPT, other.read(RECEIPT))


@case("receipt", RECEIPT, 1)
def receipt_is_no_json(log):
    log.write(RECEIPT, b"\xff\xfe{}")


@case("receipt", RECEIPT, 1, make={"close": 0})
def receipt_of_a_log_that_is_open(log):
    pass


@case("receipt", RECEIPT, 1)
def receipt_deeply_nested(log):
    log.write(RECEIPT, b"[" * 100000)


def verify(log, how, home):
    key = how.get("key", "given")
    argv = [SALLYPORT, "verify", "--json", log.top, *log.argv]
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent",
           "XDG_CONFIG_HOME": home + "/empty",
           "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")}
    vkey = VKEYS[NAME]
    if key == "given":
        argv += ["--key", vkey]
    if key == "config":
        env["XDG_CONFIG_HOME"] = home
    return subprocess.run(argv, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False)


def public_key(scratch):
    """NAME's, as signing.vkey has it: the session's without the session."""
    text = Log(os.path.join(scratch, "good")).read(VKEY).decode().strip()
    raw = base64.b64decode(text.rsplit("+", 1)[1])
    ident = hashlib.sha256(NAME.encode() + b"\n" + raw).hexdigest()[:8]
    return f"{NAME}+{ident}+{base64.b64encode(raw).decode()}"


VKEYS = {}
VERDICTS = {"holds": 0, "broken": 1, "incomplete": 2}


def check(entry, scratch):
    name, word, file, line, how, function = entry
    path = os.path.join(scratch, "case", "log")
    shutil.rmtree(os.path.dirname(path), ignore_errors=True)
    os.mkdir(os.path.dirname(path))
    if "make" in how:
        make(path, **how["make"])
    else:
        shutil.copytree(os.path.join(scratch, "good"), path)
    log = Log(path)
    function(log)
    done = verify(log, how, scratch)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return f"{name}: {done.returncode}: {done.stdout} {done.stderr}"
    words = word if isinstance(word, tuple) else (word,)
    if words[0] in VERDICTS:
        want = (words[0], VERDICTS[words[0]], 0)
        got = (found["verdict"], done.returncode, found["problems_total"])
        return None if got == want else f"{name}: {got} {found}"
    first = (found["problems"] or [{}])[0]
    got = (found["verdict"], done.returncode, first.get("file"),
           first.get("line"))
    want = ("broken", 1, file, line or None)
    if got != want or first.get("word") not in words:
        return (f"{name}: wanted {word} {file}:{line}, got {done.returncode} "
                f"{json.dumps(found['problems'], indent=1)}")
    if os.environ.get("VERBOSE"):
        print(f"{name}: {first['file']}:{first.get('line')}: "
              f"{first['word']}: {first['text']}")
    return None


def main():
    with tempfile.TemporaryDirectory() as scratch:
        make(os.path.join(scratch, "good"))
        VKEYS[NAME] = public_key(scratch)
        config = os.path.join(scratch, "sallyport")
        os.makedirs(config)
        with open(os.path.join(config, "signing.vkey"), "w") as f:
            f.write(VKEYS[NAME] + "\n")
        bad = [x for x in (check(c, scratch) for c in CASES) if x]
    for x in bad:
        print(x)
    names = [c[0] for c in CASES]
    assert len(set(names)) == len(names), "two cases of one name"
    broken = sum(c[1] not in VERDICTS for c in CASES)
    print(f"{len(CASES)} logs, {broken} of them damaged; {len(bad)} findings "
          "are not what they should be")
    return 1 if bad or broken < 60 else 0


if __name__ == "__main__":
    sys.exit(main())
