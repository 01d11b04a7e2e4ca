/* SPDX-License-Identifier: MIT */
#include "src/explain/tally.h"

#include "src/base/fnv.h"

#include <pthread.h>

/* Sentences that have no row any more are printed each time. */
#define ROWS 16384

struct row {
	uint64_t hash; /* 0: free */
	uint64_t count;
	uint64_t next; /* the count at which the sentence is printed */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct row rows[ROWS];

void tally_lock(void)
{
	pthread_mutex_lock(&mutex);
}

void tally_unlock(void)
{
	pthread_mutex_unlock(&mutex);
}

/* Returns the row of a hash, which may be a free one; NULL if all are taken by others. */
static struct row *find(uint64_t hash)
{
	for (unsigned int i = 0; i < ROWS; i++) {
		struct row *row = &rows[(hash + i) % ROWS];

		if (!row->hash || row->hash == hash)
			return row;
	}
	return NULL;
}

uint64_t tally_count(const char *place, const char *sentence)
{
	uint64_t hash = fnv_add_text(fnv_add_text(FNV_BASIS, place), sentence) | 1;
	uint64_t count = 1;
	struct row *row;

	tally_lock();
	row = find(hash);
	if (row && row->hash) {
		count = ++row->count;
		if (count == row->next)
			row->next *= 10;
		else
			count = 0;
	} else if (row) {
		*row = (struct row){.hash = hash, .count = 1, .next = 10};
	}
	tally_unlock();
	return count;
}
