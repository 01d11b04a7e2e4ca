/* SPDX-License-Identifier: MIT */
#include "src/base/number.h"

#include <ctype.h>
#include <string.h>

bool vb_number_digits(const char *text, size_t length, unsigned int base, uint64_t *number)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < length; i++) {
		char c = tolower((unsigned char)text[i]);
		unsigned int digit = isdigit((unsigned char)c) ? c - '0' : c - 'a' + 10;

		if (!isxdigit((unsigned char)c) || digit >= base ||
		    __builtin_mul_overflow(sum, base, &sum) ||
		    __builtin_add_overflow(sum, digit, &sum))
			return false;
	}
	*number = sum;
	return length;
}

enum vb_number vb_number_read(const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	bool has_sign = text[0] == '-' || text[0] == '+';
	const char *digits = text + (hex ? 2 : has_sign);
	size_t length = strlen(digits);

	if (!hex && (!length || digits[strspn(digits, "0123456789")]))
		return VB_NUMBER_NONE;
	if (!hex && digits[0] == '0' && digits[1])
		return VB_NUMBER_LEADING_ZERO;
	if (has_sign || !vb_number_digits(digits, length, hex ? 16 : 10, number) || *number < min ||
	    *number > max)
		return VB_NUMBER_OUT_OF_RANGE;
	return VB_NUMBER_GOOD;
}
