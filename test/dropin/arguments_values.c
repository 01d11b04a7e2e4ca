/* SPDX-License-Identifier: MIT */
#include "test/dropin/arguments.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fts.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, ROOMS = 8, SET_FDS = 64, BAD_MAX = 16 };

static struct {
	char *none;	/* a page that cannot be read */
	char *constant; /* a page of zeros that cannot be written */
	char *rooms;	/* pages of zeros: one for each argument of a call */
} memory;

static struct {
	int ready; /* can be read */
	int idle;  /* can never be read */
	int epoll; /* waits for both */
	int file;
	int folder;
	int path; /* was opened with O_PATH */
	int closed;
} fds;

static const char *before = ""; /* the beginning of good paths */
static struct bad bad[KINDS][BAD_MAX];

static char *map(size_t pages, int rights)
{
	char *at = mmap(NULL, pages * PAGE, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	NEED(at != MAP_FAILED);
	return at;
}

/* Returns the last bytes of a page; the page behind them cannot be read. */
static void *last_bytes(size_t length_bytes)
{
	char *at = map(2, PROT_READ | PROT_WRITE);

	NEED(!mprotect(at + PAGE, PAGE, PROT_NONE));
	return at + PAGE - length_bytes;
}

static void make_memory(void)
{
	memory.none = map(1, PROT_NONE);
	memory.constant = map(1, PROT_READ);
	memory.rooms = map(ROOMS, PROT_READ | PROT_WRITE);
}

/* Opens a simulated device, and returns the descriptor of a completion channel. */
static int open_channel(void)
{
	void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_GLOBAL);
	__typeof__(&ibv_get_device_list) list;
	__typeof__(&ibv_open_device) open_device;
	__typeof__(&ibv_create_comp_channel) create;
	struct ibv_comp_channel *channel;
	int count;

	NEED(library);
	*(void **)&list = dlsym(library, "ibv_get_device_list");
	*(void **)&open_device = dlsym(library, "ibv_open_device");
	*(void **)&create = dlsym(library, "ibv_create_comp_channel");
	channel = create(open_device(*list(&count)));
	NEED(channel);
	return channel->fd;
}

static void watch(int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	NEED(!epoll_ctl(fds.epoll, EPOLL_CTL_ADD, fd, &event));
}

static void make_descriptors(bool world)
{
	int full[2];

	NEED(!pipe(full) && write(full[1], "x", 1) == 1);
	fds.ready = full[0];
	fds.idle = world ? open_channel() : eventfd(0, EFD_CLOEXEC);
	fds.epoll = epoll_create1(0);
	watch(fds.ready);
	watch(fds.idle);
	NEED(!mkdir("folder", 0700) && !symlink("file", "link") && !symlink(".", "infiniband"));
	fds.file = open("file", O_RDWR | O_CREAT, 0600);
	fds.folder = open(".", O_RDONLY);
	/* /dev/full stands for the character device of a simulated device. */
	fds.path = open("/dev/full", O_PATH);
	fds.closed = dup(fds.file);
	NEED(fds.closed >= 0 && fds.closed < SET_FDS && !close(fds.closed));
}

/* --- good arguments --- */

static struct pollfd *put_pollfds(struct pollfd *at, int count)
{
	const int both[] = {fds.ready, fds.idle};

	for (int i = 0; i < count; i++)
		at[i] = (struct pollfd){.fd = both[i], .events = POLLIN};
	return at;
}

/* Puts no more bytes than SET_FDS descriptors need. */
static void *put_set(void *at)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fds.ready, &set);
	FD_SET(fds.idle, &set);
	return memcpy(at, &set, SET_FDS / 8);
}

static char *path_of(const char *name)
{
	char *path;

	NEED(asprintf(&path, "%s%s", *name == '/' ? "" : before, name) > 0);
	return path;
}

static void *put_path(char **at)
{
	*at = path_of("folder");
	return at;
}

static int see(void)
{
	return 0;
}

void *arguments_good(enum kind kind, void *given, unsigned int position)
{
	char *const room = memory.rooms + (size_t)position * PAGE;

	switch (kind) {
	case PATH:
		return path_of(given);
	case PATHS:
		return put_path((char **)room);
	case OUT:
	case TIMESPEC:
		return room;
	case STREAM:
		return fopen("file", "r");
	case LISTING:
		return opendir("folder");
	case WALK:
		return fts_open(put_path((char **)room), FTS_PHYSICAL, NULL);
	case CALLBACK:
		return (void *)see;
	case DESCRIPTOR:
		return NUMBER(fds.file);
	case FOLDER:
		return NUMBER(fds.folder);
	case POLLFDS:
		return put_pollfds((struct pollfd *)room, 2);
	case FD_SET_:
		return put_set(room);
	case EPOLL:
		return NUMBER(fds.epoll);
	default:
		return given;
	}
}

/* --- bad arguments --- */

static void add(enum kind kind, const char *name, void *value)
{
	unsigned int i = 0;

	while (bad[kind][i].name)
		i++;
	NEED(i + 1 < BAD_MAX);
	bad[kind][i] = (struct bad){name, value};
}

static void add_numbers(enum kind kind)
{
	add(kind, "0", NUMBER(0));
	add(kind, "1", NUMBER(1));
	add(kind, "-1", NUMBER(-1));
	add(kind, "INT_MAX", NUMBER(INT_MAX));
	add(kind, "INT_MIN", NUMBER(INT_MIN));
	add(kind, "LONG_MAX", NUMBER(LONG_MAX));
}

static void add_descriptors(enum kind kind)
{
	add(kind, "-1", NUMBER(-1));
	add(kind, "-2", NUMBER(-2));
	add(kind, "AT_FDCWD", NUMBER(AT_FDCWD));
	add(kind, "INT_MAX", NUMBER(INT_MAX));
	add(kind, "INT_MIN", NUMBER(INT_MIN));
	add(kind, "closed", NUMBER(fds.closed));
	add(kind, "of a file", NUMBER(fds.file));
	add(kind, "of a pipe", NUMBER(fds.ready));
	add(kind, "of a path only", NUMBER(fds.path));
}

/* Memory that no function can use. */
static void add_nowhere(enum kind kind)
{
	add(kind, "NULL", NULL);
	add(kind, "8", NUMBER(8));
	add(kind, "PROT_NONE", memory.none);
	add(kind, "of the kernel", NUMBER(LONG_MIN + PAGE));
	add(kind, "of no one", NUMBER(LONG_MAX / 2));
	add(kind, "the last bytes", NUMBER(-8));
}

static void add_strings(enum kind kind)
{
	char *long_text = map(3, PROT_READ | PROT_WRITE);

	memset(long_text, 'a', 2 * PAGE);
	add_nowhere(kind);
	add(kind, "unended", memcpy(last_bytes(3), "abc", 3));
	add(kind, "unended infiniband", memcpy(last_bytes(11), "/infiniband", 11));
	add(kind, "at the end of a page", strcpy(last_bytes(5), "file"));
	add(kind, "empty", (char *)"");
	add(kind, "absent", (char *)"absent");
	add(kind, "absent infiniband", (char *)"absent/infiniband");
	add(kind, "too long", long_text);
}

static void add_lists_of_paths(void)
{
	char **unreadable = (char **)map(1, PROT_READ | PROT_WRITE);

	unreadable[0] = (char *)"/infiniband";
	unreadable[1] = memory.none;
	add_nowhere(PATHS);
	add(PATHS, "unended", put_path(last_bytes(sizeof(char *))));
	add(PATHS, "of an unreadable path", unreadable);
}

static struct timespec *time_of(long seconds, long rest)
{
	struct timespec *time = malloc(sizeof(*time));

	NEED(time);
	*time = (struct timespec){seconds, rest};
	return time;
}

static void add_times(void)
{
	add_nowhere(TIMESPEC);
	add(TIMESPEC, "read-only", memory.constant);
	add(TIMESPEC, "unended", last_bytes(8));
	add(TIMESPEC, "-1 s", time_of(-1, 0));
	add(TIMESPEC, "-1 ns", time_of(0, -1));
	add(TIMESPEC, "1000000000 ns", time_of(0, 1000000000));
	add(TIMESPEC, "LONG_MAX s", time_of(LONG_MAX, 0));
	add(TIMESPEC, "LONG_MAX", time_of(LONG_MAX, LONG_MAX));
	add(TIMESPEC, "LONG_MIN", time_of(LONG_MIN, LONG_MIN));
	add(TIMEOUT_MS, "-1", NUMBER(-1));
	add(TIMEOUT_MS, "INT_MAX", NUMBER(INT_MAX));
	add(TIMEOUT_MS, "INT_MIN", NUMBER(INT_MIN));
}

static void add_sets(void)
{
	add_nowhere(POLLFDS);
	add(POLLFDS, "unended", put_pollfds(last_bytes(sizeof(struct pollfd)), 1));
	add(POLLFDS, "read-only", memory.constant);
	add_nowhere(FD_SET_);
	add(FD_SET_, "unended", last_bytes(SET_FDS / 8 / 2));
	add(FD_SET_, "at the end of a page", put_set(last_bytes(SET_FDS / 8)));
	add(FD_SET_, "read-only", memory.constant);
}

static void make_bad(void)
{
	add_strings(PATH);
	add_strings(TEXT);
	add_lists_of_paths();
	add_nowhere(OUT);
	add(OUT, "read-only", memory.constant);
	add(OUT, "unended", last_bytes(1));
	add_nowhere(STREAM);
	add_nowhere(LISTING);
	add_nowhere(WALK);
	add_nowhere(CALLBACK);
	add_nowhere(SIGNALS);
	add_descriptors(DESCRIPTOR);
	add_descriptors(FOLDER);
	add_descriptors(EPOLL);
	add_numbers(FLAGS);
	add(FLAGS, "0x100", NUMBER(0x100));
	add(FLAGS, "0x1000", NUMBER(0x1000));
	add(FLAGS, "0x5a5a5a", NUMBER(0x5a5a5a));
	add_numbers(SIZE);
	add_numbers(COUNT);
	add_numbers(STATUS);
	add_times();
	add_sets();
}

void arguments_make(bool world, bool files)
{
	if (files) {
		before = "infiniband/";
		(void)access("/dev/infiniband/uverbs0", F_OK);
	}
	make_memory();
	make_descriptors(world);
	make_bad();
}

const struct bad *arguments_bad(enum kind kind)
{
	return bad[kind];
}
