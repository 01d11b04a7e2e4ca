/* SPDX-License-Identifier: MIT */
#include "src/picture/ladder.h"

#include "src/base/count.h"
#include "src/base/fnv.h"
#include "src/picture/bytes.h"
#include "src/picture/event.h"

#include <stdlib.h>
#include <string.h>

/* --- nodes and addresses --- */

static int node_named(struct ladder *ladder, const char *name, unsigned int file)
{
	const size_t count = ladder->node_count;

	for (size_t i = 0; i < count; i++)
		if (ladder->origins[i].file == file && strcmp(ladder->nodes[i], name) == 0)
			return (int)i;
	ladder->nodes = bytes_sure(realloc(ladder->nodes, (count + 1) * sizeof(*ladder->nodes)));
	ladder->origins =
		bytes_sure(realloc(ladder->origins, (count + 1) * sizeof(*ladder->origins)));
	ladder->nodes[count] = bytes_sure(strdup(name));
	ladder->origins[count] = (struct origin){file, (int)count, false};
	return (int)ladder->node_count++;
}

/* Returns the index of an address, and adds it if it is new. The next packet mostly has one of the addresses
 * that came last. */
static int address_of(struct ladder *ladder, const char *text)
{
	for (size_t i = ladder->address_count; i-- > 0;)
		if (strcmp(ladder->addresses[i].text, text) == 0)
			return (int)i;
	ladder->addresses = bytes_sure(realloc(
		ladder->addresses, (ladder->address_count + 1) * sizeof(*ladder->addresses)));
	ladder->addresses[ladder->address_count] =
		(struct address){bytes_sure(strdup(text)), LADDER_NOWHERE};
	return (int)ladder->address_count++;
}

/* Returns the index of the packet's address; LADDER_NOWHERE if it has neither of the two members. */
static int packet_address(struct ladder *ladder, const json_t *packet, const char *lid_key,
			  const char *gid_key)
{
	const char *gid = event_string(packet, gid_key);
	char text[32];
	uint64_t lid;

	if (event_number(json_object_get(packet, lid_key), &lid)) {
		snprintf(text, sizeof(text), "LID %u", (unsigned int)lid);
		return address_of(ladder, text);
	}
	return *gid ? address_of(ladder, gid) : LADDER_NOWHERE;
}

/* Notes that the node has the address. If a node of the same name in another file has it, too, the two nodes
 * are one device. */
static void learn(struct ladder *ladder, int address, int node)
{
	struct origin *origin = &ladder->origins[node];
	int before;

	if (address == LADDER_NOWHERE)
		return;
	before = ladder->addresses[address].node;
	origin->addressed = true;
	if (before == LADDER_NOWHERE)
		ladder->addresses[address].node = node;
	else if (ladder->origins[before].file != origin->file && origin->same == node &&
		 strcmp(ladder->nodes[before], ladder->nodes[node]) == 0)
		origin->same = ladder->origins[before].same;
}

/* Returns the node of an address. An address without a known device becomes a node. */
static int node_at(struct ladder *ladder, int index)
{
	struct address *address = &ladder->addresses[index];

	if (address->node == LADDER_NOWHERE)
		address->node = node_named(ladder, address->text, LADDER_NO_FILE);
	return address->node;
}

/* A device's addresses are the source addresses of its packets and the GIDs that query_gid returns. */
static void learn_from(struct ladder *ladder, const json_t *event, int node)
{
	const json_t *packet = json_object_get(event, "packet");
	const char *gid;

	if (node == LADDER_NOWHERE)
		return;
	if (strcmp(event_string(event, "kind"), "packet") == 0 &&
	    !json_object_get(event, "injected"))
		learn(ladder, packet_address(ladder, packet, "slid", "source_gid"), node);
	gid = event_string(json_object_get(event, "args"), "gid");
	if (strcmp(event_string(event, "verb"), "query_gid") == 0 && *gid)
		learn(ladder, address_of(ladder, gid), node);
}

/* --- files --- */

void ladder_begin_file(struct ladder *ladder, const char *name)
{
	const size_t count = ladder->file_count + 1;

	ladder->files = bytes_sure(realloc(ladder->files, count * sizeof(*ladder->files)));
	ladder->files[ladder->file_count++] = (struct ladder_file){bytes_sure(strdup(name)), 0};
	ladder->last_time_ns = 0;
}

void ladder_set_start(struct ladder *ladder, uint64_t start_ns)
{
	if (ladder->file_count)
		ladder->files[ladder->file_count - 1].start_ns = start_ns;
}

static unsigned int present_file(const struct ladder *ladder)
{
	return ladder->file_count ? ladder->file_count - 1 : 0;
}

/* --- rows --- */

/* Removes all rows but the last @count. */
static void keep_last(struct ladder *ladder, size_t count)
{
	const size_t gone = ladder->row_count - count;

	for (size_t i = 0; i < gone; i++)
		free(ladder->rows[i].text);
	memmove(ladder->rows, ladder->rows + gone, count * sizeof(*ladder->rows));
	ladder->row_count = count;
	ladder->left_out += gone;
}

/* Returns the place of a new row. With `last`, old rows are removed when there are twice as many as wanted.
 * With several files, which rows are the last is known only after sorting. */
static struct row *new_row(struct ladder *ladder)
{
	if (ladder->last && ladder->file_count < 2 && ladder->row_count >= 2 * ladder->last)
		keep_last(ladder, ladder->last);
	if (ladder->row_count == ladder->row_room) {
		ladder->row_room = ladder->row_room ? 2 * ladder->row_room : 64;
		ladder->rows =
			bytes_sure(realloc(ladder->rows, ladder->row_room * sizeof(*ladder->rows)));
	}
	return &ladder->rows[ladder->row_count++];
}

/* Hashes the members that are equal for the same packet in two files. */
static uint64_t hash_packet(const json_t *packet)
{
	static const char *const texts[] = {"opcode", "dest_qp", "source_gid", "dest_gid"};
	static const char *const numbers[] = {"psn", "payload_bytes", "slid", "dlid"};
	uint64_t hash = FNV_BASIS, number;

	for (size_t i = 0; i < COUNT(texts); i++)
		hash = fnv_add_text(hash, event_string(packet, texts[i])) + 1;
	for (size_t i = 0; i < COUNT(numbers); i++)
		if (event_number(json_object_get(packet, numbers[i]), &number))
			hash = fnv_add(hash, &number, sizeof(number)) + i;
	return hash;
}

/* Fills in the row's members of a packet. */
static void take_packet(struct ladder *ladder, const json_t *event, struct row *row)
{
	const json_t *packet = json_object_get(event, "packet");

	row->source = packet_address(ladder, packet, "slid", "source_gid");
	row->dest = packet_address(ladder, packet, "dlid", "dest_gid");
	if (row->kind != ROW_PACKET)
		return;
	row->packet_hash = hash_packet(packet);
	if (!json_object_get(event, "injected") && !packet_is_multicast(packet))
		row->peer = row->dest;
}

struct row *ladder_take(struct ladder *ladder, const json_t *event, bool chosen)
{
	const char *device = event_string(event, "device");
	const enum row_kind kind = row_kind_of(event, ladder->with_verbs);
	struct row row = {.kind = kind,
			  .node = LADDER_NOWHERE,
			  .peer = LADDER_NOWHERE,
			  .source = LADDER_NOWHERE,
			  .dest = LADDER_NOWHERE,
			  .file = present_file(ladder),
			  .sequence = ladder->sequence++};
	struct row *place;

	if (*device)
		row.node = node_named(ladder, device, row.file);
	learn_from(ladder, event, row.node);
	row.has_time = event_number(json_object_get(event, "t"), &row.time_ns);
	if (row.has_time)
		ladder->last_time_ns = row.time_ns;
	row.order_ns = ladder->last_time_ns;
	if (!chosen || kind == ROW_NONE)
		return NULL;
	event_number(json_object_get(event, "n"), &row.number);
	row.lost = json_is_true(json_object_get(event, "lost"));
	row.failed = event_is_failure(event);
	row.text = bytes_sure(row_text(event));
	if (json_object_get(event, "packet"))
		take_packet(ladder, event, &row);
	place = new_row(ladder);
	*place = row;
	return place;
}

/* Sets is_used[N] for each node N that a row shows. */
static void find_used_nodes(const struct ladder *ladder, bool *is_used)
{
	for (size_t i = 0; i < ladder->row_count; i++) {
		if (ladder->rows[i].node != LADDER_NOWHERE)
			is_used[ladder->rows[i].node] = true;
		if (ladder->rows[i].peer != LADDER_NOWHERE)
			is_used[ladder->rows[i].peer] = true;
	}
}

/* Removes the nodes without rows: devices that were only opened, or whose events were not chosen. */
static void remove_unused_nodes(struct ladder *ladder)
{
	bool *is_used = bytes_sure(calloc(ladder->node_count + 1, sizeof(*is_used)));
	int *new_index = bytes_sure(calloc(ladder->node_count + 1, sizeof(*new_index)));
	size_t count = 0;

	find_used_nodes(ladder, is_used);
	for (size_t i = 0; i < ladder->node_count; i++) {
		new_index[i] = (int)count;
		if (is_used[i])
			ladder->nodes[count++] = ladder->nodes[i];
		else
			free(ladder->nodes[i]);
	}
	ladder->node_count = count;
	for (size_t i = 0; i < ladder->row_count; i++) {
		if (ladder->rows[i].node != LADDER_NOWHERE)
			ladder->rows[i].node = new_index[ladder->rows[i].node];
		if (ladder->rows[i].peer != LADDER_NOWHERE)
			ladder->rows[i].peer = new_index[ladder->rows[i].peer];
	}
	free(new_index);
	free(is_used);
}

/* Turns the row of a packet from a node to itself into a note: there is no second column for an arrow. */
static void make_loopback_note(struct row *row)
{
	char *text;

	if (asprintf(&text, "to itself: %s", row->text) < 0)
		return;
	free(row->text);
	row->text = text;
	row->peer = LADDER_NOWHERE;
}

/* A capture names no devices: the sender of a packet is the node that has its source address. */
static void find_sources(struct ladder *ladder)
{
	for (size_t i = 0; i < ladder->row_count; i++) {
		struct row *row = &ladder->rows[i];

		if (row->kind == ROW_PACKET && row->node == LADDER_NOWHERE &&
		    row->source != LADDER_NOWHERE)
			row->node = node_at(ladder, row->source);
	}
}

/* Turns the peers from addresses into nodes. */
static void find_peers(struct ladder *ladder)
{
	for (size_t i = 0; i < ladder->row_count; i++) {
		struct row *row = &ladder->rows[i];

		if (row->node != LADDER_NOWHERE)
			row->node = ladder->origins[row->node].same;
		if (row->kind != ROW_PACKET || row->peer == LADDER_NOWHERE)
			continue;
		row->peer = node_at(ladder, row->peer);
		row->peer = ladder->origins[row->peer].same;
		if (row->peer == row->node)
			make_loopback_note(row);
	}
}

void ladder_end(struct ladder *ladder)
{
	if (ladder->file_count > 1) {
		ladder_sort(ladder);
		ladder_unify(ladder);
	}
	find_sources(ladder);
	if (ladder->last && ladder->row_count > ladder->last)
		keep_last(ladder, ladder->last);
	find_peers(ladder);
	remove_unused_nodes(ladder);
	for (size_t i = 0; i < ladder->node_count; i++)
		ladder_clean(ladder->nodes[i]);
}

void ladder_free(struct ladder *ladder)
{
	for (size_t i = 0; i < ladder->row_count; i++)
		free(ladder->rows[i].text);
	for (size_t i = 0; i < ladder->node_count; i++)
		free(ladder->nodes[i]);
	for (size_t i = 0; i < ladder->address_count; i++)
		free(ladder->addresses[i].text);
	for (unsigned int i = 0; i < ladder->file_count; i++)
		free(ladder->files[i].name);
	free(ladder->files);
	free(ladder->rows);
	free(ladder->origins);
	free(ladder->nodes);
	free(ladder->addresses);
	*ladder = (struct ladder){0};
}
