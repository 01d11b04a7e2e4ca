/* SPDX-License-Identifier: MIT */
/* A shared object that is not a libibverbs. */

int standin_other(void);

int standin_other(void)
{
	return 0;
}
