/* SPDX-License-Identifier: MIT */
#include "backends/ibverbs/rdmacm.h"

#include "backends/ibverbs/load.h"

#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <stddef.h>
#include <unistd.h>

#define DEVICE "/dev/infiniband/rdma_cm"

/* A pointer to each function; NULL if the loaded library does not export it. */
struct rdmacm {
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	__typeof__(rdma_##name) *(name);
#include <verbena/cm.def>
};

static const struct symbol symbols[] = {
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	{"rdma_" #name, version, offsetof(struct rdmacm, name)},
#include <verbena/cm.def>
};

static const struct load what = {
	.variable = "VERBENA_LIBRDMACM",
	.file = "librdmacm.so.1",
	.needed = "rdma_create_event_channel",
	.missing = VB_WHY_CM_LIBRARY_MISSING,
	.dropin = VB_WHY_CM_LIBRARY_IS_DROPIN,
	.symbols = symbols,
	.count = sizeof(symbols) / sizeof(symbols[0]),
};

static struct rdmacm pointers;
static struct loaded loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
	load_library(&what, &pointers, &loaded);
}

static const struct rdmacm *rdmacm(void)
{
	pthread_once(&once, load);
	return &pointers;
}

/* Keeps the reason for a function that the library does not have. Returns the errno value. */
static int missing(const char *name)
{
	if (loaded.why.reason != VB_WHY_NONE)
		return load_fail(ENOSYS, name, loaded.why);
	return load_fail(EOPNOTSUPP, name,
			 (struct vb_why){.reason = VB_WHY_VERB_LACKING, .text = "librdmacm"});
}

/*
 * Sets errno to ENOSYS, and keeps the reason, after a call that needs no object has failed on a
 * kernel without the connection manager: the library reports many errno values then.
 */
static void explain(const char *name)
{
	const int saved = errno;

	if (access(DEVICE, F_OK) && errno == ENOENT)
		errno = load_fail(ENOSYS, name, (struct vb_why){VB_WHY_CM_KERNEL_WITHOUT});
	else
		errno = saved;
}

/* By convention: the answer for a function that the library does not have; what a failure is. */
#define MISSING_NOTHING
#define MISSING_POINTER		 NULL
#define MISSING_MINUS_ONE	 (-1)
#define MISSING_GAI		 (-1)
#define FAILED_POINTER(answer)	 (!(answer))
#define FAILED_MINUS_ONE(answer) ((answer) < 0)
#define FAILED_GAI(answer)	 ((answer) != 0)

/* How a call ends, by how the row finds its backend: calls of NAMED rows need no object. */
#define RETURN_ID(result, name, convention, call)      return call
#define RETURN_BY_HAND(result, name, convention, call) return call
#define RETURN_NAMED(result, name, convention, call) \
	result answer = call;                        \
                                                     \
	if (FAILED_##convention(answer))             \
		explain("cm_" #name);                \
	return answer

#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	static result pass_##name parameters                                        \
	{                                                                           \
		__typeof__(rdma_##name) *function = rdmacm()->name;                 \
                                                                                    \
		load_begin();                                                       \
		if (!function) {                                                    \
			errno = missing("cm_" #name);                               \
			return MISSING_##convention;                                \
		}                                                                   \
		RETURN_##by(result, name, convention, function arguments);          \
	}
#include <verbena/cm.def>

const struct vb_cm_backend rdmacm_backend = {
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	.name = pass_##name,
#include <verbena/cm.def>
};
