/* SPDX-License-Identifier: MIT */
/*
 * usage: message RETRIES [hold]
 *
 * Sends a message with so many retries, for test/explore/check-command. Exits with 3 if a completion reports a
 * failure, and with 4 if a call does. With "hold", it then keeps its devices until it is killed or its input ends.
 */
#include "test/explore/node.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	const unsigned int retries = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : 0;
	struct pair pair;
	int status = 4;

	if (!pair_open_with(&pair, false, retries))
		return status;
	if (node_receive(&pair.b, 101, 0, 64) &&
	    node_post(&pair.a, &pair.b, (struct ibv_send_wr){.wr_id = 1, .opcode = IBV_WR_SEND}, 0,
		      64))
		status = node_take(&pair.a, 1, 0, NULL) ? 3 : 0;
	printf("status %d\n", status);
	if (argc > 2) {
		fflush(stdout);
		getchar();
	}
	pair_close(&pair);
	return status;
}
