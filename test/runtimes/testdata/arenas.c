/* Says how many malloc arenas eight live threads got. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_barrier_t ready, done;

static void *work(void *unused) {
	void *volatile p = malloc(100000);
	(void)unused;
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&done);
	free(p);
	return NULL;
}

int main(int argc, char **argv) {
	pthread_t threads[8];
	char *text = NULL, *at;
	size_t size;
	int arenas = 0, i;
	FILE *out;

	pthread_barrier_init(&ready, NULL, 9);
	pthread_barrier_init(&done, NULL, 9);
	for (i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	pthread_barrier_wait(&ready);
	out = open_memstream(&text, &size);
	malloc_info(0, out);
	fclose(out);
	for (at = text; (at = strstr(at, "<heap nr=")); at++)
		arenas++;
	printf("arenas=%d\n", arenas);
	printf("MALLOC_TRIM_THRESHOLD_=%s\n", getenv("MALLOC_TRIM_THRESHOLD_") ? getenv("MALLOC_TRIM_THRESHOLD_") : "");
	(void)argv;
	if (argc > 1) { /* "idle": stay until the input ends */
		fflush(stdout);
		getchar();
	}
	pthread_barrier_wait(&done);
	for (i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
