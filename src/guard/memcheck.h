/* SPDX-License-Identifier: MIT */
/*
 * Asks Valgrind about a process, and its memcheck about memory. In a process that does not run under Valgrind, a
 * request has no effect and the answer is 0.
 *
 * The numbers and instructions are the ABI of Valgrind's client requests, which <valgrind/valgrind.h> and
 * <valgrind/memcheck.h> define. They stand here so that a build does not depend on whether Valgrind is
 * installed when the build folder is set up.
 */
#ifndef SRC_GUARD_MEMCHECK_H
#define SRC_GUARD_MEMCHECK_H

#include <stddef.h>
#include <stdint.h>

enum memcheck_request {
	VALGRIND_RUNNING_ON_VALGRIND = 0x1001, /* of Valgrind itself; takes no arguments */
	MEMCHECK_MAKE_MEM_UNDEFINED = 0x4d430001,
	MEMCHECK_GET_VBITS = 0x4d430008,
	MEMCHECK_MAKE_MEM_DEFINED_IF_ADDRESSABLE = 0x4d43000b,
};

static inline uintptr_t memcheck_ask(enum memcheck_request request, const void *memory,
				     const void *bits, size_t length_bytes)
{
	/* GET_VBITS has the length third, the others second. */
	const volatile uintptr_t arguments[6] = {
		request,
		(uintptr_t)memory,
		bits ? (uintptr_t)bits : length_bytes,
		bits ? length_bytes : 0,
	};
	uintptr_t answer = 0;

#if defined(__x86_64__)
	__asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n\t"
			 "xchgq %%rbx, %%rbx"
			 : "+d"(answer)
			 : "a"(arguments)
			 : "cc", "memory");
#elif defined(__aarch64__)
	register uintptr_t x3 __asm__("x3") = 0;
	register const volatile uintptr_t *x4 __asm__("x4") = arguments;

	__asm__ volatile(
		"ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61\n\t"
		"orr x10, x10, x10"
		: "+r"(x3)
		: "r"(x4)
		: "cc", "memory");
	answer = x3;
#else
	(void)arguments;
#endif
	return answer;
}

#endif
