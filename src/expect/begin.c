/* SPDX-License-Identifier: MIT */
#include "src/base/failure.h"
#include "src/expect/leak.h"
#include "src/expect/record.h"

#include <verbena/expect.h>

int vb_expect_begin(void)
{
	int err = leak_begin();

	if (!err)
		err = record_begin();
	return err ? fail(err, "%s: too many layers or watchers, or no memory", __func__) : 0;
}

void vb_expect_end(void)
{
	record_end();
	leak_end();
}
