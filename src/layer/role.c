/* SPDX-License-Identifier: MIT */
#include "src/layer/role.h"

#include "src/layer/role_cm.h"
#include "src/layer/shadow.h"
#include "src/layer/slots.h"

static const struct {
	uint8_t makes, ends; /* enum layer_kind */
} roles[LAYER_VERBS] = {
	[LAYER_open_device] = {.makes = LAYER_CONTEXT},
	[LAYER_import_device] = {.makes = LAYER_CONTEXT},
	[LAYER_close_device] = {.ends = LAYER_CONTEXT},
	[LAYER_alloc_pd] = {.makes = LAYER_PD},
	[LAYER_alloc_parent_domain] = {.makes = LAYER_PD},
	[LAYER_import_pd] = {.makes = LAYER_PD},
	[LAYER_dealloc_pd] = {.ends = LAYER_PD},
	[LAYER_unimport_pd] = {.ends = LAYER_PD},
	[LAYER_alloc_td] = {.makes = LAYER_TD},
	[LAYER_dealloc_td] = {.ends = LAYER_TD},
	[LAYER_open_xrcd] = {.makes = LAYER_XRCD},
	[LAYER_close_xrcd] = {.ends = LAYER_XRCD},
	[LAYER_reg_mr] = {.makes = LAYER_MR},
	[LAYER_reg_mr_iova] = {.makes = LAYER_MR},
	[LAYER_reg_mr_iova2] = {.makes = LAYER_MR},
	[LAYER_reg_dmabuf_mr] = {.makes = LAYER_MR},
	[LAYER_alloc_null_mr] = {.makes = LAYER_MR},
	[LAYER_reg_dm_mr] = {.makes = LAYER_MR},
	[LAYER_import_mr] = {.makes = LAYER_MR},
	[LAYER_dereg_mr] = {.ends = LAYER_MR},
	[LAYER_unimport_mr] = {.ends = LAYER_MR},
	[LAYER_alloc_mw] = {.makes = LAYER_MW},
	[LAYER_dealloc_mw] = {.ends = LAYER_MW},
	[LAYER_alloc_dm] = {.makes = LAYER_DM},
	[LAYER_import_dm] = {.makes = LAYER_DM},
	[LAYER_free_dm] = {.ends = LAYER_DM},
	[LAYER_unimport_dm] = {.ends = LAYER_DM},
	[LAYER_create_comp_channel] = {.makes = LAYER_CHANNEL},
	[LAYER_destroy_comp_channel] = {.ends = LAYER_CHANNEL},
	[LAYER_create_cq] = {.makes = LAYER_CQ},
	[LAYER_create_cq_ex] = {.makes = LAYER_CQ},
	[LAYER_destroy_cq] = {.ends = LAYER_CQ},
	[LAYER_create_srq] = {.makes = LAYER_SRQ},
	[LAYER_create_srq_ex] = {.makes = LAYER_SRQ},
	[LAYER_destroy_srq] = {.ends = LAYER_SRQ},
	[LAYER_create_qp] = {.makes = LAYER_QP},
	[LAYER_create_qp_ex] = {.makes = LAYER_QP},
	[LAYER_open_qp] = {.makes = LAYER_QP},
	[LAYER_destroy_qp] = {.ends = LAYER_QP},
	[LAYER_create_ah] = {.makes = LAYER_AH},
	[LAYER_create_ah_from_wc] = {.makes = LAYER_AH},
	[LAYER_destroy_ah] = {.ends = LAYER_AH},
	[LAYER_create_wq] = {.makes = LAYER_WQ},
	[LAYER_destroy_wq] = {.ends = LAYER_WQ},
	[LAYER_create_rwq_ind_table] = {.makes = LAYER_IND_TABLE},
	[LAYER_destroy_rwq_ind_table] = {.ends = LAYER_IND_TABLE},
	[LAYER_create_flow] = {.makes = LAYER_FLOW},
	[LAYER_destroy_flow] = {.ends = LAYER_FLOW},
	[LAYER_create_flow_action_esp] = {.makes = LAYER_FLOW_ACTION},
	[LAYER_destroy_flow_action] = {.ends = LAYER_FLOW_ACTION},
	[LAYER_create_counters] = {.makes = LAYER_COUNTERS},
	[LAYER_destroy_counters] = {.ends = LAYER_COUNTERS},
	[LAYER_cm_create_event_channel] = {.makes = LAYER_EVENT_CHANNEL},
	[LAYER_cm_destroy_event_channel] = {.ends = LAYER_EVENT_CHANNEL},
	[LAYER_cm_destroy_id] = {.ends = LAYER_ID},
	[LAYER_cm_destroy_ep] = {.ends = LAYER_ID},
};

bool role_table[LAYER_VERBS];

bool layer_verb_ends(enum layer_verb verb)
{
	return roles[verb].ends;
}

enum layer_kind role_makes(enum layer_verb verb)
{
	return roles[verb].makes;
}

void role_start(void)
{
	for (int i = 0; i < LAYER_VERBS; i++)
		role_table[i] = roles[i].makes || roles[i].ends || i == LAYER_qp_to_qp_ex ||
				role_cm_has((enum layer_verb)i);
}

/* --- an object --- */

/* Returns true if the backend has the verb, and no stub in its place. */
#define HAS(backend, verb) ((backend)->verb != slots_original(NULL)->verb)

/* A QP that was created with send_ops_flags. */
static void shadow_new_qp(struct layer_entry *entry, const struct vb_backend *backend,
			  const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp = (struct ibv_qp *)atomic_load(&entry->object);

	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && HAS(backend, qp_to_qp_ex) &&
	    backend->qp_to_qp_ex(qp))
		shadow_qp(entry, backend, &attr->cap);
}

/* The room for a batch of a QP whose capabilities nobody has seen. Layers do not see more. */
static const struct ibv_qp_cap some_room = {.max_send_wr = 1024, .max_send_sge = 4};

/* A QP that is older than the layers, and for which the program asks for its functions now. */
static void shadow_old_qp(struct layer_call *call)
{
	struct ibv_qp *qp = (struct ibv_qp *)(uintptr_t)call->arguments[0];
	struct layer_entry *entry = table_find(qp, LAYER_QP);

	if (entry && atomic_load(&entry->shadow))
		return;
	entry = entry ? entry : table_enter(qp, LAYER_QP, call->context);
	if (entry)
		shadow_qp(entry, call->backend, &some_room);
}

static void make(struct passage *passage, enum layer_kind kind)
{
	struct layer_call *call = &passage->call;
	const void *object = (const void *)(uintptr_t)call->result;
	struct ibv_context *context =
		kind == LAYER_CONTEXT ? (struct ibv_context *)object : call->context;
	struct layer_entry *entry = table_enter(object, kind, context);

	if (!entry) {
		shadow_lose_sight();
		return;
	}
	/* An older object at this address has ended without a verb. */
	shadow_drop(entry);
	if (kind == LAYER_CONTEXT) {
		shadow_context(entry, call->backend);
		call->context = context;
		call->device = entry->device ? entry->device->name : NULL;
	} else if (call->verb == LAYER_create_cq_ex) {
		const struct ibv_cq_init_attr_ex *attr = (void *)(uintptr_t)call->arguments[1];

		shadow_cq(entry, call->backend, attr->wc_flags);
	} else if (call->verb == LAYER_create_qp_ex) {
		shadow_new_qp(entry, call->backend, (void *)(uintptr_t)call->arguments[1]);
	}
}

/* --- the passage --- */

void role_begin(struct passage *passage)
{
	enum layer_kind ends = roles[passage->call.verb].ends;

	role_cm_begin(passage);
	if (!ends)
		return;
	passage->ending = table_find((const void *)(uintptr_t)passage->call.arguments[0], ends);
	if (!passage->ending)
		return;
	passage->ending_serial = passage->ending->serial;
	if (ends == LAYER_CONTEXT)
		table_each_of(passage->ending->context, shadow_hide);
	else
		shadow_hide(passage->ending);
}

void role_ended(struct passage *passage)
{
	enum layer_kind makes = roles[passage->call.verb].makes;
	struct layer_entry *ending = passage->ending;

	if (makes && passage->call.result)
		make(passage, makes);
	else if (passage->call.verb == LAYER_qp_to_qp_ex && passage->call.result)
		shadow_old_qp(&passage->call);
	role_cm_ended(passage);
	if (!ending)
		return;
	if (!passage->call.err) {
		if (ending->kind == LAYER_CONTEXT)
			passage->call.context = NULL;
		return;
	}
	passage->ending = NULL;
	if (ending->serial != passage->ending_serial)
		return;
	if (ending->kind == LAYER_CONTEXT)
		table_each_of(ending->context, shadow_show);
	else
		shadow_show(ending);
}

void role_end(struct passage *passage)
{
	struct layer_entry *ending = passage->ending;

	if (!ending || ending->serial != passage->ending_serial)
		return;
	if (ending->kind == LAYER_CONTEXT) {
		table_remove_of(ending->context, shadow_drop);
		return;
	}
	shadow_drop(ending);
	table_remove(ending, passage->ending_serial);
}
