#!/usr/bin/env python3
# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0
"""Record a kubelet's numbers of containers at their limit: stalled ones, and similar ones.

    KUBECONFIG=... record_stalls.py --kubectl kubectl --out DIR [--seconds 420] [--only reader]

Runs one pod per case on a real node (the lab, see hack/lab), in a namespace of its own that is deleted in the end, and writes every new
sample of /stats/summary as it comes. README.md explains the files.
"""

import argparse
import csv
import datetime
import json
import os
import subprocess
import sys
import time

GO, NODE, JDK = "memfit.test/goprobe:dev", "memfit.test/node:20", "memfit.test/jdk:17"
COMPILE = """
const keep = [], src = n => 'let s=0;' + Array.from({length: 400}, (_, i) => `s+=Math.sin(${i + n})*x;`).join('') + 'return s';
let n = 0; setInterval(() => { n++; new Function('x', src(n))(n); if (keep.length < %d) keep.push(Buffer.alloc(1 << 20, 1)); }, 20);
"""
JVM = """
import java.util.*;
public class Case { public static void main(String[] a) throws Exception {
  List<byte[]> l = new ArrayList<>(); for (int i = 0; i < 120; i++) l.add(new byte[1 << 20]);
  for (;;) { Thread.sleep(100); for (int i = 0; i < 5; i++) new StringBuilder().append(new Random().nextInt()).toString(); } } }
"""


def go(*args, env=()):
    return {"image": GO, "args": ["-file-dir", "/data", *args], "env": dict(env)}


# name: the program, its limit, whether it stalls. "hidden": it stalls, but reads in order, so that the kernel reads ahead and most of its
# reads are not major faults.
CASES = {
    "go-stall-text": (go("-hold", "230Mi", "-map-file", "51Mi", "-walk-random", env={"GOGC": "off"}), "256Mi", True),
    "go-stall-small": (go("-hold", "115Mi", "-map-file", "26Mi", "-walk-random", env={"GOGC": "off"}), "128Mi", True),
    "go-stall-walk": (go("-hold", "230Mi", "-map-file", "51Mi", env={"GOGC": "off"}), "256Mi", "hidden"),
    "go-reads-files": (go("-hold", "20Mi", "-read-file", "600Mi", "-pause", "1s"), "256Mi", False),
    "go-reads-files-full": (go("-hold", "225Mi", "-read-file", "600Mi", "-pause", "1s", env={"GOGC": "off"}), "256Mi", False),
    "go-mapped-database": (go("-hold", "60Mi", "-map-file", "500Mi", "-walk-random"), "256Mi", False),
    "go-full-quiet": (go("-hold", "238Mi", env={"GOGC": "off"}), "256Mi", False),
    "go-at-gomemlimit": (go("-hold", "150Mi", "-churn", "60Mi", env={"GOMEMLIMIT": "230MiB", "GOGC": "off"}), "256Mi", False),
    "jvm-reads-image": ({"image": JDK, "command": ["sh", "-c", "cat > /data/Case.java <<'E'\n%s\nE\nexec java -Xms176m -Xmx176m "
                         "-XX:+UseSerialGC -XX:+AlwaysPreTouch /data/Case.java" % JVM], "env": {}}, "256Mi", False),
    "node-usual": ({"image": NODE, "command": ["node", "-e", COMPILE % 60], "env": {}}, "256Mi", False),
    "node-close": ({"image": NODE, "command": ["node", "-e", COMPILE % 175], "env": {}}, "256Mi", False),
}
COLUMNS = "second,started,limit_mib,usage_kib,working_set_kib,anon_kib,major_faults,waited_ms".split(",")


class Cluster:
    def __init__(self, kubectl, namespace):
        self.kubectl, self.namespace = kubectl, namespace

    def run(self, *args, text=None):
        done = subprocess.run([self.kubectl, *args], input=text, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

    def start(self, name):
        run, limit, _ = CASES[name]
        container = {
            "name": "app", "image": run["image"], "imagePullPolicy": "Never",
            "env": [{"name": k, "value": v} for k, v in run["env"].items()],
            "resources": {"limits": {"memory": limit}, "requests": {"memory": "16Mi", "cpu": "1m"}},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
        container.update({k: v for k, v in run.items() if k in ("args", "command")})
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": self.namespace}, "spec": {
            "terminationGracePeriodSeconds": 1, "containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]}}
        self.run("apply", "-f", "-", text=json.dumps(pod))

    def samples(self, node):
        summary = json.loads(self.run("get", "--raw", f"/api/v1/nodes/{node}/proxy/stats/summary?only_cpu_and_memory=true"))
        for pod in summary["pods"]:
            if pod["podRef"]["namespace"] == self.namespace:
                for c in pod["containers"]:
                    if "rssBytes" in c.get("memory", {}):
                        yield pod["podRef"]["name"], c["startTime"], c["memory"]


def seconds(stamp):
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


def record(cluster, names, length):
    node = json.loads(cluster.run("get", "nodes", "-o", "json"))["items"][0]["metadata"]["name"]
    rows, last, first = {n: [] for n in names}, {}, time.time()
    for n in names:
        cluster.start(n)
    while time.time() < first + length:
        for name, started, m in cluster.samples(node):
            if name not in rows or last.get(name) == m["time"]:
                continue
            last[name] = m["time"]
            rows[name].append([
                int(seconds(m["time"]) - first), int(seconds(started) - first), int(CASES[name][1].rstrip("Mi")), m["usageBytes"] >> 10,
                m["workingSetBytes"] >> 10, m["rssBytes"] >> 10, m["majorPageFaults"],
                m.get("psi", {}).get("full", {}).get("total", 0) // 1_000_000])
        time.sleep(5)
    return rows


def write(out, rows):
    for name, recorded in rows.items():
        with open(f"{out}/{name}.csv", "w", newline="") as f:
            w = csv.writer(f, lineterminator="\n")
            w.writerow(COLUMNS)
            w.writerows(recorded)
        print(f"{name}: {len(recorded)} samples", *recorded[-1:], flush=True)
    with open(f"{out}/labels.csv", "w", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(["name", "stalls"])
        w.writerows([n, str(CASES[n][2]).lower()] for n in sorted(CASES) if os.path.exists(f"{out}/{n}.csv"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kubectl", default="kubectl")
    parser.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "stalls"))
    parser.add_argument("--seconds", type=int, default=420)
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    args = parser.parse_args()
    cluster = Cluster(args.kubectl, f"record-stalls-{os.getpid()}")
    cluster.run("create", "namespace", cluster.namespace)
    try:
        write(args.out, record(cluster, [n for n in CASES if args.only in n], args.seconds))
    finally:
        cluster.run("delete", "namespace", cluster.namespace, "--wait=false")


if __name__ == "__main__":
    sys.exit(main())
