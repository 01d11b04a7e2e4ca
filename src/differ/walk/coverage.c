/* SPDX-License-Identifier: MIT */
#include "src/differ/walk/coverage.h"

#include "src/base/count.h"

#include <errno.h>
#include <verbena/verbs.h>

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

static void cover_wrs(struct vd_coverage *coverage, const struct vd_program *program,
		      const struct vd_record *record, unsigned int at)
{
	const struct vd_step *step = &program->steps[at];
	int made = vd_maker(program, record, at, VD_QP, step->slot);
	enum ibv_qp_type type = made < 0 ? 0 : program->steps[made].type;
	int bad = record->outcomes[at].bad;
	unsigned int taken = bad >= 0			   ? (unsigned int)bad
			     : record->outcomes[at].answer ? 0
							   : step->wr_count;

	for (unsigned int i = 0; i < taken && type <= IBV_QPT_UD; i++)
		if (step->wrs[i].opcode < VD_OPCODES_MAX)
			coverage->wrs[step->wrs[i].opcode][type]++;
}

void vd_cover(struct vd_coverage *coverage, const struct vd_program *program,
	      const struct vd_record *record)
{
	coverage->programs++;
	for (unsigned int i = 0; i < record->step_count; i++) {
		int answer = record->outcomes[i].answer;

		if (answer == VD_SKIPPED)
			continue;
		coverage->steps++;
		if (answer >= 0 && answer < VD_ERRNOS_MAX)
			coverage->answers[program->steps[i].verb][answer]++;
		if (program->steps[i].verb == VD_POST_SEND)
			cover_wrs(coverage, program, record, i);
	}
	for (unsigned int i = 0; i < record->completion_count; i++)
		if ((unsigned int)record->completions[i].status < VD_STATUSES_MAX)
			coverage->statuses[record->completions[i].status]++;
	for (unsigned int i = 0; i < record->event_count; i++)
		if (record->events[i].type == VD_EVENT_COMPLETION)
			coverage->completion_events++;
		else if ((unsigned int)record->events[i].type < VD_EVENTS_KNOWN)
			coverage->events[record->events[i].type]++;
}

static void print_answers(const struct vd_coverage *coverage, FILE *out)
{
	char buffer[16];

	for (unsigned int verb = 0; verb < VD_VERBS; verb++) {
		fprintf(out, "  %-15s", vd_verbs[verb].name);
		for (int error = 0; error < VD_ERRNOS_MAX; error++)
			if (coverage->answers[verb][error])
				fprintf(out, " %s %lu", vd_answer_name(error, buffer),
					coverage->answers[verb][error]);
		fprintf(out, "\n");
	}
}

static void print_wrs(const struct vd_coverage *coverage, FILE *out)
{
	for (unsigned int opcode = 0; opcode < VD_OPCODES_MAX; opcode++) {
		fprintf(out, "  %-20s", vb_wr_opcode_str(opcode));
		for (unsigned int i = 0; i < COUNT(types); i++)
			fprintf(out, " %s %lu", vb_qp_type_str(types[i]),
				coverage->wrs[opcode][types[i]]);
		fprintf(out, "\n");
	}
}

void vd_print_coverage(const struct vd_coverage *coverage, FILE *out)
{
	fprintf(out, "%lu steps in %lu programs\nverbs by answer:\n", coverage->steps,
		coverage->programs);
	print_answers(coverage, out);
	fprintf(out, "work requests by type of the QP:\n");
	print_wrs(coverage, out);
	fprintf(out, "completions:\n ");
	for (int status = 0; status < VD_STATUSES_MAX; status++)
		if (coverage->statuses[status])
			fprintf(out, " %s %lu", vd_status_name(status), coverage->statuses[status]);
	fprintf(out, "\nevents:\n  completion %lu", coverage->completion_events);
	for (int type = 0; type < VD_EVENTS_KNOWN; type++)
		if (coverage->events[type])
			fprintf(out, " %s %lu", vd_event_name(type), coverage->events[type]);
	fprintf(out, "\n");
}

/* --- minima --- */

enum counted { ANSWERS, WRS, STATUSES, EVENTS, COMPLETION_EVENTS };

/* The least count in 10,000 steps, about a third of what walks reach. */
static const struct minimum {
	enum counted of;
	unsigned int what; /* verb, opcode, status, event */
	unsigned int by;   /* errno, type of the QP */
	unsigned long least;
	bool is_spec; /* only a device with the profile spec reaches it */
} minima[] = {
	{ANSWERS, VD_ALLOC_PD, 0, 121},
	{ANSWERS, VD_DEALLOC_PD, 0, 3, true},
	{ANSWERS, VD_DEALLOC_PD, EBUSY, 3},
	{ANSWERS, VD_REG_MR, 0, 167},
	{ANSWERS, VD_REG_MR, EINVAL, 21},
	{ANSWERS, VD_REREG_MR, 0, 5, true},
	{ANSWERS, VD_REREG_MR, EINVAL, 11},
	{ANSWERS, VD_DEREG_MR, 0, 21},
	{ANSWERS, VD_DEREG_MR, EBUSY, 1, true},
	{ANSWERS, VD_ALLOC_MW, 0, 103},
	{ANSWERS, VD_BIND_MW, 0, 3},
	{ANSWERS, VD_BIND_MW, EINVAL, 15},
	{ANSWERS, VD_DEALLOC_MW, 0, 9},
	{ANSWERS, VD_CREATE_CQ, 0, 175},
	{ANSWERS, VD_CREATE_CQ, EINVAL, 4},
	{ANSWERS, VD_RESIZE_CQ, 0, 15},
	{ANSWERS, VD_RESIZE_CQ, EINVAL, 4},
	{ANSWERS, VD_REQ_NOTIFY_CQ, 0, 46},
	{ANSWERS, VD_POLL_CQ, 0, 45},
	{ANSWERS, VD_DESTROY_CQ, 0, 4},
	{ANSWERS, VD_DESTROY_CQ, EBUSY, 17},
	{ANSWERS, VD_CREATE_SRQ, 0, 45},
	{ANSWERS, VD_CREATE_SRQ, EINVAL, 2},
	{ANSWERS, VD_MODIFY_SRQ, 0, 28},
	{ANSWERS, VD_MODIFY_SRQ, EINVAL, 6},
	{ANSWERS, VD_QUERY_SRQ, 0, 7},
	{ANSWERS, VD_POST_SRQ_RECV, 0, 46},
	{ANSWERS, VD_POST_SRQ_RECV, ENOMEM, 14},
	{ANSWERS, VD_DESTROY_SRQ, 0, 5},
	{ANSWERS, VD_DESTROY_SRQ, EBUSY, 1},
	{ANSWERS, VD_CREATE_QP, 0, 202},
	{ANSWERS, VD_CREATE_QP, EINVAL, 3},
	{ANSWERS, VD_CONNECT_QP, 0, 177},
	{ANSWERS, VD_CONNECT_QP, EINVAL, 14},
	{ANSWERS, VD_MODIFY_QP, 0, 456},
	{ANSWERS, VD_MODIFY_QP, EINVAL, 130},
	{ANSWERS, VD_QUERY_QP, 0, 51},
	{ANSWERS, VD_POST_RECV, 0, 308},
	{ANSWERS, VD_POST_RECV, EINVAL, 32},
	{ANSWERS, VD_POST_RECV, ENOMEM, 35},
	{ANSWERS, VD_POST_SEND, 0, 462},
	{ANSWERS, VD_POST_SEND, EINVAL, 49},
	{ANSWERS, VD_POST_SEND, ENOMEM, 7},
	{ANSWERS, VD_ATTACH_MCAST, 0, 8},
	{ANSWERS, VD_ATTACH_MCAST, EINVAL, 13},
	{ANSWERS, VD_DETACH_MCAST, 0, 4},
	{ANSWERS, VD_DETACH_MCAST, EINVAL, 16},
	{ANSWERS, VD_DESTROY_QP, 0, 31},
	{ANSWERS, VD_CREATE_AH, 0, 37},
	{ANSWERS, VD_CREATE_AH, EINVAL, 7, true},
	{ANSWERS, VD_DESTROY_AH, 0, 4},
	{WRS, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_QPT_RC, 25},
	{WRS, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_QPT_RC, 17},
	{WRS, IBV_WR_BIND_MW, IBV_QPT_RC, 50},
	{WRS, IBV_WR_LOCAL_INV, IBV_QPT_RC, 18},
	{WRS, IBV_WR_RDMA_READ, IBV_QPT_RC, 47},
	{WRS, IBV_WR_RDMA_WRITE, IBV_QPT_RC, 72},
	{WRS, IBV_WR_RDMA_WRITE, IBV_QPT_UC, 17},
	{WRS, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_QPT_RC, 47},
	{WRS, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_QPT_UC, 13},
	{WRS, IBV_WR_SEND, IBV_QPT_RC, 132},
	{WRS, IBV_WR_SEND, IBV_QPT_UC, 26},
	{WRS, IBV_WR_SEND, IBV_QPT_UD, 61},
	{WRS, IBV_WR_SEND_WITH_IMM, IBV_QPT_RC, 46},
	{WRS, IBV_WR_SEND_WITH_IMM, IBV_QPT_UC, 14},
	{WRS, IBV_WR_SEND_WITH_IMM, IBV_QPT_UD, 38},
	{WRS, IBV_WR_SEND_WITH_INV, IBV_QPT_RC, 23},
	{STATUSES, IBV_WC_LOC_ACCESS_ERR, 0, 1, true},
	{STATUSES, IBV_WC_LOC_LEN_ERR, 0, 4, true},
	{STATUSES, IBV_WC_LOC_PROT_ERR, 0, 1},
	{STATUSES, IBV_WC_LOC_QP_OP_ERR, 0, 1},
	{STATUSES, IBV_WC_MW_BIND_ERR, 0, 8, true},
	{STATUSES, IBV_WC_REM_ACCESS_ERR, 0, 13},
	{STATUSES, IBV_WC_REM_INV_REQ_ERR, 0, 4},
	{STATUSES, IBV_WC_REM_OP_ERR, 0, 1},
	{STATUSES, IBV_WC_RETRY_EXC_ERR, 0, 25},
	{STATUSES, IBV_WC_RNR_RETRY_EXC_ERR, 0, 8},
	{STATUSES, IBV_WC_SUCCESS, 0, 388},
	{STATUSES, IBV_WC_WR_FLUSH_ERR, 0, 361},
	{EVENTS, IBV_EVENT_CQ_ERR, 0, 5},
	{EVENTS, IBV_EVENT_QP_ACCESS_ERR, 0, 12, true},
	{EVENTS, IBV_EVENT_QP_FATAL, 0, 7, true},
	{EVENTS, IBV_EVENT_QP_LAST_WQE_REACHED, 0, 18, true},
	{EVENTS, IBV_EVENT_QP_REQ_ERR, 0, 5, true},
	{EVENTS, IBV_EVENT_SQ_DRAINED, 0, 6},
	{COMPLETION_EVENTS, 0, 0, 5},
};

/* The count of a minimum; text says what is counted. */
static unsigned long count_of(const struct vd_coverage *coverage, const struct minimum *minimum,
			      char *text, size_t size_bytes)
{
	unsigned int what = minimum->what, by = minimum->by;
	char buffer[16];

	switch (minimum->of) {
	case ANSWERS:
		snprintf(text, size_bytes, "%s %s", vd_verbs[what].name,
			 vd_answer_name((int)by, buffer));
		return coverage->answers[what][by];
	case WRS:
		snprintf(text, size_bytes, "%s %s", vb_wr_opcode_str(what), vb_qp_type_str(by));
		return coverage->wrs[what][by];
	case STATUSES:
		snprintf(text, size_bytes, "%s", vd_status_name((int)what));
		return coverage->statuses[what];
	case EVENTS:
		snprintf(text, size_bytes, "%s", vd_event_name((int)what));
		return coverage->events[what];
	default:
		snprintf(text, size_bytes, "%s", vd_event_name(VD_EVENT_COMPLETION));
		return coverage->completion_events;
	}
}

unsigned int vd_check_minima(const struct vd_coverage *coverage, bool is_spec, FILE *out)
{
	unsigned int missed = 0;
	char text[64];

	if (coverage->steps < VD_MINIMA_STEPS)
		return 0;
	for (unsigned int i = 0; i < COUNT(minima); i++) {
		unsigned long count = count_of(coverage, &minima[i], text, sizeof(text));

		if (count >= minima[i].least || (minima[i].is_spec && !is_spec))
			continue;
		fprintf(out, "too little is covered: %s %lu, at least %lu are wanted\n", text,
			count, minima[i].least);
		missed++;
	}
	return missed;
}
