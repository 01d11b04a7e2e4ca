/* SPDX-License-Identifier: MIT */
/*
 * A process imports the context, the PD, the MR and device memory of another one. Its QP, in the imported
 * PD, is connected to a QP of the other process, and sends from and receives into the other's memory.
 */
#include "test/pairs/content.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* The exporter's memory: what each process sends, and where it comes to. */
enum {
	SIZE = 50000,
	MINE = 0,
	FROM_IMPORTER = 65536,
	IMPORTERS = 2 * 65536,
	FROM_EXPORTER = 3 * 65536,
	WRITTEN = 4 * 65536,
	BYTES = 5 * 65536
};
enum { CQ_DEPTH = 16, DM_BYTES = 4096, ROUNDS = 5 };

static const struct link_times times = {.timeout = 18, .retry = 7};

struct exported {
	uint32_t pd, mr, dm;
	uint64_t memory;
};

/* --- the descriptor --- */

static void pass(const struct peer *peer, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 'd';
	struct iovec bytes = {&byte, 1};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	check("sendmsg", sendmsg(peer->fd, &message, 0) == 1 ? 0 : errno);
}

static int take(const struct peer *peer)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec bytes = {&byte, 1};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	const struct cmsghdr *head;
	int fd;

	check("recvmsg", recvmsg(peer->fd, &message, 0) == 1 ? 0 : errno);
	head = CMSG_FIRSTHDR(&message);
	if (!head)
		fail("no descriptor came");
	memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

/* --- what both do --- */

static void send_range(struct link *link, enum ibv_wr_opcode opcode, size_t offset,
		       size_t remote_offset)
{
	struct ibv_wc wc;

	link_work(link, opcode, offset, SIZE, remote_offset);
	adapter_success(link->adapter, &wc);
}

/* Takes turns: the importer sends and the exporter receives, and the reverse. */
static void exchange(struct link *link, const struct peer *peer, bool sends, size_t from, size_t to)
{
	struct ibv_wc wc;

	if (!sends)
		link_receive(link, 7, to, SIZE);
	peer_meet(peer);
	if (sends)
		send_range(link, IBV_WR_SEND, from, 0);
	else
		adapter_success(link->adapter, &wc);
	peer_meet(peer);
}

/* --- the exporter --- */

static void expect(const struct adapter *adapter, const char *what, size_t offset, uint64_t key)
{
	if (!pattern_holds(adapter->memory + offset, SIZE, key))
		fail("%s: the data is wrong", what);
}

static void check_round(struct adapter *adapter, struct link *link, const struct peer *peer,
			uint64_t key)
{
	pattern_fill(adapter->memory + MINE, SIZE, key);
	pattern_fill(adapter->memory + IMPORTERS, SIZE, key + 1);
	exchange(link, peer, true, MINE, 0);
	expect(adapter, "the receive of the importer", FROM_EXPORTER, key);
	exchange(link, peer, false, 0, FROM_IMPORTER);
	expect(adapter, "the send of the importer", FROM_IMPORTER, key + 1);
	/* The rkey is that of this process's MR; the packets go to the importer, which writes here. */
	send_range(link, IBV_WR_RDMA_WRITE, MINE, WRITTEN);
	expect(adapter, "the write by the importer's QP", WRITTEN, key);
	send_range(link, IBV_WR_RDMA_READ, FROM_IMPORTER, IMPORTERS);
	memset(adapter->memory + FROM_EXPORTER, 0, SIZE);
	peer_meet(peer);
}

void imports_first(const struct settings *settings, struct peer *peer)
{
	struct ibv_alloc_dm_attr attr = {.length = DM_BYTES};
	uint8_t theirs[DM_BYTES];
	struct exported exported;
	struct adapter adapter;
	struct link link;
	struct ibv_dm *dm;

	/* Yama may let only an ancestor see the memory of a process. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	adapter_open(&adapter, settings->adapter, BYTES, CQ_DEPTH, settings->events);
	dm = need("ibv_alloc_dm", ibv_alloc_dm(adapter.context, &attr));
	exported = (struct exported){adapter.pd->handle, adapter.mr->handle, dm->handle,
				     (uintptr_t)adapter.memory};
	pass(peer, adapter.context->cmd_fd);
	peer_put(peer, &exported, sizeof(exported));
	link_join(&link, &adapter, LINK_RC, IBV_MTU_1024, times, peer);
	for (unsigned int i = 0; i < ROUNDS; i++)
		check_round(&adapter, &link, peer, settings->seed + 10 * i);
	peer_meet(peer);
	check("ibv_memcpy_from_dm", ibv_memcpy_from_dm(theirs, dm, 0, DM_BYTES));
	if (!pattern_holds(theirs, DM_BYTES, settings->seed))
		fail("the device memory has not what the importer wrote");
	peer_meet(peer);
	peer_meet(peer);
	if (!ibv_free_dm(dm))
		fail("the importer has freed the device memory, and it was freed again");
	link_destroy(&link);
	adapter_close(&adapter);
}

/* --- the importer --- */

/* Opens an adapter whose PD, MR and memory are those of the other process. */
static struct ibv_dm *import_adapter(struct adapter *adapter, const struct peer *peer)
{
	struct exported exported;
	struct ibv_context *context = need("ibv_import_device", ibv_import_device(take(peer)));

	peer_take(peer, &exported, sizeof(exported));
	*adapter = (struct adapter){.context = context, .bytes = BYTES, .depth = CQ_DEPTH};
	adapter->pd = need("ibv_import_pd", ibv_import_pd(context, exported.pd));
	adapter->mr = need("ibv_import_mr", ibv_import_mr(adapter->pd, exported.mr));
	adapter->memory = (uint8_t *)(uintptr_t)exported.memory;
	adapter->cq = need("ibv_create_cq", ibv_create_cq(context, CQ_DEPTH, NULL, NULL, 0));
	adapter_find_port(adapter);
	return need("ibv_import_dm", ibv_import_dm(context, exported.dm));
}

void imports_second(const struct settings *settings, struct peer *peer)
{
	uint8_t bytes[DM_BYTES];
	struct adapter adapter;
	struct link link;
	struct ibv_dm *dm = import_adapter(&adapter, peer);

	link_join(&link, &adapter, LINK_RC, IBV_MTU_1024, times, peer);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		exchange(&link, peer, false, 0, FROM_EXPORTER);
		exchange(&link, peer, true, IMPORTERS, 0);
		peer_meet(peer);
	}
	pattern_fill(bytes, DM_BYTES, settings->seed);
	check("ibv_memcpy_to_dm", ibv_memcpy_to_dm(dm, 0, bytes, DM_BYTES));
	peer_meet(peer);
	peer_meet(peer);
	check("ibv_free_dm of an import", ibv_free_dm(dm));
	peer_meet(peer);
	link_destroy(&link);
	check("ibv_destroy_cq", ibv_destroy_cq(adapter.cq));
	ibv_unimport_mr(adapter.mr);
	ibv_unimport_pd(adapter.pd);
	check("ibv_close_device", ibv_close_device(adapter.context) ? errno : 0);
}
