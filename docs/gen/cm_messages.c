/* SPDX-License-Identifier: MIT */
/*
 * Prints docs/cm-messages.md from the tables of the connection manager. With --check FILE, compares FILE
 * with what it would print.
 */
#include "docs/gen/page.h"
#include "docs/gen/table.h"

#include "sim/cm/cm.h"
#include "sim/wire/mad.h"

#include <ctype.h>
#include <stdlib.h>

static void intro(FILE *out)
{
	fputs("# The messages of the connection manager\n"
	      "\n"
	      "`docs/gen/cm_messages.c` prints this from `sim/wire/cm_fields.def` and from the\n"
	      "table of states in `sim/cm/receive.c`; `scripts/docs` runs it, and a test fails if\n"
	      "this file is stale.\n"
	      "\n"
	      "A message is a management datagram (MAD) of 256 bytes: a SEND of a UD QP from QP 1\n"
	      "to QP 1 with the Q_Key 0x80010000. Offsets count from the first byte of the MAD.\n"
	      "Bit 0 is the highest one of its byte. Bytes that no row names are zero.\n"
	      "Fault rules name messages and fields as these tables do: verbena-run(1),\n"
	      "`message` and `field`.\n"
	      "\n"
	      "- [States](#states): what a communication does with each message\n"
	      "- [Fields](#fields): where each field stands\n",
	      out);
}

static void states(FILE *out, struct table *table)
{
	static const char *const headings[] = {"state", "message", "what follows"};
	static const unsigned int widest[] = {0, 0, 0};

	fputs("\n"
	      "## States\n"
	      "\n"
	      "A name of a state is the next state. A message without a row is dropped, and\n"
	      "counted as `cm_state`; one whose IDs no communication has is counted as\n"
	      "`cm_unknown`. A DREQ of unknown IDs is answered by a DREP, a LAP by an APR, a REQ\n"
	      "or SIDR_REQ to a service that nobody listens for by a REJ or SIDR_REP.\n"
	      "\n",
	      out);
	table_begin(table, 3, headings, widest);
	for (unsigned int state = 0; state < SIM_CM_STATES; state++) {
		for (unsigned int message = 1; message < SIM_CM_MESSAGES; message++) {
			const char *about = sim_cm_step_about((enum sim_cm_state)state,
							      (enum sim_cm_message)message);

			if (!about)
				continue;
			table_row(table);
			table_add(table, 0, "%s", sim_cm_state_name((enum sim_cm_state)state));
			table_add(table, 1, "%s", sim_cm_message_info[message].name);
			table_add(table, 2, "%s", about);
		}
	}
	table_print(table, out);
}

static void field_rows(struct table *table, unsigned int message)
{
	for (unsigned int i = 0; i < SIM_CM_FIELDS; i++) {
		const struct sim_cm_field_info *info = &sim_cm_field_info[i];

		if (info->message != message)
			continue;
		table_row(table);
		table_add(table, 0, "%u", info->byte);
		if (info->bits) {
			table_add(table, 1, "%u", info->bit);
			table_add(table, 2, "%u bit%s", info->bits, info->bits == 1 ? "" : "s");
		} else {
			table_add(table, 2, "%u bytes", info->bytes);
		}
		table_add(table, 3, "`%s`", info->name);
	}
}

static void fields(FILE *out, struct table *table)
{
	static const char *const headings[] = {"byte", "bit", "size", "field"};
	static const unsigned int widest[] = {0, 0, 0, 0};

	fputs("\n"
	      "## Fields\n",
	      out);
	for (unsigned int message = 0; message < SIM_CM_MESSAGES; message++) {
		const struct sim_cm_message_info *info = &sim_cm_message_info[message];

		if (message == SIM_CM_NONE)
			fprintf(out, "\n### Header\n\nBegins each message.\n\n");
		else
			fprintf(out, "\n### %s\n\n%c%s. Attribute ID 0x%04x.\n\n", info->name,
				toupper((unsigned char)info->about[0]), info->about + 1,
				info->attribute_id);
		table_begin(table, 4, headings, widest);
		field_rows(table, message);
		table_print(table, out);
	}
}

int main(int argc, char **argv)
{
	static struct table table;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return EXIT_FAILURE;
	intro(out);
	states(out, &table);
	fields(out, &table);
	if (fclose(out))
		return EXIT_FAILURE;
	return page_print(argc, argv, text);
}
