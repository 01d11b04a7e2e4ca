/* SPDX-License-Identifier: MIT */
#include "backends/sim/base/descriptor.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define CAPACITY_MIN 64

/* The owners by the number of the descriptor. */
struct owners {
	struct owners *
		before; /* smaller, and out of use; never freed, because a reader may still have it */
	int capacity;
	void *_Atomic by_fd[];
};

/* Readers take no lock: poll(2) asks for an owner, and signal handlers may call poll(2). */
static struct {
	pthread_mutex_t mutex; /* of writers */
	struct owners *_Atomic owners;
	_Atomic int count; /* most processes have none */
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
	struct owners *before = table.owners, *owners;
	int capacity = before ? before->capacity : CAPACITY_MIN;

	if (before && fd < capacity)
		return true;
	while (capacity <= fd)
		capacity *= 2;
	owners = calloc(1, sizeof(*owners) + (size_t)capacity * sizeof(owners->by_fd[0]));
	if (!owners)
		return false;
	owners->before = before;
	owners->capacity = capacity;
	for (int i = 0; before && i < before->capacity; i++)
		owners->by_fd[i] = before->by_fd[i];
	table.owners = owners;
	return true;
}

int descriptor_enter(int fd, void *owner)
{
	bool room;

	lock();
	room = grow(fd);
	if (room) {
		table.owners->by_fd[fd] = owner;
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
	if (descriptor_owner(fd)) {
		table.owners->by_fd[fd] = NULL;
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
	struct owners *owners = table.owners;

	return owners && fd >= 0 && fd < owners->capacity ? owners->by_fd[fd] : NULL;
}
