// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// One Node.js process with a memory habit: node node.js MODE key=value... It runs until it is killed.
// Sizes are MiB, times are seconds of the recording; test/recordings/README.md describes the modes.
'use strict';

const [mode, ...rest] = process.argv.slice(2);
const opt = Object.fromEntries(rest.map((kv) => kv.split('=')));
const num = (name, fallback) => Number(opt[name] ?? fallback);
const MiB = 1 << 20;
const started = Date.now();
const seconds = () => (Date.now() - started) / 1000;
const jitter = (x) => x * (0.6 + 0.8 * Math.random());

// objects makes about `mib` MiB of small JavaScript objects: V8 heap, not buffers.
function objects(mib) {
  const out = [];
  for (let i = 0; i < mib * 5200; i++) out.push({ id: i, name: `row-${i}-${Math.random()}`, tags: [i, i + 1] });
  return out;
}

// buffers makes `mib` MiB in buffers of 1 MiB, each page written: malloc or mmap, outside of the V8 heap.
const buffers = (mib) => Array.from({ length: mib }, () => Buffer.alloc(MiB, 1));

const live = objects(num('live', 30));
const kept = [];
const garbage = () => objects(jitter(num('garbage', 0.5)));
const every = (sec, f) => { const again = () => { f(); setTimeout(again, sec * 1000 * (0.8 + 0.4 * Math.random())); }; setTimeout(again, sec * 1000); };

const modes = {
  steady() { every(0.5, garbage); },

  // A cache of `cache` MiB: new keys become rarer, so it fills ever more slowly and then remains full.
  warm() {
    const room = num('cache', 60);
    const tau = num('tau', 120);
    let full = 0;
    every(1, () => {
      const want = Math.floor(room * (1 - Math.exp(-seconds() / tau)));
      while (full < want) { kept.push(...objects(1)); full++; }
      garbage();
    });
  },

  // Fan-out: for `hold` seconds `size` MiB of responses are held, then dropped.
  burst() {
    every(0.5, garbage);
    every(num('period', 90), () => {
      let held = buffers(Math.round(jitter(num('size', 80))));
      setTimeout(() => { held = null; if (global.gc) global.gc(); }, num('hold', 8) * 1000);
    });
  },

  // A slice of one KiB of every response is kept, and with it the MiB it was cut from: heapUsed remains low, RSS grows.
  retain() {
    every(0.5, garbage);
    const hammer = () => {
      for (const b of buffers(Math.round(jitter(num('size', 60))))) kept.push(b.subarray(0, 1024));
    };
    for (const at of (opt.at ?? '240,430').split(',')) setTimeout(hammer, Number(at) * 1000);
  },

  // A listener per request that nobody removes.
  leak() {
    const rate = num('rate', 0.15);
    let owed = 0;
    every(0.5, () => {
      garbage();
      for (owed += jitter(rate) / 2; owed >= 0.1; owed -= 0.1) kept.push(objects(0.1));
    });
  },

  // Garbage that lives long enough to be promoted: the old space grows to its cap before it is worth collecting.
  fill() {
    const ring = new Array(num('ring', 40));
    let at = 0;
    every(0.5, () => { ring[at++ % ring.length] = objects(num('garbage', 2)); });
  },

  // Sessions come and go with the time of day.
  wave() {
    const sessions = [];
    every(1, () => {
      const want = Math.round(num('size', 60) * (0.5 - 0.5 * Math.cos((2 * Math.PI * seconds()) / num('period', 240))));
      while (sessions.length < want) sessions.push(Buffer.alloc(MiB, 1));
      sessions.length = want;
      garbage();
      if (global.gc && Math.random() < 0.1) global.gc();
    });
  },
};
modes[mode]();
process.on('exit', () => console.log(live.length, kept.length));
