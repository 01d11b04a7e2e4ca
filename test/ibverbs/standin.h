/* SPDX-License-Identifier: MIT */
/*
 * How a test controls the stand-in for libibverbs. The test loads the file that the backend loads,
 * and finds these functions with dlsym().
 */
#ifndef TEST_IBVERBS_STANDIN_H
#define TEST_IBVERBS_STANDIN_H

#include <infiniband/verbs.h>
#include <stdint.h>

#define STANDIN_ARGS 8

/* One call: "ibv_x" for an export, "ops.x" and "verbs_context.x" for the pointers of a context. */
struct standin_call {
	const char *target;
	unsigned int count;
	uint64_t args[STANDIN_ARGS]; /* converted by uintptr_t; negative ones are sign extended */
};

/* Forgets all calls. The next calls return @answer and, unless @err is 0, set errno to @err. */
void standin_script(uint64_t answer, int err);

/* Return the last call, and the number of calls since standin_script(). */
const struct standin_call *standin_last(void);
unsigned int standin_calls(void);

/* Fills @vctx with all operations. */
void standin_fill_context(struct verbs_context *vctx);

#endif /* TEST_IBVERBS_STANDIN_H */
