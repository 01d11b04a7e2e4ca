/* SPDX-License-Identifier: MIT */
/* The lines of a script, in their order and in time. */
#include "src/script/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/cm.h>
#include <verbena/error.h>

/* If times are not exact, something may come earlier than written by this part of the tolerance: a busy machine
 * sees the packet before it late. */
#define EARLY_PART 4

/* How long a virtual clock waits for what is late, to tell how late it is. */
#define LATE_NS 10000000000

/* --- time --- */

static uint64_t earliest(const struct script_run *run, const struct script_line *line)
{
	const uint64_t at_ns = run->last_ns + line->from_ns;
	const uint64_t early_ns = run->wire->tolerance_ns / EARLY_PART;

	if (run->wire->exact)
		return at_ns;
	if (line->time == SCRIPT_NOW)
		return 0;
	return at_ns > early_ns ? at_ns - early_ns : 0;
}

static uint64_t latest(const struct script_run *run, const struct script_line *line)
{
	return run->last_ns + line->to_ns + (run->wire->exact ? 0 : run->wire->tolerance_ns);
}

/* Writes when a line may happen, after the line before it. */
static void say_when(const struct script_run *run, const struct script_line *line, char *text,
		     size_t size_bytes)
{
	char from[32], to[32], tolerance[32];
	int used;

	script_time_text(line->from_ns, from, sizeof(from));
	script_time_text(line->to_ns, to, sizeof(to));
	used = snprintf(text, size_bytes, "+%s%s%s", from, line->from_ns == line->to_ns ? "" : "..",
			line->from_ns == line->to_ns ? "" : to);
	if (!run->wire->exact)
		snprintf(text + used, size_bytes - (size_t)used, ", up to %s late",
			 script_time_text(run->wire->tolerance_ns, tolerance, sizeof(tolerance)));
}

static bool check_time(struct script_run *run, const struct script_line *line, uint64_t time_ns)
{
	const bool is_late = time_ns > latest(run, line);
	char wanted[64], got[40] = "+", text[32];

	if (!is_late && time_ns >= earliest(run, line))
		return true;
	say_when(run, line, wanted, sizeof(wanted));
	if (time_ns < run->last_ns)
		got[0] = '-';
	strcat(got, script_time_text(time_ns < run->last_ns ? run->last_ns - time_ns
							    : time_ns - run->last_ns,
				     text, sizeof(text)));
	script_row(run->failure, "time", wanted, got, true);
	return script_fail(run->failure, line, "it comes too %s", is_late ? "late" : "early");
}

/* Waits for something of a kind. Returns NULL with the failure if nothing comes in time. */
static struct script_seen *await(struct script_run *run, const struct script_line *line,
				 enum script_seen_kind kind, unsigned int queue)
{
	static const char *const nothing[] = {
		"the device sends no packet", "the work request is not completed",
		"the event does not come", "the event of the connection manager does not come"};
	const uint64_t until_ns = latest(run, line) + (run->wire->exact ? LATE_NS : 0);
	struct script_seen *seen;
	char when[64];
	bool is_over = false;

	while (!(seen = script_first(run, kind, line->qp, queue)) && !is_over) {
		script_pass(run, until_ns);
		is_over = run->wire->now(run->wire) >= until_ns &&
			  !script_first(run, kind, line->qp, queue);
	}
	if (!seen)
		seen = script_first(run, kind, line->qp, queue);
	if (!seen) {
		say_when(run, line, when, sizeof(when));
		script_row(run->failure, "time", when, "nothing came", true);
		script_fail(run->failure, line, "%s", nothing[kind]);
		return NULL;
	}
	seen->taken = true;
	return seen;
}

/* Lets the time before a call pass. What the device does meanwhile waits for its line. */
static void sleep_before(struct script_run *run, const struct script_line *line)
{
	const uint64_t at_ns = run->last_ns + line->from_ns;

	while (line->time != SCRIPT_NOW && run->wire->now(run->wire) < at_ns)
		script_pass(run, at_ns);
	run->last_ns = run->wire->now(run->wire);
}

/* --- what the device does --- */

static bool expect_packet(struct script_run *run, const struct script_line *line)
{
	const struct script_seen *seen = await(run, line, SCRIPT_SEEN_PACKET, 0);
	bool is_right;

	if (!seen)
		return false;
	is_right = line->message
			   ? script_message_compare(run, line, &run->wire->frames[seen->frame])
			   : script_packet_compare(run, line, &run->wire->frames[seen->frame]);
	if (!is_right || !check_time(run, line, seen->time_ns))
		return false;
	run->failure->row_count = 0;
	run->last_ns =
		run->wire->exact || seen->time_ns > run->last_ns ? seen->time_ns : run->last_ns;
	return true;
}

static void compare_number(struct script_run *run, const struct script_line *line,
			   enum script_field field, uint64_t got, bool *equal)
{
	const struct script_value *value = &line->values[field];
	const bool is_same = !value->given || value->any || value->number == got;
	char wanted_text[24] = "*", got_text[24];

	if (value->given && !value->any)
		snprintf(wanted_text, sizeof(wanted_text), "%" PRIu64, value->number);
	snprintf(got_text, sizeof(got_text), "%" PRIu64, got);
	script_row(run->failure, script_fields[field].name, wanted_text, got_text, !is_same);
	*equal = *equal && is_same;
}

static void compare_status(struct script_run *run, const struct script_line *line,
			   const struct ibv_wc *wc, bool *equal)
{
	const struct script_value *value = &line->values[SCRIPT_STATUS];
	const enum ibv_wc_status wanted = (enum ibv_wc_status)value->number; /* 0 is SUCCESS */
	const bool is_same = value->any || wc->status == wanted;
	const size_t prefix = strlen("IBV_WC_");

	script_row(run->failure, "status", value->any ? "*" : vb_wc_status_name(wanted) + prefix,
		   vb_wc_status_name(wc->status) + prefix, !is_same);
	*equal = *equal && is_same;
}

static void compare_opcode(struct script_run *run, const struct script_line *line,
			   const struct ibv_wc *wc, bool *equal)
{
	const struct script_value *value = &line->values[SCRIPT_WC_OPCODE];
	const enum ibv_wc_opcode wanted = (enum ibv_wc_opcode)value->number;

	if (!value->given || value->any)
		return;
	script_row(run->failure, "opcode", vb_wc_opcode_str(wanted), vb_wc_opcode_str(wc->opcode),
		   wc->opcode != wanted);
	*equal = *equal && wc->opcode == wanted;
}

static void compare_flags(struct script_run *run, const struct script_line *line,
			  const struct ibv_wc *wc, bool *equal)
{
	const struct script_value *value = &line->values[SCRIPT_FLAGS];
	const bool is_same = value->number == wc->wc_flags;
	char wanted[64], got[64];

	if (!value->given || value->any)
		return;
	script_row(run->failure, "flags",
		   script_flags_text((unsigned int)value->number, wanted, sizeof(wanted)),
		   script_flags_text(wc->wc_flags, got, sizeof(got)), !is_same);
	*equal = *equal && is_same;
}

static bool expect_completion(struct script_run *run, const struct script_line *line)
{
	const struct script_seen *seen =
		await(run, line, SCRIPT_SEEN_COMPLETION, line->word[0] == 'r');
	bool equal = true;

	if (!seen)
		return false;
	compare_number(run, line, SCRIPT_ID, seen->wc.wr_id, &equal);
	compare_status(run, line, &seen->wc, &equal);
	compare_opcode(run, line, &seen->wc, &equal);
	if ((seen->queue || line->values[SCRIPT_BYTE_LEN].given) &&
	    seen->wc.status == IBV_WC_SUCCESS)
		compare_number(run, line, SCRIPT_BYTE_LEN, seen->wc.byte_len, &equal);
	if (line->values[SCRIPT_IMM].given)
		compare_number(run, line, SCRIPT_IMM,
			       seen->wc.wc_flags & IBV_WC_WITH_IMM ? be32toh(seen->wc.imm_data)
								   : UINT64_MAX,
			       &equal);
	compare_flags(run, line, &seen->wc, &equal);
	if (line->values[SCRIPT_SL].given)
		compare_number(run, line, SCRIPT_SL, seen->wc.sl, &equal);
	if (!check_time(run, line, seen->time_ns))
		return false;
	if (!equal)
		return script_fail(run->failure, line, "the completion is another one");
	run->failure->row_count = 0;
	run->last_ns = seen->time_ns > run->last_ns ? seen->time_ns : run->last_ns;
	return true;
}

static bool expect_event(struct script_run *run, const struct script_line *line)
{
	const struct script_seen *seen = await(run, line, SCRIPT_SEEN_EVENT, 0);

	if (!seen)
		return false;
	if (seen->event != (enum ibv_event_type)line->word_value) {
		script_row(run->failure, "event", line->word,
			   vb_event_type_name(seen->event) + strlen("IBV_EVENT_"), true);
		return script_fail(run->failure, line, "the event is another one");
	}
	return check_time(run, line, seen->time_ns);
}

static bool expect_manager_event(struct script_run *run, const struct script_line *line)
{
	const struct script_seen *seen = await(run, line, SCRIPT_SEEN_MANAGER, 0);

	if (!seen)
		return false;
	if (seen->manager_event != (enum rdma_cm_event_type)line->word_value) {
		script_row(run->failure, "cm_event", line->word,
			   vb_cm_event_str(seen->manager_event) + strlen("RDMA_CM_EVENT_"), true);
		return script_fail(run->failure, line, "the event is another one");
	}
	return check_time(run, line, seen->time_ns);
}

const struct script_seen *script_await_manager(struct script_run *run, uint64_t duration_ns)
{
	const uint64_t until_ns = run->wire->now(run->wire) + duration_ns;
	struct script_seen *seen;

	while (!(seen = script_first(run, SCRIPT_SEEN_MANAGER, 0, 0)) &&
	       run->wire->now(run->wire) < until_ns)
		script_pass(run, until_ns);
	if (seen)
		seen->taken = true;
	return seen;
}

static bool expect_silence(struct script_run *run, const struct script_line *line)
{
	const uint64_t until_ns = run->last_ns + line->duration_ns;
	bool is_silent;

	do {
		is_silent = script_nothing_more(run, line);
		if (is_silent)
			script_pass(run, until_ns);
	} while (is_silent && run->wire->now(run->wire) < until_ns);
	if (!is_silent || !script_nothing_more(run, line))
		return false;
	run->last_ns = until_ns;
	return true;
}

/* --- what the peer does --- */

static bool inject(struct script_run *run, const struct script_line *line)
{
	const struct script_value *to = &line->values[SCRIPT_TO];
	uint8_t frame[VB_FRAME_BYTES_MAX];
	const size_t length_bytes =
		line->message ? script_message_make(run, line, frame)
			      : script_packet_make(run, line,
						   to->given ? &run->qps[to->number] : NULL, frame);
	const int err = length_bytes ? run->wire->inject(run->wire, frame, length_bytes) : EINVAL;

	return !err ||
	       script_fail(run->failure, line, "the packet cannot be sent: %s",
			   err == EINVAL || run->wire->exact ? vb_last_error() : strerror(err));
}

/* --- lines --- */

static bool ignore(struct script_run *run, const struct script_line *line)
{
	(void)line;
	run->ignore_completions = true;
	return true;
}

static bool nothing(struct script_run *run, const struct script_line *line)
{
	(void)run;
	(void)line;
	return true;
}

typedef bool step_fn(struct script_run *run, const struct script_line *line);

static step_fn *const steps[SCRIPT_STATEMENTS] = {
	[SCRIPT_SOURCE] = nothing,
	[SCRIPT_KNOWN] = nothing,
	[SCRIPT_ONLY] = nothing,
	[SCRIPT_IGNORE] = ignore,
	[SCRIPT_SRQ] = script_make_srq,
	[SCRIPT_QP] = script_make_qp,
	[SCRIPT_WINDOW] = script_make_window,
	[SCRIPT_BIND] = script_bind,
	[SCRIPT_ATTACH] = script_attach,
	[SCRIPT_DETACH] = script_detach,
	[SCRIPT_MODIFY] = script_modify,
	[SCRIPT_STATE] = script_check_state,
	[SCRIPT_SEND] = script_post_send,
	[SCRIPT_RECEIVE] = script_post_recv,
	[SCRIPT_STORE] = script_store,
	[SCRIPT_MEMORY] = script_check_memory,
	[SCRIPT_COMPLETION] = expect_completion,
	[SCRIPT_EVENT] = expect_event,
	[SCRIPT_LISTEN] = script_listen,
	[SCRIPT_CONNECT] = script_connect,
	[SCRIPT_ACCEPT] = script_accept,
	[SCRIPT_ESTABLISH] = script_establish,
	[SCRIPT_REJECT] = script_reject,
	[SCRIPT_DISCONNECT] = script_disconnect,
	[SCRIPT_MANAGER_EVENT] = expect_manager_event,
	[SCRIPT_SILENCE] = expect_silence,
	[SCRIPT_OUT] = expect_packet,
	[SCRIPT_IN] = inject,
};

/* Lines that look at the device wait by themselves. */
static bool waits_itself(enum script_statement statement)
{
	return statement == SCRIPT_COMPLETION || statement == SCRIPT_EVENT ||
	       statement == SCRIPT_SILENCE || statement == SCRIPT_OUT ||
	       statement == SCRIPT_MANAGER_EVENT;
}

/* Returns true for statements that look at states or memory, as they are after the present instant. */
static bool looks(enum script_statement statement)
{
	return statement == SCRIPT_STATE || statement == SCRIPT_MEMORY;
}

/* A QP or an SRQ whose line ends in "= ERRNO" does not exist. */
static bool has_object(const struct script_run *run, const struct script_line *line)
{
	const struct script_qp *owner = &run->qps[line->qp];

	return !line->has_owner || owner->qp || owner->srq;
}

static bool run_lines(struct script_run *run)
{
	const struct script_line *line = NULL;

	for (unsigned int i = 0; i < run->script->line_count; i++) {
		line = &run->script->lines[i];
		if (!has_object(run, line))
			return script_fail(run->failure, line,
					   "the line that makes '%s' has refused it, as it says",
					   run->script->qps[line->qp].name);
		if (!waits_itself(line->statement))
			sleep_before(run, line);
		if (looks(line->statement))
			script_pass(run,
				    run->last_ns + (run->wire->exact ? 0 : run->wire->settle_ns));
		if (!steps[line->statement](run, line))
			return false;
	}
	script_pass(run, run->wire->now(run->wire) + (run->wire->exact ? 0 : run->wire->settle_ns));
	return script_nothing_more(run, line);
}

bool script_run(const struct script *script, struct script_wire *wire,
		struct script_failure *failure)
{
	struct script_run run = {.script = script, .wire = wire, .failure = failure};
	bool is_right;

	run.last_ns = wire->now(wire);
	is_right = run_lines(&run);
	script_end_manager(&run);
	script_end(&run);
	return is_right;
}
