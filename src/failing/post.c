/* SPDX-License-Identifier: MIT */
/* A list of WRs of which the first ones are posted and one is refused: ibv_post_send(3). */
#include "src/failing/rules.h"

#include "src/base/failure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The WR that the calling thread's present call refuses; NULL: none, or the first. */
static _Thread_local void *refused;

/* Lists of sends and of receives have the pointer to the next WR at the same place. */
#define NEXT_OFFSET offsetof(struct ibv_send_wr, next)
_Static_assert(NEXT_OFFSET == offsetof(struct ibv_recv_wr, next), "of sends and of receives");

static void *next_of(const void *wr)
{
	void *next;

	memcpy(&next, (const char *)wr + NEXT_OFFSET, sizeof(next));
	return next;
}

static void *place(const struct layer_call *call, uint32_t at)
{
	void *wr = (void *)(uintptr_t)call->arguments[1];

	while (wr && at--)
		wr = next_of(wr);
	return wr;
}

bool post_reaches(const struct layer_call *call, uint32_t at)
{
	return place(call, at);
}

/* Copies the first `count` WRs: other threads may use the list, so it is not cut. NULL: no memory. */
static void *copy_list(const struct layer_call *call, uint32_t count, size_t wr_bytes)
{
	const void *wr = (const void *)(uintptr_t)call->arguments[1];
	char *copies = malloc(count * wr_bytes);

	for (uint32_t i = 0; copies && i < count; i++, wr = next_of(wr)) {
		char *copy = copies + i * wr_bytes;
		void *next = i + 1 < count ? copy + wr_bytes : NULL;

		memcpy(copy, wr, wr_bytes);
		memcpy(copy + NEXT_OFFSET, &next, sizeof(next));
	}
	return copies;
}

/* Post the first `count` WRs. They return 0 or an errno value; *taken counts the WRs that are posted. */

static int post_sends(const struct layer_call *call, uint32_t count, uint32_t *taken)
{
	struct ibv_qp *qp = (struct ibv_qp *)(uintptr_t)call->arguments[0];
	struct ibv_send_wr *copies = copy_list(call, count, sizeof(*copies)), *bad = copies;
	const int err = copies ? call->backend->post_send(qp, copies, &bad) : ENOMEM;

	*taken = err ? (uint32_t)(bad - copies) : count;
	free(copies);
	return err;
}

static int post_receives(const struct layer_call *call, uint32_t count, uint32_t *taken)
{
	void *queue = (void *)(uintptr_t)call->arguments[0];
	struct ibv_recv_wr *copies = copy_list(call, count, sizeof(*copies)), *bad = copies;
	int err = ENOMEM;

	if (copies)
		err = call->verb == LAYER_post_recv
			      ? call->backend->post_recv(queue, copies, &bad)
			      : call->backend->post_srq_recv(queue, copies, &bad);
	*taken = err ? (uint32_t)(bad - copies) : count;
	free(copies);
	return err;
}

int post_before(struct layer_call *call, const struct fail_rule *rule)
{
	uint32_t taken = 0;
	int err;

	if (call->verb == LAYER_post_send)
		err = post_sends(call, rule->at, &taken);
	else
		err = post_receives(call, rule->at, &taken);
	refused = place(call, taken);
	/* The device has refused an earlier WR. */
	if (err)
		call->why = failure_last_why();
	return err ? err : rule->err;
}

void post_answer(const struct layer_call *call)
{
	if (!refused)
		return;
	*(void **)(uintptr_t)call->arguments[2] = refused;
	refused = NULL;
}
