/* SPDX-License-Identifier: MIT */
/* Polling through struct ibv_cq_ex: ibv_create_cq_ex(3). */
#include "src/layer/shadow.h"
#include "src/layer/steps.h"

#include <errno.h>
#include <stdlib.h>

/* The functions of the fields that a failed completion does not have: ibv_poll_cq(3). */
#define READERS(row)                                                                       \
	row(enum ibv_wc_opcode, opcode) row(uint32_t, byte_len) row(__be32, imm_data)      \
		row(uint32_t, src_qp) row(unsigned int, wc_flags) row(uint32_t, slid)      \
			row(uint8_t, sl) row(uint8_t, dlid_path_bits) row(uint16_t, cvlan) \
				row(uint32_t, flow_tag)

struct cq_shadow {
	struct shadow shadow;
	uint64_t wc_flags;
	bool watched; /* the functions of READERS are shadowed */
	bool changed; /* a layer has changed or made the completion that the CQ shows; then: */
	uint32_t vendor_err;
	bool made; /* a layer has made the completion that the CQ shows; then: */
	uint32_t qpn;
	bool closed; /* true if the poll began with a made completion while the backend's CQ was empty */
	uint32_t (*read_qp_num)(struct ibv_cq_ex *cq);
	uint32_t (*read_vendor_err)(struct ibv_cq_ex *cq);
#define MEMBER(type, field) type (*read_##field)(struct ibv_cq_ex * cq);
	READERS(MEMBER)
#undef MEMBER
	int (*start_poll)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
	int (*next_poll)(struct ibv_cq_ex *cq);
	void (*end_poll)(struct ibv_cq_ex *cq);
};

static struct cq_shadow *shadow_of(const struct ibv_cq_ex *ex)
{
	return (struct cq_shadow *)shadow_find(ex, LAYER_CQ);
}

/* --- reads --- */

static void (*_Atomic reads_watch)(const struct layer_call *call, const char *field);

void layer_watch_reads(void (*watch)(const struct layer_call *call, const char *field))
{
	atomic_store(&reads_watch, watch);
}

/* Notes that the program reads a field. Inside a verb, read_wc() reads, not the program. */
static void note_read(const struct passage *passage, const struct cq_shadow *shadow,
		      const struct ibv_cq_ex *ex, const char *field)
{
	void (*watch)(const struct layer_call *call, const char *field) = atomic_load(&reads_watch);
	const uint64_t arguments[1] = {(uintptr_t)ex};
	struct layer_call call = passage->call;

	if (ex->status == IBV_WC_SUCCESS || !watch || passage_inside())
		return;
	call.verb = LAYER_VERBS;
	call.backend = shadow->shadow.backend;
	call.context = ex->context;
	call.arguments = arguments;
	watch(&call, field);
}

#define READER(type, field)                                         \
	static type read_##field(struct ibv_cq_ex *ex)              \
	{                                                           \
		const struct cq_shadow *shadow = shadow_of(ex);     \
		struct passage passage = {0};                       \
                                                                    \
		if (!shadow)                                        \
			return 0;                                   \
		passage_note_caller(&passage);                      \
		note_read(&passage, shadow, ex, #field);            \
		return shadow->made ? 0 : shadow->read_##field(ex); \
	}
READERS(READER)
#undef READER

/* --- completions --- */

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	const struct cq_shadow *shadow = shadow_of(ex);

	if (!shadow)
		return 0;
	return shadow->changed ? shadow->vendor_err : shadow->read_vendor_err(ex);
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	const struct cq_shadow *shadow = shadow_of(ex);

	if (!shadow)
		return 0;
	return shadow->made ? shadow->qpn : shadow->read_qp_num(ex);
}

/* Lets the program read a completion that a layer has made. */
static void take_made(struct cq_shadow *shadow, struct ibv_cq_ex *ex, const struct ibv_wc *wc)
{
	shadow->made = shadow->changed = true;
	shadow->qpn = wc->qp_num;
	shadow->vendor_err = wc->vendor_err;
	ex->wr_id = wc->wr_id;
	ex->status = wc->status;
}

/* Lets the program read the completion as a layer has changed it. */
static void take_change(struct cq_shadow *shadow, struct ibv_cq_ex *ex, const struct ibv_wc *wc)
{
	shadow->changed = wc->status != ex->status;
	if (!shadow->changed)
		return;
	ex->status = wc->status;
	shadow->vendor_err = wc->vendor_err;
}

/* A provider leaves out the functions for fields that the CQ was not created with. */
#define READ(flags, flag, ex, field) \
	((flags) & (flag) && (ex)->read_##field ? (ex)->read_##field(ex) : 0)

/*
 * Returns the completion that the CQ shows. Only these fields of a failed one are valid: ibv_poll_cq(3). The
 * QPN is read in any case, because a layer that sees a failure needs the QP.
 */
static struct ibv_wc read_wc(const struct cq_shadow *shadow, struct ibv_cq_ex *ex)
{
	const uint64_t flags = shadow->wc_flags;
	struct ibv_wc wc = {
		.wr_id = ex->wr_id,
		.status = ex->status,
		.qp_num = ex->read_qp_num ? ex->read_qp_num(ex) : 0,
	};

	if (wc.status != IBV_WC_SUCCESS) {
		wc.vendor_err = ex->read_vendor_err ? shadow->read_vendor_err(ex) : 0;
		return wc;
	}
	wc.opcode = ex->read_opcode ? ex->read_opcode(ex) : 0;
	wc.wc_flags = ex->read_wc_flags ? ex->read_wc_flags(ex) : 0;
	wc.byte_len = READ(flags, IBV_WC_EX_WITH_BYTE_LEN, ex, byte_len);
	if (wc.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV))
		wc.imm_data = READ(flags, IBV_WC_EX_WITH_IMM, ex, imm_data);
	wc.src_qp = READ(flags, IBV_WC_EX_WITH_SRC_QP, ex, src_qp);
	wc.slid = (uint16_t)READ(flags, IBV_WC_EX_WITH_SLID, ex, slid);
	wc.sl = READ(flags, IBV_WC_EX_WITH_SL, ex, sl);
	wc.dlid_path_bits = READ(flags, IBV_WC_EX_WITH_DLID_PATH_BITS, ex, dlid_path_bits);
	return wc;
}

static int begin(struct passage *passage, enum layer_verb verb, struct ibv_cq_ex *ex,
		 const struct cq_shadow *shadow, const uint64_t *arguments)
{
	const struct route route = {.backend = shadow->shadow.backend,
				    .context = ex->context,
				    .entry = table_find(ex->context, LAYER_CONTEXT)};

	return passage_begin(passage, verb, &route, arguments);
}

/* err: what the backend returns, or with which a layer has refused the call. Returns what the program gets. */
static int end(struct passage *passage, struct ibv_cq_ex *ex, struct cq_shadow *shadow, int err,
	       bool refused)
{
	struct ibv_wc wc = {0};
	uint64_t arguments[3] = {(uintptr_t)ex, 0, 0};

	shadow->made = false;
	if (!err) {
		wc = read_wc(shadow, ex);
		arguments[1] = (uintptr_t)&wc;
	} else if (err == ENOENT && !refused) {
		arguments[2] = (uintptr_t)&wc;
	}
	passage_end_with(passage, (uint64_t)err, arguments);
	if (!err)
		take_change(shadow, ex, &wc);
	else if (!steps_result(passage))
		take_made(shadow, ex, &wc);
	return (int)steps_result(passage);
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct cq_shadow *shadow = shadow_of(ex);
	const uint64_t arguments[2] = {(uintptr_t)ex, 0};
	struct passage passage;
	int refused, err, result;

	if (!shadow)
		return EINVAL;
	if (passage_inside())
		return shadow->start_poll(ex, attr);
	passage_note_caller(&passage);
	refused = begin(&passage, LAYER_start_poll, ex, shadow, arguments);
	err = refused ? refused : shadow->start_poll(ex, attr);
	result = end(&passage, ex, shadow, err, refused);
	if (!result)
		shadow->closed = err;
	return result;
}

/* A poll that a made completion has begun opens the backend's CQ when the program asks for the next one. */
static int next_of_backend(struct ibv_cq_ex *ex, struct cq_shadow *shadow)
{
	struct ibv_poll_cq_attr none = {0};
	int err;

	if (!shadow->closed)
		return shadow->next_poll(ex);
	err = shadow->start_poll(ex, &none);
	shadow->closed = err;
	return err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct cq_shadow *shadow = shadow_of(ex);
	const uint64_t arguments[2] = {(uintptr_t)ex, 0};
	struct passage passage;
	int refused, err;

	if (!shadow)
		return EINVAL;
	if (passage_inside())
		return shadow->next_poll(ex);
	passage_note_caller(&passage);
	refused = begin(&passage, LAYER_next_poll, ex, shadow, arguments);
	err = refused ? refused : next_of_backend(ex, shadow);
	return end(&passage, ex, shadow, err, refused);
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct cq_shadow *shadow = shadow_of(ex);
	const uint64_t arguments[1] = {(uintptr_t)ex};
	struct passage passage;

	if (!shadow)
		return;
	if (passage_inside()) {
		shadow->end_poll(ex);
		return;
	}
	passage_note_caller(&passage);
	begin(&passage, LAYER_end_poll, ex, shadow, arguments);
	shadow->made = false;
	if (!shadow->closed)
		shadow->end_poll(ex);
	passage_end(&passage, 0);
}

/* --- the shadow --- */

static void act(struct layer_entry *entry, struct shadow *shadow, enum shadow_act what)
{
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)atomic_load(&entry->object);
	struct cq_shadow *cq = (struct cq_shadow *)shadow;

	SHADOW_POINTER(what, ex->start_poll, cq->start_poll, start_poll);
	SHADOW_POINTER(what, ex->next_poll, cq->next_poll, next_poll);
	SHADOW_POINTER(what, ex->end_poll, cq->end_poll, end_poll);
	SHADOW_POINTER(what, ex->read_vendor_err, cq->read_vendor_err, read_vendor_err);
	SHADOW_POINTER(what, ex->read_qp_num, cq->read_qp_num, read_qp_num);
	if (!cq->watched)
		return;
#define PUT(type, field) SHADOW_POINTER(what, ex->read_##field, cq->read_##field, read_##field);
	READERS(PUT)
#undef PUT
}

static void end_shadow(struct shadow *shadow)
{
	free(shadow);
}

void shadow_cq(struct layer_entry *entry, const struct vb_backend *backend, uint64_t wc_flags)
{
	struct cq_shadow *cq = calloc(1, sizeof(*cq));

	if (!cq) {
		shadow_lose_sight();
		return;
	}
	cq->shadow = (struct shadow){.act = act, .end = end_shadow, .backend = backend};
	cq->wc_flags = wc_flags;
	cq->watched = atomic_load(&reads_watch) || passage_may_change();
	shadow_begin(entry, &cq->shadow);
}
