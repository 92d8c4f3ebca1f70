// Says what V8 made of its environment. CommonJS for Node.js from 12 on.
const v8 = require('v8');
console.log('heap=' + Math.round(v8.getHeapStatistics().heap_size_limit / 1048576));
console.log('hook=' + (globalThis.hook || ''));
for (const name of ['MALLOC_ARENA_MAX', 'GOMEMLIMIT']) console.log(name + '=' + (process.env[name] || ''));
