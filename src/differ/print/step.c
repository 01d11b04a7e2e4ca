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

/* --- calls of one line --- */

static void print_sizes(struct vd_print *print, const struct vd_step *step)
{
	fprintf(print->out,
		"pd%u, &(struct ibv_qp_init_attr){\n\t\t.send_cq = cq%u, .recv_cq = cq%u, ",
		step->pd, step->cq, step->recv_cq);
	if (step->has_srq)
		fprintf(print->out, ".srq = srq%u, ", step->srq);
	fprintf(print->out,
		".qp_type = IBV_QPT_%s, .sq_sig_all = %d,\n\t\t.cap = {%u, %u, %u, %u, %u}}",
		vb_qp_type_str(step->type), step->signal_all, step->send_wr, step->count,
		step->send_sge, step->recv_sge, step->inline_bytes);
}

static void print_arguments(struct vd_print *print, const struct vd_step *step, const char *name)
{
	FILE *out = print->out;

	switch (step->verb) {
	case VD_ALLOC_PD:
		fprintf(out, "t->a.ctx");
		break;
	case VD_REG_MR:
		fprintf(out, "pd%u, (void *)" PLACE_FORMAT ", %" PRIu64 ", %#x", step->pd,
			PLACE_ARGS(step->at), step->length, step->access);
		break;
	case VD_REREG_MR:
		fprintf(out, "%s, %#x, pd%u, (void *)" PLACE_FORMAT ", %" PRIu64 ", %#x", name,
			step->flags, step->pd, PLACE_ARGS(step->at), step->length, step->access);
		break;
	case VD_ALLOC_MW:
		fprintf(out, "pd%u, IBV_MW_TYPE_%d", step->pd,
			step->mw_type == IBV_MW_TYPE_1 ? 1 : 2);
		break;
	case VD_BIND_MW:
		fprintf(out,
			"qp%u, %s, &(struct ibv_mw_bind){\n"
			"\t\t.wr_id = %#" PRIx64 ", .send_flags = IBV_SEND_SIGNALED,\n"
			"\t\t.bind_info = {mr%u, " PLACE_FORMAT ", %" PRIu64 ", %#x}}",
			step->qp, name,
			vd_wr_id((unsigned int)(step - print->program->steps), 0, false), step->mr,
			PLACE_ARGS(step->at), step->length, step->access);
		break;
	case VD_CREATE_CQ:
		fprintf(out, "t->a.ctx, %d, NULL, %s, 0", (int)step->count,
			step->flags & VD_CQ_CHANNEL ? "channel" : "NULL");
		break;
	case VD_RESIZE_CQ:
		fprintf(out, "%s, %d", name, (int)step->count);
		break;
	case VD_REQ_NOTIFY_CQ:
		fprintf(out, "%s, %u", name, step->flags);
		break;
	case VD_CREATE_SRQ:
		fprintf(out,
			"pd%u, &(struct ibv_srq_init_attr){\n"
			"\t\t.attr = {.max_wr = %u, .max_sge = %u}}",
			step->pd, step->count, step->recv_sge);
		break;
	case VD_MODIFY_SRQ:
		fprintf(out, "%s, &(struct ibv_srq_attr){.max_wr = %u, .srq_limit = %u}, %#x", name,
			step->count, step->count, step->flags);
		break;
	case VD_QUERY_SRQ:
		fprintf(out, "%s, &(struct ibv_srq_attr){0}", name);
		break;
	case VD_CREATE_QP:
		print_sizes(print, step);
		break;
	case VD_ATTACH_MCAST:
	case VD_DETACH_MCAST:
		fprintf(out, "%s, %s, 0", name, step->flags ? "&t->a.gid" : "&group");
		break;
	case VD_CREATE_AH:
		fprintf(out, "pd%u, &attr", step->pd);
		break;
	default: /* verbs that end an object */
		fprintf(out, "%s", name);
		break;
	}
}

static void print_call(struct vd_print *print, const struct vd_step *step,
		       const struct vd_outcome *outcome)
{
	static const char *const ah_changes[] = {
		[0] = "",
		[VD_AH_NO_GRH] = "\t\tattr.is_global = 0;\n",
		[VD_AH_BAD_PORT] = "\t\tattr.port_num = 9;\n",
		[VD_AH_BAD_GID] = "\t\tattr.grh.sgid_index = 250;\n",
		[VD_AH_GROUP] = "\t\tattr.grh.dgid = group;\n",
	};
	const struct vd_verb_info *verb = &vd_verbs[step->verb];
	bool makes = vd_makes(step->verb), is_ah = step->verb == VD_CREATE_AH;
	FILE *out = print->out;
	char name[16];

	object(verb->kind, step->slot, name);
	if (is_ah)
		fprintf(out, "\t{\n\t\tstruct ibv_ah_attr attr = way;\n\n%s\t",
			ah_changes[step->flags]);
	if (makes)
		fprintf(out, "\t%s = vb_%s(", name, verb->name);
	else
		fprintf(out, "\tVT_EQ(t, %s_%s(", step->verb == VD_REQ_NOTIFY_CQ ? "ibv" : "vb",
			verb->name);
	print_arguments(print, step, name);
	if (!makes)
		fprintf(out, "), %d);\n",
			step->verb == VD_REREG_MR ? (int)outcome->values[0] : outcome->answer);
	else if (outcome->answer)
		fprintf(out, ");\n%s\tVT_CHECK(t, !%s && errno == %d);\n", is_ah ? "\t}\n" : "",
			name, outcome->answer);
	else
		fprintf(out, ");\n%s\tVT_CHECK(t, %s);\n", is_ah ? "\t}\n" : "", name);
	if (step->verb == VD_REREG_MR || (step->verb == VD_REG_MR && !outcome->answer))
		fprintf(out, "\tmr_lkey[%u] = %s->lkey, mr_rkey[%u] = %s->rkey;\n", step->slot,
			name, step->slot, name);
	if ((step->verb == VD_ALLOC_MW || step->verb == VD_BIND_MW) && !outcome->answer)
		fprintf(out, "\tmw_rkey[%u] = %s->rkey;\n", step->slot, name);
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
	const struct vd_kind_info *kind = &vd_kinds[key.of == VD_KEY_MR ? VD_MR : VD_MW];

	if (key.of == VD_KEY_NONE) {
		fprintf(print->out, "%#x", key.flip);
		return;
	}
	if (key.of == VD_KEY_MW && !remote)
		fprintf(print->out, "0");
	else
		fprintf(print->out, "%s_%s[%u]", kind->name, remote ? "rkey" : "lkey",
			key.slot % kind->slots);
	if (key.flip)
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

void vd_print_step(struct vd_print *print, unsigned int at)
{
	const struct vd_step *step = &print->program->steps[at];
	const struct vd_outcome *outcome = &print->record->outcomes[at];

	switch (step->verb) {
	case VD_CONNECT_QP:
		print_connect(print, step, outcome->answer);
		break;
	case VD_MODIFY_QP:
		print_attr(print, step->slot, step->modify.peer, &step->modify,
			   vd_modify_mask(type_of(print, step->slot), &step->modify),
			   outcome->answer);
		break;
	case VD_QUERY_QP:
		print_query(print, step, outcome);
		break;
	case VD_POST_SEND:
	case VD_POST_RECV:
	case VD_POST_SRQ_RECV:
		print_post(print, at, outcome);
		break;
	case VD_POLL_CQ: /* print.c prints the completions */
		break;
	default:
		print_call(print, step, outcome);
		break;
	}
}
