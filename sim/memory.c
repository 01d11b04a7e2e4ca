/* SPDX-License-Identifier: MIT */
#include "sim/memory.h"

#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>

/* The flags that ibv_reg_mr(3) knows and that this engine acts on or may ignore. */
#define KNOWN_ACCESS                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |     \
	 IBV_ACCESS_OPTIONAL_RANGE)

static bool access_fits(int access)
{
	/* ibv_reg_mr(3): remote write and remote atomic need local write. */
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return false;
	return !(access & ~KNOWN_ACCESS);
}

int sim_mr_create(struct sim_device *device, const struct sim_mr_init *init, struct sim_mr **out)
{
	const struct sim_memory_ops *memory = &device->world->host.memory;
	uintptr_t base = (uintptr_t)init->addr;
	struct sim_mr *mr;
	int err;

	if (!access_fits(init->access) || init->length > device->profile->limits.max_mr_size)
		return EINVAL;
	if (init->length && base + init->length - 1 < base)
		return EFAULT;
	if (init->length && init->iova + init->length - 1 < init->iova)
		return EINVAL;
	if (init->length &&
	    memory->probe(init->addr, init->length, init->access & IBV_ACCESS_LOCAL_WRITE))
		return EFAULT;
	mr = malloc(sizeof(*mr));
	if (!mr)
		return ENOMEM;
	*mr = (struct sim_mr){
		.device = device,
		.pd = init->pd,
		.access = init->access,
		.iova = init->access & IBV_ACCESS_ZERO_BASED ? 0 : init->iova,
		.length = init->length,
		.base = base,
	};
	err = sim_table_insert(&device->regions, mr, &mr->number);
	if (err) {
		free(mr);
		return err;
	}
	mr->lkey = sim_key_make(mr->number, SIM_KEY_LOCAL);
	mr->rkey = sim_key_make(mr->number, SIM_KEY_REMOTE);
	*out = mr;
	return 0;
}

void sim_mr_destroy(struct sim_mr *mr)
{
	mr->device->memory_epoch++;
	sim_table_remove(&mr->device->regions, mr->number);
	free(mr);
}

const struct sim_mr *sim_mr_find(const struct sim_device *device, enum sim_key_kind kind,
				 uint32_t key)
{
	enum sim_key_kind found;
	const struct sim_mr *mr = sim_table_find(&device->regions, sim_key_number(key, &found));

	return mr && found == kind ? mr : NULL;
}

bool sim_mr_recall(const struct sim_device *device, struct sim_mr_memo *memo,
		   enum sim_key_kind kind, uint32_t pd, uint32_t key)
{
	const struct sim_mr *mr = sim_mr_find(device, kind, key);

	if (!mr || mr->pd != pd)
		return false;
	*memo = (struct sim_mr_memo){.mr = mr, .key = key, .epoch = device->memory_epoch};
	return true;
}
