/* SPDX-License-Identifier: MIT */
/*
 * The way of a call through the layers. Each wrapper of a verb does this:
 *
 *         passage_note_caller(&passage);
 *         if (!passage_begin(&passage, LAYER_reg_mr, &route, arguments))
 *                 answer = the backend's function;
 *         passage_end(&passage, answer);
 */
#ifndef SRC_LAYER_PASSAGE_H
#define SRC_LAYER_PASSAGE_H

#include "src/layer/layer.h"
#include "src/layer/table.h"

/* The backend that a call goes to. */
struct route {
	const struct vb_backend *backend; /* the original */
	struct ibv_context *context;	  /* NULL: none, or of no backend */
	const struct layer_entry *entry;  /* of the context; NULL: it has none */
	const char *device;		  /* of a verb that takes a device: its name */
};

struct passage {
	struct layer_call call;
	unsigned int count; /* counts the layers whose before() has let the call pass */
	unsigned int tells; /* bit I is set if layer I wants after() also after a success */
	struct layer *layers[LAYERS_MAX];
	uint64_t states[LAYERS_MAX];
	struct layer *changer;	    /* the layer with change() that has seen the call; NULL: none */
	int refused;		    /* the errno with which a layer fails the verb; 0: none does */
	int saved_errno;	    /* the thread's before the call */
	struct layer_entry *ending; /* the object that the verb destroys; NULL: none */
	uint64_t ending_serial;
	struct vb_why why;
};

/* The convention of layer_verb_info(verb). */
enum layer_convention layer_convention_of(enum layer_verb verb);

/* These two belong to passage.c and steps.h. */
struct passage_thread {
	bool inside;		    /* the thread is inside a layered verb */
	struct dispatch_call *call; /* of dispatch_own_call(), or NULL at first */
};

extern _Thread_local struct passage_thread passage_thread;
extern struct layer *_Atomic passage_layers[LAYERS_MAX]; /* the first NULL ends them */

/*
 * Returns true while the calling thread is inside a layered verb. Calls of the backend or of a layer are
 * then no calls of the program, and pass no layer.
 */
static inline bool passage_inside(void)
{
	return passage_thread.inside;
}

/* Inline, so that the compiler looks up the thread's variables once in each caller. */
static inline struct passage_thread *passage_own_thread(void)
{
	struct passage_thread *thread = &passage_thread;

	__asm__("" : "+r"(thread));
	return thread;
}

/* Returns true if a layer is added that may change what verbs fill in. */
bool passage_may_change(void);

/* Notes the caller of the function that this function is inlined into. */
static inline __attribute__((always_inline)) void passage_note_caller(struct passage *passage)
{
	passage->call.caller = __builtin_return_address(0);
	passage->call.frame = __builtin_frame_address(0);
}

/* Call this after passage_note_caller(). Returns 0, or the errno with which a layer fails the verb: then the
 * backend must not be called. */
int passage_begin(struct passage *passage, enum layer_verb verb, const struct route *route,
		  const uint64_t *arguments);

/* result: what the verb returns. */
void passage_end(struct passage *passage, uint64_t result);

/* As passage_end(), if the arguments have changed during the call. */
void passage_end_with(struct passage *passage, uint64_t result, const uint64_t *arguments);

#endif /* SRC_LAYER_PASSAGE_H */
