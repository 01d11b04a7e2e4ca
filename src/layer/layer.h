/* SPDX-License-Identifier: MIT */
/*
 * Layers: they see each call of a verb before and after the backend does, on any backend. A log, a
 * sanitizer or a source of failures is a layer.
 *
 * While no layer is added, nothing is in the way of a verb. With the first one, the verbs of all
 * backends go through src/layer/: those that vb_* dispatches, and those that a program reaches
 * through pointers in an object (context->ops, struct verbs_context, ibv_qp_ex, ibv_cq_ex). The
 * functions of the connection manager count as verbs here: vb_cm_connect() is the verb cm_connect.
 */
#ifndef SRC_LAYER_LAYER_H
#define SRC_LAYER_LAYER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <verbena/backend.h>

#define LAYER_ARGUMENTS_MAX 8

/* The verbs, the functions of the connection manager, and the functions that a program reaches only
 * through ibv_qp_ex and ibv_cq_ex. */
enum layer_verb {
#define VB_VERB(result, name, parameters, arguments, convention, by, object) LAYER_##name,
#include <verbena/verbs.def>
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) LAYER_cm_##name,
#include <verbena/cm.def>
	/* ibv_wr_complete(): the arguments are the QP, and the struct ibv_send_wr list of the batch
	 * (built only if a layer asks for it) */
	LAYER_wr_start,
	LAYER_wr_complete,
	LAYER_wr_abort,
	/* ibv_start_poll() and ibv_next_poll(): the arguments are the CQ and, if a completion was
	 * found, its struct ibv_wc; ibv_end_poll(): the CQ. For change(), if the CQ is empty, the third
	 * argument is a struct ibv_wc: a layer that fills it in copies the third argument to the second, and
	 * returns 0. */
	LAYER_start_poll,
	LAYER_next_poll,
	LAYER_end_poll,
	LAYER_VERBS,
};

enum layer_convention {
	LAYER_ERRNO,
	LAYER_POSTED,
	LAYER_POINTER,
	LAYER_OPTIONAL,
	LAYER_MINUS_ONE,
	LAYER_GAI, /* returns 0, or -1 with errno, or EAI_* of getaddrinfo(3) */
	LAYER_NEGATED,
	LAYER_REREG,
	LAYER_ANSWER,
	LAYER_NOTHING,
};

struct layer_parameter {
	char name[32]; /* such as "attr_mask" */
	char type[64]; /* such as "struct ibv_qp *" */
};

struct layer_verb_info {
	const char *name; /* such as "modify_qp" or "cm_connect" */
	enum layer_convention convention;
	unsigned int parameter_count;
	const struct layer_parameter *parameters;
};

const struct layer_verb_info *layer_verb_info(enum layer_verb verb);

/* Returns true if the verb ends an object, as destroy_qp does. */
bool layer_verb_ends(enum layer_verb verb);

/* A call of a verb. A layer may write to `refusal`, `why`, `state` and `skips_after` only. */
struct layer_call {
	enum layer_verb verb;
	const struct vb_backend *backend; /* the original, without layers */
	struct ibv_context *context;	  /* NULL: none, or closed by this call */
	const char *device;		  /* its name; NULL: none */
	const uint64_t *arguments;	  /* pointers and numbers, in the order of the parameters */
	const void *caller; /* the address to which the verb's wrapper returns, in the program */
	const void *const *frame; /* the wrapper's frame: it begins with the caller's */
	uint64_t state;		  /* the layer's own, from before() to after(); 0 at first */
	const char *
		refusal; /* set by a before() that fails the verb: a sentence that says why; may be NULL */
	/* As refusal, but a reason of reasons.def; it and its text must stay until the call ends. After a
	 * failed call: its reason, if one is known; else NULL. */
	const struct vb_why *why;
	bool skips_after; /* set by a before() that needs after() only if the verb fails */
	/* After the call: */
	uint64_t result; /* what the verb returns; a negative number is sign-extended */
	int err;	 /* the errno of a failure; 0: the verb succeeded */
};

/*
 * before() is called in the order in which the layers were added, after() in reverse. They are called
 * by any thread. They call no verb; a verb that they call all the same passes no layer.
 */
struct layer {
	const char *name;
	/* Before the call. A value other than 0 is an errno with which the verb fails: the backend
	 * is not called, nor are the layers below. The layers above get the failure in after().
	 * wr_abort and end_poll are called all the same, since they release a lock. NULL: nothing to
	 * do. */
	int (*before)(struct layer_call *call);
	/* After a call that the layer's before() has let pass. NULL: nothing to do. */
	void (*after)(const struct layer_call *call);
	/*
	 * Of the lowest layer: called after the backend, or after its own before() has failed the verb, and
	 * before all after(): it may change what the verb has filled in (completions, *bad_wr). Returns
	 * what the verb returns instead of call->result; only the inline functions of libibverbs return
	 * another value. NULL: nothing changes.
	 */
	uint64_t (*change)(const struct layer_call *call);
	bool lowest; /* the layer stays below those that are added after it; one layer at most has it */
};

#define LAYERS_MAX 8

/*
 * Adds a layer below all others but the lowest, or removes it. No thread may be inside a verb. Contexts that are
 * open already are layered at once; QPs and CQs with functions of their own (ibv_qp_ex, ibv_cq_ex)
 * only if they are made from now on, and a QP for which the program calls ibv_qp_to_qp_ex(). Returns
 * 0, EEXIST (the layer is added already) or ENOMEM (also: there are LAYERS_MAX layers).
 */
int layer_add(struct layer *layer);
void layer_remove(struct layer *layer);

/*
 * Returns true after memory was lacking for the wrappers of a context, a CQ or a QP, or for its place among the
 * objects: from then on, until the last layer is removed, the layers may not see all calls on it.
 */
bool layer_lost_sight(void);

/* Returns the time on the clock of the call's device; CLOCK_MONOTONIC if it has none. */
uint64_t layer_now_ns(const struct layer_call *call);

/*
 * From now on, calls `watch` when the program reads, through an ibv_cq_ex, a field that a failed
 * completion does not have (ibv_poll_cq(3)). call: its caller and frame are those of the function that
 * reads; its first argument is the CQ. field: such as "byte_len". It is called by any thread, outside
 * all verbs, for CQs that are made while a layer is added. NULL: no layer asks.
 */
void layer_watch_reads(void (*watch)(const struct layer_call *call, const char *field));

/*
 * The name of an object that a program has made, such as "pd1", "cq2", "mr3" or "qp 0x11": "" if the
 * pointer is of no object that a layered verb has returned. Writes into text of size_bytes bytes
 * (32 are enough) and returns text. Names are counted by device and kind, from 1; a QP's is its
 * number. Identifiers and channels of the connection manager are counted in the process.
 */
const char *layer_object_name(const void *object, char *text, size_t size_bytes);

/* What is known about an object that a layered verb has returned. */
struct layer_object {
	const char *kind; /* such as "pd"; constant */
	uint32_t number;  /* of its kind and device, from 1; of a QP its QPN */
	uint32_t qpn;	  /* of a QP; else 0 */
	const struct ibv_context *context;
	const char *device; /* its name; NULL: none; constant */
};

/* Returns false if the pointer is of no such object. Reads nothing through the pointer. */
bool layer_object_find(const void *object, struct layer_object *found);

#endif /* SRC_LAYER_LAYER_H */
