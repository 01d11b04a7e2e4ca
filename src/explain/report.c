/* SPDX-License-Identifier: MIT */
#include "src/explain/report.h"

#include "src/base/count.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <verbena/sim.h>

#define LOCK_MS	 1000
#define PRINT_MS 5000

enum { EXITS = -1 }; /* in the place of a signal: exit(3) */

static const int signals[] = {SIGTERM, SIGINT, SIGHUP};

static struct sink sink;
static atomic_bool asking;  /* set while the report may wait for the world's lock, and then on */
static atomic_bool looking; /* set once the report has the world's lock, or needs no lock */

/* --- printing --- */

/* The counters of a device stand in one line. */
struct printer {
	bool begun;
	char counters[SINK_LINE_BYTES];
	const char *device; /* whose counters these are */
};

static void print_line(struct printer *printer, const char *line)
{
	char head[256];

	snprintf(head, sizeof(head), "%s (process %d)", program_invocation_short_name,
		 (int)getpid());
	if (!printer->begun)
		sink_write(&sink, "report", head);
	printer->begun = true;
	sink_write(&sink, "report", line);
}

static void print_counters(struct printer *printer)
{
	if (printer->counters[0])
		print_line(printer, printer->counters);
	printer->counters[0] = '\0';
}

static void print_finding(void *arg, const struct vb_sim_finding *finding)
{
	struct printer *printer = arg;
	const size_t used = strlen(printer->counters);
	char text[256], line[512];

	atomic_store(&looking, true);
	vb_sim_finding_text(finding, text, sizeof(text));
	if (finding->kind == VB_SIM_COUNTED && used && printer->device == finding->device) {
		snprintf(printer->counters + used, sizeof(printer->counters) - used, ", %s", text);
		return;
	}
	print_counters(printer);
	snprintf(line, sizeof(line), "%s: %s", finding->device, text);
	if (finding->kind == VB_SIM_COUNTED) {
		printer->device = finding->device;
		snprintf(printer->counters, sizeof(printer->counters), "%s", line);
	} else {
		print_line(printer, line);
	}
}

static int first_process;

/* Prints the report, once in a process. */
static void print_report(void)
{
	static atomic_int printed; /* the process that has printed it */
	const int process = (int)getpid();
	struct printer printer = {.begun = false};
	unsigned int left;

	if (!first_process || atomic_exchange(&printed, process) == process)
		return;
	atomic_store(&asking, true);
	left = vb_sim_report(NULL, print_finding, &printer);
	atomic_store(&looking, true);
	print_counters(&printer);
	/* The children of fork() that do not use devices have nothing to report. */
	if (!left && (printer.begun || process == first_process))
		print_line(&printer, "nothing is left");
}

/* --- signals --- */

static sem_t wakes;
static sem_t has_printed;	 /* for exit(3) */
static atomic_int caught_signal; /* 0: none */
static atomic_int listener;	 /* the process whose thread waits */

/* Takes the default action of the signal. */
static void die(int signal_number)
{
	sigset_t set;

	signal(signal_number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, signal_number);
	raise(signal_number);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Waits in a signal handler until the flag is set; false after the time. */
static bool wait_for(const atomic_bool *flag, int time_ms)
{
	while (!atomic_load(flag) && time_ms--)
		poll(NULL, 0, 1);
	return atomic_load(flag);
}

/*
 * A handler must neither take locks nor print: a thread does. The program waits here meanwhile, as it
 * would do nothing more after the signal's default action. But if this thread was inside a verb, the
 * report waits for the world's lock, and the verb has to end first. A second signal ends the program
 * at once.
 */
static void caught(int signal_number)
{
	static atomic_bool never;
	int none = 0;
	const int err = errno;

	if (atomic_load(&listener) != (int)getpid() ||
	    !atomic_compare_exchange_strong(&caught_signal, &none, signal_number))
		die(signal_number);
	sem_post(&wakes);
	if (wait_for(&asking, PRINT_MS) && wait_for(&looking, LOCK_MS))
		wait_for(&never, PRINT_MS);
	errno = err;
}

static void *listen(void *unused)
{
	while (sem_wait(&wakes))
		;
	print_report();
	if (atomic_load(&caught_signal) != EXITS)
		die(atomic_load(&caught_signal));
	sem_post(&has_printed);
	return unused;
}

/* The thread takes no signals: they are for the program's threads. */
static bool start_listener(void)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int err;

	sem_init(&wakes, 0, 0);
	sem_init(&has_printed, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attributes, listen, NULL);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		atomic_store(&listener, (int)getpid());
	return !err;
}

/* A child of fork() has no listener. */
void report_at_exit(void)
{
	int none = 0;

	if (atomic_load(&listener) != (int)getpid() ||
	    !atomic_compare_exchange_strong(&caught_signal, &none, EXITS)) {
		print_report();
		return;
	}
	sem_post(&wakes);
	if (!wait_for(&looking, PRINT_MS)) {
		sink_write(&sink, "report",
			   "there is none: a thread is inside a verb and does not end it, such as "
			   "one whose signal "
			   "handler calls exit(3). Call exit(3) outside verbs.");
		return;
	}
	while (sem_wait(&has_printed))
		;
}

void report_start(const struct sink *to)
{
	sink = *to;
	first_process = (int)getpid();
	if (!start_listener())
		return;
	for (size_t i = 0; i < COUNT(signals); i++) {
		struct sigaction action = {.sa_handler = caught, .sa_flags = SA_RESTART}, old;

		if (!sigaction(signals[i], NULL, &old) && old.sa_handler == SIG_DFL &&
		    !(old.sa_flags & SA_SIGINFO))
			sigaction(signals[i], &action, NULL);
	}
}
