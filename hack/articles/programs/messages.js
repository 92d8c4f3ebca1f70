// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// The program of the story "Where did 400 MiB go?": a service that holds a live set (its sessions) and, in bursts,
// fetches gzipped pages of messages. Each page passes through the socket, zlib and JSON.parse. Parsed pages remain in a
// small cache long enough to reach V8's old generation, which grows; glibc keeps the memory that zlib has freed. The
// upstream runs in this process, on loopback, so that the load needs no other program and is the same every time.
// make demo makes bursts without requests (BURST_PAGES) and keeps pages as they were parsed (PLAIN); variables
// take precedence over arguments.
//
//   GET /burst?pages=150   fetches 150 pages
//   GET /collect           forces a full collection, as the article does through the inspector
//   GET /stats             what V8 and the kernel report; sizes are bytes
'use strict';
const fs = require('fs');
const http = require('http');
const v8 = require('v8');
const vm = require('vm');
const zlib = require('zlib');

const MiB = 1024 * 1024;
const given = Object.fromEntries(process.argv.slice(2).map((word) => word.split('='))); // NAME=NUMBER
const env = (name, fallback) => Number(process.env[name] || given[name] || fallback);
const SESSIONS_MIB = env('SESSIONS_MIB', 100); // live, in V8's heap: as in the article's healthy pod
const BUFFERS_MIB = env('BUFFERS_MIB', 57); // live, outside V8's heap: external and arrayBuffers in the article
const CONCURRENCY = env('CONCURRENCY', 16);
const CACHED_PAGES = env('CACHED_PAGES', 40); // parsed pages kept alive, until others replace them
const BURST_PAGES = env('BURST_PAGES', 0); // pages of each burst without a request; 0: none
const REST_SECONDS = env('REST_SECONDS', 5); // between these bursts
const MESSAGES = env('MESSAGES', 3000); // of a page
const REPEATS = env('REPEATS', 1); // of the text of a message
const PLAIN = env('PLAIN', 0); // 1: a parsed page is kept as it is

const rss = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1]) * 1024;
const stats = () => {
  const m = process.memoryUsage();
  return {
    sessions: sessions.length, buffers: buffers.length, rss: rss(), heapTotal: m.heapTotal, heapUsed: m.heapUsed, external: m.external,
    arrayBuffers: m.arrayBuffers, heapLimit: v8.getHeapStatistics().heap_size_limit,
  };
};

// One page: 3000 short messages, 300 KiB of JSON, and 2 MiB once they are the service's own objects.
const rows = Array.from({ length: MESSAGES }, (_, i) => ({
  id: i, from: `user-${i % 37}`, at: 1763985600 + i, tags: ['inbox', `room-${i % 11}`], body: Array(REPEATS).fill(`message ${i}`).join(' '),
}));
const page = zlib.gzipSync(JSON.stringify(rows));
const message = (row) => (PLAIN ? row : { ...row, seenBy: new Map([[row.from, row.at]]), words: row.body.split(' '), reply: null });

const sessions = [];
while (process.memoryUsage().heapUsed < SESSIONS_MIB * MiB) {
  for (let n = 0; n < 1000; n += 1) sessions.push({ n, subject: `${sessions.length}`, rooms: [n, n + 1, n + 2] });
}

const buffers = Array.from({ length: BUFFERS_MIB }, () => Buffer.alloc(MiB, 1));

// Allocations of the sessions' own messages, 4 MiB a second: V8 collects a process that allocates less than 1 MB/s by
// itself, after some seconds.
if (!BURST_PAGES) setInterval(() => { for (let i = 0; i < 20; i += 1) new Array(2600).fill(i); }, 100).unref();

const upstream = http.createServer((_, res) => {
  res.setHeader('content-encoding', 'gzip');
  res.end(page);
});
upstream.keepAliveTimeout = 600_000; // the default, 5 s, may end a connection as it is used again

const agent = new http.Agent({ keepAlive: true, maxSockets: CONCURRENCY });
const fetchPage = () => new Promise((resolve, reject) => {
  http.get({ port: upstream.address().port, agent }, (res) => {
    const chunks = [];
    const unzip = res.pipe(zlib.createGunzip());
    unzip.on('data', (c) => chunks.push(c));
    unzip.on('end', () => resolve(JSON.parse(Buffer.concat(chunks).toString()).map(message)));
    unzip.on('error', reject);
  }).on('error', reject);
});

// fetch gets pages, at of them at a time, and caches the last few until it returns. It continues, up to three times as
// long, until RSS is near its peak: a collection at the end would make the pod one of the article's healthy ones.
async function fetch(pages, at, cached) {
  const cache = [];
  let next = 0;
  let peak = 0;
  await Promise.all(Array.from({ length: at }, async () => {
    while (next < pages || (!BURST_PAGES && next < 3 * pages && rss() < 0.95 * peak)) {
      next += 1;
      cache.push(await fetchPage());
      if (cache.length > cached) cache.shift();
      peak = Math.max(peak, rss());
    }
  }));
  return { peak, pages: next };
}

const steps = {
  '/stats': async () => ({}),
  '/burst': async (query) => fetch(Number(query.get('pages') || 150), CONCURRENCY, CACHED_PAGES),
  '/collect': async () => {
    v8.setFlagsFromString('--expose-gc');
    vm.runInNewContext('gc')();
    await new Promise((r) => setTimeout(r, 2000)); // V8 releases pages in the background
    return {};
  },
};

http.createServer(async (req, res) => {
  const url = new URL(req.url, 'http://localhost');
  const step = steps[url.pathname];
  if (!step) return res.writeHead(404).end();
  try {
    const more = await step(url.searchParams);
    return res.end(JSON.stringify({ ...stats(), ...more }));
  } catch (err) {
    return res.writeHead(500).end(String(err));
  }
}).listen(env('PORT', 8080));

const report = (event, more) => {
  const { heapUsed, heapLimit } = stats();
  const sizes = { rssMiB: rss() / MiB, heapUsedMiB: heapUsed / MiB, heapLimitMiB: heapLimit / MiB };
  const rounded = Object.fromEntries(Object.entries(sizes).map(([name, mib]) => [name, Math.round(mib)]));
  console.log(JSON.stringify({ event, ...rounded, ...more }));
};
upstream.listen(0, '127.0.0.1', async () => {
  report('started', { sessions: sessions.length });
  for (let number = 1; BURST_PAGES; number += 1) {
    await fetch(BURST_PAGES, CONCURRENCY, CACHED_PAGES);
    report('burst done', { number, pages: BURST_PAGES });
    await new Promise((r) => setTimeout(r, REST_SECONDS * 1000));
  }
});
process.on('SIGTERM', () => process.exit(0));
