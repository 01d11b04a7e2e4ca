/* SPDX-License-Identifier: MIT */
/*
 * A process is killed as soon as it has sent a message of the connection manager, and its peer, which is stopped, reads
 * the message afterwards: the peer learns of the death all the same. Plain librdmacm: it runs under `verbena run`.
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A survivor that learns nothing is ended by its alarm. */
enum { RESOLVE_MS = 5000, LIMIT_S = 30 };

/* The last message of the process that is killed. */
enum message { REQ, REP, RTU, DREQ, MESSAGES };

static const char *const names[MESSAGES] = {"REQ", "REP", "RTU", "DREQ"};

/* Both processes, as their parent sees them. The parent uses no verbs. */
struct child {
	pid_t pid;
	int fd; /* a word from the one is a step of the other */
};

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "killed: process %d: %s: ", (int)getpid(), what);
	perror(NULL);
	exit(EXIT_FAILURE);
}

static void tell(int fd, uint16_t word)
{
	check(write(fd, &word, sizeof(word)) == sizeof(word), "write");
}

static uint16_t hear(int fd)
{
	uint16_t word;

	check(read(fd, &word, sizeof(word)) == sizeof(word), "read");
	return word;
}

/* --- the two children --- */

static struct rdma_cm_event *next(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	check(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	return event;
}

static void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next(channel);

	check(event->event == type, rdma_event_str(event->event));
	rdma_ack_cm_event(event);
}

static void expect_end(struct rdma_event_channel *channel)
{
	enum rdma_cm_event_type type;

	do {
		struct rdma_cm_event *event = next(channel);

		type = event->event;
		rdma_ack_cm_event(event);
	} while (type == RDMA_CM_EVENT_ESTABLISHED);
	check(type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_REJECTED ||
		      type == RDMA_CM_EVENT_CONNECT_ERROR,
	      rdma_event_str(type));
	exit(EXIT_SUCCESS);
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};

	check(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

static struct rdma_cm_id *make_id(struct rdma_event_channel **channel)
{
	struct rdma_cm_id *id;

	alarm(LIMIT_S);
	*channel = rdma_create_event_channel();
	check(*channel, "rdma_create_event_channel");
	check(!rdma_create_id(*channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	return id;
}

/* A server that accepts too late learns of the death by the result. */
static void serve(enum message last, int fd)
{
	struct sockaddr_in here = {.sin_family = AF_INET};
	struct rdma_conn_param param = {.rnr_retry_count = 7};
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener = make_id(&channel);
	struct rdma_cm_event *request;

	check(!rdma_bind_addr(listener, (struct sockaddr *)&here), "rdma_bind_addr");
	check(!rdma_listen(listener, 1), "rdma_listen");
	tell(fd, ntohs(rdma_get_src_port(listener)));
	if (last == REQ)
		raise(SIGSTOP);
	else
		hear(fd);
	request = next(channel);
	check(request->event == RDMA_CM_EVENT_CONNECT_REQUEST, rdma_event_str(request->event));
	make_qp(request->id);
	if (rdma_accept(request->id, &param))
		exit(last == REQ ? EXIT_SUCCESS : EXIT_FAILURE);
	rdma_ack_cm_event(request);
	if (last == REP) {
		tell(fd, 0);
		pause();
	} else if (last != REQ) {
		raise(SIGSTOP);
	}
	expect_end(channel);
}

static void ask(enum message last, int fd, uint16_t port)
{
	struct sockaddr_in there = {.sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id = make_id(&channel);

	check(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, RESOLVE_MS),
	      "rdma_resolve_addr");
	expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	check(!rdma_resolve_route(id, RESOLVE_MS), "rdma_resolve_route");
	expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(id);
	check(!rdma_connect(id, &param), "rdma_connect");
	if (last == REP) {
		raise(SIGSTOP);
		expect_end(channel);
	}
	if (last != REQ) {
		hear(fd);
		expect(channel, RDMA_CM_EVENT_ESTABLISHED);
	}
	if (last == DREQ)
		check(!rdma_disconnect(id), "rdma_disconnect");
	tell(fd, 0);
	pause();
}

/* --- the parent --- */

static struct child start(enum message last, bool serves, uint16_t port)
{
	struct child child;
	int ends[2];

	check(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), "socketpair");
	child = (struct child){fork(), ends[0]};
	check(child.pid >= 0, "fork");
	if (!child.pid) {
		close(ends[0]);
		if (serves)
			serve(last, ends[1]);
		ask(last, ends[1], port);
	}
	close(ends[1]);
	return child;
}

static void wait_for_stop(const struct child *child)
{
	int status;

	check(waitpid(child->pid, &status, WUNTRACED) == child->pid && WIFSTOPPED(status),
	      "the survivor does not stop");
}

static void end(struct child *child, int wanted)
{
	int status;

	check(waitpid(child->pid, &status, 0) == child->pid, "waitpid");
	check(status == wanted,
	      wanted ? "the end of the killed process" : "the end of the survivor");
	close(child->fd);
}

static void run(enum message last)
{
	struct child server = start(last, true, 0), client;
	struct child *survivor = last == REP ? &client : &server,
		     *victim = last == REP ? &server : &client;
	const uint16_t port = hear(server.fd);

	if (last == REQ)
		wait_for_stop(survivor);
	client = start(last, false, port);
	if (last == RTU || last == DREQ)
		tell(server.fd, 0);
	if (last != REQ) {
		wait_for_stop(survivor);
		tell(victim->fd, 0);
	}
	hear(victim->fd);
	kill(victim->pid, SIGKILL);
	end(victim, SIGKILL);
	kill(survivor->pid, SIGCONT);
	end(survivor, 0);
	printf("ok %s\n", names[last]);
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	for (unsigned int last = REQ; last < MESSAGES; last++)
		run((enum message)last);
	return 0;
}
