/* SPDX-License-Identifier: MIT */
/*
 * failed-completion-read. Of a failed completion only wr_id, status, qp_num and vendor_err are valid:
 * ibv_poll_cq(3). The other fields get a mark, and a work request with this mark is a finding. Fields that
 * are read through an ibv_cq_ex are seen when they are read.
 */
#include "src/check/check.h"
#include "src/check/poison.h"

#include <arpa/inet.h>
#include <string.h>
#include <verbena/verbs.h>

/* A mark is 0x5bad0000, and the number of the failure: the upper of its two bytes, since flags and numbers
 * of few bits are at the lower one. */
#define MARK	  UINT32_C(0x5bad0000)
#define MARK_BITS 0x2d
#define MARKS_MAX 64 /* a power of two, 256 at most */

/* The last failed completions. */
static struct failure {
	uint32_t mark; /* 0: none */
	const void *cq;
	uint64_t wr_id;
	enum ibv_wc_status status;
	uint32_t qpn;
	const char *device;
	struct spot polled;
} failures[MARKS_MAX];
static uint32_t failure_count;

static uint32_t note_failure(const struct check_call *check, const struct ibv_wc *wc)
{
	const uint32_t number = failure_count++;
	const uint32_t mark = MARK | (number & 0xff) << 8 | MARK_BITS;

	check_alerts |= CHECK_ALERT_FAILED;
	failures[number % MARKS_MAX] = (struct failure){
		.mark = mark,
		.cq = check->cq ? check->cq->object.handle : NULL,
		.wr_id = wc->wr_id,
		.status = wc->status,
		.qpn = wc->qp_num,
		.device = check->call->device,
		.polled = check->spot,
	};
	return mark;
}

static void polled(struct check_call *check, struct check_qp *qp, struct ibv_wc *wc)
{
	uint32_t mark;

	if (wc->status == IBV_WC_SUCCESS)
		return;
	mark = note_failure(check, wc);
	*wc = (struct ibv_wc){
		.wr_id = wc->wr_id,
		.status = wc->status,
		.opcode = (enum ibv_wc_opcode)mark,
		.vendor_err = wc->vendor_err,
		.byte_len = mark,
		.imm_data = mark,
		.qp_num = wc->qp_num,
		.src_qp = mark,
		.wc_flags = mark,
		.pkey_index = (uint16_t)mark,
		.slid = (uint16_t)mark,
		.sl = (uint8_t)mark,
		.dlid_path_bits = (uint8_t)mark,
	};
	poison_make_undefined(&wc->opcode, sizeof(wc->opcode));
	poison_make_undefined(&wc->byte_len, sizeof(wc->byte_len));
	poison_make_undefined(&wc->imm_data, sizeof(wc->imm_data));
	poison_make_undefined(&wc->src_qp, sizeof(wc->src_qp));
	poison_make_undefined(&wc->wc_flags, sizeof(wc->wc_flags));
	poison_make_undefined(&wc->pkey_index, sizeof(wc->pkey_index));
	poison_make_undefined(&wc->slid, sizeof(wc->slid));
	poison_make_undefined(&wc->sl, sizeof(wc->sl));
	poison_make_undefined(&wc->dlid_path_bits, sizeof(wc->dlid_path_bits));
}

/* --- marks in what the program gives to a verb --- */

/* Returns the failure whose mark the value is; NULL: none. */
static const struct failure *find_mark(uint64_t value)
{
	const struct failure *failure;

	if ((value & ~UINT64_C(0xffff)) != MARK || (value & 0xff) != MARK_BITS)
		return NULL;
	failure = &failures[(value >> 8 & 0xff) % MARKS_MAX];
	return failure->mark == value ? failure : NULL;
}

static void report(const struct check_call *check, const struct failure *failure, const char *where)
{
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "polled", .spot = failure->polled},
		{.label = "used", .spot = check->spot},
	};

	offence_report(
		VB_RULE_FAILED_READ, places,
		"QP 0x%x of %s: %s has the value of a field that its failed completion (%s, wr_id "
		"0x%llx) does not have",
		failure->qpn, failure->device ? failure->device : "a device", where,
		vb_wc_status_str(failure->status), (unsigned long long)failure->wr_id);
}

static bool look_at(const struct check_call *check, uint64_t value, const char *where)
{
	const struct failure *failure = find_mark(value);

	if (failure)
		report(check, failure, where);
	return failure;
}

/* The program converts immediate data. */
static bool look_at_immediate(const struct check_call *check, const struct ibv_send_wr *wr)
{
	const bool has =
		wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	return has && (look_at(check, wr->imm_data, "imm_data of a work request") ||
		       look_at(check, ntohl(wr->imm_data), "imm_data of a work request"));
}

static void posted(struct check_call *check, struct check_qp *qp, struct work *work)
{
	if (!failure_count || look_at(check, work->wr_id, "wr_id of a work request"))
		return;
	for (uint32_t i = 0; i < work->sge_count; i++)
		if (look_at(check, work->sges[i].sge.length, "length of an SGE"))
			return;
	if (!work->send || look_at_immediate(check, work->wr))
		return;
	if (work->ah)
		look_at(check, work->remote_qpn, "remote_qpn of a work request");
}

static void look_at_wc(const struct check_call *check, const struct ibv_wc *wc)
{
	if (failure_count && wc)
		look_at(check, wc->src_qp, "src_qp of the completion of an address handle");
}

static void before_create_ah_from_wc(struct check_call *check)
{
	look_at_wc(check, check_pointer(check, 1));
}

static void before_init_ah_from_wc(struct check_call *check)
{
	look_at_wc(check, check_pointer(check, 2));
}

/* --- struct ibv_cq_ex --- */

static struct spot polled_at(const void *cq)
{
	struct spot spot = {0};

	check_hold();
	for (uint32_t i = 0; i < MARKS_MAX && i < failure_count; i++) {
		const struct failure *failure = &failures[(failure_count - 1 - i) % MARKS_MAX];

		if (failure->cq == cq) {
			spot = failure->polled;
			break;
		}
	}
	check_release();
	return spot;
}

static void read_field(const struct layer_call *call, const char *field)
{
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)(uintptr_t)call->arguments[0];
	struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "polled", .spot = polled_at(ex)},
		{.label = "read"},
	};
	char object[64];

	spot_take(call, &places[1].spot);
	offence_report(VB_RULE_FAILED_READ, places,
		       "%s: the program has read %s of a failed completion (%s, wr_id 0x%llx)",
		       check_name(ex, object, sizeof(object)), field, vb_wc_status_str(ex->status),
		       (unsigned long long)ex->wr_id);
}

static void begin(const struct vb_check_options *options)
{
	layer_watch_reads(read_field);
}

static void end(void)
{
	layer_watch_reads(NULL);
	memset(failures, 0, sizeof(failures));
	failure_count = 0;
	check_alerts &= ~(unsigned int)CHECK_ALERT_FAILED;
}

static const struct check_hook hooks[] = {
	{LAYER_create_ah_from_wc, before_create_ah_from_wc, NULL},
	{LAYER_init_ah_from_wc, before_init_ah_from_wc, NULL},
	{0},
};

const struct check_rule rule_completion = {
	.hooks = hooks,
	.posted = posted,
	.posted_rarely = true,
	.polled = polled,
	.begin = begin,
	.end = end,
};
