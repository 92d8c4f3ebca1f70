#!/usr/bin/env python3
# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0
"""Record the memory of real processes with known habits (Linux only).

    record.py --out DIR [--seconds 720] [--parallel 22] [--only node-]

Every process runs at nice 19. Once a second its anonymous resident memory (RssAnon in /proc/PID/status) and its CPU time are written.
A process above its limit is killed and started again, as the kernel and the kubelet would. What the classifier may see (limit, cap,
runtime) goes to recordings.csv; what it must find out goes to labels.csv. README.md explains modes, labels and time compression.
"""

import argparse
import csv
import gzip
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs")
# One recorded second represents a minute of a cluster: load and time are sped up sixty times.
SECOND_IS = 60
# Large buffers of the programs come from mmap and go back to the kernel when freed; without this, glibc raises its mmap threshold.
MMAP = {"MALLOC_MMAP_THRESHOLD_": "500000", "MALLOC_ARENA_MAX": "2"}


@dataclass
class Recording:
    name: str
    label: str  # healthy, bursty, retaining, leaking or following
    args: str  # MODE key=value...
    limit: int = 512  # MiB
    cap: int = 0  # MiB, of the runtime; 0: none
    flags: str = ""  # of the runtime
    env: dict = field(default_factory=dict)
    replicas: int = 1
    sick: str = ""  # arguments of the last replica, if it is the sick one
    resize: tuple = ()  # (second, limit, cap): restarted with these

    @property
    def runtime(self):
        return self.name.split("-")[0]

    def command(self, build, args, cap):
        flags = self.flags.format(cap=cap).split()
        if self.runtime == "node":
            return ["node", *flags, f"{PROGRAMS}/node.js", *args.split()], {}
        if self.runtime == "jvm":
            return ["java", *flags, "-cp", build, "Mem", *args.split()], {}
        if self.runtime == "go":
            env = {"GOMEMLIMIT": f"{cap}MiB", "GOGC": "off"} if cap else {}
            return [f"{build}/mem", *args.split()], env
        if self.runtime == "python":
            return [sys.executable, f"{PROGRAMS}/mem.py", *args.split()], {}
        return ["ruby", f"{PROGRAMS}/mem.rb", *args.split()], {}


R = Recording
OLD = "--max-old-space-size={cap}"
GC = "--expose-gc"
SERIAL = "-XX:+UseSerialGC -Xmx{cap}m"
G1 = "-XX:+UseG1GC -Xmx{cap}m"
RECORDINGS = [
    # Node.js
    R("node-steady-1", "healthy", "steady live=30 garbage=0.5", 256, 128, OLD),
    R("node-steady-2", "healthy", "steady live=80 garbage=2", 384, 192, OLD),
    R("node-steady-3", "healthy", "steady live=15 garbage=4", 512),
    R("node-warm-1", "healthy", "warm cache=60 tau=80", 512),
    R("node-warm-2", "healthy", "warm cache=120 tau=150", 512, 384, OLD),
    R("node-burst-1", "bursty", "burst size=80 period=90 hold=8", 512, flags=GC, env=MMAP),
    R("node-burst-2", "bursty", "burst size=150 period=160 hold=15", 512, flags=GC, env=MMAP),
    R("node-burst-3", "bursty", "burst size=50 period=60 hold=5 live=60", 512, flags=GC, env=MMAP),
    R("node-wave-1", "bursty", "wave size=90 period=200", 512, flags=GC, env=MMAP),
    R("node-retain-1", "retaining", "retain at=240,430 size=60", 512, env=MMAP),
    R("node-retain-2", "retaining", "retain at=150,300,520 size=40", 512, env=MMAP),
    R("node-retain-3", "retaining", "retain at=360 size=120", 512, env=MMAP),
    R("node-leak-1", "leaking", "leak rate=0.15", 512),
    R("node-leak-2", "leaking", "leak rate=0.06 live=60", 512),
    R("node-leak-3", "leaking", "leak rate=0.4", 200),
    R("node-fill-1", "following", "fill ring=100 garbage=1", 320, 160, OLD),
    R("node-fill-2", "following", "fill ring=160 garbage=1", 400, 220, OLD),
    R("node-sick-1", "retaining", "steady live=15 garbage=0.5", 512, env=MMAP, replicas=6,
      sick="retain live=15 at=200,400 size=70"),
    # JVM
    R("jvm-steady-1", "healthy", "steady live=30 garbage=2", 384, 192, SERIAL),
    # Steady load, but G1 lets the heap grow with the cap: with caps of 160, 256, 384 and 512 MiB it settled at 157, 240, 316 and 344.
    R("jvm-steady-2", "following", "steady live=60 garbage=4", 512, 256, G1),
    R("jvm-steady-3", "healthy", "steady live=10 garbage=1", 256, 96, SERIAL),
    R("jvm-warm-1", "healthy", "warm cache=60 tau=80", 512, 96, SERIAL),
    R("jvm-warm-2", "healthy", "warm cache=120 tau=150", 512, 128, G1),
    R("jvm-burst-1", "bursty", "burst size=100 period=100 hold=8", 512, 128, SERIAL),
    R("jvm-burst-2", "bursty", "burst size=60 period=70 hold=6", 512, 128, G1),
    # Made to retain, but G1 gave the heap back after a hundred seconds, both times.
    R("jvm-retain-1", "bursty", "retain at=200,450 size=60", 768, 512, G1 + " -Xms48m"),
    R("jvm-retain-2", "retaining", "retain at=150,300,500 size=50", 1024, 768, SERIAL + " -Xms48m"),
    R("jvm-leak-1", "leaking", "leak rate=0.15 garbage=1", 768, 512, SERIAL + " -Xmn16m"),
    R("jvm-leak-2", "leaking", "leaknative rate=0.15", 512, 96, SERIAL),
    R("jvm-leak-3", "leaking", "leaknative rate=0.06", 512, 96, G1),
    R("jvm-fill-1", "following", "fill ring=60 garbage=1", 320, 224, SERIAL + " -Xms224m"),
    R("jvm-fill-2", "following", "fill ring=80 garbage=1.5", 400, 300, "-XX:+UseParallelGC -Xmx{cap}m -Xms{cap}m"),
    R("jvm-fill-3", "following", "fill ring=60 garbage=1", 320, 240, G1 + " -Xms240m"),
    # Go
    R("go-steady-1", "healthy", "steady live=20 garbage=2", 256),
    R("go-steady-2", "healthy", "steady live=80 garbage=6", 512),
    R("go-steady-3", "healthy", "steady live=40 garbage=30", 512),
    R("go-warm-1", "healthy", "warm cache=60 tau=80", 512),
    R("go-warm-2", "healthy", "warm cache=100 tau=150", 512),
    R("go-burst-1", "bursty", "burst size=80 period=120 hold=8 garbage=6", 512),
    R("go-burst-2", "bursty", "burst size=160 period=200 hold=10", 640),
    R("go-wave-1", "bursty", "wave size=80 period=240", 512),
    R("go-retain-1", "retaining", "retain at=200,450 size=40", 768),
    R("go-retain-2", "retaining", "retain at=330 size=100", 768),
    R("go-leak-1", "leaking", "leak rate=0.15", 512),
    R("go-leak-2", "leaking", "goroutines rate=0.12", 512),
    R("go-leak-3", "leaking", "leak rate=0.5 live=10", 256),
    R("go-fill-1", "following", "fill live=30 garbage=1", 256, 230),
    R("go-fill-2", "following", "fill live=60 garbage=2", 400, 360),
    R("go-fill-3", "following", "fill live=20 garbage=2", 200, 180, resize=(330, 320, 288)),
    # Python
    R("python-steady-1", "healthy", "steady live=20 garbage=1", 256),
    R("python-steady-2", "healthy", "steady live=60 garbage=6", 256),
    R("python-warm-1", "healthy", "warm cache=60 tau=80", 512),
    R("python-warm-2", "healthy", "warm cache=120 tau=150", 512),
    R("python-burst-1", "bursty", "burst size=80 period=90 hold=8", 512, env=MMAP),
    R("python-burst-2", "bursty", "burst size=200 period=150 hold=20", 512, env=MMAP),
    R("python-wave-1", "bursty", "wave size=60 period=180", 512, env=MMAP),
    R("python-retain-1", "retaining", "retain at=240,430 size=60 keep=100", 512),
    R("python-retain-2", "retaining", "retain at=180,400,560 size=50 keep=50", 512),
    R("python-leak-1", "leaking", "leak rate=0.15", 512),
    R("python-leak-2", "leaking", "leak rate=0.06", 512),
    R("python-leak-3", "leaking", "leak rate=0.5", 180),
    # Ruby
    R("ruby-steady-1", "healthy", "steady live=20 garbage=1", 256),
    R("ruby-steady-2", "healthy", "steady live=60 garbage=4", 384),
    R("ruby-warm-1", "healthy", "warm cache=80 tau=100", 512, env=MMAP),
    R("ruby-burst-1", "bursty", "burst size=100 period=110 hold=10", 512, env=MMAP),
    R("ruby-retain-1", "retaining", "retain at=240,460 size=60", 512),
    R("ruby-leak-1", "leaking", "leak rate=0.15", 512),
    R("ruby-leak-2", "leaking", "leak rate=0.08", 512),
    # Held out at first (names end in -1x): other sizes, rates and moments; 900 seconds.
    R("node-steady-11", "healthy", "steady live=50 garbage=1", 320, 160, OLD),
    R("node-warm-11", "healthy", "warm cache=90 tau=110", 512),
    R("node-burst-11", "bursty", "burst size=100 period=75 hold=6", 512, flags=GC, env=MMAP),
    R("node-retain-11", "retaining", "retain at=300,600 size=80", 640, env=MMAP),
    R("node-leak-11", "leaking", "leak rate=0.25 live=20", 640),
    R("node-fill-11", "following", "fill ring=120 garbage=1", 360, 190, OLD),
    R("node-sick-11", "retaining", "steady live=20 garbage=0.4", 512, env=MMAP, replicas=5, sick="retain live=20 at=250,500 size=60"),
    R("jvm-steady-11", "healthy", "steady live=40 garbage=1", 320, 160, SERIAL),
    R("jvm-warm-11", "healthy", "warm cache=90 tau=110", 640, 256, SERIAL),
    R("jvm-burst-11", "bursty", "burst size=120 period=130 hold=10", 640, 256, SERIAL),
    # Made to retain, but G1 gave the heap back here, too.
    R("jvm-retain-11", "bursty", "retain at=280,600 size=70", 768, 512, G1 + " -Xms48m"),
    R("jvm-leak-11", "leaking", "leak rate=0.1", 768, 512, SERIAL + " -Xmn24m"),
    R("jvm-fill-11", "following", "fill ring=90 garbage=1", 400, 280, SERIAL + " -Xms280m"),
    R("go-steady-11", "healthy", "steady live=60 garbage=10", 384),
    R("go-warm-11", "healthy", "warm cache=80 tau=110", 512),
    R("go-burst-11", "bursty", "burst size=120 period=150 hold=10", 640),
    R("go-retain-11", "retaining", "retain at=300,600 size=60", 1024),
    R("go-leak-11", "leaking", "leak rate=0.25 live=40", 768),
    R("go-fill-11", "following", "fill live=40 garbage=1", 225, 200),
    R("python-steady-11", "healthy", "steady live=40 garbage=3", 256),
    R("python-burst-11", "bursty", "burst size=120 period=100 hold=10", 512, env=MMAP),
    R("python-retain-11", "retaining", "retain at=350 size=80 keep=80", 512),
    R("python-leak-11", "leaking", "leak rate=0.1 live=50", 512),
    R("python-wave-11", "bursty", "wave size=80 period=220", 512, env=MMAP),
    R("ruby-steady-11", "healthy", "steady live=40 garbage=2", 256),
    R("ruby-retain-11", "retaining", "retain at=300,550 size=80", 512),
    R("ruby-leak-11", "leaking", "leak rate=0.12", 512),
    # Held out (names end in -2x): recorded after the classifier was finished; 900 seconds.
    R("node-steady-21", "healthy", "steady live=40 garbage=1.5", 400, 200, OLD),
    R("node-warm-21", "healthy", "warm cache=70 tau=100 live=50", 512),
    R("node-burst-21", "bursty", "burst size=130 period=110 hold=9 live=40", 640, flags=GC, env=MMAP),
    R("node-retain-21", "retaining", "retain at=270,520 size=110 garbage=0.2", 768, env=MMAP),
    R("node-leak-21", "leaking", "leak rate=0.3 garbage=0.2", 640),
    R("node-fill-21", "following", "fill ring=110 garbage=1", 330, 170, OLD),
    R("node-sick-21", "retaining", "steady live=25 garbage=0.3", 512, env=MMAP, replicas=5, sick="retain live=25 at=180,420 size=80 garbage=0.3"),
    R("jvm-steady-21", "healthy", "steady live=25 garbage=1.5", 384, 160, SERIAL),
    R("jvm-warm-21", "healthy", "warm cache=110 tau=90", 640, 300, SERIAL),
    R("jvm-burst-21", "bursty", "burst size=150 period=90 hold=7 live=10", 640, 96, SERIAL + " -Xms96m"),
    R("jvm-retain-21", "retaining", "retain at=250,550 size=80", 1024, 768, SERIAL + " -Xms48m"),
    R("jvm-leak-21", "leaking", "leaknative rate=0.12", 640, 256, SERIAL),
    R("jvm-fill-21", "following", "fill ring=100 garbage=1", 420, 300, SERIAL + " -Xms300m"),
    R("go-steady-21", "healthy", "steady live=50 garbage=4", 384),
    R("go-warm-21", "healthy", "warm cache=50 tau=100", 384),
    R("go-burst-21", "bursty", "burst size=100 period=170 hold=12", 640),
    R("go-retain-21", "retaining", "retain at=400 size=120", 1024),
    R("go-leak-21", "leaking", "goroutines rate=0.4", 384),
    R("go-fill-21", "following", "fill live=50 garbage=1.5", 300, 270),
    R("python-steady-21", "healthy", "steady live=30 garbage=5", 256),
    R("python-warm-21", "healthy", "warm cache=90 tau=90", 512),
    R("python-burst-21", "bursty", "burst size=90 period=130 hold=15", 512, env=MMAP),
    R("python-retain-21", "retaining", "retain at=200,500 size=70 keep=60", 512),
    R("python-leak-21", "leaking", "leak rate=0.2 live=30", 512),
    R("ruby-warm-21", "healthy", "warm cache=100 tau=90", 512, env=MMAP),
    R("ruby-retain-21", "retaining", "retain at=350 size=90", 512),
    R("ruby-leak-21", "leaking", "leak rate=0.2", 512),
]


class Replica:
    """One container: a process that is restarted when it ends."""

    def __init__(self, rec, build, number):
        self.rec, self.build, self.number = rec, build, number
        self.limit, self.cap = rec.limit, rec.cap
        self.instance, self.cpu = -1, 0
        self.start()

    def start(self):
        sick = self.rec.sick and self.number == self.rec.replicas - 1
        argv, env = self.rec.command(self.build, self.rec.sick if sick else self.rec.args, self.cap)
        self.process = subprocess.Popen(
            argv, env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **self.rec.env, **env}, preexec_fn=lambda: os.nice(19),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.instance += 1
        self.cpu = 0

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def look(self):
        """(anonymous KiB, CPU ms since the last call), or None when the process has ended."""
        try:
            with open(f"/proc/{self.process.pid}/status") as f:
                anon = next(int(line.split()[1]) for line in f if line.startswith("RssAnon"))
            with open(f"/proc/{self.process.pid}/stat") as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except (OSError, StopIteration):
            return None
        cpu = (int(fields[11]) + int(fields[12])) * 1000 // os.sysconf("SC_CLK_TCK")
        spent, self.cpu = cpu - self.cpu, cpu
        return anon, spent


def record(rec, build, out, seconds):
    replicas = [Replica(rec, build, n) for n in range(rec.replicas)]
    rows = []
    started = time.monotonic()
    resize = rec.resize
    try:
        for second in range(1, seconds + 1):
            time.sleep(max(0, started + second - time.monotonic()))
            if resize and second >= resize[0]:
                for r in replicas:
                    r.stop()
                    r.limit, r.cap = resize[1:]
                    r.start()
                resize = ()
                continue
            for r in replicas:
                seen = r.look()
                if seen is None or r.process.poll() is not None:
                    r.process.wait()
                    r.start()
                    continue
                rows.append((second, r.number, r.instance, r.limit, r.cap, *seen))
                if seen[0] > r.limit * 1024:
                    r.stop()
                    r.start()
    finally:
        for r in replicas:
            r.stop()
    with gzip.GzipFile(f"{out}/{rec.name}.csv.gz", "wb", mtime=0) as f:
        f.write(b"second,replica,instance,limit_mib,cap_mib,anon_kib,cpu_ms\n")
        f.write("".join(",".join(map(str, row)) + "\n" for row in rows).encode())
    print(f"{time.strftime('%H:%M:%S')} {rec.name}: {len(rows)} samples, {replicas[0].instance} restarts, "
          f"{min(r[5] for r in rows) >> 10} to {max(r[5] for r in rows) >> 10} MiB", flush=True)


def compile_programs():
    build = tempfile.mkdtemp(prefix="memfit-recordings-")
    subprocess.run(["javac", "-d", build, f"{PROGRAMS}/Mem.java"], check=True)
    subprocess.run(["go", "build", "-o", f"{build}/mem", f"{PROGRAMS}/mem.go"], check=True)
    return build


def write_tables(out):
    """Describe all recordings in out, also those of earlier runs."""
    recs = sorted((r for r in RECORDINGS if os.path.exists(f"{out}/{r.name}.csv.gz")), key=lambda r: r.name)
    with open(f"{out}/recordings.csv", "w", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(["name", "runtime", "second_is", "replicas"])
        w.writerows([r.name, r.runtime, SECOND_IS, r.replicas] for r in recs)
    with open(f"{out}/labels.csv", "w", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(["name", "label", "sick"])
        w.writerows([r.name, r.label, r.replicas - 1 if r.sick else ""] for r in recs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=HERE)
    parser.add_argument("--seconds", type=int, default=720)
    parser.add_argument("--parallel", type=int, default=22)
    parser.add_argument("--only", default="", help="record only names that contain this")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    recs = [r for r in RECORDINGS if args.only in r.name]
    random.Random(4).shuffle(recs)  # so that each wave has several runtimes
    build = compile_programs()
    try:
        with ThreadPoolExecutor(args.parallel) as pool:
            list(pool.map(lambda r: record(r, build, args.out, args.seconds), recs))
    finally:
        shutil.rmtree(build)
    write_tables(args.out)


if __name__ == "__main__":
    main()
