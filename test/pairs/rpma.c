/* SPDX-License-Identifier: MIT */
/*
 * Usage: rpma SERVER_ADDRESS server|client PORT
 *
 * A server and a client of librpma, which uses librdmacm. The server exports memory by the private data of the
 * connection. The client connects several times, one connection after the other, and on each one reads, writes,
 * flushes and writes atomically, and exchanges messages; both check each byte.
 */
#include <inttypes.h>
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	BYTES = 1 << 20, /* of the server's memory, and of the client's buffer */
	MESSAGE = 4096,	 /* the last part of both, for messages */
	CONNECTIONS = 3,
	FLUSHED_AT = 8192, /* where the atomic write goes */
	DESCRIPTOR_MAX = 64,
};

/* What the private data of the server's side says. */
struct offer {
	uint8_t descriptor_bytes;
	char descriptor[DESCRIPTOR_MAX];
};

static void need(int answer, const char *what)
{
	if (!answer)
		return;
	fprintf(stderr, "%s: %s\n", what, rpma_err_2str(answer));
	exit(1);
}

static void need_true(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "wrong: %s\n", what);
	exit(1);
}

/* The byte at a place, which is another one on each connection. */
static char byte_at(size_t place, unsigned int connection)
{
	return (char)(place * 31 + place / 251 + 7 * (connection + 1));
}

static void fill(char *memory, size_t bytes, unsigned int connection)
{
	for (size_t i = 0; i < bytes; i++)
		memory[i] = byte_at(i, connection);
}

static void expect_bytes(const char *memory, size_t bytes, unsigned int connection,
			 const char *what)
{
	for (size_t i = 0; i < bytes; i++)
		need_true(memory[i] == byte_at(i, connection), what);
}

static struct rpma_peer *open_peer(const char *address, enum rpma_util_ibv_context_type type)
{
	struct rpma_peer *peer;
	struct ibv_context *context;

	need(rpma_utils_get_ibv_context(address, type, &context), "rpma_utils_get_ibv_context");
	need(rpma_peer_new(context, &peer), "rpma_peer_new");
	return peer;
}

static char *new_memory(struct rpma_peer *peer, int usage, struct rpma_mr_local **mr)
{
	char *memory = aligned_alloc(4096, BYTES);

	need_true(memory != NULL, "memory");
	memset(memory, 0, BYTES);
	need(rpma_mr_reg(peer, memory, BYTES, usage, mr), "rpma_mr_reg");
	return memory;
}

static void expect_event(struct rpma_conn *connection, enum rpma_conn_event expected)
{
	enum rpma_conn_event event;

	need(rpma_conn_next_event(connection, &event), "rpma_conn_next_event");
	if (event == expected)
		return;
	fprintf(stderr, "%s instead of %s\n", rpma_utils_conn_event_2str(event),
		rpma_utils_conn_event_2str(expected));
	exit(1);
}

/* Waits for one completion. */
static void complete(struct rpma_conn *connection, enum ibv_wc_opcode opcode, const void *context)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	need(rpma_conn_get_cq(connection, &cq), "rpma_conn_get_cq");
	need(rpma_cq_wait(cq), "rpma_cq_wait");
	need(rpma_cq_get_wc(cq, 1, &wc, NULL), "rpma_cq_get_wc");
	need_true(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
	need_true(wc.opcode == opcode, "the opcode of a completion");
	need_true(wc.wr_id == (uintptr_t)context, "the wr_id of a completion");
}

static void end(struct rpma_conn **connection)
{
	need(rpma_conn_disconnect(*connection), "rpma_conn_disconnect");
	expect_event(*connection, RPMA_CONN_CLOSED);
	need(rpma_conn_delete(connection), "rpma_conn_delete");
}

/* --- the server --- */

/* Answers the client's message by the same bytes, plus one. */
static void answer(struct rpma_conn *connection, struct rpma_mr_local *mr, char *message)
{
	complete(connection, IBV_WC_RECV, message);
	for (unsigned int i = 0; i < MESSAGE; i++)
		message[i]++;
	need(rpma_send(connection, mr, BYTES - MESSAGE, MESSAGE, RPMA_F_COMPLETION_ALWAYS, mr),
	     "rpma_send");
	complete(connection, IBV_WC_SEND, mr);
}

static void serve_one(struct rpma_ep *endpoint, struct rpma_mr_local *mr, char *memory,
		      const struct offer *offer, unsigned int number)
{
	struct rpma_conn_private_data data = {(void *)(uintptr_t)offer, sizeof(*offer)};
	struct rpma_conn_req *request;
	struct rpma_conn *connection;

	fill(memory, BYTES, number);
	need(rpma_ep_next_conn_req(endpoint, NULL, &request), "rpma_ep_next_conn_req");
	need(rpma_conn_req_recv(request, mr, BYTES - MESSAGE, MESSAGE, memory + BYTES - MESSAGE),
	     "rpma_conn_req_recv");
	need(rpma_conn_req_connect(&request, &data, &connection), "rpma_conn_req_connect");
	expect_event(connection, RPMA_CONN_ESTABLISHED);
	answer(connection, mr, memory + BYTES - MESSAGE);
	expect_event(connection, RPMA_CONN_CLOSED);
	expect_bytes(memory, FLUSHED_AT, number + 1, "what the client has written");
	need_true(memcmp(memory + FLUSHED_AT, "atomic!", 8) == 0, "the atomic write");
	need(rpma_conn_disconnect(connection), "rpma_conn_disconnect");
	need(rpma_conn_delete(&connection), "rpma_conn_delete");
}

static void serve(const char *address, const char *port)
{
	const int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
			  RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_SEND |
			  RPMA_MR_USAGE_RECV;
	struct rpma_peer *peer = open_peer(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_mr_local *mr;
	struct rpma_ep *endpoint;
	struct offer offer = {0};
	size_t bytes;
	char *memory = new_memory(peer, usage, &mr);

	need(rpma_mr_get_descriptor_size(mr, &bytes), "rpma_mr_get_descriptor_size");
	need_true(bytes <= DESCRIPTOR_MAX, "the size of a descriptor");
	offer.descriptor_bytes = (uint8_t)bytes;
	need(rpma_mr_get_descriptor(mr, offer.descriptor), "rpma_mr_get_descriptor");
	need(rpma_ep_listen(peer, address, port, &endpoint), "rpma_ep_listen");
	for (unsigned int i = 0; i < CONNECTIONS; i++)
		serve_one(endpoint, mr, memory, &offer, i);
	need(rpma_ep_shutdown(&endpoint), "rpma_ep_shutdown");
	need(rpma_mr_dereg(&mr), "rpma_mr_dereg");
	need(rpma_peer_delete(&peer), "rpma_peer_delete");
	free(memory);
}

/* --- the client --- */

static struct rpma_mr_remote *take_offer(struct rpma_conn *connection)
{
	struct rpma_conn_private_data data;
	struct rpma_mr_remote *remote;
	struct offer offer;
	size_t bytes;

	need(rpma_conn_get_private_data(connection, &data), "rpma_conn_get_private_data");
	need_true(data.ptr && data.len >= sizeof(offer), "the length of the private data");
	memcpy(&offer, data.ptr, sizeof(offer));
	need(rpma_mr_remote_from_descriptor(offer.descriptor, offer.descriptor_bytes, &remote),
	     "rpma_mr_remote_from_descriptor");
	need(rpma_mr_remote_get_size(remote, &bytes), "rpma_mr_remote_get_size");
	need_true(bytes == BYTES, "the size of the remote memory");
	return remote;
}

static void read_all(struct rpma_conn *connection, struct rpma_mr_local *mr, char *memory,
		     struct rpma_mr_remote *remote, unsigned int number)
{
	need(rpma_read(connection, mr, 0, remote, 0, BYTES, RPMA_F_COMPLETION_ALWAYS, &number),
	     "rpma_read");
	complete(connection, IBV_WC_RDMA_READ, &number);
	expect_bytes(memory, BYTES - MESSAGE, number, "what the client has read");
}

/* The flush of librpma is a READ behind the WRITEs. */
static void write_some(struct rpma_conn *connection, struct rpma_mr_local *mr, char *memory,
		       struct rpma_mr_remote *remote, unsigned int number)
{
	fill(memory, FLUSHED_AT, number + 1);
	need(rpma_write(connection, remote, 0, mr, 0, FLUSHED_AT, RPMA_F_COMPLETION_ON_ERROR, NULL),
	     "rpma_write");
	need(rpma_flush(connection, remote, 0, FLUSHED_AT, RPMA_FLUSH_TYPE_VISIBILITY,
			RPMA_F_COMPLETION_ALWAYS, mr),
	     "rpma_flush");
	complete(connection, IBV_WC_RDMA_READ, mr);
	need(rpma_atomic_write(connection, remote, FLUSHED_AT, "atomic!", RPMA_F_COMPLETION_ALWAYS,
			       memory),
	     "rpma_atomic_write");
	complete(connection, IBV_WC_RDMA_WRITE, memory);
}

static void talk(struct rpma_conn *connection, struct rpma_mr_local *mr, char *message,
		 unsigned int number)
{
	need(rpma_recv(connection, mr, BYTES - MESSAGE, MESSAGE, message), "rpma_recv");
	fill(message, MESSAGE, number);
	need(rpma_send(connection, mr, BYTES - MESSAGE, MESSAGE, RPMA_F_COMPLETION_ON_ERROR, NULL),
	     "rpma_send");
	complete(connection, IBV_WC_RECV, message);
	for (unsigned int i = 0; i < MESSAGE; i++)
		need_true((char)(message[i] - 1) == byte_at(i, number), "the server's message");
}

static void use(const char *address, const char *port)
{
	const int usage = RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_SEND |
			  RPMA_MR_USAGE_RECV;
	struct rpma_peer *peer = open_peer(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	struct rpma_mr_local *mr;
	char *memory = new_memory(peer, usage, &mr);

	for (unsigned int i = 0; i < CONNECTIONS; i++) {
		struct rpma_conn_req *request;
		struct rpma_mr_remote *remote;
		struct rpma_conn *connection;

		need(rpma_conn_req_new(peer, address, port, NULL, &request), "rpma_conn_req_new");
		need(rpma_conn_req_connect(&request, NULL, &connection), "rpma_conn_req_connect");
		expect_event(connection, RPMA_CONN_ESTABLISHED);
		remote = take_offer(connection);
		read_all(connection, mr, memory, remote, i);
		write_some(connection, mr, memory, remote, i);
		talk(connection, mr, memory + BYTES - MESSAGE, i);
		end(&connection);
		need(rpma_mr_remote_delete(&remote), "rpma_mr_remote_delete");
	}
	need(rpma_mr_dereg(&mr), "rpma_mr_dereg");
	need(rpma_peer_delete(&peer), "rpma_peer_delete");
	free(memory);
	printf("%d connections\n", CONNECTIONS);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	alarm(60);
	if (strcmp(argv[2], "server") == 0)
		serve(argv[1], argv[3]);
	else
		use(argv[1], argv[3]);
	return 0;
}
