/* SPDX-License-Identifier: MIT */
/*
 * Remote calls: the client sends a question with a number as immediate data, and the server's
 * answer has the same number. The last question is longer than an agent message. -h prints the
 * usage.
 */
#include "rdma_pair.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>

#define ABOUT	"The client sends questions, and the server answers in capitals."
#define LONGEST 20000

/* Answers each question in capitals until the client closes the connection. */
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
	check(err == ECONNRESET, "the client closed the connection");
	return NULL;
}

static void call(struct vb_rdma *rdma, uint32_t number, const char *question, size_t length)
{
	static char text[LONGEST];
	struct vb_rdma_message answer;

	must(vb_rdma_send_imm(rdma, question, length, number, TIMEOUT_NS));
	must(vb_rdma_receive(rdma, text, sizeof(text), &answer, TIMEOUT_NS));
	printf("call %u: %.8s... of %zu bytes\n", answer.imm, text, answer.length_bytes);
	check(answer.imm == number && answer.length_bytes == length,
	      "the answer belongs to this call");
	for (size_t i = 0; i < length; i++)
		check(text[i] == toupper((unsigned char)question[i]),
		      "the answer is the question in capitals");
}

static void ask(struct vb_rdma *rdma)
{
	static char longest[LONGEST];

	memset(longest, 'x', sizeof(longest));
	call(rdma, 1, "how are you", 12);
	call(rdma, 2, "and now?", 9);
	call(rdma, 3, longest, sizeof(longest));
}

int main(int argc, char **argv)
{
	struct rdma_pair pair;
	pthread_t thread;

	rdma_pair_open(&pair, argc, argv, ABOUT);
	if (pair.server)
		check(pthread_create(&thread, NULL, serve, pair.server) == 0,
		      "the server's thread starts");
	if (pair.client) {
		ask(pair.client);
		must(vb_rdma_close(pair.client));
		pair.client = NULL;
	}
	if (pair.server)
		pthread_join(thread, NULL);
	rdma_pair_close(&pair);
}
