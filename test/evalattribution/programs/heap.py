# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# Fills its heap, drops most of it, and answers with the bytes that pymalloc counts as allocated.
import gc
import os
import re
import sys

kept, everything = [], []
for i in range(600000):
    pair = (i, str(i))
    everything.append(pair)
    if i % 20 == 0:
        kept.append(pair)
del everything, pair
gc.collect()
print("ready", flush=True)


def allocated(path):
    stderr = os.dup(2)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(file, 2)
    sys._debugmallocstats()
    os.dup2(stderr, 2)
    os.close(stderr)
    os.lseek(file, 0, 0)
    text = os.read(file, 1 << 20).decode()
    os.close(file)
    # from 3.10 on some lines are printed twice: for objects, then for everything
    return int(re.search(r"# bytes in allocated blocks\s*=\s*([\d,]+)", text)[1].replace(",", ""))


for line in sys.stdin:
    print(allocated(line.strip()), flush=True)
