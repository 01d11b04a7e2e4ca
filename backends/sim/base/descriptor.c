/* SPDX-License-Identifier: MIT */
#include "backends/sim/base/descriptor.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define STEP 64 /* descriptors by which the table grows at least */

static struct {
	pthread_mutex_t mutex;
	void **owners; /* by the number of the descriptor */
	int capacity;
	_Atomic int count; /* read without the mutex: most processes have none */
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void lock(void)
{
	pthread_mutex_lock(&table.mutex);
}

static void unlock(void)
{
	pthread_mutex_unlock(&table.mutex);
}

/* The child of fork() has the forking thread only: no other thread may have the lock then. These handlers are there
 * before those of worlds, so that fork() takes this lock after the locks of worlds, as verbs do. */
__attribute__((constructor)) static void watch_fork(void)
{
	pthread_atfork(lock, unlock, unlock);
}

/* Returns false if there is no memory. */
static bool grow(int fd)
{
	const int capacity = fd + STEP;
	void **owners;

	if (fd < table.capacity)
		return true;
	owners = realloc(table.owners, (size_t)capacity * sizeof(*owners));
	if (!owners)
		return false;
	for (int i = table.capacity; i < capacity; i++)
		owners[i] = NULL;
	table.owners = owners;
	table.capacity = capacity;
	return true;
}

int descriptor_enter(int fd, void *owner)
{
	bool room;

	lock();
	room = grow(fd);
	if (room) {
		table.owners[fd] = owner;
		table.count++;
	}
	unlock();
	return room ? 0 : ENOMEM;
}

void descriptor_leave(int fd)
{
	if (!atomic_load_explicit(&table.count, memory_order_relaxed) || fd < 0)
		return;
	lock();
	if (fd < table.capacity && table.owners[fd]) {
		table.owners[fd] = NULL;
		table.count--;
	}
	unlock();
}

bool descriptor_any(void)
{
	return atomic_load_explicit(&table.count, memory_order_relaxed) > 0;
}

void *descriptor_owner(int fd)
{
	void *owner = NULL;

	if (!atomic_load_explicit(&table.count, memory_order_relaxed) || fd < 0)
		return NULL;
	lock();
	if (fd < table.capacity)
		owner = table.owners[fd];
	unlock();
	return owner;
}
