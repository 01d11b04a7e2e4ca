/* SPDX-License-Identifier: MIT */
#include "runner.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

#define OUTPUT_MAX 65536

struct job {
	const struct vt_options *options;
	const struct vt_place *place;
	const struct vt_suite *suite;
	const struct vt_test *test;
	struct vt_result *result;
	char *trace; /* the path; "" for none */
};

static const struct {
	unsigned int need;
	const char *reason;
} needs[] = {
	{VT_NEEDS_SIM, "only the simulator can be told to do this"},
	{VT_NEEDS_FAULTS, "the backend makes no faults"},
	{VT_NEEDS_VIRTUAL_CLOCK, "the clock is not virtual"},
	{VT_NEEDS_TWO_DEVICES, "A and B are one device"},
	{VT_NEEDS_ATOMICS, "the device has no atomics (atomic_cap)"},
	{VT_NEEDS_SRQ, "the device has no SRQ (max_srq)"},
	{VT_NEEDS_ETHERNET, "the ports' link layer is not Ethernet"},
	{VT_NEEDS_INFINIBAND, "the ports' link layer is not InfiniBand"},
	{VT_NEEDS_MTU_1024, "the ports' active MTU is below 1024"},
};

/* 0 for a GID that is no use, else the more the better. */
static int gid_worth(const struct ibv_gid_entry *entry)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff}, none[16];

	if (!memcmp(entry->gid.raw, none, 16))
		return 0;
	if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
		return 1;
	if (!memcmp(entry->gid.raw, mapped, sizeof(mapped)))
		return 4;
	return entry->gid.raw[0] == 0xfe && (entry->gid.raw[1] & 0xc0) == 0x80 ? 2 : 3;
}

static void choose_gid(struct vt_node *node)
{
	struct ibv_gid_entry entry;
	int best = 0, worth;

	for (int i = 0; i < node->port_attr.gid_tbl_len; i++) {
		if (vb_query_gid_ex(node->ctx, node->port, i, &entry, 0, sizeof(entry)))
			continue;
		worth = gid_worth(&entry);
		if (worth > best) {
			best = worth;
			node->gid_index = i;
			node->gid = entry.gid;
		}
	}
}

static void open_node(struct vt *t, struct vt_node *node, const char *name, uint8_t port)
{
	struct ibv_device **list = VT_PTR(t, vb_get_device_list(t->backend, NULL));
	struct ibv_device *device = vt_device_named(list, name);

	node->ctx = device ? vb_open_device(device) : NULL;
	vb_free_device_list(list);
	if (!node->ctx)
		VT_FAIL(t, "device %s cannot be opened: %s", name, vb_last_error());
	node->port = port;
	VT_OK(t, vb_query_device(node->ctx, &node->device_attr));
	VT_OK(t, vb_query_port(node->ctx, port, &node->port_attr, sizeof(node->port_attr)));
	choose_gid(node);
}

static unsigned int found(const struct vt *t, const struct job *job)
{
	const struct vt_node *a = &t->a, *b = &t->b;
	bool sim = vt_simulated(job->options);
	unsigned int have = 0;

	if (sim)
		have |= VT_NEEDS_SIM | VT_NEEDS_FAULTS;
	if (sim && job->options->sim->clock == VB_SIM_CLOCK_VIRTUAL)
		have |= VT_NEEDS_VIRTUAL_CLOCK;
	if (strcmp(job->place->device, job->place->peer_device) != 0)
		have |= VT_NEEDS_TWO_DEVICES;
	if (a->device_attr.atomic_cap != IBV_ATOMIC_NONE &&
	    b->device_attr.atomic_cap != IBV_ATOMIC_NONE)
		have |= VT_NEEDS_ATOMICS;
	if (a->device_attr.max_srq && b->device_attr.max_srq)
		have |= VT_NEEDS_SRQ;
	if (a->port_attr.active_mtu >= IBV_MTU_1024 && b->port_attr.active_mtu >= IBV_MTU_1024)
		have |= VT_NEEDS_MTU_1024;
	if (a->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET &&
	    b->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET)
		have |= VT_NEEDS_ETHERNET;
	if (a->port_attr.link_layer == IBV_LINK_LAYER_INFINIBAND &&
	    b->port_attr.link_layer == IBV_LINK_LAYER_INFINIBAND)
		have |= VT_NEEDS_INFINIBAND;
	return have;
}

static void require(struct vt *t, unsigned int wanted)
{
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		if (wanted & needs[i].need & ~t->have)
			VT_SKIP(t, "%s", needs[i].reason);
}

static void run_deferred(struct vt *t)
{
	struct vt_run *run = t->run;

	run->result->ending = true;
	while (run->deferred) {
		struct vt_deferred *deferred = run->deferred;
		struct vt_deferred copy = *deferred;

		run->deferred = copy.next;
		free(deferred);
		if (!setjmp(run->end))
			copy.fn(copy.arg);
	}
}

static void count_objects(struct vt *t, const char *when)
{
	struct vb_sim_objects left;

	vb_sim_count_objects(NULL, &left);
	if (left.pds || left.cqs || left.qps || left.srqs || left.mrs || left.ahs ||
	    left.channels) {
		t->run->result->failures++;
		vt_result_line(t->run->result,
			       "%s there are still %u PDs, %u CQs, %u QPs, %u SRQs, %u MRs, "
			       "%u AHs, %u channels",
			       when, left.pds, left.cqs, left.qps, left.srqs, left.mrs, left.ahs,
			       left.channels);
	}
}

static void close_nodes(struct vt *t, const struct job *job)
{
	bool sim = vt_simulated(job->options);

	if (sim)
		count_objects(t, "at the test's end");
	if (t->b.ctx)
		VT_EXPECT_OK(t, vb_close_device(t->b.ctx));
	if (t->a.ctx)
		VT_EXPECT_OK(t, vb_close_device(t->a.ctx));
	if (sim)
		count_objects(t, "after its devices were closed");
}

static void trace_failed(struct vt_result *result, const char *path, int error)
{
	snprintf(result->trace_error, sizeof(result->trace_error), "%.400s: %s", path,
		 strerror(error));
}

/* Whether it is written. */
static bool open_trace(const struct job *job)
{
	int rc = job->trace[0] ? vb_sim_trace_open(NULL, job->trace) : ENOENT;

	if (rc && job->trace[0])
		trace_failed(job->result, job->trace, rc);
	return !rc;
}

static void close_trace(const struct job *job, bool ethernet)
{
	int rc = vb_sim_trace_close(NULL);

	if (rc)
		trace_failed(job->result, job->trace, rc);
	else if (ethernet)
		vt_check_trace(job->trace, job->test->may, job->result);
}

/* FNV-1a, so that a test's random numbers do not depend on which tests are chosen. */
static uint64_t hash(uint64_t seed, const char *name)
{
	for (; *name; name++)
		seed = (seed ^ (unsigned char)*name) * 0x100000001b3;
	return seed;
}

static void run_in_world(struct vt *t, const struct job *job)
{
	if (setjmp(t->run->end))
		return;
	open_node(t, &t->a, job->place->device, job->place->port);
	open_node(t, &t->b, job->place->peer_device, job->place->peer_port);
	t->have = found(t, job);
	require(t, job->test->needs);
	job->test->run(t);
}

static void run_job(void *arg)
{
	const struct job *job = arg;
	struct vt_run run = {
		.result = job->result,
		.random = hash(hash(job->options->seed ^ 0xcbf29ce484222325, job->suite->name),
			       job->test->name),
	};
	struct vt t = {.backend = job->options->backend, .seed = job->options->seed, .run = &run};
	char error[VT_LINE_MAX];
	bool watched = !(job->test->may & VT_MAY_LOOP);
	bool traced;

	if (vt_make_world(job->options, error)) {
		traced = open_trace(job);
		if (watched)
			vt_watch_completions(t.backend, run.result);
		run_in_world(&t, job);
		if (watched)
			vt_settle_completions(run.result);
		run_deferred(&t);
		close_nodes(&t, job);
		if (watched)
			vt_end_completions();
		if (traced)
			close_trace(job, t.a.port_attr.link_layer == IBV_LINK_LAYER_ETHERNET);
	} else {
		run.result->failures++;
		vt_result_line(run.result, "%s", error);
	}
	if (run.result->failures > VT_FAILURES_SHOWN_MAX)
		vt_result_line(run.result, "and %u failures more",
			       run.result->failures - VT_FAILURES_SHOWN_MAX);
	if (run.result->failures)
		run.result->outcome = VT_FAILED;
	else if (run.result->outcome == VT_RUNNING)
		run.result->outcome = VT_PASSED;
}

/* From here on outside the process of the test. */

/* What the process says that the test could not. */
static void judge(struct vt_result *result, const struct vt_ending *ending, unsigned int timeout_s)
{
	int status = ending->status;
	bool crashed = WIFSIGNALED(status);

	if (!ending->timed_out && !status && result->outcome != VT_RUNNING)
		return;
	result->failures++;
	if (ending->timed_out)
		vt_result_line(result, "ended by the time limit of %u s%s", timeout_s,
			       result->ending ? ", cleaning up" : "");
	else if (crashed)
		vt_result_line(result, "crashed: SIG%s (%s)%s", sigabbrev_np(WTERMSIG(status)),
			       strsignal(WTERMSIG(status)),
			       result->outcome != VT_RUNNING ? ", after its end" : "");
	else
		vt_result_line(result, "its process ended with exit status %d%s",
			       WEXITSTATUS(status),
			       result->outcome == VT_RUNNING ? " before the test did" : "");
	if (result->row[0] && !result->ending)
		vt_result_line(result, "    row:    %s", result->row);
	result->outcome = VT_FAILED;
}

static char *read_output(int fd)
{
	char *text = calloc(1, OUTPUT_MAX + 1);
	size_t used = 0;
	ssize_t got;

	while (text && used < OUTPUT_MAX &&
	       (got = pread(fd, text + used, OUTPUT_MAX - used, used)) > 0)
		used += got;
	return text;
}

static void run_forked(const struct job *job, int output)
{
	struct vt_ending ending;

	if (vt_in_child(run_job, (void *)job, output, job->options->timeout_s, &ending)) {
		judge(job->result, &ending, job->options->timeout_s);
		return;
	}
	job->result->outcome = VT_FAILED;
	vt_result_line(job->result, "no process for the test: %s", strerror(errno));
}

/* Where the test's packets go. Without --trace they go into a file that a passing test deletes. */
static void choose_trace(const struct job *job, size_t size_bytes)
{
	const struct vt_options *options = job->options;

	if (!vt_simulated(options))
		return;
	if (options->trace_dir)
		snprintf(job->trace, size_bytes, "%s/%s.%s.pcap", options->trace_dir,
			 job->suite->name, job->test->name);
	else if (!vt_temporary_trace(job->trace, size_bytes))
		trace_failed(job->result, "a file in $TMPDIR", errno);
}

static void drop_trace(const struct job *job)
{
	if (!job->trace[0] || job->options->trace_dir)
		return;
	if (job->result->outcome == VT_FAILED)
		vt_result_line(job->result, "its packets: %s", job->trace);
	else
		unlink(job->trace);
}

bool vt_run_one(const struct vt_options *options, const struct vt_place *place,
		struct vt_record *record, struct vt_result *shared)
{
	char trace[4096] = "";
	struct job job = {options, place, record->suite, record->test, shared, trace};
	double start_s = vt_now_s();
	int output = options->no_fork ? -1 : memfd_create("output", MFD_CLOEXEC);

	memset(shared, 0, sizeof(*shared));
	choose_trace(&job, sizeof(trace));
	if (options->no_fork)
		run_job(&job);
	else
		run_forked(&job, output);
	drop_trace(&job);
	record->outcome = shared->outcome;
	record->seconds = vt_now_s() - start_s;
	record->text = strdup(shared->outcome == VT_SKIPPED ? shared->reason : shared->text);
	record->output = output < 0 ? strdup("") : read_output(output);
	if (output >= 0)
		close(output);
	return record->text && record->output;
}
