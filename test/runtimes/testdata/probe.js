// Says what V8 made of its environment. CommonJS for Node.js from 12 on.
const v8 = require('v8');
const { Worker } = require('worker_threads');
const heap = "Math.round(require('v8').getHeapStatistics().heap_size_limit / 1048576)";
console.log('heap=' + Math.round(v8.getHeapStatistics().heap_size_limit / 1048576));
console.log('hook=' + (globalThis.hook || ''));
for (const name of ['MALLOC_ARENA_MAX', 'GOMEMLIMIT']) console.log(name + '=' + (process.env[name] || ''));
// A worker thread with a limit of its own, which V8's flags override.
new Worker(`require('worker_threads').parentPort.postMessage(${heap})`, {
  eval: true, resourceLimits: { maxOldGenerationSizeMb: 64 },
}).on('message', (limit) => console.log('worker=' + limit));
