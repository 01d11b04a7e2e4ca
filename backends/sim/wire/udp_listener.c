/* SPDX-License-Identifier: MIT */
/*
 * The thread of the wire `udp` that waits for datagrams while nobody polls. It watches the sockets until
 * one can be read, rings the bell, and then waits until it is asked to watch again: so a program that
 * polls costs it no wake-up.
 */
#include "backends/sim/base/thread.h"
#include "backends/sim/wire/udp_private.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Sleeps until a socket can be read, the thread is woken, or the pause is over. Releases the mutex
 * meanwhile. Returns false if the thread was woken and nothing else has happened. */
static bool watch(struct udp_listener *listener)
{
	static const struct timespec pause = {.tv_nsec = UDP_PAUSE_NS};
	struct pollfd fds[UDP_SOCKETS_MAX + 2];
	const unsigned int count = listener->count;
	const struct timespec *limit = listener->hurries ? &pause : NULL;
	uint64_t wakes;
	int ready;

	memcpy(fds, listener->fds, count * sizeof(fds[0]));
	pthread_mutex_unlock(&listener->mutex);
	ready = ppoll(fds, count, limit, NULL);
	pthread_mutex_lock(&listener->mutex);
	if (ready <= 0)
		return ready == 0;
	if (!fds[0].revents)
		return true;
	return read(listener->wake_fd, &wakes, sizeof(wakes)) < 0 || ready > 1;
}

static void *listen_on(void *arg)
{
	struct udp_listener *listener = arg;

	pthread_mutex_lock(&listener->mutex);
	listener->began = true;
	pthread_cond_broadcast(&listener->changed);
	while (!listener->ends) {
		if (!listener->aims) {
			pthread_cond_wait(&listener->changed, &listener->mutex);
		} else if (watch(listener)) {
			listener->aims = false;
			listener->hurries = false;
			if (listener->on)
				bell_wake(listener->bell);
		}
	}
	pthread_mutex_unlock(&listener->mutex);
	return NULL;
}

static int begin(struct udp_listener *listener)
{
	int err = thread_start(&listener->thread, listen_on, listener);

	if (err)
		return err;
	/* A thread that begins holds locks of the C library; a child that is forked at this moment would
	 * find them locked for ever. */
	pthread_mutex_lock(&listener->mutex);
	while (!listener->began)
		pthread_cond_wait(&listener->changed, &listener->mutex);
	pthread_mutex_unlock(&listener->mutex);
	return 0;
}

int udp_listener_start(struct udp_listener *listener, struct bell *bell, const char **call)
{
	int err;

	memset(listener, 0, sizeof(*listener));
	listener->bell = bell;
	pthread_mutex_init(&listener->mutex, NULL);
	pthread_cond_init(&listener->changed, NULL);
	*call = "eventfd";
	listener->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (listener->wake_fd < 0)
		return errno;
	listener->fds[0] = (struct pollfd){.fd = listener->wake_fd, .events = POLLIN};
	listener->count = 1;
	*call = "pthread_create";
	err = begin(listener);
	listener->runs = !err;
	if (err)
		close(listener->wake_fd);
	return err;
}

/* Wakes the thread, which then looks at on and hurries again. The caller holds the mutex. */
static void wake(struct udp_listener *listener)
{
	static const uint64_t one = 1;

	pthread_cond_broadcast(&listener->changed);
	/* A counter that is full wakes the thread, too. */
	if (write(listener->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void udp_listener_forget(struct udp_listener *listener)
{
	if (listener->runs)
		close(listener->wake_fd);
	listener->runs = false;
}

void udp_listener_stop(struct udp_listener *listener)
{
	if (!listener->runs)
		return;
	pthread_mutex_lock(&listener->mutex);
	listener->ends = true;
	wake(listener);
	pthread_mutex_unlock(&listener->mutex);
	pthread_join(listener->thread, NULL);
	close(listener->wake_fd);
	pthread_mutex_destroy(&listener->mutex);
	pthread_cond_destroy(&listener->changed);
	listener->runs = false;
}

void udp_listener_watch(struct udp_listener *listener, struct udp_socket *const *sockets,
			unsigned int count, int groups_fd)
{
	pthread_mutex_lock(&listener->mutex);
	for (unsigned int i = 0; i < count; i++)
		listener->fds[i + 1] = (struct pollfd){.fd = sockets[i]->fd, .events = POLLIN};
	listener->fds[count + 1] = (struct pollfd){.fd = groups_fd, .events = POLLIN};
	listener->count = count + 2;
	wake(listener);
	pthread_mutex_unlock(&listener->mutex);
}

void udp_listener_set(struct udp_listener *listener, bool on)
{
	listener->on = on;
	udp_listener_aim(listener);
}

void udp_listener_hurry(struct udp_listener *listener)
{
	if (!listener->runs)
		return;
	pthread_mutex_lock(&listener->mutex);
	listener->hurries = true;
	if (listener->aims)
		wake(listener);
	pthread_mutex_unlock(&listener->mutex);
}

void udp_listener_aim(struct udp_listener *listener)
{
	if (!listener->on || listener->aims || !listener->runs)
		return;
	pthread_mutex_lock(&listener->mutex);
	listener->aims = true;
	pthread_cond_signal(&listener->changed);
	pthread_mutex_unlock(&listener->mutex);
}
