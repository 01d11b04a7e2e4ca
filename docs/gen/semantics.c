/* SPDX-License-Identifier: MIT */
/*
 * Prints docs/semantics.md from the tables that the engine follows. With --check FILE, compares FILE
 * with what it would print.
 */
#include "docs/gen/names.h"
#include "docs/gen/page.h"
#include "docs/gen/table.h"

#include "sim/profile/profile.h"
#include "sim/profile/vendor_err.h"
#include "sim/qp/state.h"
#include "sim/qp/verdict.h"
#include "sim/rxe/rxe.h"
#include "sim/wire/opcode.h"
#include "sim/wire/packet.h"
#include "sim/wire/timing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	enum ibv_qp_type type;
	const char *name;
	const char *about;
} types[] = {
	{IBV_QPT_RC, "RC", "reliable connection"},
	{IBV_QPT_UC, "UC", "unreliable connection"},
	{IBV_QPT_UD, "UD", "unreliable datagram"},
	{IBV_QPT_XRC_SEND, "XRC_SEND", "the sending end of an XRC connection"},
	{IBV_QPT_XRC_RECV, "XRC_RECV", "the receiving end of an XRC connection"},
};

/* Adds the names of the bits, without their prefix. */
static void add_bits(struct table *table, unsigned int column, unsigned int bits,
		     const struct bit_name *names, const char *prefix)
{
	for (; names->name; names++)
		if (bits & names->bit)
			table_add(table, column, "%s", names->name + strlen(prefix));
}

static void intro(FILE *out)
{
	fputs("# What the simulator does\n"
	      "\n"
	      "`docs/gen/semantics.c` prints this from the tables that the engine follows;\n"
	      "`scripts/docs` runs it, and a test fails if this file is stale. Prefixes are\n"
	      "left out: `RTS` is `IBV_QPS_RTS`, `PORT` is `IBV_QP_PORT`, `SEND` is\n"
	      "`IBV_WR_SEND`. A wide cell continues in the row below it.\n"
	      "\n"
	      "- [QP transitions](#qp-transitions): what `ibv_modify_qp` accepts\n"
	      "- [Work requests](#work-requests): which QP type may post which request\n"
	      "- [Packets](#packets): the opcodes on the wire\n"
	      "- [Requests that are refused](#requests-that-are-refused): what each side sees\n"
	      "- [Vendor codes](#vendor-codes): the `vendor_err` of a completion in error\n"
	      "- [Timers](#timers): the durations of `min_rnr_timer` and `timeout`\n"
	      "- [Limits](#limits): what each device profile can do\n"
	      "- [Quirks](#quirks): where devices differ\n",
	      out);
}

/* True for a way to RESET or ERR without attributes, which is printed above the table. */
static bool is_way_out(const struct sim_transition *cell, int to)
{
	return !cell->required && !cell->optional && (to == IBV_QPS_RESET || to == IBV_QPS_ERR);
}

static void transition_row(struct table *table, enum ibv_qp_type type, int from, int to)
{
	const struct sim_transition *cell = sim_transition(type, from, to);
	unsigned int optional = (unsigned int)cell->optional;

	if (!cell->valid || is_way_out(cell, to))
		return;
	if (sim_transition_allowed(type, from, to,
				   cell->required | IBV_QP_STATE | IBV_QP_CUR_STATE))
		optional |= IBV_QP_CUR_STATE;
	table_row(table);
	table_add(table, 0, "%s", sim_qp_state_str(from));
	table_add(table, 1, "%s", sim_qp_state_str(to));
	add_bits(table, 2, (unsigned int)cell->required, bits_qp_attr, "IBV_QP_");
	add_bits(table, 3, optional, bits_qp_attr, "IBV_QP_");
}

/* Prints from which states a QP of the type can go to RESET or ERR without attributes. */
static void ways_out(FILE *out, enum ibv_qp_type type, int to)
{
	const char *between = "";

	fprintf(out, "To %s, without attributes, from ", sim_qp_state_str(to));
	for (int from = 0; from < SIM_QP_STATES; from++) {
		const struct sim_transition *cell = sim_transition(type, from, to);

		if (!cell->valid || !is_way_out(cell, to))
			continue;
		fprintf(out, "%s%s", between, sim_qp_state_str(from));
		between = ", ";
	}
	fputs(".\n", out);
}

static void transitions(FILE *out, struct table *table)
{
	static const char *const headings[] = {"from", "to", "required", "optional"};
	static const unsigned int widest[] = {0, 0, 38, 38};

	fputs("\n"
	      "## QP transitions\n"
	      "\n"
	      "`ibv_modify_qp` fails with EINVAL and changes nothing if the transition is not\n"
	      "in the table, if a required attribute is missing, or if an attribute is neither\n"
	      "required nor optional. `IBV_QP_STATE` is always allowed. There is no automatic\n"
	      "path migration.\n",
	      out);
	for (unsigned int i = 0; i < COUNT_OF(types); i++) {
		fprintf(out, "\n### %s\n\n%c%s.\n", types[i].name, types[i].about[0] - 'a' + 'A',
			types[i].about + 1);
		ways_out(out, types[i].type, IBV_QPS_RESET);
		ways_out(out, types[i].type, IBV_QPS_ERR);
		fputc('\n', out);
		table_begin(table, COUNT_OF(headings), headings, widest);
		for (int from = 0; from < SIM_QP_STATES; from++)
			for (int to = 0; to < SIM_QP_STATES; to++)
				transition_row(table, types[i].type, from, to);
		table_print(table, out);
	}
}

static void work_request_row(struct table *table, unsigned int wr_opcode)
{
	const struct sim_wr_info *info = &sim_wr_rows[wr_opcode].info;

	table_row(table);
	table_add(table, 0, "%s", wr_name(wr_opcode));
	for (unsigned int i = 0; i < COUNT_OF(types); i++)
		if (sim_wr_info(types[i].type, wr_opcode)->flags & SIM_WR_LEGAL)
			table_add(table, 1, "%s", types[i].name);
	table_add(table, 2, "%s", wc_opcode_name(info->wc_opcode));
	table_add(table, 3, "%s", info->flags & SIM_WR_INLINE ? "yes" : "no");
	table_add(table, 4, "%s",
		  info->flags & SIM_WR_LOCAL	  ? "done locally"
		  : info->flags & SIM_WR_RESPONSE ? "response arrives"
						  : "acknowledged");
}

static int by_wr_name(const void *a, const void *b)
{
	return strcmp(wr_name(*(const unsigned int *)a), wr_name(*(const unsigned int *)b));
}

static void work_requests(FILE *out, struct table *table)
{
	static const char *const headings[] = {"work request", "legal on", "completes as", "inline",
					       "completes when"};
	static const unsigned int widest[TABLE_COLUMNS_MAX] = {0};
	unsigned int rows[32];
	size_t count = 0;

	fputs("\n"
	      "## Work requests\n"
	      "\n"
	      "\"legal on\" lists the QP types that accept a work request. On another type it\n"
	      "completes with LOC_QP_OP_ERR (with a quirk, posting it is EINVAL). \"inline\" says\n"
	      "whether `IBV_SEND_INLINE` is accepted; else it is EINVAL. \"completes when\": a\n"
	      "work request completes when the peer acknowledges it (on UC and UD: when it was\n"
	      "sent), when the peer's response arrives, or when the QP has done it locally.\n"
	      "\n",
	      out);
	for (unsigned int i = 0; i < sim_wr_row_count; i++)
		if (sim_wr_rows[i].types)
			rows[count++] = i;
	qsort(rows, count, sizeof(rows[0]), by_wr_name);
	table_begin(table, COUNT_OF(headings), headings, widest);
	for (size_t i = 0; i < count; i++)
		work_request_row(table, rows[i]);
	table_print(table, out);
}

static const char *position(uint32_t flags)
{
	if (flags & SIM_OP_MIDDLE)
		return "middle";
	if (flags & SIM_OP_START)
		return flags & SIM_OP_END ? "only" : "first";
	return "last";
}

static void packets(FILE *out, struct table *table)
{
	static const char *const headings[] = {"value",	  "name",  "kind",   "position",
					       "headers", "bytes", "receive"};
	static const unsigned int widest[] = {0, 0, 0, 0, 14, 0, 0};

	fputs("\n"
	      "## Packets\n"
	      "\n"
	      "\"headers\" lists the extension headers after the BTH, in wire order; \"bytes\" is\n"
	      "the size of the BTH and these headers. \"receive\" says what the packet does to "
	      "the\n"
	      "receive queue: it takes a receive WR, completes the receive WR of its message, or\n"
	      "both. The simulator does not do RD: it drops and counts packets of RD and those\n"
	      "with a value that is not in the table.\n"
	      "\n",
	      out);
	table_begin(table, COUNT_OF(headings), headings, widest);
	for (unsigned int i = 0; i < COUNT_OF(sim_opcodes); i++) {
		uint32_t flags = sim_opcodes[i].flags;

		if (!(flags & SIM_OP_VALID))
			continue;
		table_row(table);
		table_add(table, 0, "0x%02x", i);
		table_add(table, 1, "%s", sim_opcodes[i].name);
		add_bits(table, 2, flags & SIM_OP_KIND, kind_names, "");
		table_add(table, 3, "%s", position(flags));
		add_bits(table, 4, flags, header_names, "");
		table_add(table, 5, "%u", sim_opcodes[i].header_bytes);
		if (flags & (SIM_OP_RECV | SIM_OP_COMPLETES))
			table_add(table, 6, "%s",
				  !(flags & SIM_OP_COMPLETES) ? "takes"
				  : flags & SIM_OP_RECV	      ? "both"
							      : "completes");
	}
	table_print(table, out);
}

static const char *const verdict_headings[] = {"profile", "verdict",	"NAK",
					       "send",	  "receive WR", "or event"};

/* Adds the verdict and its consequences, from a column on. */
static void verdict_row(struct table *table, unsigned int column, const struct sim_consequence *row)
{
	enum ibv_wc_status status = sim_nak_status(row->syndrome);

	table_add(table, column, "%s", row->name);
	if (row->syndrome == (SIM_AETH_ACK | SIM_ACK_CREDIT_NONE))
		table_add(table, column + 1, "none; an ACK");
	else
		table_add(table, column + 1, "%s",
			  row->syndrome ? nak_name(row->syndrome) : "none");
	if (row->syndrome == (SIM_AETH_ACK | SIM_ACK_CREDIT_NONE))
		table_add(table, column + 2, "SUCCESS");
	else if (status != IBV_WC_SUCCESS)
		table_add(table, column + 2, "%s", status_name(status));
	else
		table_add(table, column + 2, "%s",
			  row->syndrome || row->recv_status ? "sent again" : "unaffected");
	if (row->recv_status == IBV_WC_SUCCESS)
		return;
	table_add(table, column + 3, "%s", status_name(row->recv_status));
	table_add(table, column + 4, "%s", event_name(row->event));
}

static bool same(const struct sim_consequence *a, const struct sim_consequence *b)
{
	return a->syndrome == b->syndrome && a->recv_status == b->recv_status &&
	       a->event == b->event;
}

static void profile_verdicts(FILE *out, struct table *table)
{
	static const unsigned int widest[] = {0, 0, 18, 0, 0, 0};
	const struct sim_profile *profile;

	fputs("\n"
	      "Profiles with other consequences:\n"
	      "\n",
	      out);
	table_begin(table, COUNT_OF(verdict_headings), verdict_headings, widest);
	for (unsigned int i = 0; (profile = sim_profile_at(i)); i++) {
		for (unsigned int verdict = 0; verdict < SIM_VERDICTS; verdict++) {
			struct sim_consequence row = sim_rxe_consequence(verdict, profile->quirks);

			if (same(&row, &sim_consequences[verdict]))
				continue;
			table_row(table);
			table_add(table, 0, "%s", profile->name);
			verdict_row(table, 1, &row);
		}
	}
	table_print(table, out);
}

static void verdict_list(FILE *out, bool on_uc)
{
	for (unsigned int i = SIM_DUPLICATE; i < SIM_VERDICTS; i++)
		if (!on_uc || sim_consequences[i].fatal_on_uc)
			fprintf(out, "- %s: %s\n", sim_consequences[i].name,
				sim_consequences[i].about);
}

static void verdict_table(FILE *out, struct table *table)
{
	static const unsigned int widest[] = {0, 18, 0, 0, 0};

	table_begin(table, COUNT_OF(verdict_headings) - 1, verdict_headings + 1, widest);
	for (unsigned int i = SIM_DUPLICATE; i < SIM_VERDICTS; i++) {
		table_row(table);
		verdict_row(table, 0, &sim_consequences[i]);
	}
	table_print(table, out);
}

static void verdicts(FILE *out, struct table *table)
{
	fputs("\n"
	      "## Requests that are refused\n"
	      "\n"
	      "A responder refuses a request for one of these reasons:\n"
	      "\n",
	      out);
	verdict_list(out, false);
	fputs("\n"
	      "The consequences on RC and XRC: the NAK that the responder sends; the status of\n"
	      "the send at the requester; and at the responder the status of the receive WR, if\n"
	      "the message has taken one, or else the asynchronous event. If there is a status,\n"
	      "both QPs go to ERR.\n"
	      "\n",
	      out);
	verdict_table(out, table);
	fputs("\n"
	      "A duplicate is not executed again: the responder acknowledges it again, reads\n"
	      "again for a READ, and answers an atomic with its first result. The responder\n"
	      "sends one NAK for a gap in the PSNs, and is silent until the gap is filled. After\n"
	      "an RNR NAK the requester waits for the time in the NAK and sends again. A bad\n"
	      "invalidation draws no answer: the requester sends it again until its retries end.\n"
	      "\n"
	      "On UC the responder sends no NAK. It drops and counts the message. Only these\n"
	      "reasons complete the receive WR with its status and move the responder to ERR:\n"
	      "\n",
	      out);
	verdict_list(out, true);
	profile_verdicts(out, table);
}

static const char *const causes[] = {
	[SIM_CAUSE_KEY] = "the lkey of an SGE is of no region",
	[SIM_CAUSE_PD] = "the lkey of an SGE is of another PD",
	[SIM_CAUSE_RANGE] = "an SGE exceeds its region",
	[SIM_CAUSE_RIGHTS] = "the region of an SGE lacks local write",
	[SIM_CAUSE_FIRST_FLUSH] = "the oldest WR of a queue when the program moves the QP to ERR",
};

/* The sources are long, so the columns do not line up. */
static void vendor_codes(FILE *out)
{
	const struct sim_profile *profile;

	fputs("\n"
	      "## Vendor codes\n"
	      "\n"
	      "The `vendor_err` of a completion in error, by profile. A row with a reason goes\n"
	      "before the row of its status without one. 0 stands where a device sets none, or\n"
	      "where no source was found. The profile spec sets the number of the reason that\n"
	      "the QP's own side has found: see [errors.md](errors.md).\n"
	      "\n"
	      "| status | reason |",
	      out);
	for (unsigned int i = 0; (profile = sim_profile_at(i)); i++)
		fprintf(out, " %s |", profile->name);
	fputs(" source |\n| --- | --- |", out);
	for (unsigned int i = 0; sim_profile_at(i); i++)
		fputs(" --- |", out);
	fputs(" --- |\n", out);
	for (const struct sim_vendor_err *row = sim_vendor_errs; row->source; row++) {
		fprintf(out, "| %s | %s |", status_name(row->status),
			row->cause == SIM_CAUSE_ANY ? "" : causes[row->cause]);
		for (unsigned int i = 0; (profile = sim_profile_at(i)); i++)
			if (profile->codes == SIM_CODES_SPEC)
				fputs(" its reason |", out);
			else
				fprintf(out, row->codes[profile->codes] ? " 0x%02x |" : " %u |",
					row->codes[profile->codes]);
		fprintf(out, " %s |\n", row->source);
	}
}

static void add_time(struct table *table, unsigned int column, uint64_t time_ns)
{
	if (time_ns >= UINT64_C(1000000000))
		table_add(table, column, "%.6g s", (double)time_ns / 1e9);
	else if (time_ns >= 1000000)
		table_add(table, column, "%.6g ms", (double)time_ns / 1e6);
	else
		table_add(table, column, "%.6g us", (double)time_ns / 1e3);
}

static void timers(FILE *out, struct table *table)
{
	static const char *const headings[] = {"code", "min_rnr_timer", "timeout",
					       "code", "min_rnr_timer", "timeout"};
	static const unsigned int widest[TABLE_COLUMNS_MAX] = {0};

	fputs("\n"
	      "## Timers\n"
	      "\n"
	      "`min_rnr_timer` of a responder is how long the requester waits after an RNR NAK.\n"
	      "`timeout` is how long a requester waits for an ACK before it sends again.\n"
	      "`retry_cnt` 7 means seven retries; `rnr_retry` 7 means retries without end.\n"
	      "\n",
	      out);
	table_begin(table, COUNT_OF(headings), headings, widest);
	for (unsigned int row = 0; row < 16; row++) {
		table_row(table);
		for (unsigned int half = 0; half < 2; half++) {
			unsigned int code = row + 16 * half;

			table_add(table, 3 * half, "%u", code);
			add_time(table, 3 * half + 1, sim_rnr_timer_ns(code));
			if (sim_ack_timeout_ns(code))
				add_time(table, 3 * half + 2, sim_ack_timeout_ns(code));
			else
				table_add(table, 3 * half + 2, "never");
		}
	}
	table_print(table, out);
}

static const struct {
	const char *name;
	size_t offset;
} limit_fields[] = {
	{"max_ah", offsetof(struct ibv_device_attr, max_ah)},
	{"max_cq", offsetof(struct ibv_device_attr, max_cq)},
	{"max_cqe", offsetof(struct ibv_device_attr, max_cqe)},
	{"max_mcast_grp", offsetof(struct ibv_device_attr, max_mcast_grp)},
	{"max_mcast_qp_attach", offsetof(struct ibv_device_attr, max_mcast_qp_attach)},
	{"max_mr", offsetof(struct ibv_device_attr, max_mr)},
	{"max_mw", offsetof(struct ibv_device_attr, max_mw)},
	{"max_pd", offsetof(struct ibv_device_attr, max_pd)},
	{"max_qp", offsetof(struct ibv_device_attr, max_qp)},
	{"max_qp_init_rd_atom", offsetof(struct ibv_device_attr, max_qp_init_rd_atom)},
	{"max_qp_rd_atom", offsetof(struct ibv_device_attr, max_qp_rd_atom)},
	{"max_qp_wr", offsetof(struct ibv_device_attr, max_qp_wr)},
	{"max_res_rd_atom", offsetof(struct ibv_device_attr, max_res_rd_atom)},
	{"max_sge", offsetof(struct ibv_device_attr, max_sge)},
	{"max_sge_rd", offsetof(struct ibv_device_attr, max_sge_rd)},
	{"max_srq", offsetof(struct ibv_device_attr, max_srq)},
	{"max_srq_sge", offsetof(struct ibv_device_attr, max_srq_sge)},
	{"max_srq_wr", offsetof(struct ibv_device_attr, max_srq_wr)},
	{"max_total_mcast_qp_attach", offsetof(struct ibv_device_attr, max_total_mcast_qp_attach)},
};

/* Begins a table with a column for each profile, and returns the number of columns. */
static unsigned int profile_columns(struct table *table, const char *first)
{
	static const unsigned int widest[TABLE_COLUMNS_MAX] = {0};
	const char *headings[TABLE_COLUMNS_MAX] = {first};
	const struct sim_profile *profile;
	unsigned int count = 1;

	while (count < TABLE_COLUMNS_MAX && (profile = sim_profile_at(count - 1)))
		headings[count++] = profile->name;
	table_begin(table, count, headings, widest);
	return count;
}

static void limit_rows(struct table *table, unsigned int columns)
{
	for (unsigned int i = 0; i < COUNT_OF(limit_fields); i++) {
		table_row(table);
		table_add(table, 0, "%s", limit_fields[i].name);
		for (unsigned int c = 1; c < columns; c++) {
			const char *limits = (const char *)&sim_profile_at(c - 1)->limits;
			int value;

			memcpy(&value, limits + limit_fields[i].offset, sizeof(value));
			table_add(table, c, "%d", value);
		}
	}
}

static void add_size(struct table *table, unsigned int column, uint64_t bytes)
{
	if (bytes == UINT64_MAX)
		table_add(table, column, "2^64 - 1");
	else
		table_add(table, column, "%" PRIu64, bytes);
}

static void wide_limit_rows(struct table *table, unsigned int columns)
{
	table_row(table);
	table_add(table, 0, "ATOMIC WRITE");
	for (unsigned int c = 1; c < columns; c++)
		table_add(table, c, "%s", sim_profile_at(c - 1)->atomic_write ? "yes" : "no");
	table_row(table);
	table_add(table, 0, "max_inline_data");
	for (unsigned int c = 1; c < columns; c++)
		table_add(table, c, "%" PRIu32, sim_profile_at(c - 1)->max_inline_bytes);
	table_row(table);
	table_add(table, 0, "max_mr_size");
	for (unsigned int c = 1; c < columns; c++)
		add_size(table, c, sim_profile_at(c - 1)->limits.max_mr_size);
	table_row(table);
	table_add(table, 0, "max_msg_sz");
	for (unsigned int c = 1; c < columns; c++)
		table_add(table, c, "%" PRIu32, sim_profile_at(c - 1)->max_message_bytes);
	table_row(table);
	table_add(table, 0, "page_size_cap");
	for (unsigned int c = 1; c < columns; c++)
		table_add(table, c, "0x%" PRIx64, sim_profile_at(c - 1)->limits.page_size_cap);
}

static void limits(FILE *out, struct table *table)
{
	const struct sim_profile *profile;
	unsigned int columns;

	fputs("\n"
	      "## Limits\n"
	      "\n"
	      "A profile is a kind of device:\n"
	      "\n",
	      out);
	for (unsigned int i = 0; (profile = sim_profile_at(i)); i++)
		fprintf(out, "- `%s`: %s\n", profile->name, profile->about);
	fputs("\n"
	      "A call that exceeds a limit fails with EINVAL, or with ENOMEM if the limit is a\n"
	      "number of objects.\n"
	      "\n",
	      out);
	columns = profile_columns(table, "limit");
	limit_rows(table, columns);
	wide_limit_rows(table, columns);
	table_print(table, out);
	fputs("\n"
	      "The capability flags, `IBV_DEVICE_*`:\n"
	      "\n",
	      out);
	profile_columns(table, "flag");
	for (const struct bit_name *row = bits_device_cap; row->name; row++) {
		bool any = false;

		for (unsigned int i = 0; (profile = sim_profile_at(i)); i++)
			any |= !!(profile->limits.device_cap_flags & row->bit);
		if (!any)
			continue;
		table_row(table);
		table_add(table, 0, "%s", row->name + strlen("IBV_DEVICE_"));
		for (unsigned int i = 0; (profile = sim_profile_at(i)); i++)
			if (profile->limits.device_cap_flags & row->bit)
				table_add(table, i + 1, "yes");
	}
	table_print(table, out);
}

static int by_name(const void *a, const void *b)
{
	const struct sim_quirk_info *left = a, *right = b;

	return strcmp(left->name, right->name);
}

/* The texts are long, so the columns do not line up. */
static void quirk_row(FILE *out, const struct sim_quirk_info *info)
{
	const struct sim_profile *profile;
	const char *between = "";

	fprintf(out, "| `%s` | %s | ", info->name, info->group == SIM_QUIRK_BUG ? "bug" : "policy");
	for (unsigned int i = 0; (profile = sim_profile_at(i)); i++) {
		if (!*((const bool *)((const char *)profile->quirks + info->offset)))
			continue;
		fprintf(out, "%s%s", between, profile->name);
		between = ", ";
	}
	fprintf(out, " | %s | %s |\n", info->about, info->right);
}

static void quirks(FILE *out)
{
	struct sim_quirk_info rows[sizeof(struct sim_quirks) / sizeof(bool)];

	fputs("\n"
	      "## Quirks\n"
	      "\n"
	      "A quirk is a behaviour in which devices differ. The profile `spec` has no quirk: "
	      "it\n"
	      "does what the specification says. Adapters may differ in a policy; a bug is what\n"
	      "only SoftRoCE (rxe) does. A quirk without a profile is off until a program or\n"
	      "project.yml(5) turns it on. [divergences.md](divergences.md) names the tests that\n"
	      "fail because of a quirk.\n"
	      "\n"
	      "| quirk | group | profiles | what the device does | who is right |\n"
	      "| --- | --- | --- | --- | --- |\n",
	      out);
	memcpy(rows, sim_quirk_info, sizeof(rows));
	qsort(rows, COUNT_OF(rows), sizeof(rows[0]), by_name);
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		quirk_row(out, &rows[i]);
}

static char *make(void)
{
	static struct table table;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	intro(out);
	transitions(out, &table);
	work_requests(out, &table);
	packets(out, &table);
	verdicts(out, &table);
	vendor_codes(out);
	timers(out, &table);
	limits(out, &table);
	quirks(out);
	return fclose(out) ? NULL : text;
}

int main(int argc, char **argv)
{
	return page_print(argc, argv, make());
}
