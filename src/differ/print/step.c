/* SPDX-License-Identifier: MIT */
#include "src/differ/print/step.h"

#include <inttypes.h>
#include <verbena/verbs.h>

/* "at(2, 100)": the address of a place. */
#define PLACE_FORMAT	  "at(%u, %u)"
#define PLACE_ARGS(place) (place).region, (place).offset

/* The C variable of a slot. */
static const char *object(enum vd_kind kind, unsigned int slot, char buffer[16])
{
	snprintf(buffer, 16, "%s%u", vd_kinds[kind].name, slot % vd_kinds[kind].slots);
	return buffer;
}

/* Prints the check of a verb that makes an object. */
static void print_made(struct vd_print *print, const struct vd_step *step, int answer)
{
	char name[16];

	object(vd_verbs[step->verb].kind, step->slot, name);
	if (answer) {
		fprintf(print->out, "\tVT_CHECK(t, !%s && errno == %d);\n", name, answer);
		return;
	}
	fprintf(print->out, "\tVT_CHECK(t, %s);\n", name);
	if (step->verb == VD_REG_MR)
		fprintf(print->out, "\tmr_lkey[%u] = %s->lkey, mr_rkey[%u] = %s->rkey;\n",
			step->slot, name, step->slot, name);
	if (step->verb == VD_ALLOC_MW)
		fprintf(print->out, "\tmw_rkey[%u] = %s->rkey;\n", step->slot, name);
}

static void print_make(struct vd_print *print, const struct vd_step *step, int answer)
{
	FILE *out = print->out;
	char name[16];

	fprintf(out, "\t%s = ", object(vd_verbs[step->verb].kind, step->slot, name));
	switch (step->verb) {
	case VD_ALLOC_PD:
		fprintf(out, "vb_alloc_pd(t->a.ctx);\n");
		break;
	case VD_REG_MR:
		fprintf(out, "vb_reg_mr(pd%u, (void *)" PLACE_FORMAT ", %" PRIu64 ", %#x);\n",
			step->pd, PLACE_ARGS(step->at), step->length, step->access);
		break;
	case VD_ALLOC_MW:
		fprintf(out, "vb_alloc_mw(pd%u, %s);\n", step->pd,
			step->mw_type == IBV_MW_TYPE_1 ? "IBV_MW_TYPE_1" : "IBV_MW_TYPE_2");
		break;
	case VD_CREATE_CQ:
		fprintf(out, "vb_create_cq(t->a.ctx, %d, NULL, %s, 0);\n", (int)step->count,
			step->flags & VD_CQ_CHANNEL ? "channel" : "NULL");
		break;
	case VD_CREATE_SRQ:
		fprintf(out,
			"vb_create_srq(pd%u, &(struct ibv_srq_init_attr){\n"
			"\t\t.attr = {.max_wr = %u, .max_sge = %u}});\n",
			step->pd, step->count, step->recv_sge);
		break;
	default:
		fprintf(out,
			"vb_create_qp(pd%u, &(struct ibv_qp_init_attr){\n"
			"\t\t.send_cq = cq%u, .recv_cq = cq%u, ",
			step->pd, step->cq, step->recv_cq);
		if (step->has_srq)
			fprintf(out, ".srq = srq%u, ", step->srq);
		fprintf(out,
			".qp_type = IBV_QPT_%s, .sq_sig_all = %d,\n\t\t.cap = {%u, %u, %u, %u, "
			"%u}});\n",
			vb_qp_type_str(step->type), step->signal_all, step->send_wr, step->count,
			step->send_sge, step->recv_sge, step->inline_bytes);
		break;
	}
	print_made(print, step, answer);
}

static void print_make_ah(struct vd_print *print, const struct vd_step *step, int answer)
{
	static const char *const changes[] = {
		[0] = "",
		[VD_AH_NO_GRH] = "\t\tattr.is_global = 0;\n",
		[VD_AH_BAD_PORT] = "\t\tattr.port_num = 9;\n",
		[VD_AH_BAD_GID] = "\t\tattr.grh.sgid_index = 250;\n",
		[VD_AH_GROUP] = "\t\tattr.grh.dgid = group;\n",
	};

	fprintf(print->out,
		"\t{\n\t\tstruct ibv_ah_attr attr = way;\n\n%s\t\tah%u = vb_create_ah(pd%u, "
		"&attr);\n\t}\n",
		changes[step->flags], step->slot, step->pd);
	print_made(print, step, answer);
}

/* --- queue pairs --- */

static void print_attr(struct vd_print *print, unsigned int slot, unsigned int peer,
		       const struct vd_modify *modify, int mask, int answer)
{
	struct ibv_qp_attr attr = vd_attributes(slot, peer, modify);
	bool there = print->live[VD_QP][peer % vd_kinds[VD_QP].slots];
	char name[16];

	fprintf(print->out,
		"\t{\n\t\tstruct ibv_ah_attr av = way;\n\n"
		"\t\tav.grh.sgid_index += %u;\n\t\tav.is_global = %s;\n"
		"\t\tmodify(t, qp%u, (struct ibv_qp_attr){\n"
		"\t\t\t.qp_state = %d, .cur_qp_state = IBV_QPS_RTS, .en_sqd_async_notify = 1,\n"
		"\t\t\t.path_mtu = %u, .qkey = %#x, .rq_psn = %#x, .sq_psn = %#x,\n",
		modify->sgid_add, modify->no_grh ? "0" : "way.is_global", slot, attr.qp_state,
		attr.path_mtu, attr.qkey, attr.rq_psn, attr.sq_psn);
	if (there)
		fprintf(print->out, "\t\t\t.dest_qp_num = %s->qp_num | %#x, ",
			object(VD_QP, peer, name), modify->wide ? VD_WIDE : 0);
	else
		fprintf(print->out, "\t\t\t.dest_qp_num = %#x, ", attr.dest_qp_num);
	fprintf(print->out,
		".qp_access_flags = %#x, .ah_attr = av, .pkey_index = %u,\n"
		"\t\t\t.max_rd_atomic = %u, .max_dest_rd_atomic = %u, .min_rnr_timer = %u,\n"
		"\t\t\t.port_num = %u, .timeout = %u, .retry_cnt = %u, .rnr_retry = %u}, %#x, %d);"
		"\n\t}\n",
		attr.qp_access_flags, attr.pkey_index, attr.max_rd_atomic, attr.max_dest_rd_atomic,
		attr.min_rnr_timer, attr.port_num, attr.timeout, attr.retry_cnt, attr.rnr_retry,
		mask, answer);
}

static enum ibv_qp_type type_of(const struct vd_print *print, unsigned int slot)
{
	return print->program->steps[print->maker[VD_QP][slot % vd_kinds[VD_QP].slots]].type;
}

/* A connection that fails stops at some step in between, so the test holds only one that
 * succeeds. */
static void print_connect(struct vd_print *print, const struct vd_step *step, int answer)
{
	unsigned int ends = step->slot == step->qp ? 1 : 2;

	if (answer)
		fprintf(print->out, "\t/* connecting qp%u and qp%u answers %d */\n", step->slot,
			step->qp, answer);
	for (unsigned int i = 0; !answer && i < ends * VD_CLIMB; i++) {
		unsigned int slot = i < VD_CLIMB ? step->slot : step->qp;
		unsigned int peer = i < VD_CLIMB ? step->qp : step->slot;
		struct vd_modify modify = step->modify;

		modify.state = vd_climb[i % VD_CLIMB];
		print_attr(print, slot, peer, &modify,
			   vd_required_mask(type_of(print, slot), modify.state), 0);
	}
}

static void print_modify(struct vd_print *print, const struct vd_step *step, int answer)
{
	print_attr(print, step->slot, step->modify.peer, &step->modify,
		   vd_modify_mask(type_of(print, step->slot), &step->modify), answer);
}

static void print_query(struct vd_print *print, const struct vd_step *step,
			const struct vd_outcome *outcome)
{
	fprintf(print->out,
		"\t{\n\t\tstruct ibv_qp_init_attr init;\n\t\tstruct ibv_qp_attr attr;\n\n"
		"\t\tVT_EQ(t, vb_query_qp(qp%u, &attr, IBV_QP_STATE, &init), %d);\n",
		step->slot, outcome->answer);
	if (!outcome->answer)
		fprintf(print->out, "\t\tVT_EQ(t, attr.qp_state, %u);\n", outcome->values[0]);
	fprintf(print->out, "\t\t/* values:");
	for (unsigned int i = 0; i < outcome->value_count; i++)
		if (outcome->values[i] == VD_UNSET)
			fprintf(print->out, " -");
		else
			fprintf(print->out, " %#x", outcome->values[i]);
	fprintf(print->out, " */\n\t}\n");
}

/* --- work requests --- */

static void print_key(struct vd_print *print, struct vd_key key, bool remote)
{
	if (key.of == VD_KEY_NONE)
		fprintf(print->out, "%#x", key.flip);
	else if (key.of == VD_KEY_MW)
		fprintf(print->out, "%s", remote ? "mw_rkey" : "0");
	else
		fprintf(print->out, "%s", remote ? "mr_rkey" : "mr_lkey");
	if (key.of == VD_KEY_MR || (key.of == VD_KEY_MW && remote))
		fprintf(print->out, "[%u]",
			key.slot % vd_kinds[key.of == VD_KEY_MR ? VD_MR : VD_MW].slots);
	if (key.of != VD_KEY_NONE && key.flip)
		fprintf(print->out, " ^ %#x", key.flip);
}

static void print_sges(struct vd_print *print, const struct vd_step *step)
{
	fprintf(print->out, "\t\tstruct ibv_sge sges[%u][%u] = {\n", step->wr_count, VD_SGES_MAX);
	for (unsigned int i = 0; i < step->wr_count; i++) {
		fprintf(print->out, "\t\t\t{");
		for (unsigned int sge = 0; sge < step->wrs[i].sge_count; sge++) {
			const struct vd_sge *at = &step->wrs[i].sges[sge];

			fprintf(print->out, "%s{" PLACE_FORMAT ", %u, ", sge ? ", " : "",
				PLACE_ARGS(at->at), at->length);
			print_key(print, at->key, false);
			fprintf(print->out, "}");
		}
		fprintf(print->out, "},\n");
	}
	fprintf(print->out, "\t\t};\n");
}

static void print_remote(struct vd_print *print, const struct vd_step *step, const struct vd_wr *wr)
{
	FILE *out = print->out;

	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		fprintf(out, ", .invalidate_rkey = ");
		print_key(print, wr->key, true);
		break;
	case IBV_WR_BIND_MW:
		fprintf(out,
			",\n\t\t\t .bind_mw = {.mw = mw%u, .rkey = mw_rkey[%u] = "
			"ibv_inc_rkey(mw_rkey[%u]),\n\t\t\t .bind_info = {mr%u, " PLACE_FORMAT
			", %u, %#x}}",
			wr->mw, wr->mw, wr->mw, wr->mr, PLACE_ARGS(wr->remote), wr->bind_bytes,
			wr->access);
		return;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		fprintf(out, ",\n\t\t\t .wr.atomic = {" PLACE_FORMAT ", %#x, ~UINT64_C(%#x), ",
			PLACE_ARGS(wr->remote), wr->imm, wr->imm);
		print_key(print, wr->key, true);
		fprintf(out, "}");
		return;
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		fprintf(out, ", .imm_data = htonl(%#x)", wr->imm);
		break;
	default:
		break;
	}
	if (type_of(print, step->slot) == IBV_QPT_UD) {
		fprintf(out, ",\n\t\t\t .wr.ud = {ah%u, ", wr->ah);
		if (print->program->steps[print->maker[VD_AH][wr->ah]].flags == VD_AH_GROUP)
			fprintf(out, "0xffffff");
		else if (print->live[VD_QP][wr->peer_qp])
			fprintf(out, "qp%u->qp_num", wr->peer_qp);
		else
			fprintf(out, "0xfffff0");
		fprintf(out, ", %#x}", wr->qkey);
	} else {
		fprintf(out, ",\n\t\t\t .wr.rdma = {" PLACE_FORMAT ", ", PLACE_ARGS(wr->remote));
		print_key(print, wr->key, true);
		fprintf(out, "}");
	}
}

static void print_wrs(struct vd_print *print, unsigned int at, const struct vd_step *step)
{
	bool sends = step->verb == VD_POST_SEND;

	fprintf(print->out, "\t\tstruct ibv_%s_wr wrs[%u] = {\n", sends ? "send" : "recv",
		step->wr_count);
	for (unsigned int i = 0; i < step->wr_count; i++) {
		const struct vd_wr *wr = &step->wrs[i];

		fprintf(print->out, "\t\t\t{.wr_id = %#" PRIx64 ", ", vd_wr_id(at, i, !sends));
		if (i + 1 < step->wr_count)
			fprintf(print->out, ".next = &wrs[%u], ", i + 1);
		fprintf(print->out, ".sg_list = sges[%u], .num_sge = %u", i, wr->sge_count);
		if (sends) {
			fprintf(print->out, ",\n\t\t\t .opcode = IBV_WR_%s, .send_flags = %#x",
				vb_wr_opcode_str(wr->opcode), wr->flags);
			print_remote(print, step, wr);
		}
		fprintf(print->out, "},\n");
	}
	fprintf(print->out, "\t\t}, *bad = NULL;\n\n");
}

static void print_post(struct vd_print *print, unsigned int at, const struct vd_outcome *outcome)
{
	const struct vd_step *step = &print->program->steps[at];
	char name[16];

	fprintf(print->out, "\t{\n");
	print_sges(print, step);
	print_wrs(print, at, step);
	fprintf(print->out, "\t\tVT_EQ(t, ibv_%s(%s, wrs, &bad), %d);\n", vd_verbs[step->verb].name,
		object(vd_verbs[step->verb].kind, step->slot, name), outcome->answer);
	if (outcome->answer && outcome->bad >= 0)
		fprintf(print->out, "\t\tVT_CHECK(t, bad == &wrs[%d]);\n", outcome->bad);
	fprintf(print->out, "\t}\n");
}

/* --- the others --- */

static void print_change_memory(struct vd_print *print, const struct vd_step *step,
				const struct vd_outcome *outcome)
{
	FILE *out = print->out;

	if (step->verb == VD_REREG_MR) {
		fprintf(out,
			"\tVT_EQ(t, vb_rereg_mr(mr%u, %#x, pd%u, (void *)" PLACE_FORMAT ", %" PRIu64
			", %#x), %d);\n"
			"\tmr_lkey[%u] = mr%u->lkey, mr_rkey[%u] = mr%u->rkey;\n",
			step->slot, step->flags, step->pd, PLACE_ARGS(step->at), step->length,
			step->access, (int)outcome->values[0], step->slot, step->slot, step->slot,
			step->slot);
		return;
	}
	fprintf(out,
		"\tVT_EQ(t, vb_bind_mw(qp%u, mw%u, &(struct ibv_mw_bind){\n"
		"\t\t.wr_id = %#" PRIx64 ", .send_flags = IBV_SEND_SIGNALED,\n"
		"\t\t.bind_info = {mr%u, " PLACE_FORMAT ", %" PRIu64 ", %#x}}), %d);\n",
		step->qp, step->slot,
		vd_wr_id((unsigned int)(step - print->program->steps), 0, false), step->mr,
		PLACE_ARGS(step->at), step->length, step->access, outcome->answer);
	if (!outcome->answer)
		fprintf(out, "\tmw_rkey[%u] = mw%u->rkey;\n", step->slot, step->slot);
}

static void print_call(struct vd_print *print, const struct vd_step *step, int answer)
{
	char name[16], arguments[80] = "";

	object(vd_verbs[step->verb].kind, step->slot, name);
	if (step->verb == VD_RESIZE_CQ)
		snprintf(arguments, sizeof(arguments), ", %d", (int)step->count);
	else if (step->verb == VD_REQ_NOTIFY_CQ)
		snprintf(arguments, sizeof(arguments), ", %u", step->flags);
	else if (step->verb == VD_MODIFY_SRQ)
		snprintf(arguments, sizeof(arguments),
			 ", &(struct ibv_srq_attr){.max_wr = %u, .srq_limit = %u}, %#x",
			 step->count, step->count, step->flags);
	else if (step->verb == VD_QUERY_SRQ)
		snprintf(arguments, sizeof(arguments), ", &(struct ibv_srq_attr){0}");
	else if (step->verb == VD_ATTACH_MCAST)
		snprintf(arguments, sizeof(arguments), ", %s, 0",
			 step->flags ? "&t->a.gid" : "&group");
	else if (step->verb == VD_DETACH_MCAST)
		snprintf(arguments, sizeof(arguments), ", &group, 0");
	fprintf(print->out, "\tVT_EQ(t, %s%s(%s%s), %d);\n",
		step->verb == VD_REQ_NOTIFY_CQ ? "ibv_" : "vb_", vd_verbs[step->verb].name, name,
		arguments, answer);
}

void vd_print_step(struct vd_print *print, unsigned int at)
{
	const struct vd_step *step = &print->program->steps[at];
	const struct vd_outcome *outcome = &print->record->outcomes[at];

	switch (step->verb) {
	case VD_CREATE_AH:
		print_make_ah(print, step, outcome->answer);
		break;
	case VD_CONNECT_QP:
		print_connect(print, step, outcome->answer);
		break;
	case VD_MODIFY_QP:
		print_modify(print, step, outcome->answer);
		break;
	case VD_QUERY_QP:
		print_query(print, step, outcome);
		break;
	case VD_POST_SEND:
	case VD_POST_RECV:
	case VD_POST_SRQ_RECV:
		print_post(print, at, outcome);
		break;
	case VD_REREG_MR:
	case VD_BIND_MW:
		print_change_memory(print, step, outcome);
		break;
	case VD_POLL_CQ: /* print.c prints the completions */
		break;
	default:
		if (vd_makes(step->verb))
			print_make(print, step, outcome->answer);
		else
			print_call(print, step, outcome->answer);
		break;
	}
}
