/* SPDX-License-Identifier: MIT */
/* Processes that fork. */
#include "pair.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void fork_once(void)
{
	pid_t child = fork(); /* @fork */

	if (!child)
		_exit(0);
	need(child > 0 && waitpid(child, NULL, 0) == child, "fork");
}

/* Registers the memory only. */
static void open_one(char *memory)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	here->context = ibv_open_device(list[0]);
	here->pd = ibv_alloc_pd(here->context);
	here->mr = ibv_reg_mr(here->pd, memory, MEMORY_BYTES, REMOTE); /* @register */
	need(here->mr != NULL, "MR");
	ibv_free_device_list(list);
}

static void close_one(void)
{
	if (here->mr)
		ibv_dereg_mr(here->mr);
	ibv_dealloc_pd(here->pd);
	ibv_close_device(here->context);
}

static char *map(int flags)
{
	char *memory =
		mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	need(memory != MAP_FAILED, "mmap");
	return memory;
}

static void forked(void)
{
	open_one(map(MAP_PRIVATE));
	fork_once();
	close_one();
}

static void forked_kept(void)
{
	fork_once();
	open_one(map(MAP_PRIVATE));
	ibv_dereg_mr(here->mr);
	here->mr = NULL;
	fork_once();
	close_one();
}

static void prepared_late(void)
{
	open_one(map(MAP_PRIVATE));
	ibv_fork_init();
	fork_once();
	close_one();
}

static void prepared_late_kept(void)
{
	need(!ibv_fork_init(), "fork support");
	open_one(map(MAP_PRIVATE));
	fork_once();
	close_one();
}

static void in_part(void)
{
	char *memory = map(MAP_PRIVATE);

	open_one(memory);
	need(!madvise(memory, MEMORY_BYTES, MADV_DONTFORK), "madvise");
	fork_once();
	need(!madvise(memory, MEMORY_BYTES, MADV_DOFORK), "madvise");
	fork_once();
	close_one();
}

static void in_part_kept(void)
{
	char *memory = map(MAP_PRIVATE);
	struct ibv_mr *shared;

	need(!madvise(memory, MEMORY_BYTES, MADV_DONTFORK), "madvise");
	open_one(memory);
	shared = ibv_reg_mr(here->pd, map(MAP_SHARED), MEMORY_BYTES, REMOTE);
	fork_once();
	ibv_dereg_mr(shared);
	close_one();
}

static void executed(void)
{
	pid_t child;

	open_one(map(MAP_PRIVATE));
	child = fork(); /* @fork-exec */
	if (!child) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	close_one();
}

static void executed_kept(void)
{
	char *const arguments[] = {"true", NULL};
	char *const environment[] = {NULL};
	pid_t child;

	open_one(map(MAP_PRIVATE));
	need(!posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environment), "spawn");
	waitpid(child, NULL, 0);
	close_one();
}

#define PAIR(name, function)                  \
	{name, function},                     \
	{                                     \
		name "-kept", function##_kept \
	}

static const struct mode modes[] = {
	PAIR("forked", forked),
	PAIR("prepared-late", prepared_late),
	PAIR("in-part", in_part),
	PAIR("executed", executed),
	{0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
