/* SPDX-License-Identifier: MIT */
#include "backends/sim/wire/shared_file.h"

#include "backends/sim/base/clock_now.h"
#include "backends/sim/base/holder.h"
#include "backends/sim/object/refuse.h"
#include "backends/sim/wire/shared_short.h"
#include "backends/sim/wire/shared_sweep.h"

#include "sim/base/refuse.h"
#include "src/guard/guard.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <verbena/sim.h>

/* After this many attempts at a world that is removed or half made each time, the process gives up. */
#define ATTEMPTS_MAX 1000

/* What to do with the file that was opened. */
enum verdict {
	USE,
	MAKE,	 /* new and empty */
	REPLACE, /* nobody uses the file: remove it and make a new one */
	REFUSE,
};

uint64_t segment_now_ns(void)
{
	return clock_now_ns(CLOCK_MONOTONIC);
}

static int refuse_segment(enum vb_reason reason, const struct segment *segment, uint64_t value)
{
	return refuse_why(NULL, (struct vb_why){reason, {value}, .text = segment->path});
}

/* Names another process that has the file open: "process 4711 (a.out) has"; else the words of `unseen`. */
static const char *name_user(const struct segment *segment, const char *unseen, char *words,
			     size_t size)
{
	struct holder user;

	holder_find(segment->path, getpid(), &user);
	if (!user.pid)
		return unseen;
	snprintf(words, size, "process %d (%s) has", user.pid, user.program);
	return words;
}

/* Refuses because of another process that has the file open. */
static int refuse_user(const struct segment *segment, struct vb_why why)
{
	char user[64], text[sizeof(segment->path) + sizeof(user) + 32];

	snprintf(text, sizeof(text), "%s, which %s open,", segment->path,
		 name_user(segment, "other processes have", user, sizeof(user)));
	why.text = text;
	return refuse_why(NULL, why);
}

/* Returns the errno value of a system call that has failed on the file, with a sentence. */
static int refuse_call(const char *call, const struct segment *segment, int error)
{
	char text[sizeof(segment->path) + 32];

	if (sim_descriptor_reason(error) != VB_WHY_NONE)
		return refuse_descriptor(NULL, error, "for the file of the world");
	snprintf(text, sizeof(text), "%s of %s", call, segment->path);
	return refuse_system(NULL, error, text);
}

/* --- locks --- */

/* Returns the description of a lock. l_pid must be 0 (fcntl(2), open file description locks). */
static struct flock bytes_of(int64_t first, int64_t count)
{
	return (struct flock){
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = count};
}

static bool lock_byte(int fd, int64_t byte)
{
	struct flock lock = bytes_of(byte, 1);

	return !fcntl(fd, F_OFD_SETLK, &lock);
}

/* Returns true if another open file description has the lock. */
static bool segment_has_holder(const struct segment *segment)
{
	struct flock lock = bytes_of(SEGMENT_LOCK_BYTE, 1);

	return !fcntl(segment->fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

static void unlock_byte(int fd, int64_t byte)
{
	struct flock lock = bytes_of(byte, 1);

	lock.l_type = F_UNLCK;
	fcntl(fd, F_OFD_SETLK, &lock);
}

/* Sleeps until the lock may be free, at most 1 ms: a process that is killed rings no bell. */
static void wait_for_unlock(const struct segment *segment)
{
	struct bell *bell;
	uint32_t seen;

	if (!segment->header) {
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
		return;
	}
	bell = &segment->header->unlocked;
	seen = bell_listen(bell);
	if (segment_has_holder(segment))
		bell_wait(bell, seen, segment_now_ns() + 1000000);
}

/*
 * fcntl() has no wait with a time limit, and the holder may have been stopped (SIGSTOP, a debugger). So this
 * thread tries again and again.
 */
bool segment_lock(struct segment *segment, uint64_t patience_ns)
{
	const uint64_t end_ns = segment_now_ns() + patience_ns;

	/* A process that has just woken another one lets that one have the lock first. */
	if (segment->has_woken && patience_ns)
		nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
	segment->has_woken = false;
	while (!lock_byte(segment->fd, SEGMENT_LOCK_BYTE)) {
		if (segment_now_ns() >= end_ns)
			return false;
		wait_for_unlock(segment);
	}
	if (segment->header)
		atomic_store_explicit(&segment->header->lock_pid, (uint32_t)getpid(),
				      memory_order_relaxed);
	return true;
}

/* Wakes one sleeper. `listened` stays set until nobody sleeps. */
void segment_unlock(struct segment *segment)
{
	struct bell *bell = &segment->header->unlocked;

	unlock_byte(segment->fd, SEGMENT_LOCK_BYTE);
	if (!bell_is_heard(bell))
		return;
	segment->has_woken = bell_ring_one(bell);
	if (!segment->has_woken)
		bell_ignore(bell);
}

bool segment_lock_place(const struct segment *segment, uint32_t place)
{
	return lock_byte(segment->fd, SEGMENT_PLACE_BYTES + place);
}

void segment_unlock_place(const struct segment *segment, uint32_t place)
{
	unlock_byte(segment->fd, SEGMENT_PLACE_BYTES + place);
}

bool segment_has_others(const struct segment *segment, uint32_t first, uint32_t count)
{
	struct flock lock = bytes_of(SEGMENT_PLACE_BYTES + first, count);

	return !fcntl(segment->fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

/* --- pages --- */

void segment_free(const struct segment *segment, uint64_t offset, uint64_t length)
{
	fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		  (off_t)length);
}

static int map_header(struct segment *segment)
{
	void *map = mmap(NULL, SEGMENT_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			 segment->fd, 0);

	if (map == MAP_FAILED)
		return refuse_call("mmap()", segment, errno);
	guard_add_mapping(map, SEGMENT_HEADER_BYTES);
	segment->map = map;
	segment->header = map;
	return 0;
}

/* --- the name --- */

static bool is_name(const char *name)
{
	const size_t length = strlen(name);

	return length < VB_SIM_NAME_MAX && strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
							"abcdefghijklmnopqrstuvwxyz"
							"0123456789_-.") == length;
}

/* FNV-1a */
static uint64_t digest(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return hash;
}

static const uint64_t digest_begin = UINT64_C(0xcbf29ce484222325);

static bool is_default(const struct segment_world *world)
{
	return !world->name || !*world->name;
}

/*
 * Writes the path of a world's file. All processes of one network namespace that configure the same devices have
 * the same default world, as on a real machine they see the same adapters. Processes with other devices, or of
 * another version of the layout, have another default world, so that none of them is refused. '@' is in no name.
 */
static int make_path(struct segment *segment, const struct segment_world *world)
{
	const unsigned int user = geteuid();
	struct stat namespace = {0};

	if (!is_default(world) && !is_name(world->name))
		return refuse_why(NULL, (struct vb_why){VB_WHY_SHARED_NAME,
							{VB_SIM_NAME_MAX - 1},
							.text = world->name});
	if (!is_default(world)) {
		snprintf(segment->path, sizeof(segment->path), SEGMENT_FOLDER "/verbena-%u-%s",
			 user, world->name);
		return 0;
	}
	stat("/proc/self/ns/net", &namespace);
	snprintf(segment->path, sizeof(segment->path),
		 SEGMENT_FOLDER "/verbena-%u-net%lu@%u-%016" PRIx64, user,
		 (unsigned long)namespace.st_ino, SEGMENT_LAYOUT,
		 digest(digest_begin, world->devices));
	return 0;
}

/* --- opening --- */

/* Makes a file. fchmod() makes the mode independent of the umask. */
static int make_file(const char *path, int flags)
{
	const int fd = open(path, flags | O_CREAT | O_EXCL, 0600);

	if (fd >= 0)
		fchmod(fd, 0600);
	return fd;
}

/* Opens the file, or makes it if there is none. Another process may make the file, or remove it, after each look. */
static int open_file(const char *path)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
	int fd = open(path, flags);

	for (unsigned int i = 0; i < ATTEMPTS_MAX && fd < 0 && errno == ENOENT; i++) {
		fd = make_file(path, flags);
		if (fd < 0 && errno == EEXIST)
			fd = open(path, flags);
	}
	return fd;
}

static int refuse_owner(const struct segment *segment, uid_t owner)
{
	return refuse_why(
		NULL,
		(struct vb_why){VB_WHY_SHARED_OWNER, {owner, geteuid()}, .text = segment->path});
}

/* Returns the errno value of a failed open(), with a sentence that names the file's owner if another user
 * has the file. */
static int refuse_open(const struct segment *segment, int error)
{
	struct stat status;

	if (error == EACCES && !lstat(segment->path, &status) && status.st_uid != geteuid())
		return refuse_owner(segment, status.st_uid);
	if (sim_descriptor_reason(error) == VB_WHY_NONE)
		return say_why(error, &(struct vb_why){VB_WHY_SHARED_UNMADE,
						       {(uint64_t)error},
						       .text = segment->path});
	return refuse_call("open()", segment, error);
}

/* Refuses a file that is not this user's, or that others may open. */
static int check_file(const struct segment *segment)
{
	struct stat status;

	if (fstat(segment->fd, &status))
		return refuse_call("fstat()", segment, errno);
	if (!S_ISREG(status.st_mode))
		return refuse_segment(VB_WHY_SHARED_TYPE, segment, 0);
	if (status.st_uid != geteuid())
		return refuse_owner(segment, status.st_uid);
	if (status.st_mode & (S_IRWXG | S_IRWXO))
		return refuse_segment(VB_WHY_SHARED_MODE, segment, 0);
	return 0;
}

static int open_checked(struct segment *segment)
{
	segment->fd = open_file(segment->path);
	if (segment->fd < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO))
		return refuse_segment(VB_WHY_SHARED_TYPE, segment, 0);
	if (segment->fd < 0)
		return refuse_open(segment, errno);
	return check_file(segment);
}

/* --- the header --- */

/* Copies the first line of a text to @line, without control characters. Returns @line; "nothing" if it is
 * empty. */
static const char *cut_line(const char *from, char *line, size_t size)
{
	size_t length = 0;

	while (from[length] && from[length] != '\n' && length < size - 1) {
		line[length] = isprint((unsigned char)from[length]) ? from[length] : '?';
		length++;
	}
	line[length] = '\0';
	return length ? line : "nothing";
}

static int refuse_devices(const struct segment *segment, const char *here, const char *there)
{
	char mine[160], others[160], user[64], text[440];
	size_t line = 0;

	for (size_t i = 0; here[i] == there[i] && here[i]; i++)
		if (here[i] == '\n')
			line = i + 1;
	snprintf(text, sizeof(text), "\"%s\", and %s \"%s\"",
		 cut_line(here + line, mine, sizeof(mine)),
		 name_user(segment, "the world has", user, sizeof(user)),
		 cut_line(there + line, others, sizeof(others)));
	return refuse_name(NULL, VB_WHY_SHARED_DEVICES, text);
}

static int check_devices(const struct segment *segment, const struct segment_world *world)
{
	const struct segment_header *header = segment->header;
	const uint32_t there_bytes = header->devices_bytes;
	const size_t here_bytes = strlen(world->devices);
	char *there;
	int err = 0;

	if (there_bytes >= SEGMENT_DEVICES_TEXT)
		return refuse_user(segment, (struct vb_why){VB_WHY_SHARED_DAMAGED});
	there = strndup((const char *)segment->map + SEGMENT_TEXT_AT, there_bytes);
	if (!there)
		return refuse_plainly(NULL, VB_WHY_NO_MEMORY);
	if (here_bytes != there_bytes || strcmp(there, world->devices) != 0)
		err = refuse_devices(segment, world->devices, there);
	else if (world->identity && world->identity != segment->identity)
		err = refuse_devices(segment, "the addresses of its parent", "other addresses");
	free(there);
	return err;
}

/* Keeps what this process believes of the header from now on. */
static void keep_header(struct segment *segment, const struct segment_header *header)
{
	segment->identity = header->identity;
	segment->base_ns = header->base_ns;
	segment->wall_base_ns = header->wall_base_ns;
}

/* Refuses the header of a living world that this process cannot use. A world that begins in the future would let time
 * wrap. */
static int check_header(struct segment *segment, uint64_t file_bytes)
{
	struct segment_header header = {0};

	if (pread(segment->fd, &header, sizeof(header), 0) != sizeof(header) ||
	    header.magic != SEGMENT_MAGIC)
		return refuse_user(segment, (struct vb_why){VB_WHY_SHARED_DAMAGED});
	if (header.layout != SEGMENT_LAYOUT)
		return refuse_user(segment, (struct vb_why){VB_WHY_SHARED_VERSION,
							    {header.layout, SEGMENT_LAYOUT}});
	if (header.header_bytes != SEGMENT_HEADER_BYTES || file_bytes < SEGMENT_HEADER_BYTES ||
	    header.base_ns > segment_now_ns())
		return refuse_user(segment, (struct vb_why){VB_WHY_SHARED_DAMAGED});
	keep_header(segment, &header);
	return 0;
}

/* Decides what to do with the file. Reads it by pread(), which only returns less if the file is too short.
 * The caller holds the lock. */
static enum verdict judge(struct segment *segment, int *err)
{
	struct stat status;

	*err = 0;
	if (fstat(segment->fd, &status))
		*err = refuse_call("fstat()", segment, errno);
	else if (!segment_has_others(segment, 0, SHARED_PROCESSES_MAX))
		return status.st_size ? REPLACE : MAKE;
	else
		*err = check_header(segment, (uint64_t)status.st_size);
	return *err ? REFUSE : USE;
}

/* Returns the identity of a world. It depends on the names of host and world, so that adapters keep their
 * addresses from run to run. The adapters of two default worlds have different addresses: a process that is given
 * an address of the other world is refused, and does not wait for an answer that cannot come. */
static uint64_t make_identity(const struct segment *segment, const struct segment_world *world)
{
	char host[256] = "";
	uint64_t identity;

	if (world->identity)
		return world->identity;
	gethostname(host, sizeof(host) - 1);
	identity = digest(digest(digest_begin, host),
			  is_default(world) ? strchr(segment->path, '@') : world->name);
	return identity ? identity : 1;
}

/* Returns how many bytes of memory a world of one process has at its begin: its header, its place, and the text. */
static uint64_t new_bytes(const struct segment_world *world)
{
	const uint64_t text_pages = strlen(world->devices) / SEGMENT_PAGE + 1;

	return (2 + text_pages) * SEGMENT_PAGE;
}

/* Makes the file. Stores `magic` last: if the process is killed before, the next process replaces the file. */
static int make(struct segment *segment, const struct segment_world *world)
{
	const size_t devices_bytes = strlen(world->devices);
	struct segment_header *header;
	int err = segment_set_size(segment, SEGMENT_HEADER_BYTES);

	if (!err)
		err = segment_allocate(segment, 0, sizeof(*header));
	if (!err)
		err = segment_allocate(segment, SEGMENT_TEXT_AT, devices_bytes + 1);
	if (err)
		return segment_refuse(segment, err, SEGMENT_HEADER_BYTES, new_bytes(world));
	err = map_header(segment);
	if (err)
		return err;
	header = segment->header;
	header->layout = SEGMENT_LAYOUT;
	header->header_bytes = SEGMENT_HEADER_BYTES;
	header->identity = make_identity(segment, world);
	header->base_ns = world->base_ns ? world->base_ns : segment_now_ns();
	header->wall_base_ns = world->base_ns ? world->wall_base_ns : clock_now_ns(CLOCK_REALTIME);
	header->devices_bytes = (uint32_t)devices_bytes;
	memcpy(segment->map + SEGMENT_TEXT_AT, world->devices, devices_bytes);
	keep_header(segment, header);
	atomic_store_explicit(&header->magic, SEGMENT_MAGIC, memory_order_release);
	return 0;
}

void segment_unlink(const struct segment *segment)
{
	unlink(segment->path);
}

void segment_drop(struct segment *segment)
{
	if (segment->map) {
		guard_remove_mapping(segment->map);
		munmap(segment->map, SEGMENT_HEADER_BYTES);
	}
	if (segment->fd >= 0)
		close(segment->fd);
	segment->fd = -1;
	segment->map = NULL;
	segment->header = NULL;
	segment->id = 0;
}

/* Names the process that took the lock last. */
static int refuse_locked(const struct segment *segment)
{
	char text[sizeof(segment->path) + 64];
	struct segment_header header = {0};
	struct holder holder;

	(void)!pread(segment->fd, &header, sizeof(header), 0);
	holder_name((int)header.lock_pid, &holder);
	snprintf(text, sizeof(text), "process %d (%s) has kept %s", holder.pid, holder.program,
		 segment->path);
	return refuse_why(
		NULL, (struct vb_why){VB_WHY_SHARED_LOCKED, {SEGMENT_PATIENCE_NS}, .text = text});
}

/* Opens the file and locks it. Sets *gone if the last process has removed the file meanwhile. */
static int open_locked(struct segment *segment, bool *gone)
{
	struct stat status;
	int err = open_checked(segment);

	if (err)
		return err;
	if (!segment_lock(segment, SEGMENT_PATIENCE_NS))
		return refuse_locked(segment);
	*gone = fstat(segment->fd, &status) || status.st_nlink == 0;
	return 0;
}

/* Makes the file, or maps the file of other processes. Sets *again if a new file is needed. The caller holds
 * the lock. */
static int furnish(struct segment *segment, const struct segment_world *world, bool *again)
{
	int err;

	switch (judge(segment, &err)) {
	case REPLACE:
		segment_unlink(segment);
		*again = true;
		return 0;
	case MAKE:
		shared_sweep();
		err = make(segment, world);
		if (err)
			segment_unlink(segment);
		return err;
	case USE:
		err = map_header(segment);
		return err ? err : check_devices(segment, world);
	case REFUSE:
	default:
		return err;
	}
}

int segment_open(struct segment *segment, const struct segment_world *world)
{
	int err;

	*segment = (struct segment){.fd = -1};
	err = make_path(segment, world);
	if (!err && strlen(world->devices) >= SEGMENT_DEVICES_TEXT)
		err = refuse_segment(VB_WHY_SHARED_DEVICES_LONG, segment, SEGMENT_DEVICES_TEXT);
	for (unsigned int i = 0; i < ATTEMPTS_MAX && !err; i++) {
		bool again = false;

		err = open_locked(segment, &again);
		if (!err && !again)
			err = furnish(segment, world, &again);
		if (!err && !again)
			return 0;
		segment_drop(segment);
	}
	errno = err ? err : EBUSY;
	return err ? err : refuse_call("open()", segment, EBUSY);
}
