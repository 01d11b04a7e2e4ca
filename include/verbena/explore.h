/* SPDX-License-Identifier: MIT */
/*
 * Exploration: a test is repeated with every packet lost, repeated, late or corrupted, with every call
 * and every allocation failing, and with combinations of these. docs/exploration.md is the introduction.
 *
 *	static int test(void *arg)
 *	{
 *		... opens devices of the default world, sends, compares, closes all ...
 *		return 0;
 *	}
 *
 *	int main(void)
 *	{
 *		struct vb_explore explore = {.name = "send", .test = test};
 *
 *		return vb_explore(&explore, NULL);
 *	}
 *
 * Each run of the test has a schedule: a list of decisions such as "drop:3", the loss of the third packet
 * that the process sends. Worlds on the virtual clock repeat exactly, so a schedule repeats its run.
 *
 * A function that returns int returns 0 or an errno value, unless its comment says otherwise;
 * vb_last_error() explains the error.
 */
#ifndef VERBENA_EXPLORE_H
#define VERBENA_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- schedules --- */

/* What a decision does. Packets, calls and allocations are counted from 1, each for itself. */
enum vb_decision_kind {
	VB_DECIDE_DROP,	     /* "drop": the packet is lost */
	VB_DECIDE_DUPLICATE, /* "duplicate": the packet arrives twice */
	VB_DECIDE_DELAY,   /* "delay": it arrives VB_EXPLORE_DELAY_NS later, past those behind it */
	VB_DECIDE_LATE,	   /* "late": VB_EXPLORE_LATE_NS later, past its own retransmission */
	VB_DECIDE_CORRUPT, /* "corrupt": a bit turns, and the ICRC is wrong */
	VB_DECIDE_CALL,	   /* "call": the call fails with ENOMEM (vb_fail_add()) */
	VB_DECIDE_ALLOCATION, /* "alloc": the allocation inside Verbena fails */
	VB_DECISION_KINDS,
};

#define VB_EXPLORE_DELAY_NS 2000
#define VB_EXPLORE_LATE_NS  100000000

struct vb_decision {
	enum vb_decision_kind kind;
	uint64_t n; /* the number of the packet, call or allocation, from 1 */
};

#define VB_SCHEDULE_MAX	 16
#define VB_SCHEDULE_TEXT 512

/* A schedule without decisions changes nothing. */
struct vb_schedule {
	unsigned int count;
	struct vb_decision decisions[VB_SCHEDULE_MAX];
};

/* Returns the word of a kind, such as "drop"; NULL behind the last one. The string is constant. */
const char *vb_decision_name(unsigned int kind);

/*
 * Reads a schedule such as "drop:3,call:7"; "none" is the empty one. The decisions are sorted: those of
 * packets first, by their numbers. EINVAL: the text is no schedule, has more than VB_SCHEDULE_MAX
 * decisions, or decides twice on one packet, call or allocation.
 */
int vb_schedule_parse(const char *text, struct vb_schedule *schedule);

/* Writes a schedule into text, of VB_SCHEDULE_TEXT bytes. Returns text. */
const char *vb_schedule_print(const struct vb_schedule *schedule, char *text);

/* --- exploring --- */

/* How a run has ended. */
enum vb_explore_end {
	/* The test has done what it should. */
	VB_ENDED_WELL = 0,
	/*
	 * The test has seen a failure that a verb, a completion or an event has reported, and has nothing
	 * else to complain of. Allowed if a call or an allocation fails, and with reports_allowed.
	 */
	VB_ENDED_REPORTED = 2,
	/* Each other value of the test's: it has failed. */
	VB_ENDED_WRONG = 1,
	/* These are found out by vb_explore(). */
	VB_ENDED_LEAKED = 100, /* objects of the simulator are left: vb_sim_report() */
	VB_ENDED_HANGING,      /* a wait can never end: see vb_explore() */
	VB_ENDED_KILLED,       /* by a signal, such as SIGSEGV or SIGABRT */
	VB_ENDED_EXITED,       /* the test called exit(3) */
	VB_ENDED_STOPPED,      /* more than timeout_s of real time has passed */
};

/* Returns a few words such as "hangs". The string is constant. */
const char *vb_explore_end_name(unsigned int end);

/*
 * A test makes and ends all that it uses in a simulated world on the virtual clock: in the default world,
 * which is fresh for each run and has the seed 1, or in one that it makes. It returns a value of enum
 * vb_explore_end. The same schedule must lead to the same actions: a test takes its random numbers from a
 * fixed seed.
 */
typedef int vb_explore_test_fn(void *arg);

/* The fields that are zero take the defaults in []. */
struct vb_explore {
	const char *
		name; /* of the test, in messages and file names: letters, digits, '_', '-' ["test"] */
	vb_explore_test_fn *test;
	void *arg;

	/* A bit for each kind of single decisions: 1u << VB_DECIDE_DROP [all kinds of packets]. */
	unsigned int kinds;
	/* The kinds of packets of which pairs are made [those of `kinds`]. */
	unsigned int pair_kinds;
	uint64_t
		singles_max; /* how many single decisions; of more, those are spread evenly [0: all] */
	uint64_t pairs_max; /* how many pairs of decisions [0: none] */
	uint64_t walks;	    /* how many random schedules of 3 to 6 decisions [0: none] */
	uint64_t seed;	    /* of the random schedules [1] */

	bool reports_allowed; /* set: VB_ENDED_REPORTED is right after lost packets, too */
	bool leaks_allowed;   /* set: objects that are left are no failure */
	bool goes_on;	      /* set: explores all, after a failure too [stops at the first] */
	bool runs_program; /* set: the test runs a program, which follows the schedule: see below */

	unsigned int jobs;	/* how many processes [one for each processor] */
	uint64_t timeout_s;	/* of real time, for each run [30] */
	uint64_t virtual_s_max; /* of virtual time, for each world [3600] */
	const char *folder;	/* for the files of a failing run ["verbena-explore"] */
	const char *schedule;	/* only this one: see vb_explore() [VERBENA_SCHEDULE, else none] */
	const char *command;	/* that repeats a run; "%s" is the schedule [this program with its
				   arguments, and VERBENA_SCHEDULE] */
	bool quiet;		/* set: prints nothing */
};

/* What vb_explore() has done. */
struct vb_explore_result {
	uint64_t runs;	  /* counts the runs of the test */
	uint64_t space;	  /* counts the schedules that were to be explored */
	uint64_t failed;  /* counts the schedules that fail */
	uint64_t packets; /* of the run without decisions */
	uint64_t calls;	  /* the same */
	uint64_t allocations;
	bool all_singles; /* true if each single decision of the chosen kinds was explored */
	/* Of the smallest schedule that fails, if `failed` is not 0: */
	struct vb_schedule schedule;
	enum vb_explore_end end;
	char words[512];    /* what is wrong, as a sentence */
	char command[4096]; /* repeats the run, as text for a shell */
};

/*
 * Runs the test without a decision, then with each single decision of `kinds` in the order of their
 * numbers, up to the first number that the run does not reach; then with pairs, then with random
 * schedules. Runs take place in child processes, `jobs` at a time. A schedule fails if the test does not
 * end well; the smallest one is that with the fewest decisions. Of a random schedule, decisions are left
 * out as long as it fails.
 *
 * A hang is found without waiting: a blocking verb for which nothing is due in the world never returns; a
 * program that polls 10,000 times while nothing is due never stops; nor does one whose world passes
 * virtual_s_max. The test's process then ends in the middle of the verb. After the last decision no fault
 * happens, so progress is possible: a test that then does not end, or does not end well, has failed.
 *
 * Prints the progress to standard error, if that is a terminal, and at the end one line, or of a failure
 * what is wrong, the schedule and the command that repeats the run. The run is repeated once more, to write
 * FOLDER/NAME.jsonl (the event log, for `verbena trace show`) and FOLDER/NAME.pcap: the last 10,000 events and packets,
 * unless VERBENA_LOG_LIMIT and VERBENA_TRACE_LIMIT say how much (verbena-run(1)).
 *
 * With `schedule`, or if the variable VERBENA_SCHEDULE names one, the test runs once, in this process, with
 * this schedule only; a hang calls abort(3), so that a debugger shows the place. VERBENA_SCHEDULE is
 * "SCHEDULE" for all tests or "NAME/SCHEDULE" for one; vb_explore() of another test then does nothing.
 *
 * With runs_program, the test starts programs that use Verbena (libverbena.so or its libibverbs.so.1), one
 * at a time, in the environment of the test: the variables there make the program follow the schedule. Other
 * threads must not run while vb_explore() is called. No device of the default world is open.
 *
 * Returns 0 if no schedule fails; 1 if one does; -1 with errno and a sentence:
 * EINVAL: there is no test, the name or the schedule is wrong, or the test fails without a decision: then
 *	*result says how.
 * ENOTSUP: a run is not repeatable: two runs without a decision differ in packets, calls or allocations.
 * EBUSY: a device of the default world is open. ENOMEM, or an error of fork(2) or mkdir(2).
 */
int vb_explore(const struct vb_explore *explore, struct vb_explore_result *result);

/* For a test: notes what is wrong, for the report of this run; the first sentence counts. Returns
 * VB_ENDED_WRONG. */
int vb_explore_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- the means, for runners of another kind --- */

enum vb_stuck {
	VB_STUCK_BLOCKED, /* a blocking verb waits, and nothing is due */
	VB_STUCK_POLLING, /* idle_polls_max polls in a row have found nothing, and nothing is due */
	VB_STUCK_LONG,	  /* virtual time has passed time_ns_max */
};

/* What happens in all worlds on the virtual clock that this process makes from now on. */
struct vb_sim_course {
	const struct vb_schedule
		*schedule; /* its packets; calls and allocations have no meaning here */
	const char *
		trace; /* a pcap file for each world, unless its configuration names one; NULL: none */
	uint64_t trace_bytes_max, trace_packets_max; /* as vb_sim_trace_limit() */
	uint64_t *packets;			     /* counts the packets; NULL: nobody asks */
	uint64_t idle_polls_max;		     /* 0: no limit */
	uint64_t time_ns_max;			     /* 0: no limit */
	/* Called when a wait cannot end, in the middle of a verb; it calls no function of Verbena. If it
	 * returns, the verb does what it does without it. NULL: nobody asks. */
	void (*stuck)(void *arg, enum vb_stuck how, uint64_t now_ns);
	void *arg;
	/* Called when a world is made; it calls no function of Verbena. NULL: nobody asks. */
	void (*begun)(void *arg);
};

/* Sets the course, which is copied with its schedule; NULL ends it. Worlds that exist stay as they are. While there is a
 * course, one thread at a time uses worlds. */
void vb_sim_follow(const struct vb_sim_course *course);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_EXPLORE_H */
