/* SPDX-License-Identifier: MIT */
/*
 * The arguments of a verb as numbers.
 */
#ifndef SRC_LAYER_PACK_H
#define SRC_LAYER_PACK_H

#include <stdint.h>

_Static_assert(sizeof(uintptr_t) == sizeof(uint64_t), "NUMBER() loses the high half of a uint64_t");

/* A pointer or an integer; a negative number is sign-extended. */
#define NUMBER(x) ((uint64_t)(uintptr_t)(x))

/* NUMBER() of each argument, separated by commas; 0 if there is no argument. For a row of verbs.def:
 * { NUMBERS arguments }. */
#define NUMBERS(...)                                                                          \
	NUMBERS_PICK(0, ##__VA_ARGS__, NUMBERS_6, NUMBERS_5, NUMBERS_4, NUMBERS_3, NUMBERS_2, \
		     NUMBERS_1, NUMBERS_0)                                                    \
	(__VA_ARGS__)
#define NUMBERS_PICK(a, b, c, d, e, f, g, h, ...) h
#define NUMBERS_0()				  0
#define NUMBERS_1(a)				  NUMBER(a)
#define NUMBERS_2(a, b)				  NUMBERS_1(a), NUMBER(b)
#define NUMBERS_3(a, b, c)			  NUMBERS_2(a, b), NUMBER(c)
#define NUMBERS_4(a, b, c, d)			  NUMBERS_3(a, b, c), NUMBER(d)
#define NUMBERS_5(a, b, c, d, e)		  NUMBERS_4(a, b, c, d), NUMBER(e)
#define NUMBERS_6(a, b, c, d, e, f)		  NUMBERS_5(a, b, c, d, e), NUMBER(f)

#endif /* SRC_LAYER_PACK_H */
