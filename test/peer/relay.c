/* SPDX-License-Identifier: MIT */
#include "test/peer/relay.h"

#include "test/peer/peer.h"
#include "test/peer/translate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbena/cm_backend.h>

static const struct peer_setup *setup;
static pid_t peer;
static bool receives; /* a QP has come to RTR */

void relay_begin(const struct peer_setup *with, pid_t to)
{
	setup = with;
	peer = to;
	receives = false;
}

bool peer_can_receive(void)
{
	return receives;
}

/* --- a call --- */

/* The prefixes of the verbs that end their first argument. */
static bool ends_object(enum row row)
{
	static const char *const prefixes[] = {"close_",   "dealloc_", "dereg_",
					       "destroy_", "free_",    "unimport_"};

	if (row == ROW_cm_destroy_event_channel || row == ROW_cm_destroy_id ||
	    row == ROW_cm_ack_cm_event)
		return true;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (!strncmp(exchange_name(row), prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static bool moves_to_rtr(const struct call *call)
{
	const struct ibv_qp_attr *attr;

	/* The QP of an identifier. */
	if (call->row == ROW_cm_accept)
		return true;
	if (call->row != ROW_modify_qp)
		return false;
	attr = (const void *)(uintptr_t)call->values[1];
	return (int)call->values[2] & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTR;
}

static void say_death(enum row row)
{
	char text[256], how[96];
	int status = 0;

	waitpid(peer, &status, 0);
	peer = -1;
	if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "SIG%s (%s)", sigabbrev_np(WTERMSIG(status)),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(how, sizeof(how), "exit status %d", WEXITSTATUS(status));
	snprintf(text, sizeof(text), "B's process ended in %s: %s", exchange_name(row), how);
	setup->died(setup->arg, text);
	abort();
}

/* Returns where the call has the descriptor that a verb gets from the test; NULL: it gets none. */
static const int *descriptor_of(const struct call *call)
{
	const struct ibv_xrcd_init_attr *xrcd;

	if (call->row == ROW_import_device)
		return (const int *)&call->values[0];
	if (call->row == ROW_reg_dmabuf_mr)
		return (const int *)&call->values[4];
	if (call->row != ROW_open_xrcd)
		return NULL;
	xrcd = (const void *)(uintptr_t)call->values[1];
	return xrcd && xrcd->comp_mask & IBV_XRCD_INIT_ATTR_FD ? &xrcd->fd : NULL;
}

/* A new context or channel has descriptors of B's process; the test gets its own for the same files. */
static void take_descriptors(uint64_t object, unsigned int count)
{
	struct mirror *mirror = mirror_of((const void *)(uintptr_t)object);
	int fds[2];

	if (!count || !exchange_receive(fds, count) || !mirror)
		return;
	if (mirror->kind == KIND_CHANNEL) {
		mirror->object.channel.fd = fds[0];
	} else if (mirror->kind == KIND_CM_CHANNEL) {
		mirror->object.cm_channel.fd = fds[0];
	} else {
		mirror->object.verbs.context.async_fd = fds[0];
		mirror->object.verbs.context.cmd_fd = fds[1];
	}
}

static void close_descriptors(uint64_t object)
{
	struct mirror *mirror = mirror_of((const void *)(uintptr_t)object);

	if (mirror->kind == KIND_CHANNEL) {
		close(mirror->object.channel.fd);
	} else if (mirror->kind == KIND_CM_CHANNEL) {
		close(mirror->object.cm_channel.fd);
	} else if (mirror->kind == KIND_CONTEXT) {
		close(mirror->object.verbs.context.async_fd);
		close(mirror->object.verbs.context.cmd_fd);
	}
}

static void ask(struct exchange *exchange)
{
	if (peer < 0 || !exchange_ask(peer))
		say_death(exchange->row);
}

static uint64_t relay(const struct call *call, enum kind makes, bool makes_object)
{
	struct exchange *ours = exchange();
	const char *why = translate_check(call);
	const int *fd;
	int kept_fd;

	if (!why && makes_object && makes == KIND_NONE)
		why = "two processes: the test makes an object of a kind that has no mirror";
	if (why) {
		setup->leave_out(setup->arg, why);
		abort();
	}
	fd = descriptor_of(call);
	kept_fd = fd ? *fd : -1;
	ours->row = call->row;
	ours->makes = makes;
	ours->ends = ends_object(call->row);
	/* A descriptor that is none is passed as a number. */
	ours->with_fd = fd && fcntl(*fd, F_GETFD) >= 0 && exchange_send(fd, 1);
	translate(call, ours);
	ask(ours);
	/* Success is 0 in every verb that writes objects into an argument. */
	translate_back(call, !ours->result);
	if (ours->with_fd && call->row == ROW_open_xrcd)
		*(int *)fd = kept_fd;
	take_descriptors(ours->result, ours->fds);
	receives = receives || (moves_to_rtr(call) && !ours->result);
	if (ours->ends && !ours->err)
		close_descriptors(call->values[0]);
	if (ours->err)
		errno = ours->err;
	return ours->result;
}

/* --- the functions of all rows --- */

#define RELAY(result, name, parameters, arguments, makes, makes_object)           \
	const uint64_t packed[] = {NUMBERS arguments};                            \
	const unsigned char types[] = {TYPES arguments};                          \
	const struct call call = {ROW_##name, types, packed, COUNT_OF arguments}; \
	const uint64_t answer = relay(&call, makes, makes_object)

#define COUNT_OF(...) NUMBERS_PICK(0, ##__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)
#define KIND_OF(pointer) \
	((int)TYPE_OF(pointer) < (int)KINDS ? (enum kind)TYPE_OF(pointer) : KIND_NONE)

#define RELAY_OBJECT(result, name, parameters, arguments)                     \
	RELAY(result, name, parameters, arguments, KIND_OF((result)0), true); \
	return (result)answer
#define RELAY_VALUE(result, name, parameters, arguments)              \
	RELAY(result, name, parameters, arguments, KIND_NONE, false); \
	return (result)answer
#define RELAY_NOTHING(result, name, parameters, arguments)            \
	RELAY(result, name, parameters, arguments, KIND_NONE, false); \
	(void)answer

#define RELAY_ERRNO	RELAY_VALUE
#define RELAY_POSTED	RELAY_VALUE
#define RELAY_POINTER	RELAY_OBJECT
#define RELAY_OPTIONAL	RELAY_OBJECT
#define RELAY_MINUS_ONE RELAY_VALUE
#define RELAY_NEGATED	RELAY_VALUE
#define RELAY_REREG	RELAY_VALUE
#define RELAY_ANSWER	RELAY_VALUE
#define RELAY_GAI	RELAY_VALUE

#define FUNCTION(result, name, parameters, arguments, convention)        \
	static result relay_##name parameters                            \
	{                                                                \
		RELAY_##convention(result, name, parameters, arguments); \
	}
#define PEER_INLINE(owner, result, name, parameters, arguments, convention) \
	FUNCTION(result, name, parameters, arguments, convention)
#include "test/peer/inline.def"
#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	FUNCTION(result, name, parameters, arguments, convention)
#include <verbena/verbs.def>
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	FUNCTION(result, cm_##name, parameters, arguments, convention)
#include <verbena/cm.def>

/*
 * The array is the test's: as libibverbs's own, it may be freed by free(). The real list stays until B's
 * process ends, since the real libibverbs may free the devices with it.
 */
static struct ibv_device **copy_list(int *num_devices)
{
	struct ibv_device **shown = relay_get_device_list(num_devices), **copy;
	size_t count = 0;

	while (shown && shown[count])
		count++;
	copy = shown ? calloc(count + 1, sizeof(struct ibv_device *)) : NULL;
	for (size_t i = 0; copy && i < count; i++)
		copy[i] = shown[i];
	return copy;
}

static void free_list(struct ibv_device **list)
{
	free(list);
}

/* The name is in the mirror. */
static const char *name_of(struct ibv_device *device)
{
	return device->name;
}

/* --- in the objects --- */

void relay_dress_context(struct verbs_context *shown)
{
	shown->sz = sizeof(*shown);
	shown->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
#define VB_VERB(...)
#define VB_EXTENDED(result, name, parameters, arguments, convention, by, object, op) \
	shown->op = relay_##name;
#define VB_BASIC(result, name, parameters, arguments, convention, by, object) \
	shown->context.ops.name = relay_##name;
#include <verbena/verbs.def>
}

/* Gives a mirror the relay's function wherever the real object has a function. */
#define DRESS(name)	  shown->name = real->name ? relay_##name : NULL;
#define DRESS_QP_QP(name) DRESS(name)
#define DRESS_CQ_CQ(name) DRESS(name)
#define DRESS_DM_DM(name) DRESS(name)
#define DRESS_QP_CQ(name)
#define DRESS_QP_DM(name)
#define DRESS_CQ_QP(name)
#define DRESS_CQ_DM(name)
#define DRESS_DM_QP(name)
#define DRESS_DM_CQ(name)

void relay_dress_qp(struct ibv_qp_ex *shown, const struct ibv_qp_ex *real)
{
#define PEER_INLINE(owner, result, name, parameters, arguments, convention) DRESS_QP_##owner(name)
#include "test/peer/inline.def"
}

void relay_dress_cq(struct ibv_cq_ex *shown, const struct ibv_cq_ex *real)
{
#define PEER_INLINE(owner, result, name, parameters, arguments, convention) DRESS_CQ_##owner(name)
#include "test/peer/inline.def"
}

void relay_dress_dm(struct ibv_dm *shown, const struct ibv_dm *real)
{
#define PEER_INLINE(owner, result, name, parameters, arguments, convention) DRESS_DM_##owner(name)
#include "test/peer/inline.def"
}

/* --- the backend --- */

static const struct vb_why *last_why(void)
{
	return &exchange()->why;
}

static const struct vb_cm_backend relay_cm = {
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	.name = relay_cm_##name,
#include <verbena/cm.def>
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"

const struct vb_backend relay_backend = {
	.name = PEER_BACKEND,
	.description = "the device of another process, for conformance tests in two processes",
	.last_why = last_why,
	.cm = &relay_cm,
#define VB_VERB(result, name, parameters, arguments, convention, by, object) .name = relay_##name,
#include <verbena/verbs.def>
	.get_device_list = copy_list,
	.free_device_list = free_list,
	.get_device_name = name_of,
};

#pragma GCC diagnostic pop

/* Asks for what is no verb: no argument is an object. */
static uint64_t ask_plainly(enum row row)
{
	struct exchange *ours = exchange();

	ours->row = row;
	ours->makes = KIND_NONE;
	ours->ends = ours->with_fd = false;
	for (unsigned int i = 0; i < MIRRORS_MAX; i++)
		ours->mirrors[i] = NULL;
	ask(ours);
	return ours->result;
}

int peer_protect(void *memory, size_t length_bytes, int protection)
{
	struct exchange *ours = exchange();

	ours->arguments[0] = NUMBER(memory);
	ours->arguments[1] = length_bytes;
	ours->arguments[2] = NUMBER(protection);
	return (int)ask_plainly(ROW_PROTECT);
}

void peer_count_objects(struct vb_sim_objects *left)
{
	ask_plainly(ROW_COUNT_OBJECTS);
	*left = exchange()->left;
}
