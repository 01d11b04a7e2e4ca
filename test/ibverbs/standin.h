/* SPDX-License-Identifier: MIT */
/*
 * What a test says to the stand-in for libibverbs, and asks of it. The test loads the same file as
 * the backend does and finds these functions with dlsym.
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
	uint64_t args[STANDIN_ARGS]; /* as uintptr_t gives them, so signed ones are extended */
};

/* Forgets all calls; the next ones answer @answer and, if @err is not 0, set errno. */
void standin_script(uint64_t answer, int err);

/* The last call, and how many there were since standin_script(). */
const struct standin_call *standin_last(void);
unsigned int standin_calls(void);

/* Makes @vctx a context with all operations. */
void standin_fill_context(struct verbs_context *vctx);

#endif /* TEST_IBVERBS_STANDIN_H */
