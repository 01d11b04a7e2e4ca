/* SPDX-License-Identifier: MIT */
#include "test/peer/serve.h"

#include "test/peer/exchange.h"
#include "test/peer/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <verbena/cm_backend.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

static const struct vb_backend *backend;

/* --- the call of a row: its parameters are filled with the arguments of the exchange --- */

#define LOAD(i, a) (a) = (__typeof__(a))exchange()->arguments[i]
#define LOADS(...)                                                                           \
	NUMBERS_PICK(0, ##__VA_ARGS__, LOADS_6, LOADS_5, LOADS_4, LOADS_3, LOADS_2, LOADS_1, \
		     LOADS_0)                                                                \
	(__VA_ARGS__)
#define LOADS_0()		  ((void)0)
#define LOADS_1(a)		  LOAD(0, a)
#define LOADS_2(a, b)		  LOADS_1(a), LOAD(1, b)
#define LOADS_3(a, b, c)	  LOADS_2(a, b), LOAD(2, c)
#define LOADS_4(a, b, c, d)	  LOADS_3(a, b, c), LOAD(3, d)
#define LOADS_5(a, b, c, d, e)	  LOADS_4(a, b, c, d), LOAD(4, e)
#define LOADS_6(a, b, c, d, e, f) LOADS_5(a, b, c, d, e), LOAD(5, f)

/* As many zeros as arguments: a zero is good for each type. */
#define ZEROS(...)                                                                        \
	NUMBERS_PICK(0, ##__VA_ARGS__, (0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0), (0, 0, 0, 0), \
		     (0, 0, 0), (0, 0), (0), ())

#define CALL_VALUE(call) return NUMBER(call)
#define CALL_NOTHING(call) \
	call;              \
	return 0

#define CALL_ERRNO     CALL_VALUE
#define CALL_POSTED    CALL_VALUE
#define CALL_POINTER   CALL_VALUE
#define CALL_OPTIONAL  CALL_VALUE
#define CALL_MINUS_ONE CALL_VALUE
#define CALL_NEGATED   CALL_VALUE
#define CALL_REREG     CALL_VALUE
#define CALL_ANSWER    CALL_VALUE
#define CALL_GAI       CALL_VALUE

#define FUNCTION(name, parameters, arguments, convention, call) \
	static uint64_t with_##name parameters                  \
	{                                                       \
		LOADS arguments;                                \
		CALL_##convention(call arguments);              \
	}                                                       \
	static uint64_t call_##name(void)                       \
	{                                                       \
		return with_##name ZEROS arguments;             \
	}

#define OWNER_QP (qp)
#define OWNER_CQ (cq)
#define OWNER_DM (dm)
#define PEER_INLINE(owner, result, name, parameters, arguments, convention) \
	FUNCTION(name, parameters, arguments, convention, OWNER_##owner->name)
#include "test/peer/inline.def"
#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	FUNCTION(name, parameters, arguments, convention, backend->name)
#include <verbena/verbs.def>
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	FUNCTION(cm_##name, parameters, arguments, convention, backend->cm->name)
#include <verbena/cm.def>

static uint64_t count_objects(void)
{
	if (backend->capabilities & VB_BACKEND_SIMULATED)
		vb_sim_count_objects(NULL, &exchange()->left);
	return 0;
}

static uint64_t protect(void)
{
	const uint64_t *arguments = exchange()->arguments;

	return mprotect((void *)(uintptr_t)arguments[0], arguments[1], (int)arguments[2]);
}

static uint64_t end(void)
{
	exchange_answer();
	exit(EXIT_SUCCESS);
}

static uint64_t (*const calls[ROWS])(void) = {
#define PEER_INLINE(owner, result, name, parameters, arguments, convention) \
	[ROW_##name] = call_##name,
#include "test/peer/inline.def"
#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	[ROW_##name] = call_##name,
#include <verbena/verbs.def>
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	[ROW_cm_##name] = call_cm_##name,
#include <verbena/cm.def>
	[ROW_COUNT_OBJECTS] = count_objects,
	[ROW_PROTECT] = protect,
	[ROW_END] = end,
};

/* --- a call and its answer --- */

static void copy_why(struct exchange *ours)
{
	const struct vb_why *why = backend->last_why ? backend->last_why() : NULL;

	ours->why = why ? *why : (struct vb_why){.reason = VB_WHY_NONE};
	if (!ours->why.text)
		return;
	snprintf(ours->text, sizeof(ours->text), "%s", ours->why.text);
	ours->why.text = ours->text;
}

/* Puts a descriptor of this process in the place of the test's. */
static void take_descriptor(struct exchange *ours, int *fd)
{
	if (!ours->with_fd || !exchange_receive(fd, 1))
		return;
	if (ours->row == ROW_import_device)
		ours->arguments[0] = NUMBER(*fd);
	else if (ours->row == ROW_reg_dmabuf_mr)
		ours->arguments[4] = NUMBER(*fd);
	else
		((struct ibv_xrcd_init_attr *)(uintptr_t)ours->arguments[1])->fd = *fd;
}

/* An imported context keeps its descriptor. */
static bool keeps_descriptor(const struct exchange *ours)
{
	return ours->row == ROW_import_device && ours->result;
}

static void send_descriptors(struct exchange *ours, const void *object)
{
	const struct ibv_context *context = object;
	const struct ibv_comp_channel *channel = object;
	const struct rdma_event_channel *cm_channel = object;
	int fds[2];

	ours->fds = 0;
	if (!object)
		return;
	if (ours->makes == KIND_CONTEXT) {
		fds[0] = context->async_fd;
		fds[1] = context->cmd_fd;
		ours->fds = exchange_send(fds, 2) ? 2 : 0;
	} else if (ours->makes == KIND_CHANNEL) {
		ours->fds = exchange_send(&channel->fd, 1) ? 1 : 0;
	} else if (ours->makes == KIND_CM_CHANNEL) {
		ours->fds = exchange_send(&cm_channel->fd, 1) ? 1 : 0;
	}
}

/* An identifier or event that the function has written to the place of its second argument. */
static void show_place(const struct exchange *ours)
{
	void **place = (void **)(uintptr_t)ours->arguments[1];

	if (ours->result)
		return;
	if (ours->row == ROW_cm_create_id)
		mirror_for(*place, KIND_CM_ID);
	else if (ours->row == ROW_cm_get_cm_event)
		mirror_make(*place, KIND_CM_EVENT);
}

/* A QP may have the functions of an extended one, which a test finds by ibv_qp_to_qp_ex(). */
static bool is_extended(struct ibv_qp *qp)
{
	return backend->qp_to_qp_ex && backend->qp_to_qp_ex(qp);
}

static void show_result(struct exchange *ours)
{
	void *real = (void *)(uintptr_t)ours->result;

	send_descriptors(ours, real);
	show_place(ours);
	if (real && ours->makes != KIND_NONE)
		ours->result = NUMBER(mirror_make(real, ours->makes));
	if (real && ours->makes == KIND_QP && is_extended(real))
		mirror_make(real, KIND_QP_EX);
	if (ours->ends && ours->mirrors[0]) {
		mirror_pull_channel(ours->mirrors[0]);
		ours->mirrors[0]->ended = !ours->result;
	}
	for (unsigned int i = ours->ends ? 1 : 0; i < MIRRORS_MAX; i++)
		if (ours->mirrors[i])
			mirror_pull(ours->mirrors[i]);
}

/* A window that a batch binds gets its key when the batch ends. */
static void pull_bound_windows(const struct exchange *ours)
{
	static struct mirror *bound[MIRRORS_MAX];
	static unsigned int count;

	if (ours->row == ROW_wr_bind_mw && ours->mirrors[1] && count < MIRRORS_MAX)
		bound[count++] = ours->mirrors[1];
	if (ours->row == ROW_wr_complete || ours->row == ROW_wr_abort)
		while (count)
			mirror_pull(bound[--count]);
}

static void answer(struct exchange *ours)
{
	int fd = -1;

	for (unsigned int i = 0; i < MIRRORS_MAX; i++)
		if (ours->mirrors[i])
			mirror_push(ours->mirrors[i]);
	take_descriptor(ours, &fd);
	errno = 0;
	ours->result = calls[ours->row]();
	ours->err = errno;
	if (fd >= 0 && !keeps_descriptor(ours))
		close(fd);
	copy_why(ours);
	show_result(ours);
	pull_bound_windows(ours);
}

/* --- the process --- */

static bool enter_network(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool entered = fd >= 0 && !setns(fd, CLONE_NEWNET);

	if (fd >= 0)
		close(fd);
	return entered;
}

static bool prepare(const struct peer_setup *setup, char *error, size_t size_bytes)
{
	if (setup->network && !enter_network(setup->network)) {
		snprintf(error, size_bytes, "%s: %s", setup->network, strerror(errno));
		return false;
	}
	backend = vb_find_backend(setup->backend);
	if (!backend || (setup->sim && vb_sim_configure(setup->sim))) {
		snprintf(error, size_bytes, "%s", vb_last_error());
		return false;
	}
	return true;
}

void serve(const struct peer_setup *setup)
{
	struct exchange *ours = exchange();

	exchange_be_served();
	atomic_store(&ours->ready, prepare(setup, ours->text, sizeof(ours->text)));
	exchange_answer();
	for (;;) {
		exchange_take();
		answer(ours);
		exchange_answer();
	}
}
