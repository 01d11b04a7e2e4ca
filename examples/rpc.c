/* SPDX-License-Identifier: MIT */
/*
 * usage: rpc [DEVICE]
 *        rpc --listen ADDRESS [DEVICE]
 *        rpc --call ADDRESS [DEVICE]
 * Calls by message: the client sends a question with its number as immediate data, the server
 * answers it under that number. The last is longer than an agent message.
 *
 * Client and server are two threads, or two processes with --listen and --call: the server prints
 * where it listens (127.0.0.1:0 is a free port) and serves one client. Simulated devices of two
 * processes do not reach one another; SoftRoCE and adapters do.
 */
#include "rdma_pair.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>

#define LONGEST 20000

/* Answers each question in capitals, until the client closes. */
static void *serve(void *arg)
{
	struct vb_rdma *rdma = arg;
	static char text[LONGEST];
	struct vb_rdma_message question;
	int err;

	while (!(err = vb_rdma_receive(rdma, text, sizeof(text), &question, TIMEOUT_NS))) {
		for (size_t i = 0; i < question.length_bytes; i++)
			text[i] = (char)toupper((unsigned char)text[i]);
		must(vb_rdma_send_imm(rdma, text, question.length_bytes, question.imm, TIMEOUT_NS));
	}
	check(err == ECONNRESET, "the client closed");
	return NULL;
}

static void call(struct vb_rdma *rdma, uint32_t number, const char *question, size_t length)
{
	static char text[LONGEST];
	struct vb_rdma_message answer;

	must(vb_rdma_send_imm(rdma, question, length, number, TIMEOUT_NS));
	must(vb_rdma_receive(rdma, text, sizeof(text), &answer, TIMEOUT_NS));
	printf("call %u: %.8s... of %zu bytes\n", answer.imm, text, answer.length_bytes);
	check(answer.imm == number && answer.length_bytes == length, "the answer is to this call");
	for (size_t i = 0; i < length; i++)
		check(text[i] == toupper((unsigned char)question[i]), "it is the answer");
}

static void call_all(struct vb_rdma *rdma)
{
	static char longest[LONGEST];

	memset(longest, 'x', sizeof(longest));
	call(rdma, 1, "how are you", 12);
	call(rdma, 2, "and now?", 9);
	call(rdma, 3, longest, sizeof(longest));
}

static void be_both(const char *device)
{
	struct rdma_pair pair;
	pthread_t thread;

	rdma_pair_open(&pair, device);
	check(pthread_create(&thread, NULL, serve, pair.server) == 0, "a thread");
	call_all(pair.client);
	must(vb_rdma_close(pair.client));
	pair.client = NULL;
	pthread_join(thread, NULL);
	rdma_pair_close(&pair);
}

static void be_server(const char *address, const char *device)
{
	const struct vb_rdma_options options = rdma_pair_options(device);
	struct vb_rdma_agent *agent = need(vb_rdma_agent_open(&options));
	struct vb_rdma_listener *listener = need(vb_rdma_listen(agent, address));
	struct vb_rdma *rdma;
	char place[64];

	must(vb_rdma_listener_name(listener, place, sizeof(place)));
	printf("listening at %s\n", place);
	fflush(stdout);
	rdma = need(vb_rdma_accept(listener, TIMEOUT_NS));
	serve(rdma);
	must(vb_rdma_close(rdma));
	must(vb_rdma_listener_close(listener));
	must(vb_rdma_agent_close(agent));
}

static void be_client(const char *address, const char *device)
{
	const struct vb_rdma_options options = rdma_pair_options(device);
	struct vb_rdma_agent *agent = need(vb_rdma_agent_open(&options));
	struct vb_rdma *rdma = need(vb_rdma_connect(agent, address, TIMEOUT_NS));

	call_all(rdma);
	must(vb_rdma_close(rdma));
	must(vb_rdma_agent_close(agent));
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "--listen"))
		be_server(argv[2], argv[3]);
	else if (argc > 2 && !strcmp(argv[1], "--call"))
		be_client(argv[2], argv[3]);
	else
		be_both(argc > 1 ? argv[1] : NULL);
	return 0;
}
