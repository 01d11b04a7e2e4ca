/* SPDX-License-Identifier: MIT */
/*
 * A child process of a test that opens a device of the test's world, makes objects and passes its cmd_fd.
 * It does what bytes on a socket say, and answers each with 4096 bytes.
 */
#ifndef TEST_UNIT_EXPORTER_H
#define TEST_UNIT_EXPORTER_H

#include "test/unit/sim_sentence.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORTED_BYTES 65536

/* What the test learns of the child's objects. */
struct exported {
	uint32_t pd, mr, dm, spare_dm; /* handles */
	uint32_t parent, null_mr, dm_mr;
	uint32_t lkey, rkey, dm_rkey;
	uint64_t addr;
};

struct exporter {
	pid_t pid;
	int socket;
	int cmd_fd;
	struct exported has;
};

enum order {
	ORDER_BYTES,	/* the first bytes of the buffer */
	ORDER_DM_BYTES, /* those of the device memory */
	ORDER_DEREGISTER,
	ORDER_REGISTER_AGAIN, /* deregisters, and registers the buffer's second half */
	ORDER_REREGISTER,     /* without remote rights */
	ORDER_FREE_PD,	      /* an unused one, of handle exported.pd + 2 */
	ORDER_FREE_DM,	      /* one of handle exported.spare_dm, without MRs */
	ORDER_CLOSE,
	ORDER_EXPECT_GONE, /* an importer has destroyed the MR, the unused PD and the spare DM */
};

static char import_world[VB_SIM_NAME_MAX];

static inline void shared_world(struct vb_sim_config *config)
{
	*config = (struct vb_sim_config){
		.device_count = 1,
		.clock = VB_SIM_CLOCK_REAL,
		.devices = {{.name = "sim0", .wire = VB_SIM_WIRE_SHARED}},
	};
	memcpy(config->world, import_world, sizeof(import_world));
}

/* Byte i of the exporter's buffer. */
static inline uint8_t exported_byte(size_t i)
{
	return (uint8_t)(i * 7 + i / 256 + 3);
}

/* --- the child --- */

static inline void pass(int socket, const struct exported *has, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec bytes = {(void *)has, sizeof(*has)};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	if (sendmsg(socket, &message, 0) != sizeof(*has))
		_exit(1);
}

struct exporting {
	struct ibv_context *context;
	struct ibv_pd *pd, *spare;
	struct ibv_mr *mr;
	struct ibv_dm *dm, *spare_dm;
	uint8_t *buffer;
};

static inline void obey(struct exporting *mine, uint8_t order, uint8_t answer[4096])
{
	int err = 0;

	switch ((enum order)order) {
	case ORDER_BYTES:
		memcpy(answer, mine->buffer, 4096);
		return;
	case ORDER_DM_BYTES:
		err = ibv_memcpy_from_dm(answer, mine->dm, 0, 4096);
		break;
	case ORDER_DEREGISTER:
		err = B.dereg_mr(mine->mr);
		break;
	case ORDER_REGISTER_AGAIN:
		err = B.dereg_mr(mine->mr);
		mine->mr = B.reg_mr(mine->pd, mine->buffer + EXPORTED_BYTES / 2, EXPORTED_BYTES / 2,
				    ACCESS_ALL);
		memcpy(answer, &mine->mr->handle, sizeof(mine->mr->handle));
		break;
	case ORDER_REREGISTER:
		err = B.rereg_mr(mine->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				 IBV_ACCESS_LOCAL_WRITE);
		break;
	case ORDER_FREE_PD:
		err = B.dealloc_pd(mine->spare);
		break;
	case ORDER_FREE_DM:
		err = B.free_dm(mine->spare_dm);
		break;
	case ORDER_CLOSE:
		err = B.close_device(mine->context);
		break;
	case ORDER_EXPECT_GONE:
		err = B.dereg_mr(mine->mr) != ENOENT || B.dealloc_pd(mine->spare) != ENOENT ||
		      B.free_dm(mine->spare_dm) != ENOENT;
		break;
	}
	if (err)
		_exit(2);
}

static inline void fill_exported(struct exporting *mine, struct exported *has)
{
	struct ibv_parent_domain_init_attr parent = {.pd = mine->pd};
	struct ibv_alloc_dm_attr dm = {.length = 4096};
	struct ibv_mr *dm_mr;

	mine->mr = B.reg_mr(mine->pd, mine->buffer, EXPORTED_BYTES, ACCESS_ALL);
	has->parent = B.alloc_parent_domain(mine->context, &parent)->handle;
	mine->spare = B.alloc_pd(mine->context);
	mine->dm = B.alloc_dm(mine->context, &dm);
	mine->spare_dm = B.alloc_dm(mine->context, &dm);
	has->spare_dm = mine->spare_dm->handle;
	dm_mr = B.reg_dm_mr(mine->pd, mine->dm, 0, 4096, ACCESS_ALL | IBV_ACCESS_ZERO_BASED);
	has->pd = mine->pd->handle;
	has->mr = mine->mr->handle;
	has->lkey = mine->mr->lkey;
	has->rkey = mine->mr->rkey;
	has->addr = (uintptr_t)mine->buffer;
	has->dm = mine->dm->handle;
	has->dm_mr = dm_mr->handle;
	has->dm_rkey = dm_mr->rkey;
	has->null_mr = B.alloc_null_mr(mine->pd)->handle;
}

_Noreturn static inline void export_objects(int socket)
{
	struct ibv_device **list;
	struct vb_sim_config config;
	struct exporting mine = {.buffer = mmap(NULL, EXPORTED_BYTES, PROT_READ | PROT_WRITE,
						MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
	struct exported has;
	uint8_t order, answer[4096];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	for (size_t i = 0; i < EXPORTED_BYTES; i++)
		mine.buffer[i] = exported_byte(i);
	shared_world(&config);
	if (vb_sim_configure(&config))
		_exit(3);
	list = B.get_device_list(NULL);
	mine.context = B.open_device(list[0]);
	/* Handles differ from those of the test. */
	B.alloc_pd(mine.context);
	mine.pd = B.alloc_pd(mine.context);
	fill_exported(&mine, &has);
	pass(socket, &has, mine.context->cmd_fd);
	while (read(socket, &order, 1) == 1) {
		memset(answer, 0, sizeof(answer));
		obey(&mine, order, answer);
		if (write(socket, answer, sizeof(answer)) != sizeof(answer))
			break;
	}
	_exit(0);
}

/* --- the test --- */

static inline void take(struct exporter *exporter)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec bytes = {&exporter->has, sizeof(exporter->has)};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	const struct cmsghdr *head;

	TEST_ASSERT_EQUAL_INT(sizeof(exporter->has),
			      recvmsg(exporter->socket, &message, MSG_CMSG_CLOEXEC));
	head = CMSG_FIRSTHDR(&message);
	exporter->cmd_fd = -1;
	if (head)
		memcpy(&exporter->cmd_fd, CMSG_DATA(head), sizeof(int));
	TEST_ASSERT_TRUE(exporter->cmd_fd >= 0);
}

/* Call this before the test opens a world of its own. */
static inline void start_exporter(struct exporter *exporter)
{
	int ends[2];

	TEST_ASSERT_EQUAL_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	exporter->pid = fork();
	if (!exporter->pid) {
		close(ends[0]);
		export_objects(ends[1]);
	}
	close(ends[1]);
	exporter->socket = ends[0];
	take(exporter);
}

static inline void kill_exporter(struct exporter *exporter)
{
	int status;

	if (!exporter->pid)
		return;
	kill(exporter->pid, SIGKILL);
	TEST_ASSERT_EQUAL_INT(exporter->pid, waitpid(exporter->pid, &status, 0));
	close(exporter->socket);
	exporter->pid = 0;
}

/* Returns what the exporter answers. */
static inline const uint8_t *order(const struct exporter *exporter, enum order what)
{
	static uint8_t answer[4096];
	const uint8_t byte = (uint8_t)what;
	size_t done = 0;

	TEST_ASSERT_EQUAL_INT(1, write(exporter->socket, &byte, 1));
	while (done < sizeof(answer)) {
		ssize_t more = read(exporter->socket, answer + done, sizeof(answer) - done);

		TEST_ASSERT_TRUE(more > 0);
		done += (size_t)more;
	}
	return answer;
}

#endif
