/* SPDX-License-Identifier: MIT */
#include "src/differ/walk/coverage.h"

#include "src/base/count.h"

#include <errno.h>
#include <verbena/verbs.h>

static void count(struct vd_coverage *coverage, enum vd_counted of, int what, int by)
{
	if (what >= 0 && what < VD_WHATS_MAX && by >= 0 && by < VD_BYS_MAX)
		coverage->counts[of][what][by]++;
}

static void cover_wrs(struct vd_coverage *coverage, const struct vd_program *program,
		      const struct vd_record *record, unsigned int at)
{
	const struct vd_step *step = &program->steps[at];
	int made = vd_maker(program, record, at, VD_QP, step->slot);
	int bad = record->outcomes[at].bad;
	unsigned int taken = bad >= 0			   ? (unsigned int)bad
			     : record->outcomes[at].answer ? 0
							   : step->wr_count;

	for (unsigned int i = 0; i < taken && made >= 0; i++)
		count(coverage, VD_WRS, (int)step->wrs[i].opcode, (int)program->steps[made].type);
}

void vd_cover(struct vd_coverage *coverage, const struct vd_program *program,
	      const struct vd_record *record, unsigned int steps)
{
	coverage->programs++;
	for (unsigned int i = 0; i < steps; i++) {
		const struct vd_step *step = &program->steps[i];

		coverage->steps += record->outcomes[i].answer != VD_SKIPPED;
		count(coverage, VD_ANSWERS, (int)step->verb, record->outcomes[i].answer);
		if (step->verb == VD_POST_SEND)
			cover_wrs(coverage, program, record, i);
	}
	for (unsigned int i = 0; i < record->completion_count; i++)
		if (record->completions[i].step < steps)
			count(coverage, VD_STATUSES, (int)record->completions[i].status, 0);
	for (unsigned int i = 0; i < record->event_count; i++)
		if (record->events[i].step < steps)
			count(coverage, VD_EVENTS, record->events[i].type, 0);
}

static void print_answers(const struct vd_coverage *coverage, FILE *out)
{
	char buffer[16];

	for (unsigned int verb = 0; verb < VD_VERBS; verb++) {
		const unsigned long *counts = coverage->counts[VD_ANSWERS][verb];

		fprintf(out, "  %-15s", vd_verbs[verb].name);
		for (int error = 0; error < VD_BYS_MAX; error++)
			if (counts[error])
				fprintf(out, " %s %lu", vd_answer_name(error, buffer),
					counts[error]);
		fprintf(out, "\n");
	}
}

void vd_print_coverage(const struct vd_coverage *coverage, FILE *out)
{
	fprintf(out, "%lu steps in %lu programs\nverbs by answer:\n", coverage->steps,
		coverage->programs);
	print_answers(coverage, out);
	fprintf(out, "work requests by type of the QP:\n");
	for (unsigned int i = 0; i <= IBV_WR_SEND_WITH_INV; i++) {
		const unsigned long *counts = coverage->counts[VD_WRS][i];

		fprintf(out, "  %-20s RC %lu UC %lu UD %lu\n", vb_wr_opcode_str(i),
			counts[IBV_QPT_RC], counts[IBV_QPT_UC], counts[IBV_QPT_UD]);
	}
	fprintf(out, "completions:\n ");
	for (int i = 0; i < VD_WHATS_MAX; i++)
		if (coverage->counts[VD_STATUSES][i][0])
			fprintf(out, " %s %lu", vd_status_name(i),
				coverage->counts[VD_STATUSES][i][0]);
	fprintf(out, "\nevents:\n  completion %lu",
		coverage->counts[VD_EVENTS][VD_EVENT_COMPLETION][0]);
	for (int i = 0; i < VD_EVENT_COMPLETION; i++)
		if (coverage->counts[VD_EVENTS][i][0])
			fprintf(out, " %s %lu", vd_event_name(i),
				coverage->counts[VD_EVENTS][i][0]);
	fprintf(out, "\n");
}

/* --- minima --- */

/* The least count in 10,000 steps, about a third of what walks reach. */
static const struct minimum {
	enum vd_counted of;
	int what, by;
	unsigned long least;
	bool is_spec; /* only a device with the profile spec reaches it */
} minima[] = {
	{VD_ANSWERS, VD_ALLOC_PD, 0, 121},
	{VD_ANSWERS, VD_DEALLOC_PD, 0, 3, true},
	{VD_ANSWERS, VD_DEALLOC_PD, EBUSY, 3},
	{VD_ANSWERS, VD_REG_MR, 0, 167},
	{VD_ANSWERS, VD_REG_MR, EINVAL, 21},
	{VD_ANSWERS, VD_REREG_MR, 0, 5, true},
	{VD_ANSWERS, VD_REREG_MR, EINVAL, 11},
	{VD_ANSWERS, VD_DEREG_MR, 0, 21},
	{VD_ANSWERS, VD_DEREG_MR, EBUSY, 1, true},
	{VD_ANSWERS, VD_ALLOC_MW, 0, 103},
	{VD_ANSWERS, VD_BIND_MW, 0, 3},
	{VD_ANSWERS, VD_BIND_MW, EINVAL, 15},
	{VD_ANSWERS, VD_DEALLOC_MW, 0, 9},
	{VD_ANSWERS, VD_CREATE_CQ, 0, 175},
	{VD_ANSWERS, VD_CREATE_CQ, EINVAL, 4},
	{VD_ANSWERS, VD_RESIZE_CQ, 0, 15},
	{VD_ANSWERS, VD_RESIZE_CQ, EINVAL, 4},
	{VD_ANSWERS, VD_REQ_NOTIFY_CQ, 0, 46},
	{VD_ANSWERS, VD_POLL_CQ, 0, 45},
	{VD_ANSWERS, VD_DESTROY_CQ, 0, 4},
	{VD_ANSWERS, VD_DESTROY_CQ, EBUSY, 17},
	{VD_ANSWERS, VD_CREATE_SRQ, 0, 45},
	{VD_ANSWERS, VD_CREATE_SRQ, EINVAL, 2},
	{VD_ANSWERS, VD_MODIFY_SRQ, 0, 28},
	{VD_ANSWERS, VD_MODIFY_SRQ, EINVAL, 6},
	{VD_ANSWERS, VD_QUERY_SRQ, 0, 7},
	{VD_ANSWERS, VD_POST_SRQ_RECV, 0, 46},
	{VD_ANSWERS, VD_POST_SRQ_RECV, ENOMEM, 14},
	{VD_ANSWERS, VD_DESTROY_SRQ, 0, 5},
	{VD_ANSWERS, VD_DESTROY_SRQ, EBUSY, 1},
	{VD_ANSWERS, VD_CREATE_QP, 0, 202},
	{VD_ANSWERS, VD_CREATE_QP, EINVAL, 3},
	{VD_ANSWERS, VD_CONNECT_QP, 0, 177},
	{VD_ANSWERS, VD_CONNECT_QP, EINVAL, 14},
	{VD_ANSWERS, VD_MODIFY_QP, 0, 456},
	{VD_ANSWERS, VD_MODIFY_QP, EINVAL, 130},
	{VD_ANSWERS, VD_QUERY_QP, 0, 51},
	{VD_ANSWERS, VD_POST_RECV, 0, 308},
	{VD_ANSWERS, VD_POST_RECV, EINVAL, 32},
	{VD_ANSWERS, VD_POST_RECV, ENOMEM, 35},
	{VD_ANSWERS, VD_POST_SEND, 0, 462},
	{VD_ANSWERS, VD_POST_SEND, EINVAL, 49},
	{VD_ANSWERS, VD_POST_SEND, ENOMEM, 7},
	{VD_ANSWERS, VD_ATTACH_MCAST, 0, 8},
	{VD_ANSWERS, VD_ATTACH_MCAST, EINVAL, 13},
	{VD_ANSWERS, VD_DETACH_MCAST, 0, 4},
	{VD_ANSWERS, VD_DETACH_MCAST, EINVAL, 16},
	{VD_ANSWERS, VD_DESTROY_QP, 0, 31},
	{VD_ANSWERS, VD_CREATE_AH, 0, 37},
	{VD_ANSWERS, VD_CREATE_AH, EINVAL, 7, true},
	{VD_ANSWERS, VD_DESTROY_AH, 0, 4},
	{VD_WRS, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_QPT_RC, 25},
	{VD_WRS, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_QPT_RC, 17},
	{VD_WRS, IBV_WR_BIND_MW, IBV_QPT_RC, 50},
	{VD_WRS, IBV_WR_LOCAL_INV, IBV_QPT_RC, 18},
	{VD_WRS, IBV_WR_RDMA_READ, IBV_QPT_RC, 47},
	{VD_WRS, IBV_WR_RDMA_WRITE, IBV_QPT_RC, 72},
	{VD_WRS, IBV_WR_RDMA_WRITE, IBV_QPT_UC, 17},
	{VD_WRS, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_QPT_RC, 47},
	{VD_WRS, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_QPT_UC, 13},
	{VD_WRS, IBV_WR_SEND, IBV_QPT_RC, 132},
	{VD_WRS, IBV_WR_SEND, IBV_QPT_UC, 26},
	{VD_WRS, IBV_WR_SEND, IBV_QPT_UD, 61},
	{VD_WRS, IBV_WR_SEND_WITH_IMM, IBV_QPT_RC, 46},
	{VD_WRS, IBV_WR_SEND_WITH_IMM, IBV_QPT_UC, 14},
	{VD_WRS, IBV_WR_SEND_WITH_IMM, IBV_QPT_UD, 38},
	{VD_WRS, IBV_WR_SEND_WITH_INV, IBV_QPT_RC, 23},
	{VD_STATUSES, IBV_WC_LOC_ACCESS_ERR, 0, 1, true},
	{VD_STATUSES, IBV_WC_LOC_LEN_ERR, 0, 4, true},
	{VD_STATUSES, IBV_WC_LOC_PROT_ERR, 0, 1},
	{VD_STATUSES, IBV_WC_LOC_QP_OP_ERR, 0, 1},
	{VD_STATUSES, IBV_WC_MW_BIND_ERR, 0, 8, true},
	{VD_STATUSES, IBV_WC_REM_ACCESS_ERR, 0, 13},
	{VD_STATUSES, IBV_WC_REM_INV_REQ_ERR, 0, 4},
	{VD_STATUSES, IBV_WC_REM_OP_ERR, 0, 1},
	{VD_STATUSES, IBV_WC_RETRY_EXC_ERR, 0, 25},
	{VD_STATUSES, IBV_WC_RNR_RETRY_EXC_ERR, 0, 8},
	{VD_STATUSES, IBV_WC_SUCCESS, 0, 388},
	{VD_STATUSES, IBV_WC_WR_FLUSH_ERR, 0, 361},
	{VD_EVENTS, IBV_EVENT_CQ_ERR, 0, 5},
	{VD_EVENTS, IBV_EVENT_QP_ACCESS_ERR, 0, 12, true},
	{VD_EVENTS, IBV_EVENT_QP_FATAL, 0, 7, true},
	{VD_EVENTS, IBV_EVENT_QP_LAST_WQE_REACHED, 0, 18, true},
	{VD_EVENTS, IBV_EVENT_QP_REQ_ERR, 0, 5, true},
	{VD_EVENTS, IBV_EVENT_SQ_DRAINED, 0, 6},
	{VD_EVENTS, VD_EVENT_COMPLETION, 0, 5},
};

/* Writes what a minimum counts. */
static void describe(const struct minimum *minimum, char *text, size_t size_bytes)
{
	char buffer[16];

	switch (minimum->of) {
	case VD_ANSWERS:
		snprintf(text, size_bytes, "%s %s", vd_verbs[minimum->what].name,
			 vd_answer_name(minimum->by, buffer));
		break;
	case VD_WRS:
		snprintf(text, size_bytes, "%s %s", vb_wr_opcode_str(minimum->what),
			 vb_qp_type_str(minimum->by));
		break;
	case VD_STATUSES:
		snprintf(text, size_bytes, "%s", vd_status_name(minimum->what));
		break;
	default:
		snprintf(text, size_bytes, "%s", vd_event_name(minimum->what));
		break;
	}
}

unsigned int vd_check_minima(const struct vd_coverage *coverage, bool is_spec, FILE *out)
{
	unsigned int missed = 0;
	char text[64];

	for (unsigned int i = 0; i < COUNT(minima) && coverage->steps >= VD_MINIMA_STEPS; i++) {
		const struct minimum *minimum = &minima[i];
		unsigned long reached = coverage->counts[minimum->of][minimum->what][minimum->by];

		if (reached >= minimum->least || (minimum->is_spec && !is_spec))
			continue;
		describe(minimum, text, sizeof(text));
		fprintf(out, "too little is covered: %s %lu, at least %lu are wanted\n", text,
			reached, minimum->least);
		missed++;
	}
	return missed;
}
