/* SPDX-License-Identifier: MIT */
#include "src/check/share.h"

struct search {
	const struct work *work;
	const char *memory;
	size_t length_bytes;
	bool found;
};

static void look_for_sharer(struct check_qp *qp, struct work *work, void *arg)
{
	struct search *search = arg;

	if (work->number == search->work->number || work->inlined ||
	    !(work->target || search->work->target))
		return;
	for (uint32_t i = 0; i < work->sge_count; i++) {
		const char *memory = work->sges[i].memory;

		search->found |= memory && memory < search->memory + search->length_bytes &&
				 search->memory < memory + work->sges[i].sge.length;
	}
}

bool share_found(const struct work *work, const void *memory, size_t length_bytes)
{
	struct search search = {work, memory, length_bytes, false};

	check_each_work(look_for_sharer, &search);
	return search.found;
}
