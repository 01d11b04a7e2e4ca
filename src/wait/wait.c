/* SPDX-License-Identifier: MIT */
/* poll(2), select(2), epoll_wait(2) and their relatives. */
/* The headers would define poll() and its like inline. */
#undef _FORTIFY_SOURCE

#include "src/wait/wait.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/lib-names.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/single_threaded.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define NEVER  UINT64_MAX /* VB_SIM_NEVER */
#define SLICE_NS \
	10000000 /* so often a wait without limit looks at the world, if there are other threads */

/* The definition behind this one: libc's, or that of a sanitizer. */
#define NEXT(name)          \
	static void *next_; \
	__typeof__(&(name)) next = (__typeof__(next))find(&next_, #name)

/* For a library that the dynamic linker has placed behind libc. */
static void *find_in_libc(const char *symbol)
{
	void *libc = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
	void *definition = libc ? dlsym(libc, symbol) : NULL;

	if (libc)
		dlclose(libc);
	return definition;
}

static void *find(void **found, const char *symbol)
{
	void *next = __atomic_load_n(found, __ATOMIC_ACQUIRE);

	if (!next) {
		next = dlsym(RTLD_NEXT, symbol);
		if (!next)
			next = find_in_libc(symbol);
		__atomic_store_n(found, next, __ATOMIC_RELEASE);
	}
	return next;
}

/* --- one wait --- */

struct wait {
	struct wait_set set;
	uint64_t timeout_ns; /* NEVER: no limit */
	int result;	     /* of the last call of the real function */
	int error;	     /* the errno that belongs to it */
	/* Calls the real function, for real_ns at most, and sets result. */
	void (*call)(struct wait *wait, uint64_t real_ns);
};

static bool look(void *arg)
{
	struct wait *wait = arg;

	wait->call(wait, 0);
	wait->error = errno;
	return wait->result != 0;
}

/* Sleeps really. Returns true if the wait is over. */
static bool sleep_for(struct wait *wait, uint64_t real_ns)
{
	wait->call(wait, real_ns);
	wait->error = errno;
	return wait->result != 0;
}

/* The set has descriptors of others, which need real time. Returns true if the wait is over. */
static bool wait_with_others(const struct wait_world *world, struct wait *wait)
{
	uint64_t left_ns;
	int err = world->wait_fd_events(wait->set.fd, look, wait, wait->timeout_ns, &left_ns);

	if (err == ENODEV || err == EINVAL)
		return sleep_for(wait, wait->timeout_ns);
	if (err != EAGAIN)
		return true;
	if (left_ns == NEVER)
		return sleep_for(wait, __libc_single_threaded ? NEVER : SLICE_NS);
	/* The virtual time of the timeout passes, too. */
	if (!sleep_for(wait, left_ns))
		world->wait_fd(wait->set.fd, look, wait, left_ns);
	return true;
}

/* Returns true if the wait is over. */
static bool wait_alone(const struct wait_world *world, struct wait *wait)
{
	int err = world->wait_fd(wait->set.fd, look, wait, wait->timeout_ns);

	/* A world that ends, or another thread that closes the descriptor. */
	if (err == ENODEV || err == EINVAL)
		return sleep_for(wait, wait->timeout_ns);
	return err != EDEADLK || sleep_for(wait, __libc_single_threaded ? NEVER : SLICE_NS);
}

/* Returns what the function returns, with its errno. */
static int wait_for(const struct wait_world *world, struct wait *wait)
{
	const int saved = errno;
	bool over = look(wait);

	while (!over)
		over = wait->set.others && wait->timeout_ns ? wait_with_others(world, wait)
							    : wait_alone(world, wait);
	errno = wait->result < 0 ? wait->error : saved;
	return wait->result;
}

static uint64_t of_ms(int timeout_ms)
{
	return timeout_ms < 0 ? NEVER : (uint64_t)timeout_ms * 1000000;
}

/* Rounded up: a wait is not shorter than the program asks for. */
static int to_ms(uint64_t ns)
{
	const uint64_t ms = ns / 1000000 + (ns % 1000000 != 0);

	return ns == NEVER ? -1 : ms > INT32_MAX ? INT32_MAX : (int)ms;
}

static uint64_t of_timespec(const struct timespec *time)
{
	return time ? (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec : NEVER;
}

/* Returns NULL for NEVER. */
static struct timespec *to_timespec(uint64_t ns, struct timespec *time)
{
	*time = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	return ns == NEVER ? NULL : time;
}

static bool is_valid(const struct timespec *time)
{
	return !time || (time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < 1000000000);
}

/* --- poll(2) --- */

struct poll_wait {
	struct wait wait;
	struct pollfd *fds;
	nfds_t count;
	const sigset_t *mask;
	__typeof__(&poll) poll;
	__typeof__(&ppoll) ppoll;
};

static void call_poll(struct wait *wait, uint64_t real_ns)
{
	struct poll_wait *self = (struct poll_wait *)wait;

	wait->result = self->poll(self->fds, self->count, to_ms(real_ns));
}

static void call_ppoll(struct wait *wait, uint64_t real_ns)
{
	struct poll_wait *self = (struct poll_wait *)wait;
	struct timespec time;

	wait->result = self->ppoll(self->fds, self->count, to_timespec(real_ns, &time), self->mask);
}

/* Returns the worlds if the set has a descriptor of one. */
static const struct wait_world *world_of_poll(struct wait *wait, const struct pollfd *fds,
					      nfds_t count)
{
	const struct wait_world *world = wait_world();

	wait->set.fd = -1;
	if (world && world->has_fd(-1))
		wait_set_add_poll(&wait->set, world, fds, count);
	return wait->set.fd >= 0 ? world : NULL;
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	NEXT(poll);
	struct poll_wait self = {.wait = {.timeout_ns = of_ms(timeout), .call = call_poll},
				 .fds = fds,
				 .count = count,
				 .poll = next};
	const struct wait_world *world = world_of_poll(&self.wait, fds, count);

	return world ? wait_for(world, &self.wait) : next(fds, count, timeout);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		 const sigset_t *mask)
{
	NEXT(ppoll);
	struct poll_wait self = {.wait = {.timeout_ns = of_timespec(timeout), .call = call_ppoll},
				 .fds = fds,
				 .count = count,
				 .mask = mask,
				 .ppoll = next};
	const struct wait_world *world =
		is_valid(timeout) ? world_of_poll(&self.wait, fds, count) : NULL;

	return world ? wait_for(world, &self.wait) : next(fds, count, timeout, mask);
}

/* What programs call that were compiled with _FORTIFY_SOURCE. */
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t bytes);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t bytes);

EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t bytes)
{
	if (bytes / sizeof(*fds) < count)
		abort();
	return poll(fds, count, timeout);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		       const sigset_t *mask, size_t bytes)
{
	if (bytes / sizeof(*fds) < count)
		abort();
	return ppoll(fds, count, timeout, mask);
}

/* --- select(2) --- */

struct select_wait {
	struct wait wait;
	int count;
	fd_set *sets[3];
	fd_set wanted[3];
	const sigset_t *mask;
	__typeof__(&select) select;
	__typeof__(&pselect) pselect;
};

static void call_select(struct wait *wait, uint64_t real_ns)
{
	struct select_wait *self = (struct select_wait *)wait;
	struct timeval time = {(time_t)(real_ns / 1000000000),
			       (suseconds_t)(real_ns % 1000000000 / 1000)};
	struct timespec precise;
	fd_set *const *sets = self->sets;

	for (int i = 0; i < 3; i++)
		if (sets[i])
			*sets[i] = self->wanted[i];
	wait->result = self->select ? self->select(self->count, sets[0], sets[1], sets[2],
						   real_ns == NEVER ? NULL : &time)
				    : self->pselect(self->count, sets[0], sets[1], sets[2],
						    to_timespec(real_ns, &precise), self->mask);
}

/* A set of more descriptors than fd_set holds is the program's own memory, which nobody can copy. */
static const struct wait_world *world_of_select(struct select_wait *self)
{
	const struct wait_world *world = wait_world();
	const fd_set *const sets[3] = {self->sets[0], self->sets[1], self->sets[2]};

	self->wait.set.fd = -1;
	if (!world || !world->has_fd(-1) || self->count > FD_SETSIZE)
		return NULL;
	for (int i = 0; i < 3; i++)
		if (sets[i])
			self->wanted[i] = *sets[i];
	wait_set_add_select(&self->wait.set, world, self->count, sets);
	return self->wait.set.fd >= 0 ? world : NULL;
}

EXPORT int select(int count, fd_set *reads, fd_set *writes, fd_set *excepts,
		  struct timeval *timeout)
{
	NEXT(select);
	struct select_wait self = {.wait.call = call_select,
				   .count = count,
				   .sets = {reads, writes, excepts},
				   .select = next};
	const struct wait_world *world = world_of_select(&self);

	if (!world || (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return next(count, reads, writes, excepts, timeout);
	self.wait.timeout_ns =
		timeout ? (uint64_t)timeout->tv_sec * 1000000000 + (uint64_t)timeout->tv_usec * 1000
			: NEVER;
	wait_for(world, &self.wait);
	/* Linux writes the time that is left: none after a timeout. Otherwise it stays as it was. */
	if (timeout && !self.wait.result)
		*timeout = (struct timeval){0, 0};
	return self.wait.result;
}

EXPORT int pselect(int count, fd_set *reads, fd_set *writes, fd_set *excepts,
		   const struct timespec *timeout, const sigset_t *mask)
{
	NEXT(pselect);
	struct select_wait self = {
		.wait = {.timeout_ns = of_timespec(timeout), .call = call_select},
		.count = count,
		.sets = {reads, writes, excepts},
		.mask = mask,
		.pselect = next};
	const struct wait_world *world = is_valid(timeout) ? world_of_select(&self) : NULL;

	return world ? wait_for(world, &self.wait)
		     : next(count, reads, writes, excepts, timeout, mask);
}

/* --- epoll_wait(2) --- */

struct epoll_wait_call {
	struct wait wait;
	int fd;
	struct epoll_event *events;
	int count;
	const sigset_t *mask;
	__typeof__(&epoll_wait) epoll_wait;
	__typeof__(&epoll_pwait) epoll_pwait;
};

static void call_epoll(struct wait *wait, uint64_t real_ns)
{
	struct epoll_wait_call *self = (struct epoll_wait_call *)wait;

	wait->result = self->epoll_wait ? self->epoll_wait(self->fd, self->events, self->count,
							   to_ms(real_ns))
					: self->epoll_pwait(self->fd, self->events, self->count,
							    to_ms(real_ns), self->mask);
}

static const struct wait_world *world_of_epoll(struct wait *wait, int fd)
{
	const struct wait_world *world = wait_world();

	wait->set.fd = -1;
	if (world && world->has_fd(-1))
		wait_set_add(&wait->set, world, fd);
	return wait->set.fd >= 0 ? world : NULL;
}

EXPORT int epoll_wait(int fd, struct epoll_event *events, int count, int timeout)
{
	NEXT(epoll_wait);
	struct epoll_wait_call self = {.wait = {.timeout_ns = of_ms(timeout), .call = call_epoll},
				       .fd = fd,
				       .events = events,
				       .count = count,
				       .epoll_wait = next};
	const struct wait_world *world = world_of_epoll(&self.wait, fd);

	return world ? wait_for(world, &self.wait) : next(fd, events, count, timeout);
}

EXPORT int epoll_pwait(int fd, struct epoll_event *events, int count, int timeout,
		       const sigset_t *mask)
{
	NEXT(epoll_pwait);
	struct epoll_wait_call self = {.wait = {.timeout_ns = of_ms(timeout), .call = call_epoll},
				       .fd = fd,
				       .events = events,
				       .count = count,
				       .mask = mask,
				       .epoll_pwait = next};
	const struct wait_world *world = world_of_epoll(&self.wait, fd);

	return world ? wait_for(world, &self.wait) : next(fd, events, count, timeout, mask);
}

/* Since glibc 2.35 and Linux 5.11. Its timeout is finer, which the virtual clock keeps. */
EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int count,
			const struct timespec *timeout, const sigset_t *mask)
{
	static void *found;
	NEXT(epoll_pwait2);
	struct epoll_wait_call self = {
		.wait = {.timeout_ns = of_timespec(timeout), .call = call_epoll},
		.fd = fd,
		.events = events,
		.count = count,
		.mask = mask,
		.epoll_pwait = (__typeof__(&epoll_pwait))find(&found, "epoll_pwait")};
	const struct wait_world *world = is_valid(timeout) ? world_of_epoll(&self.wait, fd) : NULL;

	return world ? wait_for(world, &self.wait) : next(fd, events, count, timeout, mask);
}
