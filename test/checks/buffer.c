/* SPDX-License-Identifier: MIT */
/* Buffers that the program uses while a work request does. */
#include "pair.h"

static const struct plan plan = {.access = IBV_ACCESS_LOCAL_WRITE};

static void changed(void)
{
	connect_ends(&plan);
	receive(there, 8);
	post(here, IBV_WR_SEND, 7);
	here->memory[63] = 1;
	wait_for(here);
	wait_for(there);
	close_ends();
}

static void changed_kept(void)
{
	connect_ends(&plan);
	receive(there, 8);
	post(here, IBV_WR_SEND, 7);
	wait_for(here);
	here->memory[63] = 1;
	wait_for(there);
	close_ends();
}

static const struct mode modes[] = {
	{"send-buffer-changed", changed},
	{"send-buffer-changed-kept", changed_kept},
	{0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
