/* SPDX-License-Identifier: MIT */
/* Too little room for the file of a shared world: in /dev/shm, or by the limit of the size of files. */
#include "backends/sim/wire/shared_short.h"

#include "backends/sim/base/size_signal.h"
#include "backends/sim/object/refuse.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* A signal makes the kernel take back what it has allocated: with a timer that is quicker than the allocation, no attempt
 * would succeed. So the second attempt is without signals. */
static int allocate_patiently(int fd, off_t offset, off_t length)
{
	int err = posix_fallocate(fd, offset, length);
	sigset_t all, before;

	if (err != EINTR)
		return err;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = posix_fallocate(fd, offset, length);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

int segment_allocate(const struct segment *segment, uint64_t offset, uint64_t length)
{
	struct size_signal held;
	int err;

	size_signal_hold(&held);
	err = allocate_patiently(segment->fd, (off_t)offset, (off_t)length);
	size_signal_release(&held, err);
	return err;
}

int segment_set_size(const struct segment *segment, uint64_t bytes)
{
	struct size_signal held;
	int err;

	size_signal_hold(&held);
	err = ftruncate(segment->fd, (off_t)bytes) ? errno : 0;
	size_signal_release(&held, err);
	return err;
}

/* Returns the free bytes of the file system; UINT64_MAX: they are not known, or not limited. */
static uint64_t free_bytes(const struct segment *segment, uint64_t *all)
{
	struct statvfs room;

	*all = 0;
	if (fstatvfs(segment->fd, &room) || !room.f_blocks)
		return UINT64_MAX;
	*all = (uint64_t)room.f_blocks * room.f_frsize;
	return (uint64_t)room.f_bavail * room.f_frsize;
}

static uint64_t file_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) ? RLIM_INFINITY : limit.rlim_cur;
}

struct vb_why segment_why(const struct segment *segment, int err, uint64_t end, uint64_t needed)
{
	uint64_t all, left = free_bytes(segment, &all);

	if (err == EFBIG)
		return (struct vb_why){
			VB_WHY_SHARED_FILE_LIMIT, {end, file_limit()}, .text = segment->path};
	/* Somebody may have made room meanwhile, or it is not known. */
	if (left >= needed)
		left = all ? needed - 1 : 0;
	return (struct vb_why){VB_WHY_SHARED_NO_SPACE, {needed, left, all}, .text = segment->path};
}

struct vb_why segment_lack(const struct segment *segment, uint64_t end, uint64_t needed)
{
	uint64_t all;

	if (end > file_limit())
		return segment_why(segment, EFBIG, end, needed);
	if (free_bytes(segment, &all) < needed)
		return segment_why(segment, ENOSPC, end, needed);
	return (struct vb_why){.reason = VB_WHY_NONE};
}

int segment_refuse(const struct segment *segment, int err, uint64_t end, uint64_t needed)
{
	char text[sizeof(segment->path) + 32];

	if (err == ENOSPC || err == EFBIG)
		return refuse_why(NULL, segment_why(segment, err, end, needed));
	snprintf(text, sizeof(text), "posix_fallocate() of %s", segment->path);
	return refuse_system(NULL, err, text);
}

void segment_tell(struct segment *segment, enum segment_need need, const struct vb_why *why)
{
	static const char *const needs[] = {
		[SEGMENT_NEED_RING] = "packets cannot reach another process",
		[SEGMENT_NEED_NUMBERS] = "no QP, SRQ or MR can be made",
		[SEGMENT_NEED_SERVICE] = "no service of the connection manager can be made",
		[SEGMENT_NEED_DOMAIN] = "no XRC domain can be opened",
	};
	const uint64_t *values = why->values;

	if (segment->told & 1u << need)
		return;
	segment->told |= 1u << need;
	if (why->reason == VB_WHY_SHARED_FILE_LIMIT)
		fprintf(stderr,
			"verbena: %s: the limit of the size of files is %" PRIu64
			" KiB, and %s needs %" PRIu64 " KiB; raise the limit (ulimit -f unlimited)"
			", or take another wire (--wire memory for one process, udp for several)\n",
			needs[need], values[1] >> 10, why->text, values[0] >> 10);
	else
		fprintf(stderr,
			"verbena: %s: the file system of %s has %" PRIu64 " KiB left of %" PRIu64
			" KiB, and %" PRIu64 " KiB are needed; make it larger (docker run "
			"--shm-size=64m, mount -o remount,size=64m /dev/shm), remove files there, "
			"or "
			"take another wire (--wire memory for one process, udp for several)\n",
			needs[need], why->text, values[1] >> 10, values[2] >> 10, values[0] >> 10);
}
