/* SPDX-License-Identifier: MIT */
/* <verbena/explore.h>: schedules as text, and what vb_explore() finds. */
#include "unity.h"

#include "test/explore/node.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <verbena/error.h>
#include <verbena/explore.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define ONLY(kind) (1u << (kind))

static char folder[] = "/tmp/verbena-explore-XXXXXX";

void setUp(void)
{
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(folder));
}

void tearDown(void)
{
	static const char *const endings[] = {"jsonl", "pcap", "out"};
	char path[64];

	for (unsigned int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/test.%s", folder, endings[i]);
		unlink(path);
	}
	TEST_ASSERT_EQUAL_INT(0, rmdir(folder));
	unsetenv("VERBENA_SCHEDULE");
	vb_sim_reset();
}

/* --- schedules --- */

static const char *round_trip(const char *text)
{
	static char printed[VB_SCHEDULE_TEXT];
	struct vb_schedule schedule;

	TEST_ASSERT_EQUAL_INT_MESSAGE(0, vb_schedule_parse(text, &schedule), vb_last_error());
	return vb_schedule_print(&schedule, printed);
}

static void assert_no_schedule(const char *text, const char *why)
{
	struct vb_schedule schedule;

	TEST_ASSERT_EQUAL_INT(EINVAL, vb_schedule_parse(text, &schedule));
	TEST_ASSERT_MESSAGE(strstr(vb_last_error(), why) != NULL, vb_last_error());
}

void test_a_schedule_is_text(void)
{
	TEST_ASSERT_EQUAL_STRING("none", round_trip("none"));
	TEST_ASSERT_EQUAL_STRING("none", round_trip(""));
	TEST_ASSERT_EQUAL_STRING("drop:3", round_trip("drop:3"));
	TEST_ASSERT_EQUAL_STRING("delay:2,drop:7,call:1,alloc:1",
				 round_trip("call:1,drop:7,alloc:1,delay:2"));
	for (unsigned int kind = 0; vb_decision_name(kind); kind++)
		TEST_ASSERT_TRUE(kind < VB_DECISION_KINDS);
}

void test_wrong_schedules_are_refused(void)
{
	assert_no_schedule("lose:3", "'lose:3' is no decision of a schedule");
	assert_no_schedule("drop", "'drop' is no decision");
	assert_no_schedule("drop:0", "'drop:0' is no decision");
	assert_no_schedule("drop:1,,", "'' is no decision");
	assert_no_schedule("drop:3,delay:3", "decides twice");
	assert_no_schedule("drop:1,drop:2,drop:3,drop:4,drop:5,drop:6,drop:7,drop:8,drop:9,drop:10,"
			   "drop:11,drop:12,drop:13,drop:14,drop:15,drop:16,drop:17",
			   "more than 16 decisions");
}

/* --- tests that are explored --- */

static int retries = 6;

/* Sends a message, with so many retries. */
static int send_one(void *arg)
{
	struct pair pair;
	int end = VB_ENDED_REPORTED;

	if (!pair_open_with(&pair, false, (unsigned int)retries))
		return end;
	if (node_receive(&pair.b, 101, 0, 64) &&
	    node_post(&pair.a, &pair.b, (struct ibv_send_wr){.wr_id = 1, .opcode = IBV_WR_SEND}, 0,
		      64))
		end = node_take(&pair.a, 1, 0, NULL);
	pair_close(&pair);
	return end;
}

static struct vb_explore_result explore(vb_explore_test_fn *test, struct vb_explore how, int status)
{
	struct vb_explore_result result;

	how.test = test;
	how.folder = folder;
	how.jobs = 2;
	how.quiet = true;
	TEST_ASSERT_EQUAL_INT_MESSAGE(status, vb_explore(&how, &result), result.words);
	return result;
}

static void assert_found(const struct vb_explore_result *result, const char *schedule,
			 enum vb_explore_end end, const char *words)
{
	char text[VB_SCHEDULE_TEXT];

	TEST_ASSERT_EQUAL_STRING(schedule, vb_schedule_print(&result->schedule, text));
	TEST_ASSERT_EQUAL_INT(end, result->end);
	TEST_ASSERT_MESSAGE(strstr(result->words, words) != NULL, result->words);
	TEST_ASSERT_MESSAGE(strstr(result->command, schedule) != NULL, result->command);
}

void test_each_packet_is_lost_once(void)
{
	const struct vb_explore_result result =
		explore(send_one, (struct vb_explore){.kinds = ONLY(VB_DECIDE_DROP)}, 0);

	TEST_ASSERT_EQUAL_UINT64(2, result.packets);
	TEST_ASSERT_TRUE(result.all_singles);
	/* Twice without a decision, and once for each packet. */
	TEST_ASSERT_EQUAL_UINT64(4, result.runs);
	TEST_ASSERT_EQUAL_UINT64(0, result.failed);
}

/* Without a retry, the loss of the message is the smallest failure. */
void test_the_smallest_failure_is_named(void)
{
	struct vb_explore_result result;

	retries = 0;
	result = explore(send_one, (struct vb_explore){.walks = 10}, 1);
	assert_found(&result, "drop:1", VB_ENDED_WRONG, "transport retry counter exceeded");
	retries = 6;
}

/* One retry repairs each single loss; two losses in a row are found as a pair. */
void test_a_pair_is_found(void)
{
	struct vb_explore_result result;

	retries = 1;
	result = explore(send_one,
			 (struct vb_explore){.kinds = ONLY(VB_DECIDE_DROP), .pairs_max = 100}, 1);
	TEST_ASSERT_TRUE(result.all_singles);
	assert_found(&result, "drop:1,drop:2", VB_ENDED_WRONG, "transport retry counter exceeded");
	retries = 6;
}

/* Random schedules have three decisions or more, of which two are enough. */
void test_a_random_schedule_shrinks(void)
{
	struct vb_explore_result result;

	retries = 1;
	result = explore(send_one, (struct vb_explore){.kinds = ONLY(VB_DECIDE_DROP), .walks = 100},
			 1);
	TEST_ASSERT_EQUAL_UINT(2, result.schedule.count);
	retries = 6;
}

void test_the_files_are_written(void)
{
	char path[64];

	retries = 0;
	explore(send_one, (struct vb_explore){.name = "test"}, 1);
	retries = 6;
	snprintf(path, sizeof(path), "%s/test.jsonl", folder);
	TEST_ASSERT_EQUAL_INT(0, access(path, R_OK));
	snprintf(path, sizeof(path), "%s/test.pcap", folder);
	TEST_ASSERT_EQUAL_INT(0, access(path, R_OK));
}

/* Sends a message every millisecond, for ever. */
static int send_for_ever(void *arg)
{
	struct pair pair;

	if (!pair_open(&pair, false))
		return VB_ENDED_REPORTED;
	while (node_receive(&pair.b, 101, 0, 64) &&
	       node_post(&pair.a, &pair.b, (struct ibv_send_wr){.wr_id = 1, .opcode = IBV_WR_SEND},
			 0, 64) &&
	       node_take(&pair.a, 1, 0, NULL) == VB_ENDED_WELL &&
	       node_take(&pair.b, 0, 1, NULL) == VB_ENDED_WELL)
		vb_sim_run(NULL, 1000000);
	return VB_ENDED_WRONG;
}

static unsigned int count_lines(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned int lines = 0;
	int c;

	TEST_ASSERT_NOT_NULL(file);
	while ((c = getc(file)) != EOF)
		lines += c == '\n';
	fclose(file);
	return lines;
}

static unsigned int count_packets(const char *path)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	pcap_t *pcap = pcap_open_offline(path, why);
	struct pcap_pkthdr *header;
	unsigned int packets = 0;
	const u_char *bytes;

	TEST_ASSERT_NOT_NULL_MESSAGE(pcap, why);
	while (pcap_next_ex(pcap, &header, &bytes) == 1)
		packets++;
	pcap_close(pcap);
	return packets;
}

/* tearDown() removes the folder, which has no other files. A process that hangs is ended by _exit(), one that is late
 * is killed. */
static void assert_end_is_kept(struct vb_explore how, enum vb_explore_end end)
{
	char path[64];

	setenv("VERBENA_LOG_LIMIT", "500", 1);
	setenv("VERBENA_TRACE_LIMIT", "300", 1);
	TEST_ASSERT_EQUAL_INT(end, explore(send_for_ever, how, -1).end);
	unsetenv("VERBENA_LOG_LIMIT");
	unsetenv("VERBENA_TRACE_LIMIT");
	snprintf(path, sizeof(path), "%s/test.jsonl", folder);
	/* The head, and the line that counts what is left out. */
	TEST_ASSERT_EQUAL_UINT(2 + 500, count_lines(path));
	snprintf(path, sizeof(path), "%s/test.pcap", folder);
	TEST_ASSERT_EQUAL_UINT(300, count_packets(path));
}

void test_a_livelock_keeps_the_end_of_its_files(void)
{
	assert_end_is_kept((struct vb_explore){.name = "test", .virtual_s_max = 2},
			   VB_ENDED_HANGING);
	assert_end_is_kept((struct vb_explore){.name = "test", .timeout_s = 1}, VB_ENDED_STOPPED);
}

/* --- what is found out without the test's help --- */

/* Opens a world, and returns a CQ to which nothing comes. */
static struct ibv_cq *empty_cq(struct ibv_comp_channel **channel)
{
	struct ibv_device **list = vb_get_device_list("sim", NULL);
	struct ibv_context *context = vb_open_device(list[0]);

	vb_free_device_list(list);
	*channel = vb_create_comp_channel(context);
	return vb_create_cq(context, 4, NULL, *channel, 0);
}

static int poll_for_ever(void *arg)
{
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq = empty_cq(&channel);
	struct ibv_wc wc;

	while (!vb_poll_cq(cq, 1, &wc))
		;
	return VB_ENDED_WELL;
}

static int block_for_ever(void *arg)
{
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq = empty_cq(&channel);
	void *context;

	vb_req_notify_cq(cq, 0);
	vb_get_cq_event(channel, &cq, &context);
	return VB_ENDED_WELL;
}

static int let_time_pass(void *arg)
{
	while (!vb_sim_run(NULL, 1000000000))
		;
	return VB_ENDED_WELL;
}

static int crash(void *arg)
{
	/* The framework of these tests has handlers for other signals. */
	raise(SIGKILL);
	return VB_ENDED_WELL;
}

static int leave_process(void *arg)
{
	_exit(3);
}

static int leak(void *arg)
{
	struct ibv_comp_channel *channel;

	empty_cq(&channel);
	return VB_ENDED_WELL;
}

/* Without a decision a test ends well; so it fails at once. */
static void assert_fails_alone(vb_explore_test_fn *test, enum vb_explore_end end, const char *words)
{
	const struct vb_explore_result result = explore(test, (struct vb_explore){0}, -1);

	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	assert_found(&result, "none", end, words);
}

void test_hangs_are_found_by_the_virtual_clock(void)
{
	assert_fails_alone(poll_for_ever, VB_ENDED_HANGING, "the program polls for ever");
	assert_fails_alone(block_for_ever, VB_ENDED_HANGING, "a blocking call waits for ever");
	assert_fails_alone(let_time_pass, VB_ENDED_HANGING, "the run does not end");
}

void test_crashes_are_found(void)
{
	assert_fails_alone(crash, VB_ENDED_KILLED, "killed by signal 9");
	assert_fails_alone(leave_process, VB_ENDED_EXITED, "ended its process");
}

void test_leaks_are_found(void)
{
	assert_fails_alone(leak, VB_ENDED_LEAKED, "sim0: ");
	explore(leak, (struct vb_explore){.leaks_allowed = true}, 0);
}

static int sleep_for_long(void *arg)
{
	pause();
	return VB_ENDED_WELL;
}

/* A program that sleeps outside of Verbena is the only one that needs a time-out. */
void test_a_sleep_is_ended_by_the_timeout(void)
{
	const struct vb_explore_result result =
		explore(sleep_for_long, (struct vb_explore){.timeout_s = 1}, -1);

	assert_found(&result, "none", VB_ENDED_STOPPED, "time-out");
}

/* --- calls and reports --- */

static int report(void *arg)
{
	const int end = send_one(NULL);

	return end == VB_ENDED_WRONG ? VB_ENDED_REPORTED : end;
}

/* A reported failure is right after a failed call, and after a lost packet only if the caller says so. */
void test_reports_are_right_where_they_are_allowed(void)
{
	struct vb_explore_result result;

	result = explore(report, (struct vb_explore){.kinds = ONLY(VB_DECIDE_CALL)}, 0);
	TEST_ASSERT_TRUE(result.calls > 10);
	retries = 0;
	explore(report, (struct vb_explore){.reports_allowed = true}, 0);
	result = explore(report, (struct vb_explore){0}, 1);
	assert_found(&result, "drop:1", VB_ENDED_REPORTED, "transport retry counter exceeded");
	retries = 6;
}

/* --- wrong use --- */

/* The second run of a process has twice the packets. */
static int unrepeatable(void *arg)
{
	static bool again;
	const int end = again ? send_one(NULL) : VB_ENDED_WELL;

	again = true;
	return end ? end : send_one(NULL);
}

void test_a_test_that_differs_is_refused(void)
{
	struct vb_explore how = {.test = unrepeatable, .jobs = 1, .quiet = true};

	TEST_ASSERT_EQUAL_INT(-1, vb_explore(&how, NULL));
	TEST_ASSERT_EQUAL_INT(ENOTSUP, errno);
}

void test_wrong_use_is_refused(void)
{
	struct vb_explore how = {.quiet = true};

	TEST_ASSERT_EQUAL_INT(-1, vb_explore(&how, NULL));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	how.test = send_one;
	how.name = "a/b";
	TEST_ASSERT_EQUAL_INT(-1, vb_explore(&how, NULL));
	TEST_ASSERT_MESSAGE(strstr(vb_last_error(), "no name of a test") != NULL, vb_last_error());
	how.name = NULL;
	how.kinds = 1u << VB_DECISION_KINDS;
	TEST_ASSERT_EQUAL_INT(-1, vb_explore(&how, NULL));
	how.kinds = 0;
	how.schedule = "lose:1";
	how.folder = folder;
	TEST_ASSERT_EQUAL_INT(-1, vb_explore(&how, NULL));
	TEST_ASSERT_MESSAGE(strstr(vb_last_error(), "lose:1") != NULL, vb_last_error());
}

/* --- one schedule --- */

void test_a_given_schedule_runs_once(void)
{
	struct vb_explore_result result;

	retries = 0;
	result = explore(send_one, (struct vb_explore){.schedule = "drop:1"}, 1);
	TEST_ASSERT_EQUAL_UINT64(1, result.runs);
	assert_found(&result, "drop:1", VB_ENDED_WRONG, "transport retry counter exceeded");
	retries = 6;
	explore(send_one, (struct vb_explore){.schedule = "drop:1"}, 0);
}

void test_the_environment_gives_a_schedule(void)
{
	struct vb_explore_result result;

	retries = 0;
	setenv("VERBENA_SCHEDULE", "test/drop:1", 1);
	result = explore(send_one, (struct vb_explore){.name = "test"}, 1);
	TEST_ASSERT_EQUAL_UINT64(1, result.runs);
	/* It is of another test. */
	setenv("VERBENA_SCHEDULE", "other/drop:1", 1);
	result = explore(send_one, (struct vb_explore){.name = "test"}, 0);
	TEST_ASSERT_EQUAL_UINT64(0, result.runs);
	retries = 6;
}
