/* SPDX-License-Identifier: MIT */
#include "src/picture/ladder.h"

#include "src/picture/bytes.h"

#include <stdlib.h>
#include <string.h>

/* --- rows --- */

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Orders rows of the same time as the events were read. */
static int compare_times(const void *a, const void *b)
{
	const struct row *left = a, *right = b;

	return compare(left->order_ns, right->order_ns) ?: compare(left->sequence, right->sequence);
}

/* Orders rows so that equal packets are neighbours. Rows of logs precede those of captures, which name no
 * device. */
static int compare_packets(const void *a, const void *b)
{
	const struct row *left = *(const struct row *const *)a,
			 *right = *(const struct row *const *)b;

	return compare(left->time_ns, right->time_ns)
		       ?: compare(left->packet_hash, right->packet_hash)
		       ?: compare(left->node == LADDER_NOWHERE, right->node == LADDER_NOWHERE)
		       ?: compare(left->file, right->file)
		       ?: compare(left->sequence, right->sequence);
}

static bool is_same_packet(const struct row *a, const struct row *b)
{
	return a->time_ns == b->time_ns && a->packet_hash == b->packet_hash;
}

/* Adds to a row what another file says of the same packet (a capture has the bytes, a log the device), and
 * marks the other row for removal. */
static void join_rows(struct row *row, struct row *other)
{
	if (row->node == LADDER_NOWHERE)
		row->node = other->node;
	if (row->page_event && other->page_event)
		row->page_event_other = other->page_event;
	row->lost |= other->lost;
	other->kind = ROW_NONE;
}

/*
 * Joins rows that have equal packets at one time, sorted by file. A file may have such a packet several times,
 * if the packet was duplicated: its N-th row is the same packet as the N-th row of the first file.
 */
static void join_equal_packets(struct row **rows, size_t count)
{
	size_t of_first_file = 0;

	while (of_first_file < count && rows[of_first_file]->file == rows[0]->file)
		of_first_file++;
	for (size_t nth = 0, i = of_first_file; i < count; i++) {
		if (i > of_first_file && rows[i]->file != rows[i - 1]->file)
			nth = 0;
		if (nth < of_first_file)
			join_rows(rows[nth++], rows[i]);
	}
}

static void join_packets(struct ladder *ladder)
{
	struct row **packets = bytes_sure(calloc(ladder->row_count + 1, sizeof(struct row *)));
	size_t count = 0, end;

	for (size_t i = 0; i < ladder->row_count; i++)
		if (ladder->rows[i].kind == ROW_PACKET && ladder->rows[i].has_time)
			packets[count++] = &ladder->rows[i];
	qsort(packets, count, sizeof(struct row *), compare_packets);
	for (size_t i = 0; i < count; i = end) {
		for (end = i + 1; end < count && is_same_packet(packets[i], packets[end]);)
			end++;
		join_equal_packets(packets + i, end - i);
	}
	free(packets);
}

/* Removes the rows that were joined to others. */
static void remove_joined(struct ladder *ladder)
{
	size_t count = 0;

	for (size_t i = 0; i < ladder->row_count; i++) {
		if (ladder->rows[i].kind == ROW_NONE)
			free(ladder->rows[i].text);
		else
			ladder->rows[count++] = ladder->rows[i];
	}
	ladder->row_count = count;
}

/* The times of captures count from different moments: makes all of them count from the first moment. */
static void align_times(struct ladder *ladder)
{
	uint64_t first_ns = 0, start_ns;

	for (unsigned int i = 0; i < ladder->file_count; i++) {
		start_ns = ladder->files[i].start_ns;
		if (start_ns && (!first_ns || start_ns < first_ns))
			first_ns = start_ns;
	}
	for (size_t i = 0; i < ladder->row_count; i++) {
		start_ns = ladder->files[ladder->rows[i].file].start_ns;
		if (!start_ns)
			continue;
		ladder->rows[i].time_ns += start_ns - first_ns;
		ladder->rows[i].order_ns += start_ns - first_ns;
	}
}

void ladder_sort(struct ladder *ladder)
{
	if (!ladder->row_count)
		return;
	align_times(ladder);
	join_packets(ladder);
	remove_joined(ladder);
	qsort(ladder->rows, ladder->row_count, sizeof(*ladder->rows), compare_times);
}

/* --- nodes --- */

static bool is_device(const struct ladder *ladder, size_t node)
{
	return ladder->origins[node].file != LADDER_NO_FILE;
}

/* Returns true if the nodes are devices of the same name that are not known to be the same device. */
static bool share_name(const struct ladder *ladder, size_t a, size_t b)
{
	return is_device(ladder, a) && is_device(ladder, b) && ladder->origins[a].same == (int)a &&
	       ladder->origins[b].same == (int)b && strcmp(ladder->nodes[a], ladder->nodes[b]) == 0;
}

static void add_file_to_name(struct ladder *ladder, size_t node)
{
	const char *path = ladder->files[ladder->origins[node].file].name;
	const char *file = strrchr(path, '/');
	char *name;

	if (asprintf(&name, "%s (%s)", ladder->nodes[node], file ? file + 1 : path) < 0)
		bytes_sure(NULL);
	free(ladder->nodes[node]);
	ladder->nodes[node] = name;
}

/* Adds the file to the names of devices that share a name. */
static void tell_apart(struct ladder *ladder)
{
	bool *is_shared = bytes_sure(calloc(ladder->node_count + 1, sizeof(*is_shared)));

	for (size_t i = 0; i < ladder->node_count; i++)
		for (size_t j = 0; j < i; j++)
			if (share_name(ladder, i, j))
				is_shared[i] = is_shared[j] = true;
	for (size_t i = 0; i < ladder->node_count; i++)
		if (is_shared[i])
			add_file_to_name(ladder, i);
	free(is_shared);
}

void ladder_unify(struct ladder *ladder)
{
	struct origin *origins = ladder->origins;

	for (size_t i = 0; i < ladder->node_count; i++) {
		origins[i].same = origins[origins[i].same].same;
		for (size_t j = 0; j < i; j++) {
			if (!share_name(ladder, i, j) ||
			    (origins[i].addressed && origins[j].addressed))
				continue;
			origins[i].same = (int)j;
			origins[j].addressed |= origins[i].addressed;
		}
	}
	tell_apart(ladder);
}
