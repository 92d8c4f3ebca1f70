// The workload of "Where did 400 MiB go?": a service that holds a live set (its sessions) and, in bursts, fetches gzipped
// message pages from an upstream. Each page passes through the socket, zlib and JSON.parse; parsed pages stay in a small
// cache for a while, so they die old: V8 lets its old space grow until its own cap, and native buffers come on top.
// The upstream runs in this process, on loopback, so that the load needs nothing else and is the same every time.
'use strict';
const http = require('http');
const v8 = require('v8');
const zlib = require('zlib');

const MiB = 1024 * 1024;
const env = (name, fallback) => Number(process.env[name] || fallback);
// Sizes that go well beyond 256Mi with V8's own cap, and fit with memfit's. A little less, and the kernel may keep the process just below its
// limit for minutes, taking pages of the program away and reading them back from disk.
const SESSIONS_MIB = env('SESSIONS_MIB', 124); // live set
const PAGES_PER_BURST = env('PAGES_PER_BURST', 150); // fetches in one burst
const CONCURRENCY = env('CONCURRENCY', 16);
const CACHED_PAGES = env('CACHED_PAGES', 48); // parsed pages kept alive
const REST_SECONDS = env('REST_SECONDS', 5); // quiet time between bursts

const report = (event, more) => {
  const m = process.memoryUsage();
  console.log(JSON.stringify({
    event, rssMiB: Math.round(m.rss / MiB), heapUsedMiB: Math.round(m.heapUsed / MiB),
    heapLimitMiB: Math.round(v8.getHeapStatistics().heap_size_limit / MiB), ...more,
  }));
};

// One page: 800 messages, about 700 KiB of JSON, a few KiB on the wire.
const page = zlib.gzipSync(JSON.stringify(Array.from({ length: 800 }, (_, i) => ({
  id: i, from: `user-${i % 37}`, at: '2026-11-20T12:00:00Z', tags: ['inbox', `room-${i % 11}`], body: `message ${i} `.repeat(60),
}))));

const sessions = [];
while (process.memoryUsage().heapUsed < SESSIONS_MIB * MiB) {
  for (let n = 0; n < 1000; n += 1) sessions.push({ n, subject: `${sessions.length}`, rooms: [n, n + 1, n + 2] });
}

const upstream = http.createServer((_, res) => {
  res.setHeader('content-encoding', 'gzip');
  res.end(page);
});
upstream.keepAliveTimeout = 600_000; // the default, 5 s, is as long as the rest between bursts: a connection might end as it is used again

const agent = new http.Agent({ keepAlive: true, maxSockets: CONCURRENCY });
const fetchPage = (port) => new Promise((resolve, reject) => {
  http.get({ port, agent }, (res) => {
    const chunks = [];
    const unzip = res.pipe(zlib.createGunzip());
    unzip.on('data', (c) => chunks.push(c));
    unzip.on('end', () => resolve(JSON.parse(Buffer.concat(chunks).toString())));
    unzip.on('error', reject);
  }).on('error', reject);
});

async function burst(port, number) {
  const cache = [];
  let next = 0;
  await Promise.all(Array.from({ length: CONCURRENCY }, async () => {
    while (next < PAGES_PER_BURST) {
      next += 1;
      const messages = await fetchPage(port);
      cache.push(messages);
      if (cache.length > CACHED_PAGES) cache.shift();
    }
  }));
  report('burst done', { number, pages: PAGES_PER_BURST });
}

upstream.listen(0, '127.0.0.1', async () => {
  const { port } = upstream.address();
  report('started', { sessions: sessions.length });
  for (let number = 1; ; number += 1) {
    await burst(port, number);
    await new Promise((r) => setTimeout(r, REST_SECONDS * 1000));
  }
});
