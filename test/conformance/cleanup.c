/* SPDX-License-Identifier: MIT */
#include "test/conformance/result.h"
#include "test/peer/peer.h"

#include <stdlib.h>

void vt_defer(struct vt *t, void (*fn)(void *arg), void *arg)
{
	struct vt_deferred *deferred = malloc(sizeof(*deferred));

	if (!deferred) {
		fn(arg);
		VT_FAIL(t, "no memory");
	}
	*deferred = (struct vt_deferred){t->run->deferred, fn, arg};
	t->run->deferred = deferred;
}

void *vt_alloc(struct vt *t, size_t length_bytes)
{
	bool shared = peer_active();
	void *memory =
		shared ? peer_alloc(length_bytes) : calloc(1, length_bytes ? length_bytes : 1);

	if (!memory)
		VT_FAIL(t, "no memory for %zu bytes", length_bytes);
	if (!shared)
		vt_defer(t, free, memory);
	return memory;
}

void vt_run_deferred(struct vt *t)
{
	struct vt_run *run = t->run;

	run->result->ending = true;
	while (run->deferred) {
		struct vt_deferred *deferred = run->deferred;
		struct vt_deferred copy = *deferred;

		run->deferred = copy.next;
		free(deferred);
		if (!setjmp(run->end) && !run->stopped)
			copy.fn(copy.arg);
	}
}
