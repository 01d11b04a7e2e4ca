/* SPDX-License-Identifier: MIT */
/*
 * Prints the numbers by which a peer reaches this process: the GIDs of each device, and the QPNs
 * and keys of its first objects, a line each. With the argument "fork", a child does so as well,
 * after the parent has made objects; with "idle" before. The lines of a child begin with "child". With
 * "stay", the process keeps its objects until its input ends.
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEED(what) ((what) ? (void)0 : (fprintf(stderr, "%s\n", #what), exit(1)))

static char memory[64];
static const char *who = "";

static void print_gids(struct ibv_context *context)
{
	union ibv_gid gid;

	for (int i = 0; !ibv_query_gid(context, 1, i, &gid) && gid.global.interface_id; i++) {
		printf("%sgid ", who);
		for (int byte = 0; byte < 16; byte++)
			printf("%02x", gid.raw[byte]);
		printf("\n");
	}
}

static void print_objects(struct ibv_context *context)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};

	for (int i = 0; i < 8; i++) {
		struct ibv_qp *qp = ibv_create_qp(pd, &init);
		struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
		struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);

		NEED(qp && mr && mw);
		printf("%sqpn %" PRIx32 "\n", who, qp->qp_num);
		printf("%skey %" PRIx32 "\n", who, mr->lkey);
		printf("%skey %" PRIx32 "\n", who, mr->rkey);
		printf("%skey %" PRIx32 "\n", who, mw->rkey);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	struct ibv_device **list;
	int count, status = 0;

	list = ibv_get_device_list(&count);
	NEED(list && count);
	for (int i = 0; i < count; i++) {
		struct ibv_context *context;

		if (!strcmp(mode, "idle") && !fork())
			who = "child ";
		context = ibv_open_device(list[i]);
		NEED(context);
		print_gids(context);
		print_objects(context);
		fflush(stdout);
		if (!strcmp(mode, "fork") && !fork()) {
			who = "child ";
			print_objects(context);
			return 0;
		}
		if (!strcmp(mode, "fork") || !strcmp(mode, "idle"))
			break;
	}
	if (!strcmp(mode, "stay"))
		(void)getchar();
	/* As some programs do; ibv_free_device_list() would be right. */
	free(list);
	while (wait(&status) > 0)
		NEED(!status);
	return 0;
}
