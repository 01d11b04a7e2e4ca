/* SPDX-License-Identifier: MIT */
/*
 * Walks the files of simulated devices by all functions of libc that take paths, as programs do.
 * Exits with 1 behind a line for each wrong answer. Knows nothing of Verbena.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define IB	"/sys/class/infiniband"
#define VIRTUAL "/sys/devices/virtual/infiniband"
#define STATE	IB "/sim1/ports/1/state"

static int wrong;

#define CHECK(what) check((what), #what, __LINE__)

static void check(int holds, const char *what, int line)
{
	if (!holds)
		printf("walk.c:%d: %s: %s\n", line, what, strerror(errno));
	wrong |= !holds;
}

static int reads(int fd, const char *line)
{
	char text[64] = "";
	ssize_t length = read(fd, text, sizeof(text) - 1);

	close(fd);
	return length > 0 && strcmp(text, line) == 0;
}

static void open_files(void)
{
	const char *const paths[] = {STATE,
				     "//sys///class/./infiniband//sim1/ports/1/state",
				     "/sys/class/net/../infiniband/sim1/ports/1/state",
				     IB "/../infiniband/sim1/ports/1/state",
				     IB "/sim1/../sim1/ports/1/state",
				     VIRTUAL "/sim1/ports/1/state",
				     VIRTUAL "/sim0/subsystem/sim1/ports/1/state",
				     "/sys/class/infiniband_verbs/uverbs0/subsystem/../infiniband/"
				     "sim1/ports/1/state"};
	char text[64];
	FILE *file;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		check(reads(open(paths[i], O_RDONLY), "4: ACTIVE\n"), paths[i], __LINE__);
		check(reads(openat(AT_FDCWD, paths[i], O_RDONLY), "4: ACTIVE\n"), paths[i],
		      __LINE__);
		file = fopen(paths[i], "r");
		check(file && fgets(text, sizeof(text), file) && !strcmp(text, "4: ACTIVE\n"),
		      paths[i], __LINE__);
		if (file)
			file = freopen(paths[i], "r", file);
		CHECK(file && fgets(text, sizeof(text), file) && !strcmp(text, "4: ACTIVE\n"));
		if (file)
			fclose(file);
	}
	errno = 0;
	CHECK(open(IB "/sim2/ports/1/state", O_RDONLY) < 0 && errno == ENOENT);
	CHECK(open(IB "/sim0/ports/2/state", O_RDONLY) < 0 && errno == ENOENT);
	CHECK(open(IB "/sim1/ports", O_WRONLY) < 0 && errno == EISDIR);
}

/* Relative paths, from folders of sysfs above and inside. */
static void open_below(void)
{
	static const struct {
		const char *folder, *path;
	} below[] = {{"/sys/class", "infiniband/sim1/ports/1/state"},
		     {"/sys", "class//infiniband/sim1/ports/1/state"},
		     {"/", "sys/class/infiniband/sim1/ports/1/state"},
		     {"/sys/class/net", "../infiniband/sim1/ports/1/state"},
		     {IB, "sim1/ports/1/state"},
		     {IB "/sim0", "../sim1/ports/1/state"},
		     {IB "/sim1/ports/1/gids", "../state"}};
	char before[PATH_MAX];
	struct stat status;

	CHECK(getcwd(before, sizeof(before)) != NULL);
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		int folder = open(below[i].folder, O_RDONLY | O_DIRECTORY);

		check(reads(openat(folder, below[i].path, O_RDONLY), "4: ACTIVE\n"),
		      below[i].folder, __LINE__);
		CHECK(!fstatat(folder, below[i].path, &status, 0) && S_ISREG(status.st_mode));
		CHECK(!faccessat(folder, below[i].path, R_OK, 0));
		close(folder);
		CHECK(!chdir(below[i].folder));
		check(reads(open(below[i].path, O_RDONLY), "4: ACTIVE\n"), below[i].folder,
		      __LINE__);
	}
	CHECK(!chdir(before));
}

static void ask_status(void)
{
	struct stat status;
	struct statx more;

	CHECK(!stat(STATE, &status) && S_ISREG(status.st_mode) && !(status.st_mode & S_IWOTH));
	CHECK(!stat(IB "/sim0", &status) && S_ISDIR(status.st_mode));
	CHECK(!lstat(IB "/sim0", &status) && S_ISLNK(status.st_mode));
	CHECK(!statx(AT_FDCWD, IB "/sim0", AT_SYMLINK_NOFOLLOW, STATX_TYPE, &more) &&
	      S_ISLNK(more.stx_mode));
	CHECK(!access(IB, R_OK | X_OK) && !euidaccess(STATE, R_OK) && access(IB "/sim7", F_OK));
}

static void follow_links(void)
{
	char path[PATH_MAX] = "", link[64];
	ssize_t length = readlink(IB "/sim1", path, sizeof(path) - 1);
	int fd;

	CHECK(length > 0 && !strcmp(path, "../../devices/virtual/infiniband/sim1"));
	CHECK(realpath(IB "/sim1/ports", path) && !strcmp(path, VIRTUAL "/sim1/ports"));
	CHECK(!chdir(IB "/sim1"));
	CHECK(getcwd(path, sizeof(path)) && !strcmp(path, VIRTUAL "/sim1"));
	CHECK(realpath("ports/..", path) && !strcmp(path, VIRTUAL "/sim1"));
	CHECK(!chdir("/"));
	fd = open(STATE, O_RDONLY);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	memset(path, 0, sizeof(path));
	CHECK(readlink(link, path, sizeof(path) - 1) > 0 &&
	      !strcmp(path, VIRTUAL "/sim1/ports/1/state"));
	close(fd);
}

/* Returns how many entries of a folder have the name. */
static unsigned int count(DIR *folder, const char *name)
{
	unsigned int found = 0;
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		found += !strcmp(entry->d_name, name);
	if (folder)
		closedir(folder);
	return found;
}

static void list_folders(void)
{
	struct dirent **entries;
	DIR *folder;
	int found;

	CHECK(count(opendir(IB), "sim0") == 1 && count(opendir(IB), "sim1") == 1);
	CHECK(count(opendir("/sys/class/infiniband_verbs"), "uverbs1") == 1);
	CHECK(count(opendir("/dev/infiniband"), "uverbs1") == 1);
	CHECK(count(fdopendir(open(IB "/sim0/ports", O_RDONLY)), "1") == 1);
	/* Also where the machine's folder and the devices' meet. */
	CHECK(count(opendir("/sys/class"), "infiniband") == 1);
	CHECK(count(opendir("/sys/class/"), "infiniband_verbs") == 1);
	CHECK(count(opendir("/sys/class"), "net") == 1);
	CHECK(count(opendir("/dev"), "infiniband") == 1 && count(opendir("/dev"), "null") == 1);
	CHECK(count(opendir("/sys"), "infiniband") == 0);
	folder = opendir("/sys/class");
	while (readdir(folder))
		;
	rewinddir(folder);
	CHECK(count(folder, "infiniband") == 1);
	found = scandir(IB, &entries, NULL, alphasort);
	CHECK(found == 4 && !strcmp(entries[2]->d_name, "sim0"));
	while (found > 0)
		free(entries[--found]);
	free(entries);
}

static unsigned int seen;

static int see(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	seen += !strcmp(path, IB "/sim0") && kind == FTW_SL && !strcmp(path + where->base, "sim0");
	seen += !strcmp(path, IB) && kind == FTW_D && where->level == 0;
	return 0;
}

static int see_plainly(const char *path, const struct stat *status, int kind)
{
	seen += !strcmp(path, STATE) && kind == FTW_F;
	return 0;
}

static void walk_trees(void)
{
	char *const roots[] = {(char *)IB, NULL};
	unsigned int states = 0;
	FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
	FTSENT *entry;
	glob_t found;

	seen = 0;
	CHECK(!nftw(IB, see, 8, FTW_PHYS) && seen == 2);
	CHECK(!ftw(IB, see_plainly, 8) && seen == 3);
	while (walk && (entry = fts_read(walk)))
		states += entry->fts_info == FTS_F && !strcmp(entry->fts_path, STATE) &&
			  !access(entry->fts_accpath, R_OK) &&
			  entry->fts_pathlen == strlen(STATE) && entry->fts_level == 4;
	CHECK(walk && states == 1 && !fts_close(walk));
	CHECK(!glob(IB "/*/ports/1/state", 0, NULL, &found) && found.gl_pathc == 2 &&
	      !strcmp(found.gl_pathv[1], STATE));
	CHECK(!glob("/sys/class/infiniband_verbs/uverbs?", GLOB_APPEND, NULL, &found) &&
	      found.gl_pathc == 4 && !strcmp(found.gl_pathv[1], STATE));
	globfree(&found);
}

static void use_character_device(void)
{
	char path[PATH_MAX];
	struct statx more;
	struct stat status;
	int fd = open("/dev/infiniband/uverbs1", O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0 && !fstat(fd, &status) && S_ISCHR(status.st_mode) &&
	      status.st_rdev == makedev(231, 193));
	CHECK(!fstatat(fd, "", &status, AT_EMPTY_PATH) && status.st_rdev == makedev(231, 193));
	CHECK(!statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &more) &&
	      more.stx_rdev_major == 231 && more.stx_rdev_minor == 193);
	CHECK(write(fd, "command", 7) < 0 && errno == ENOSPC);
	CHECK(ioctl(fd, 0xc0181b01, path) < 0 && errno == ENOTTY);
	close(fd);
	CHECK(!stat("/dev/infiniband/uverbs0", &status) && status.st_rdev == makedev(231, 192));
	CHECK(!lstat("/dev/infiniband/uverbs0", &status) && S_ISCHR(status.st_mode));
	CHECK(!statx(AT_FDCWD, "/dev/infiniband/uverbs1", 0, STATX_BASIC_STATS, &more) &&
	      more.stx_rdev_major == 231 && more.stx_rdev_minor == 193);
	CHECK(!access("/dev/infiniband/uverbs0", R_OK | W_OK));
	CHECK(realpath("/dev/infiniband/uverbs0", path) &&
	      !strcmp(path, "/dev/infiniband/uverbs0"));
	CHECK(readlink("/dev/infiniband/uverbs0", path, sizeof(path)) < 0 && errno == EINVAL);
	CHECK(open("/dev/infiniband/uverbs2", O_RDWR) < 0 && errno == ENOENT);
	CHECK(open("/dev/infiniband/rdma_cm", O_RDWR) < 0 && errno == ENOENT);
	fd = open("/dev/full", O_WRONLY);
	CHECK(!fstat(fd, &status) && status.st_rdev == makedev(1, 7));
	close(fd);
}

/* What the machine has stays as it is. */
static void use_other_files(void)
{
	struct stat status;
	char path[PATH_MAX];

	CHECK(!stat("/dev/null", &status) && status.st_rdev == makedev(1, 3));
	CHECK(!access("/sys/class/net/lo/address", R_OK));
	CHECK(!access(IB "/../net/lo/address", R_OK));
	CHECK(realpath("/sys/class/net", path) && !strcmp(path, "/sys/class/net"));
	CHECK(open("infiniband", O_RDONLY) < 0 && errno == ENOENT);
	CHECK(mkdir("infiniband", 0700) == 0 && !stat("infiniband", &status) &&
	      !rmdir("infiniband"));
}

/* --- threads and processes --- */

static volatile sig_atomic_t children;

static void child_ends(int number)
{
	children++;
}

static void *open_in_thread(void *argument)
{
	return reads(open(STATE, O_RDONLY), "4: ACTIVE\n") ? argument : NULL;
}

/* The first look of a process makes the files. */
static void begin(void)
{
	pthread_t threads[8];
	void *good;

	signal(SIGCHLD, child_ends);
	for (size_t i = 0; i < 8; i++)
		CHECK(!pthread_create(&threads[i], NULL, open_in_thread, &wrong));
	for (size_t i = 0; i < 8; i++)
		CHECK(!pthread_join(threads[i], &good) && good);
	CHECK(children == 0);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	signal(SIGCHLD, SIG_DFL);
}

static void use_children(void)
{
	int status;

	for (int i = 0; i < 3; i++) {
		if (!fork())
			exit(!reads(open(STATE, O_RDONLY), "4: ACTIVE\n"));
		CHECK(wait(&status) > 0 && status == 0);
		/* Not even a child that has ended takes the files away. */
		CHECK(!system("test -r " STATE));
		CHECK(reads(open(STATE, O_RDONLY), "4: ACTIVE\n"));
	}
	/* A program may close descriptors that it does not know. */
	CHECK(!close_range(3, ~0U, 0) && reads(open(STATE, O_RDONLY), "4: ACTIVE\n"));
}

int main(int argc, char **argv)
{
	begin();
	use_other_files();
	open_files();
	ask_status();
	follow_links();
	list_folders();
	walk_trees();
	use_character_device();
	use_children();
	open_below();
	if (argc > 1 && !wrong) {
		printf("ready\n");
		fflush(stdout);
		pause();
	}
	return wrong;
}
