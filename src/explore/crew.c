/* SPDX-License-Identifier: MIT */
#include "src/explore/crew.h"

#include "src/explore/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS	 100
#define NS_OF_S	 1000000000u
#define JOBS_MAX 256

/* What a worker does, in memory that all processes of the crew share. */
struct place {
	_Atomic uint64_t index;
	_Atomic uint64_t began_ns;
	atomic_bool busy; /* true while the run of index is under way */
};

struct board {
	_Atomic uint64_t next;	    /* the first run that no worker has taken */
	_Atomic uint64_t done;	    /* counts the runs that have ended */
	_Atomic uint64_t failed_at; /* the first run that has failed; UINT64_MAX: none */
	struct place places[JOBS_MAX];
};

struct worker {
	pid_t pid; /* 0: none */
	int alive; /* a pipe, whose other end the worker has: it ends with the worker */
	struct place *place;
	struct explore_tally *tally;
	int tally_fd;
	bool timed_out;
};

struct crew {
	const struct vb_explore *explore;
	struct board *board;
	unsigned int jobs;
	struct worker workers[JOBS_MAX];
};

uint64_t crew_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_OF_S + (uint64_t)now.tv_nsec;
}

void *crew_memory(size_t size_bytes)
{
	void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void crew_forget(void *memory, size_t size_bytes)
{
	if (memory)
		munmap(memory, size_bytes);
}

/* --- the results --- */

static bool has_more(const struct board *board, const struct runs *runs)
{
	const uint64_t next = board->next;

	return next < runs->count && (runs->goes_on || next < board->failed_at);
}

static void record(const struct crew *crew, const struct runs *runs, const struct worker *worker,
		   struct outcome outcome)
{
	const uint64_t index = worker->place->index;
	_Atomic uint64_t *failed_at = &crew->board->failed_at;
	struct vb_schedule schedule;
	uint64_t first = *failed_at;

	runs->schedule(runs->arg, index, &schedule);
	outcome.ran = true;
	outcome.failed = run_failed(crew->explore, &schedule, outcome.end);
	for (enum counted i = 0; i < COUNTED; i++)
		outcome.seen[i] = worker->tally->seen[i];
	runs->outcomes[index] = outcome;
	while (outcome.failed && index < first)
		if (atomic_compare_exchange_weak(failed_at, &first, index))
			break;
	crew->board->done++;
	worker->place->busy = false;
}

/* --- the worker --- */

/* The output of thousands of runs would hide the report. */
static void redirect_output(const char *path)
{
	const int fd = open(path ? path : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0666);

	if (fd < 0)
		return;
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
}

/* Allocations are counted: a process has more of them the first time that it does something. */
static bool needs_fresh_process(const struct vb_explore *explore)
{
	return explore->kinds & 1u << VB_DECIDE_ALLOCATION;
}

static _Noreturn void work(const struct crew *crew, const struct runs *runs,
			   const struct worker *worker)
{
	struct vb_schedule schedule;
	const struct run run = {
		.schedule = &schedule,
		.tally = worker->tally,
		.tally_fd = worker->tally_fd,
		.log = runs->log,
		.trace = runs->trace,
	};

	while (has_more(crew->board, runs)) {
		const uint64_t index = atomic_fetch_add(&crew->board->next, 1);

		if (index >= runs->count)
			break;
		runs->schedule(runs->arg, index, &schedule);
		worker->place->index = index;
		worker->place->began_ns = crew_now_ns();
		worker->place->busy = true;
		record(crew, runs, worker, (struct outcome){.end = run_test(crew->explore, &run)});
		if (needs_fresh_process(crew->explore))
			break;
	}
	fflush(NULL);
	_exit(0);
}

static int start(const struct crew *crew, const struct runs *runs, struct worker *worker)
{
	const pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return errno;
	fflush(NULL);
	worker->timed_out = false;
	worker->place->busy = false;
	worker->pid = fork();
	if (!worker->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		if (!runs->shows_output)
			redirect_output(runs->output);
		work(crew, runs, worker);
	}
	close(ends[1]);
	worker->alive = ends[0];
	if (worker->pid > 0)
		return 0;
	close(ends[0]);
	worker->pid = 0;
	return errno;
}

/* --- the process that explores --- */

/* How a run has ended whose process has ended. */
static struct outcome judge(const struct worker *worker, int status)
{
	if (worker->timed_out)
		return (struct outcome){.end = VB_ENDED_STOPPED};
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_STUCK && worker->tally->stuck)
		return (struct outcome){.end = VB_ENDED_HANGING};
	if (WIFSIGNALED(status))
		return (struct outcome){.end = VB_ENDED_KILLED, .signal = WTERMSIG(status)};
	return (struct outcome){.end = VB_ENDED_EXITED};
}

static int reap(const struct crew *crew, const struct runs *runs, struct worker *worker)
{
	int status;

	close(worker->alive);
	while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
		;
	worker->pid = 0;
	if (worker->place->busy)
		record(crew, runs, worker, judge(worker, status));
	return has_more(crew->board, runs) ? start(crew, runs, worker) : 0;
}

static void stop_late(const struct crew *crew, struct worker *worker, uint64_t at_ns)
{
	const uint64_t limit_ns = crew->explore->timeout_s * NS_OF_S;
	const uint64_t began_ns = worker->place->began_ns;

	if (!worker->place->busy || at_ns < began_ns || at_ns - began_ns < limit_ns)
		return;
	worker->timed_out = true;
	kill(worker->pid, SIGKILL);
}

/* Waits until a worker has ended, but for LOOK_MS at most. Returns false if there is none. */
static bool look(struct crew *crew, struct pollfd fds[JOBS_MAX])
{
	bool any = false;

	for (unsigned int i = 0; i < crew->jobs; i++) {
		const struct worker *worker = &crew->workers[i];

		fds[i] = (struct pollfd){worker->pid ? worker->alive : -1, POLLIN, 0};
		any |= worker->pid != 0;
	}
	if (any)
		poll(fds, crew->jobs, LOOK_MS);
	return any;
}

int crew_run(struct crew *crew, const struct runs *runs)
{
	struct board *board = crew->board;
	struct pollfd fds[JOBS_MAX];
	int err = 0;

	board->next = board->done = 0;
	board->failed_at = UINT64_MAX;
	for (unsigned int i = 0; i < crew->jobs && i < runs->count && !err; i++)
		err = start(crew, runs, &crew->workers[i]);
	while (look(crew, fds)) {
		const uint64_t at_ns = crew_now_ns();

		for (unsigned int i = 0; i < crew->jobs; i++) {
			if (fds[i].revents && !err)
				err = reap(crew, runs, &crew->workers[i]);
			else if (fds[i].revents)
				reap(crew, runs, &crew->workers[i]);
			else if (crew->workers[i].pid)
				stop_late(crew, &crew->workers[i], at_ns);
		}
		if (runs->progress)
			runs->progress(runs->progress_arg, board->done);
	}
	return err;
}

const struct explore_tally *crew_tally(const struct crew *crew)
{
	return crew->workers[0].tally;
}

/* --- its beginning and end --- */

/* The memory has a descriptor, by which a program maps the same memory. */
static bool make_tally(struct worker *worker)
{
	void *at;

	worker->tally_fd = memfd_create("verbena-tally", 0);
	if (worker->tally_fd < 0)
		return false;
	if (ftruncate(worker->tally_fd, sizeof(struct explore_tally)))
		return false;
	at = mmap(NULL, sizeof(struct explore_tally), PROT_READ | PROT_WRITE, MAP_SHARED,
		  worker->tally_fd, 0);
	worker->tally = at == MAP_FAILED ? NULL : at;
	return worker->tally;
}

static unsigned int choose_jobs(unsigned int given)
{
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	const unsigned int jobs = given ? given : processors > 0 ? (unsigned int)processors : 1;

	return jobs < JOBS_MAX ? jobs : JOBS_MAX;
}

struct crew *crew_begin(const struct vb_explore *explore)
{
	struct crew *crew = calloc(1, sizeof(*crew));

	if (!crew)
		return NULL;
	crew->explore = explore;
	crew->jobs = choose_jobs(explore->jobs);
	crew->board = crew_memory(sizeof(*crew->board));
	for (unsigned int i = 0; i < JOBS_MAX; i++)
		crew->workers[i].tally_fd = -1;
	for (unsigned int i = 0; crew->board && i < crew->jobs; i++) {
		crew->workers[i].place = &crew->board->places[i];
		if (make_tally(&crew->workers[i]))
			continue;
		crew_forget(crew->board, sizeof(*crew->board));
		crew->board = NULL;
	}
	if (crew->board)
		return crew;
	crew_end(crew);
	return NULL;
}

void crew_end(struct crew *crew)
{
	for (unsigned int i = 0; i < crew->jobs; i++) {
		const struct worker *worker = &crew->workers[i];

		crew_forget(worker->tally, sizeof(*worker->tally));
		if (worker->tally_fd >= 0)
			close(worker->tally_fd);
	}
	crew_forget(crew->board, sizeof(*crew->board));
	free(crew);
}
