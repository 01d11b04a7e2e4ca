/* SPDX-License-Identifier: MIT */
/*
 * Worlds with wires above the verbs layer: devices of the wires shared and udp beside each other, and a
 * default world that is replaced by one with the same name or the same address.
 */
#include "test/unit/last_sentence.h"
#include "test/unit/random_packet.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define BYTES (1u << 16)
#define LIMIT 20000000000u /* no test waits longer, in ns */

static char world_name[VB_SIM_NAME_MAX];

void setUp(void)
{
	static unsigned int count;

	random_state = SEED;
	snprintf(world_name, sizeof(world_name), "test-%d-%u", (int)getpid(), ++count);
}

void tearDown(void)
{
	vb_sim_reset();
}

/* --- both wires in one process --- */

/* A connected QP of a device, and its memory. */
struct end {
	struct vb_sim *world;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	uint8_t buffer[BYTES];
};

static struct vb_sim *open_world(void)
{
	struct vb_sim_config config = {
		.clock = VB_SIM_CLOCK_REAL,
		.device_count = 2,
		.devices = {{.name = "shared0", .wire = VB_SIM_WIRE_SHARED},
			    {.name = "udp0", .wire = VB_SIM_WIRE_UDP}},
	};
	struct vb_sim *world;

	memcpy(config.world, world_name, sizeof(config.world));
	world = vb_sim_open(&config);
	TEST_ASSERT_NOT_NULL_MESSAGE(world, vb_last_error());
	return world;
}

static void open_end(struct end *end, struct vb_sim *world, unsigned int device)
{
	struct ibv_device **list = vb_sim_device_list(world, NULL);
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	memset(end, 0, sizeof(*end));
	end->world = world;
	end->context = vb_open_device(list[device]);
	vb_free_device_list(list);
	end->pd = vb_alloc_pd(end->context);
	end->channel = vb_create_comp_channel(end->context);
	end->cq = vb_create_cq(end->context, 16, NULL, end->channel, 0);
	init.send_cq = init.recv_cq = end->cq;
	end->qp = vb_create_qp(end->pd, &init);
	end->mr = vb_reg_mr(end->pd, end->buffer, BYTES,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	TEST_ASSERT_NOT_NULL(end->mr);
	TEST_ASSERT_NOT_NULL(end->qp);
	TEST_ASSERT_EQUAL_INT(0, vb_query_gid(end->context, 1, 1, &end->gid));
}

static void close_end(struct end *end)
{
	vb_destroy_qp(end->qp);
	vb_dereg_mr(end->mr);
	vb_destroy_cq(end->cq);
	vb_destroy_comp_channel(end->channel);
	vb_dealloc_pd(end->pd);
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(end->context));
}

static int to_rtr(const struct end *end, const union ibv_gid *gid, uint32_t qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = *gid, .sgid_index = 1, .hop_limit = 64}},
	};

	return vb_modify_qp(end->qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
}

static void to_init(const struct end *end)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(end->qp, &attr,
					      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						      IBV_QP_ACCESS_FLAGS));
}

static void connect_end(const struct end *end, const struct end *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	to_init(end);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, to_rtr(end, &peer->gid, peer->qp->qp_num),
				      vb_last_error());
	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(end->qp, &attr,
					      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
						      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						      IBV_QP_MAX_QP_RD_ATOMIC));
}

/* Writes random bytes to the peer's memory and looks at them. */
static void write_to(struct end *end, const struct end *peer)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer, BYTES, end->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)peer->buffer, peer->mr->rkey}};
	const uint64_t began_ns = vb_sim_now_ns(end->world);
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	random_bytes(end->buffer, BYTES);
	TEST_ASSERT_EQUAL_INT(0, vb_post_send(end->qp, &wr, &bad));
	while (!vb_poll_cq(end->cq, 1, &wc))
		TEST_ASSERT_TRUE_MESSAGE(vb_sim_now_ns(end->world) - began_ns < LIMIT,
					 "no completion for 20 s");
	TEST_ASSERT_EQUAL_STRING("success", vb_wc_status_str(wc.status));
	TEST_ASSERT_EQUAL_MEMORY(end->buffer, peer->buffer, BYTES);
}

/* Two worlds of one name are two processes of it, as far as wires know. */
void test_both_wires_of_a_process_carry_data(void)
{
	static struct end a[2], b[2];
	struct vb_sim *first = open_world(), *second = open_world();

	for (unsigned int wire = 0; wire < 2; wire++) {
		open_end(&a[wire], first, wire);
		open_end(&b[wire], second, wire);
		connect_end(&a[wire], &b[wire]);
		connect_end(&b[wire], &a[wire]);
	}
	for (unsigned int round = 0; round < 4; round++)
		for (unsigned int wire = 0; wire < 2; wire++) {
			write_to(&a[wire], &b[wire]);
			write_to(&b[wire], &a[wire]);
		}
	for (unsigned int wire = 0; wire < 2; wire++) {
		close_end(&a[wire]);
		close_end(&b[wire]);
	}
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(first));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(second));
}

/* --- the child of a fork() --- */

/* Returns true if all other threads of this process sleep: the state behind the name in proc(5), /proc/PID/stat. */
static bool others_sleep(void)
{
	DIR *threads = opendir("/proc/self/task");
	const struct dirent *entry;
	bool sleep = true;

	while ((entry = readdir(threads))) {
		char path[300], line[512];
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/stat", entry->d_name);
		file = atoi(entry->d_name) && atoi(entry->d_name) != gettid() ? fopen(path, "re")
									      : NULL;
		if (!file)
			continue;
		sleep &= fgets(line, sizeof(line), file) && strrchr(line, ')')[2] == 'S';
		fclose(file);
	}
	closedir(threads);
	return sleep;
}

/* Sends a message of this end once all other threads sleep, also the one that waits for the message. */
static void *send_when_others_sleep(void *arg)
{
	struct end *peer = arg;
	struct ibv_sge sge = {(uintptr_t)peer->buffer, 64, peer->mr->lkey};
	struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	while (!others_sleep())
		;
	TEST_ASSERT_EQUAL_INT(0, vb_post_send(peer->qp, &send, &bad));
	return NULL;
}

/* Sleeps until a message of the peer has come. */
static void be_woken(struct end *end, struct end *peer)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer, 64, end->mr->lkey};
	struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad;
	pthread_t sender;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(end->qp, &receive, &bad));
	TEST_ASSERT_EQUAL_INT(0, vb_req_notify_cq(end->cq, 0));
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&sender, NULL, send_when_others_sleep, peer));
	TEST_ASSERT_EQUAL_INT(0, vb_get_cq_event(end->channel, &cq, &context));
	TEST_ASSERT_EQUAL_INT(0, pthread_join(sender, NULL));
	vb_ack_cq_events(cq, 1);
	TEST_ASSERT_EQUAL_INT(1, vb_poll_cq(end->cq, 1, &wc));
	TEST_ASSERT_EQUAL_STRING("success", vb_wc_status_str(wc.status));
}

/* Opens the devices of the world that the parent has left, and those of a second one. */
static void be_child(struct vb_sim *world)
{
	static struct end own[2], peer[2];
	struct vb_sim *second = open_world();

	for (unsigned int wire = 0; wire < 2; wire++) {
		open_end(&own[wire], world, wire);
		open_end(&peer[wire], second, wire);
		connect_end(&own[wire], &peer[wire]);
		connect_end(&peer[wire], &own[wire]);
	}
	for (unsigned int round = 0; round < 4; round++)
		for (unsigned int wire = 0; wire < 2; wire++)
			be_woken(&own[wire], &peer[wire]);
}

/* Packets of both wires wake the child's threads, not those of its parent. */
void test_packets_of_both_wires_wake_a_child(void)
{
	struct vb_sim *world = open_world();
	int ends[2], status, pid;
	char byte;

	TEST_ASSERT_EQUAL_INT(0, pipe(ends));
	pid = fork();
	if (!pid) {
		alarm(60);
		close(ends[1]);
		if (read(ends[0], &byte, 1) == 0)
			be_child(world);
		_exit(0);
	}
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(world));
	close(ends[0]);
	close(ends[1]);
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
}

/* --- ways between wires --- */

/* A device of the wire shared does not reach the address of another process; that of the wire udp in the same
 * process does. */
void test_no_way_from_one_wire_to_another(void)
{
	static struct end shared, udp, peer;
	struct vb_sim *first = open_world(), *second = open_world();
	char text[INET_ADDRSTRLEN];

	open_end(&shared, first, 0);
	open_end(&udp, first, 1);
	open_end(&peer, second, 1);
	to_init(&shared);
	inet_ntop(AF_INET, peer.gid.raw + 12, text, sizeof(text));
	TEST_ASSERT_EQUAL_INT(ENETUNREACH, to_rtr(&shared, &peer.gid, peer.qp->qp_num));
	expect_reason(
		VB_WHY_PATH_UNREACHABLE,
		"modify_qp: no adapter of this machine has the GID ::ffff:%s of grh.dgid, "
		"and no wire leads to it; set grh.dgid to the peer's GID, which the peer reads "
		"by ibv_query_gid(); run both ends with the same devices and in the same world "
		"(verbena-run(1)); if the peer is on another machine, run both with --wire udp",
		text);
	connect_end(&udp, &peer);
	connect_end(&peer, &udp);
	write_to(&udp, &peer);
	write_to(&peer, &udp);
	close_end(&shared);
	close_end(&udp);
	close_end(&peer);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(first));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(second));
}

/* --- the default world is replaced --- */

static struct vb_sim_config config_of(enum vb_sim_wire wire, unsigned int count)
{
	struct vb_sim_config config = {
		.clock = VB_SIM_CLOCK_REAL,
		.device_count = count,
		.devices = {{.name = "one", .wire = wire}, {.name = "two", .wire = wire}},
	};

	memcpy(config.world, world_name, sizeof(config.world));
	return config;
}

/* Worlds that the caller has not named are each process's own, and each other's no neighbours. */
void test_each_new_world_has_addresses_of_its_own(void)
{
	struct vb_sim_config config = config_of(VB_SIM_WIRE_SHARED, 2);
	struct vb_sim *worlds[2];
	union ibv_gid gids[2];

	strcpy(config.world, VB_SIM_WORLD_NEW);
	for (unsigned int i = 0; i < 2; i++) {
		struct ibv_context *context;
		struct ibv_device **list;

		worlds[i] = vb_sim_open(&config);
		TEST_ASSERT_NOT_NULL_MESSAGE(worlds[i], vb_last_error());
		list = vb_sim_device_list(worlds[i], NULL);
		context = vb_open_device(list[0]);
		vb_free_device_list(list);
		TEST_ASSERT_EQUAL_INT(0, vb_query_gid(context, 1, 1, &gids[i]));
		vb_close_device(context);
	}
	TEST_ASSERT_NOT_EQUAL(0, memcmp(&gids[0], &gids[1], sizeof(gids[0])));
	for (unsigned int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(0, vb_sim_close(worlds[i]));
}

/* The first device of the default world; its name is written to name. Returns the number of devices. */
static int default_devices(char *name, union ibv_gid *gid)
{
	int count;
	struct ibv_device **list = vb_sim_device_list(NULL, &count);
	struct ibv_context *context;

	TEST_ASSERT_NOT_NULL(list);
	snprintf(name, VB_SIM_NAME_MAX, "%s", vb_get_device_name(list[0]));
	context = vb_open_device(list[0]);
	vb_free_device_list(list);
	TEST_ASSERT_NOT_NULL(context);
	TEST_ASSERT_EQUAL_INT(0, vb_query_gid(context, 1, 1, gid));
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(context));
	return count;
}

/* Returns true if a socket can have UDP port 4791 of the address. */
static bool is_free(const union ibv_gid *gid)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(4791)};
	const int fd = socket(AF_INET, SOCK_DGRAM, 0);
	bool bound;

	memcpy(&at.sin_addr, gid->raw + 12, 4);
	bound = bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
	close(fd);
	return bound;
}

/* A program configures its world again, with the address that it has. */
void test_the_same_address_again(void)
{
	struct vb_sim_config config = config_of(VB_SIM_WIRE_UDP, 1);
	union ibv_gid first, gid;
	char name[VB_SIM_NAME_MAX];

	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(&config));
	default_devices(name, &first);
	inet_ntop(AF_INET, first.raw + 12, config.devices[0].address,
		  sizeof(config.devices[0].address));
	for (unsigned int i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_INT_MESSAGE(0, vb_sim_configure(&config), vb_last_error());
		TEST_ASSERT_EQUAL_INT(1, default_devices(name, &gid));
		TEST_ASSERT_EQUAL_MEMORY(&first, &gid, sizeof(gid));
		TEST_ASSERT_FALSE(is_free(&gid));
	}
	vb_sim_reset();
	TEST_ASSERT_TRUE(is_free(&gid));
}

/* Alone in its shared world, a process gives the world other devices. */
void test_the_same_shared_world_with_other_devices(void)
{
	char name[VB_SIM_NAME_MAX], path[128];
	union ibv_gid gid;

	for (unsigned int count = 1; count < 3; count++) {
		const struct vb_sim_config config = config_of(VB_SIM_WIRE_SHARED, count);

		TEST_ASSERT_EQUAL_INT_MESSAGE(0, vb_sim_configure(&config), vb_last_error());
		TEST_ASSERT_EQUAL_INT((int)count, default_devices(name, &gid));
	}
	vb_sim_reset();
	snprintf(path, sizeof(path), "/dev/shm/verbena-%u-%s", (unsigned int)geteuid(), world_name);
	TEST_ASSERT_NOT_EQUAL(0, access(path, F_OK));
}

/* The processes of a world have the same devices on the wire shared, and any others. */
void test_a_shared_world_beside_other_devices(void)
{
	struct vb_sim_config config = config_of(VB_SIM_WIRE_SHARED, 1);
	struct vb_sim *first = vb_sim_open(&config), *second;

	TEST_ASSERT_NOT_NULL_MESSAGE(first, vb_last_error());
	config.device_count = 2;
	config.devices[1] = (struct vb_sim_device_config){.name = "two"};
	second = vb_sim_open(&config);
	TEST_ASSERT_NOT_NULL_MESSAGE(second, vb_last_error());
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(second));
	config.devices[1].wire = VB_SIM_WIRE_SHARED;
	TEST_ASSERT_NULL(vb_sim_open(&config));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(first));
}

/* After an error there is no default world: the next use makes one. */
void test_a_world_with_wires_is_not_replaced(void)
{
	struct vb_sim_config config = config_of(VB_SIM_WIRE_UDP, 1);
	char name[VB_SIM_NAME_MAX];
	union ibv_gid first, gid;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(&config));
	default_devices(name, &first);
	TEST_ASSERT_EQUAL_STRING("one", name);
	config.devices[0].ports = 100;
	TEST_ASSERT_NOT_EQUAL(0, vb_sim_configure(&config));
	TEST_ASSERT_TRUE(is_free(&first));
	default_devices(name, &gid);
	TEST_ASSERT_EQUAL_STRING("sim0", name);
	config.devices[0].ports = 1;
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(&config));
	default_devices(name, &gid);
	TEST_ASSERT_EQUAL_STRING("one", name);
}

/* A world without wires stays after an error. */
void test_a_world_without_wires_stays(void)
{
	struct vb_sim_config config = config_of(VB_SIM_WIRE_MEMORY, 2);
	char name[VB_SIM_NAME_MAX];
	union ibv_gid gid;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(&config));
	config.devices[0].ports = 100;
	TEST_ASSERT_NOT_EQUAL(0, vb_sim_configure(&config));
	TEST_ASSERT_EQUAL_INT(2, default_devices(name, &gid));
	TEST_ASSERT_EQUAL_STRING("one", name);
}

/* A world whose device is open keeps its address. */
void test_a_world_in_use_keeps_its_wires(void)
{
	const struct vb_sim_config config = config_of(VB_SIM_WIRE_UDP, 1);
	struct ibv_device **list;
	struct ibv_context *context;
	union ibv_gid gid;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(&config));
	list = vb_sim_device_list(NULL, NULL);
	context = vb_open_device(list[0]);
	vb_free_device_list(list);
	TEST_ASSERT_EQUAL_INT(0, vb_query_gid(context, 1, 1, &gid));
	TEST_ASSERT_EQUAL_INT(EBUSY, vb_sim_configure(&config));
	TEST_ASSERT_FALSE(is_free(&gid));
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(context));
}
