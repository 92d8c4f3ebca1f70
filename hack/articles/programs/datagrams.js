// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// The program of the story "Why we patched node.js": a server that only counts datagrams, as a statsd does. A thread
// of the same process sends them, so that the load needs no other program.
//
//   GET /load?packets=200000   receives that many datagrams, as fast as they can be sent
//   GET /collect               forces a full collection, as the article does every two seconds
//   GET /stats                 sizes are bytes
'use strict';
const dgram = require('dgram');
const fs = require('fs');
const http = require('http');
const v8 = require('v8');
const vm = require('vm');
const { Worker, isMainThread, workerData } = require('worker_threads');

const MESSAGE = Buffer.from('stats.counters.test|1');
const BATCH = 200; // datagrams sent before the sender yields

if (!isMainThread) {
  const client = dgram.createSocket('udp4');
  let sent = 0;
  const more = () => {
    for (let i = 0; i < BATCH && sent < workerData.packets; i += 1, sent += 1) {
      client.send(MESSAGE, workerData.port, '127.0.0.1');
    }
    if (sent < workerData.packets) return setTimeout(more, 1);
    return setTimeout(() => process.exit(0), 200);
  };
  more();
} else {
  let packets = 0;
  let bytes = 0;
  const recent = []; // metrics of the interval: slices of the datagrams, as a parser keeps them
  const server = dgram.createSocket({ type: 'udp4', recvBufferSize: 4 << 20 });
  server.on('message', (message) => {
    packets += 1;
    bytes += message.length;
    if (process.env.KEEP) recent.push(message.subarray(0, 5));
  });
  server.bind(0, '127.0.0.1');

  const rss = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1]) * 1024;
  const stats = () => {
    const m = process.memoryUsage();
    return {
      packets, bytes, rss: rss(), heapTotal: m.heapTotal, heapUsed: m.heapUsed, external: m.external,
      arrayBuffers: m.arrayBuffers, major: Number(process.versions.node.split('.')[0]),
    };
  };

  const load = (wanted) => new Promise((resolve) => {
    let peak = 0;
    const watch = setInterval(() => { peak = Math.max(peak, rss()); }, 50);
    new Worker(__filename, { workerData: { packets: wanted, port: server.address().port } }).on('exit', () => {
      clearInterval(watch);
      recent.length = 0; // the interval is over
      resolve({ peak });
    });
  });
  const collect = async () => {
    v8.setFlagsFromString('--expose-gc');
    vm.runInNewContext('gc')();
    await new Promise((r) => setTimeout(r, 2000));
    return {};
  };

  http.createServer(async (req, res) => {
    const url = new URL(req.url, 'http://localhost');
    const steps = {
      '/stats': async () => ({}), '/collect': collect,
      '/load': () => load(Number(url.searchParams.get('packets') || 200000)),
    };
    if (!steps[url.pathname]) return res.writeHead(404).end();
    const more = await steps[url.pathname]();
    return res.end(JSON.stringify({ ...stats(), ...more }));
  }).listen(Number(process.env.PORT || 8080));
  process.on('SIGTERM', () => process.exit(0));
}
