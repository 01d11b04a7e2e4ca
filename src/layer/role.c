/* SPDX-License-Identifier: MIT */
#include "src/layer/role.h"

#include "src/layer/shadow.h"

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
};

/* --- an object --- */

static void make(struct passage *passage, enum layer_kind kind)
{
	struct layer_call *call = &passage->call;
	const void *object = (const void *)(uintptr_t)call->result;
	struct ibv_context *context =
		kind == LAYER_CONTEXT ? (struct ibv_context *)object : call->context;
	struct layer_entry *entry = table_enter(object, kind, context);

	if (!entry)
		return;
	/* An older object at this address has ended without a verb. */
	shadow_drop(entry);
	if (kind == LAYER_CONTEXT) {
		shadow_context(entry, call->backend);
		call->context = context;
		call->device = entry->device ? entry->device->name : NULL;
	}
}

/* --- all objects of a context that is closed --- */

static void hide_in(struct layer_entry *entry, const void *context)
{
	if (entry->context == context)
		shadow_hide(entry);
}

static void show_in(struct layer_entry *entry, const void *context)
{
	if (entry->context == context)
		shadow_show(entry);
}

static void remove_in(struct layer_entry *entry, const void *context)
{
	if (entry->context != context)
		return;
	shadow_drop(entry);
	table_remove(entry, entry->serial);
}

/* --- the passage --- */

void role_begin(struct passage *passage)
{
	enum layer_kind ends = roles[passage->call.verb].ends;
	const void *object;

	if (!ends)
		return;
	object = (const void *)(uintptr_t)passage->call.arguments[0];
	passage->ending = table_find(object, ends);
	if (!passage->ending)
		return;
	passage->ending_serial = passage->ending->serial;
	if (ends == LAYER_CONTEXT)
		table_each(hide_in, object);
	else
		shadow_hide(passage->ending);
}

void role_ended(struct passage *passage)
{
	enum layer_kind makes = roles[passage->call.verb].makes;
	struct layer_entry *ending = passage->ending;

	if (makes && passage->call.result)
		make(passage, makes);
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
		table_each(show_in, ending->context);
	else
		shadow_show(ending);
}

void role_end(struct passage *passage)
{
	struct layer_entry *ending = passage->ending;

	if (!ending || ending->serial != passage->ending_serial)
		return;
	if (ending->kind == LAYER_CONTEXT) {
		table_each(remove_in, ending->context);
		return;
	}
	shadow_drop(ending);
	table_remove(ending, passage->ending_serial);
}
