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

/* The least count in 10,000 steps, about a third of what walks reach. */
struct minimum {
	unsigned int what; /* verb, opcode, status, event */
	unsigned int by;   /* errno, type of the QP */
	unsigned long least;
	bool is_spec; /* only a device with the profile spec reaches it */
};

static const struct minimum answers[] = {
	{VD_ALLOC_PD, 0, 121},
	{VD_DEALLOC_PD, 0, 3, true},
	{VD_DEALLOC_PD, EBUSY, 3},
	{VD_REG_MR, 0, 167},
	{VD_REG_MR, EINVAL, 21},
	{VD_REREG_MR, 0, 5, true},
	{VD_REREG_MR, EINVAL, 11},
	{VD_DEREG_MR, 0, 21},
	{VD_DEREG_MR, EBUSY, 1, true},
	{VD_ALLOC_MW, 0, 103},
	{VD_BIND_MW, 0, 3},
	{VD_BIND_MW, EINVAL, 15},
	{VD_DEALLOC_MW, 0, 9},
	{VD_CREATE_CQ, 0, 175},
	{VD_CREATE_CQ, EINVAL, 4},
	{VD_RESIZE_CQ, 0, 15},
	{VD_RESIZE_CQ, EINVAL, 4},
	{VD_REQ_NOTIFY_CQ, 0, 46},
	{VD_POLL_CQ, 0, 45},
	{VD_DESTROY_CQ, 0, 4},
	{VD_DESTROY_CQ, EBUSY, 17},
	{VD_CREATE_SRQ, 0, 45},
	{VD_CREATE_SRQ, EINVAL, 2},
	{VD_MODIFY_SRQ, 0, 28},
	{VD_MODIFY_SRQ, EINVAL, 6},
	{VD_QUERY_SRQ, 0, 7},
	{VD_POST_SRQ_RECV, 0, 46},
	{VD_POST_SRQ_RECV, ENOMEM, 14},
	{VD_DESTROY_SRQ, 0, 5},
	{VD_DESTROY_SRQ, EBUSY, 1},
	{VD_CREATE_QP, 0, 202},
	{VD_CREATE_QP, EINVAL, 3},
	{VD_CONNECT_QP, 0, 177},
	{VD_CONNECT_QP, EINVAL, 14},
	{VD_MODIFY_QP, 0, 456},
	{VD_MODIFY_QP, EINVAL, 130},
	{VD_QUERY_QP, 0, 51},
	{VD_POST_RECV, 0, 308},
	{VD_POST_RECV, EINVAL, 32},
	{VD_POST_RECV, ENOMEM, 35},
	{VD_POST_SEND, 0, 462},
	{VD_POST_SEND, EINVAL, 49},
	{VD_POST_SEND, ENOMEM, 7},
	{VD_ATTACH_MCAST, 0, 8},
	{VD_ATTACH_MCAST, EINVAL, 13},
	{VD_DETACH_MCAST, 0, 4},
	{VD_DETACH_MCAST, EINVAL, 16},
	{VD_DESTROY_QP, 0, 31},
	{VD_CREATE_AH, 0, 37},
	{VD_CREATE_AH, EINVAL, 7, true},
	{VD_DESTROY_AH, 0, 4},
};

static const struct minimum wrs[] = {
	{IBV_WR_ATOMIC_CMP_AND_SWP, IBV_QPT_RC, 25},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_QPT_RC, 17},
	{IBV_WR_BIND_MW, IBV_QPT_RC, 50},
	{IBV_WR_LOCAL_INV, IBV_QPT_RC, 18},
	{IBV_WR_RDMA_READ, IBV_QPT_RC, 47},
	{IBV_WR_RDMA_WRITE, IBV_QPT_RC, 72},
	{IBV_WR_RDMA_WRITE, IBV_QPT_UC, 17},
	{IBV_WR_RDMA_WRITE_WITH_IMM, IBV_QPT_RC, 47},
	{IBV_WR_RDMA_WRITE_WITH_IMM, IBV_QPT_UC, 13},
	{IBV_WR_SEND, IBV_QPT_RC, 132},
	{IBV_WR_SEND, IBV_QPT_UC, 26},
	{IBV_WR_SEND, IBV_QPT_UD, 61},
	{IBV_WR_SEND_WITH_IMM, IBV_QPT_RC, 46},
	{IBV_WR_SEND_WITH_IMM, IBV_QPT_UC, 14},
	{IBV_WR_SEND_WITH_IMM, IBV_QPT_UD, 38},
	{IBV_WR_SEND_WITH_INV, IBV_QPT_RC, 23},
};

static const struct minimum statuses[] = {
	{IBV_WC_LOC_ACCESS_ERR, 0, 1, true},
	{IBV_WC_LOC_LEN_ERR, 0, 4, true},
	{IBV_WC_LOC_PROT_ERR, 0, 1},
	{IBV_WC_LOC_QP_OP_ERR, 0, 1},
	{IBV_WC_MW_BIND_ERR, 0, 8, true},
	{IBV_WC_REM_ACCESS_ERR, 0, 13},
	{IBV_WC_REM_INV_REQ_ERR, 0, 4},
	{IBV_WC_REM_OP_ERR, 0, 1},
	{IBV_WC_RETRY_EXC_ERR, 0, 25},
	{IBV_WC_RNR_RETRY_EXC_ERR, 0, 8},
	{IBV_WC_SUCCESS, 0, 388},
	{IBV_WC_WR_FLUSH_ERR, 0, 361},
};

#define COMPLETION_EVENTS_LEAST 5ul

static const struct minimum events[] = {
	{IBV_EVENT_CQ_ERR, 0, 5},	    {IBV_EVENT_QP_ACCESS_ERR, 0, 12, true},
	{IBV_EVENT_QP_FATAL, 0, 7, true},   {IBV_EVENT_QP_LAST_WQE_REACHED, 0, 18, true},
	{IBV_EVENT_QP_REQ_ERR, 0, 5, true}, {IBV_EVENT_SQ_DRAINED, 0, 6},
};

static unsigned int missed(const struct minimum *minimum, unsigned long got, bool is_spec,
			   const char *what, const char *by, FILE *out)
{
	if (got >= minimum->least || (minimum->is_spec && !is_spec))
		return 0;
	fprintf(out, "too little is covered: %s%s%s %lu, at least %lu are wanted\n", what,
		*by ? " " : "", by, got, minimum->least);
	return 1;
}

/* The first argument is a name that it declares.
 * NOLINTBEGIN(bugprone-macro-parentheses) */
#define FOR_EACH(minimum, array)                      \
	for (const struct minimum *minimum = (array); \
	     minimum < (array) + sizeof(array) / sizeof((array)[0]); minimum++)
/* NOLINTEND(bugprone-macro-parentheses) */

unsigned int vd_check_minima(const struct vd_coverage *coverage, bool is_spec, FILE *out)
{
	unsigned int count = 0;
	char buffer[16];

	if (coverage->steps < VD_MINIMA_STEPS)
		return 0;
	FOR_EACH(minimum, answers)
	count +=
		missed(minimum, coverage->answers[minimum->what][minimum->by], is_spec,
		       vd_verbs[minimum->what].name, vd_answer_name((int)minimum->by, buffer), out);
	FOR_EACH(minimum, wrs)
	count += missed(minimum, coverage->wrs[minimum->what][minimum->by], is_spec,
			vb_wr_opcode_str(minimum->what), vb_qp_type_str(minimum->by), out);
	FOR_EACH(minimum, statuses)
	count += missed(minimum, coverage->statuses[minimum->what], is_spec,
			vd_status_name((int)minimum->what), "", out);
	FOR_EACH(minimum, events)
	count += missed(minimum, coverage->events[minimum->what], is_spec,
			vd_event_name((int)minimum->what), "", out);
	if (coverage->completion_events < COMPLETION_EVENTS_LEAST)
		count += missed(&(struct minimum){.least = COMPLETION_EVENTS_LEAST},
				coverage->completion_events, is_spec, "completion event", "", out);
	return count;
}
