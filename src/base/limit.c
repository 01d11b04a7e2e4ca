/* SPDX-License-Identifier: MIT */
#include "src/base/limit.h"

#include "src/base/number.h"

#include <string.h>

/* A log is written in pieces of 256 KiB, and a limit is two segments. */
#define BYTES_MIN (UINT64_C(1) << 20)
#define COUNT_MIN 100

bool vb_limit_read(const char *text, struct vb_limit *limit)
{
	static const char units[] = "KMG";
	const size_t digits = strspn(text, "0123456789");
	const char *unit = text[digits] ? strchr(units, text[digits]) : NULL;
	uint64_t number;

	*limit = (struct vb_limit){0};
	if (!vb_number_digits(text, digits, 10, &number))
		return false;
	if (!text[digits]) {
		limit->count_max = number;
		return !number || number >= COUNT_MIN;
	}
	if (!unit || text[digits + 1] ||
	    __builtin_mul_overflow(number, UINT64_C(1) << (10 * (unit - units + 1)),
				   &limit->bytes_max))
		return false;
	return limit->bytes_max >= BYTES_MIN;
}
