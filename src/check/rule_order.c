/* SPDX-License-Identifier: MIT */
/*
 * order-assumed, only with the setting order=1. The new bytes of an RDMA WRITE to this process are held back
 * until a completion promises them: that of the WRITE or of a later send of its QP at the requester, or that of
 * a receive of a later message of its QP at the responder. The bytes of an RDMA READ or a receive are held back
 * until its completion. The last 8 bytes of a WRITE or READ are not held: a program may look there whether
 * something has come, but must not use the rest of the message because of that.
 */
#include "src/check/check.h"
#include "src/check/order.h"
#include "src/check/poison.h"
#include "src/check/share.h"
#include "src/guard/held.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <verbena/verbs.h>

#define WORD_BYTES 8

/* The bytes of a WRITE that no completion promises come after so many verbs: adapters do not keep them for
 * ever. */
#define VERBS_MAX 4096

/* Bytes that an adapter may write and that are not promised. Its number is that of its held range. */
struct landing {
	bool used;
	bool write;		   /* an RDMA WRITE; false: a READ, an atomic or a receive */
	const struct check_qp *qp; /* to which the work was posted */
	uint64_t work_number;
	char name[64]; /* of the work */
	/* Of a WRITE: which message promises the bytes, among those of the QP that take a receive, from 1. */
	uint64_t promised_by;
	struct spot posted;
	const uint8_t *memory;
	size_t held_bytes;
	uint64_t verbs_then;
	_Atomic bool touched; /* the program has touched the bytes: they are no longer held */
};

static bool active;
static struct landing landings[HELD_MAX];
static unsigned int landing_count; /* numbers below it may be in use */
static uint64_t verbs;		   /* counts the verbs of the process */

/* --- landings --- */

static void promise(struct landing *landing)
{
	const unsigned int number = (unsigned int)(landing - landings);
	const bool came = held_has_come(number);

	held_release(number);
	if (came && poison_active)
		poison_show(landing->memory, landing->held_bytes, landing->held_bytes);
	landing->used = false;
}

static void promise_all(bool (*wanted)(const struct landing *landing, const void *arg),
			const void *arg)
{
	for (unsigned int i = 0; i < landing_count; i++)
		if (landings[i].used && (!wanted || wanted(&landings[i], arg)))
			promise(&landings[i]);
}

static bool is_of_qp(const struct landing *landing, const void *arg)
{
	return landing->qp == arg;
}

static bool is_write_of(const struct landing *landing, const void *arg)
{
	return landing->write && landing->qp == arg;
}

/* Returns true if the receives of `peer` may be for messages of `qp`. */
static bool may_lead_to(const struct check_qp *qp, const struct check_qp *peer)
{
	return !(qp->attr_mask & IBV_QP_DEST_QPN) || !(peer->attr_mask & IBV_QP_DEST_QPN) ||
	       (qp->attr.dest_qp_num == peer->qpn && peer->attr.dest_qp_num == qp->qpn);
}

static bool leads_to(const struct landing *landing, const void *arg)
{
	return landing->write && may_lead_to(landing->qp, arg);
}

static bool is_at_end(const struct landing *landing, const void *arg)
{
	return is_of_qp(landing, arg) || leads_to(landing, arg);
}

/* --- the target --- */

static bool is_target(const struct check_mr *mr, const void *arg)
{
	const struct work *work = arg;
	const uint64_t offset = work->remote_addr - mr->addr, length = work->length_bytes;

	return mr->rkey == work->rkey && !mr->ended.frames[0] && mr->memory &&
	       mr->access & IBV_ACCESS_REMOTE_WRITE && offset <= mr->length_bytes &&
	       length <= mr->length_bytes - offset;
}

/* Returns how many bytes there are before the aligned 8 bytes with the last byte. */
static size_t bytes_before_last_word(const uint8_t *memory, size_t length_bytes)
{
	const uintptr_t begin = (uintptr_t)memory;
	const uintptr_t word = (begin + length_bytes - 1) / WORD_BYTES * WORD_BYTES;

	return word > begin ? word - begin : 0;
}

/* Holds the bytes. promised_by: of a WRITE; else 0. */
static void hold(const struct check_qp *qp, const struct work *work, const void *memory,
		 size_t held_bytes, uint64_t promised_by)
{
	struct landing *landing;
	int number;

	if (!held_bytes || poison_is_freed(memory, held_bytes))
		return;
	order_forget(memory, held_bytes);
	/* The completion of the other work allows the program to use the bytes. */
	if (share_found(work, memory, held_bytes))
		return;
	number = held_add((void *)memory, held_bytes);
	if (number < 0)
		return;
	if ((unsigned int)number >= landing_count)
		landing_count = (unsigned int)number + 1;
	landing = &landings[number];
	*landing = (struct landing){
		.used = true,
		.write = promised_by,
		.qp = qp,
		.work_number = work->number,
		.promised_by = promised_by,
		.posted = work->posted,
		.memory = memory,
		.held_bytes = held_bytes,
		.verbs_then = verbs,
	};
	check_work_name(work, landing->name, sizeof(landing->name));
}

static void hold_target(const struct check_qp *qp, const struct work *work)
{
	const struct check_mr *mr = object_search_mr(is_target, work);
	const uint64_t length_bytes = work->length_bytes;
	const uint8_t *memory;

	if (!mr || !length_bytes)
		return;
	memory = (const uint8_t *)mr->memory + (work->remote_addr - mr->addr);
	hold(qp, work, memory, bytes_before_last_word(memory, length_bytes), qp->messages + 1);
}

/*
 * The buffers of a READ, an atomic or a receive. A tool watches them for target-touched. Receives of an SRQ are
 * left alone: completions of XRC do not name the SRQ.
 */
static void hold_buffers(const struct check_qp *qp, const struct work *work)
{
	for (uint32_t i = 0; qp && !poison_active && i < work->sge_count; i++) {
		const struct work_sge *sge = &work->sges[i];
		const bool last = work->send && i + 1 == work->sge_count;

		if (sge->memory && sge->sge.length)
			hold(qp, work, sge->memory,
			     last ? bytes_before_last_word(sge->memory, sge->sge.length)
				  : sge->sge.length,
			     0);
	}
}

static bool overlaps(const struct landing *landing, const void *memory, size_t length_bytes)
{
	const uint8_t *bytes = memory;

	return landing->used && landing->memory < bytes + length_bytes &&
	       bytes < landing->memory + landing->held_bytes;
}

void order_forget(const void *memory, size_t length_bytes)
{
	for (unsigned int i = 0; i < landing_count; i++)
		if (overlaps(&landings[i], memory, length_bytes))
			promise(&landings[i]);
}

/* --- findings --- */

static void report(const struct landing *landing, const char *label, const struct spot *spot,
		   const char *what)
{
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "posted", .spot = landing->posted},
		{.label = label, .spot = *spot},
	};
	char object[64];

	offence_report(VB_RULE_ORDER, places,
		       "%s: the program %s bytes of %s, which no completion promises yet",
		       check_name(landing->qp->object.handle, object, sizeof(object)), what,
		       landing->name);
}

static bool are_in_one_library(const void *a, const void *b)
{
	Dl_info of_a, of_b;

	return dladdr(a, &of_a) && dladdr(b, &of_b) && of_a.dli_fbase == of_b.dli_fbase;
}

/* A function of the C library, such as memcpy(3), is called by the program. */
static void describe_access(const struct guard_fault *fault, struct spot *spot)
{
	*spot = (struct spot){.frames = {fault->frames[0]}, .verb = SPOT_NO_VERB};
	for (unsigned int i = 1; i < 3 && are_in_one_library(spot->frames[0], (void *)memcpy); i++)
		spot->frames[0] = fault->frames[i];
}

/* A page of a held range. It may be called in the middle of anything: the landing ends at the next verb. */
static void touched(unsigned int number, const struct guard_fault *fault)
{
	struct landing *landing = &landings[number];
	struct spot spot;

	if (!check_try_hold())
		return;
	describe_access(fault, &spot);
	if (landing->used && !atomic_exchange(&landing->touched, true))
		report(landing, fault->writes ? "written" : "read", &spot,
		       fault->writes ? "writes to" : "reads");
	check_release();
}

bool order_touched(const struct poison_access *access)
{
	const size_t size_bytes = access->size_bytes ? access->size_bytes : 1;
	const struct spot spot = {.frames = {access->caller}, .verb = SPOT_NO_VERB};

	for (unsigned int i = 0; i < landing_count; i++)
		if (overlaps(&landings[i], access->address, size_bytes) && held_has_come(i)) {
			report(&landings[i], access->writes ? "written" : "read", &spot,
			       access->writes ? "writes to" : "reads");
			return true;
		}
	return false;
}

static void came(unsigned int number, const void *memory, size_t length_bytes)
{
	if (poison_active)
		poison_hide(memory, length_bytes);
}

/* The bytes of a send. */
static void look_at_source(const struct check_call *check, const struct work_sge *sge)
{
	for (unsigned int i = 0; sge->memory && i < landing_count; i++)
		if (overlaps(&landings[i], sge->memory, sge->sge.length) && held_has_come(i)) {
			report(&landings[i], "sent", &check->spot, "sends");
			promise(&landings[i]);
		}
}

/* --- the rule --- */

static bool takes_receive(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
	       opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_write(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	       opcode == IBV_WR_ATOMIC_WRITE;
}

static void posted(struct check_call *check, struct check_qp *qp, struct work *work)
{
	if (!active)
		return;
	if (work->target)
		hold_buffers(qp, work);
	for (uint32_t i = 0; !work->target && i < work->sge_count; i++)
		look_at_source(check, &work->sges[i]);
	if (!work->send || (qp->type != IBV_QPT_RC && qp->type != IBV_QPT_UC))
		return;
	/* The peer may see the atomic's result, which comes after the WRITEs before it. */
	if (is_atomic(work->opcode))
		promise_all(is_write_of, qp);
	if (is_write(work->opcode))
		hold_target(qp, work);
	if (takes_receive(work->opcode))
		qp->messages++;
}

static void done(struct check_call *check, struct check_qp *qp, struct work *work,
		 const struct ibv_wc *wc)
{
	for (unsigned int i = 0; i < landing_count; i++)
		if (landings[i].used && landings[i].work_number == work->number)
			promise(&landings[i]);
}

/* Messages of UC may be lost, and connections that this rule does not know may be of any QPs. */
static bool counts(const struct check_qp *qp, const struct check_qp *peer)
{
	return qp->type == IBV_QPT_RC && qp->attr_mask & peer->attr_mask & IBV_QP_DEST_QPN &&
	       qp->object.made.frames[0] && peer->object.made.frames[0];
}

static void polled(struct check_call *check, struct check_qp *qp, struct ibv_wc *wc)
{
	if (!active || !qp)
		return;
	if (wc->status != IBV_WC_SUCCESS) {
		promise_all(is_at_end, qp);
		return;
	}
	if (!(wc->opcode & IBV_WC_RECV))
		return;
	qp->received++;
	for (unsigned int i = 0; i < landing_count; i++)
		if (landings[i].used && leads_to(&landings[i], qp) &&
		    (!counts(landings[i].qp, qp) || landings[i].promised_by <= qp->received))
			promise(&landings[i]);
}

static void dropped(struct check_call *check, struct check_qp *qp, struct work *work)
{
	done(check, qp, work, NULL);
}

static void refused(struct check_call *check, struct check_qp *qp, struct work *work)
{
	dropped(check, qp, work);
	if (active && work->send && takes_receive(work->opcode) && qp->messages)
		qp->messages--;
}

static void look(struct check_call *check)
{
	verbs++;
	for (unsigned int i = 0; i < landing_count; i++)
		if (landings[i].used && (atomic_load(&landings[i].touched) ||
					 verbs - landings[i].verbs_then > VERBS_MAX))
			promise(&landings[i]);
}

/* A verb of memory reads the memory of the process. */
static void before_memory(struct check_call *check)
{
	promise_all(NULL, NULL);
}

static void before_destroy(struct check_call *check)
{
	if (check->qp)
		promise_all(is_at_end, check->qp);
}

/* The counts of both ends begin anew. */
static void before_modify(struct check_call *check)
{
	const struct ibv_qp_attr *attr = check_pointer(check, 1);
	struct check_qp *qp = check->qp;

	if (!qp || !attr || !(check->call->arguments[2] & IBV_QP_STATE))
		return;
	if (attr->qp_state != IBV_QPS_RESET && attr->qp_state != IBV_QPS_ERR)
		return;
	promise_all(is_at_end, qp);
	for (struct object *object = object_first(OBJECT_QP); object; object = object->next_of_kind)
		if (may_lead_to((struct check_qp *)object, qp))
			((struct check_qp *)object)->messages = 0;
	qp->messages = qp->received = 0;
}

static void forking(void)
{
	promise_all(NULL, NULL);
}

static bool wanted(const struct vb_check_options *options)
{
	return options->order;
}

static void begin(const struct vb_check_options *options)
{
	static struct held_watch watch = {.came = came, .touched = touched};

	active = options->order;
	if (!active)
		return;
	check_alerts |= CHECK_ALERT_ORDER;
	watch.protects = !poison_active;
	held_start(&watch);
}

static void end(void)
{
	if (!active)
		return;
	promise_all(NULL, NULL);
	landing_count = 0;
	held_stop();
	check_alerts &= ~(unsigned int)CHECK_ALERT_ORDER;
	active = false;
}

static const struct check_hook hooks[] = {
	{LAYER_reg_mr, before_memory, NULL},
	{LAYER_reg_mr_iova, before_memory, NULL},
	{LAYER_reg_mr_iova2, before_memory, NULL},
	{LAYER_rereg_mr, before_memory, NULL},
	{LAYER_dereg_mr, before_memory, NULL},
	{LAYER_destroy_qp, before_destroy, NULL},
	{LAYER_modify_qp, before_modify, NULL},
	{LAYER_cm_disconnect, before_memory, NULL},
	{0},
};

const struct check_rule rule_order = {
	.hooks = hooks,
	.wanted = wanted,
	.posted = posted,
	.posted_rarely = true,
	.done = done,
	.done_rarely = true,
	.polled = polled,
	.dropped = dropped,
	.refused = refused,
	.look = look,
	.forking = forking,
	.begin = begin,
	.end = end,
};
