/* SPDX-License-Identifier: MIT */
#include "src/base/measure.h"

#include "src/base/number.h"

#include <string.h>

const struct vb_measure vb_measure_times = {
	"nanoseconds, or a number with ns, us, ms or s",
	{{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}},
};

const struct vb_measure vb_measure_rates = {
	"bits a second, or a number with Kbps, Mbps or Gbps",
	{{"bps", 1}, {"Kbps", 1000}, {"Mbps", 1000000}, {"Gbps", 1000000000}},
};

enum vb_measured vb_measure_read(const char *text, const struct vb_measure *by, uint64_t *result)
{
	size_t whole = strspn(text, "0123456789"), fraction = 0;
	const char *rest = text + whole;
	uint64_t number, factor, part = 0, scale = 1;
	unsigned int unit = 0;

	if (*rest == '.') {
		fraction = strspn(rest + 1, "0123456789");
		if (!fraction)
			return VB_NOT_MEASURED;
		rest += 1 + fraction;
	}
	rest += strspn(rest, " ");
	while (*rest && by->units[unit].name && strcmp(by->units[unit].name, rest) != 0)
		unit++;
	factor = by->units[unit].factor;
	if (!whole || !factor)
		return VB_NOT_MEASURED;
	if (!vb_number_digits(text, whole, 10, &number) ||
	    __builtin_mul_overflow(number, factor, &number))
		return VB_TOO_BIG;
	for (size_t i = 0; i < fraction; i++) {
		unsigned int digit = text[whole + 1 + i] - '0';

		if (digit && scale >= factor)
			return VB_NOT_WHOLE;
		if (scale < factor) {
			scale *= 10;
			part += digit * (factor / scale);
		}
	}
	return __builtin_add_overflow(number, part, result) ? VB_TOO_BIG : VB_MEASURED;
}
