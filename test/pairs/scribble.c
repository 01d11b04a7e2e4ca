/* SPDX-License-Identifier: MIT */
#include "test/pairs/scribble.h"

#include "backends/sim/wire/shared_layout.h"

#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

/* Far beyond what any worker needs: Verbena waits 5 s for a lock at most. */
#define LIMIT_S 60

#define LOG_BYTES 65536

static const char usage_text[] =
	"usage: scribble [-n TRIALS] [-s SEED] [-t TRIAL] [-l SECONDS]\n"
	"In each trial [200], two or three processes exchange messages, connect and call each "
	"other in a world,\n"
	"whose file is overwritten meanwhile. Each must end, and none by a signal. -t runs one "
	"trial. -l is how\n"
	"long a process may take [60]. Meant to run under `verbena run`.\n";

struct settings {
	uint64_t seed;
	unsigned int first, trials, limit_s;
};

struct child {
	pid_t pid; /* 0: ended */
	int log;
};

struct trial {
	unsigned int number;
	uint64_t random;
	struct scribble_board *board;
	struct child children[SCRIBBLE_WORKERS_MAX];
	char world[64], path[128];
	int fd; /* of the world's file; -1: not opened yet */
	unsigned int limit_s, written;
	bool truncates, failed;
};

static uint32_t choose(struct trial *trial, uint32_t count)
{
	return (uint32_t)(scribble_random(&trial->random) % count);
}

/* --- the scribbler --- */

/* Where words are that matter, and how many bytes of them. The rest of the file is mostly holes. */
static uint64_t choose_offset(struct trial *trial, uint64_t file_bytes)
{
	static const struct {
		uint64_t at, bytes;
	} regions[] = {
		{0, 512},
		{0, sizeof(struct segment_header)},
		{SEGMENT_PLACES_AT, 4 * sizeof(struct segment_place)},
		/* the bells of the workers */
		{SEGMENT_PLACES_AT, sizeof(struct bell)},
		{SEGMENT_PLACES_AT + sizeof(struct segment_place), sizeof(struct bell)},
		{SEGMENT_PLACES_AT + 2 * sizeof(struct segment_place), sizeof(struct bell)},
		{SEGMENT_ROWS_AT, sizeof(struct segment_row)},
		{SEGMENT_TABLE_AT, 8 * sizeof(struct segment_area)},
		{SEGMENT_DOMAINS_AT, 4 * sizeof(struct segment_domain)},
		{SEGMENT_SERVICES_AT, SEGMENT_SERVICES * sizeof(struct segment_service)},
		{SEGMENT_HEADER_BYTES, 512}, /* the head of the first ring */
		{SEGMENT_HEADER_BYTES, 1 << 16},
	};
	const uint32_t region = choose(trial, sizeof(regions) / sizeof(regions[0]) + 1);

	if (region == sizeof(regions) / sizeof(regions[0]))
		return scribble_random(&trial->random) % (file_bytes + 1) / 4 * 4;
	return regions[region].at + scribble_random(&trial->random) % regions[region].bytes / 4 * 4;
}

/* A word like those that stand in the file, or one that does not. */
static uint64_t choose_word(struct trial *trial, uint64_t old)
{
	switch (choose(trial, 6)) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return 1;
	case 3:
		return old + 1;
	case 4:
		return old ^ UINT64_C(1) << choose(trial, 64);
	default:
		return scribble_random(&trial->random);
	}
}

static bool open_file(struct trial *trial)
{
	if (trial->fd < 0)
		trial->fd = open(trial->path, O_RDWR | O_CLOEXEC);
	return trial->fd >= 0;
}

/* Overwrites a word, or swaps two. */
static void scribble(struct trial *trial)
{
	struct stat status;
	uint64_t words[2] = {0}, at[2];
	const size_t bytes = choose(trial, 2) ? 8 : 4;

	if (!open_file(trial) || fstat(trial->fd, &status))
		return;
	for (unsigned int i = 0; i < 2; i++) {
		at[i] = choose_offset(trial, (uint64_t)status.st_size);
		if (pread(trial->fd, &words[i], bytes, (off_t)at[i]) < 0)
			return;
	}
	if (choose(trial, 4))
		words[1] = choose_word(trial, words[0]);
	else if (pwrite(trial->fd, &words[0], bytes, (off_t)at[1]) < 0)
		return;
	trial->written += pwrite(trial->fd, &words[1], bytes, (off_t)at[0]) > 0;
}

static void shorten(struct trial *trial)
{
	struct stat status;
	uint64_t length = 0;

	if (!open_file(trial) || fstat(trial->fd, &status))
		return;
	if (choose(trial, 2))
		length = scribble_random(&trial->random) % ((uint64_t)status.st_size + 1);
	if (ftruncate(trial->fd, (off_t)length))
		return;
	trial->written++;
}

/* --- workers --- */

static void start(struct trial *trial, uint32_t self)
{
	struct child *child = &trial->children[self];

	child->log = memfd_create("log", MFD_CLOEXEC);
	child->pid = fork();
	if (child->pid)
		return;
	setenv("VERBENA_WORLD", trial->world, 1);
	dup2(child->log, STDERR_FILENO);
	dup2(child->log, STDOUT_FILENO);
	scribble_work(trial->board, self);
	exit(0);
}

static bool all_quiet(const struct trial *trial)
{
	for (uint32_t i = 0; i < trial->board->workers; i++)
		if (trial->children[i].pid && !atomic_load(&trial->board->worker[i].quiet))
			return false;
	return true;
}

static void print_file(const char *path, const char *name)
{
	char text[2048];
	FILE *file = fopen(path, "re");
	size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	if (file)
		fclose(file);
	text[length] = '\0';
	printf("    %s: %s%s", name, text, length && text[length - 1] == '\n' ? "" : "\n");
}

/* Prints where each thread of a process is. */
static void print_threads(pid_t pid)
{
	static const char *const files[] = {"stat", "wchan", "syscall", "stack"};
	char path[300];
	struct dirent *entry;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		printf("  thread %s\n", entry->d_name);
		for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
			snprintf(path, sizeof(path), "/proc/%d/task/%.16s/%s", pid, entry->d_name,
				 files[i]);
			print_file(path, files[i]);
		}
	}
	if (folder)
		closedir(folder);
}

static void print_log(const struct child *child)
{
	static char text[LOG_BYTES];
	const ssize_t length = pread(child->log, text, sizeof(text) - 1, 0);

	text[length > 0 ? length : 0] = '\0';
	printf("  it wrote: %s\n", text);
}

static void blame(struct trial *trial, uint32_t number, const char *what, int value)
{
	const struct child *child = &trial->children[number];

	printf("FAIL trial %u, worker %u (process %d): %s %d\n", trial->number, number, child->pid,
	       what, value);
	print_log(child);
	trial->failed = true;
}

/* Takes the workers that have ended. Returns false if none is left. */
static bool take_ended(struct trial *trial)
{
	bool left = false;
	int status;

	for (uint32_t i = 0; i < trial->board->workers; i++) {
		struct child *child = &trial->children[i];

		if (!child->pid)
			continue;
		if (waitpid(child->pid, &status, WNOHANG) != child->pid) {
			left = true;
			continue;
		}
		if (WIFSIGNALED(status))
			blame(trial, i, "ended by signal", WTERMSIG(status));
		else if (WEXITSTATUS(status))
			blame(trial, i, "exit status", WEXITSTATUS(status));
		child->pid = 0;
	}
	return left;
}

static void end_hung(struct trial *trial)
{
	for (uint32_t i = 0; i < trial->board->workers; i++) {
		const struct child *child = &trial->children[i];

		if (!child->pid)
			continue;
		blame(trial, i, "has not ended after seconds:", (int)trial->limit_s);
		print_threads(child->pid);
		kill(child->pid, SIGKILL);
		waitpid(child->pid, NULL, 0);
	}
}

/* --- trials --- */

static void pause_us(uint32_t time_us)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)time_us * 1000}, NULL);
}

/* Scribbles at random moments, at once where `quiet` is set, and then waits for the end. */
static void scribble_on(struct trial *trial)
{
	const uint64_t end_ns = scribble_now_ns() + trial->limit_s * 1000 * MS;
	const uint32_t pause_max_us = 200 + choose(trial, 8) * 1000;
	uint32_t left = choose(trial, 3) ? 200 : 0; /* words, before all are quiet */
	bool was_quiet = false;

	while (take_ended(trial)) {
		if (scribble_now_ns() > end_ns) {
			end_hung(trial);
			return;
		}
		pause_us(1 + choose(trial, pause_max_us));
		if (!was_quiet && all_quiet(trial)) {
			was_quiet = true;
			for (unsigned int i = choose(trial, 200); i > 0; i--)
				scribble(trial);
			if (trial->truncates)
				shorten(trial);
			atomic_store(&trial->board->go_on, 1);
		} else if (!was_quiet && left) {
			left--;
			scribble(trial);
			if (trial->truncates && !choose(trial, 40))
				shorten(trial);
		}
	}
}

struct sums {
	uint64_t completed, connected, answered, written;
};

static void add_up(const struct trial *trial, struct sums *sums)
{
	for (uint32_t i = 0; i < trial->board->workers; i++) {
		const struct scribble_worker *worker = &trial->board->worker[i];

		sums->completed += atomic_load(&worker->completed);
		sums->connected += atomic_load(&worker->connected);
		sums->answered += atomic_load(&worker->answered);
	}
	sums->written += trial->written;
}

static void begin(struct trial *trial, const struct settings *settings, unsigned int number,
		  struct scribble_board *board)
{
	*trial = (struct trial){
		.number = number, .board = board, .fd = -1, .limit_s = settings->limit_s};
	trial->random = (settings->seed << 20) + number + 1;
	for (unsigned int i = 0; i < 20; i++)
		scribble_random(&trial->random);
	trial->truncates = !choose(trial, 8);
	memset(board, 0, sizeof(*board));
	board->seed = scribble_random(&trial->random);
	board->workers = 2 + choose(trial, 2);
	board->port = (uint16_t)(20000 + choose(trial, 10000));
	board->domain_fd = memfd_create("domain", MFD_CLOEXEC);
	snprintf(trial->world, sizeof(trial->world), "scribble-%d-%u", getpid(), number);
	snprintf(trial->path, sizeof(trial->path), SEGMENT_FOLDER "/verbena-%u-%s",
		 (unsigned int)geteuid(), trial->world);
}

/* Returns true if all workers ended well. */
static bool run(const struct settings *settings, unsigned int number, struct scribble_board *board,
		struct sums *sums)
{
	struct trial trial;

	begin(&trial, settings, number, board);
	fflush(stdout);
	for (uint32_t i = 0; i < board->workers; i++)
		start(&trial, i);
	scribble_on(&trial);
	add_up(&trial, sums);
	for (uint32_t i = 0; i < board->workers; i++)
		close(trial.children[i].log);
	close(board->domain_fd);
	if (trial.fd >= 0)
		close(trial.fd);
	unlink(trial.path);
	return !trial.failed;
}

static double processor_s(void)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int run_all(const struct settings *settings)
{
	const unsigned int first = settings->first, end = first + settings->trials;
	struct scribble_board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
					    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct sums sums = {0};
	unsigned int failed = 0;

	if (board == MAP_FAILED)
		return 1;
	for (unsigned int number = first; number < end; number++)
		failed += !run(settings, number, board, &sums);
	printf("%u trials, %u failed; %llu words; %llu completions, %llu connections, %llu "
	       "answers; "
	       "%.1f s of processor time\n",
	       end - first, failed, (unsigned long long)sums.written,
	       (unsigned long long)sums.completed, (unsigned long long)sums.connected,
	       (unsigned long long)sums.answered, processor_s());
	/* A test in which nothing happens proves nothing. */
	if (end - first >= 10 && (!sums.completed || !sums.connected || !sums.answered))
		failed++;
	return failed != 0;
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.seed = scribble_now_ns() & 0xffffffff, .trials = 200, .limit_s = LIMIT_S};
	int option;

	while ((option = getopt(argc, argv, "hl:n:s:t:")) >= 0) {
		const uint64_t number = optarg ? strtoull(optarg, NULL, 10) : 0;

		if (option == 'l') {
			settings.limit_s = (unsigned int)number;
		} else if (option == 'n') {
			settings.trials = (unsigned int)number;
		} else if (option == 's') {
			settings.seed = number;
		} else if (option == 't') {
			settings.first = (unsigned int)number;
			settings.trials = 1;
		} else {
			fputs(usage_text, option == 'h' ? stdout : stderr);
			return option == 'h' ? 0 : 2;
		}
	}
	printf("seed %llu\n", (unsigned long long)settings.seed);
	return run_all(&settings);
}
