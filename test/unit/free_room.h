/* SPDX-License-Identifier: MIT */
/* Decides how much room fstatvfs(3) reports. Link the test with --wrap=fstatvfs64. */
#ifndef TEST_UNIT_FREE_ROOM_H
#define TEST_UNIT_FREE_ROOM_H

#include <stdint.h>
#include <sys/statvfs.h>

/* 0: fstatvfs(3) reports the real room. */
static uint64_t free_room_bytes;

/* The size of the file system; 0: it is not limited. */
static uint64_t whole_room_bytes;

int __real_fstatvfs64(int fd, struct statvfs *room);
int __wrap_fstatvfs64(int fd, struct statvfs *room);
int __wrap_fstatvfs64(int fd, struct statvfs *room)
{
	if (!free_room_bytes)
		return __real_fstatvfs64(fd, room);
	*room = (struct statvfs){.f_frsize = 4096,
				 .f_bavail = free_room_bytes / 4096,
				 .f_blocks = whole_room_bytes / 4096};
	return 0;
}

#endif
