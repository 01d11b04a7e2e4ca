/* SPDX-License-Identifier: MIT */
#include "test/support/capability.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sets or clears an effective capability. Returns true if that has changed it. */
static bool set(unsigned int capability, bool on)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	const __u32 mask = CAP_TO_MASK(capability);
	__u32 *effective = &data[CAP_TO_INDEX(capability)].effective;

	if (syscall(SYS_capget, &header, data) || !(*effective & mask) == !on)
		return false;
	*effective ^= mask;
	return syscall(SYS_capset, &header, data) == 0;
}

bool capability_drop(unsigned int capability)
{
	return set(capability, false);
}

void capability_restore(unsigned int capability)
{
	set(capability, true);
}
