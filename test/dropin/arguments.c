/* SPDX-License-Identifier: MIT */
/*
 * Calls functions of libc with arguments that a program should not pass: memory that is not mapped, descriptors that
 * are closed, sizes of 0 and the largest. Prints how each call ends. check-arguments runs this program with and
 * without Verbena, and compares the lines.
 *
 * usage: arguments        calls all functions
 *        arguments files  the same by paths like those of a device, after it has looked for a device's file
 *        arguments world  calls those that wait, for a descriptor of a simulated device beside another
 *        arguments scarce calls all functions with good arguments, in a process without memory
 *
 * A row of `functions` has the parameters of a function. Each call replaces one good argument by a bad one of the same
 * kind, in a process of its own. Functions are found by their names, so the compiler knows nothing about their
 * parameters. All arguments are integers and pointers, which the calling conventions of Linux pass alike.
 */
#include "test/dropin/arguments.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PARAMETERS = 6, UNUSED_ERRNO = 1000, SECONDS = 20 };

/* What a function returns. */
enum result { INT, LONG, POINTER, NOTHING };

struct function {
	const char *name;
	enum result result;
	struct {
		enum kind kind;
		void *good;
	} parameters[PARAMETERS];
};

static const struct function functions[] = {
#define FILE_PATH                    \
	{                            \
		PATH, (char *)"file" \
	}
#define FOLDER_PATH                    \
	{                              \
		PATH, (char *)"folder" \
	}
#define LINK_PATH                    \
	{                            \
		PATH, (char *)"link" \
	}
#define FLAG(good)                  \
	{                           \
		FLAGS, NUMBER(good) \
	}
#define SIZE_OF(good)              \
	{                          \
		SIZE, NUMBER(good) \
	}
	/* files */
	{"open", INT, {FILE_PATH, FLAG(O_RDONLY), FLAG(0600)}},
	{"open64", INT, {FILE_PATH, FLAG(O_RDONLY), FLAG(0600)}},
	{"openat", INT, {{FOLDER}, FILE_PATH, FLAG(O_RDONLY), FLAG(0600)}},
	{"openat64", INT, {{FOLDER}, FILE_PATH, FLAG(O_RDONLY), FLAG(0600)}},
	{"__open_2", INT, {FILE_PATH, FLAG(O_RDONLY)}},
	{"__open64_2", INT, {FILE_PATH, FLAG(O_RDONLY)}},
	{"__openat_2", INT, {{FOLDER}, FILE_PATH, FLAG(O_RDONLY)}},
	{"__openat64_2", INT, {{FOLDER}, FILE_PATH, FLAG(O_RDONLY)}},
	{"creat", INT, {FILE_PATH, FLAG(0600)}},
	{"creat64", INT, {FILE_PATH, FLAG(0600)}},
	{"fopen", POINTER, {FILE_PATH, {TEXT, (char *)"r"}}},
	{"fopen64", POINTER, {FILE_PATH, {TEXT, (char *)"r"}}},
	{"freopen", POINTER, {FILE_PATH, {TEXT, (char *)"r"}, {STREAM}}},
	{"freopen64", POINTER, {FILE_PATH, {TEXT, (char *)"r"}, {STREAM}}},
	/* the status and the rights of a file */
	{"stat", INT, {FILE_PATH, {OUT}}},
	{"stat64", INT, {FILE_PATH, {OUT}}},
	{"lstat", INT, {FILE_PATH, {OUT}}},
	{"lstat64", INT, {FILE_PATH, {OUT}}},
	{"fstat", INT, {{DESCRIPTOR}, {OUT}}},
	{"fstat64", INT, {{DESCRIPTOR}, {OUT}}},
	{"fstatat", INT, {{FOLDER}, FILE_PATH, {OUT}, FLAG(0)}},
	{"fstatat64", INT, {{FOLDER}, FILE_PATH, {OUT}, FLAG(0)}},
	{"__xstat", INT, {FLAG(1), FILE_PATH, {OUT}}},
	{"__xstat64", INT, {FLAG(1), FILE_PATH, {OUT}}},
	{"__lxstat", INT, {FLAG(1), FILE_PATH, {OUT}}},
	{"__lxstat64", INT, {FLAG(1), FILE_PATH, {OUT}}},
	{"__fxstat", INT, {FLAG(1), {DESCRIPTOR}, {OUT}}},
	{"__fxstat64", INT, {FLAG(1), {DESCRIPTOR}, {OUT}}},
	{"__fxstatat", INT, {FLAG(1), {FOLDER}, FILE_PATH, {OUT}, FLAG(0)}},
	{"__fxstatat64", INT, {FLAG(1), {FOLDER}, FILE_PATH, {OUT}, FLAG(0)}},
	{"statx", INT, {{FOLDER}, FILE_PATH, FLAG(0), FLAG(STATX_BASIC_STATS), {OUT}}},
	{"access", INT, {FILE_PATH, FLAG(R_OK)}},
	{"eaccess", INT, {FILE_PATH, FLAG(R_OK)}},
	{"euidaccess", INT, {FILE_PATH, FLAG(R_OK)}},
	{"faccessat", INT, {{FOLDER}, FILE_PATH, FLAG(R_OK), FLAG(0)}},
	{"getxattr", LONG, {FILE_PATH, {TEXT, (char *)"user.none"}, {OUT}, SIZE_OF(64)}},
	{"lgetxattr", LONG, {FILE_PATH, {TEXT, (char *)"user.none"}, {OUT}, SIZE_OF(64)}},
	{"listxattr", LONG, {FILE_PATH, {OUT}, SIZE_OF(64)}},
	{"llistxattr", LONG, {FILE_PATH, {OUT}, SIZE_OF(64)}},
	/* links and the working directory */
	{"readlink", LONG, {LINK_PATH, {OUT}, SIZE_OF(64)}},
	{"readlinkat", LONG, {{FOLDER}, LINK_PATH, {OUT}, SIZE_OF(64)}},
	{"__readlink_chk", LONG, {LINK_PATH, {OUT}, SIZE_OF(64), SIZE_OF(64)}},
	{"__readlinkat_chk", LONG, {{FOLDER}, LINK_PATH, {OUT}, SIZE_OF(64), SIZE_OF(64)}},
	{"realpath", POINTER, {LINK_PATH, {OUT}}},
	{"__realpath_chk", POINTER, {LINK_PATH, {OUT}, SIZE_OF(PATH_MAX)}},
	{"canonicalize_file_name", POINTER, {LINK_PATH}},
	{"chdir", INT, {FOLDER_PATH}},
	{"getcwd", POINTER, {{OUT}, SIZE_OF(PATH_MAX)}},
	{"__getcwd_chk", POINTER, {{OUT}, SIZE_OF(PATH_MAX), SIZE_OF(PATH_MAX)}},
	{"get_current_dir_name", POINTER, {{NONE}}},
	/* folders and trees */
	{"opendir", POINTER, {FOLDER_PATH}},
	{"opendir", POINTER, {{PATH, (char *)"/dev"}}}, /* to which Verbena adds devices */
	{"readdir", POINTER, {{LISTING}}},
	{"readdir64", POINTER, {{LISTING}}},
	{"rewinddir", NOTHING, {{LISTING}}},
	{"closedir", INT, {{LISTING}}},
	{"scandir", INT, {FOLDER_PATH, {OUT}, {CALLBACK}, {CALLBACK}}},
	{"scandir64", INT, {FOLDER_PATH, {OUT}, {CALLBACK}, {CALLBACK}}},
	{"scandirat", INT, {{FOLDER}, FOLDER_PATH, {OUT}, {CALLBACK}, {CALLBACK}}},
	{"scandirat64", INT, {{FOLDER}, FOLDER_PATH, {OUT}, {CALLBACK}, {CALLBACK}}},
	{"ftw", INT, {FOLDER_PATH, {CALLBACK}, {COUNT, NUMBER(4)}}},
	{"ftw64", INT, {FOLDER_PATH, {CALLBACK}, {COUNT, NUMBER(4)}}},
	{"nftw", INT, {FOLDER_PATH, {CALLBACK}, {COUNT, NUMBER(4)}, FLAG(0)}},
	{"nftw64", INT, {FOLDER_PATH, {CALLBACK}, {COUNT, NUMBER(4)}, FLAG(0)}},
	{"glob", INT, {FILE_PATH, FLAG(0), {CALLBACK}, {OUT}}},
	{"glob64", INT, {FILE_PATH, FLAG(0), {CALLBACK}, {OUT}}},
	{"fts_open", POINTER, {{PATHS}, FLAG(FTS_PHYSICAL), {CALLBACK}}},
	{"fts_read", POINTER, {{WALK}}},
	{"fts_children", POINTER, {{WALK}, FLAG(0)}},
	{"fts_close", INT, {{WALK}}},
	{"fts64_open", POINTER, {{PATHS}, FLAG(FTS_PHYSICAL), {CALLBACK}}},
	{"fts64_read", POINTER, {{WALK}}},
	{"fts64_children", POINTER, {{WALK}, FLAG(0)}},
	{"fts64_close", INT, {{WALK}}},
	/* waits */
	{"poll", INT, {{POLLFDS}, {COUNT, NUMBER(2)}, {TIMEOUT_MS}}},
	{"__poll_chk", INT, {{POLLFDS}, {COUNT, NUMBER(2)}, {TIMEOUT_MS}, SIZE_OF(16)}},
	{"ppoll", INT, {{POLLFDS}, {COUNT, NUMBER(2)}, {TIMESPEC}, {SIGNALS}}},
	{"__ppoll_chk", INT, {{POLLFDS}, {COUNT, NUMBER(2)}, {TIMESPEC}, {SIGNALS}, SIZE_OF(16)}},
	{"select", INT, {{COUNT, NUMBER(64)}, {FD_SET_}, {FD_SET_}, {FD_SET_}, {TIMESPEC}}},
	{"pselect",
	 INT,
	 {{COUNT, NUMBER(64)}, {FD_SET_}, {FD_SET_}, {FD_SET_}, {TIMESPEC}, {SIGNALS}}},
	{"epoll_wait", INT, {{EPOLL}, {OUT}, {COUNT, NUMBER(2)}, {TIMEOUT_MS}}},
	{"epoll_pwait", INT, {{EPOLL}, {OUT}, {COUNT, NUMBER(2)}, {TIMEOUT_MS}, {SIGNALS}}},
	{"epoll_pwait2", INT, {{EPOLL}, {OUT}, {COUNT, NUMBER(2)}, {TIMESPEC}, {SIGNALS}}},
	/* ends */
	{"_exit", NOTHING, {{STATUS}}},
	{"_Exit", NOTHING, {{STATUS}}},
};

/* --- one call --- */

typedef long call_fn(void *, void *, void *, void *, void *, void *);

static void print_result(enum result result, long value)
{
	const int err = errno;
	const char *name = err == UNUSED_ERRNO ? "errno kept" : strerrorname_np(err);

	if (result == POINTER)
		printf("%s, %s\n", value ? "a pointer" : "NULL", name);
	else if (result == NOTHING)
		printf("%s\n", name);
	else
		printf("%ld, %s\n", result == INT ? (int)value : value, name);
	fflush(stdout);
}

/* Takes all memory that malloc(3) can give. */
static void use_up_memory(void)
{
	NEED(!setrlimit(RLIMIT_AS, &(struct rlimit){0, 0}));
	for (size_t bytes = 1 << 20; bytes; bytes /= 2)
		while (malloc(bytes))
			;
}

/* Calls the function, and prints what it returns. Never returns. */
static void call(const struct function *function, unsigned int replaced, void *bad, bool scarce)
{
	void *a[PARAMETERS];
	call_fn *called;
	long value;

	*(void **)&called = dlsym(RTLD_DEFAULT, function->name);
	NEED(called);
	for (unsigned int i = 0; i < PARAMETERS; i++)
		a[i] = i == replaced ? bad
				     : arguments_good(function->parameters[i].kind,
						      function->parameters[i].good, i);
	if (scarce)
		use_up_memory();
	errno = UNUSED_ERRNO;
	value = called(a[0], a[1], a[2], a[3], a[4], a[5]);
	print_result(function->result, value);
	_exit(0);
}

/* Calls the function in a child, and prints how that ended. */
static void try(const struct function *function, unsigned int replaced, const struct bad *bad,
		bool scarce)
{
	int status;
	pid_t child;

	if (bad)
		printf("%s: argument %u %s: ", function->name, replaced + 1, bad->name);
	else
		printf("%s: ", function->name);
	fflush(stdout);
	unlink("absent");
	child = fork();
	NEED(child >= 0);
	if (!child) {
		alarm(SECONDS);
		call(function, replaced, bad ? bad->value : NULL, scarce);
	}
	NEED(waitpid(child, &status, 0) == child);
	if (WIFSIGNALED(status))
		printf("signal %d\n", WTERMSIG(status));
	else if (function->result == NOTHING || WEXITSTATUS(status))
		printf("status %d\n", WEXITSTATUS(status));
	fflush(stdout);
}

static void try_all(const struct function *function)
{
	try(function, PARAMETERS, NULL, false);
	for (unsigned int i = 0; i < PARAMETERS; i++)
		for (const struct bad *bad = arguments_bad(function->parameters[i].kind); bad->name;
		     bad++)
			try(function, i, bad, false);
}

static bool waits(const struct function *function)
{
	for (unsigned int i = 0; i < PARAMETERS; i++)
		switch (function->parameters[i].kind) {
		case POLLFDS:
		case FD_SET_:
		case EPOLL:
			return true;
		default:
			break;
		}
	return false;
}

int main(int argc, char **argv)
{
	const bool world = argc > 1 && !strcmp(argv[1], "world");
	const bool scarce = argc > 1 && !strcmp(argv[1], "scarce");

	/* No cores, no messages of libc, and an allocation of INT_MAX entries fails. */
	NEED(!setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}));
	NEED(!setrlimit(RLIMIT_AS, &(struct rlimit){8L << 30, RLIM_INFINITY}));
	arguments_make(world, argc > 1 && !strcmp(argv[1], "files"));
	NEED(freopen("/dev/null", "w", stderr));
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (scarce)
			try(&functions[i], PARAMETERS, NULL, true);
		else if (!world || waits(&functions[i]))
			try_all(&functions[i]);
	return 0;
}
