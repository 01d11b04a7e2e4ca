/* SPDX-License-Identifier: MIT */
/* Connected pairs: RC, UC and UD, and what all pairs have in common. */
#include "src/expect/pair.h"

#include "src/base/failure.h"
#include "src/expect/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define DEPTH	     16
#define BUFFER_BYTES 65536
#define TIMEOUT	     14
#define QKEY	     0x11111111

int pair_failed(const char *what)
{
	return fail_because(errno ? errno : EIO, "pair_open: %s", what);
}

/* --- the options --- */

static int check_options(const struct vb_pair_options *options)
{
	const enum ibv_qp_type type = options->type;

	if (type != IBV_QPT_RC && type != IBV_QPT_UC && type != IBV_QPT_UD &&
	    type != IBV_QPT_XRC_SEND)
		return fail(EINVAL, "pair_open: type %d; give IBV_QPT_RC, _UC, _UD or _XRC_SEND",
			    type);
	if (options->srq && type == IBV_QPT_UC)
		return fail(EINVAL, "pair_open: UC QPs have no SRQ; clear `srq`");
	if (options->cm && type != IBV_QPT_RC && type != IBV_QPT_UD)
		return fail(EINVAL, "pair_open: with `cm`, the type is IBV_QPT_RC or IBV_QPT_UD");
	if (options->timeout > 31 || options->retry_cnt > 7 || options->rnr_retry > 8)
		return fail(EINVAL, "pair_open: timeout is 31 at most, retry_cnt 7, rnr_retry 8");
	return 0;
}

static void set_defaults(struct vb_pair_options *options)
{
	if (!options->type)
		options->type = IBV_QPT_RC;
	if (!options->depth)
		options->depth = DEPTH;
	if (!options->buffer_bytes)
		options->buffer_bytes = BUFFER_BYTES;
	if (!options->timeout)
		options->timeout = TIMEOUT;
	if (!options->retry_cnt)
		options->retry_cnt = 7;
	options->rnr_retry = options->rnr_retry ? options->rnr_retry % 8 : 7;
	options->srq |= options->type == IBV_QPT_XRC_SEND;
}

static struct vb_qp_config config_of(const struct pair *pair, const struct vb_pair_end *end)
{
	const struct vb_pair_options *options = &pair->options;
	struct vb_qp_config config;

	vb_qp_config_init(&config);
	config.type = options->type;
	config.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC;
	config.max_send_wr = config.max_recv_wr = options->depth;
	config.max_send_sge = config.max_recv_sge = 1;
	config.timeout = options->timeout;
	config.retry_cnt = options->retry_cnt;
	config.rnr_retry = options->rnr_retry;
	config.sq_psn = (options->psn << (end == &pair->pair.b)) & 0xffffff;
	config.qkey = QKEY;
	config.srq = end->srq;
	return config;
}

/* --- devices and queues --- */

static const char *name_of(const struct pair *pair, int which, const struct vb_devices *devices)
{
	const unsigned int count = vb_devices_count(devices);

	if (pair->options.device[which])
		return pair->options.device[which];
	return count ? vb_devices_at(devices, which && count > 1)->name : "";
}

static int open_device(struct pair *pair, int which)
{
	struct pair_side *side = &pair->sides[which];
	struct vb_devices *devices = vb_devices_get(pair->options.backend);

	if (!devices)
		return pair_failed("listing the devices");
	side->device = vb_device_open_named(pair->options.backend, name_of(pair, which, devices), 0,
					    VB_GID_INDEX_ANY);
	vb_devices_put(devices);
	if (!side->device)
		return pair_failed("opening a device");
	side->end->context = side->device->context;
	return 0;
}

static int make_srq(struct pair *pair, struct vb_pair_end *end)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = pair->options.depth, .max_sge = 1}};

	end->srq = vb_create_srq(end->pd, &attr);
	return end->srq ? 0 : pair_failed("creating an SRQ");
}

int pair_make_queues(struct pair *pair, struct pair_side *side)
{
	struct vb_pair_end *end = side->end;

	end->pd = vb_alloc_pd(end->context);
	if (!end->pd)
		return pair_failed("allocating a PD");
	end->cq = vb_create_cq(end->context, (int)(2 * pair->options.depth), end, NULL, 0);
	if (!end->cq)
		return pair_failed("creating a CQ");
	return pair->options.srq && pair->options.type != IBV_QPT_XRC_SEND ? make_srq(pair, end)
									   : 0;
}

static int open_end(struct pair *pair, int which)
{
	struct pair_side *side = &pair->sides[which];
	int err = open_device(pair, which);

	if (!err)
		err = pair_make_queues(pair, side);
	if (err)
		return err;
	side->region = vb_region_alloc(side->device, side->end->pd, pair->options.buffer_bytes,
				       VB_ACCESS_DEFAULT);
	if (!side->region)
		return pair_failed("registering memory");
	side->end->mr = side->region->mr;
	side->end->buffer = side->region->addr;
	return 0;
}

/* --- RC, UC and UD --- */

static int prepare(struct pair *pair, int which)
{
	struct pair_side *side = &pair->sides[which];
	struct vb_qp_config config = config_of(pair, side->end);

	side->prepared =
		vb_qp_prepare(side->device, side->end->pd, side->end->cq, side->end->cq, &config);
	return side->prepared ? 0 : pair_failed("creating a QP");
}

/* remote: the endpoint of the other end. */
static int shake(struct pair *pair, int which, const struct vb_endpoint *remote)
{
	struct pair_side *side = &pair->sides[which];
	const struct vb_qp_config config = config_of(pair, side->end);
	struct vb_pair_end *end = side->end;

	end->remote_qpn = remote->qpn;
	end->remote_qkey = QKEY;
	if (pair->options.type == IBV_QPT_UD) {
		end->ah = vb_endpoint_ah(side->device, end->pd, &config, remote);
		if (!end->ah)
			return pair_failed("creating an address handle");
	}
	end->qp = vb_handshake(side->prepared, remote);
	if (!end->qp)
		return pair_failed("connecting");
	side->prepared = NULL;
	return 0;
}

static int connect_plainly(struct pair *pair)
{
	struct vb_endpoint endpoints[2];
	int err = prepare(pair, 0);

	if (!err)
		err = prepare(pair, 1);
	if (err)
		return err;
	for (int i = 0; i < 2; i++)
		endpoints[i] = *vb_prepared_endpoint(pair->sides[i].prepared);
	err = shake(pair, 0, &endpoints[1]);
	return err ? err : shake(pair, 1, &endpoints[0]);
}

static int open_pair(struct pair *pair)
{
	int err;

	if (pair->options.cm)
		return pair_open_cm(pair);
	err = open_end(pair, 0);
	if (!err)
		err = open_end(pair, 1);
	if (err)
		return err;
	return pair->options.type == IBV_QPT_XRC_SEND ? pair_open_xrc(pair) : connect_plainly(pair);
}

struct vb_pair *vb_pair_open(const struct vb_pair_options *options)
{
	static const struct vb_pair_options none = {.srq = false};
	struct pair *pair = calloc(1, sizeof(*pair));
	int err;

	if (!pair) {
		fail(ENOMEM, "pair_open: there is no memory");
		return NULL;
	}
	pair->options = options ? *options : none;
	set_defaults(&pair->options);
	pair->sides[0].end = pair->pair.b.peer = &pair->pair.a;
	pair->sides[1].end = pair->pair.a.peer = &pair->pair.b;
	err = check_options(&pair->options);
	if (!err)
		err = open_pair(pair);
	if (!err)
		return &pair->pair;
	/* The sentence of the failure outlives the ending. */
	const char *said = vb_last_error();
	char sentence[1024];

	snprintf(sentence, sizeof(sentence), "%s", said);
	vb_pair_close(&pair->pair);
	failure_say("%s", sentence);
	failure_set_err(err);
	errno = err;
	return NULL;
}

struct vb_pair *vb_expect_pair_at(const char *file, int line, const struct vb_pair_options *options)
{
	struct vb_pair *pair = vb_pair_open(options);

	if (!pair)
		expect_fail_with((struct expect_place){file, line}, "expected a connected pair: %s",
				 vb_last_error());
	return pair;
}

/* --- ending --- */

/* Keeps the error of the first failure. */
static void keep(int *first, int err)
{
	if (err && !*first)
		*first = err;
}

static void end_qps(struct vb_pair_end *end, int *err)
{
	if (end->ah)
		keep(err, vb_destroy_ah(end->ah));
	if (end->qp)
		keep(err, vb_destroy_qp(end->qp));
	if (end->target)
		keep(err, vb_destroy_qp(end->target));
	if (end->srq)
		keep(err, vb_destroy_srq(end->srq));
	if (end->xrcd)
		keep(err, vb_close_xrcd(end->xrcd));
}

static void end_rest(struct pair_side *side, int *err)
{
	struct vb_pair_end *end = side->end;

	if (side->region)
		keep(err, vb_region_free(side->region));
	if (end->cq)
		keep(err, vb_destroy_cq(end->cq));
	if (end->pd)
		keep(err, vb_dealloc_pd(end->pd));
	if (side->device)
		keep(err, vb_device_close(side->device));
}

int vb_pair_close(struct vb_pair *opened)
{
	struct pair *pair = (struct pair *)opened;
	int err = 0;

	if (!pair)
		return 0;
	if (pair->options.cm) {
		err = pair_close_cm(pair);
	} else {
		for (int i = 0; i < 2; i++) {
			keep(&err, vb_prepared_drop(pair->sides[i].prepared));
			end_qps(pair->sides[i].end, &err);
		}
		for (int i = 0; i < 2; i++)
			end_rest(&pair->sides[i], &err);
	}
	free(pair);
	return err;
}
