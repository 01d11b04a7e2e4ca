/* SPDX-License-Identifier: MIT */
/*
 * For check-files: a thread reads a folder, and the process forks while the thread has a lock of the library that
 * leads it to the files. The child must not wait for that lock. pthread_mutex_unlock() is this program's own.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fts.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HOLD_NS = 100000000, HANG_SECONDS = 10, NS_PER_S = 1000000000 };

static sem_t has_lock, forked;
static _Atomic bool lingers;
static char *const roots[] = {(char *)"/sys/class/infiniband", NULL};
static DIR *folder;
static FTS *walk;

/* Keeps the lock until the process has forked, or for HOLD_NS: fork() may wait for the lock. */
static void linger(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += HOLD_NS;
	until.tv_sec += until.tv_nsec / NS_PER_S;
	until.tv_nsec %= NS_PER_S;
	sem_post(&has_lock);
	sem_timedwait(&forked, &until);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static int (*next)(pthread_mutex_t *);

	if (!next)
		next = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	if (atomic_exchange(&lingers, false))
		linger();
	return next(mutex);
}

/* A machine with adapters of its own has nothing to add to the folder: then the thread takes no lock. */
static void *read_all(void *way)
{
	atomic_store(&lingers, true);
	if (strcmp(way, "fts") == 0)
		while (fts_read(walk))
			;
	else
		while (readdir(folder))
			;
	if (atomic_exchange(&lingers, false))
		sem_post(&has_lock);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int status = 1;
	pid_t child;

	folder = opendir("/sys/class");
	walk = fts_open(roots, FTS_PHYSICAL, NULL);
	if (argc != 2 || !folder || !walk || sem_init(&has_lock, 0, 0) || sem_init(&forked, 0, 0) ||
	    pthread_create(&thread, NULL, read_all, argv[1]))
		return 2;
	sem_wait(&has_lock);
	child = fork();
	if (child == 0) {
		alarm(HANG_SECONDS);
		if (strcmp(argv[1], "fts") == 0)
			fts_close(walk);
		else
			closedir(folder);
		_exit(0);
	}
	sem_post(&forked);
	pthread_join(thread, NULL);
	waitpid(child, &status, 0);
	fts_close(walk);
	closedir(folder);
	return status != 0;
}
