/* SPDX-License-Identifier: MIT */
/*
 * The body of a wrapper, by the convention of the verb. name is that of enum layer_verb without
 * LAYER_; route is an expression that finds the backend, original the backend's function.
 *
 *	static int slot_dealloc_pd(struct ibv_pd *pd)
 *	{
 *		PASS_ERRNO(int, dealloc_pd, (pd), ERRNO, route, route.backend->dealloc_pd);
 *	}
 */
#ifndef SRC_LAYER_PASS_H
#define SRC_LAYER_PASS_H

#include "src/layer/pack.h"
#include "src/layer/passage.h"
#include "src/layer/steps.h"
#include "src/verbs/convention.h"

#define PASS_VALUE(result, name, arguments, convention, route, original)               \
	const uint64_t packed[] = {NUMBERS arguments};                                 \
	struct passage passage;                                                        \
	result answer;                                                                 \
	int err;                                                                       \
                                                                                       \
	if (passage_inside())                                                          \
		return original arguments;                                             \
	passage_note_caller(&passage);                                                 \
	err = passage_begin(&passage, LAYER_##name, &(route), packed);                 \
	answer = err ? FAILED(convention, err, UNPACK arguments) : original arguments; \
	passage_end(&passage, NUMBER(answer));                                         \
	return answer

#define PASS_NOTHING(result, name, arguments, convention, route, original) \
	const uint64_t packed[] = {NUMBERS arguments};                     \
	struct passage passage;                                            \
                                                                           \
	if (passage_inside()) {                                            \
		original arguments;                                        \
		return;                                                    \
	}                                                                  \
	passage_note_caller(&passage);                                     \
	if (!passage_begin(&passage, LAYER_##name, &(route), packed))      \
		original arguments;                                        \
	passage_end(&passage, 0)

/* The same, with all steps inlined: for the functions that programs call for each message. */
#define PASS_INLINE(result, name, arguments, convention, route, original)                      \
	const uint64_t packed[] = {NUMBERS arguments};                                         \
	struct passage_thread *const thread = passage_own_thread();                            \
	struct passage passage;                                                                \
	result answer;                                                                         \
	int err;                                                                               \
                                                                                               \
	if (thread->inside)                                                                    \
		return original arguments;                                                     \
	passage_note_caller(&passage);                                                         \
	err = steps_begin(&passage, thread, LAYER_##name, &(route), packed);                   \
	answer = err ? FAILED(convention, err, UNPACK arguments) : original arguments;         \
	steps_end(&passage, thread, LAYER_##name, LAYER_##convention, NUMBER(answer), packed); \
	return (result)(uintptr_t)steps_result(&passage)

#define PASS_ERRNO     PASS_VALUE
#define PASS_POSTED    PASS_VALUE
#define PASS_POINTER   PASS_VALUE
#define PASS_OPTIONAL  PASS_VALUE
#define PASS_MINUS_ONE PASS_VALUE
#define PASS_NEGATED   PASS_VALUE
#define PASS_REREG     PASS_VALUE
#define PASS_ANSWER    PASS_VALUE
#define PASS_GAI       PASS_VALUE

#endif /* SRC_LAYER_PASS_H */
