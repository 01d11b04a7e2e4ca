/* SPDX-License-Identifier: MIT */
/*
 * Makes and ends connections between two processes, and checks that no descriptors, no memory and no pages of the
 * shared world's file are left.
 *
 *	turnover server ADDRESS PORT [FILE]
 *	turnover client ADDRESS PORT COUNT [FILE]
 *
 * The client has several connections under way; for each of them it makes an identifier and a QP,
 * resolves address and route, connects, disconnects, and destroys both. The last connection tells the server
 * to end. FILE is the file of the world in /dev/shm.
 */
#include <netdb.h>
#include <rdma/rdma_cma.h>

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WINDOW	   32 /* connections of the client under way */
#define BACKLOG	   1024
#define RESOLVE_MS 5000

/* The process is looked at for the first time after this part of its connections. */
#define WARM_PART 5

/* The process may grow so much from the warm state to its end, because the heap changes. */
#define GROWTH_BYTES_MAX (128 * 1024)

/* The world's table of ports, of which a page is allocated when a port of it is used for the first time. */
#define SERVICES_BYTES (65536 * 64)

enum { MORE, LAST }; /* the first byte of a request's private data */

static struct rdma_event_channel *channel;
static struct ibv_cq *cq; /* of all QPs */
static struct rdma_addrinfo *there;
static const char *world_file;

static void fail(const char *what)
{
	fprintf(stderr, "turnover: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void must(int err, const char *what)
{
	if (err)
		fail(what);
}

/* --- resources of the process --- */

struct holdings {
	unsigned int descriptors;
	long resident_bytes;
	long file_bytes; /* of the world's file, on disk */
};

static unsigned int count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned int count = 0;

	if (!folder)
		fail("/proc/self/fd");
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* Counts the anonymous pages of the process: pages of files, such as the world's, do not count. */
static long read_resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long total, resident = 0, shared = 0;

	if (!file || fscanf(file, "%ld %ld %ld", &total, &resident, &shared) != 3)
		fail("/proc/self/statm");
	fclose(file);
	return (resident - shared) * sysconf(_SC_PAGESIZE);
}

static struct holdings look(void)
{
	struct holdings found = {count_descriptors(), read_resident(), 0};
	struct stat file;

	if (world_file && !stat(world_file, &file))
		found.file_bytes = (long)file.st_blocks * 512;
	return found;
}

/* Compares the resources with those of the warm process. */
static int compare(const char *role, const struct holdings *warm, unsigned int count)
{
	const struct holdings now = look();
	const long growth = now.resident_bytes - warm->resident_bytes;
	int wrong = 0;

	printf("%s: after %u connections: %u descriptors (%+d), %ld KiB resident (%+ld), %ld KiB "
	       "of "
	       "the world (%+ld)\n",
	       role, count, now.descriptors, (int)(now.descriptors - warm->descriptors),
	       now.resident_bytes / 1024, growth / 1024, now.file_bytes / 1024,
	       (now.file_bytes - warm->file_bytes) / 1024);
	wrong |= now.descriptors != warm->descriptors;
	wrong |= growth > GROWTH_BYTES_MAX;
	wrong |= now.file_bytes > warm->file_bytes + SERVICES_BYTES;
	if (wrong)
		printf("%s: the process holds more than before\n", role);
	return wrong;
}

/* --- identifiers --- */

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	if (!cq)
		cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	if (!cq)
		fail("ibv_create_cq");
	attr.send_cq = attr.recv_cq = cq;
	must(rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

static void end(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	must(rdma_destroy_id(id), "rdma_destroy_id");
}

static struct rdma_cm_event next_event(void)
{
	struct rdma_cm_event *event, copy;

	must(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	copy = *event;
	if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		copy.param.conn.flow_control = *(const uint8_t *)event->param.conn.private_data;
	must(rdma_ack_cm_event(event), "rdma_ack_cm_event");
	return copy;
}

static void find(const char *address, const char *port, int flags)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_flags = flags};

	must(rdma_getaddrinfo(address, port, &hints, &there), "rdma_getaddrinfo");
}

static void open_channel(void)
{
	channel = rdma_create_event_channel();
	if (!channel)
		fail("rdma_create_event_channel");
}

/* Ends the objects that all connections use. */
static void close_all(void)
{
	must(cq ? ibv_destroy_cq(cq) : 0, "ibv_destroy_cq");
	rdma_freeaddrinfo(there);
	rdma_destroy_event_channel(channel);
}

/* --- the server --- */

struct server {
	struct rdma_cm_id *listener;
	unsigned int live, ended;
	bool last;
};

static void accept_one(struct server *server, const struct rdma_cm_event *event)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};

	server->last |= event->param.conn.flow_control == LAST;
	make_qp(event->id);
	must(rdma_accept(event->id, &param), "rdma_accept");
	server->live++;
}

static void serve(struct server *server, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		accept_one(server, event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		must(rdma_disconnect(event->id), "rdma_disconnect");
		end(event->id);
		server->live--;
		server->ended++;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		errno = event->status < 0 ? -event->status : EPROTO;
		fail(rdma_event_str(event->event));
	}
}

static int run_server(const char *address, const char *port)
{
	struct server server = {.listener = NULL};
	struct holdings warm = {0};
	unsigned int warm_at = 0;

	open_channel();
	find(address, port, RAI_PASSIVE);
	must(rdma_create_id(channel, &server.listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(rdma_bind_addr(server.listener, there->ai_src_addr), "rdma_bind_addr");
	must(rdma_listen(server.listener, BACKLOG), "rdma_listen");
	while (!server.last || server.live) {
		const struct rdma_cm_event event = next_event();

		serve(&server, &event);
		/* How many connections will come is not known: the look is renewed while they are few. */
		if (server.ended <= 400 && server.ended > warm_at) {
			warm_at = server.ended;
			warm = look();
		}
	}
	must(compare("server", &warm, server.ended), "the server's end");
	must(rdma_destroy_id(server.listener), "rdma_destroy_id");
	close_all();
	return 0;
}

/* --- the client --- */

struct client {
	unsigned int count, begun, ended;
	struct holdings warm;
};

static void begin(struct client *client)
{
	struct rdma_cm_id *id;

	must(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(rdma_resolve_addr(id, NULL, there->ai_dst_addr, RESOLVE_MS), "rdma_resolve_addr");
	client->begun++;
}

static void connect_one(const struct client *client, struct rdma_cm_id *id)
{
	const uint8_t word = client->ended + 1 == client->count ? LAST : MORE;
	struct rdma_conn_param param = {.private_data = &word,
					.private_data_len = sizeof(word),
					.retry_count = 7,
					.rnr_retry_count = 7};

	make_qp(id);
	must(rdma_connect(id, &param), "rdma_connect");
}

/* The last connection begins when all others have ended. */
static void begin_more(struct client *client)
{
	while (client->begun < client->count && client->begun - client->ended < WINDOW &&
	       (client->begun + 1 < client->count || client->ended + 1 == client->count))
		begin(client);
}

static void end_one(struct client *client, struct rdma_cm_id *id)
{
	end(id);
	client->ended++;
	if (client->ended == client->count / WARM_PART)
		client->warm = look();
	begin_more(client);
}

/* Returns the errno value of a connection that does not come about. */
static int step(struct client *client, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		must(rdma_resolve_route(event->id, RESOLVE_MS), "rdma_resolve_route");
		return 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		connect_one(client, event->id);
		return 0;
	case RDMA_CM_EVENT_ESTABLISHED:
		must(rdma_disconnect(event->id), "rdma_disconnect");
		return 0;
	case RDMA_CM_EVENT_DISCONNECTED:
		end_one(client, event->id);
		return 0;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	default:
		end(event->id);
		return event->event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : EPROTO;
	}
}

/* Repeats one connection until the server listens, however long a busy machine takes to start it. */
static void reach(void)
{
	const struct timespec pause = {.tv_nsec = 50000000};

	for (;;) {
		struct client one = {.count = 2};
		int err = 0;

		begin(&one);
		while (!err && !one.ended) {
			const struct rdma_cm_event event = next_event();

			err = step(&one, &event);
			one.begun = one.count; /* no other connection follows */
		}
		if (!err)
			return;
		nanosleep(&pause, NULL);
	}
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int run_client(const char *address, const char *port, unsigned int count)
{
	struct client client = {.count = count};
	double began_s, took_s;

	open_channel();
	find(address, port, 0);
	reach();
	began_s = now_s();
	begin_more(&client);
	while (client.ended < count) {
		const struct rdma_cm_event event = next_event();

		errno = step(&client, &event);
		if (errno)
			fail(rdma_event_str(event.event));
	}
	took_s = now_s() - began_s;
	printf("client: %u connections in %.3f s, %.0f a second\n", count, took_s, count / took_s);
	must(compare("client", &client.warm, count), "the client's end");
	close_all();
	return 0;
}

int main(int argc, char **argv)
{
	const bool serves = argc > 3 && strcmp(argv[1], "server") == 0;
	const int words = serves ? 4 : 5;

	if (argc < words || (!serves && strcmp(argv[1], "client") != 0)) {
		fprintf(stderr, "usage: turnover server ADDRESS PORT [FILE]\n"
				"       turnover client ADDRESS PORT COUNT [FILE]\n");
		return 2;
	}
	world_file = argc > words ? argv[words] : NULL;
	return serves ? run_server(argv[2], argv[3])
		      : run_client(argv[2], argv[3], (unsigned int)strtoul(argv[4], NULL, 10));
}
