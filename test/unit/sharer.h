/* SPDX-License-Identifier: MIT */
/*
 * A child process of a test that has the test's shared world and the same XRC file. It does what orders
 * on a socket say, and answers each.
 */
#ifndef TEST_UNIT_SHARER_H
#define TEST_UNIT_SHARER_H

#include "test/unit/sim_sentence.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum share_order {
	SHARE_OPEN_DOMAIN, /* argument: oflags */
	SHARE_CLOSE_DOMAIN,
	SHARE_MAKE_SRQ, /* number: its number; count: the rkey of the buffer; addr */
	SHARE_DESTROY_SRQ,
	SHARE_POST, /* argument: receives of 2048 bytes each, into the two halves of the buffer */
	SHARE_POLL, /* one completion: error is its status */
	SHARE_BYTES,
	SHARE_BIG,	   /* registers and fills `big`: number is the rkey; argument: the seed */
	SHARE_FILL,	   /* fills the buffer; argument: the seed */
	SHARE_DEREG,	   /* deregisters `big` */
	SHARE_MAKE_TARGET, /* number: the QPN */
	SHARE_OPEN_TARGET, /* argument: the QPN */
	SHARE_DESTROY_TARGET, /* closes the handle */
	SHARE_QUERY_TARGET,   /* number: the state; count: the QPN of the peer */
	SHARE_RESET_TARGET,
	SHARE_EVENT,	    /* number: the type of an event of the target, or UINT32_MAX */
	SHARE_CLOSE_DEVICE, /* closes the context, and all that is in it */
};

enum { SHARE_BIG_BYTES = 70000 };

struct share_asks {
	enum share_order order;
	int argument;
};

struct share_answer {
	int error;
	uint32_t number, count;
	uint64_t addr;
	struct ibv_wc wc;
	uint8_t bytes[8192];
};

/* The test fills bytes so that each seed gives others. */
static inline void share_fill(uint8_t *bytes, size_t length, int seed)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)((size_t)seed + i * 11 + i / 64 + i / 4096 * 3);
}

struct sharer {
	pid_t pid;
	int socket;
};

static char share_world[VB_SIM_NAME_MAX];
static int share_file; /* its inode names the domain */

static inline void share_config(struct vb_sim_config *config)
{
	*config = (struct vb_sim_config){
		.device_count = 1,
		.clock = VB_SIM_CLOCK_REAL,
		.devices = {{.name = "sim0", .wire = VB_SIM_WIRE_SHARED}},
	};
	memcpy(config->world, share_world, sizeof(share_world));
}

static inline struct ibv_xrcd *share_domain(struct ibv_context *context, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	return B.open_xrcd(context, &attr);
}

/* The next completion; status IBV_WC_GENERAL_ERR if none comes for 10 s. */
static inline struct ibv_wc share_wait(struct ibv_cq *cq)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
	const time_t end = time(NULL) + 10;
	int n = 0;

	while (!n && time(NULL) <= end)
		n = ibv_poll_cq(cq, 1, &wc);
	return wc;
}

/* --- the child --- */

struct sharing {
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	uint32_t posted;
	struct ibv_mr *big;
	struct ibv_qp *target;
};

static uint8_t share_big[SHARE_BIG_BYTES];

static inline void share_make_srq(struct sharing *mine, struct share_answer *answer)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 64, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = a.pd,
		.xrcd = mine->xrcd,
		.cq = a.cq,
	};

	mine->srq = B.create_srq_ex(a.context, &attr);
	answer->error = mine->srq ? B.get_srq_num(mine->srq, &answer->number) : errno;
	answer->count = a.mr->rkey;
	answer->addr = (uintptr_t)a.buffer;
}

static inline void share_register(struct sharing *mine, int seed, struct share_answer *answer)
{
	share_fill(share_big, sizeof(share_big), seed);
	if (!mine->big)
		mine->big = B.reg_mr(a.pd, share_big, sizeof(share_big), ACCESS_ALL);
	answer->error = mine->big ? 0 : errno;
	answer->number = mine->big ? mine->big->rkey : 0;
	answer->addr = (uintptr_t)share_big;
}

static inline struct ibv_qp *share_make_target(struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};

	return B.create_qp_ex(a.context, &attr);
}

static inline struct ibv_qp *share_open_target(struct ibv_xrcd *xrcd, uint32_t number)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE |
			     IBV_QP_OPEN_ATTR_CONTEXT,
		.qp_num = number,
		.xrcd = xrcd,
		.qp_context = &a,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return B.open_qp(a.context, &attr);
}

/* Waits for an event. The type is UINT32_MAX if none comes for 10 s. */
static inline uint32_t share_event(const struct ibv_qp *target)
{
	struct pollfd one = {a.context->async_fd, POLLIN, 0};
	struct ibv_async_event event;

	if (poll(&one, 1, 10000) != 1 || B.get_async_event(a.context, &event))
		return UINT32_MAX;
	B.ack_async_event(&event);
	return event.element.qp == target ? (uint32_t)event.event_type : UINT32_MAX;
}

static inline void share_query(struct ibv_qp *target, struct share_answer *answer)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	answer->error = B.query_qp(target, &attr, IBV_QP_STATE, &init);
	answer->number = attr.qp_state;
	answer->count = attr.dest_qp_num;
}

static inline int share_post(struct sharing *mine, int count)
{
	for (; count; count--) {
		struct ibv_sge sge = sge_of(&a, mine->posted % 2 * 2048, 2048);
		struct ibv_recv_wr wr = {.wr_id = mine->posted++, .sg_list = &sge, .num_sge = 1};
		struct ibv_recv_wr *bad;
		int err = B.post_srq_recv(mine->srq, &wr, &bad);

		if (err)
			return err;
	}
	return 0;
}

static inline void share_obey(struct sharing *mine, struct share_asks asks,
			      struct share_answer *answer)
{
	switch (asks.order) {
	case SHARE_OPEN_DOMAIN:
		mine->xrcd = share_domain(a.context, share_file, asks.argument);
		answer->error = mine->xrcd ? 0 : errno;
		break;
	case SHARE_CLOSE_DOMAIN:
		answer->error = B.close_xrcd(mine->xrcd);
		break;
	case SHARE_MAKE_SRQ:
		share_make_srq(mine, answer);
		break;
	case SHARE_DESTROY_SRQ:
		answer->error = B.destroy_srq(mine->srq);
		break;
	case SHARE_POST:
		answer->error = share_post(mine, asks.argument);
		break;
	case SHARE_POLL:
		answer->wc = share_wait(a.cq);
		answer->error = (int)answer->wc.status;
		break;
	case SHARE_BYTES:
		memcpy(answer->bytes, a.buffer, sizeof(a.buffer));
		break;
	case SHARE_BIG:
		share_register(mine, asks.argument, answer);
		break;
	case SHARE_FILL:
		share_fill(a.buffer, sizeof(a.buffer), asks.argument);
		break;
	case SHARE_MAKE_TARGET:
	case SHARE_OPEN_TARGET:
		mine->target = asks.order == SHARE_MAKE_TARGET
				       ? share_make_target(mine->xrcd)
				       : share_open_target(mine->xrcd, (uint32_t)asks.argument);
		answer->error = mine->target ? 0 : errno;
		answer->number = mine->target ? mine->target->qp_num : 0;
		break;
	case SHARE_DESTROY_TARGET:
		answer->error = B.destroy_qp(mine->target);
		break;
	case SHARE_QUERY_TARGET:
		share_query(mine->target, answer);
		break;
	case SHARE_RESET_TARGET:
		answer->error = B.modify_qp(mine->target, &(struct ibv_qp_attr){0}, IBV_QP_STATE);
		break;
	case SHARE_EVENT:
		answer->number = share_event(mine->target);
		break;
	case SHARE_CLOSE_DEVICE:
		answer->error = B.close_device(a.context);
		break;
	case SHARE_DEREG:
		answer->error = B.dereg_mr(mine->big);
		mine->big = NULL;
		break;
	}
}

_Noreturn static inline void share(int socket)
{
	static struct share_answer answer;
	struct sharing mine = {0};
	struct vb_sim_config config;
	struct share_asks asks;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	share_config(&config);
	open_alone(&config);
	while (read(socket, &asks, sizeof(asks)) == sizeof(asks)) {
		answer = (struct share_answer){0};
		share_obey(&mine, asks, &answer);
		if (write(socket, &answer, sizeof(answer)) != sizeof(answer))
			break;
	}
	_exit(0);
}

/* --- the test --- */

/* Call this before the test opens a world of its own. */
static inline void share_begin(struct sharer *sharer)
{
	int ends[2];

	TEST_ASSERT_EQUAL_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	sharer->pid = fork();
	if (!sharer->pid) {
		close(ends[0]);
		share(ends[1]);
	}
	close(ends[1]);
	sharer->socket = ends[0];
}

static inline void share_kill(struct sharer *sharer)
{
	int status;

	if (!sharer->pid)
		return;
	kill(sharer->pid, SIGKILL);
	TEST_ASSERT_EQUAL_INT(sharer->pid, waitpid(sharer->pid, &status, 0));
	close(sharer->socket);
	sharer->pid = 0;
}

/* Stops the child. It does nothing more when this returns, until SIGCONT. */
static inline void share_stop(const struct sharer *sharer)
{
	int status;

	TEST_ASSERT_EQUAL_INT(0, kill(sharer->pid, SIGSTOP));
	TEST_ASSERT_EQUAL_INT(sharer->pid, waitpid(sharer->pid, &status, WUNTRACED));
	TEST_ASSERT_TRUE(WIFSTOPPED(status));
}

static inline const struct share_answer *share_ask(const struct sharer *sharer,
						   enum share_order order, int argument)
{
	static struct share_answer answer;
	const struct share_asks asks = {order, argument};
	size_t done = 0;

	TEST_ASSERT_EQUAL_INT(sizeof(asks), write(sharer->socket, &asks, sizeof(asks)));
	while (done < sizeof(answer)) {
		ssize_t more = read(sharer->socket, (char *)&answer + done, sizeof(answer) - done);

		TEST_ASSERT_TRUE(more > 0);
		done += (size_t)more;
	}
	return &answer;
}

#endif
