/* SPDX-License-Identifier: MIT */
#include "test/support/window.h"
#include "test/support/keep.h"
#include "test/support/need.h"

#define WINDOW_BYTES 4096

struct ts_pair *ts_window_pair(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	options.mr_access |= IBV_ACCESS_MW_BIND;
	return ts_pair(t, &options);
}

void ts_need_windows(struct vt *t, enum ibv_mw_type type)
{
	const unsigned int type_2 = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;

	if (type == IBV_MW_TYPE_1)
		ts_need_caps(t, IBV_DEVICE_MEM_WINDOW, "memory windows of type 1");
	else if (!(t->a.device_attr.device_cap_flags & t->b.device_attr.device_cap_flags & type_2))
		VT_SKIP(t, "no memory windows of type 2");
}

struct ibv_mw *ts_mw(struct ts_end *end, enum ibv_mw_type type)
{
	struct ibv_mw *mw = TS_PTR_OR_SKIP(end->t, vb_alloc_mw(end->pd, type));

	ts_keep(end->t, TS_MW, mw);
	return mw;
}

static struct ibv_mw_bind_info info_of(struct ts_end *end, const struct ts_bind *bind)
{
	struct ibv_mw_bind_info info = {
		.mr = bind->mr ? bind->mr : end->mr,
		.addr = bind->address ? bind->address : (uintptr_t)end->buffer + bind->offset,
		.length = bind->length ? bind->length : WINDOW_BYTES,
		.mw_access_flags = bind->access ? bind->access
						: IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	if (bind->no_mr)
		info.mr = NULL;
	if (bind->no_length)
		info.length = 0;
	if (bind->no_mr && bind->no_length)
		info.addr = 0;
	if (bind->no_access)
		info.mw_access_flags = 0;
	return info;
}

static unsigned int flags_of(const struct ts_bind *bind)
{
	return bind->flags | (bind->unsignalled ? 0 : IBV_SEND_SIGNALED);
}

static int bind_type_1(struct ts_end *end, struct ibv_mw *mw, const struct ts_bind *bind)
{
	struct ibv_mw_bind mw_bind = {
		.wr_id = bind->wr_id,
		.send_flags = flags_of(bind),
		.bind_info = info_of(end, bind),
	};

	return vb_bind_mw(end->qp, mw, &mw_bind);
}

/* The next key of a window, as ibv_inc_rkey(3) makes it. */
static uint32_t next_rkey(uint32_t rkey)
{
	return (rkey & 0xffffff00) | ((rkey + 1) & 0xff);
}

static int bind_type_2(struct ts_end *end, struct ibv_mw *mw, const struct ts_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = flags_of(bind),
		.bind_mw = {.mw = mw,
			    .rkey = bind->rkey ? bind->rkey : next_rkey(mw->rkey),
			    .bind_info = info_of(end, bind)},
	};
	const uint32_t rkey = mw->rkey;
	struct ibv_send_wr *bad;
	int error = ibv_post_send(end->qp, &wr, &bad);

	/* Some devices leave the field to the program. */
	if (!error)
		mw->rkey = (rkey & 0xffffff00) | (wr.bind_mw.rkey & 0xff);
	return error;
}

int ts_bind(struct ts_end *end, struct ibv_mw *mw, const struct ts_bind *bind)
{
	return mw->type == IBV_MW_TYPE_1 ? bind_type_1(end, mw, bind) : bind_type_2(end, mw, bind);
}

void ts_bound_at(struct ts_end *end, struct vt_at at, struct ibv_mw *mw, const struct ts_bind *bind)
{
	VT_OK_AT(end->t, at, ts_bind(end, mw, bind));
	ts_expect_at(end->t, at, end->send_cq, bind->wr_id, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
}

void ts_bind_fails_at(struct ts_end *end, struct vt_at at, struct ibv_mw *mw,
		      const struct ts_bind *bind)
{
	VT_OK_AT(end->t, at, ts_bind(end, mw, bind));
	ts_expect_at(end->t, at, end->send_cq, bind->wr_id, IBV_WC_MW_BIND_ERR, 0);
}

int ts_local_inv(struct ts_end *end, uint64_t wr_id, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.opcode = IBV_WR_LOCAL_INV,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = rkey,
	};
	struct ibv_send_wr *bad;

	return ibv_post_send(end->qp, &wr, &bad);
}

static void write_8(struct ts_pair *pair, struct vt_at at, uint32_t rkey, size_t offset)
{
	const struct ts_wr wr = {.wr_id = 0x77,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .length = 8,
				 .remote_offset = offset,
				 .rkey = rkey};

	memset(pair->b.buffer + offset, TS_BLANK, 8);
	VT_OK_AT(pair->a.t, at, ts_post(&pair->a, &wr));
}

void ts_reaches_at(struct ts_pair *pair, struct vt_at at, uint32_t rkey, size_t offset)
{
	write_8(pair, at, rkey, offset);
	ts_expect_at(pair->a.t, at, pair->a.send_cq, 0x77, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
	ts_verify_at(pair->a.t, at, pair->b.buffer + offset, 8, 1);
}

void ts_refused_at(struct ts_pair *pair, struct vt_at at, uint32_t rkey, size_t offset)
{
	write_8(pair, at, rkey, offset);
	ts_expect_at(pair->a.t, at, pair->a.send_cq, 0x77, IBV_WC_REM_ACCESS_ERR, 0);
	ts_blank_at(pair->a.t, at, pair->b.buffer + offset, 8);
}
