/* SPDX-License-Identifier: MIT */
/*
 * Watching a whole program: the packets of a run are those of its trace, one for one, and watching
 * changes nothing.
 */
#include "test/support/same_packet.h"
#include "test/unit/event_log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbena/fault.h>

#define WCS_MAX	   512
#define FRAMES_MAX 4096
#define GROUP	   0xc001u

/* Which frames and completions a run has. */
struct outcome {
	struct ibv_wc wcs[2][WCS_MAX];
	unsigned int wc_count[2];
	uint8_t memory[2][sizeof(a.buffer)];
	uint64_t now_ns;
};

/* A frame of the trace, decoded. */
struct framed {
	struct vb_packet packet;
	uint64_t now_ns;
};

static struct {
	struct framed framed[FRAMES_MAX];
	unsigned int count;
} trace;

static bool infiniband, lossy;
static char path[64];

void setUp(void)
{
	int fd;

	snprintf(path, sizeof(path), "/tmp/verbena-test-events-XXXXXX");
	fd = mkstemp(path);
	TEST_ASSERT_TRUE(fd >= 0);
	close(fd);
}

void tearDown(void)
{
	unwatch_events();
	close_pair();
	unlink(path);
}

static void on_frame(void *arg, uint64_t now_ns, const uint8_t *frame, size_t frame_bytes,
		     bool lost)
{
	struct framed *framed = &trace.framed[trace.count];

	(void)arg;
	if (trace.count == FRAMES_MAX)
		abort();
	trace.count++;
	framed->now_ns = now_ns;
	/* A frame that a fault rule has changed may have a wrong ICRC: the headers are there. */
	vb_packet_decode(frame, frame_bytes, infiniband, &framed->packet);
	framed->packet.lost = lost;
}

/* --- the program --- */

static struct ibv_qp *make(struct end *end, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(end, type);
	struct ibv_qp *qp = B.create_qp_ex(end->context, &attr);

	TEST_ASSERT_NOT_NULL(qp);
	return qp;
}

static void post_receive(struct ibv_qp *qp, struct end *end, uint64_t wr_id)
{
	struct ibv_sge sge = sge_of(end, 2048, 2040);
	struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(qp, &wr, &bad));
}

static void keep_completions(struct outcome *outcome)
{
	struct end *const ends[2] = {&a, &b};

	for (unsigned int i = 0; i < 2; i++) {
		struct ibv_wc wc;

		memset(&wc, 0, sizeof(wc));
		while (ibv_poll_cq(ends[i]->cq, 1, &wc) > 0) {
			TEST_ASSERT_TRUE(outcome->wc_count[i] < WCS_MAX);
			outcome->wcs[i][outcome->wc_count[i]++] = wc;
			memset(&wc, 0, sizeof(wc));
		}
	}
}

/* Runs until nothing is left to do. */
static void settle(struct outcome *outcome)
{
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, UINT64_C(2000000000)));
	keep_completions(outcome);
}

/* Each operation of RC, in one message of several packets where it can have them. */
static void talk_on_rc(struct ibv_qp *from, struct ibv_qp *to, struct outcome *outcome)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,	  IBV_WR_SEND_WITH_IMM,	       IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM,  IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_SEND,	  IBV_WR_ATOMIC_FETCH_AND_ADD,
	};

	for (unsigned int i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		const bool atomic = opcodes[i] == IBV_WR_ATOMIC_CMP_AND_SWP ||
				    opcodes[i] == IBV_WR_ATOMIC_FETCH_AND_ADD;
		struct ibv_sge sge = sge_of(&a, 0, atomic ? 8 : 2000);
		struct ibv_send_wr wr = {
			.wr_id = i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcodes[i],
			.imm_data = htobe32(0x12345678),
		};

		if (atomic) {
			wr.wr.atomic.remote_addr = (uintptr_t)b.buffer;
			wr.wr.atomic.rkey = b.mr->rkey;
			wr.wr.atomic.compare_add = 5;
			wr.wr.atomic.swap = 6;
		} else {
			wr.wr.rdma.remote_addr = (uintptr_t)b.buffer;
			wr.wr.rdma.rkey = b.mr->rkey;
		}
		TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
		/* The receiver is not ready at first: RNR NAKs. */
		TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 1000000));
		if (!atomic && opcodes[i] != IBV_WR_RDMA_WRITE && opcodes[i] != IBV_WR_RDMA_READ)
			post_receive(to, &b, 100 + i);
		settle(outcome);
	}
}

static void talk_on_uc(struct outcome *outcome)
{
	struct ibv_qp *from = make(&a, IBV_QPT_UC), *to = make(&b, IBV_QPT_UC);
	struct ibv_sge sge = sge_of(&a, 0, 2000);

	connect_qp(from, &b, to->qp_num);
	connect_qp(to, &a, from->qp_num);
	for (unsigned int i = 0; i < 4; i++) {
		struct ibv_send_wr wr = {
			.wr_id = 200 + i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = i % 2 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND,
			.wr.rdma = {(uintptr_t)b.buffer, b.mr->rkey},
		};

		if (i < 3)
			post_receive(to, &b, 300 + i);
		TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
		settle(outcome);
	}
}

/* A datagram to a QP, one to nobody, and one to a group of both ends. */
static void talk_on_ud(struct outcome *outcome)
{
	struct ibv_qp *from = make(&a, IBV_QPT_UD), *to = make(&b, IBV_QPT_UD);
	/* ::ffff:239.0.0.1: the source GID is an IPv4 address, too. */
	const union ibv_gid ipv4 = {.raw = {[10] = 0xff, 0xff, 239, 0, 0, 1}};
	const union ibv_gid global = {.raw = {0xff, 0x0e, [15] = 1}};
	const union ibv_gid group = infiniband ? global : ipv4;
	const struct {
		union ibv_gid gid;
		uint16_t lid;
		uint32_t qpn;
	} rows[] = {{b.gid, b.lid, to->qp_num}, {b.gid, b.lid, 0xabcde}, {group, GROUP, 0xffffff}};
	struct ibv_sge sge = sge_of(&a, 0, 100);

	connect_qp(from, &b, 0);
	connect_qp(to, &a, 0);
	TEST_ASSERT_EQUAL_INT(0, B.attach_mcast(from, &group, infiniband ? GROUP : 0));
	TEST_ASSERT_EQUAL_INT(0, B.attach_mcast(to, &group, infiniband ? GROUP : 0));
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_ah_attr attr = {
			.is_global = 1,
			.dlid = infiniband ? rows[i].lid : 0,
			.port_num = 1,
			.grh = {.dgid = rows[i].gid, .sgid_index = 1, .hop_limit = 1},
		};
		struct ibv_send_wr wr = {
			.wr_id = 400 + i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND_WITH_IMM,
			.wr.ud = {.ah = B.create_ah(a.pd, &attr),
				  .remote_qpn = rows[i].qpn,
				  .remote_qkey = QKEY},
		};

		TEST_ASSERT_NOT_NULL(wr.wr.ud.ah);
		post_receive(from, &a, 500 + i);
		post_receive(to, &b, 600 + i);
		TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
		settle(outcome);
	}
}

static void talk_on_xrc(struct outcome *outcome)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = B.open_xrcd(b.context, &domain);
	struct ibv_srq_init_attr_ex init = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = b.pd,
		.xrcd = xrcd,
		.cq = b.cq,
	};
	struct ibv_srq *srq = B.create_srq_ex(b.context, &init);
	struct ibv_qp_init_attr_ex target = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
	struct ibv_qp *from = make(&a, IBV_QPT_XRC_SEND), *to = B.create_qp_ex(b.context, &target);
	struct ibv_sge sge = sge_of(&a, 0, 1500), into = sge_of(&b, 2048, 2000);
	struct ibv_send_wr wr = {
		.wr_id = 700, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_recv_wr *bad, receive = {.wr_id = 800, .sg_list = &into, .num_sge = 1};

	TEST_ASSERT_NOT_NULL(to);
	connect_qp(from, &b, to->qp_num);
	connect_qp(to, &a, from->qp_num);
	TEST_ASSERT_EQUAL_INT(0, B.get_srq_num(srq, &wr.qp_type.xrc.remote_srqn));
	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 1000000));
	TEST_ASSERT_EQUAL_INT(0, ibv_post_srq_recv(srq, &receive, &bad));
	settle(outcome);
}

static void open_world(void)
{
	for (unsigned int i = 0; i < sizeof(a.buffer); i++)
		a.buffer[i] = b.buffer[i] = 0;
	if (infiniband)
		open_infiniband_pair();
	else
		open_pair();
	for (unsigned int i = 0; i < sizeof(a.buffer); i++)
		a.buffer[i] = (uint8_t)i;
}

enum { WATCHED = 1, TRACED = 2, INTERRUPTED = 4 };

/* The run of everything; `how` says who looks. */
static void run(unsigned int how, struct outcome *outcome)
{
	const struct vb_fault_rule rules[] = {
		{.action = VB_FAULT_DROP, .probability = 0.05},
		{.action = VB_FAULT_DUPLICATE, .probability = 0.05},
		{.action = VB_FAULT_DELAY, .probability = 0.05, .delay_ns = 5000},
		{.action = VB_FAULT_CORRUPT, .probability = 0.05},
	};
	struct ibv_qp *from, *to;

	memset(outcome, 0, sizeof(*outcome));
	trace.count = events.count = 0;
	open_world();
	if (how & TRACED) {
		TEST_ASSERT_EQUAL_INT(0, vb_sim_trace_open(NULL, path));
		vb_sim_watch(NULL, on_frame, NULL);
	}
	if (how & WATCHED)
		watch_events();
	for (unsigned int i = 0; lossy && i < sizeof(rules) / sizeof(rules[0]); i++)
		TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &rules[i], NULL));
	connect_pair(&from, &to);
	for (unsigned int i = 0; i < 4; i++) {
		talk_on_rc(from, to, outcome);
		if (how & INTERRUPTED && i % 2 == 0)
			unwatch_events();
		else if (how & INTERRUPTED)
			B.watch(note_event, &events);
	}
	talk_on_uc(outcome);
	talk_on_ud(outcome);
	talk_on_xrc(outcome);
	outcome->now_ns = vb_sim_now_ns(NULL);
	memcpy(outcome->memory[0], a.buffer, sizeof(a.buffer));
	memcpy(outcome->memory[1], b.buffer, sizeof(b.buffer));
	if (how & TRACED)
		TEST_ASSERT_EQUAL_INT(0, vb_sim_trace_close(NULL));
	vb_sim_watch(NULL, NULL, NULL);
	unwatch_events();
	close_pair();
}

/* --- comparing --- */

static void check_same_packet(const struct framed *framed, const struct noted *noted,
			      const char *where)
{
	const char *field = packet_difference(&framed->packet, &noted->packet);

	TEST_ASSERT_NULL_MESSAGE(field, where);
	TEST_ASSERT_EQUAL_UINT64_MESSAGE(framed->now_ns, noted->event.time_ns, where);
	TEST_ASSERT_EQUAL_UINT64_MESSAGE(framed->packet.lost, noted->event.values[0], where);
	TEST_ASSERT_EQUAL_HEX_MESSAGE(noted->event.qpn, noted->packet.source_qpn, where);
	TEST_ASSERT_TRUE_MESSAGE(noted->event.qpn != 0, where);
}

/* The packets of the last traced run are those that were noted. */
static void check_packets(void)
{
	char where[64];

	TEST_ASSERT_TRUE(trace.count > 100);
	TEST_ASSERT_EQUAL_UINT(trace.count, count_events(VB_EVENT_PACKET));
	for (unsigned int i = 0, at = 0; i < events.count; i++) {
		if (events.noted[i].event.kind != VB_EVENT_PACKET)
			continue;
		snprintf(where, sizeof(where), "packet %u of %s%s", at,
			 infiniband ? "InfiniBand" : "Ethernet", lossy ? ", with losses" : "");
		check_same_packet(&trace.framed[at++], &events.noted[i], where);
	}
}

static size_t read_trace(uint8_t *bytes, size_t room_bytes)
{
	FILE *file = fopen(path, "rb");
	size_t length_bytes = fread(bytes, 1, room_bytes, file);

	fclose(file);
	TEST_ASSERT_TRUE(length_bytes < room_bytes);
	return length_bytes;
}

static void each_run(void (*check)(void))
{
	for (unsigned int i = 0; i < 4; i++) {
		infiniband = i & 1;
		lossy = i & 2;
		check();
	}
}

static struct outcome plain, other;

static void watching_changes_nothing(void)
{
	static const unsigned int hows[] = {WATCHED, TRACED, WATCHED | TRACED,
					    WATCHED | INTERRUPTED};
	static uint8_t traced[1 << 21], watched[1 << 21];
	size_t traced_bytes = 0, watched_bytes = 0;
	char where[64];

	run(0, &plain);
	TEST_ASSERT_TRUE(plain.wc_count[0] > 30 && plain.wc_count[1] > 20);
	for (unsigned int i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
		run(hows[i], &other);
		snprintf(where, sizeof(where), "%s%s, watched as %u says",
			 infiniband ? "InfiniBand" : "Ethernet", lossy ? ", with losses" : "",
			 hows[i]);
		TEST_ASSERT_EQUAL_UINT_MESSAGE(plain.wc_count[0], other.wc_count[0], where);
		TEST_ASSERT_EQUAL_UINT_MESSAGE(plain.wc_count[1], other.wc_count[1], where);
		TEST_ASSERT_EQUAL_MEMORY_MESSAGE(&plain, &other, sizeof(plain), where);
		if (hows[i] == TRACED)
			traced_bytes = read_trace(traced, sizeof(traced));
		if (hows[i] == (WATCHED | TRACED))
			watched_bytes = read_trace(watched, sizeof(watched));
	}
	TEST_ASSERT_TRUE(traced_bytes > 10000);
	TEST_ASSERT_EQUAL_UINT64(traced_bytes, watched_bytes);
	TEST_ASSERT_EQUAL_MEMORY(traced, watched, traced_bytes);
}

void test_watching_changes_nothing(void)
{
	each_run(watching_changes_nothing);
}

static void packets_are_those_of_the_trace(void)
{
	run(WATCHED | TRACED, &other);
	check_packets();
	/* Without a trace, packets that are not encoded are seen just so. */
	run(TRACED, &other);
	{
		const unsigned int frames = trace.count;

		run(WATCHED, &other);
		trace.count = frames;
	}
	check_packets();
}

void test_packets_are_those_of_the_trace(void)
{
	each_run(packets_are_those_of_the_trace);
}

/* --- when watching begins and ends --- */

static void write_once(struct ibv_qp *qp)
{
	struct ibv_sge sge = sge_of(&a, 0, 8);
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {(uintptr_t)b.buffer, b.mr->rkey},
	};

	TEST_ASSERT_EQUAL_INT(0, post_wr(qp, &wr));
	expect_wc(&a, 0, IBV_WC_SUCCESS);
}

void test_watching_begins_and_ends_in_the_middle_of_traffic(void)
{
	struct ibv_qp *from, *to;

	open_pair();
	connect_pair(&from, &to);
	for (unsigned int i = 0; i < 3; i++) {
		write_once(from);
		watch_events();
		write_once(from);
		write_once(from);
		TEST_ASSERT_EQUAL_UINT(4, count_events(VB_EVENT_PACKET));
		unwatch_events();
		write_once(from);
		TEST_ASSERT_EQUAL_UINT(4, count_events(VB_EVENT_PACKET));
	}
}

/* Opens a device of a world and raises an event of its port. */
static void raise_event(struct vb_sim *world)
{
	struct ibv_device **list = vb_sim_device_list(world, NULL);
	struct ibv_context *context = B.open_device(list[0]);

	TEST_ASSERT_NOT_NULL(context);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_event(context, 1, IBV_EVENT_SM_CHANGE));
	TEST_ASSERT_EQUAL_INT(0, B.close_device(context));
	B.free_device_list(list);
}

void test_all_worlds_are_watched(void)
{
	static struct vb_sim_config config = {.device_count = 1, .devices = {{.name = "early"}}};
	struct vb_sim *early = vb_sim_open(&config), *late;

	watch_events();
	strcpy(config.devices[0].name, "late");
	late = vb_sim_open(&config);
	open_pair();
	raise_event(early);
	raise_event(late);
	raise_event(NULL);
	TEST_ASSERT_EQUAL_UINT(3, events.count);
	TEST_ASSERT_EQUAL_STRING("early", events.noted[0].device);
	TEST_ASSERT_EQUAL_STRING("late", events.noted[1].device);
	TEST_ASSERT_EQUAL_STRING("sim0", events.noted[2].device);
	unwatch_events();
	raise_event(early);
	raise_event(late);
	raise_event(NULL);
	TEST_ASSERT_EQUAL_UINT(3, events.count);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(early));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(late));
}

static void count_two(void *arg, const struct vb_event *event)
{
	(void)event;
	++*(unsigned int *)arg;
}

void test_a_new_watcher_takes_the_place_of_the_old(void)
{
	unsigned int count = 0;

	open_pair();
	watch_events();
	B.watch(count_two, &count);
	raise_event(NULL);
	TEST_ASSERT_EQUAL_UINT(0, events.count);
	TEST_ASSERT_EQUAL_UINT(1, count);
}

/* The child's worlds are watched like the parent's, until the child decides otherwise. */
void test_a_forked_child_goes_on_watching(void)
{
	pid_t child;
	int status;

	open_pair();
	watch_events();
	child = fork();
	if (child == 0) {
		raise_event(NULL);
		_exit(events.count == 1 ? 0 : 1);
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
	TEST_ASSERT_EQUAL_UINT(0, events.count);
}

static void *watch_often(void *arg)
{
	const atomic_bool *stop = arg;

	while (!atomic_load(stop)) {
		B.watch(note_event, &events);
		B.watch(NULL, NULL);
	}
	return NULL;
}

/* On the real clock, where a thread of its own runs the world. */
void test_watching_while_other_threads_send(void)
{
	static const struct vb_sim_config real = {.clock = VB_SIM_CLOCK_REAL};
	static atomic_bool stop;
	struct ibv_qp *from, *to;
	pthread_t thread;
	uint64_t now_ns;

	open_pair_of(&real);
	connect_pair(&from, &to);
	atomic_store(&stop, false);
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, watch_often, &stop));
	for (unsigned int i = 0; i < 200; i++)
		write_once(from);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	watch_events();
	write_once(from);
	TEST_ASSERT_EQUAL_UINT(2, count_events(VB_EVENT_PACKET));
	now_ns = B.now_ns(a.context);
	TEST_ASSERT_TRUE(find_event(VB_EVENT_PACKET, 0)->event.time_ns > 0);
	TEST_ASSERT_TRUE(find_event(VB_EVENT_PACKET, 1)->event.time_ns <= now_ns);
}
