#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports in a browser: what a sandbox wrote is text there, and nothing else.

  report_browser.py                      the test
  report_browser.py --screenshots DIR    makes DIR/report.png and
                                         DIR/report-dark.png anew

Chromium is needed: without it this fails.
"""
import csv
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
import zlib
from html.parser import HTMLParser

SALLYPORT = os.environ["SALLYPORT_BINARY"]
SAMPLE = os.environ["REPORT_SAMPLE"]
XHTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"

# Everything that a report is made of. No script, image, frame, form or link.
ELEMENTS = set("""html head meta title style body header main footer section
article h1 h2 h3 p b i span div dl dt dd ul ol li table thead tbody tr th td pre
code figure figcaption time svg rect path desc""".split())
ATTRIBUTES = set("""lang charset http-equiv content name class id role scope
aria-labelledby aria-hidden data-l viewBox preserveAspectRatio x y width height
d vector-effect""".split())
VOID = {"meta", "rect", "path"}


class World(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="sallyport-report-")
        os.mkdir(f"{cls.dir}/logs")
        for kind in "agent", "hostile":
            subprocess.run([SAMPLE, kind, f"{cls.dir}/logs/{kind}"],
                           check=True)
        cls.key = f"{cls.dir}/logs/agent/session.vkey"

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def report(self, *args, status=0):
        env = dict(os.environ, SOURCE_DATE_EPOCH="1795251600",
                   HOME=self.dir, XDG_CONFIG_HOME=self.dir)
        done = subprocess.run([SALLYPORT, "report", *args], env=env,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout.decode()

    def make(self, name, *args, status=0):
        path = f"{self.dir}/{name}"
        self.report(*args, "-o", path, status=status)
        return path


def chromium(directory, *args):
    """One page, in a profile of its own. Returns standard output and error."""
    done = subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
         "--hide-scrollbars", "--no-first-run", "--disable-extensions",
         "--disable-background-networking", "--disable-component-update",
         "--disable-dev-shm-usage",
         "--enable-logging=stderr", f"--user-data-dir={directory}/profile",
         *args], capture_output=True, timeout=60, check=True,
        env=dict(os.environ, HOME=directory, XDG_CONFIG_HOME=directory,
                 XDG_CACHE_HOME=directory))
    return done.stdout.decode(), done.stderr.decode()


def screenshot(directory, page, out, width, height, dark=False):
    chromium(directory, f"--window-size={width},{height}",
             f"--blink-settings=preferredColorScheme={0 if dark else 1}",
             f"--screenshot={out}", f"file://{page}")
    return pixels(out)


def unfilter(kind, line, above, bpp):
    for i, byte in enumerate(line):
        left = line[i - bpp] if i >= bpp else 0
        up, corner = above[i], above[i - bpp] if i >= bpp else 0
        if kind == 1:
            add = left
        elif kind == 2:
            add = up
        elif kind == 3:
            add = (left + up) // 2
        else:
            p = left + up - corner
            add = min((abs(p - left), 0, left), (abs(p - up), 1, up),
                      (abs(p - corner), 2, corner))[2]
        line[i] = byte + add & 255


def pixels(path):
    """The rows of a PNG of 8 bits a channel, each a list of colours."""
    with open(path, "rb") as file:
        data = file.read()
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, _, depth, colour = struct.unpack(
                ">IIBB", data[at + 8:at + 18])
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += length + 12
    assert depth == 8 and colour in (2, 6)
    bpp = 3 if colour == 2 else 4
    raw, size = zlib.decompress(packed), width * bpp + 1
    above, rows = bytearray(size - 1), []
    for start in range(0, len(raw), size):
        line = bytearray(raw[start + 1:start + size])
        if raw[start]:
            unfilter(raw[start], line, above, bpp)
        rows.append([bytes(line[i:i + 3]) for i in range(0, len(line), bpp)])
        above = line
    return rows


class Page(HTMLParser):
    """What a browser made of a page: elements, attributes, text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], set(), []
        self.inside = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside != "style":
            self.text.append(data)


class Markup(World):
    def test_is_xml_of_known_elements(self):
        path = self.make("all.html", f"{self.dir}/logs", "--key", self.key)
        seen, attributes = set(), set()
        for element in ElementTree.parse(path).iter():
            seen.add(re.sub(r"^\{.*\}", "", element.tag))
            self.assertTrue(element.tag.startswith((XHTML, SVG)), element.tag)
            attributes |= set(element.keys())
        self.assertEqual(seen - ELEMENTS, set())
        self.assertEqual(attributes - ATTRIBUTES, set())

    def test_ids_are_unique_and_meant(self):
        root = ElementTree.parse(
            self.make("ids.html", f"{self.dir}/logs")).getroot()
        ids = [e.get("id") for e in root.iter() if e.get("id")]
        self.assertEqual(len(ids), len(set(ids)))
        for element in root.iter():
            for target in (element.get("aria-labelledby") or "").split():
                self.assertIn(target, ids)

    def test_headings_go_down_by_one(self):
        root = ElementTree.parse(
            self.make("h.html", f"{self.dir}/logs")).getroot()
        last = 0
        for element in root.iter():
            level = re.fullmatch(r".*\}h([1-6])", element.tag)
            if level:
                self.assertLessEqual(int(level[1]), last + 1)
                last = int(level[1])

    def test_loads_nothing(self):
        """There is no attribute that could; the style might."""
        root = ElementTree.parse(
            self.make("self.html", f"{self.dir}/logs")).getroot()
        policy = root.find(f".//{XHTML}meta[@http-equiv]").get("content")
        self.assertIn("default-src 'none'", policy)
        style = root.find(f".//{XHTML}style").text
        self.assertNotRegex(style, r"(?i)url\s*\(|@import|image-set|//")


class Verdicts(World):
    def one(self, *args, status=0):
        return json.loads(self.report("--format", "json", *args,
                                      status=status))["sessions"][0]

    def test_held(self):
        session = self.one(f"{self.dir}/logs/agent", "--key", self.key)
        self.assertEqual(session["boundary"], "held")
        self.assertEqual(session["verdict"], "holds")
        self.assertEqual(session["receipt"]["packets"]["unreported"], 0)
        self.assertIn("The boundary held", session["sentence"])

    def test_numbers_are_those_of_the_receipt(self):
        session = self.one(f"{self.dir}/logs/agent", "--key", self.key)
        counts, receipt = session["counts"], session["receipt"]
        self.assertEqual(counts["allowed"], receipt["verdicts"]["allowed"])
        self.assertEqual(counts["refused"], receipt["verdicts"]["refused"])
        self.assertEqual(counts["bytes_up"], receipt["bytes"]["up"])
        self.assertEqual(counts["bytes_down"], receipt["bytes"]["down"])
        self.assertEqual(counts["packets"], receipt["packets"]["recorded"])
        self.assertEqual(session["records"], receipt["log"]["records"])

    def test_without_a_key_it_is_not_proved(self):
        session = self.one(f"{self.dir}/logs/agent")
        self.assertEqual(session["boundary"], "not_proved")
        self.assertIn("key", session["sentence"])

    def test_an_edited_log_is_broken(self):
        copy = f"{self.dir}/edited"
        shutil.copytree(f"{self.dir}/logs/agent", copy)
        path = f"{copy}/audit.jsonl"
        with open(path) as file:
            lines = file.readlines()
        self.assertIn("api.model.example", lines[9])
        lines[9] = lines[9].replace("api.model", "api.other")
        with open(path, "w") as file:
            file.writelines(lines)
        session = self.one(copy, "--key", self.key, status=1)
        self.assertEqual(session["boundary"], "broken")
        self.assertEqual(session["problems"][0]["line"], 10)
        self.assertIn("line 10", session["sentence"])
        with open(self.make("edited.html", copy, status=1)) as page:
            self.assertIn(">&#10007;</span> Broken", page.read())

    def test_what_is_missing_is_no_report(self):
        self.report(f"{self.dir}/nothing-here", status=125)
        self.report(f"{self.dir}/logs", "--format", "pdf", status=125)
        self.report(f"{self.dir}/logs", "--key", "no-key", status=125)

    def test_by_hand(self):
        """The commands that the report shows work, in the log's directory."""
        text = self.report(f"{self.dir}/logs/agent", "--format", "md")
        commands = re.search(r"```sh\n(.*?)```", text, re.S)[1]
        copy = f"{self.dir}/by-hand"
        shutil.copytree(f"{self.dir}/logs/agent", copy)
        done = subprocess.run(["sh", "-e", "-c", commands], cwd=copy,
                              capture_output=True, text=True)
        self.assertIn("Verified Successfully", done.stdout, done.stderr)

    def test_csv_is_read_back(self):
        text = self.report(f"{self.dir}/logs", "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        up = sum(int(row["bytes_up"]) for row in rows
                 if row["section"] == "allowed")
        whole = json.loads(self.report(f"{self.dir}/logs", "--format",
                                       "json"))
        self.assertEqual(up, whole["totals"]["bytes_up"])
        for row in rows:
            for cell in row.values():
                self.assertNotIn(cell[:1] or "x", "=+-@\t\r")


class Browser(World):
    def test_hostile_text_is_text(self):
        path = self.make("hostile.html", f"{self.dir}/logs/hostile")
        dom, log = chromium(self.dir, "--dump-dom", f"file://{path}")
        self.assertNotRegex(log, r"CONSOLE|Refused to|Content Security")
        with open(path) as file:
            source = Page(file.read())
        page = Page(dom)
        self.assertEqual(page.tags, source.tags)
        self.assertEqual(set(page.tags) - ELEMENTS, set())
        self.assertEqual({a for a in page.attributes if a.startswith("on")},
                         set())
        text = "".join(page.text)
        for evil in ("<img src=x onerror=alert(1)>", "<script>alert(2)",
                     "]]><svg/onload=alert(3)>", "\\u202e", "\\x1b",
                     "\\u200b", "<b>nft"):
            self.assertIn(evil, text)
        self.assertNotRegex(text, "[\u202a-\u202e\u2066-\u2069\u200b-\u200f"
                                  "\x00-\x08\x0b-\x1f\x7f-\x9f]")

    def test_light_and_dark(self):
        path = self.make("agent.html", f"{self.dir}/logs/agent")
        for dark in False, True:
            rows = screenshot(self.dir, path, f"{self.dir}/shot.png", 600,
                              480, dark)
            paper = rows[2][2]
            self.assertEqual(sum(paper) < 384, dark, paper)
            ink = sum(colour != paper for row in rows for colour in row)
            self.assertGreater(ink, 5000)
            self.assertGreater(len({c for row in rows for c in row}), 50)

    def test_nothing_is_wider_than_a_telephone(self):
        """Measured by a script, in a copy that lets it run."""
        path = self.make("narrow.html", f"{self.dir}/logs", "--key", self.key)
        with open(path) as file:
            text = file.read()
        inner = text = re.sub(r"<meta http-equiv[^>]*>", "", text)
        text = text.replace(
            "</body>", "<iframe id='f' style='width:360px;height:900px'>"
            "</iframe><script>const f = document.getElementById('f');"
            "f.srcdoc = PAGE; f.onload = () => { const d = "
            "f.contentDocument.documentElement; document.title = 'width ' + "
            "d.scrollWidth + ' of ' + d.clientWidth; };</script></body>")
        text = text.replace("PAGE", json.dumps(inner).replace("</", "<\\/"))
        copy = f"{self.dir}/measured.html"
        with open(copy, "w") as file:
            file.write(text)
        dom, _ = chromium(self.dir, "--dump-dom", f"file://{copy}")
        width = re.search(r"<title>width (\d+) of (\d+)", dom)
        self.assertIsNotNone(width, dom[:400])
        self.assertLessEqual(int(width[1]), int(width[2]))
        self.assertLessEqual(int(width[2]), 360)


def make_screenshots(directory):
    World.setUpClass()
    world = World()
    path = world.make("sample.html", f"{World.dir}/logs/agent", "--key",
                      World.key)
    for name, dark in ("report.png", False), ("report-dark.png", True):
        screenshot(World.dir, path, f"{directory}/{name}", 960, 1500, dark)
    World.tearDownClass()


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--screenshots":
        make_screenshots(os.path.abspath(sys.argv[2]))
    else:
        unittest.main(verbosity=2)
