/* SPDX-License-Identifier: MIT */
/* Follows MRs: where their bytes are, and by which keys and addresses work requests name these. */
#include "src/check/track.h"

/* Returns NULL if the verb has failed, or without memory. */
static struct check_mr *enter_mr(struct check_call *check, int access)
{
	struct ibv_mr *mr = (struct ibv_mr *)(uintptr_t)check->call->result;
	struct check_mr *known = track_failed(check) ? NULL : object_mr(mr, access);

	if (known)
		known->object.made = check->spot;
	check_watch_forks();
	return known;
}

static void after_reg_mr(struct check_call *check)
{
	const int access = (int)check->call->arguments[3];
	struct check_mr *known = enter_mr(check, access);

	if (!known)
		return;
	known->addr = access & IBV_ACCESS_ZERO_BASED ? 0 : check->call->arguments[1];
	known->memory = check_pointer(check, 1);
}

/* A null MR has all addresses and lengths. */
static void after_null_mr(struct check_call *check)
{
	struct check_mr *known = enter_mr(check, 0);

	if (!known)
		return;
	known->addr = 0;
	known->length_bytes = UINT64_MAX;
	known->memory = NULL;
}

/* Memory of the device, or of another driver, is not in this process. */
static void after_reg_other_mr(struct check_call *check)
{
	const struct layer_call *call = check->call;
	const bool dmabuf = call->verb == LAYER_reg_dmabuf_mr;
	struct check_mr *known = enter_mr(check, (int)call->arguments[dmabuf ? 5 : 4]);

	if (!known)
		return;
	known->addr = dmabuf ? call->arguments[3] : 0;
	known->length_bytes = call->arguments[dmabuf ? 2 : 3];
	known->memory = NULL;
}

/* Work requests address this MR from iova on. */
static void after_reg_mr_iova(struct check_call *check)
{
	struct check_mr *known = enter_mr(check, (int)check->call->arguments[4]);

	if (!known)
		return;
	known->addr = check->call->arguments[3];
	known->memory = check_pointer(check, 1);
}

static void before_dereg_mr(struct check_call *check)
{
	struct check_mr *mr = object_find_mr(check_pointer(check, 0));

	track_hide(check, mr ? &mr->object : NULL);
}

static void after_dereg_mr(struct check_call *check)
{
	struct object *object = (struct object *)(uintptr_t)*check->state;

	if (!object)
		return;
	if (track_failed(check))
		object_show(object);
	else
		object_end_mr((struct check_mr *)object, &check->spot);
}

static void after_rereg_mr(struct check_call *check)
{
	const struct ibv_mr *mr = check_pointer(check, 0);
	struct object *object = (struct object *)(uintptr_t)*check->state;
	struct check_mr *known;

	if (!object)
		return;
	object_show(object);
	if (track_failed(check))
		return;
	object_hide(object);
	known = (struct check_mr *)object;
	known->pd = mr->pd;
	if (check->call->arguments[1] & IBV_REREG_MR_CHANGE_TRANSLATION) {
		known->addr = check->call->arguments[3];
		known->memory = check_pointer(check, 3);
		known->length_bytes = check->call->arguments[4];
	}
	known->lkey = mr->lkey;
	known->rkey = mr->rkey;
	if (check->call->arguments[1] & IBV_REREG_MR_CHANGE_ACCESS)
		known->access = (int)check->call->arguments[5];
	object_show(object);
}

const struct check_hook track_mr_hooks[] = {
	{LAYER_reg_mr, NULL, after_reg_mr},
	{LAYER_reg_mr_iova, NULL, after_reg_mr_iova},
	{LAYER_reg_mr_iova2, NULL, after_reg_mr_iova},
	{LAYER_reg_dmabuf_mr, NULL, after_reg_other_mr},
	{LAYER_alloc_null_mr, NULL, after_null_mr},
	{LAYER_import_mr, NULL, after_null_mr},
	{LAYER_unimport_mr, before_dereg_mr, after_dereg_mr},
	{LAYER_reg_dm_mr, NULL, after_reg_other_mr},
	{LAYER_rereg_mr, before_dereg_mr, after_rereg_mr},
	{LAYER_dereg_mr, before_dereg_mr, after_dereg_mr},
	{0},
};
