// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Fills its heap and drops most of it. Answers with V8's sizes in bytes: the heap, the old generation, and the used part
// of the old generation. "collect" collects garbage.
const v8 = require('v8');
const kept = [];
let all = [];
for (let i = 0; i < 800000; i++) {
  const o = { i, s: 'x' + i, b: [i, i + 1] };
  all.push(o);
  if (i % 100 === 0) kept.push(o);
}
all = null;
if (process.argv[2] === 'gc') global.gc();
setTimeout(() => console.log('ready'), 500); // V8 sweeps concurrently
const session = new (require('inspector').Session)();
session.connect();
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === 'collect') { // as the inspector does, which also releases pages that V8 keeps
    session.post('HeapProfiler.collectGarbage');
    setTimeout(() => console.log(0), 3000); // V8 collects and releases pages concurrently
    return;
  }
  let heap = 0, old = 0, used = 0;
  for (const s of v8.getHeapSpaceStatistics()) {
    heap += s.space_size;
    if (s.space_name.startsWith('new_') || s.space_name.startsWith('read_only')) continue;
    old += s.space_size;
    used += s.space_used_size;
  }
  console.log(heap, old, used, kept.length);
});
