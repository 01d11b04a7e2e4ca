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

/* Rows of one time stay in the order of the files. */
static int compare_times(const void *a, const void *b)
{
	const struct row *left = a, *right = b;

	return compare(left->order_ns, right->order_ns) ?: compare(left->sequence, right->sequence);
}

/* Orders the rows of packets so that the same packets stand together, those of logs before those of
 * captures, which name no device. */
static int compare_packets(const void *a, const void *b)
{
	const struct row *left = *(const struct row *const *)a,
			 *right = *(const struct row *const *)b;

	return compare(left->time_ns, right->time_ns)
		       ?: compare(left->packet_sum, right->packet_sum)
		       ?: compare(left->node == LADDER_NOWHERE, right->node == LADDER_NOWHERE)
		       ?: compare(left->file, right->file)
		       ?: compare(left->sequence, right->sequence);
}

static bool is_same_packet(const struct row *a, const struct row *b)
{
	return a->time_ns == b->time_ns && a->packet_sum == b->packet_sum;
}

/* The row that stays has what the other file says, too: a capture has the bytes, a log the device. */
static void take_over(struct row *stays, struct row *goes)
{
	if (stays->node == LADDER_NOWHERE)
		stays->node = goes->node;
	if (stays->kept && goes->kept)
		stays->kept_too = goes->kept;
	stays->lost |= goes->lost;
	goes->kind = ROW_NONE;
}

/*
 * Of rows that are the same packet by their fields and time, the first of a file is the same as the first
 * of another file, and so on: a packet that was repeated at once is several packets.
 */
static void join_run(struct row **run, size_t count)
{
	size_t second = 0;

	while (second < count && run[second]->file == run[0]->file)
		second++;
	for (size_t i = 0, at = second; at < count; at++) {
		if (at > second && run[at]->file != run[at - 1]->file)
			i = 0;
		if (i < second)
			take_over(run[i++], run[at]);
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
		join_run(packets + i, end - i);
	}
	free(packets);
}

/* Removes the rows that other rows have taken over. */
static void remove_none(struct ladder *ladder)
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

/* Counts the times of captures that count from moments of their own from the first of these. */
static void count_from_first(struct ladder *ladder)
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
	count_from_first(ladder);
	join_packets(ladder);
	remove_none(ladder);
	qsort(ladder->rows, ladder->row_count, sizeof(*ladder->rows), compare_times);
}

/* --- nodes --- */

static bool is_device(const struct ladder *ladder, size_t node)
{
	return ladder->origins[node].file != LADDER_NO_FILE;
}

static bool have_one_name(const struct ladder *ladder, size_t a, size_t b)
{
	return is_device(ladder, a) && is_device(ladder, b) && ladder->origins[a].same == (int)a &&
	       ladder->origins[b].same == (int)b && strcmp(ladder->nodes[a], ladder->nodes[b]) == 0;
}

/* Adds the file to the name of a device whose name another node has. */
static void name_by_file(struct ladder *ladder, size_t node)
{
	const char *path = ladder->files[ladder->origins[node].file].name;
	const char *file = strrchr(path, '/');
	char *name;

	if (asprintf(&name, "%s (%s)", ladder->nodes[node], file ? file + 1 : path) < 0)
		bytes_sure(NULL);
	free(ladder->nodes[node]);
	ladder->nodes[node] = name;
}

static void name_apart(struct ladder *ladder)
{
	bool *is_shared = bytes_sure(calloc(ladder->node_count + 1, sizeof(*is_shared)));

	for (size_t i = 0; i < ladder->node_count; i++)
		for (size_t j = 0; j < i; j++)
			if (have_one_name(ladder, i, j))
				is_shared[i] = is_shared[j] = true;
	for (size_t i = 0; i < ladder->node_count; i++)
		if (is_shared[i])
			name_by_file(ladder, i);
	free(is_shared);
}

void ladder_unify(struct ladder *ladder)
{
	struct origin *origins = ladder->origins;

	for (size_t i = 0; i < ladder->node_count; i++) {
		origins[i].same = origins[origins[i].same].same;
		for (size_t j = 0; j < i; j++) {
			if (!have_one_name(ladder, i, j) ||
			    (origins[i].addressed && origins[j].addressed))
				continue;
			origins[i].same = (int)j;
			origins[j].addressed |= origins[i].addressed;
		}
	}
	name_apart(ladder);
}
