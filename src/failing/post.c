/* SPDX-License-Identifier: MIT */
/* A list of WRs of which the first ones are posted and one is refused: ibv_post_send(3). */
#include "src/failing/rules.h"

#include "src/base/failure.h"

#include <errno.h>
#include <stdlib.h>

/* The WR that the calling thread's present call refuses; NULL: none, or the first. */
static _Thread_local void *refused;

/* Lists of sends and of receives begin alike. */
struct link {
	uint64_t wr_id;
	struct link *next;
};
_Static_assert(offsetof(struct link, next) == offsetof(struct ibv_send_wr, next), "a send WR");
_Static_assert(offsetof(struct link, next) == offsetof(struct ibv_recv_wr, next), "a receive WR");

static void *place(const struct layer_call *call, uint32_t at)
{
	struct link *wr = (struct link *)(uintptr_t)call->arguments[1];

	while (wr && at--)
		wr = wr->next;
	return wr;
}

bool post_reaches(const struct layer_call *call, uint32_t at)
{
	return place(call, at);
}

/* Post the first `count` WRs. The list may be in use by other threads, so a copy is cut. Return 0 or an errno
 * value; *taken counts the WRs that are posted. */
#define POST_FIRST(name, type, queue_type)                                                      \
	static int first_##name(const struct layer_call *call, uint32_t count, uint32_t *taken) \
	{                                                                                       \
		const type *wr = (const type *)(uintptr_t)call->arguments[1];                   \
		type *copies = malloc(count * sizeof(*copies)), *bad = copies;                  \
		int err;                                                                        \
                                                                                                \
		if (!copies)                                                                    \
			return ENOMEM;                                                          \
		for (uint32_t i = 0; i < count; i++, wr = wr->next) {                           \
			copies[i] = *wr;                                                        \
			copies[i].next = i + 1 < count ? &copies[i + 1] : NULL;                 \
		}                                                                               \
		err = call->backend->name((queue_type *)(uintptr_t)call->arguments[0], copies,  \
					  &bad);                                                \
		*taken = err ? (uint32_t)(bad - copies) : count;                                \
		free(copies);                                                                   \
		return err;                                                                     \
	}

POST_FIRST(post_send, struct ibv_send_wr, struct ibv_qp)
POST_FIRST(post_recv, struct ibv_recv_wr, struct ibv_qp)
POST_FIRST(post_srq_recv, struct ibv_recv_wr, struct ibv_srq)

int post_before(struct layer_call *call, const struct fail_rule *rule)
{
	uint32_t taken = 0;
	int err;

	if (call->verb == LAYER_post_send)
		err = first_post_send(call, rule->at, &taken);
	else if (call->verb == LAYER_post_recv)
		err = first_post_recv(call, rule->at, &taken);
	else
		err = first_post_srq_recv(call, rule->at, &taken);
	refused = place(call, taken);
	/* The device refuses a WR before that one. */
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
