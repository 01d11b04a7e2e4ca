/* SPDX-License-Identifier: MIT */
/*
 * Moves the time of one engine. On the virtual clock, time moves when the world's threads wait; on
 * the real one it follows CLOCK_MONOTONIC, which posting, polling and a progress thread read.
 *
 * The caller of each function holds the driver's mutex, unless the function says otherwise.
 */
#ifndef BACKENDS_SIM_CLOCK_DRIVER_H
#define BACKENDS_SIM_CLOCK_DRIVER_H

#include "backends/sim/base/bell.h"
#include "backends/sim/clock/ticks.h"
#include "backends/sim/clock/watches.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct sim_engine;

/* A thread that waits for a time: vb_sim_run(), vb_sim_wait_cq(). */
struct driver_runner {
	uint64_t until_ns;
	struct driver_runner *next;
};

/* Called whenever the engine has run. */
typedef void driver_ran_fn(void *arg);

/*
 * What the clock knows of a world's wires (backends/sim/wire/wire.h): the engine is brought up to now with
 * what has come, and what it has sent leaves when it has run.
 */
struct driver_wires {
	void *arg;
	/* Returns true if there is something to receive, or may be. Costs little. */
	bool (*arrived)(void *arg);
	bool (*receive)(void *arg); /* true: something has come */
	void (*flush)(void *arg);
	void (*listen)(void *arg, bool on); /* on: the bell is listened to from now on */
};

/* How a wait can never end (backends/sim/clock/patience.c). */
enum driver_stuck {
	DRIVER_BLOCKED, /* a verb blocks, and nothing is due */
	DRIVER_POLLING, /* polls_max polls in a row have found nothing, and nothing is due */
	DRIVER_LONG,	/* the time has passed time_ns_max */
};

struct driver_patience {
	uint64_t polls_max;   /* 0: no limit */
	uint64_t time_ns_max; /* 0: no limit */
	uint64_t polls;	      /* counts those in a row */
	/* The caller holds the driver's mutex. NULL: nobody watches. */
	void (*stuck)(enum driver_stuck how, uint64_t now_ns);
};

struct driver {
	pthread_mutex_t mutex;
	struct sim_engine *engine;
	driver_ran_fn *ran; /* may be NULL */
	void *ran_arg;
	bool real;
	uint64_t base_ns; /* CLOCK_MONOTONIC at the engine's time 0 */
	uint64_t
		wall_base_ns; /* CLOCK_REALTIME then; 0 on the virtual clock, so that runs repeat */

	struct ticks ticks; /* real: reads CLOCK_MONOTONIC */

	/* Virtual: time moves while all registered threads wait. */
	pthread_t *threads;
	uint32_t thread_count, thread_capacity;
	uint32_t waiting;
	uint64_t epoch; /* counts wake-ups: a waiter looks again when it changes */
	uint64_t told;	/* counts the calls of vb_sim_tell() */
	struct driver_runner *runners;
	struct driver_patience patience;

	pthread_cond_t changed;
	uint32_t asleep; /* counts the threads that wait in a verb, with the mutex released */
	bool ended;	 /* set for ever by driver_end_waits(): every wait fails with ENODEV */

	/* Real: the progress thread, which runs while a device is open and sleeps on the bell. */
	pthread_t progress;
	struct bell *bell;
	struct bell own_bell; /* where no wire gives one */
	_Atomic bool at_bell; /* the progress thread uses the bell without the mutex */
	uint64_t asleep_until_ns;
	uint64_t awake_until_ns; /* the thread watches the bell until then; 0: not at all */
	struct watches watches;
	uint32_t users; /* open devices */
	bool running, stop, stopping;
	bool started; /* set once the thread has held the mutex */

	/* Real, with wires: */
	struct driver_wires wires; /* the functions are NULL without wires */
	bool listening;		   /* arrivals ring the bell */
	uint32_t skipped;	   /* polls since the clock was read */
	uint32_t armed;		   /* counts the armed CQs whose events a channel takes */
	uint32_t looks_to_listen;  /* the progress thread listens for so many looks at least */
	uint64_t looked_ns; /* the engine's time after the last look of the progress thread */
	uint64_t polled_ns; /* the engine's time after the last look of the program */
	/* While the driver listens: the engine's time at the last poll that read the clock, and at the first such poll
	 * since the progress thread has looked. */
	uint64_t heard_ns, heard_since_ns;
	bool put_off;	      /* an ACK waits: see driver_poll() */
	uint32_t prompt_acks; /* counts down: so many ACKs are sent at once */
};

typedef bool driver_ready(const void *arg);

/* Virtual: the waits are watched from now on. */
void driver_watch(struct driver *driver, const struct driver_patience *patience);

/* The engine may be set later. The driver need not be locked. */
void driver_init(struct driver *driver, bool real);
void driver_end(struct driver *driver);

/*
 * Real: connects the clock to wires, while no device is open. The progress thread sleeps on the bell;
 * NULL: on the driver's own. wires NULL: there are none from now on.
 */
void driver_set_wires(struct driver *driver, const struct driver_wires *wires, struct bell *bell);

/* Real: the bell on which the progress thread sleeps. */
struct bell *driver_bell(struct driver *driver);

/* Real: sets the times of CLOCK_MONOTONIC and CLOCK_REALTIME at the world's time 0, where other processes
 * have the same time. The clock does not move back. */
void driver_set_base(struct driver *driver, uint64_t base_ns, uint64_t wall_base_ns);

/* Real: a thread is about to wait, or the program for something outside of the verbs, such as a
 * completion channel's descriptor: the progress thread handles what comes from now on at once. What has
 * come before is handled when this returns. Call it before looking for the last time. */
void driver_listen(struct driver *driver);

/* A CQ whose events a channel takes is armed, or is armed no more. */
void driver_armed(struct driver *driver);
void driver_disarmed(struct driver *driver);

/* Called in the child of a fork(), which has neither the progress thread nor any waiter. */
void driver_forked(struct driver *driver);

/* Real: brings the clock up to now, receives from the wires, runs the present instant and lets packets
 * leave. Virtual: does nothing. */
void driver_catch_up(struct driver *driver);

/* Real: as driver_catch_up(), for a poll. While nothing comes, not each of them reads the clock; what a
 * timer does is then seen by the progress thread or by one of the next polls. The ACK of what has come may
 * be put off until the program has answered. */
void driver_poll(struct driver *driver);

/* Real: the ACK that a poll has put off leaves, before the process is forked or ends. */
void driver_settle(struct driver *driver);

/* Real: the time, for the engine, which asks for it where it needs it (struct sim_host). */
uint64_t driver_now_ns(struct driver *driver);

/* Real: before work is posted. The engine asks for the time where the work needs it. */
void driver_begin_post(struct driver *driver);

/* Real: runs what was posted since driver_begin_post(), and lets it leave. Virtual: does nothing. */
void driver_run_posted(struct driver *driver);

/* Real: follows posted receives. In ERR they are flushed, now. Otherwise they have nothing to run, and need no
 * reading of the clock. */
void driver_run_received(struct driver *driver);

/*
 * Ends all waits, and waits until their threads hold the mutex no more. wake(arg) is called to end
 * waits outside the driver, which are between driver_asleep() and driver_awake().
 */
void driver_end_waits(struct driver *driver, void (*wake)(void *arg), void *arg);

/* The calling thread waits outside the driver, or has waited. */
void driver_asleep(struct driver *driver);
void driver_awake(struct driver *driver);

/* Follows a poll or query that found nothing: runs the present instant and, if arg is not ready
 * then, moves time to the next event. */
void driver_step(struct driver *driver, driver_ready *ready, const void *arg);

/*
 * Waits until arg is ready. Returns EDEADLK if nothing is left that could happen (virtual clock), or
 * ENODEV after driver_end_waits().
 */
int driver_wait(struct driver *driver, driver_ready *ready, const void *arg);

/* Virtual clock: as driver_wait(), and returns ETIMEDOUT at until_ns; SIM_NEVER is no limit. */
int driver_wait_until(struct driver *driver, driver_ready *ready, const void *arg,
		      uint64_t until_ns);

/* As driver_wait(), for something that only another thread does: EDEADLK if there is no other. */
int driver_wait_for_others(struct driver *driver, driver_ready *ready, const void *arg);

/* Wakes all waiting threads: something that they may wait for has changed. */
void driver_changed(struct driver *driver);

/* Moves virtual time by a duration. EINVAL on the real clock; ENODEV as driver_wait(). */
int driver_run(struct driver *driver, uint64_t duration_ns);

/* Registers the calling thread, or takes it out. 0 or ENOMEM. */
int driver_enter(struct driver *driver);
void driver_leave(struct driver *driver);

/* Counts a device that is opened; on the real clock, starts the progress thread with the first one.
 * 0 or errno. */
int driver_start(struct driver *driver);

/* Counts a device that is closed; on the real clock, joins the progress thread with the last one.
 * The caller does not hold the mutex. */
void driver_stop(struct driver *driver);

#endif
