/* SPDX-License-Identifier: MIT */
#include "src/guard/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

/* A range of more pages is looked up in /proc/self/maps; a smaller one is touched. */
#define TOUCH_PAGES_MAX 64

#if defined(__x86_64__)

/*
 * guard_copy_bytes(dst, src, n), guard_sum_words(sum, words, count, factor), guard_touch_read(addr) and
 * guard_touch_write(addr) return 0, or 1 after a fault. They keep nothing on the stack: the handler only moves RIP to guard_fault. A copy
 * of up to 64 bytes loads all bytes before it stores any. The last load of 16 or 64 bytes overlaps
 * the one before it, so that no loop is needed for the rest.
 */
__asm__(".pushsection .text\n"
	".p2align 6\n"
	".hidden guard_begin, guard_end, guard_fault\n"
	".hidden guard_copy_bytes, guard_sum_words, guard_touch_read, guard_touch_write\n"
	".globl guard_begin, guard_end, guard_fault\n"
	".globl guard_copy_bytes, guard_sum_words, guard_touch_read, guard_touch_write\n"
	".type guard_copy_bytes, @function\n"
	".type guard_sum_words, @function\n"
	".type guard_touch_read, @function\n"
	".type guard_touch_write, @function\n"
	"guard_begin:\n"
	"guard_copy_bytes:\n"
	"	.cfi_startproc\n"
	"	xorl %eax, %eax\n"
	"	cmpq $16, %rdx\n"
	"	jb 4f\n"
	"	cmpq $64, %rdx\n"
	"	ja 2f\n"
	"	movups (%rsi), %xmm0\n"
	"	movups -16(%rsi,%rdx), %xmm1\n"
	"	cmpq $32, %rdx\n"
	"	ja 1f\n"
	"	movups %xmm0, (%rdi)\n"
	"	movups %xmm1, -16(%rdi,%rdx)\n"
	"	ret\n"
	"1:	movups 16(%rsi), %xmm2\n"
	"	movups -32(%rsi,%rdx), %xmm3\n"
	"	movups %xmm0, (%rdi)\n"
	"	movups %xmm2, 16(%rdi)\n"
	"	movups %xmm3, -32(%rdi,%rdx)\n"
	"	movups %xmm1, -16(%rdi,%rdx)\n"
	"	ret\n"
	"2:	cmpq $1024, %rdx\n"
	"	jae 5f\n"
	"	movups -64(%rsi,%rdx), %xmm4\n"
	"	movups -48(%rsi,%rdx), %xmm5\n"
	"	movups -32(%rsi,%rdx), %xmm6\n"
	"	movups -16(%rsi,%rdx), %xmm7\n"
	"	leaq -64(%rdi,%rdx), %rcx\n"
	"3:	movups (%rsi), %xmm0\n"
	"	movups 16(%rsi), %xmm1\n"
	"	movups 32(%rsi), %xmm2\n"
	"	movups 48(%rsi), %xmm3\n"
	"	movups %xmm0, (%rdi)\n"
	"	movups %xmm1, 16(%rdi)\n"
	"	movups %xmm2, 32(%rdi)\n"
	"	movups %xmm3, 48(%rdi)\n"
	"	addq $64, %rsi\n"
	"	addq $64, %rdi\n"
	"	cmpq %rcx, %rdi\n"
	"	jb 3b\n"
	"	movups %xmm4, (%rcx)\n"
	"	movups %xmm5, 16(%rcx)\n"
	"	movups %xmm6, 32(%rcx)\n"
	"	movups %xmm7, 48(%rcx)\n"
	"	ret\n"
	"4:	testq %rdx, %rdx\n"
	"	jz 7f\n"
	"	cmpq $8, %rdx\n"
	"	jb 6f\n"
	"	movq (%rsi), %rcx\n"
	"	movq -8(%rsi,%rdx), %r8\n"
	"	movq %rcx, (%rdi)\n"
	"	movq %r8, -8(%rdi,%rdx)\n"
	"	ret\n"
	"5:	movq %rdx, %rcx\n"
	"	rep movsb\n"
	"	ret\n"
	"6:	movb (%rsi), %cl\n"
	"	movb %cl, (%rdi)\n"
	"	incq %rsi\n"
	"	incq %rdi\n"
	"	decq %rdx\n"
	"	jnz 6b\n"
	"7:	ret\n"
	"	.cfi_endproc\n"
	"	.size guard_copy_bytes, . - guard_copy_bytes\n"
	"guard_sum_words:\n"
	"	.cfi_startproc\n"
	"	xorl %eax, %eax\n"
	"	movq (%rdi), %r8\n"
	"	subq $4, %rdx\n"
	"	jb 2f\n"
	"1:	imulq %rcx, %r8\n"
	"	addq (%rsi), %r8\n"
	"	imulq %rcx, %r8\n"
	"	addq 8(%rsi), %r8\n"
	"	imulq %rcx, %r8\n"
	"	addq 16(%rsi), %r8\n"
	"	imulq %rcx, %r8\n"
	"	addq 24(%rsi), %r8\n"
	"	addq $32, %rsi\n"
	"	subq $4, %rdx\n"
	"	jae 1b\n"
	"2:	addq $4, %rdx\n"
	"	jz 4f\n"
	"3:	imulq %rcx, %r8\n"
	"	addq (%rsi), %r8\n"
	"	addq $8, %rsi\n"
	"	decq %rdx\n"
	"	jnz 3b\n"
	"4:	movq %r8, (%rdi)\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size guard_sum_words, . - guard_sum_words\n"
	"guard_touch_read:\n"
	"	.cfi_startproc\n"
	"	xorl %eax, %eax\n"
	"	movb (%rdi), %cl\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size guard_touch_read, . - guard_touch_read\n"
	"guard_touch_write:\n"
	"	.cfi_startproc\n"
	"	xorl %eax, %eax\n"
	"	lock orb $0, (%rdi)\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size guard_touch_write, . - guard_touch_write\n"
	"guard_end:\n"
	"guard_fault:\n"
	"	movl $1, %eax\n"
	"	ret\n"
	".popsection\n");

extern const char guard_begin[], guard_end[], guard_fault[];
int guard_copy_bytes(void *dst, const void *src, size_t length_bytes);
int guard_sum_words(uint64_t *sum, const void *words, size_t count, uint64_t factor);
int guard_touch_read(const void *addr);
int guard_touch_write(const void *addr);

static bool survive(void *context)
{
	greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	if ((uintptr_t)*rip < (uintptr_t)guard_begin || (uintptr_t)*rip >= (uintptr_t)guard_end)
		return false;
	*rip = (greg_t)(uintptr_t)guard_fault;
	return true;
}

#define PAGE_FAULT_WRITES 2 /* the bit of the error code */

/* Describes the access. */
static void describe(const siginfo_t *info, const void *context, struct guard_fault *fault)
{
	const greg_t *registers = ((const ucontext_t *)context)->uc_mcontext.gregs;
	const uintptr_t at = (uintptr_t)registers[REG_RIP];
	const void *const *frame = (const void *const *)(uintptr_t)registers[REG_RBP];

	*fault = (struct guard_fault){
		.address = info->si_addr,
		.writes = registers[REG_ERR] & PAGE_FAULT_WRITES,
		.own = at >= (uintptr_t)guard_begin && at < (uintptr_t)guard_end,
		.frames = {(const void *)(at + 1)},
	};
	guard_copy_bytes(&fault->frames[1], (const void *)(uintptr_t)registers[REG_RSP],
			 sizeof(fault->frames[1]));
	guard_copy_bytes(&fault->frames[2], &frame[1], sizeof(fault->frames[2]));
}

#else

/* The kernel copies, and returns EFAULT where this process would fault. */
static int guard_copy_bytes(void *dst, const void *src, size_t length_bytes)
{
	const struct iovec to = {.iov_base = dst, .iov_len = length_bytes};
	const struct iovec from = {.iov_base = (void *)src, .iov_len = length_bytes};

	if (!length_bytes)
		return 0;
	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)length_bytes;
}

static int guard_sum_words(uint64_t *sum, const void *words, size_t count, uint64_t factor)
{
	const uint64_t *from = words;
	uint64_t block[64], all = *sum;
	size_t part;

	for (; count; from += part, count -= part) {
		part = count < sizeof(block) / 8 ? count : sizeof(block) / 8;
		if (guard_copy_bytes(block, from, part * 8))
			return 1;
		for (size_t i = 0; i < part; i++)
			all = all * factor + block[i];
	}
	*sum = all;
	return 0;
}

static bool survive(void *context)
{
	return false;
}

static void describe(const siginfo_t *info, const void *context, struct guard_fault *fault)
{
	*fault = (struct guard_fault){.address = info->si_addr};
}

#endif

static bool (*watching)(const struct guard_fault *fault);

void guard_watch_faults(bool (*fault)(const struct guard_fault *fault))
{
	watching = fault;
}

/* Returns true if the access is repeated. */
static bool is_made_possible(int number, const siginfo_t *info, const void *context)
{
	struct guard_fault fault;

	if (!watching || number != SIGSEGV || info->si_code != SEGV_ACCERR)
		return false;
	describe(info, context, &fault);
	return watching(&fault);
}

/* --- mappings of files that may become shorter ---
 *
 * Without a lock: exit(3) and fork(2) remove mappings, too, and the handler may look at any time. So chunks are never
 * freed.
 */

#define CHUNK_MAPPINGS 64

/* In the place of an address. */
enum { MAPPING_FREE, MAPPING_TAKEN };

struct mapping {
	_Atomic uintptr_t start; /* stored last */
	_Atomic size_t length_bytes;
};

static struct chunk {
	struct chunk *next;
	struct mapping mappings[CHUNK_MAPPINGS];
} * _Atomic chunks;

/* Takes an entry that has this start for itself; NULL: there is none. */
static struct mapping *take_mapping(uintptr_t start)
{
	for (struct chunk *chunk = atomic_load(&chunks); chunk; chunk = chunk->next)
		for (unsigned int i = 0; i < CHUNK_MAPPINGS; i++) {
			uintptr_t found = start;

			if (atomic_compare_exchange_strong(&chunk->mappings[i].start, &found,
							   MAPPING_TAKEN))
				return &chunk->mappings[i];
		}
	return NULL;
}

static bool add_chunk(void)
{
	struct chunk *chunk = calloc(1, sizeof(*chunk));

	if (!chunk)
		return false;
	chunk->next = atomic_load(&chunks);
	while (!atomic_compare_exchange_weak(&chunks, &chunk->next, chunk))
		;
	return true;
}

bool guard_add_mapping(void *addr, size_t length_bytes)
{
	struct mapping *mapping;

	while (!(mapping = take_mapping(MAPPING_FREE)))
		if (!add_chunk())
			return false;
	atomic_store(&mapping->length_bytes, length_bytes);
	atomic_store(&mapping->start, (uintptr_t)addr);
	return true;
}

void guard_remove_mapping(const void *addr)
{
	struct mapping *mapping = take_mapping((uintptr_t)addr);

	if (mapping)
		atomic_store(&mapping->start, MAPPING_FREE);
}

/* Finds the mapping around an address. */
static bool find_around(uintptr_t address, uintptr_t *start, size_t *length_bytes)
{
	for (struct chunk *chunk = atomic_load(&chunks); chunk; chunk = chunk->next)
		for (unsigned int i = 0; i < CHUNK_MAPPINGS; i++) {
			*start = atomic_load(&chunk->mappings[i].start);
			*length_bytes = atomic_load(&chunk->mappings[i].length_bytes);
			if (*start > MAPPING_TAKEN && address - *start < *length_bytes)
				return true;
		}
	return false;
}

/* Replaces the mapping around an address behind the end of its file. Returns true if the access is repeated. */
static bool replace_mapping(int number, const siginfo_t *info)
{
	uintptr_t start;
	size_t length_bytes;

	if (number != SIGBUS || info->si_code != BUS_ADRERR ||
	    !find_around((uintptr_t)info->si_addr, &start, &length_bytes))
		return false;
	return mmap((void *)start, length_bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/*
 * The actions below ours, the oldest first. A program may install an action on top of ours; the
 * next guard_install() puts ours on top of it. An action that passes a fault on to us reaches the
 * action below it.
 */
#define LAYERS_MAX 8

struct stack {
	int number;
	unsigned int count;
	struct sigaction layers[LAYERS_MAX];
};

static struct stack stacks[] = {{.number = SIGSEGV}, {.number = SIGBUS}};
static pthread_mutex_t install_mutex = PTHREAD_MUTEX_INITIALIZER;

/*
 * The fault that this thread passes on. The same fault from a deeper frame has been passed back to
 * us.
 */
static _Thread_local struct {
	const void *context;
	const char *frame;
	unsigned int level;
} passing;

/* Does what would happen without our handler. */
static void pass_on(const struct sigaction *action, int number, siginfo_t *info, void *context)
{
	if (action->sa_flags & SA_SIGINFO) {
		action->sa_sigaction(number, info, context);
	} else if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN) {
		action->sa_handler(number);
	} else {
		/* A fault is raised again on return, with the old action; a sent signal is not. */
		sigaction(number, action, NULL);
		if (info->si_code <= 0)
			raise(number);
	}
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	static const struct sigaction nothing = {.sa_handler = SIG_DFL};
	const struct stack *stack = &stacks[number == SIGBUS];
	const char *frame = __builtin_frame_address(0);
	int kept_errno = errno;

	if (is_made_possible(number, info, context) || replace_mapping(number, info) ||
	    survive(context)) {
		errno = kept_errno;
		return;
	}
	if (passing.context != context || frame >= passing.frame) {
		passing.context = context;
		passing.frame = frame;
		passing.level = stack->count;
	}
	if (passing.level)
		passing.level--;
	else
		stack = NULL;
	pass_on(stack ? &stack->layers[passing.level] : &nothing, number, info, context);
	errno = kept_errno;
}

static bool is_ours(const struct sigaction *action)
{
	return action->sa_sigaction == on_fault;
}

/*
 * Puts the action on top; an action that is in the stack moves up. A test runner installs the same
 * action for every test.
 */
static void add_layer(struct stack *stack, const struct sigaction *action)
{
	unsigned int at = 0;

	while (at < stack->count && stack->layers[at].sa_sigaction != action->sa_sigaction)
		at++;
	if (at == stack->count) {
		if (stack->count == LAYERS_MAX)
			at = 1; /* drop the second oldest */
		else
			stack->count++;
	}
	for (; at + 1 < stack->count; at++)
		stack->layers[at] = stack->layers[at + 1];
	stack->layers[at] = *action;
}

static void install(struct stack *stack)
{
	struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	struct sigaction found;

	if (sigaction(stack->number, NULL, &found))
		return;
	if (is_ours(&found) && found.sa_flags & SA_SIGINFO)
		return;
	/* Our own action without SA_SIGINFO: signal(3) has saved and restored it. */
	if (!is_ours(&found))
		add_layer(stack, &found);
	ours.sa_sigaction = on_fault;
	sigemptyset(&ours.sa_mask);
	sigaction(stack->number, &ours, NULL);
}

void guard_install(void)
{
	pthread_mutex_lock(&install_mutex);
	install(&stacks[0]);
	install(&stacks[1]);
	pthread_mutex_unlock(&install_mutex);
}

void guard_lock(void)
{
	pthread_mutex_lock(&install_mutex);
}

void guard_unlock(void)
{
	pthread_mutex_unlock(&install_mutex);
}

int guard_copy(void *dst, const void *src, size_t length_bytes)
{
	return guard_copy_bytes(dst, src, length_bytes);
}

int guard_sum(uint64_t *sum, const void *words, size_t count, uint64_t factor)
{
	return guard_sum_words(sum, words, count, factor);
}

/* A walk over /proc/self/maps: the lines so far show that all bytes before `at` can be touched. */
struct walk {
	uintptr_t at, end;
	bool write;
	bool good;	  /* all bytes can be touched */
	const char *what; /* what the bytes at `at` are that cannot be touched; NULL: none found */
	uintptr_t hole_end;
};

static void end_at_hole(struct walk *walk, const char *what, uintptr_t hole_end)
{
	walk->what = what;
	walk->hole_end = hole_end < walk->end ? hole_end : walk->end;
}

/* Reads one line of /proc/self/maps. Returns true if the walk ends there. */
static bool weigh_line(struct walk *walk, const char *line)
{
	uintptr_t from, to;
	char rights[5];

	if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3 || to <= walk->at)
		return false;
	if (from > walk->at)
		end_at_hole(walk, "not mapped", from);
	else if (rights[0] != 'r')
		end_at_hole(walk, "mapped without PROT_READ", to);
	else if (walk->write && rights[1] != 'w')
		end_at_hole(walk, "read-only", to);
	else if (to < walk->end)
		walk->at = to;
	else
		walk->good = true;
	return walk->good || walk->what;
}

static int walk_maps(struct walk *walk)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool decided = false;
	char *line = NULL;
	size_t capacity = 0;
	int err = EFAULT;

	if (!maps)
		return errno;
	while (!decided && getline(&line, &capacity, maps) > 0)
		decided = weigh_line(walk, line);
	/* getline(3) ends at the end of the file, or without memory for a line. */
	if (!decided && !feof(maps))
		err = errno;
	else if (!decided)
		end_at_hole(walk, "not mapped", walk->end);
	free(line);
	fclose(maps);
	return walk->good ? 0 : err;
}

/* The caller may hold a lock, which a thread that is cancelled in read(2) would keep. */
static int walk_uncancelled(struct walk *walk)
{
	int cancel, err;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = walk_maps(walk);
	pthread_setcancelstate(cancel, NULL);
	return err;
}

int guard_probe(const void *addr, size_t length_bytes, bool write)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = (uintptr_t)addr;
	uintptr_t end = at + length_bytes;

	if (!length_bytes)
		return 0;
	if (end < at)
		return EFAULT;
	guard_install();
#if defined(__x86_64__)
	if ((end - 1) / page - at / page < TOUCH_PAGES_MAX) {
		for (; at < end; at = (at / page + 1) * page) {
			const void *byte = (const void *)at;

			if (write ? guard_touch_write(byte) : guard_touch_read(byte))
				return EFAULT;
		}
		return 0;
	}
#endif
	return walk_uncancelled(&(struct walk){.at = at, .end = end, .write = write});
}

const char *guard_find_hole(const void *addr, size_t length_bytes, bool write, uintptr_t *hole,
			    size_t *hole_bytes)
{
	struct walk walk = {.at = (uintptr_t)addr, .write = write};

	if (__builtin_add_overflow(walk.at, length_bytes, &walk.end))
		return NULL;
	walk_uncancelled(&walk);
	*hole = walk.at;
	*hole_bytes = walk.hole_end - walk.at;
	return walk.what;
}
