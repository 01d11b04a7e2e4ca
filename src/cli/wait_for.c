/* SPDX-License-Identifier: MIT */
#include "src/cli/wait_for.h"

#include "src/cli/cli.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LISTENS 0x0a /* TCP_LISTEN of Linux include/net/tcp_states.h */

/* Returns true if a line of proc(5), /proc/net/tcp, is of a socket that listens at the port. */
static bool is_listener(const char *line, uint16_t port)
{
	unsigned int local, state;

	return sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &local, &state) == 2 &&
	       local == port && state == LISTENS;
}

/* Returns 1 if a socket in the table listens at the port, else 0; -1 with errno if there is no table. */
static int has_listener(const char *path, uint16_t port)
{
	FILE *table = fopen(path, "re");
	char line[512];
	int found = 0;

	if (!table)
		return -1;
	while (!found && fgets(line, sizeof(line), table))
		found = is_listener(line, port);
	fclose(table);
	return found;
}

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

int wait_for_listener(uint16_t port)
{
	const time_t end_s = now_s() + WAIT_FOR_S;
	struct timespec pause = {.tv_nsec = 10000000};

	do {
		const int found = has_listener("/proc/net/tcp", port);

		/* A kernel without IPv6 has no table of IPv6. */
		if (found > 0 || has_listener("/proc/net/tcp6", port) > 0)
			return CLI_EXIT_OK;
		if (found < 0) {
			fprintf(stderr,
				"verbena run: --wait-for: /proc/net/tcp: %s; mount /proc, or let "
				"the "
				"client try again until its server listens\n",
				strerror(errno));
			return CLI_EXIT_FAILED;
		}
		nanosleep(&pause, NULL);
		/* A look takes the kernel up to 10 ms. */
		if (pause.tv_nsec < 200000000)
			pause.tv_nsec += pause.tv_nsec / 4;
	} while (now_s() < end_s);
	fprintf(stderr,
		"verbena run: --wait-for: nobody listens at TCP port %u of this network namespace "
		"after %d s; start the server first, and check its port (ss -ltn)\n",
		port, WAIT_FOR_S);
	return CLI_EXIT_FAILED;
}
