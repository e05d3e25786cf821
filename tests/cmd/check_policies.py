# SPDX-License-Identifier: Apache-2.0
"""check, explain, diff and presets: statuses, lines, JSON."""
import json
import os
import subprocess
import sys
import tempfile

BINARY = os.environ["SALLYPORT_BINARY"]
GOOD = "version: 1\nname: t\nallow:\n  - api.example\n"


def run(*args, stdin="", cwd=None):
    return subprocess.run([BINARY, *args], input=stdin, text=True,
                          capture_output=True, cwd=cwd)


def check(truth, what):
    if not truth:
        raise AssertionError(what)


def write(name, text):
    with open(name, "w", encoding="utf8") as f:
        f.write(text)
    return name


def test_check_says_ok():
    out = run("check", write("good.yaml", GOOD))
    check(out.returncode == 0 and not out.stderr, out)
    check(out.stdout.endswith("good.yaml: ok, 1 rule, 0 warnings\n"), out)
    check("allows 1 name, 0 wildcards; any other name is refused" in
          out.stdout, out)
    check("\033" not in out.stdout, out)


def test_check_says_what_is_wrong():
    out = run("check", write("bad.yaml", "version: 1\nalow: []\n"))
    check(out.returncode == 1 and not out.stdout, out)
    check(out.stderr.startswith("bad.yaml:2:1: unknown key 'alow'"), out)
    out = run("check", "no-such.yaml")
    check(out.returncode == 1 and "no-such.yaml: " in out.stderr, out)
    # The others are still looked at, and an error is worse than a warning.
    write("good.yaml", GOOD)
    write("warn.yaml", GOOD + "  - '*.co.uk'\n")
    out = run("check", "--strict", "warn.yaml", "bad.yaml", "good.yaml")
    check(out.returncode == 1 and "good.yaml: ok" in out.stdout, out)


def test_check_warns():
    write("warn.yaml", GOOD + "  - '*.co.uk'\n")
    out = run("check", "warn.yaml")
    check(out.returncode == 0, out)
    check("warn.yaml:5: warning: co.uk is a public suffix" in out.stdout
          and "[public-suffix]" in out.stdout
          and "ok, 2 rules, 1 warning\n" in out.stdout, out)
    check(run("check", "--strict", "warn.yaml").returncode == 2, "strict")
    write("said.yaml", GOOD + "  - {host: '*.co.uk', note: 'lint-ok: "
          "public-suffix'}\n")
    out = run("check", "--strict", "said.yaml")
    check(out.returncode == 0 and "0 warnings (1 silenced by notes)" in
          out.stdout, out)
    # A note is not a warning.
    write("note.yaml", GOOD + "deny: [nobody.example]\n")
    out = run("check", "--strict", "note.yaml")
    check(out.returncode == 0 and ": note: " in out.stdout, out)


def test_check_json():
    write("warn.yaml", GOOD + "  - '*.co.uk'\nextends: [github]\n")
    write("bad.yaml", "version: 1\nalow: []\n")
    out = run("check", "--json", "warn.yaml", "bad.yaml")
    check(out.returncode == 1 and not out.stderr, out)
    warn, bad = [json.loads(line) for line in out.stdout.splitlines()]
    check(warn["ok"] and not warn["errors"] and warn["file"] == "warn.yaml",
          warn)
    mine = [w for w in warn["warnings"] if w["file"] == "warn.yaml"]
    check(mine == [{"file": "warn.yaml", "line": 5, "rule": "*.co.uk",
                    "code": "public-suffix", "message": mine[0]["message"],
                    "hint": mine[0]["hint"]}], mine)
    summary = warn["summary"]
    check(summary["extends"] == ["github"] and summary["default"] == "deny"
          and summary["mode"] == "enforce" and len(summary["digest"]) == 64
          and summary["rules"] > 2, summary)
    check(not bad["ok"] and bad["errors"][0]["line"] == 2
          and bad["errors"][0]["column"] == 1
          and bad["errors"][0]["file"] == "bad.yaml"
          and "alow" in bad["errors"][0]["message"]
          and "summary" not in bad, bad)


def test_check_reads_stdin_and_presets():
    out = run("check", "-", stdin=GOOD)
    check(out.returncode == 0 and "<stdin>: ok, 1 rule" in out.stdout, out)
    out = run("check", "-", stdin="x")
    check(out.returncode == 1 and out.stderr.startswith("<stdin>:1:1"), out)
    os.makedirs("sub", exist_ok=True)
    write("sub/base.yaml", GOOD)
    out = run("check", "-", stdin="version: 1\nextends: [./base.yaml]\n",
              cwd="sub")
    check(out.returncode == 0 and ": ok, 1 rule" in out.stdout, out)
    out = run("check", "--json", "-", cwd="sub",
              stdin="version: 1\nextends: [./base.yaml]\n")
    check(json.loads(out.stdout)["summary"]["extends"] == ["base.yaml"], out)
    check(run("check", "preset:github").returncode == 0, "preset")
    out = run("check", "preset:githbu")
    check(out.returncode == 1 and "did you mean 'github'" in out.stderr, out)
    out = run("check", "-", stdin="version: 1\n" + "#" * (11 << 20))
    check(out.returncode == 1 and "large" in out.stderr, out.stderr[:200])


def test_every_preset_is_valid():
    names = [line.split()[0] for line in run("presets").stdout.splitlines()]
    check("github" in names, names)
    out = run("check", *["preset:" + name for name in names])
    check(out.returncode == 0 and not out.stderr, out)


def test_nothing_reaches_the_terminal():
    name = write("e\033[2Jvil.yaml", GOOD + "  - '*.co.uk'\n")
    for out in (run("check", name), run("explain", name, "api.example"),
                run("diff", name, "preset:github")):
        check("\033" not in out.stdout + out.stderr and "e?[2Jvil" in
              out.stdout, out)
    for line in run("check", "--json", name).stdout.splitlines():
        check("\033" not in line and json.loads(line)["file"], line)


def test_explain():
    write("p.yaml", GOOD + "  - {host: web.example, ports: [80], methods: "
          "[GET], paths: [/v1/**]}\n")
    out = run("explain", "p.yaml", "https://api.example/x")
    check(out.returncode == 0 and "api.example (p.yaml:4)" in out.stdout, out)
    check(out.stdout.count("\nconnect ") == 1, out)
    out = run("explain", "p.yaml", "nope.example")
    check(out.returncode == 1 and "not_in_policy" in out.stdout
          and "--allow nope.example" in out.stdout, out)
    web = "http://web.example"
    check(run("explain", "p.yaml", "--method", "GET", web + "/v1/x")
          .returncode == 0, "GET")
    check(run("explain", "p.yaml", "--method", "PUT", web + "/v1/x")
          .returncode == 1, "PUT")
    check(run("explain", "p.yaml", "--method", "GET", web + "/v1/../v2")
          .returncode == 1, "the path that the gate sees")
    check(run("explain", "p.yaml", "--method", "GET", web + "/v2/../v1/x")
          .returncode == 0, "the path that the gate sees")
    for target in "0x7f.1", "2130706433", "[::1]", "https://a@api.example/":
        out = run("explain", "p.yaml", target)
        check(out.returncode == 1 and "allowed" not in out.stdout, out)


def test_explain_options():
    out = run("explain", "--allow", "github", "github.com")
    check(out.returncode == 0 and "preset github:" in out.stdout, out)
    out = run("explain", "--allow", "a.example", "--deny", "a.example",
              "a.example")
    check(out.returncode == 1 and "deny_rule" in out.stdout, out)
    write("t.yaml", "version: 1\nallow:\n  - {host: a.example, expires: "
          "2030-01-01}\n")
    at = ("explain", "t.yaml", "a.example", "--at")
    check(run(*at, "2029-12-31").returncode == 0, "before")
    out = run(*at, "2030-01-01T00:00:00Z")
    check(out.returncode == 1 and "expired" in out.stdout, out)
    both = run("explain", "t.yaml", "--allow", "b.example", "b.example")
    check(both.returncode == 0, both)
    check(run("explain", "-", "api.example", stdin=GOOD).returncode == 0,
          "stdin")


def test_explain_json():
    out = run("explain", "--json", "--allow", "a.example", "a.example:443")
    told = json.loads(out.stdout)
    check(told["reachable"] and told["host"] == "a.example", told)
    doors = {door["door"]: door for door in told["doors"]}
    check(doors["connect"]["allow"] and doors["connect"]["port"] == 443
          and doors["connect"]["origin"] == "--allow"
          and "allow" not in doors["http"] and doors["dns"]["allow"], told)
    told = json.loads(run("explain", "--json", "--allow", "a.example",
                          "0x7f.1").stdout)
    check(not told["reachable"] and told["fault"] and "host" not in told,
          told)


def test_below_a_ceiling():
    write("user.yaml", "version: 1\nallow: [a.example, b.example]\n"
                       "limits: {names: 10, connections: 400}\n")
    write("ceiling.yaml", "version: 1\nallow: ['*.example']\n"
                          "deny: [b.example]\n")
    below = ("--ceiling", "ceiling.yaml", "user.yaml")
    out = run("explain", *below, "a.example")
    check(out.returncode == 0 and "a.example (user.yaml:2)" in out.stdout, out)
    out = run("explain", *below, "b.example")
    check(out.returncode == 1 and "(ceiling ceiling.yaml:3)" in out.stdout
          and "operator" in out.stdout, out)
    out = run("explain", *below, "c.example")
    check(out.returncode == 1 and "ceiling" not in out.stdout, out)
    out = run("check", *below)
    check(out.returncode == 0 and "256 connections, 10 names" in out.stdout,
          out)
    write("ceiling.yaml", "version: 1\nmode: observe\n")
    out = run("explain", *below, "a.example")
    check(out.returncode == 125 and "a ceiling enforces" in out.stderr, out)
    out = run("check", *below)
    check(out.returncode == 1 and "a ceiling enforces" in out.stderr, out)
    out = run("check", "--ceiling", "no-such.yaml", "user.yaml")
    check(out.returncode == 1 and "no-such.yaml" in out.stderr, out)


def test_diff():
    write("old.yaml", GOOD)
    write("new.yaml", "version: 1\nlimits: {names: 10}\nallow:\n  - host: "
          "api.example\n    ports: [443]\n    upload: 1 MB\n  - "
          "{host: b.example, ports: [22, 443]}\n")
    out = run("diff", "old.yaml", "new.yaml")
    check(out.returncode == 1 and not out.stderr, out)
    check(out.stdout.splitlines() == [
        "~ limits.names (narrower: 4000 -> 10)",
        "- api.example:80 (new.yaml:4)",
        "+ b.example:22,443 (new.yaml:7)",
        "~ api.example:443 (narrower: upload unlimited -> 1 MB) "
        "(new.yaml:4, was old.yaml:4)"], out.stdout)
    out = run("diff", "old.yaml", "old.yaml")
    check(out.returncode == 0 and not out.stdout, out)
    out = run("diff", "old.yaml", "-", stdin=GOOD.replace("t\n", "u\n"))
    check(out.returncode == 0 and not out.stdout, out)
    told = json.loads(run("diff", "--json", "old.yaml", "new.yaml").stdout)
    check(told["different"] and len(told["differences"]) == 5, told)
    check({"change": "removed", "kind": "name", "what": "api.example",
           "first_port": 80, "last_port": 80,
           "doors": ["proxy", "transparent"],
           "was": {"rule": "api.example", "origin": "old.yaml:4"},
           "is": {"rule": "api.example", "origin": "new.yaml:4"}}
          in told["differences"], told)
    check(json.loads(run("diff", "--json", "old.yaml", "old.yaml").stdout)
          ["differences"] == [], "none")


def test_presets():
    lines = run("presets").stdout.splitlines()
    check(all(len(line.split(maxsplit=1)) == 2 for line in lines), lines)
    yaml = run("presets", "github")
    check(yaml.returncode == 0 and "version: 1" in yaml.stdout, yaml)
    told = json.loads(run("presets", "--json").stdout)
    check([p["name"] for p in told] == [line.split()[0] for line in lines],
          told)
    check(all(p["about"] and (p["rules"] or p["extends"]) for p in told), told)
    one = json.loads(run("presets", "--json", "github").stdout)
    check(one["name"] == "github" and any(
        rule["host"] == "github.com" for rule in one["rules"]), one)
    out = run("presets", "githbu")
    check(out.returncode == 125 and "did you mean 'github'" in out.stderr, out)


def test_wrong_words():
    write("good.yaml", GOOD)
    for args in (["check"], ["check", "--nonsense", "good.yaml"],
                 ["explain"], ["explain", "good.yaml"],
                 ["explain", "good.yaml", "a.example", "more"],
                 ["explain", "no-such.yaml", "a.example"],
                 ["explain", "good.yaml", "a.example/x"],
                 ["explain", "good.yaml", "a.example", "--at", "soon"],
                 ["explain", "good.yaml", "a.example", "--at"],
                 ["explain", "good.yaml", "a.example", "--method", "G ET"],
                 ["explain", "good.yaml", "a.example", "--method", ""],
                 ["explain", "--allow", "githbu", "a.example"],
                 ["diff", "good.yaml"], ["diff", "-", "-"],
                 ["diff", "good.yaml", "no-such.yaml"],
                 ["diff", "a", "b", "c"], ["diff", "--at", "x", "a", "b"],
                 ["presets", "a", "b"], ["presets", "--nonsense"]):
        out = run(*args)
        check(out.returncode == 125 and not out.stdout
              and out.stderr.startswith("sallyport: "), (args, out))


def test_json_of_what_is_long():
    """Escaped it is six times as long, and JSON it is still."""
    note = "\\u202e" * 1365
    write("long.yaml", "version: 1\nallow:\n  - {host: a.example, note: "
          f'"{note}"}}\n')
    for args in (["explain", "--json", "long.yaml", "\u202e" * 2600],
                 ["explain", "--json", "long.yaml", "a.example"],
                 ["check", "--json", "long.yaml"],
                 ["check", "--json", "\u202e" * 1300],
                 ["diff", "--json", "long.yaml", "preset:npm"]):
        told = json.loads(run(*args).stdout)
        check(isinstance(told, dict), args)


def test_nothing_is_lost():
    """A disk that is full is no success."""
    write("good.yaml", GOOD)
    for args in (["check", "good.yaml"], ["check", "--json", "good.yaml"],
                 ["explain", "good.yaml", "api.example"], ["presets"],
                 ["diff", "good.yaml", "preset:npm"], ["presets", "npm"]):
        with open("/dev/full", "w", encoding="utf8") as full:
            out = subprocess.run([BINARY, *args], stdout=full, text=True,
                                 stderr=subprocess.PIPE, check=False)
        check(out.returncode == 125 and "No space left" in out.stderr,
              (args, out))


def test_a_path_is_as_the_gate_sees_it():
    write("paths.yaml", "version: 1\nallow:\n  - {host: a.example, ports: "
          "[8080], paths: [/v1/**]}\n")
    for url in "http://a.example:8080", "other://a.example:8080":
        for path, status in ("/v1/x", 0), ("/v1/../x", 1), ("/v1/%2e%2e/x", 1):
            out = run("explain", "paths.yaml", url + path, "--method", "GET")
            check(out.returncode == status, (url, path, out))


def test_help():
    for command in "check", "explain", "diff", "presets":
        out = run(command, "--help")
        check(out.returncode == 0 and not out.stderr
              and out.stdout.startswith("usage: sallyport " + command), out)
        check(max(map(len, out.stdout.splitlines())) <= 80, command)
        check(f"  {command} " in run("help").stdout, command)
    check("lint-ok: CODE" in run("check", "--help").stdout, "lint-ok")


def main():
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_")]
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for name, test in tests:
            test()
            print("ok", name)
        os.chdir("/")
    return 0 if len(tests) > 10 else 1


if __name__ == "__main__":
    sys.exit(main())
