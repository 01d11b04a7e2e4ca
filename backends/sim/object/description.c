/* SPDX-License-Identifier: MIT */
#include "backends/sim/object/description.h"

#include "backends/sim/base/size_signal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x0a6567616d496256) /* "VbImage\n" */

/* As many as there are memory keys. An object of a higher handle is not described. */
#define ROWS (UINT32_C(1) << 19)

/* magic and layout keep their offsets in each version. magic is stored last. */
struct header {
	_Atomic uint64_t magic;
	uint32_t layout;
	struct description_owner owner;
};

/* The stamp is 0 while the rest is written. */
struct row {
	_Atomic uint64_t stamp;
	struct described object;
};

/* The file is sparse: only the pages of rows that were used take memory. */
struct description_file {
	union {
		struct header header;
		uint8_t page[4096];
	};
	struct row rows[DESCRIBED_TABLES - 1][ROWS];
};

_Static_assert(sizeof(struct header) <= 4096, "the header is one page");
_Static_assert(sizeof(struct row) == 56, "a change of the rows is a change of the layout");

static struct row *row_at(const struct description *description, enum description_table table,
			  uint32_t handle)
{
	if (!description->map || table == DESCRIBED_NONE || handle >= ROWS)
		return NULL;
	return &description->map->rows[table - 1][handle];
}

/* --- the context's process --- */

static void *map_file(int fd, int rights)
{
	void *map = mmap(NULL, sizeof(struct description_file), rights, MAP_SHARED, fd, 0);

	return map == MAP_FAILED ? NULL : map;
}

int description_create(struct description *description)
{
	const int fd = memfd_create("verbena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct size_signal held;
	int err = 0;

	*description = (struct description){.own = true};
	if (fd < 0)
		return -1;
	size_signal_hold(&held);
	if (ftruncate(fd, sizeof(struct description_file)) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		err = errno;
	size_signal_release(&held, err);
	if (!err) {
		description->map = map_file(fd, PROT_READ | PROT_WRITE);
		err = description->map ? 0 : errno;
	}
	if (!err)
		return fd;
	close(fd);
	errno = err;
	return -1;
}

void description_sign(struct description *description, const struct description_owner *owner)
{
	struct header *header = &description->map->header;

	header->layout = DESCRIPTION_LAYOUT_NUMBER;
	header->owner = *owner;
	atomic_store_explicit(&header->magic, MAGIC, memory_order_release);
}

void description_put(struct description *description, enum description_table table, uint32_t handle,
		     const struct described *object)
{
	struct row *row = description->own ? row_at(description, table, handle) : NULL;

	if (!row)
		return;
	atomic_store_explicit(&row->stamp, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	row->object = *object;
	atomic_store_explicit(&row->stamp, ++description->last_stamp, memory_order_release);
}

void description_clear(struct description *description, enum description_table table,
		       uint32_t handle)
{
	struct row *row = description->own ? row_at(description, table, handle) : NULL;

	if (row)
		atomic_store_explicit(&row->stamp, 0, memory_order_release);
}

/* --- another process --- */

static bool is_sealed(int fd)
{
	struct stat status;

	return (fcntl(fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_SEAL)) ==
		       (F_SEAL_SHRINK | F_SEAL_SEAL) &&
	       !fstat(fd, &status) && status.st_size == sizeof(struct description_file);
}

enum description_look description_open(struct description *description, int fd,
				       struct description_owner *owner, uint32_t *layout)
{
	struct header header;

	*description = (struct description){0};
	/* A layout of another version may be longer or shorter. */
	if (fcntl(fd, F_GET_SEALS) < 0 || pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    header.magic != MAGIC)
		return DESCRIPTION_NONE;
	*layout = header.layout;
	if (header.layout != DESCRIPTION_LAYOUT_NUMBER)
		return DESCRIPTION_LAYOUT;
	*owner = header.owner;
	if (is_sealed(fd))
		description->map = map_file(fd, PROT_READ);
	return description->map ? DESCRIPTION_FOUND : DESCRIPTION_NONE;
}

uint64_t description_read(const struct description *description, enum description_table table,
			  uint32_t handle, struct described *object)
{
	const struct row *row = row_at(description, table, handle);
	uint64_t stamp = row ? atomic_load_explicit(&row->stamp, memory_order_acquire) : 0;

	if (!stamp)
		return 0;
	memcpy(object, (const void *)&row->object, sizeof(*object));
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&row->stamp, memory_order_relaxed) == stamp ? stamp : 0;
}

bool description_has(const struct description *description, enum description_table table,
		     uint32_t handle, uint64_t stamp)
{
	const struct row *row = row_at(description, table, handle);

	return row && stamp && atomic_load_explicit(&row->stamp, memory_order_acquire) == stamp;
}

const _Atomic uint64_t *description_stamp(const struct description *description,
					  enum description_table table, uint32_t handle)
{
	return &row_at(description, table, handle)->stamp;
}

/* --- both --- */

void description_close(struct description *description)
{
	if (description->map)
		munmap(description->map, sizeof(*description->map));
	description->map = NULL;
}
