/* SPDX-License-Identifier: MIT */
#include "backends/sim/capture/pcap_tail.h"

#include "src/parts/tail.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A segment has half of the bytes, so that two of them keep to the limit. The segments of a number of packets are as long
 * as the limit, and pcap_tail_trim() leaves out what is too much. */
void pcap_tail_limit(struct pcap_tail *tail, uint64_t bytes_max, uint64_t packets_max)
{
	tail->bytes_max = bytes_max / 2;
	tail->packets_max = packets_max;
}

/* --- segments --- */

static bool is_named(const struct part *part, const char *name)
{
	return strcmp(part->whole, name) == 0;
}

/* Makes a segment empty. Its descriptor's offset is behind the header then. */
static void empty(int fd)
{
	(void)!ftruncate(fd, PCAP_TAIL_HEADER_BYTES);
	lseek(fd, PCAP_TAIL_HEADER_BYTES, SEEK_SET);
}

static void drop_older(struct pcap_tail *tail, const struct part *part)
{
	if (tail->older.fd < 0)
		return;
	tail->left_out += tail->older.packets;
	if (is_named(part, tail->older.name)) {
		empty(tail->older.fd);
		tail->whole_fd = tail->older.fd;
	} else {
		unlink(tail->older.name);
		close(tail->older.fd);
	}
	tail->older.fd = -1;
}

/* Makes a part with a header. Returns false if it cannot be made. */
static bool make_segment(const struct pcap_tail *tail, const struct part *last, struct part *next)
{
	if (!last->whole[0] || part_open_next(last, O_WRONLY, next))
		return false;
	if (write(next->fd, tail->header, sizeof(tail->header)) == sizeof(tail->header))
		return true;
	unlink(next->name);
	close(next->fd);
	return false;
}

/* The descriptor fd becomes the new segment's, so that the stream above it stays. */
static bool turn_to(struct pcap_tail *tail, struct part *part, int fd, const struct part *next)
{
	const int older_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (older_fd < 0 || dup3(next->fd, fd, O_CLOEXEC) < 0) {
		if (older_fd >= 0)
			close(older_fd);
		unlink(next->name);
		close(next->fd);
		return false;
	}
	close(next->fd);
	tail->older.fd = older_fd;
	tail->older.packets = tail->packets;
	strcpy(tail->older.name, part->number ? part->name : part->whole);
	strcpy(part->name, next->name);
	part->number = next->number;
	return true;
}

void pcap_tail_turn(struct pcap_tail *tail, struct part *part, int fd)
{
	struct part next;

	drop_older(tail, part);
	if (!make_segment(tail, part, &next) || !turn_to(tail, part, fd, &next)) {
		empty(fd);
		tail->left_out += tail->packets;
	}
	tail->packets = 0;
	tail->bytes = PCAP_TAIL_HEADER_BYTES;
}

/* --- the end --- */

void pcap_tail_trim(struct pcap_tail *tail)
{
	uint64_t left_out = 0;

	if (tail->older.fd >= 0 && tail->packets_max)
		tail_capture(tail->older.name, tail->packets_max - tail->packets, &left_out);
	tail->left_out += left_out;
}

void pcap_tail_remove(struct pcap_tail *tail, const struct part *part)
{
	if (tail->older.fd >= 0 && !is_named(part, tail->older.name))
		unlink(tail->older.name);
	if (part->number)
		unlink(part->name);
}

int pcap_tail_lock(const struct pcap_tail *tail, int fd)
{
	if (tail->whole_fd >= 0)
		return tail->whole_fd;
	return tail->older.fd >= 0 ? tail->older.fd : fd;
}

static void close_one(int fd, bool unlocks)
{
	if (fd < 0)
		return;
	if (unlocks)
		part_unlock(fd);
	close(fd);
}

void pcap_tail_close(struct pcap_tail *tail, bool unlocks)
{
	close_one(tail->older.fd, unlocks);
	close_one(tail->whole_fd, unlocks);
}
