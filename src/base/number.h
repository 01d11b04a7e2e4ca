/* SPDX-License-Identifier: MIT */
/* Numbers as people write them in options, variables and project files. */
#ifndef SRC_BASE_NUMBER_H
#define SRC_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum vb_number {
	VB_NUMBER_GOOD,
	VB_NUMBER_NONE,		/* the text is not a number */
	VB_NUMBER_LEADING_ZERO, /* 010 is eight to some readers and ten to others */
	VB_NUMBER_OUT_OF_RANGE,
};

/*
 * Reads decimal digits, or 0x and hexadecimal digits. Returns VB_NUMBER_GOOD and sets *@number if
 * the number is from @min to @max.
 */
enum vb_number vb_number_read(const char *text, uint64_t min, uint64_t max, uint64_t *number);

/*
 * Reads @length digits. Returns false if there are none, if a character is not a digit of @base, or
 * if the number has more than 64 bits.
 */
bool vb_number_digits(const char *text, size_t length, unsigned int base, uint64_t *number);

#endif /* SRC_BASE_NUMBER_H */
