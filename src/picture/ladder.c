/* SPDX-License-Identifier: MIT */
#include "src/picture/ladder.h"

#include "src/picture/event.h"

#include <stdlib.h>
#include <string.h>

/* The program ends if the memory of the rows cannot be had. */
static void *sure(void *memory)
{
	if (memory)
		return memory;
	fprintf(stderr, "verbena trace: out of memory; choose fewer events, or --last\n");
	exit(1);
}

/* --- nodes and addresses --- */

static int node_named(struct ladder *ladder, const char *name)
{
	for (size_t i = 0; i < ladder->node_count; i++)
		if (strcmp(ladder->nodes[i], name) == 0)
			return (int)i;
	ladder->nodes =
		sure(realloc(ladder->nodes, (ladder->node_count + 1) * sizeof(*ladder->nodes)));
	ladder->nodes[ladder->node_count] = sure(strdup(name));
	return (int)ladder->node_count++;
}

/* Returns the index of an address. The latest addresses are those that packets have next. */
static int address_of(struct ladder *ladder, const char *text)
{
	for (size_t i = ladder->address_count; i-- > 0;)
		if (strcmp(ladder->addresses[i].text, text) == 0)
			return (int)i;
	ladder->addresses = sure(realloc(ladder->addresses,
					 (ladder->address_count + 1) * sizeof(*ladder->addresses)));
	ladder->addresses[ladder->address_count] =
		(struct address){sure(strdup(text)), LADDER_NOWHERE};
	return (int)ladder->address_count++;
}

/* Returns the address of a packet by these keys, or LADDER_NOWHERE: the packet has none. */
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

static void learn(struct ladder *ladder, int address, int node)
{
	if (address != LADDER_NOWHERE && ladder->addresses[address].node == LADDER_NOWHERE)
		ladder->addresses[address].node = node;
}

/* Returns the node of an address: without a device, the address is a node of its own. */
static int node_at(struct ladder *ladder, int index)
{
	struct address *address = &ladder->addresses[index];

	if (address->node == LADDER_NOWHERE)
		address->node = node_named(ladder, address->text);
	return address->node;
}

/* A device's addresses are those that it sends from, and those that it has told the program. */
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

/* --- rows --- */

/* Returns the place of a new row. The oldest rows go once there are twice as many as wanted. */
static struct row *new_row(struct ladder *ladder)
{
	if (ladder->last && ladder->row_count >= 2 * ladder->last) {
		const size_t gone = ladder->row_count - ladder->last;

		for (size_t i = 0; i < gone; i++)
			free(ladder->rows[i].text);
		memmove(ladder->rows, ladder->rows + gone, ladder->last * sizeof(*ladder->rows));
		ladder->row_count = ladder->last;
		ladder->left_out += gone;
	}
	if (ladder->row_count == ladder->row_room) {
		ladder->row_room = ladder->row_room ? 2 * ladder->row_room : 64;
		ladder->rows =
			sure(realloc(ladder->rows, ladder->row_room * sizeof(*ladder->rows)));
	}
	return &ladder->rows[ladder->row_count++];
}

void ladder_take(struct ladder *ladder, const json_t *event, bool chosen)
{
	const char *device = event_string(event, "device");
	const json_t *packet = json_object_get(event, "packet");
	const enum row_kind kind = row_kind_of(event, ladder->with_verbs);
	struct row row = {.kind = kind, .node = LADDER_NOWHERE, .peer = LADDER_NOWHERE};
	int source = LADDER_NOWHERE;

	if (*device)
		row.node = node_named(ladder, device);
	learn_from(ladder, event, row.node);
	if (!chosen || kind == ROW_NONE)
		return;
	event_number(json_object_get(event, "n"), &row.number);
	row.has_time = event_number(json_object_get(event, "t"), &row.time_ns);
	row.lost = json_is_true(json_object_get(event, "lost"));
	row.failed = event_is_failure(event);
	row.text = sure(row_text(event));
	/* Until ladder_end() the peer is an address. */
	if (kind == ROW_PACKET && !json_object_get(event, "injected")) {
		if (!packet_is_multicast(packet))
			row.peer = packet_address(ladder, packet, "dlid", "dest_gid");
		source = packet_address(ladder, packet, "slid", "source_gid");
	}
	/* A capture names no devices. */
	if (row.node == LADDER_NOWHERE && source != LADDER_NOWHERE)
		row.node = node_at(ladder, source);
	*new_row(ladder) = row;
}

static void keep_last(struct ladder *ladder)
{
	const size_t gone = ladder->last && ladder->row_count > ladder->last
				    ? ladder->row_count - ladder->last
				    : 0;

	if (!gone)
		return;
	for (size_t i = 0; i < gone; i++)
		free(ladder->rows[i].text);
	memmove(ladder->rows, ladder->rows + gone,
		(ladder->row_count - gone) * sizeof(*ladder->rows));
	ladder->row_count -= gone;
	ladder->left_out += gone;
}

/* Leaves out the nodes without rows: those of devices that were opened only, or filtered out. */
static void drop_nodes(struct ladder *ladder)
{
	int *now = sure(calloc(ladder->node_count + 1, sizeof(*now)));
	size_t count = 0;

	for (size_t i = 0; i < ladder->row_count; i++) {
		if (ladder->rows[i].node != LADDER_NOWHERE)
			now[ladder->rows[i].node] = 1;
		if (ladder->rows[i].peer != LADDER_NOWHERE)
			now[ladder->rows[i].peer] = 1;
	}
	for (size_t i = 0; i < ladder->node_count; i++) {
		if (now[i]) {
			ladder->nodes[count] = ladder->nodes[i];
			now[i] = (int)count++;
		} else {
			free(ladder->nodes[i]);
		}
	}
	ladder->node_count = count;
	for (size_t i = 0; i < ladder->row_count; i++) {
		if (ladder->rows[i].node != LADDER_NOWHERE)
			ladder->rows[i].node = now[ladder->rows[i].node];
		if (ladder->rows[i].peer != LADDER_NOWHERE)
			ladder->rows[i].peer = now[ladder->rows[i].peer];
	}
	free(now);
}

/* A packet from a node to itself is no arrow. */
static void say_loopback(struct row *row)
{
	char *text;

	if (asprintf(&text, "to itself: %s", row->text) < 0)
		return;
	free(row->text);
	row->text = text;
	row->peer = LADDER_NOWHERE;
}

void ladder_end(struct ladder *ladder)
{
	keep_last(ladder);
	for (size_t i = 0; i < ladder->row_count; i++) {
		struct row *row = &ladder->rows[i];

		if (row->kind != ROW_PACKET || row->peer == LADDER_NOWHERE)
			continue;
		row->peer = node_at(ladder, row->peer);
		if (row->peer == row->node)
			say_loopback(row);
	}
	drop_nodes(ladder);
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
	free(ladder->rows);
	free(ladder->nodes);
	free(ladder->addresses);
	*ladder = (struct ladder){0};
}
