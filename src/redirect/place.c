/* SPDX-License-Identifier: MIT */
/*
 * The folder that has the files of the simulated devices. `verbena run` chooses its name; the first process that
 * looks for a file runs `verbena run --files NAME`, the maker, which makes it. Each process that uses the folder
 * holds a shared lock on it, and so does each process that starts while the folder exists. The last of these
 * processes removes the folder when it ends. If that process is killed, the next process of the same run removes
 * the folder, or the next `verbena run`.
 */
#include "src/files/remove.h"
#include "src/redirect/redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FOLDER_VARIABLE "VERBENA_FILES"
#define MAKER_VARIABLE	"VERBENA_FILES_BY"

enum {
	/* At 1 ms each, while another process is removing the folder. It may have to wait for a processor first. */
	TRIES = 10000,
	DESCRIPTOR = 512, /* the lowest for the lock: some programs count on low numbers */
};

static struct {
	pthread_mutex_t lock;
	bool read;    /* true after the variables were read */
	bool ended;   /* true while the process ends */
	bool refused; /* true after the maker has failed, or another process has kept the lock */
	const char *name;  /* the folder; NULL: the process does not belong to `verbena run` */
	const char *maker; /* the path of the program verbena */
	size_t length;	   /* of name */
	int fd;		   /* the descriptor that has the lock; -1: none */
	ino_t inode;	   /* of the locked folder */
	pid_t process;	   /* the process that took the lock */
} place = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* --- the lock --- */

/* Locks the folder. Returns 0 or an errno value: ENOENT if there is no folder, EAGAIN while it is being
 * removed. */
static int take_lock(void)
{
	int fd = REAL(open)(place.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int high;

	if (fd < 0)
		return errno;
	if (flock(fd, LOCK_SH | LOCK_NB) || !files_is_named(fd, place.name, &place.inode)) {
		close(fd);
		return EAGAIN;
	}
	high = fcntl(fd, F_DUPFD_CLOEXEC, DESCRIPTOR);
	if (high >= 0)
		close(fd);
	place.fd = high >= 0 ? high : fd;
	place.process = getpid();
	return 0;
}

/* Returns true if the process has the lock. The program may have closed the descriptor, and its number may now
 * be another file's. */
static bool has_lock(void)
{
	ino_t inode;

	return place.fd >= 0 && files_is_named(place.fd, place.name, &inode) &&
	       inode == place.inode;
}

/* In the child of fork(): takes a lock of its own. The inherited descriptor shares the parent's lock, and holds it
 * if the parent ends meanwhile. */
static void forked(void)
{
	const int inherited = has_lock() ? place.fd : -1;
	const bool had = place.fd >= 0;

	place.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	place.fd = -1;
	if (had)
		take_lock();
	if (inherited >= 0)
		close(inherited);
}

/* --- making the folder --- */

/* Returns false for environment variables that are for the program alone: the maker writes no trace and no log,
 * and must run without this library. */
static bool is_for_maker(const char *setting)
{
	static const char *const others[] = {"LD_PRELOAD=",  "LD_LIBRARY_PATH=", "VERBENA_TRACE=",
					     "VERBENA_LOG=", "VERBENA_EXPLAIN=", "VERBENA_REPORT="};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strncmp(setting, others[i], strlen(others[i])))
			return false;
	return true;
}

/* Executes the maker, whose output goes to standard error. */
__attribute__((noreturn)) static void become_maker(char **settings)
{
	char *const words[] = {(char *)"verbena", (char *)"run", (char *)"--files",
			       (char *)place.name, NULL};
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	execve(place.maker, words, settings);
	syscall(SYS_exit_group, 127);
	__builtin_unreachable();
}

/* Waits for a child, and returns true if it ended with status 0. If the program has already taken the status,
 * that counts as 0. */
static bool ended_well(long child)
{
	int status = 0;

	while (child > 0 && syscall(SYS_wait4, child, &status, __WALL, NULL) < 0 && errno == EINTR)
		;
	return child > 0 && status == 0;
}

/*
 * Runs the maker, and returns true if it has made the folder.
 *
 * The program may wait for any child in another thread or in a handler of SIGCHLD, and must not get the maker.
 * So the maker is the child of a process between, which is cloned without an exit signal: its end raises no
 * SIGCHLD, and only a wait with __WALL (wait(2)) returns it.
 */
static bool run_maker(char **settings)
{
	sigset_t all, before;
	bool made;
	long child;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	child = syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
	if (!child) {
		signal(SIGCHLD, SIG_DFL); /* if it is ignored, the kernel keeps no status */
		child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
		if (!child)
			become_maker(settings);
		syscall(SYS_exit_group, !ended_well(child));
	}
	made = ended_well(child);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return made;
}

static bool make(void)
{
	size_t count = 0, kept = 0;

	while (environ && environ[count])
		count++;
	char *settings[count + 1];

	for (size_t i = 0; i < count; i++)
		if (is_for_maker(environ[i]))
			settings[kept++] = environ[i];
	settings[kept] = NULL;
	place.refused = !run_maker(settings);
	return !place.refused;
}

/* --- the folder --- */

static void read_variables(void)
{
	const char *name = getenv(FOLDER_VARIABLE), *maker = getenv(MAKER_VARIABLE);

	if (place.read)
		return;
	place.read = true;
	if (!name || !maker || *name != '/')
		return;
	/* Copies: the program may change its environment. */
	place.maker = strdup(maker);
	place.name = strdup(name);
	place.length = place.name ? strlen(place.name) : 0;
	pthread_atfork(NULL, NULL, forked);
}

/* The program goes on without the files, and does not wait for them again. */
static void give_up(void)
{
	place.refused = true;
	dprintf(STDERR_FILENO,
		"verbena run: %s: a process keeps a lock on this folder (flock(2)), so the program "
		"sees no "
		"files of the devices in /sys and /dev; end that process (fuser -v)\n",
		place.name);
}

/* Takes the lock, and makes the folder if it is missing. The caller holds place.lock. */
static bool hold(void)
{
	const struct timespec millisecond = {0, 1000000};

	if (has_lock())
		return true;
	for (unsigned int i = 0; i < TRIES && !place.refused; i++) {
		int err = take_lock();

		if (!err)
			return true;
		if (err == EAGAIN)
			nanosleep(&millisecond, NULL);
		else if (err != ENOENT || !make())
			return false;
	}
	if (!place.refused)
		give_up();
	return false;
}

const char *place_hold(size_t *length)
{
	bool held;

	pthread_mutex_lock(&place.lock);
	read_variables();
	held = place.name && place.maker && !place.ended && hold();
	pthread_mutex_unlock(&place.lock);
	*length = place.length;
	return held ? place.name : NULL;
}

const char *place_held(size_t *length)
{
	*length = place.length;
	return place.fd >= 0 ? place.name : NULL;
}

void place_leave(void)
{
	if (place.fd < 0 || place.process != getpid())
		return;
	place.ended = true;
	if (has_lock())
		close(place.fd);
	place.fd = -1;
	files_take_back(place.name);
}

/* errno is 0 when main() begins, as without Verbena. */
__attribute__((constructor)) static void start(void)
{
	const int err = errno;

	read_variables();
	if (place.name && place.fd < 0)
		take_lock();
	errno = err;
}

__attribute__((destructor)) static void end(void)
{
	place_leave();
}

/* Shells end with _exit(), which runs no destructor. */
EXPORT void _exit(int status)
{
	place_leave();
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}

EXPORT void _Exit(int status)
{
	_exit(status);
}
