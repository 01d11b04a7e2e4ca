/* SPDX-License-Identifier: MIT */
/* The file of a shared world: who may attach, what is left when processes end, and who has which block of
 * numbers and which XRC domain. */
#include "backends/sim/wire/shared_domains.h"
#include "test/unit/free_room.h"
#include "test/unit/shared_world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* What another process does before each open() of the world's file, which may be one that makes the file. */
static void (*before_open)(int flags);
static unsigned int opens;

/* The program of this process and its children, as the kernel names it. */
static const char *own_program(void)
{
	static char name[16];

	TEST_ASSERT_EQUAL_INT(0, prctl(PR_GET_NAME, name));
	return name;
}

void setUp(void)
{
	before_open = NULL;
	opens = 0;
	name_world();
}

void tearDown(void)
{
	unlink(world_path);
}

/* --- the file --- */

void test_the_last_process_removes_the_file(void)
{
	struct segment a, b;
	struct stat status;

	attach(&a);
	TEST_ASSERT_EQUAL_INT(0, stat(world_path, &status));
	TEST_ASSERT_EQUAL_HEX(S_IFREG | 0600, status.st_mode);
	attach(&b);
	TEST_ASSERT_TRUE(a.id != b.id);
	TEST_ASSERT_TRUE(a.place != b.place);
	places_leave(&a);
	TEST_ASSERT_TRUE(world_exists());
	places_leave(&b);
	TEST_ASSERT_FALSE(world_exists());
}

void test_the_mode_does_not_depend_on_the_umask(void)
{
	const mode_t old = umask(0777);
	struct segment a, b;
	struct stat status;

	attach(&a);
	umask(0);
	TEST_ASSERT_EQUAL_INT(0, stat(world_path, &status));
	TEST_ASSERT_EQUAL_HEX(S_IFREG | 0600, status.st_mode);
	attach(&b);
	umask(old);
	places_leave(&a);
	places_leave(&b);
}

void test_all_processes_agree_on_identity_and_time(void)
{
	struct segment a, b;

	attach(&a);
	attach(&b);
	TEST_ASSERT_TRUE(a.header->identity != 0);
	TEST_ASSERT_TRUE(a.header->identity == b.header->identity);
	TEST_ASSERT_TRUE(a.header->base_ns == b.header->base_ns);
	TEST_ASSERT_TRUE(a.header->base_ns <= segment_now_ns());
	TEST_ASSERT_TRUE(a.header->wall_base_ns > UINT64_C(1500000000) * 1000000000);
	places_leave(&a);
	places_leave(&b);
}

void test_a_world_has_the_same_identity_at_each_run(void)
{
	struct segment a;
	uint64_t identity;

	attach(&a);
	identity = a.header->identity;
	places_leave(&a);
	attach(&a);
	TEST_ASSERT_TRUE(identity == a.header->identity);
	places_leave(&a);
	name_world();
	attach(&a);
	TEST_ASSERT_TRUE(identity != a.header->identity);
	places_leave(&a);
}

/* --- other processes that come and go --- */

static int open_err; /* of the world's file; 0: it may be opened */

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
	va_list list;
	mode_t mode;

	va_start(list, flags);
	mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
	va_end(list);
	if (open_err && strcmp(path, world_path) == 0) {
		errno = open_err;
		return -1;
	}
	if (before_open && strcmp(path, world_path) == 0) {
		opens++;
		before_open(flags);
	}
	return __real_open64(path, flags, mode);
}

/* A process makes the file before this one does, and has removed it when this one opens it. */
static void come_and_go(int flags)
{
	if (opens > 6)
		return;
	if (flags & O_CREAT)
		close(__real_open64(world_path, O_RDWR | O_CREAT | O_EXCL, 0600));
	else
		unlink(world_path);
}

void test_a_file_that_comes_and_goes_is_made_at_last(void)
{
	struct segment a;

	before_open = come_and_go;
	TEST_ASSERT_EQUAL_INT(0, attach_with(&a, "devices\n"));
	before_open = NULL;
	TEST_ASSERT_GREATER_THAN(6, opens);
	places_leave(&a);
	TEST_ASSERT_FALSE(world_exists());
}

/* A child that another thread has just forked has a copy of the descriptor until it runs for the first time. */
void test_a_child_that_has_not_run_yet_keeps_no_lock(void)
{
	struct segment a, b;
	bool is_free;
	int copy;

	attach(&a);
	attach(&b);
	copy = dup(a.fd);
	TEST_ASSERT_TRUE(copy >= 0);
	places_leave(&a);
	is_free = segment_lock(&b, 0);
	TEST_ASSERT_TRUE(is_free);
	segment_unlock(&b);
	places_leave(&b);
	TEST_ASSERT_FALSE_MESSAGE(world_exists(), "the last process leaves the file");
	close(copy);
}

/* --- files that no process can use --- */

static int make_file(size_t bytes, mode_t mode)
{
	int fd = open(world_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	TEST_ASSERT_TRUE(fd >= 0);
	TEST_ASSERT_EQUAL_INT(0, fchmod(fd, mode));
	TEST_ASSERT_EQUAL_INT(0, ftruncate(fd, (off_t)bytes));
	return fd;
}

/* Attaches, and finds a sound world of which this is the only process. */
static void expect_new_world(void)
{
	struct segment a, b;

	attach(&a);
	TEST_ASSERT_FALSE(segment_has_others(&a, 0, SHARED_PROCESSES_MAX));
	attach(&b);
	TEST_ASSERT_TRUE(places_live(&a, b.id));
	places_leave(&a);
	places_leave(&b);
	TEST_ASSERT_FALSE(world_exists());
}

/* A process that is killed while it makes the file leaves one of each of these kinds. */
void test_a_file_that_is_half_made_is_made_anew(void)
{
	static const size_t sizes[] = {0,
				       1,
				       8,
				       100,
				       SEGMENT_PAGE,
				       SEGMENT_HEADER_BYTES - 1,
				       SEGMENT_HEADER_BYTES,
				       SEGMENT_HEADER_BYTES + 1};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		close(make_file(sizes[i], 0600));
		expect_new_world();
	}
}

void test_a_file_of_another_layout_that_nobody_uses_is_made_anew(void)
{
	struct segment a;

	attach(&a);
	a.header->layout = SEGMENT_LAYOUT + 1;
	segment_drop(&a);
	expect_new_world();
}

void test_the_processes_of_another_layout_are_left_alone(void)
{
	struct segment a, b;

	attach(&a);
	a.header->layout = SEGMENT_LAYOUT + 6;
	TEST_ASSERT_EQUAL_INT(EPROTO, attach_with(&b, "devices\n"));
	expect_reason(
		VB_WHY_SHARED_VERSION,
		"%s, which other processes have open, has layout %d, and this version of Verbena "
		"uses layout %d; run all processes of a world with one version of Verbena, or "
		"name another world (--world, VERBENA_WORLD)",
		world_path, SEGMENT_LAYOUT + 6, SEGMENT_LAYOUT);
	places_leave(&a);
}

void test_a_header_that_a_process_has_written_over_is_refused(void)
{
	struct segment a, b;

	attach(&a);
	memset(a.map, 0x5a, SEGMENT_PAGE);
	TEST_ASSERT_EQUAL_INT(EPROTO, attach_with(&b, "devices\n"));
	expect_reason(VB_WHY_SHARED_DAMAGED,
		      "%s, which other processes have open, does not begin with a header of "
		      "Verbena; end the processes that have the file open (fuser -v), or name "
		      "another world "
		      "(--world, VERBENA_WORLD)",
		      world_path);
	TEST_ASSERT_EQUAL_INT(-1, b.fd);
	segment_drop(&a);
	expect_new_world();
}

void test_a_file_that_others_may_open_is_refused(void)
{
	struct segment a;

	close(make_file(0, 0640));
	TEST_ASSERT_EQUAL_INT(EACCES, attach_with(&a, "devices\n"));
	expect_reason(VB_WHY_SHARED_MODE,
		      "%s may be opened by other users; end the processes of the world and remove "
		      "the file, or chmod it to 0600",
		      world_path);
}

void test_a_path_that_is_no_file_is_refused(void)
{
	struct segment a;

	TEST_ASSERT_EQUAL_INT(0, mkfifo(world_path, 0600));
	TEST_ASSERT_EQUAL_INT(EACCES, attach_with(&a, "devices\n"));
	expect_reason(VB_WHY_SHARED_TYPE,
		      "%s is not a regular file; remove it, or name another world (--world, "
		      "VERBENA_WORLD)",
		      world_path);
	unlink(world_path);
	TEST_ASSERT_EQUAL_INT(0, symlink("/dev/shm/verbena-nowhere", world_path));
	TEST_ASSERT_EQUAL_INT(EACCES, attach_with(&a, "devices\n"));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_SHARED_TYPE, said()->reason);
	TEST_ASSERT_FALSE(access("/dev/shm/verbena-nowhere", F_OK) == 0);
	unlink(world_path);
	TEST_ASSERT_EQUAL_INT(0, mkdir(world_path, 0700));
	TEST_ASSERT_EQUAL_INT(EACCES, attach_with(&a, "devices\n"));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_SHARED_TYPE, said()->reason);
	rmdir(world_path);
}

/* geteuid() answers with another user than the one that makes the file. */
static unsigned int user_shift;

uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
	return getuid() + user_shift;
}

void test_another_users_file_is_refused(void)
{
	struct segment a;
	int err;

	user_shift = 1;
	name_world();
	err = attach_with(&a, "devices\n");
	user_shift = 0;
	TEST_ASSERT_EQUAL_INT(EACCES, err);
	expect_reason(
		VB_WHY_SHARED_OWNER,
		"%s belongs to user %u, but this process runs as user %u; remove the file, or "
		"name another world (--world, VERBENA_WORLD)",
		world_path, getuid(), getuid() + 1);
}

/* There is no /dev/shm, it is read-only, it has no free inode, or this process may not write it. */
void test_a_file_that_cannot_be_made_is_refused(void)
{
	static const struct {
		int err;
		const char *text;
	} rows[] = {
		{ENOENT, "ENOENT (No such file or directory)"},
		{EROFS, "EROFS (Read-only file system)"},
		{ENOSPC, "ENOSPC (No space left on device)"},
		{EACCES, "EACCES (Permission denied)"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct segment a;

		open_err = rows[i].err;
		TEST_ASSERT_EQUAL_INT(rows[i].err, attach_with(&a, "devices\n"));
		open_err = 0;
		expect_reason(
			VB_WHY_SHARED_UNMADE,
			"the file %s, by which processes share devices, cannot be made: %s; "
			"mount a /dev/shm that this process may write (mount -t tmpfs -o "
			"size=64m tmpfs /dev/shm), or take another wire (--wire memory for one "
			"process, udp for several)",
			world_path, rows[i].text);
	}
}

/* --- names, devices and numbers of processes --- */

void test_a_name_that_could_leave_the_folder_is_refused(void)
{
	static const char *const names[] = {"../x", "a/b", "a b", "a\n",
					    "abcdefghijklmnopqrstuvwxyz0123456"};
	struct segment a;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(world_name, sizeof(world_name), "%s", names[i]);
		TEST_ASSERT_EQUAL_INT(
			EINVAL,
			segment_open(&a, &(struct segment_world){.name = names[i], .devices = ""}));
		expect_reason(
			VB_WHY_SHARED_NAME,
			"the world's name \"%s\" is longer than 31 characters, or has one that "
			"no name may have; name the world by letters, digits, '_', '-' and '.' "
			"(--world, VERBENA_WORLD)",
			names[i]);
	}
}

/* Attaches to the default world of the processes with these devices. */
static void attach_default(struct segment *segment, const char *devices)
{
	const struct segment_world world = {.name = "", .devices = devices};

	TEST_ASSERT_EQUAL_INT(0, segment_open(segment, &world));
	TEST_ASSERT_EQUAL_INT(0, places_attach(segment));
	segment_unlock(segment);
}

void test_the_default_world_is_of_user_network_namespace_and_devices(void)
{
	char path[128], mine[64], others[64];
	struct segment a, b, c;
	struct stat namespace;

	snprintf(mine, sizeof(mine), "devices of %d\n", (int)getpid());
	snprintf(others, sizeof(others), "other devices of %d\n", (int)getpid());
	attach_default(&a, mine);
	attach_default(&b, mine);
	attach_default(&c, others);
	TEST_ASSERT_EQUAL_INT(0, stat("/proc/self/ns/net", &namespace));
	snprintf(path, sizeof(path), "/dev/shm/verbena-%u-net%lu@%d-", (unsigned int)getuid(),
		 (unsigned long)namespace.st_ino, SEGMENT_LAYOUT);
	TEST_ASSERT_EQUAL_INT(0, strncmp(path, a.path, strlen(path)));
	TEST_ASSERT_EQUAL_STRING(a.path, b.path);
	TEST_ASSERT_NOT_EQUAL(0, strcmp(a.path, c.path));
	TEST_ASSERT_TRUE(a.header->identity == b.header->identity);
	TEST_ASSERT_TRUE(a.header->identity != c.header->identity);
	places_leave(&a);
	places_leave(&b);
	places_leave(&c);
}

void test_all_processes_have_the_same_devices(void)
{
	struct segment a, b;

	TEST_ASSERT_EQUAL_INT(0, attach_with(&a, "sim0 mtu 4096\nsim1 mtu 4096\nsim2\n"));
	TEST_ASSERT_EQUAL_INT(0, attach_with(&b, "sim0 mtu 4096\nsim1 mtu 4096\nsim2\n"));
	places_leave(&b);
	TEST_ASSERT_EQUAL_INT(EINVAL, attach_with(&b, "sim0 mtu 4096\nsim1 mtu 1024\nsim2\n"));
	expect_reason(
		VB_WHY_SHARED_DEVICES,
		"all processes of a world have the same devices, but this process has \"sim1 "
		"mtu 1024\", and the world has \"sim1 mtu 4096\"; give both the same options, or "
		"name another world (--world NAME; --world new makes one)");
	TEST_ASSERT_EQUAL_INT(EINVAL, attach_with(&b, "sim0 mtu 4096\nsim1 mtu 4096\n"));
	expect_reason(
		VB_WHY_SHARED_DEVICES,
		"all processes of a world have the same devices, but this process has "
		"\"nothing\", and the world has \"sim2\"; give both the same options, or name "
		"another world (--world NAME; --world new makes one)");
	places_leave(&a);
}

/* The child of a fork() has devices with the addresses of its parent's world. It enters no world with others. */
void test_a_process_with_other_addresses_is_refused(void)
{
	struct segment_world world = {.name = world_name, .devices = "devices\n"};
	struct segment a, b;

	attach(&a);
	world.identity = a.header->identity;
	TEST_ASSERT_EQUAL_INT(0, segment_open(&b, &world));
	segment_unlock(&b);
	segment_drop(&b);
	world.identity++;
	TEST_ASSERT_EQUAL_INT(EINVAL, segment_open(&b, &world));
	places_leave(&a);
}

void test_a_description_that_is_too_long_is_refused(void)
{
	char *devices = malloc(SEGMENT_DEVICES_TEXT + 1);
	struct segment a;

	memset(devices, 'x', SEGMENT_DEVICES_TEXT);
	devices[SEGMENT_DEVICES_TEXT] = '\0';
	TEST_ASSERT_EQUAL_INT(E2BIG, attach_with(&a, devices));
	expect_reason(
		VB_WHY_SHARED_DEVICES_LONG,
		"the description of the devices is 262144 bytes or longer, for which %s has no "
		"room; configure fewer devices or GIDs",
		world_path);
	devices[SEGMENT_DEVICES_TEXT - 1] = '\0';
	TEST_ASSERT_EQUAL_INT(0, attach_with(&a, devices));
	places_leave(&a);
	free(devices);
}

void test_a_world_has_256_processes_at_most(void)
{
	static struct segment all[SHARED_PROCESSES_MAX];
	struct segment more;

	for (unsigned int i = 0; i < SHARED_PROCESSES_MAX; i++)
		attach(&all[i]);
	TEST_ASSERT_EQUAL_INT(EUSERS, attach_with(&more, "devices\n"));
	expect_reason(VB_WHY_SHARED_FULL,
		      "%s is used by 256 processes, which is the most that a world may have; end "
		      "processes, or name another world (--world, VERBENA_WORLD)",
		      world_path);
	places_leave(&all[100]);
	attach(&all[100]);
	for (unsigned int i = 0; i < SHARED_PROCESSES_MAX; i++)
		places_leave(&all[i]);
	TEST_ASSERT_FALSE(world_exists());
}

/* --- room and the lock --- */

/* Allocations of pages, from this one on, find the file system full; 0: none. */
static unsigned int full_from, allocations;

int __real_posix_fallocate64(int fd, off_t offset, off_t length);
int __wrap_posix_fallocate64(int fd, off_t offset, off_t length);
int __wrap_posix_fallocate64(int fd, off_t offset, off_t length)
{
	allocations++;
	if (full_from && allocations >= full_from)
		return ENOSPC;
	return __real_posix_fallocate64(fd, offset, length);
}

void test_a_full_file_system_is_an_error_and_no_signal(void)
{
	struct segment a;
	int err;

	allocations = 0;
	attach(&a);
	places_leave(&a);
	free_room_bytes = 1;
	whole_room_bytes = 64 << 10;
	for (unsigned int i = allocations, last = i; i > 0; i--) {
		allocations = 0;
		full_from = i;
		err = attach_with(&a, "devices\n");
		full_from = 0;
		TEST_ASSERT_EQUAL_INT(ENOSPC, err);
		expect_reason(
			VB_WHY_SHARED_NO_SPACE,
			"the file system of %s has 0 bytes left of 65536 bytes, and %d bytes are "
			"needed; "
			"make it larger (docker run --shm-size=64m, mount -o remount,size=64m "
			"/dev/shm), remove files there, or take another wire (--wire memory for "
			"one process, udp for several)",
			world_path, i == last ? SEGMENT_PAGE : 3 * SEGMENT_PAGE);
	}
	free_room_bytes = 0;
	expect_new_world();
}

/* RLIMIT_FSIZE: an error, and no SIGXFSZ. */
void test_the_limit_of_the_size_of_files_is_an_error_and_no_signal(void)
{
	struct rlimit before, limit;
	struct segment a;
	int err;

	TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_FSIZE, &before));
	limit = before;
	limit.rlim_cur = SEGMENT_HEADER_BYTES - 1;
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_FSIZE, &limit));
	err = attach_with(&a, "devices\n");
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_FSIZE, &before));
	TEST_ASSERT_EQUAL_INT(EFBIG, err);
	expect_reason(VB_WHY_SHARED_FILE_LIMIT,
		      "the limit of the size of files, RLIMIT_FSIZE, is %d bytes, and %s needs %d "
		      "bytes; raise the limit (ulimit -f unlimited), or take another wire (--wire "
		      "memory for one process, udp for several)",
		      (int)SEGMENT_HEADER_BYTES - 1, world_path, (int)SEGMENT_HEADER_BYTES);
	expect_new_world();
}

/* A clock of which 5 seconds pass while a process waits for the lock. */
static bool time_flies;

uint64_t __real_segment_now_ns(void);

int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)time;
	(void)left;
	return 0;
}

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	static time_t ahead;
	int err = __real_clock_gettime(clock, now);

	ahead += time_flies;
	now->tv_sec += ahead;
	return err;
}

void test_a_lock_that_is_not_given_back_is_refused(void)
{
	struct segment a, b;
	int err;

	attach(&a);
	TEST_ASSERT_TRUE(segment_lock(&a, 0));
	time_flies = true;
	err = attach_with(&b, "devices\n");
	time_flies = false;
	TEST_ASSERT_EQUAL_INT(EBUSY, err);
	expect_reason(VB_WHY_SHARED_LOCKED,
		      "process %d (%s) has kept %s locked for 5 s; continue or end that process; a "
		      "process that is stopped (SIGSTOP, a debugger) keeps the lock",
		      (int)getpid(), own_program(), world_path);
	segment_unlock(&a);
	attach(&b);
	places_leave(&b);
	places_leave(&a);
}

/* --- processes that die --- */

static struct segment of_child;
static uint32_t child_block;

static int attach_and_claim(void)
{
	uint16_t generation;

	return attach_with(&of_child, "devices\n") ||
	       !blocks_claim(&of_child, 0, SIM_NUMBERS_QP, &child_block, &generation) ||
	       child_block != 0;
}

void test_what_a_killed_process_leaves_is_replaced(void)
{
	child_kill(child_begin(attach_and_claim));
	expect_new_world();
}

/* A refusal because of another process names that process. */
void test_a_refusal_names_the_other_process(void)
{
	const pid_t child = child_begin(attach_and_claim);
	struct segment a;

	TEST_ASSERT_EQUAL_INT(EINVAL, attach_with(&a, "other devices\n"));
	expect_reason(VB_WHY_SHARED_DEVICES,
		      "all processes of a world have the same devices, but this process has "
		      "\"other devices\", and process %d (%s) has \"devices\"; give both the same "
		      "options, or name another world (--world NAME; --world new makes one)",
		      (int)child, own_program());
	attach(&a);
	a.header->layout = SEGMENT_LAYOUT + 1;
	places_leave(&a);
	TEST_ASSERT_EQUAL_INT(EPROTO, attach_with(&a, "devices\n"));
	expect_reason(VB_WHY_SHARED_VERSION,
		      "%s, which process %d (%s) has open, has layout %d, and this version of "
		      "Verbena uses layout %d; run all processes of a world with one version of "
		      "Verbena, or name another world (--world, VERBENA_WORLD)",
		      world_path, (int)child, own_program(), SEGMENT_LAYOUT + 1, SEGMENT_LAYOUT);
	child_kill(child);
}

/* Begins another world, which looks for what the dead have left. */
static void begin_another_world(void)
{
	char path[sizeof(world_path)];
	struct segment other;

	memcpy(path, world_path, sizeof(path));
	name_world();
	attach(&other);
	places_leave(&other);
	memcpy(world_path, path, sizeof(path));
}

void test_the_maker_of_another_world_removes_what_a_killed_process_leaves(void)
{
	const pid_t child = child_begin(attach_and_claim);

	begin_another_world();
	TEST_ASSERT_TRUE(world_exists());
	child_kill(child);
	begin_another_world();
	TEST_ASSERT_FALSE(world_exists());
}

void test_only_files_of_worlds_are_removed(void)
{
	static const mode_t modes[] = {0640, 0644, 0400};
	struct segment holder;

	/* Another layout may have its places elsewhere: any lock keeps the file. */
	attach(&holder);
	segment_unlock_place(&holder, holder.place);
	TEST_ASSERT_TRUE(segment_lock_place(&holder, SHARED_PROCESSES_MAX + 5));
	begin_another_world();
	TEST_ASSERT_TRUE(world_exists());
	segment_unlink(&holder);
	segment_drop(&holder);
	for (unsigned int i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		close(make_file(SEGMENT_HEADER_BYTES, modes[i]));
		begin_another_world();
		TEST_ASSERT_TRUE(world_exists());
		unlink(world_path);
	}
	TEST_ASSERT_EQUAL_INT(0, mkfifo(world_path, 0600));
	begin_another_world();
	TEST_ASSERT_TRUE(world_exists());
}

void test_a_killed_process_is_buried(void)
{
	struct segment a, b;
	segment_id dead;
	uint32_t block;
	uint16_t generation;
	pid_t child;

	attach(&a);
	child = child_begin(attach_and_claim);
	dead = blocks_owner(&a, 0, SIM_NUMBERS_QP, 0);
	TEST_ASSERT_TRUE(dead && dead != a.id);
	TEST_ASSERT_TRUE(places_live(&a, dead));
	places_bury(&a, dead, 0);
	TEST_ASSERT_TRUE(blocks_owner(&a, 0, SIM_NUMBERS_QP, 0) == dead);
	child_kill(child);
	TEST_ASSERT_FALSE(places_live(&a, dead));
	places_bury(&a, dead, 0);
	TEST_ASSERT_TRUE(blocks_owner(&a, 0, SIM_NUMBERS_QP, 0) == 0);
	attach(&b);
	TEST_ASSERT_EQUAL_UINT32(segment_id_place(dead), b.place);
	TEST_ASSERT_TRUE(b.id != dead);
	TEST_ASSERT_TRUE(places_live(&a, b.id));
	TEST_ASSERT_FALSE(places_live(&a, dead));
	TEST_ASSERT_TRUE(blocks_claim(&b, 0, SIM_NUMBERS_QP, &block, &generation));
	TEST_ASSERT_TRUE(blocks_owner(&a, 0, SIM_NUMBERS_QP, block) == b.id);
	places_leave(&a);
	places_leave(&b);
}

/* The lock of a killed process is free. */
static int attach_and_lock(void)
{
	return attach_with(&of_child, "devices\n") || !segment_lock(&of_child, 0);
}

void test_a_killed_process_keeps_no_lock(void)
{
	struct segment a;
	pid_t child;

	attach(&a);
	child = child_begin(attach_and_lock);
	TEST_ASSERT_FALSE(segment_lock(&a, 0));
	child_kill(child);
	TEST_ASSERT_TRUE(segment_lock(&a, 0));
	segment_unlock(&a);
	places_leave(&a);
}

/* exit(3) may interrupt a thread while it has the lock of the file. */
void test_a_process_that_exits_with_the_lock_leaves_the_world(void)
{
	struct segment a, b;

	attach(&a);
	attach(&b);
	TEST_ASSERT_TRUE(segment_lock(&a, 0));
	places_abandon(&a);
	TEST_ASSERT_FALSE(places_live(&b, a.id));
	TEST_ASSERT_TRUE(world_exists());
	TEST_ASSERT_TRUE(segment_lock(&b, 0));
	places_abandon(&b);
	TEST_ASSERT_FALSE(world_exists());
	segment_drop(&a);
	segment_drop(&b);
}

/* --- blocks --- */

void test_no_block_has_two_owners(void)
{
	struct segment a, b;
	static segment_id owners[SEGMENT_QP_BLOCKS];
	uint32_t block;
	uint16_t generation;
	unsigned int count = 0;

	attach(&a);
	attach(&b);
	for (;; count++) {
		struct segment *claimer = count % 3 ? &a : &b;

		if (!blocks_claim(claimer, 5, SIM_NUMBERS_QP, &block, &generation))
			break;
		TEST_ASSERT_TRUE(block < SEGMENT_QP_BLOCKS);
		TEST_ASSERT_TRUE(owners[block] == 0);
		owners[block] = claimer->id;
		TEST_ASSERT_TRUE(blocks_owner(&a, 5, SIM_NUMBERS_QP, block) == claimer->id);
		TEST_ASSERT_TRUE(blocks_owner(&b, 5, SIM_NUMBERS_QP, block) == claimer->id);
	}
	TEST_ASSERT_EQUAL_UINT(SEGMENT_QP_BLOCKS, count);
	TEST_ASSERT_TRUE(blocks_claim(&a, 5, SIM_NUMBERS_SRQ, &block, &generation));
	TEST_ASSERT_TRUE(blocks_claim(&a, 4, SIM_NUMBERS_QP, &block, &generation));
	TEST_ASSERT_TRUE(blocks_owner(&a, 4, SIM_NUMBERS_KEY, 0) == 0);
	TEST_ASSERT_TRUE(blocks_owner(&a, 63, SIM_NUMBERS_QP, 0) == 0);
	places_leave(&b);
	/* What b had is free, and comes with another generation, which fits into 6 bits of a QPN. */
	TEST_ASSERT_TRUE(blocks_claim(&a, 5, SIM_NUMBERS_QP, &block, &generation));
	TEST_ASSERT_TRUE(owners[block] != a.id);
	TEST_ASSERT_TRUE(generation % 64 != 0);
	places_leave(&a);
}

void test_a_block_or_device_beyond_the_tables_is_nobodys(void)
{
	struct segment a;
	uint32_t block;
	uint16_t generation;

	attach(&a);
	TEST_ASSERT_FALSE(blocks_claim(&a, SEGMENT_DEVICES, SIM_NUMBERS_QP, &block, &generation));
	TEST_ASSERT_FALSE(blocks_claim(&a, 0, SIM_NUMBERS, &block, &generation));
	TEST_ASSERT_TRUE(blocks_claim(&a, 0, SIM_NUMBERS_QP, &block, &generation));
	TEST_ASSERT_TRUE(blocks_owner(&a, SEGMENT_DEVICES, SIM_NUMBERS_QP, 0) == 0);
	TEST_ASSERT_TRUE(blocks_owner(&a, 0, SIM_NUMBERS_QP, SEGMENT_QP_BLOCKS) == 0);
	TEST_ASSERT_TRUE(blocks_owner(&a, 0, SIM_NUMBERS_SRQ, SEGMENT_SRQ_BLOCKS) == 0);
	TEST_ASSERT_TRUE(blocks_owner(&a, 0, SIM_NUMBERS_KEY, SEGMENT_KEY_BLOCKS) == 0);
	places_leave(&a);
}

void test_blocks_of_the_dead_are_claimed_when_no_other_is_left(void)
{
	struct segment a;
	uint32_t block;
	uint16_t generation;
	pid_t child;

	attach(&a);
	child = child_begin(attach_and_claim);
	for (unsigned int i = 1; i < SEGMENT_QP_BLOCKS; i++)
		TEST_ASSERT_TRUE(blocks_claim(&a, 0, SIM_NUMBERS_QP, &block, &generation));
	TEST_ASSERT_FALSE(blocks_claim(&a, 0, SIM_NUMBERS_QP, &block, &generation));
	child_kill(child);
	TEST_ASSERT_TRUE(blocks_claim(&a, 0, SIM_NUMBERS_QP, &block, &generation));
	TEST_ASSERT_EQUAL_UINT32(0, block);
	places_leave(&a);
}

/* --- XRC domains --- */

void test_a_domain_is_of_one_inode_on_one_device(void)
{
	static const struct domain_key keys[] = {{0, 1, 2}, {1, 1, 2}, {0, 3, 2}, {0, 1, 4}};
	struct segment a, b;
	uint32_t entry;

	attach(&a);
	attach(&b);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		TEST_ASSERT_EQUAL_INT(SHARED_DOMAIN_ABSENT, domains_open(&b, &keys[i], 0, &entry));
		TEST_ASSERT_EQUAL_INT(SHARED_DOMAIN_OPENED,
				      domains_open(&a, &keys[i], O_CREAT | O_EXCL, &entry));
		TEST_ASSERT_EQUAL_INT(SHARED_DOMAIN_EXISTS,
				      domains_open(&b, &keys[i], O_CREAT | O_EXCL, &entry));
	}
	places_leave(&a);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		TEST_ASSERT_EQUAL_INT(SHARED_DOMAIN_ABSENT, domains_open(&b, &keys[i], 0, &entry));
	places_leave(&b);
}
