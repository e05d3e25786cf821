#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manifests say what docs/kubernetes.md says of them, and the policy in
them is one: there is no cluster here to ask.

    kubernetes.py SALLYPORT DEPLOY/KUBERNETES
"""
import glob
import ipaddress
import os
import subprocess
import sys

import yaml

BINARY, FOLDER = sys.argv[1], sys.argv[2]
GUARD_RIGHTS = {"NET_ADMIN", "SETUID", "SETGID", "SETPCAP", "KILL",
                "SYS_CHROOT"}
good = True


def check(what, ok, told=""):
    global good
    print("ok     " + what if ok else f"FAILED {what}: {told}")
    good = good and bool(ok)


class Strict(yaml.SafeLoader):
    """A key that is there twice is a mistake, as for the API server."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key) for key, _ in node.value]
        if len(keys) != len(set(keys)):
            raise yaml.YAMLError(f"a key twice: {keys} {node.start_mark}")
        return super().construct_mapping(node, deep)


def documents():
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.yaml"))):
        with open(path) as text:
            for document in yaml.load_all(text, Strict):
                yield os.path.basename(path), document


OBJECTS = {(d["kind"], d["metadata"]["name"]): d for _, d in documents()}
POD = OBJECTS["Pod", "agent"]["spec"]
FENCE = OBJECTS["NetworkPolicy", "sallyport-outer-fence"]["spec"]
LOGS = OBJECTS["DaemonSet", "sallyport-logs"]["spec"]["template"]["spec"]
VERSIONS = {"Pod": "v1", "ConfigMap": "v1", "DaemonSet": "apps/v1",
            "NetworkPolicy": "networking.k8s.io/v1"}


def confined(container):
    """No right is given, all are dropped, nothing can be regained."""
    context = container["securityContext"]
    return (context["capabilities"] == {"drop": ["ALL"]} and
            context["allowPrivilegeEscalation"] is False and
            context["readOnlyRootFilesystem"] is True and
            context["seccompProfile"] == {"type": "RuntimeDefault"} and
            not context.get("privileged"))


def volumes_fit(spec):
    names = {volume["name"] for volume in spec["volumes"]}
    used = {mount["name"] for container in
            spec["containers"] + spec.get("initContainers", [])
            for mount in container["volumeMounts"]}
    return names == used, names ^ used


def sidecar():
    guard, = POD["initContainers"]
    context = guard["securityContext"]
    check("native sidecar", guard["restartPolicy"] == "Always")
    check("guard in the foreground", guard["args"][:2] == ["guard", "up"] and
          "--foreground" in guard["args"], guard["args"])
    check("nothing starts before the rules", guard["startupProbe"]["exec"] ==
          {"command": ["sallyport", "guard", "status"]})
    check("its rights", context["capabilities"]["drop"] == ["ALL"] and
          set(context["capabilities"]["add"]) == GUARD_RIGHTS and
          not context.get("privileged") and
          context["allowPrivilegeEscalation"] is False, context)
    check("the runtime's own profile is left to it", context["seccompProfile"]
          == {"type": "RuntimeDefault"} and "appArmorProfile" not in context)
    check("its files", context["readOnlyRootFilesystem"] is True)
    policy = guard["args"][guard["args"].index("--policy") + 1]
    mounts = {mount["mountPath"]: mount for mount in guard["volumeMounts"]}
    check("the policy is where it is read", os.path.dirname(policy) in mounts
          and "subPath" not in mounts[os.path.dirname(policy)], policy)
    check("policy and key are not written", all(
        mount.get("readOnly") for at, mount in mounts.items()
        if mount["name"] in ("policy", "key")), mounts)
    used = set()
    for mount in guard["volumeMounts"]:
        used.update(part.split(")")[0] for part in
                    mount.get("subPathExpr", "").split("$(")[1:])
    check("names of the log's directory are known", used and
          used <= {entry["name"] for entry in guard["env"]}, used)


def pod():
    agent, = POD["containers"]
    check("the agent has no right", confined(agent) and
          agent["securityContext"]["runAsNonRoot"] is True)
    check("the agent sees nothing of sallyport",
          {mount["name"] for mount in agent["volumeMounts"]} == {"tmp"})
    check("no token, no host",
          POD["automountServiceAccountToken"] is False and
          not POD["hostNetwork"] and not POD["shareProcessNamespace"] and
          not POD.get("hostPID") and not POD.get("hostIPC"))
    check("NET_ADMIN is the sidecar's alone", all(
        "add" not in c["securityContext"]["capabilities"]
        for c in POD["containers"] + LOGS["containers"]))
    check("volumes of the Pod", *volumes_fit(POD))


def fence():
    labels = OBJECTS["Pod", "agent"]["metadata"]["labels"]
    check("the fence is the Pod's", FENCE["podSelector"]["matchLabels"].items()
          <= labels.items())
    check("both ways", set(FENCE["policyTypes"]) == {"Ingress", "Egress"} and
          FENCE["ingress"] == [])
    dns, public = FENCE["egress"]
    check("DNS only to the cluster's", {p["port"] for p in dns["ports"]} == {53}
          and all("ipBlock" not in to and "podSelector" in to
                  for to in dns["to"]))
    blocks = [to["ipBlock"] for to in public["to"]]
    for text in ("169.254.169.254", "10.1.2.3", "172.20.0.1", "192.168.1.1",
                 "100.64.0.1", "127.0.0.1", "224.0.0.1", "255.255.255.255",
                 "fd00::1", "fe80::1", "::1", "fd00:ec2::254"):
        address = ipaddress.ip_address(text)
        passed = [b for b in blocks if address in ipaddress.ip_network(b["cidr"])
                  and not any(address in ipaddress.ip_network(e)
                              for e in b.get("except", []))]
        check(f"{text} is fenced off", not passed, passed)
    check("public addresses pass", any(
        ipaddress.ip_address("93.184.216.34") in ipaddress.ip_network(b["cidr"])
        for b in blocks))
    check("only TCP", {p["protocol"] for p in public["ports"]} == {"TCP"})


def logs():
    agent, = LOGS["containers"]
    check("the shipper has no right", confined(agent))
    check("volumes of the shipper", *volumes_fit(LOGS))
    kept, = [v["hostPath"]["path"] for v in POD["volumes"] if "hostPath" in v]
    read, = [v["hostPath"]["path"] for v in LOGS["volumes"]
             if v["name"] == "logs"]
    mount, = [m for m in agent["volumeMounts"] if m["name"] == "logs"]
    check("it reads where the Pods write", kept == read == mount["mountPath"]
          and mount["readOnly"], (kept, read, mount))
    text = OBJECTS["ConfigMap", "sallyport-logs"]["data"]["fluent-bit.yaml"]
    config = yaml.load(text, Strict)
    inputs = config["pipeline"]["inputs"]
    files = {path.rsplit("/", 1)[1] for entry in inputs
             for path in entry["path"].split(",")}
    check("records, checkpoints, receipts",
          files == {"audit.jsonl", "checkpoints", "receipt.dsse.json"}, files)
    check("all below that", all(path.startswith(kept + "/") for entry in inputs
                                for path in entry["path"].split(",")))
    check("lines as they are", not any("parser" in entry or "multiline" in entry
                                       for entry in inputs))
    check("encrypted", all(entry["tls"] and entry["tls.verify"] for entry in
                           config["pipeline"]["outputs"]))


def policy():
    text = OBJECTS["ConfigMap", "sallyport-policy"]["data"]["policy.yaml"]
    told = subprocess.run([BINARY, "check", "--strict", "-"], input=text,
                          capture_output=True, text=True)
    check("the policy is valid, and without a warning", told.returncode == 0,
          told)
    ports = {p["port"] for p in FENCE["egress"][1]["ports"]}
    check("its ports pass the fence", {443, 80} <= ports)


for file, document in documents():
    check(f"{file}: {document['kind']}", document["apiVersion"] ==
          VERSIONS[document["kind"]])
check("objects have names of their own",
      len(OBJECTS) == len(list(documents())))
sidecar()
pod()
fence()
logs()
policy()
sys.exit(0 if good else 1)
