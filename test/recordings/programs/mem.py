# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0
"""One Python process with a memory habit: mem.py MODE key=value... It runs until it is killed.

Sizes are MiB, times are seconds of the recording; test/recordings/README.md says what each mode stands for.
"""

import math
import random
import sys
import time

MODE = sys.argv[1]
OPT = dict(kv.split("=") for kv in sys.argv[2:])
STARTED = time.monotonic()
KEPT = []


def num(name, fallback):
    return float(OPT.get(name, fallback))


def jitter(x):
    return x * random.uniform(0.6, 1.4)


def seconds():
    return time.monotonic() - STARTED


def objects(mib):
    """Small Python objects: pymalloc arenas."""
    return [{"id": i, "name": f"row-{i}"} for i in range(int(mib * 3000))]


def blob(mib):
    """One large buffer: mmap, given back when freed."""
    return b"\x01" * int(mib * (1 << 20))


def steady():
    while True:
        objects(jitter(num("garbage", 1)))
        time.sleep(0.5)


def warm():
    full = 0
    while True:
        want = num("cache", 60) * (1 - math.exp(-seconds() / num("tau", 120)))
        while full < want:
            KEPT.append(blob(1 / 8) + b"x")
            full += 1 / 8
        objects(1)
        time.sleep(0.5)


def burst():
    due = num("period", 90)
    while True:
        if seconds() > due:
            held = [blob(8) for _ in range(int(jitter(num("size", 80)) / 8))]
            time.sleep(num("hold", 8))
            del held
            due = seconds() + jitter(num("period", 90))
        objects(jitter(1))
        time.sleep(0.5)


def retain():
    """A report makes many small objects and keeps a few of them: one pins the arena of a MiB it lies in."""
    due = [float(s) for s in OPT.get("at", "240,430").split(",")]
    while True:
        if due and seconds() > due[0]:
            due.pop(0)
            rows = objects(jitter(num("size", 60)))
            KEPT.append(rows[:: int(num("keep", 200))])
            del rows
        objects(jitter(0.5))
        time.sleep(0.5)


def leak():
    while True:
        objects(jitter(num("garbage", 1)))
        KEPT.append(objects(jitter(num("rate", 0.15)) / 2))
        time.sleep(0.5)


def wave():
    held = []
    while True:
        want = int(num("size", 60) * (0.5 - 0.5 * math.cos(2 * math.pi * seconds() / num("period", 240))))
        while len(held) < want:
            held.append(blob(1))
        del held[want:]
        time.sleep(0.5)


LIVE = objects(num("live", 20))
globals()[MODE]()
