// For Deno and Bun.
import v8 from 'node:v8';
console.log('heap=' + Math.round(v8.getHeapStatistics().heap_size_limit / 1048576));
console.log('answer=' + 6 * 7);
