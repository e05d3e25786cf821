#SPDX - License - Identifier : Apache - 2.0
"""Real clients reach allowed hosts, by the explicit proxy and without."""
from harness import check, silent

HELLO = "hello from the lab"


def both(case, *command, want=HELLO, allow=("allowed.test",), **kw):
    for proxy in True, False:
        run = case.run(*command, proxy=proxy, allow=allow, **kw)
        check(run.status == 0 and want in run.out, run)


def test_curl_https(case):
    both(case, "curl", "-sS", "https://allowed.test/")


def test_curl_http(case):
    both(case, "curl", "-sS", "http://allowed.test/")


def test_curl_http_keepalive(case):
    both(case, "curl", "-sS", "http://allowed.test/", "http://allowed.test/host")


def test_curl_wildcard(case):
    both(case, "curl", "-sSk", "https://deep.er.wild.test/", allow=("*.wild.test",))


def test_curl_alias(case):
    both(case, "curl", "-sS", "https://alias.test/", allow=("alias.test",))


def test_curl_socks(case):
    run = case.run("sh", "-c", 'curl -sS -x socks5h://${http_proxy#http://} '
                   "https://allowed.test/ http://allowed.test/", )
    check(run.status == 0 and run.out.count(HELLO) == 2, run)


def test_curl_upload(case):
    both(case, "sh", "-c", "head -c 3000000 /dev/zero | curl -sS --data-binary "
         "@- https://allowed.test/upload http://allowed.test/upload",
         want="3000000\n3000000")


def test_ipv6_origin(case):
    both(case, "curl", "-sS", "https://six.test/", allow=("six.test",))


def test_happy_eyeballs(case):
    both(case, "curl", "-sS", "https://both.test/", allow=("both.test",))


def test_other_port(case):
    both(case, "curl", "-sS", "http://allowed.test:8080/",
         allow=("allowed.test:8080",))


def test_wget(case):
    both(case, "wget", "-qO-", "--ca-certificate=" + case.ca,
         "https://allowed.test/")


def test_git_https(case):
    for proxy in True, False:
        run = case.run("sh", "-c", "rm -rf repo && git clone -q "
                       "https://allowed.test/repo.git repo && cat repo/README",
                       proxy=proxy)
        check(run.status == 0 and "a repository" in run.out, run)


SSH = ("ssh -i {0}/key -o BatchMode=yes -o IdentitiesOnly=yes "
       "-o UserKnownHostsFile={1}/known_hosts -o GlobalKnownHostsFile=/dev/null")


def ssh(case):
    """The lab's key, where the sandbox may read it and ssh accepts it."""
    import os
    import shutil
    key = case.work + "/key"
    shutil.copy(case.lab.dir + "/client", key)
    os.chmod(key, 0o600)
    case.mine(key)
    shutil.copy(case.lab.dir + "/known_hosts", case.work)
    return SSH.format(case.work, case.work)


def test_ssh(case):
    command = ssh(case) + " root@allowed.test echo hello from ssh"
    run = case.run("sh", "-c", command, allow=("allowed.test:22",))
    check(run.status == 0 and "hello from ssh" in run.out, run)


def test_ssh_by_proxy(case):
    command = (ssh(case) + " -o ProxyCommand='nc -X connect -x "
               "${http_proxy#http://} %h %p' root@allowed.test echo hello")
    run = case.run("sh", "-c", command, allow=("allowed.test:22",))
    check(run.status == 0 and "hello" in run.out, run)


def test_git_ssh(case):
    run = case.run("sh", "-c", f"rm -rf repo2 && GIT_SSH_COMMAND='{ssh(case)}' "
                   f"git clone -q root@allowed.test:{case.lab.dir}/www/repo.git "
                   "repo2 && cat repo2/README", allow=("allowed.test:22",))
    check(run.status == 0 and "a repository" in run.out, run)


def test_python(case):
    both(case, "/usr/bin/python3", "-c", "import urllib.request as u; "
         "print(u.urlopen('https://allowed.test/').read().decode(), "
         "u.urlopen('http://allowed.test/').read().decode())")


def test_node(case):
    both(case, "node", "-e", "require('https').get('https://allowed.test/', r => "
         "r.pipe(process.stdout))")


def test_node_fetch(case):
    both(case, "node", "-e", "fetch('https://allowed.test/').then(r => r.text())"
         ".then(t => console.log(t))")


def test_openssl(case):
    run = case.run("sh", "-c", "printf 'GET / HTTP/1.0\\r\\nHost: allowed.test"
                   "\\r\\n\\r\\n' | openssl s_client -quiet -ign_eof -servername "
                   "allowed.test -connect allowed.test:443")
    check(HELLO in run.out, run)
    run = case.run("sh", "-c", "printf 'GET / HTTP/1.0\\r\\nHost: allowed.test"
                   "\\r\\n\\r\\n' | openssl s_client -quiet -ign_eof -servername "
                   "allowed.test -proxy ${http_proxy#http://} "
                   "-connect allowed.test:443")
    check(HELLO in run.out, run)


def test_dig(case):
    run = case.run("dig", "+short", "allowed.test")
    check(run.out.startswith("198.18.0."), run)
    run = case.run("dig", "+tcp", "+short", "@8.8.8.8", "allowed.test")
    check(run.out.startswith("198.18.0."), run)
    run = case.run("dig", "+short", "ALLOWED.Test", "AAAA")
    check(run.status == 0 and run.out == "", run)
    silent(case)


ECHO = """
import socket
s = socket.create_connection(("allowed.test", {port}), 10)
{send}
print(s.recv(100))
"""


def test_plain_tcp(case):
    run = case.python(ECHO.format(port=7000, send="s.sendall(b'ping\\n')"),
                      allow=("allowed.test:7000",))
    check("ping" in run.out, run)


def test_server_speaks_first(case):
    run = case.python(ECHO.format(port=2525, send=""),
                      allow=("allowed.test:2525",))
    check("220 ready" in run.out, run)


def test_half_close(case):
    code = """
import socket
s = socket.create_connection(("allowed.test", 7000), 10)
s.sendall(b"x" * 1000000); s.shutdown(socket.SHUT_WR)
n = 0
while True:
    d = s.recv(65536)
    if not d: break
    n += len(d)
print(n)
"""
    run = case.python(code, allow=("allowed.test:7000",))
    check("1000000" in run.out, run)


def test_download_is_whole(case):
    import hashlib
    with open(case.lab.dir + "/www/mid", "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    for url in "https://allowed.test/mid", "http://allowed.test/mid":
        both(case, "sh", "-c", f"curl -sS {url} | sha256sum", want=digest)


def test_many_at_once(case):
    both(case, "sh", "-c", "for i in $(seq 40); do curl -sS "
         "https://allowed.test/ & done | grep -c hello; wait", want="40")


def test_summary_and_records(case):
    run = case.run("curl", "-sS", "https://allowed.test/")
    check("allowed.test" in run.err and "audit.jsonl" in run.err, run)
    records = run.records
    kinds = [(r["class_uid"], r["activity_id"]) for r in records]
    check(kinds[0][0] == 6002 and kinds[-1][0] == 6002, kinds)
    check((4001, 1) in kinds and (4001, 2) in kinds, kinds)
    check([r["metadata"]["sequence"] for r in records]
          == list(range(len(records))) or
          [r["metadata"]["sequence"] for r in records]
          == list(range(1, len(records) + 1)), records)
