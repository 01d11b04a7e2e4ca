/* SPDX-License-Identifier: MIT */
/* Defines poll(2), select(2), epoll_wait(2) and their variants. With _FORTIFY_SOURCE, libc's headers would
 * define poll() and others inline. */
#undef _FORTIFY_SOURCE

#include "src/wait/wait.h"

#include "src/guard/readable.h"
#include "src/wait/next.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/single_threaded.h>
#include <time.h>

#define NEVER UINT64_MAX /* VB_SIM_NEVER */
/* A thread that sleeps without limit looks at the world this often: another thread may make an event due. */
#define SLICE_NS 10000000

/* --- one wait --- */

struct wait {
	struct wait_set set;
	uint64_t timeout_ns; /* NEVER: no limit */
	int result;	     /* of the last call of libc's function */
	int error;	     /* errno after that call */
	/* Calls libc's function with the timeout @real_ns, in real time, and sets result. */
	void (*call)(struct wait *wait, uint64_t real_ns);
};

/* Asks libc without sleeping. Returns true if the wait is over. */
static bool look(void *arg)
{
	struct wait *wait = arg;

	wait->call(wait, 0);
	wait->error = errno;
	return wait->result != 0;
}

/* Sleeps in libc, in real time. Returns true if the wait is over. */
static bool sleep_for(struct wait *wait, uint64_t real_ns)
{
	wait->call(wait, real_ns);
	wait->error = errno;
	return wait->result != 0;
}

/* Waits for a set that also has descriptors of the kernel, which become ready in real time. Returns true if
 * the wait is over. */
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
	/* The same time passes on the virtual clock. */
	if (!sleep_for(wait, left_ns))
		world->wait_fd(wait->set.fd, look, wait, left_ns);
	return true;
}

/* Waits for a set that has only Verbena's descriptors. Returns true if the wait is over. */
static bool wait_alone(const struct wait_world *world, struct wait *wait)
{
	int err = world->wait_fd(wait->set.fd, look, wait, wait->timeout_ns);

	/* The world is ending, or another thread has closed the descriptor. */
	if (err == ENODEV || err == EINVAL)
		return sleep_for(wait, wait->timeout_ns);
	return err != EDEADLK || sleep_for(wait, __libc_single_threaded ? NEVER : SLICE_NS);
}

/* Waits as libc's function does. Returns its result, with its errno. */
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

static uint64_t ms_to_ns(int timeout_ms)
{
	return timeout_ms < 0 ? NEVER : (uint64_t)timeout_ms * 1000000;
}

/* Rounds up: a wait is not shorter than the program asks for. */
static int ns_to_ms(uint64_t ns)
{
	const uint64_t ms = ns / 1000000 + (ns % 1000000 != 0);

	return ns == NEVER ? -1 : ms > INT32_MAX ? INT32_MAX : (int)ms;
}

/* Returns NEVER for a time beyond the clock's end. */
static uint64_t sum_ns(uint64_t count, uint64_t unit_ns, uint64_t more_ns)
{
	uint64_t ns;

	if (__builtin_mul_overflow(count, unit_ns, &ns) || __builtin_add_overflow(ns, more_ns, &ns))
		return NEVER;
	return ns;
}

/* Reads the timeout of a call, which may be NULL. Returns false for one that libc and the kernel refuse. */
static bool read_timespec(const struct timespec *time, uint64_t *timeout_ns)
{
	*timeout_ns = NEVER;
	if (!time)
		return true;
	if (!guard_is_readable(time, sizeof(*time)) || time->tv_sec < 0 || time->tv_nsec < 0 ||
	    time->tv_nsec >= 1000000000)
		return false;
	*timeout_ns = sum_ns((uint64_t)time->tv_sec, 1000000000, (uint64_t)time->tv_nsec);
	return true;
}

/* The same for select(2), where tv_usec may be a second or more; glibc refuses a sum that overflows. */
static bool read_timeval(const struct timeval *time, uint64_t *timeout_ns)
{
	*timeout_ns = NEVER;
	if (!time)
		return true;
	if (!guard_is_readable(time, sizeof(*time)) || time->tv_sec < 0 || time->tv_usec < 0 ||
	    time->tv_usec / 1000000 > INT64_MAX - time->tv_sec)
		return false;
	*timeout_ns = sum_ns((uint64_t)time->tv_usec, 1000,
			     sum_ns((uint64_t)time->tv_sec, 1000000000, 0));
	return true;
}

/* Returns NULL for NEVER. */
static struct timespec *ns_to_timespec(uint64_t ns, struct timespec *time)
{
	*time = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	return ns == NEVER ? NULL : time;
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

	wait->result = self->poll(self->fds, self->count, ns_to_ms(real_ns));
}

static void call_ppoll(struct wait *wait, uint64_t real_ns)
{
	struct poll_wait *self = (struct poll_wait *)wait;
	struct timespec time;

	wait->result =
		self->ppoll(self->fds, self->count, ns_to_timespec(real_ns, &time), self->mask);
}

/* Fills in wait->set. Returns the worlds if the set has a descriptor of one; NULL: the call is libc's. */
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
	struct poll_wait self = {.wait = {.timeout_ns = ms_to_ns(timeout), .call = call_poll},
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
	struct poll_wait self = {
		.wait.call = call_ppoll, .fds = fds, .count = count, .mask = mask, .ppoll = next};
	const struct wait_world *world = world_of_poll(&self.wait, fds, count);

	return world && read_timespec(timeout, &self.wait.timeout_ns)
		       ? wait_for(world, &self.wait)
		       : next(fds, count, timeout, mask);
}

/* Programs that were compiled with _FORTIFY_SOURCE call these instead of poll() and ppoll(). __chk_fail() is libc's:
 * it ends the program. */
__attribute__((noreturn)) void __chk_fail(void);
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t bytes);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t bytes);

EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t bytes)
{
	if (bytes / sizeof(*fds) < count)
		__chk_fail();
	return poll(fds, count, timeout);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		       const sigset_t *mask, size_t bytes)
{
	if (bytes / sizeof(*fds) < count)
		__chk_fail();
	return ppoll(fds, count, timeout, mask);
}

/* --- select(2) --- */

struct select_wait {
	struct wait wait;
	int count;
	fd_set *sets[3];
	fd_set wanted[3]; /* what the program has put into the sets */
	size_t set_bytes; /* of each set: a program may have less memory than an fd_set */
	bool written;	  /* true after libc has written to the sets */
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

	for (int i = 0; self->written && i < 3; i++)
		if (sets[i])
			memcpy(sets[i], &self->wanted[i], self->set_bytes);
	self->written = true;
	wait->result = self->select ? self->select(self->count, sets[0], sets[1], sets[2],
						   real_ns == NEVER ? NULL : &time)
				    : self->pselect(self->count, sets[0], sets[1], sets[2],
						    ns_to_timespec(real_ns, &precise), self->mask);
}

/* As world_of_poll(). A set of more descriptors than an fd_set holds is memory of an unknown layout, so libc gets
 * the call. */
static const struct wait_world *world_of_select(struct select_wait *self)
{
	const struct wait_world *world = wait_world();

	self->wait.set.fd = -1;
	if (!world || !world->has_fd(-1) || self->count <= 0 || self->count > FD_SETSIZE)
		return NULL;
	self->set_bytes =
		((size_t)self->count + NFDBITS - 1) / NFDBITS * sizeof(self->wanted[0].fds_bits[0]);
	for (int i = 0; i < 3; i++) {
		if (!self->sets[i])
			continue;
		if (!guard_is_readable(self->sets[i], self->set_bytes))
			return NULL;
		memcpy(&self->wanted[i], self->sets[i], self->set_bytes);
	}
	wait_set_add_select(&self->wait.set, world, self->count, self->wanted);
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
	struct timeval left = {0, 0};

	if (!world || !read_timeval(timeout, &self.wait.timeout_ns))
		return next(count, reads, writes, excepts, timeout);
	if (timeout)
		left = *timeout;
	/* Linux writes the time that is left. It is 0 after a timeout; other results keep the program's value. */
	if (!wait_for(world, &self.wait))
		left = (struct timeval){0, 0};
	if (timeout)
		*timeout = left;
	return self.wait.result;
}

EXPORT int pselect(int count, fd_set *reads, fd_set *writes, fd_set *excepts,
		   const struct timespec *timeout, const sigset_t *mask)
{
	NEXT(pselect);
	struct select_wait self = {.wait.call = call_select,
				   .count = count,
				   .sets = {reads, writes, excepts},
				   .mask = mask,
				   .pselect = next};
	const struct wait_world *world = world_of_select(&self);

	return world && read_timespec(timeout, &self.wait.timeout_ns)
		       ? wait_for(world, &self.wait)
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
							   ns_to_ms(real_ns))
					: self->epoll_pwait(self->fd, self->events, self->count,
							    ns_to_ms(real_ns), self->mask);
}

/* As world_of_poll(). */
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
	struct epoll_wait_call self = {
		.wait = {.timeout_ns = ms_to_ns(timeout), .call = call_epoll},
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
	struct epoll_wait_call self = {
		.wait = {.timeout_ns = ms_to_ns(timeout), .call = call_epoll},
		.fd = fd,
		.events = events,
		.count = count,
		.mask = mask,
		.epoll_pwait = next};
	const struct wait_world *world = world_of_epoll(&self.wait, fd);

	return world ? wait_for(world, &self.wait) : next(fd, events, count, timeout, mask);
}

/* Since glibc 2.35 and Linux 5.11. The virtual clock keeps its timeout in ns; real waits go through
 * epoll_pwait(), in ms. */
EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int count,
			const struct timespec *timeout, const sigset_t *mask)
{
	NEXT(epoll_pwait2);
	struct epoll_wait_call self = {.wait.call = call_epoll,
				       .fd = fd,
				       .events = events,
				       .count = count,
				       .mask = mask,
				       .epoll_pwait = REAL(epoll_pwait)};
	const struct wait_world *world = world_of_epoll(&self.wait, fd);

	return world && read_timespec(timeout, &self.wait.timeout_ns)
		       ? wait_for(world, &self.wait)
		       : next(fd, events, count, timeout, mask);
}
