/* SPDX-License-Identifier: MIT */
#include "test/pairs/storm.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Requests to a dead process end after 7 times 4.3 s; then everything has time. */
enum { END_S = 120 };

/* How often the starter looks if all workers are at work. */
#define WARM_STEP_NS 10000000ULL

struct worker {
	struct peer peer;
	uint32_t generation; /* 0: not started */
	bool warm, done;
	uint64_t kill_ns; /* 0: not to be killed */
};

struct storm {
	uint64_t seed, random;
	unsigned int workers, seconds, killed;
	uint32_t generations;
	struct worker worker[STORM_WORKERS_MAX];
	bool stopped;
	struct storm_sum sum;	   /* of the workers at the end */
	struct storm_sum survivor; /* of the workers that began with the storm */
};

static const char usage_text[] =
	"usage: storm [-n PROCESSES] [-t SECONDS] [-s SEED]\n"
	"Starts processes [16] that exchange messages, all to all, for a time [10]. Meanwhile "
	"every second one\n"
	"is killed and replaced. Meant to run under `verbena run --fault drop,probability=0.01`.\n";

static uint64_t next_random(struct storm *storm)
{
	storm->random ^= storm->random << 13;
	storm->random ^= storm->random >> 7;
	storm->random ^= storm->random << 17;
	return storm->random;
}

static void start_worker(struct storm *storm, uint32_t number)
{
	struct storm_worker_settings settings = {
		.seed = storm->seed,
		.self = number,
		.generation = ++storm->generations,
		.workers = storm->workers,
	};

	for (uint32_t i = 0; i < storm->workers; i++)
		settings.others[i] = storm->worker[i].generation;
	storm->worker[number].peer = peer_start((const char *[]){NULL});
	storm->worker[number].generation = settings.generation;
	peer_put(&storm->worker[number].peer, &settings, sizeof(settings));
}

static void tell_all(struct storm *storm, const struct storm_note *note)
{
	for (uint32_t i = 0; i < storm->workers; i++)
		if (storm->worker[i].generation)
			peer_put(&storm->worker[i].peer, note, sizeof(*note));
}

static void kill_worker(struct storm *storm, uint32_t number)
{
	struct worker *worker = &storm->worker[number];
	struct storm_note note = {
		.kind = STORM_DEAD, .from = number, .generation = worker->generation};

	peer_kill(&worker->peer);
	worker->generation = 0;
	worker->kill_ns = 0;
	storm->killed++;
	tell_all(storm, &note);
	start_worker(storm, number);
}

/* Passes a note on, unless its receiver has been replaced. */
static void take_note(struct storm *storm, uint32_t from)
{
	struct storm_note note;
	struct worker *to;

	peer_take(&storm->worker[from].peer, &note, sizeof(note));
	if (note.kind == STORM_WARM) {
		storm->worker[from].warm = true;
		return;
	}
	if (note.kind == STORM_DONE) {
		const uint64_t *counts = (const uint64_t *)&note.sum;

		storm->worker[from].done = true;
		for (size_t i = 0; i < sizeof(note.sum) / sizeof(*counts); i++) {
			((uint64_t *)&storm->sum)[i] += counts[i];
			if (storm->worker[from].generation <= storm->workers)
				((uint64_t *)&storm->survivor)[i] += counts[i];
		}
		return;
	}
	to = &storm->worker[note.to];
	if (to->generation == note.to_generation)
		peer_put(&to->peer, &note, sizeof(note));
}

/* Passes notes on until a time. Returns true if all workers are done. */
static bool pass_notes(struct storm *storm, uint64_t until_ns)
{
	struct pollfd fds[STORM_WORKERS_MAX];
	bool all_done = false;

	while (!all_done && now_ns() < until_ns) {
		uint64_t now = now_ns(),
			 left_ms = until_ns > now ? (until_ns - now) / 1000000 + 1 : 0;

		for (uint32_t i = 0; i < storm->workers; i++)
			fds[i] = (struct pollfd){storm->worker[i].peer.fd, POLLIN, 0};
		if (poll(fds, storm->workers, (int)left_ms) < 0 && errno != EINTR)
			fail("poll: %s", strerror(errno));
		all_done = true;
		for (uint32_t i = 0; i < storm->workers; i++) {
			if (fds[i].revents)
				take_note(storm, i);
			all_done = all_done && storm->worker[i].done;
		}
	}
	return all_done;
}

/* The storm begins when all workers are at work, however long a busy machine takes to start them. */
static void await_warmth(struct storm *storm)
{
	const uint64_t end_ns = now_ns() + END_S * 1000000000ULL;

	for (uint32_t i = 0; i < storm->workers; i++)
		while (!storm->worker[i].warm) {
			if (now_ns() > end_ns)
				fail("worker %u does nothing", i);
			pass_notes(storm, now_ns() + WARM_STEP_NS);
		}
}

/* Every second worker is killed at a random time of the middle of the storm. */
static void choose_kills(struct storm *storm, uint64_t begin_ns)
{
	uint64_t length_ns = storm->seconds * 1000000000ULL;

	for (uint32_t i = 1; i < storm->workers; i += 2)
		storm->worker[i].kill_ns = begin_ns +
					   length_ns * (3 + next_random(storm) % 50 / 10) / 10 +
					   next_random(storm) % (length_ns / 10);
}

static struct worker *next_kill(struct storm *storm)
{
	struct worker *next = NULL;

	for (uint32_t i = 0; i < storm->workers; i++) {
		struct worker *worker = &storm->worker[i];

		if (worker->kill_ns && (!next || worker->kill_ns < next->kill_ns))
			next = worker;
	}
	return next;
}

/* Counts the files of this world in /dev/shm. */
static unsigned int files_of_world(void)
{
	const char *world = getenv("VERBENA_WORLD");
	DIR *folder = need("/dev/shm", opendir("/dev/shm"));
	unsigned int found = 0;

	for (struct dirent *entry; (entry = readdir(folder));)
		found += world && *world && strstr(entry->d_name, world);
	closedir(folder);
	return found;
}

static void run(struct storm *storm)
{
	uint64_t begin_ns, end_ns;
	struct worker *next;

	for (uint32_t i = 0; i < storm->workers; i++)
		start_worker(storm, i);
	await_warmth(storm);
	begin_ns = now_ns();
	end_ns = begin_ns + storm->seconds * 1000000000ULL;
	choose_kills(storm, begin_ns);
	pass_notes(storm, begin_ns + storm->seconds * 1000000000ULL / 4);
	tell_all(storm, &(struct storm_note){.kind = STORM_MEASURE});
	while ((next = next_kill(storm))) {
		pass_notes(storm, next->kill_ns);
		kill_worker(storm, (uint32_t)(next - storm->worker));
	}
	pass_notes(storm, end_ns);
	tell_all(storm, &(struct storm_note){.kind = STORM_STOP});
	if (!pass_notes(storm, now_ns() + END_S * 1000000000ULL)) {
		tell_all(storm, &(struct storm_note){.kind = STORM_REPORT});
		tell_all(storm, &(struct storm_note){.kind = STORM_EXIT});
		for (uint32_t i = 0; i < storm->workers; i++)
			peer_end(&storm->worker[i].peer);
		fail("seed %llu: %d s after the end some requests have not completed",
		     (unsigned long long)storm->seed, END_S);
	}
}

static void end(struct storm *storm, unsigned int files)
{
	const struct storm_sum *sum = &storm->sum, *survivor = &storm->survivor;

	tell_all(storm, &(struct storm_note){.kind = STORM_EXIT});
	for (uint32_t i = 0; i < storm->workers; i++)
		peer_end(&storm->worker[i].peer);
	printf("storm: seed %llu, %u processes, %u killed, %u s: %.0f requests/s and %.1f MiB/s "
	       "completed, %llu "
	       "messages received, %llu requests to dead processes ended, resident memory of a "
	       "survivor "
	       "%.1f MiB and at the end %.1f MiB, %u files in /dev/shm and at the end %u\n",
	       (unsigned long long)storm->seed, storm->workers, storm->killed, storm->seconds,
	       (double)sum->requests / storm->seconds,
	       (double)sum->bytes / storm->seconds / (1 << 20), (unsigned long long)sum->received,
	       (unsigned long long)sum->dead_ended,
	       (double)survivor->resident_before / (storm->workers - storm->killed) / (1 << 20),
	       (double)survivor->resident_after / (storm->workers - storm->killed) / (1 << 20),
	       files, files_of_world());
	fflush(stdout);
	if (!sum->requests || !sum->received || !sum->dead_ended)
		fail("nothing happened of one kind");
	if (files_of_world())
		fail("files are left in /dev/shm");
	if (survivor->resident_after >
	    survivor->resident_before * 5 / 4 + (uint64_t)storm->workers * (2 << 20))
		fail("the resident memory grows");
}

static unsigned int number(const char *text)
{
	return text ? (unsigned int)strtoul(text, NULL, 0) : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"peer", required_argument, NULL, 'p'}, {0}};
	static struct storm storm = {.workers = 16, .seconds = 10};
	int c;

	storm.seed = (uint64_t)getpid();
	while ((c = getopt_long(argc, argv, "n:t:s:", options, NULL)) != -1) {
		struct peer starter = {.fd = (int)number(optarg)};
		static struct storm_worker_settings settings;

		switch (c) {
		case 'n':
			storm.workers = number(optarg);
			break;
		case 't':
			storm.seconds = number(optarg);
			break;
		case 's':
			storm.seed = strtoull(optarg, NULL, 0);
			break;
		case 'p':
			peer_name = "worker";
			peer_take(&starter, &settings, sizeof(settings));
			storm_work(&settings, &starter);
			return 0;
		default:
			fputs(usage_text, stderr);
			return 2;
		}
	}
	if (storm.workers < 2 || storm.workers > STORM_WORKERS_MAX || !storm.seconds) {
		fputs(usage_text, stderr);
		return 2;
	}
	storm.random = storm.seed * 2654435761 + 1;
	run(&storm);
	end(&storm, files_of_world());
	return 0;
}
