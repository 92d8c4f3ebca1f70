// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// A program that measures the latency of allocations. Its argument is the MiB that it holds in small blocks. Each line
// of its input is a number of milliseconds, for which it continuously replaces random blocks. It then prints p50, p99,
// p99.9 and the longest time of a free and a malloc, in nanoseconds.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static unsigned long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// 64 buckets for each power of two, for a resolution of 1.6 %.
#define FINE 64
static unsigned long long counts[64 * FINE];

static int bucket(unsigned long long ns) {
  if (ns < FINE) return (int)ns;
  int shift = 63 - __builtin_clzll(ns) - 6;
  return (shift + 1) * FINE + (int)((ns >> shift) - FINE);
}

static unsigned long long value(int b) {
  if (b < FINE) return b;
  return (unsigned long long)(FINE + b % FINE) << (b / FINE - 1);
}

static unsigned seed = 1;
static unsigned next(void) { return seed = seed * 1664525u + 1013904223u; }
static size_t size(void) { return 16 + next() % 4080; }

int main(int argc, char **argv) {
  size_t blocks = (argc > 1 ? atol(argv[1]) : 100) * 512, i;
  void **held = calloc(blocks, sizeof *held);
  for (i = 0; i < blocks; i++) {
    size_t n = size();
    held[i] = memset(malloc(n), 1, n);
  }
  puts("ready");
  fflush(stdout);
  long ms;
  while (scanf("%ld", &ms) == 1) {
    memset(counts, 0, sizeof counts);
    unsigned long long end = now() + ms * 1000000ull, most = 0, n = 0;
    for (;;) {
      unsigned long long before = now();
      if (before >= end) break;
      i = next() % blocks;
      free(held[i]);
      size_t of = size();
      held[i] = malloc(of);
      *(volatile char *)held[i] = 1;
      unsigned long long took = now() - before;
      counts[bucket(took)]++;
      if (took > most) most = took;
      n++;
    }
    unsigned long long sum = 0, shares[] = {n / 2, n - n / 100, n - n / 1000}, at[3];
    int b = 0;
    for (int k = 0; k < 3; k++) {
      while (b < 64 * FINE && sum + counts[b] < shares[k]) sum += counts[b++];
      at[k] = value(b);
    }
    printf("%llu %llu %llu %llu\n", at[0], at[1], at[2], most);
    fflush(stdout);
  }
  return 0;
}
