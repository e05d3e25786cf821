# SPDX-License-Identifier: Apache-2.0
"""Who is measured: the floors, sallyport, and others as their manuals would set
them up for the same job, without logs. Each has one worker, on one core."""
import os
import shutil
import subprocess

from duel_world import (ANSWERER, ORIGINS, SUBJECT_CORE, World, cpu, lab,
                        memory, tool, tree)

NAMES = ("echo", "once", "source")


class Subject:
    name = ""
    doors = ()       # of "connect" "tls" "http" "dns"
    proxy_port = 3128
    needs = ()       # programs

    def __init__(self, world: World):
        self.world = world
        self.ip = world.address()
        self.dir = f"{world.dir}/peer-{self.ip}"
        os.mkdir(self.dir)
        if self.needs:  # they become somebody else
            os.chmod(self.dir, 0o777)
        self.process = None

    @classmethod
    def missing(cls):
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        return [n for n in cls.needs if not shutil.which(n, path=path)]

    def write(self, name, text):
        path = f"{self.dir}/{name}"
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o644)
        return path

    def start(self):
        self.process = self.world.spawn(*self.world.pinned(SUBJECT_CORE,
                                                           *self.argv()))
        for door in self.doors:
            self.world.wait(lambda: self.process.poll() is not None
                            or self.listens(door), f"{self.name}: {door}", 30)
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} ended")

    def restart(self):
        """Where a session has had what it may have."""

    def listens(self, door):
        kind = "-Hlun" if door == "dns" else "-Hltn"
        return f"{self.ip}:{self.port(door)} " in lab.sh("ss", kind)

    def port(self, door):
        return {"connect": self.proxy_port, "http": self.proxy_port, "tls": 443,
                "dns": 53}[door]

    def pids(self):
        return {"all": tree(self.process.pid)}

    def cpu(self):
        return {role: cpu(pids) for role, pids in self.pids().items()}

    def memory(self):
        return memory(self.pids()["all"])


class Sallyport(Subject):
    name = "sallyport"
    doors = ("connect", "tls", "http")
    upstream = lab.DNS

    def argv(self):
        policy = self.write("policy.yaml", f"""\
version: 1
dns: {{upstream: [{self.upstream}]}}
limits:
  connections: 65535
  connections_per_second: 100000
  dns_per_second: 100000
  names: 4000
  names_per_wildcard: 4000
allow: [echo.test, once.test, source.test, http.test, allowed.test, "*.ok.test"]
""")
        os.mkdir(self.dir + "/log", 0o700)
        ip = self.ip
        return [os.environ["SALLYPORT_BINARY"], "serve", "--policy", policy,
                "--log", self.dir + "/log", "--client", "10.77.0.0/24",
                "--proxy", f"{ip}:3128", "--tls", f"{ip}:443", "--dns",
                f"{ip}:53", "--quiet"]

    def pids(self):
        every, roles = tree(self.process.pid), {}
        for pid in every:
            try:
                with open(f"/proc/{pid}/cmdline") as f:
                    role = f.read().split("\0")[1]
            except (OSError, IndexError):
                continue
            if role in ("gate", "ledger"):
                roles[role] = [pid]
        return {"all": every, **roles}


class SallyportDns(Sallyport):
    doors = ("dns",)
    upstream = ANSWERER

    def restart(self):
        self.process.terminate()
        self.process.wait(60)
        shutil.rmtree(self.dir + "/log")
        self.start()


class Floor(Subject):
    def argv(self):
        return [tool("floor_relay"), self.doors[0], self.how, self.ip,
                str(self.port(self.doors[0])), ORIGINS[self.to], "443"]


class FloorHttp(Floor):
    name, doors = "floor http", ("http",)

    def argv(self):
        return [tool("floor_http"), self.ip, str(self.proxy_port),
                ORIGINS["http"], "80"]


def floor(door, how, to):
    """The floor knows one origin."""
    if how == "http":
        return FloorHttp
    return type("F", (Floor,), {"name": f"floor {how} {to}", "doors": (door,),
                                "how": how, "to": to})


class Haproxy(Subject):
    name, doors, needs = "haproxy", ("tls",), ("haproxy",)
    tuning = ""
    option = ""

    def argv(self):
        rules = "\n".join(f"  use_backend {n} if {{ req_ssl_sni {n}.test }}\n"
                          for n in NAMES)
        rules += "  use_backend allowed if { req_ssl_sni allowed.test }\n"
        backends = "\n".join(f"backend {n}\n  server s {ip}:443\n" for n, ip in (
            *((n, ORIGINS[n]) for n in NAMES), ("allowed", lab.GOOD)))
        return ["haproxy", "-db", "-f", self.write("haproxy.cfg", f"""\
global
  nbthread 1
  maxconn 4000
{self.tuning}
defaults
  mode tcp
{self.option}
  timeout client 1m
  timeout server 1m
  timeout connect 5s
frontend f
  bind {self.ip}:443
  tcp-request inspect-delay 5s
  tcp-request content accept if {{ req_ssl_hello_type 1 }}
{rules}
{backends}
""")]


class HaproxySplice(Haproxy):
    name = "haproxy, splice"
    tuning = "  tune.pipesize 1048576\n  maxpipes 1000"
    option = "  option splice-auto"


class Nginx(Subject):
    name, doors, needs = "nginx stream", ("tls",), ("nginx",)
    module = "/usr/lib/nginx/modules/ngx_stream_module.so"

    @classmethod
    def missing(cls):
        return super().missing() or \
            [m for m in [cls.module] if not os.path.exists(m)]

    def argv(self):
        names = "".join(f"    {n}.test {ORIGINS[n]}:443;\n" for n in NAMES)
        return ["nginx", "-c", self.write("nginx.conf", f"""\
load_module {self.module};
daemon off; worker_processes 1; worker_rlimit_nofile 20000;
pid {self.dir}/pid; error_log {self.dir}/err;
events {{ worker_connections 9000; }}
stream {{
  map $ssl_preread_server_name $up {{
{names}    allowed.test {lab.GOOD}:443;
  }}
  server {{ listen {self.ip}:443 backlog=4096; ssl_preread on; proxy_pass $up; }}
}}
""")]


class Squid(Subject):
    name, doors, needs = "squid", ("connect", "http"), ("squid",)

    def argv(self):
        return ["squid", "-N", "-f", self.write("squid.conf", f"""\
http_port {self.ip}:3128
pid_filename {self.dir}/pid
access_log none
cache_log {self.dir}/cache.log
cache_store_log none
cache deny all
cache_mem 8 MB
coredump_dir {self.dir}
dns_nameservers {lab.DNS}
max_filedescriptors 20000
acl ok dstdomain echo.test once.test source.test http.test allowed.test
http_access allow ok
http_access deny all
visible_hostname lab
shutdown_lifetime 1 seconds
pinger_enable off
""")]


class Tinyproxy(Subject):
    name, doors, needs = "tinyproxy", ("connect", "http"), ("tinyproxy",)

    def argv(self):
        names = self.write("filter", "".join(
            f"^{n}\\.test$\n" for n in (*NAMES, "http", "allowed")))
        return ["tinyproxy", "-d", "-c", self.write("tinyproxy.conf", f"""\
Port 3128
Listen {self.ip}
Timeout 60
MaxClients 10000
LogFile "/dev/null"
LogLevel Critical
Filter "{names}"
FilterExtended On
FilterDefaultDeny Yes
""")]


class Responder(Subject):
    name, doors = "floor responder", ("dns",)

    def argv(self):
        return [tool("floor_dns"), self.ip, "53", ORIGINS["echo"]]


class Forwarder(Subject):
    name, doors = "floor forwarder", ("dns",)

    def argv(self):
        return [tool("floor_forward"), self.ip, "53", ANSWERER, "53"]


class Unbound(Subject):
    name, doors, needs = "unbound", ("dns",), ("unbound",)

    def argv(self):
        return ["unbound", "-d", "-c", self.write("unbound.conf", f"""\
server:
  interface: {self.ip}
  access-control: 10.77.0.0/24 allow
  num-threads: 1
  username: ""
  chroot: ""
  directory: "{self.dir}"
  pidfile: "{self.dir}/pid"
  logfile: "{self.dir}/log"
  use-syslog: no
  module-config: "iterator"
  msg-cache-size: 256m
  rrset-cache-size: 256m
  outgoing-range: 8192
  num-queries-per-thread: 4096
  local-zone: "test." nodefault
  local-zone: "denied.test." always_nxdomain
forward-zone:
  name: "."
  forward-addr: {ANSWERER}
""")]


class Dnsdist(Subject):
    name, doors, needs = "dnsdist", ("dns",), ("dnsdist",)

    def argv(self):
        return ["dnsdist", "--supervised", "-C", self.write("dnsdist.conf", f"""\
setLocal("{self.ip}:53")
setACL("10.77.0.0/24")
setSecurityPollSuffix("")
newServer({{address="{ANSWERER}", checkInterval=60, mustResolve=false}})
addAction("denied.test.", RCodeAction(DNSRCode.NXDOMAIN))
getPool(""):setCache(newPacketCache(1000000))
setMaxUDPOutstanding(65535)
""")]


class Dnsmasq(Subject):
    name, doors, needs = "dnsmasq", ("dns",), ("dnsmasq",)

    def argv(self):
        return ["dnsmasq", "-k", "-C", "/dev/null", "--no-resolv", "--no-hosts",
                "--listen-address=" + self.ip, "--bind-interfaces",
                "--except-interface=lo", "--user=root", "--pid-file=",
                f"--server={ANSWERER}", "--address=/denied.test/",
                "--cache-size=10000", "--dns-forward-max=5000"]


RELAYS = [Sallyport, Haproxy, HaproxySplice, Nginx, Squid, Tinyproxy]
RESOLVERS = [SallyportDns, Unbound, Dnsdist, Dnsmasq]
