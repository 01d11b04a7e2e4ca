/* SPDX-License-Identifier: MIT */
#include "src/connect/bytes.h"

#include "src/base/failure.h"

#include <errno.h>

#define VERSION 1

uint8_t *put_head(uint8_t *at, const char letters[HEAD_BYTES])
{
	memcpy(at, letters, HEAD_BYTES - 1);
	at[HEAD_BYTES - 1] = VERSION;
	return at + HEAD_BYTES;
}

int check_head(const char *what, const uint8_t *bytes, const char letters[HEAD_BYTES])
{
	if (memcmp(bytes, letters, HEAD_BYTES - 1) != 0)
		return fail(EPROTO, "%s: it begins with 0x%02x%02x%02x, not with \"%s\"", what,
			    bytes[0], bytes[1], bytes[2], letters);
	if (bytes[HEAD_BYTES - 1] != VERSION)
		return fail(EPROTONOSUPPORT, "%s: version %u; this library knows version %d", what,
			    bytes[HEAD_BYTES - 1], VERSION);
	return 0;
}
