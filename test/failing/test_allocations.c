/* SPDX-License-Identifier: MIT */
/*
 * Each allocation inside the library fails in turn, while a good program runs; then each descriptor that the
 * library makes, and each thread. Each call succeeds, or is refused with the errno and a sentence; the program
 * can end what it has made, and nothing is left: no object, no memory, no descriptor and no thread.
 */
#include "test/failing/live.h"
#include "unity.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <verbena/channel.h>
#include <verbena/check.h>
#include <verbena/cm.h>
#include <verbena/connect.h>
#include <verbena/error.h>
#include <verbena/fault.h>
#include <verbena/rdma.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define ALLOCATIONS_MAX 2000
#define WAIT_NS		1000000000
#define CM_MS		2000
#define WR_ID		7

/* The rule that makes an allocation fail; 0: none. */
static unsigned int rule;
static const struct vb_sim_config *world; /* in which the program runs */
static bool refused;		    /* a call has been refused: the program ends what it has */
static enum vb_fail_action lacking; /* what the library does not get */
static int lacking_err;
static bool
	peer_lacks; /* the library may lack something at the peer, whose greeting then says so */

void setUp(void)
{
	rule = 0;
	world = NULL;
	lacking = VB_FAIL_ALLOCATION;
	lacking_err = ENOMEM;
	peer_lacks = false;
}

void tearDown(void)
{
	vb_fail_clear();
	vb_sim_reset();
}

/* Makes the allocation, descriptor or thread behind the next `skip` ones fail. */
static void fail_one(uint64_t skip)
{
	const struct vb_fail_rule one = {.action = lacking, .skip = skip, .count = 1};

	TEST_ASSERT_EQUAL_INT(0, vb_fail_add(&one, &rule));
}

/* Returns true if a call of a good program has succeeded. A call that was refused must say what was
 * lacking. */
static bool good(bool succeeded, const char *call)
{
	const int err = errno;
	char where[512];

	if (succeeded)
		return true;
	refused = true;
	snprintf(where, sizeof(where), "%s, without the %d. %s: %s", call, (int)vb_fail_seen(rule),
		 strerrorname_np(lacking_err), vb_last_error());
	TEST_ASSERT_EQUAL_UINT64_MESSAGE(1, vb_fail_hits(rule), where);
	if (!peer_lacks || err != ECONNREFUSED)
		TEST_ASSERT_EQUAL_INT_MESSAGE(lacking_err, err, where);
	TEST_ASSERT_TRUE_MESSAGE(*vb_last_error(), where);
	/* Nothing has reached a limit of the device. */
	TEST_ASSERT_TRUE_MESSAGE(vb_last_reason() != VB_WHY_DEVICE_LIMIT, where);
	return false;
}

#define MADE(pointer) (good((pointer) != NULL, #pointer))
#define OK(call)      (good((errno = (call)) == 0, #call))
#define DONE(call)    (good((call) == 0, #call))

/* --- a program of verbs --- */

struct verbs_end {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_srq *srq;
	struct ibv_qp *qp, *ud;
	struct ibv_ah *ah;
	struct ibv_mw *mw;
	struct ibv_dm *dm;
	struct ibv_td *td;
	struct ibv_xrcd *xrcd;
	union ibv_gid gid;
	uint8_t buffer[256];
};

static struct verbs_end ends[2];

static const union ibv_gid group = {.raw = {0xff, 0x0e, [10] = 0xff, 0xff, 239, 1, 2, 3}};

static bool make_end(struct verbs_end *end, struct ibv_device *device)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_td_init_attr td = {0};
	struct ibv_xrcd_init_attr xrcd = {.comp_mask =
						  IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					  .fd = -1,
					  .oflags = O_CREAT};

	return MADE(end->context = vb_open_device(device)) &&
	       DONE(vb_query_gid(end->context, 1, 1, &end->gid)) &&
	       MADE(end->channel = vb_create_comp_channel(end->context)) &&
	       MADE(end->pd = vb_alloc_pd(end->context)) &&
	       MADE(end->cq = vb_create_cq(end->context, 64, end, end->channel, 0)) &&
	       OK(ibv_req_notify_cq(end->cq, 0)) && OK(vb_resize_cq(end->cq, 200)) &&
	       MADE(end->mr = vb_reg_mr(end->pd, end->buffer, sizeof(end->buffer),
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) &&
	       MADE(end->srq = vb_create_srq(end->pd, &srq)) &&
	       MADE(end->mw = ibv_alloc_mw(end->pd, IBV_MW_TYPE_2)) &&
	       MADE(end->dm = vb_alloc_dm(end->context, &dm)) &&
	       MADE(end->td = vb_alloc_td(end->context, &td)) &&
	       MADE(end->xrcd = vb_open_xrcd(end->context, &xrcd));
}

static bool make_qps(struct verbs_end *end)
{
	struct ibv_qp_init_attr rc = {.send_cq = end->cq,
				      .recv_cq = end->cq,
				      .cap = {8, 8, 2, 2, 32},
				      .qp_type = IBV_QPT_RC};
	struct ibv_qp_init_attr ud = {.send_cq = end->cq,
				      .recv_cq = end->cq,
				      .srq = end->srq,
				      .cap = {8, 0, 2, 0, 0},
				      .qp_type = IBV_QPT_UD};

	return MADE(end->qp = vb_create_qp(end->pd, &rc)) &&
	       MADE(end->ud = vb_create_qp(end->pd, &ud));
}

static bool reach_rts(struct verbs_end *end, const struct verbs_end *peer)
{
	struct ibv_ah_attr path = {
		.is_global = 1, .port_num = 1, .grh = {peer->gid, .sgid_index = 1, .hop_limit = 1}};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = peer->qp->qp_num,
				  .max_dest_rd_atomic = 4,
				  .min_rnr_timer = 12,
				  .ah_attr = path};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = 14,
				  .retry_cnt = 3,
				  .rnr_retry = 7,
				  .max_rd_atomic = 4};

	return OK(vb_modify_qp(end->qp, &init,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS)) &&
	       OK(vb_modify_qp(end->qp, &rtr,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER)) &&
	       OK(vb_modify_qp(end->qp, &rts,
			       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static bool connect_end(struct verbs_end *end, const struct verbs_end *peer)
{
	struct ibv_ah_attr path = {
		.is_global = 1, .port_num = 1, .grh = {peer->gid, .sgid_index = 1, .hop_limit = 1}};

	return reach_rts(end, peer) && MADE(end->ah = vb_create_ah(end->pd, &path)) &&
	       OK(vb_attach_mcast(end->ud, &group, 0));
}

/* A receive at the other end, and a send. */
static bool post_one(struct verbs_end *from, struct verbs_end *to)
{
	struct ibv_sge out = {(uintptr_t)from->buffer, 64, from->mr->lkey};
	struct ibv_sge in = {(uintptr_t)to->buffer, 64, to->mr->lkey};
	struct ibv_send_wr *bad_send, send = {.wr_id = WR_ID,
					      .sg_list = &out,
					      .num_sge = 1,
					      .opcode = IBV_WR_SEND,
					      .send_flags = IBV_SEND_SIGNALED};
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = WR_ID, .sg_list = &in, .num_sge = 1};

	return OK(ibv_post_recv(to->qp, &recv, &bad_recv)) &&
	       OK(ibv_post_send(from->qp, &send, &bad_send));
}

static bool post(struct verbs_end *from, struct verbs_end *to)
{
	struct ibv_sge in = {(uintptr_t)to->buffer, 64, to->mr->lkey};
	struct ibv_recv_wr *bad, recv = {.wr_id = WR_ID, .sg_list = &in, .num_sge = 1};

	return OK(ibv_post_srq_recv(to->srq, &recv, &bad)) && post_one(from, to);
}

/* Takes the next completion. Returns what ibv_poll_cq() returns, or 0 if none comes in time. */
static int take(struct ibv_cq *cq, struct ibv_wc *wc)
{
	const uint64_t end_ns = vb_sim_now_ns(NULL) + 10 * (uint64_t)WAIT_NS;
	int found = 0;

	if (vb_sim_clock_of(NULL) == VB_SIM_CLOCK_VIRTUAL)
		return vb_sim_wait_cq(cq, 1, wc, WAIT_NS);
	while (!found && vb_sim_now_ns(NULL) < end_ns)
		found = ibv_poll_cq(cq, 1, wc);
	return found;
}

/* The message arrives, and the receiver learns of it by an event. The last send finds a wrong key. */
static bool exchange(struct verbs_end *from, struct verbs_end *to)
{
	struct ibv_sge out = {(uintptr_t)from->buffer, 64, 0xdead};
	struct ibv_send_wr *bad, wrong = {.sg_list = &out, .num_sge = 1};
	struct ibv_cq *cq;
	struct ibv_wc wc = {0};
	void *end;

	if (!post(from, to) || !DONE(vb_get_cq_event(to->channel, &cq, &end)))
		return false;
	vb_ack_cq_events(cq, 1);
	TEST_ASSERT_EQUAL_INT(1, take(to->cq, &wc));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
	TEST_ASSERT_EQUAL_INT(1, take(from->cq, &wc));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
	if (!OK(ibv_post_send(from->qp, &wrong, &bad)))
		return false;
	TEST_ASSERT_EQUAL_INT(1, take(from->cq, &wc));
	TEST_ASSERT_EQUAL_INT(IBV_WC_LOC_PROT_ERR, wc.status);
	return true;
}

#define END(call, object)                                                      \
	do                                                                     \
		if (object)                                                    \
			TEST_ASSERT_EQUAL_INT_MESSAGE(0, call(object), #call); \
	while (0)

static void end_end(struct verbs_end *end)
{
	if (end->ud)
		vb_detach_mcast(end->ud, &group, 0);
	END(vb_destroy_ah, end->ah);
	END(vb_destroy_qp, end->ud);
	END(vb_destroy_qp, end->qp);
	END(vb_close_xrcd, end->xrcd);
	END(vb_dealloc_td, end->td);
	END(vb_free_dm, end->dm);
	END(ibv_dealloc_mw, end->mw);
	END(vb_destroy_srq, end->srq);
	END(vb_dereg_mr, end->mr);
	END(vb_destroy_cq, end->cq);
	END(vb_dealloc_pd, end->pd);
	END(vb_destroy_comp_channel, end->channel);
	END(vb_close_device, end->context);
}

static void run_verbs(void)
{
	struct ibv_device **list = vb_get_device_list(NULL, NULL);

	memset(ends, 0, sizeof(ends));
	if (MADE(list) && make_end(&ends[0], list[0]) && make_end(&ends[1], list[1]) &&
	    make_qps(&ends[0]) && make_qps(&ends[1]) && connect_end(&ends[0], &ends[1]) &&
	    connect_end(&ends[1], &ends[0]))
		exchange(&ends[0], &ends[1]);
	if (list)
		vb_free_device_list(list);
	end_end(&ends[0]);
	end_end(&ends[1]);
}

/* --- a program that polls extended CQs, and keeps all rules of the sanitizer --- */

static bool make_extended(struct verbs_end *end, struct ibv_device *device)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_device_attr limits;
	struct ibv_cq_ex *ex = NULL;
	struct ibv_qp_init_attr init = {.cap = {8, 8, 2, 2, 0}, .qp_type = IBV_QPT_RC};

	if (!(MADE(end->context = vb_open_device(device)) &&
	      OK(vb_query_device(end->context, &limits)) &&
	      DONE(vb_query_gid(end->context, 1, 1, &end->gid)) &&
	      MADE(end->pd = vb_alloc_pd(end->context)) &&
	      MADE(ex = vb_create_cq_ex(end->context, &attr))))
		return false;
	init.send_cq = init.recv_cq = end->cq = ibv_cq_ex_to_cq(ex);
	return MADE(end->qp = vb_create_qp(end->pd, &init));
}

static void poll_extended(const struct verbs_end *end)
{
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)end->cq;
	struct ibv_poll_cq_attr none = {0};
	int found = ENOENT;

	for (int i = 0; i < 1000 && found == ENOENT; i++)
		found = ibv_start_poll(ex, &none);
	TEST_ASSERT_EQUAL_INT(0, found);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, ex->status);
	ibv_end_poll(ex);
}

/* The MRs end while the QPs are in RTS: all work has completed. */
static bool exchange_extended(struct verbs_end *from, struct verbs_end *to)
{
	struct verbs_end *both[] = {from, to};
	bool sent;

	for (int i = 0; i < 2; i++)
		if (!MADE(both[i]->mr = vb_reg_mr(both[i]->pd, both[i]->buffer, 256,
						  IBV_ACCESS_LOCAL_WRITE)))
			return false;
	sent = post_one(from, to);
	if (sent) {
		poll_extended(from);
		poll_extended(to);
	}
	for (int i = 0; sent && i < 2; i++) {
		TEST_ASSERT_EQUAL_INT(0, vb_dereg_mr(both[i]->mr));
		both[i]->mr = NULL;
	}
	return sent;
}

static void run_extended(void)
{
	struct ibv_device **list = vb_get_device_list(NULL, NULL);

	memset(ends, 0, sizeof(ends));
	if (MADE(list) && make_extended(&ends[0], list[0]) && make_extended(&ends[1], list[1]) &&
	    reach_rts(&ends[0], &ends[1]) && reach_rts(&ends[1], &ends[0]) &&
	    exchange_extended(&ends[0], &ends[1]))
		exchange_extended(&ends[1], &ends[0]);
	if (list)
		vb_free_device_list(list);
	end_end(&ends[0]);
	end_end(&ends[1]);
}

/* --- a program of connections --- */

static struct rdma_event_channel *cm_channel;
static struct rdma_cm_id *listener, *client, *server;

/* Takes the next event. Returns false if it is not the expected one. */
static bool took(enum rdma_cm_event_type type, struct rdma_cm_id **id)
{
	struct rdma_cm_event *event;
	bool same;

	if (!DONE(vb_cm_get_cm_event(cm_channel, &event)))
		return false;
	same = event->event == type;
	if (same && id)
		*id = event->id;
	/* A connection that got no memory on its way fails by an event. */
	if (!same) {
		refused = true;
		TEST_ASSERT_EQUAL_UINT64_MESSAGE(1, vb_fail_hits(rule),
						 vb_cm_event_str(event->event));
	}
	TEST_ASSERT_EQUAL_INT(0, vb_cm_ack_cm_event(event));
	return same;
}

static bool make_listener(struct sockaddr_in *to)
{
	struct sockaddr_in any = {.sin_family = AF_INET};

	if (!(MADE(cm_channel = vb_cm_create_event_channel(NULL)) &&
	      DONE(vb_cm_create_id(NULL, cm_channel, &listener, NULL, RDMA_PS_TCP)) &&
	      DONE(vb_cm_bind_addr(listener, (struct sockaddr *)&any)) &&
	      DONE(vb_cm_listen(listener, 4))))
		return false;
	*to = (struct sockaddr_in){.sin_family = AF_INET,
				   .sin_port = vb_cm_get_src_port(listener),
				   .sin_addr = {htonl(0x0a000002)}};
	return true;
}

static bool make_connection(struct sockaddr_in *to)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}};
	struct ibv_qp_init_attr of_server = attr;
	struct rdma_conn_param param = {.retry_count = 3, .rnr_retry_count = 7};

	return DONE(vb_cm_create_id(NULL, cm_channel, &client, NULL, RDMA_PS_TCP)) &&
	       DONE(vb_cm_resolve_addr(client, NULL, (struct sockaddr *)to, CM_MS)) &&
	       took(RDMA_CM_EVENT_ADDR_RESOLVED, NULL) &&
	       DONE(vb_cm_resolve_route(client, CM_MS)) &&
	       took(RDMA_CM_EVENT_ROUTE_RESOLVED, NULL) &&
	       DONE(vb_cm_create_qp(client, NULL, &attr)) && DONE(vb_cm_connect(client, &param)) &&
	       took(RDMA_CM_EVENT_CONNECT_REQUEST, &server) &&
	       DONE(vb_cm_create_qp(server, NULL, &of_server)) &&
	       DONE(vb_cm_accept(server, &param)) && took(RDMA_CM_EVENT_ESTABLISHED, NULL) &&
	       took(RDMA_CM_EVENT_ESTABLISHED, NULL) && DONE(vb_cm_disconnect(client)) &&
	       took(RDMA_CM_EVENT_DISCONNECTED, NULL) && took(RDMA_CM_EVENT_DISCONNECTED, NULL);
}

static void end_id(struct rdma_cm_id *id)
{
	if (!id)
		return;
	if (id->qp)
		vb_cm_destroy_qp(id);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, vb_cm_destroy_id(id), vb_last_error());
}

static void run_cm(void)
{
	struct sockaddr_in to;

	cm_channel = NULL;
	listener = client = server = NULL;
	if (make_listener(&to))
		make_connection(&to);
	end_id(client);
	end_id(server);
	end_id(listener);
	if (cm_channel)
		vb_cm_destroy_event_channel(cm_channel);
}

/* --- a program of <verbena/channel.h> --- */

static struct vb_device *device;
static struct vb_group *works;
static struct vb_region *region;
static struct vb_channel *channels[2];
static struct vb_team *team;

static bool make_channels(void)
{
	struct vb_devices *list = vb_devices_get(NULL);
	struct vb_qp_config config;
	struct ibv_device *first;

	if (!MADE(list))
		return false;
	first = vb_devices_at(list, 0)->device;
	vb_qp_config_init(&config);
	device = vb_device_open(first, 0, VB_GID_INDEX_ANY);
	good(device, "vb_device_open");
	vb_devices_put(list);
	return device && MADE(works = vb_group_open(device, NULL)) &&
	       MADE(region = vb_group_alloc(works, 4096)) &&
	       MADE(channels[0] = vb_channel_prepare(works, &config)) &&
	       MADE(channels[1] = vb_channel_prepare(works, &config)) &&
	       OK(vb_channel_connect_pair(channels[0], channels[1])) &&
	       MADE(team = vb_team_prepare(works, 0, 4, &config));
}

static void send_one(void)
{
	struct vb_slice from = {region, 0, 64}, into = {region, 64, 64};
	struct vb_work sent, received;

	if (OK(vb_channel_receive(channels[1], &into, &received)) &&
	    OK(vb_channel_send(channels[0], &from, &sent)) &&
	    OK(vb_work_wait(received, WAIT_NS, NULL)))
		OK(vb_work_wait(sent, WAIT_NS, NULL));
}

static void run_channels(void)
{
	device = NULL;
	works = NULL;
	region = NULL;
	channels[0] = channels[1] = NULL;
	team = NULL;
	if (make_channels())
		send_one();
	END(vb_team_close, team);
	END(vb_channel_close, channels[0]);
	END(vb_channel_close, channels[1]);
	END(vb_region_free, region);
	END(vb_group_close, works);
	END(vb_device_close, device);
}

/* --- addresses and synchronous identifiers --- */

static void run_endpoints(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}};
	struct rdma_addrinfo *address = NULL;
	struct rdma_cm_id *passive = NULL;
	struct ibv_context **devices;

	if (MADE(devices = vb_cm_get_devices(NULL, NULL)))
		vb_cm_free_devices(devices);
	if (DONE(vb_cm_getaddrinfo(NULL, "10.0.0.1", "7471", &hints, &address)) &&
	    DONE(vb_cm_create_ep(NULL, &passive, address, NULL, &attr)))
		DONE(vb_cm_listen(passive, 1));
	if (passive)
		vb_cm_destroy_ep(passive);
	if (address)
		vb_cm_freeaddrinfo(address);
}

/* --- agents: <verbena/rdma.h> --- */

static struct vb_rdma_agent *agents[2];
static struct vb_rdma_listener *agent_listener;
static struct vb_rdma *ways[2];

static bool make_agents(void)
{
	struct vb_rdma_options options;
	char address[64];

	vb_rdma_options_init(&options);
	options.backend = "sim";
	options.thread = true;
	return MADE(agents[0] = vb_rdma_agent_open(&options)) &&
	       MADE(agents[1] = vb_rdma_agent_open(&options)) &&
	       MADE(agent_listener = vb_rdma_listen(agents[0], "127.0.0.1:0")) &&
	       OK(vb_rdma_listener_name(agent_listener, address, sizeof(address))) &&
	       MADE(ways[0] = vb_rdma_connect(agents[1], address, 10 * (uint64_t)WAIT_NS)) &&
	       MADE(ways[1] = vb_rdma_accept(agent_listener, 10 * (uint64_t)WAIT_NS));
}

static void run_agents(void)
{
	peer_lacks = true;
	agents[0] = agents[1] = NULL;
	agent_listener = NULL;
	ways[0] = ways[1] = NULL;
	make_agents();
	for (int i = 0; i < 2; i++)
		if (ways[i])
			vb_rdma_close(ways[i]);
	if (agent_listener)
		vb_rdma_listener_close(agent_listener);
	END(vb_rdma_agent_close, agents[1]);
	END(vb_rdma_agent_close, agents[0]);
}

/* --- each allocation in turn --- */

/* Counts the entries of a folder of /proc/self: descriptors or threads. */
static long count_entries(const char *path)
{
	DIR *folder = opendir(path);
	long count = 0;

	TEST_ASSERT_NOT_NULL(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* The connection manager keeps devices open for the life of the process, as librdmacm does. */
static void expect_left(uint32_t contexts_max)
{
	struct vb_sim_objects left = {0}, expected = {0};

	vb_sim_count_objects(NULL, &left);
	TEST_ASSERT_TRUE(left.contexts <= contexts_max);
	expected.contexts = left.contexts;
	expected.pds = left.pds;
	TEST_ASSERT_TRUE(left.pds <= contexts_max);
	TEST_ASSERT_TRUE(memcmp(&expected, &left, sizeof(left)) == 0);
}

/* What lives in the process. */
struct living {
	long allocations, descriptors, threads;
};

/* Runs a program in a new world, whose making is part of it. Returns what lives then. */
static struct living run_once(void (*program)(void), uint64_t skip)
{
	refused = false;
	fail_one(skip);
	if (OK(vb_sim_configure(world)))
		program();
	return (struct living){live_count, count_entries("/proc/self/fd"),
			       count_entries("/proc/self/task")};
}

static void fail_each(void (*program)(void), uint32_t contexts_max)
{
	struct living before = {0}, after;
	uint64_t skip = 0;

	/* The first runs make what stays for the life of the process. */
	for (int i = 0; i < 3; i++) {
		before = run_once(program, UINT64_MAX);
		TEST_ASSERT_FALSE(refused);
		TEST_ASSERT_EQUAL_INT(0, vb_fail_remove(rule));
	}
	for (bool fails = true; fails; skip++) {
		char text[64];

		run_once(program, skip);
		fails = vb_fail_hits(rule);
		TEST_ASSERT_EQUAL_INT(0, vb_fail_remove(rule));
		expect_left(contexts_max);
		/* What the world has kept, the next world replaces. */
		after = run_once(program, UINT64_MAX);
		vb_fail_clear();
		snprintf(text, sizeof(text), "without the %d. %s", (int)skip,
			 strerrorname_np(lacking_err));
		/* The C library keeps the memory of threads that have ended: LeakSanitizer judges then. */
		if (!world || world->clock == VB_SIM_CLOCK_VIRTUAL)
			TEST_ASSERT_EQUAL_INT64_MESSAGE(before.allocations, after.allocations,
							text);
		TEST_ASSERT_EQUAL_INT64_MESSAGE(before.descriptors, after.descriptors, text);
		TEST_ASSERT_EQUAL_INT64_MESSAGE(before.threads, after.threads, text);
		TEST_ASSERT_TRUE(skip < ALLOCATIONS_MAX);
	}
	printf("%s: %d failed in turn\n", strerrorname_np(lacking_err), (int)skip - 1);
	TEST_ASSERT_TRUE(skip > (lacking == VB_FAIL_ALLOCATION ? 20 : 1));
}

void test_verbs(void)
{
	fail_each(run_verbs, 0);
}

/* Packets are bytes on a link with a delay, and go to a trace; a fault rule looks at them. */
void test_verbs_with_links_and_a_trace(void)
{
	static const struct vb_sim_event events[] = {
		{.at_ns = 1, .device = "sim0", .port_num = 1, .kind = VB_SIM_AT_LID, .lid = 7}};
	static const struct vb_fault_rule faults[] = {
		{.action = VB_FAULT_DUPLICATE, .from = "sim0", .count = 1}};
	static const struct vb_sim_config config = {
		.device_count = 2,
		.devices = {{.name = "sim0"}, {.name = "sim1"}},
		.link_count = 1,
		.links = {{.a = "sim0", .b = "sim1", .delay_ns = 1000}},
		.trace = "/dev/null",
		.faults = faults,
		.fault_count = 1,
		.events = events,
		.event_count = 1,
	};

	world = &config;
	fail_each(run_verbs, 0);
}

void test_endpoints(void)
{
	fail_each(run_endpoints, 2);
}

void test_connections(void)
{
	fail_each(run_cm, 2);
}

void test_channels(void)
{
	fail_each(run_channels, 0);
}

void test_allocations_are_counted_and_fail(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	fail_one(UINT64_MAX);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	TEST_ASSERT_GREATER_THAN(0, vb_fail_seen(rule));
	TEST_ASSERT_EQUAL_UINT64(0, vb_fail_hits(rule));
	TEST_ASSERT_EQUAL_INT(0, vb_fail_remove(rule));
	fail_one(0);
	TEST_ASSERT_EQUAL_INT(ENOMEM, vb_sim_configure(NULL));
	TEST_ASSERT_EQUAL_UINT64(1, vb_fail_hits(rule));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
}

/* A program that keeps the rules has no finding, whatever memory the library and the sanitizer lack. */
void test_the_sanitizer_finds_nothing(void)
{
	uint64_t skip = 0;

	for (bool fails = true; fails; skip++) {
		char text[64];

		TEST_ASSERT_EQUAL_INT(0, vb_check_enable(NULL));
		run_once(run_extended, skip);
		fails = vb_fail_hits(rule);
		vb_fail_clear();
		snprintf(text, sizeof(text), "without allocation %d", (int)skip);
		TEST_ASSERT_EQUAL_UINT64_MESSAGE(0, vb_check_findings(VB_RULE_NONE), text);
		vb_sim_reset();
		vb_check_disable();
	}
	TEST_ASSERT_TRUE(skip > 20);
}

/* --- descriptors and threads --- */

static const struct vb_sim_config real = {.clock = VB_SIM_CLOCK_REAL,
					  .device_count = 2,
					  .devices = {{.name = "sim0"}, {.name = "sim1"}}};

static void fail_each_descriptor(void (*program)(void), uint32_t contexts_max)
{
	lacking = VB_FAIL_DESCRIPTOR;
	lacking_err = EMFILE;
	fail_each(program, contexts_max);
}

void test_descriptors_of_verbs(void)
{
	fail_each_descriptor(run_verbs, 0);
}

void test_descriptors_of_verbs_on_the_real_clock(void)
{
	world = &real;
	fail_each_descriptor(run_verbs, 0);
}

void test_descriptors_of_connections(void)
{
	fail_each_descriptor(run_cm, 2);
}

void test_descriptors_of_channels(void)
{
	fail_each_descriptor(run_channels, 0);
}

void test_descriptors_of_agents(void)
{
	world = &real;
	fail_each_descriptor(run_agents, 0);
}

void test_threads_of_agents(void)
{
	world = &real;
	lacking = VB_FAIL_THREAD;
	lacking_err = EAGAIN;
	fail_each(run_agents, 0);
}

void test_threads_of_verbs_on_the_real_clock(void)
{
	world = &real;
	lacking = VB_FAIL_THREAD;
	lacking_err = EAGAIN;
	fail_each(run_verbs, 0);
}
