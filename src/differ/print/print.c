/* SPDX-License-Identifier: MIT */
#include "src/differ/print/print.h"

#include "src/differ/print/step.h"

#include <inttypes.h>
#include <verbena/verbs.h>

static const char before[] =
	"#include \"test/support/support.h\"\n\n"
	"#include <arpa/inet.h>\n"
	"#include <fcntl.h>\n\n"
	"#define REGION_BYTES %u\n\n"
	"/* With room behind the regions, for places outside them. */\n"
	"static _Alignas(4096) uint8_t memory[%u * REGION_BYTES];\n\n"
	"static uintptr_t __attribute__((unused)) at(unsigned int region, unsigned int offset)\n"
	"{\n\treturn (uintptr_t)memory + region * REGION_BYTES + offset;\n}\n\n"
	"static void __attribute__((unused)) modify(struct vt *t, struct ibv_qp *qp, struct "
	"ibv_qp_attr attr, int mask,\n\t\t   int answer)\n"
	"{\n\tVT_EQ(t, vb_modify_qp(qp, &attr, mask), answer);\n}\n\n";

static bool names(const struct vd_program *program, enum vd_kind kind, unsigned int slot)
{
	for (unsigned int i = 0; i < program->count; i++)
		if (vd_verbs[program->steps[i].verb].kind == kind && program->steps[i].slot == slot)
			return true;
	return false;
}

static void print_declarations(struct vd_print *print)
{
	for (enum vd_kind kind = 0; kind < VD_KINDS; kind++)
		for (unsigned int slot = 0; slot < vd_kinds[kind].slots; slot++)
			if (names(print->program, kind, slot))
				fprintf(print->out, "\tstruct ibv_%s *%s%u = NULL;\n",
					vd_kinds[kind].name, vd_kinds[kind].name, slot);
	fprintf(print->out,
		"\tuint32_t __attribute__((unused)) mr_lkey[%u] = {0}, mr_rkey[%u] = {0}, "
		"mw_rkey[%u] = {0};\n"
		"\tstruct ibv_ah_attr __attribute__((unused)) way = ts_av(&t->a, &t->a);\n"
		"\tunion ibv_gid __attribute__((unused)) group = {.raw = {0xff, 0x0e, [15] = 1}};\n"
		"\tstruct ibv_comp_channel *channel = VT_PTR(t, "
		"vb_create_comp_channel(t->a.ctx));\n\n"
		"\tfcntl(channel->fd, F_SETFL, O_NONBLOCK);\n"
		"\tfcntl(t->a.ctx->async_fd, F_SETFL, O_NONBLOCK);\n"
		"\tts_fill(memory, sizeof(memory), 1);\n",
		VD_SLOTS_MAX, VD_SLOTS_MAX, VD_SLOTS_MAX);
}

/* The CQ of a completion. */
static unsigned int cq_of(const struct vd_print *print, const struct vd_completion *completion)
{
	unsigned int qp = completion->qp < 0 ? 0 : (unsigned int)completion->qp;
	const struct vd_step *made = &print->program->steps[print->maker[VD_QP][qp]];

	return vd_wr_id_receives(completion->wr_id) ? made->recv_cq : made->cq;
}

static void print_completions(struct vd_print *print, unsigned int step)
{
	for (unsigned int i = 0; i < print->record->completion_count; i++) {
		const struct vd_completion *completion = &print->record->completions[i];
		char call[160];

		if (completion->step != step)
			continue;
		snprintf(call, sizeof(call),
			 "ts_expect_at(t, VT_HERE, cq%u, %#" PRIx64 ", IBV_WC_%s, %d)",
			 cq_of(print, completion), completion->wr_id,
			 vd_status_name(completion->status), completion->opcode);
		if (completion->status == IBV_WC_SUCCESS && vd_wr_id_receives(completion->wr_id))
			fprintf(print->out,
				"\t{\n\t\tstruct ibv_wc wc = %s;\n\n"
				"\t\tVT_EQ(t, wc.byte_len, %u);\n"
				"\t\tVT_EQ(t, wc.wc_flags, %#x);\n\t}\n",
				call, completion->byte_len, completion->flags);
		else
			fprintf(print->out, "\t%s;\n", call);
	}
}

static void print_events(struct vd_print *print, unsigned int step)
{
	for (unsigned int i = 0; i < print->record->event_count; i++) {
		const struct vd_event *event = &print->record->events[i];

		if (event->step != step)
			continue;
		if (event->type == VD_EVENT_COMPLETION)
			fprintf(print->out,
				"\t{\n\t\tstruct ibv_cq *cq;\n\n"
				"\t\tVT_CHECK(t, ts_cq_event(t, channel, &cq) && cq == "
				"cq%d);\n\t}\n",
				event->slot);
		else
			fprintf(print->out, "\tts_event(t, &t->a, IBV_EVENT_%s, %s%d);\n",
				vd_event_name(event->type), vd_kinds[event->kind].name,
				event->slot);
	}
}

/* Prints the checks that show the difference, if the steps' own checks do not. */
static void print_rest(struct vd_print *print, const struct vd_difference *difference)
{
	const struct vd_outcome *outcome = &print->record->outcomes[difference->step];

	for (unsigned int i = 0; i < vd_kinds[VD_QP].slots; i++)
		if (difference->about == VD_STATE && outcome->states[i] <= IBV_QPS_ERR)
			fprintf(print->out, "\tVT_STATE(t, ts_query_state(t, qp%u), IBV_QPS_%s);\n",
				i, vb_qp_state_str(outcome->states[i]));
	for (unsigned int i = 0; i < vd_kinds[VD_CQ].slots; i++)
		if (difference->about == VD_COMPLETION && print->live[VD_CQ][i])
			fprintf(print->out, "\tts_no_more(t, cq%u);\n", i);
	if (difference->about == VD_EVENT)
		fprintf(print->out, "\tts_no_event(t, &t->a);\n");
	if (difference->about == VD_MEMORY)
		fprintf(print->out, "\t/* the memory differs: see above */\n");
}

static void print_end(struct vd_print *print)
{
	for (unsigned int i = 0; i < VD_KINDS; i++) {
		const struct vd_kind_info *kind = &vd_kinds[vd_ending_order[i]];

		for (unsigned int slot = 0; slot < kind->slots; slot++)
			if (print->live[vd_ending_order[i]][slot])
				fprintf(print->out, "\tVT_OK(t, vb_%s(%s%u));\n",
					vd_verbs[kind->ends].name, kind->name, slot);
	}
	fprintf(print->out, "\tVT_OK(t, vb_destroy_comp_channel(channel));\n}\n\n");
}

/* Notes the objects that a step has made or destroyed. */
static void track(struct vd_print *print, unsigned int at)
{
	const struct vd_step *step = &print->program->steps[at];
	const struct vd_verb_info *verb = &vd_verbs[step->verb];

	if (print->record->outcomes[at].answer || verb->does == VD_USES)
		return;
	print->live[verb->kind][step->slot] = verb->does == VD_MAKES;
	if (verb->does == VD_MAKES)
		print->maker[verb->kind][step->slot] = at;
}

void vd_print_test(const struct vd_program *program, const struct vd_record *left,
		   const struct vd_difference *difference, FILE *out)
{
	struct vd_print print = {.out = out, .program = program, .record = left};
	unsigned long long seed = program->seed;

	fprintf(out, "/* SPDX-License-Identifier: MIT */\n/* Step %u, %s */\n", difference->step,
		difference->text);
	fprintf(out, before, VD_REGION_BYTES, VD_REGIONS + 4);
	fprintf(out, "static void seed_%llu(struct vt *t)\n{\n", seed);
	print_declarations(&print);
	for (unsigned int i = 0; i < program->count && i < left->step_count; i++) {
		fprintf(out, "\n\t/* step %u: %s */\n", i, vd_verbs[program->steps[i].verb].name);
		if (left->outcomes[i].answer == VD_SKIPPED) {
			fprintf(out, "\t/* nothing to call */\n");
			continue;
		}
		vd_print_step(&print, i);
		track(&print, i);
		if (vd_verbs[program->steps[i].verb].flags & VD_SETTLES)
			fprintf(out, "\tts_settle(t);\n");
		print_completions(&print, i);
		print_events(&print, i);
	}
	print_rest(&print, difference);
	print_end(&print);
	fprintf(out,
		"static const struct vt_test tests[] = {\n"
		"\t{\"seed_%llu\", \"unsourced\", 0, seed_%llu},\n\t{NULL},\n};\n\n"
		"extern const struct vt_suite vt_suite_differ;\n"
		"const struct vt_suite vt_suite_differ = {\"differ\", \"found by verbena differ\", "
		"tests};\n",
		seed, seed);
}
