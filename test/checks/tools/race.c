/* SPDX-License-Identifier: MIT */
/* Buffers that the program touches while work requests use them: ThreadSanitizer sees it. */
#include "pair.h"

#include <pthread.h>

static const struct plan plan = {0};

/* A use that no compiler takes out. */
static volatile char used;

static void use(const char *byte)
{
	used = *byte; /* @use */
}

static void change(char *byte)
{
	*byte = 5; /* @change */
}

/* --- a send buffer --- */

static void send_of(int early)
{
	connect_ends(&plan);
	receive(there, 1);
	change(here->memory);
	post(here, IBV_WR_SEND, 2);
	use(here->memory);
	if (early)
		change(here->memory);
	wait_for(here);
	change(here->memory);
	wait_for(there);
	close_ends();
}

static void send_changed(void)
{
	send_of(1);
}

static void send_changed_kept(void)
{
	send_of(0);
}

/* --- a receive; a send of the same QP completes in between --- */

static void receive_of(int early)
{
	connect_ends(&plan);
	receive(there, 1);
	receive(here, 1);
	post(there, IBV_WR_SEND, 2);
	wait_for(there);
	if (early)
		use(there->memory + MEMORY_BYTES / 2);
	post(here, IBV_WR_SEND, 3);
	wait_for(there);
	use(there->memory + MEMORY_BYTES / 2);
	change(there->memory + MEMORY_BYTES / 2);
	wait_for(here);
	wait_for(here);
	close_ends();
}

static void receive_read(void)
{
	receive_of(1);
}

static void receive_read_kept(void)
{
	receive_of(0);
}

/* --- a READ, polled by another thread --- */

static void *poll_other(void *arg)
{
	wait_for(here);
	return NULL;
}

static void thread_of(int early)
{
	pthread_t thread;

	connect_ends(&plan);
	post(here, IBV_WR_RDMA_READ, 4);
	need(!pthread_create(&thread, NULL, poll_other, NULL), "thread");
	if (early)
		change(here->memory);
	pthread_join(thread, NULL);
	change(here->memory);
	close_ends();
}

static void read_written(void)
{
	thread_of(1);
}

static void read_written_kept(void)
{
	thread_of(0);
}

/* --- QPs that end --- */

static void end_of(enum ibv_qp_state state, int early)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	connect_ends(&plan);
	receive(there, 1);
	if (early)
		change(there->memory + MEMORY_BYTES / 2);
	need(!ibv_modify_qp(there->qp, &attr, IBV_QP_STATE), "modify");
	change(there->memory + MEMORY_BYTES / 2);
	close_ends();
}

static void reset(void)
{
	end_of(IBV_QPS_RESET, 1);
}

static void reset_kept(void)
{
	end_of(IBV_QPS_RESET, 0);
}

static void error(void)
{
	end_of(IBV_QPS_ERR, 1);
}

static void error_kept(void)
{
	end_of(IBV_QPS_ERR, 0);
}

int main(int argc, char **argv)
{
	static const struct mode modes[] = {
		{"send-changed", send_changed},
		{"send-changed-kept", send_changed_kept},
		{"receive-read", receive_read},
		{"receive-read-kept", receive_read_kept},
		{"read-written", read_written},
		{"read-written-kept", read_written_kept},
		{"reset", reset},
		{"reset-kept", reset_kept},
		{"error", error},
		{"error-kept", error_kept},
		{0},
	};

	return run_mode(argc, argv, modes);
}
