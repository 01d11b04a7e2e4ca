/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

#define BUFFER_ALIGNMENT 4096
#define ROUNDS		 41

static void print_help(const char *program, const char *about, const struct bench_option *options)
{
	printf("usage: %s [options]\n%s\n", program, about);
	for (; options->name; options++) {
		printf("  %-8s %s", options->name, options->help);
		if (options->number)
			printf(" (%" PRIu64 ")", *options->number);
		printf("\n");
	}
}

static _Noreturn void bad_usage(const char *program, const char *argument)
{
	fprintf(stderr, "%s: unknown argument or value '%s'; see -h\n", program, argument);
	exit(2);
}

static bool take_value(const struct bench_option *option, const char *value)
{
	uint64_t number;
	char *end;

	if (option->text) {
		*option->text = value;
		return true;
	}
	errno = 0;
	number = strtoull(value, &end, 0);
	if (!isdigit((unsigned char)*value) || *end || errno || number < option->min ||
	    number > option->max)
		return false;
	*option->number = number;
	return true;
}

void bench_options(int argc, char **argv, const char *about, const struct bench_option *options)
{
	for (int i = 1; i < argc; i += 2) {
		const struct bench_option *option = options;

		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
			print_help(argv[0], about, options);
			exit(0);
		}
		while (option->name && strcmp(option->name, argv[i]) != 0)
			option++;
		if (!option->name || i + 1 == argc)
			bad_usage(argv[0], argv[i]);
		if (!take_value(option, argv[i + 1]))
			bad_usage(argv[0], argv[i + 1]);
	}
}

uint64_t bench_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void bench_fail(const char *what, int err)
{
	fprintf(stderr, "%s: %s (%s)\n", what, strerror(err), vb_last_error());
	exit(1);
}

void bench_check(const char *what, int err)
{
	if (err)
		bench_fail(what, err);
}

void *bench_need(const char *what, void *object)
{
	if (!object)
		bench_fail(what, errno);
	return object;
}

void bench_poll_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int taken;

	while (!(taken = ibv_poll_cq(cq, 1, &wc)))
		;
	if (taken < 0 || wc.status != IBV_WC_SUCCESS)
		bench_fail("poll_cq", EIO);
}

static double each_ns(bench_way *way, void *arg, uint64_t count)
{
	uint64_t began_ns = bench_now_ns();

	if (!way)
		return 0;
	way(arg, count);
	return (double)(bench_now_ns() - began_ns) / (double)count;
}

static int in_order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double values[ROUNDS])
{
	qsort(values, ROUNDS, sizeof(*values), in_order);
	return values[ROUNDS / 2];
}

struct bench_comparison bench_compare(bench_way *ours, bench_way *theirs, void *arg, uint64_t count)
{
	double our_ns[ROUNDS], their_ns[ROUNDS], ratios[ROUNDS];
	uint64_t each = count / ROUNDS + 1;

	for (int i = 0; i < ROUNDS; i++) {
		our_ns[i] = each_ns(ours, arg, each);
		their_ns[i] = each_ns(theirs, arg, each);
		ratios[i] = ours && theirs ? our_ns[i] / their_ns[i] : 0;
	}
	return (struct bench_comparison){median(our_ns), median(their_ns), median(ratios)};
}

static struct ibv_context *open_named(const char *name)
{
	struct ibv_device **list = bench_need("device list", vb_get_device_list("sim", NULL));
	struct ibv_context *context = NULL;

	for (unsigned int i = 0; list[i]; i++)
		if (strcmp(vb_get_device_name(list[i]), name) == 0)
			context = bench_need(name, vb_open_device(list[i]));
	vb_free_device_list(list);
	return bench_need(name, context);
}

void bench_open_node(struct bench_node *node, const char *name, size_t buffer_bytes, int cqe)
{
	node->context = open_named(name);
	node->pd = bench_need("PD", vb_alloc_pd(node->context));
	node->cq = bench_need("CQ", vb_create_cq(node->context, cqe, NULL, NULL, 0));
	/* Index 0 is the GID of the link-local address, index 1 of the IPv4 address. */
	bench_check("GID", vb_query_gid(node->context, 1, 1, &node->gid) ? errno : 0);
	if (!buffer_bytes)
		return;
	node->buffer = bench_need(
		"memory", aligned_alloc(BUFFER_ALIGNMENT, (buffer_bytes + BUFFER_ALIGNMENT - 1) &
								  -(size_t)BUFFER_ALIGNMENT));
	memset(node->buffer, 0, buffer_bytes);
	node->mr = bench_need("MR",
			      vb_reg_mr(node->pd, node->buffer, buffer_bytes,
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
						IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC));
}

void bench_open(struct bench_pair *pair, size_t buffer_bytes, int cqe)
{
	*pair = (struct bench_pair){0};
	bench_open_node(&pair->a, "sim0", buffer_bytes, cqe);
	bench_open_node(&pair->b, "sim1", buffer_bytes, cqe);
}

void bench_close_node(struct bench_node *node)
{
	if (node->qp)
		bench_check("destroy QP", vb_destroy_qp(node->qp));
	if (node->mr)
		bench_check("deregister MR", vb_dereg_mr(node->mr));
	free(node->buffer);
	bench_check("destroy CQ", vb_destroy_cq(node->cq));
	bench_check("deallocate PD", vb_dealloc_pd(node->pd));
	bench_check("close", vb_close_device(node->context) ? errno : 0);
}

void bench_close(struct bench_pair *pair)
{
	bench_close_node(&pair->a);
	bench_close_node(&pair->b);
}

struct ibv_qp *bench_qp(struct bench_node *node, uint32_t depth)
{
	struct ibv_qp_init_attr init = {
		.send_cq = node->cq,
		.recv_cq = node->cq,
		.cap = {.max_send_wr = depth,
			.max_recv_wr = depth,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	return bench_need("QP", vb_create_qp(node->pd, &init));
}

void bench_connect(struct ibv_qp *qp, const struct bench_node *peer, uint32_t qpn)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .sgid_index = 1, .hop_limit = 64}},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 18, /* a busy machine may stop a process for long */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	bench_check("to INIT", vb_modify_qp(qp, &init,
					    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						    IBV_QP_ACCESS_FLAGS));
	bench_check("to RTR",
		    vb_modify_qp(qp, &rtr,
				 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					 IBV_QP_MIN_RNR_TIMER));
	bench_check("to RTS",
		    vb_modify_qp(qp, &rts,
				 IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

void bench_join(struct bench_pair *pair, uint32_t depth)
{
	pair->a.qp = bench_qp(&pair->a, depth);
	pair->b.qp = bench_qp(&pair->b, depth);
	bench_connect(pair->a.qp, &pair->b, pair->b.qp->qp_num);
	bench_connect(pair->b.qp, &pair->a, pair->a.qp->qp_num);
}

void bench_print_packets(const struct bench_pair *pair)
{
	const struct bench_node *const nodes[] = {&pair->a, &pair->b};
	struct vb_sim_counters counters;

	for (unsigned int i = 0; i < 2; i++) {
		bench_check("counters", vb_sim_counters(nodes[i]->context, &counters));
		printf("packets: %s sent %" PRIu64 " received %" PRIu64 " lost %" PRIu64
		       " retransmitted %" PRIu64 " sequence NAKs sent %" PRIu64 " timeouts %" PRIu64
		       "\n",
		       vb_get_device_name(nodes[i]->context->device), counters.sent_packets,
		       counters.received_packets, counters.lost_packets,
		       counters.retransmitted_packets, counters.sequence_naks_sent,
		       counters.ack_timeouts);
	}
}
