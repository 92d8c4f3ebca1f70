/* Copyright 2026 The memfit authors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Fills memory by malloc and frees most of it, as a burst of requests does, and then reports its own numbers.
 *
 *   malloc THREADS SMALLEST LARGEST KEEP MIB [churn]
 *
 * Each thread allocates MIB of blocks between SMALLEST and LARGEST bytes, smaller ones more often, and frees all but KEEP
 * per mille. With "churn" it continues to allocate and free. Prints "ready", and answers lines on its input:
 *   hold   the threads stop permanently, each between two blocks; prints their number
 *   trim   malloc_trim(0); prints RSS in KiB before and after
 *   info   prints mallinfo2's used and mapped memory, in bytes
 *   quit   ends
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t smallest, largest, bytes;
static int keep;
static atomic_int churn, held;
static pthread_barrier_t filled;

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Sizes are spread evenly over powers of two, so that small blocks are many and large ones most of the bytes. */
static size_t size_of(uint64_t *state)
{
	int powers = 1;
	while (smallest << powers < largest)
		powers++;
	size_t low = smallest << next(state) % powers;
	size_t size = low + next(state) % low;
	return size > largest ? largest : size;
}

static void *run(void *argument)
{
	uint64_t state = 88172645463325252ull + (uintptr_t)argument * 7919;
	size_t capacity = bytes / smallest / 2 + 16, count = 0, total = 0;
	char **blocks = malloc(capacity * sizeof *blocks);
	free(malloc(largest)); /* raises the size from which blocks are mapped on their own: more of them lie in heaps */
	while (total < bytes && count < capacity) {
		size_t size = size_of(&state);
		blocks[count] = malloc(size);
		memset(blocks[count], 0x5a, size);
		total += size;
		count++;
	}
	for (size_t i = 0; i < count; i++)
		if ((int)(next(&state) % 1000) >= keep) {
			free(blocks[i]);
			blocks[i] = NULL;
		}
	pthread_barrier_wait(&filled);
	while (churn) {
		size_t i = next(&state) % count;
		if (blocks[i]) {
			free(blocks[i]);
			blocks[i] = NULL;
		} else if ((int)(next(&state) % 1000) < 300) {
			size_t size = size_of(&state);
			blocks[i] = malloc(size);
			memset(blocks[i], 0x5a, size < 4096 ? size : 4096);
		}
	}
	held++;
	pause();
	return blocks;
}

static char buffer[4096];

/* Without malloc, which would change the measurement. The kernel's smaps_rollup is exact, its statm is not. */
static long rss(void)
{
	int fd = open("/proc/self/smaps_rollup", O_RDONLY);
	ssize_t n = read(fd, buffer, sizeof buffer - 1);
	close(fd);
	buffer[n > 0 ? n : 0] = 0;
	char *line = strstr(buffer, "\nRss:");
	return line ? atol(line + 5) : -1;
}

static void answer(const char *format, unsigned long first, unsigned long second)
{
	int n = snprintf(buffer, sizeof buffer, format, first, second);
	if (write(1, buffer, n) != n)
		_exit(1);
}

#pragma weak mallinfo2 /* since 2.33 */

int main(int argc, char **argv)
{
	if (argc < 6)
		return 2;
	int threads = atoi(argv[1]);
	smallest = atol(argv[2]);
	largest = atol(argv[3]);
	keep = atoi(argv[4]);
	bytes = (size_t)atol(argv[5]) << 20;
	churn = argc > 6;
	pthread_barrier_init(&filled, NULL, threads > 0 ? threads + 1 : 1);
	for (long i = 0; i < threads; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, run, (void *)i);
	}
	if (threads == 0) { /* the main thread alone: only the main arena */
		churn = 0;
		uint64_t state = 88172645463325252ull;
		size_t capacity = bytes / smallest / 2 + 16, count = 0, total = 0;
		char **blocks = malloc(capacity * sizeof *blocks);
		for (; total < bytes && count < capacity; count++) {
			size_t size = size_of(&state);
			blocks[count] = malloc(size);
			memset(blocks[count], 0x5a, size);
			total += size;
		}
		for (size_t i = 0; i < count; i++)
			if ((int)(next(&state) % 1000) >= keep)
				free(blocks[i]);
	}
	pthread_barrier_wait(&filled);
	usleep(200 * 1000); /* the threads reach their pause */
	answer("ready\n", 0, 0);
	char line[64];
	ssize_t n;
	while ((n = read(0, line, sizeof line - 1)) > 0) {
		line[n] = 0;
		if (!strncmp(line, "trim", 4)) {
			long before = rss();
			malloc_trim(0);
			answer("%lu %lu\n", before, rss());
		} else if (!strncmp(line, "info", 4)) {
			struct mallinfo2 m = {0};
			if (mallinfo2)
				m = mallinfo2();
			answer("%lu %lu\n", m.uordblks, m.hblkhd);
		} else if (!strncmp(line, "hold", 4)) {
			churn = 0;
			while (held < threads)
				usleep(1000);
			answer("%lu %lu\n", held, 0);
		} else {
			break;
		}
	}
	_exit(0);
}
