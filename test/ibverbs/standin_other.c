/* SPDX-License-Identifier: MIT */
/* A shared object that is no libibverbs at all. */

int standin_other(void);

int standin_other(void)
{
	return 0;
}
