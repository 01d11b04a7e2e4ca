/* SPDX-License-Identifier: MIT */
/* Expected packets. */
#include "src/expect/clock.h"
#include "src/expect/record.h"
#include "src/expect/sequence.h"
#include "src/expect/words.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <verbena/packet.h>
#include <verbena/sim.h>

#define SHOWN_MAX 40 /* packets of a message */

void vb_expect_mark(void)
{
	record_clear();
}

/* --- the message --- */

/* Adds a caret under a column of the line above. */
static void say_caret(int indent, int column)
{
	expect_say("\n%*s^", indent + column, "");
}

static void say_wrong_pattern(const struct sequence *sequence)
{
	expect_say("the pattern of packets is wrong: %s\n  ", sequence->wrong);
	expect_say("%s", sequence->text);
	say_caret(2, sequence->wrong_at);
}

static void say_packet(size_t number, const struct record *record)
{
	const struct vb_packet *packet = &record->packet;
	char name[64], syndrome[32];

	expect_say("\n  %3zu  %12.3f us  %s  %s", number, (double)record->time_ns / 1000,
		   record->device, sequence_opcode(packet, name, sizeof(name)));
	expect_say(" psn=%" PRIu32 " qp=0x%" PRIx32, packet->psn, packet->dest_qpn);
	if (packet->payload_bytes)
		expect_say(" bytes=%" PRIu32, packet->payload_bytes);
	if (packet->has & VB_PACKET_HAS_AETH && (packet->syndrome & 0x60))
		expect_say(" (%s)", vb_syndrome_text(packet->syndrome, syndrome, sizeof(syndrome)));
	if (packet->lost)
		expect_say(" (lost)");
}

/* Adds the packets around the one that does not match the pattern. */
static void say_packets(const struct record *packets, size_t count, size_t part)
{
	const size_t first = part > SHOWN_MAX / 2 ? part - SHOWN_MAX / 2 : 0;
	const size_t end = first + SHOWN_MAX < count ? first + SHOWN_MAX : count;

	if (first)
		expect_say("\n  ... %zu earlier packets", first);
	for (size_t i = first; i < end; i++) {
		say_packet(i + 1, &packets[i]);
		if (i == part)
			expect_say("   <-- here");
	}
	if (end < count)
		expect_say("\n  ... %zu later packets", count - end);
}

static void say_difference(const struct sequence *sequence, const struct sequence_match *match,
			   const struct record *packets, size_t count)
{
	char name[64];

	expect_say("\n  expected: %s", sequence->text);
	say_caret(12, match->at);
	expect_say("\n  came:     ");
	int column = 0, part = 0;

	for (size_t i = 0; i < count && column < 160; i++) {
		sequence_opcode(&packets[i].packet, name, sizeof(name));
		if (i == match->packets)
			part = column;
		column += (int)strlen(name) + 1;
		expect_say("%s ", name);
	}
	if (match->packets >= count)
		part = column;
	say_caret(12, part);
	say_packets(packets, count, match->packets);
}

/* --- waiting --- */

/* Runs the present instant of the world. */
static void settle(struct vb_sim *sim)
{
	if (vb_sim_clock_of(sim) == VB_SIM_CLOCK_VIRTUAL)
		vb_sim_run(sim, 0);
}

/* Lets time pass up to the next event, but not beyond until_ns. Returns how the wait has ended. */
static enum expect_end pass(struct vb_sim *sim, uint64_t until_ns)
{
	const bool real = vb_sim_clock_of(sim) == VB_SIM_CLOCK_REAL;
	const uint64_t now_ns = real ? expect_real_ns() : vb_sim_now_ns(sim);
	uint64_t next_ns;

	if (now_ns >= until_ns)
		return EXPECT_TIME_UP;
	if (real) {
		expect_rest();
		return EXPECT_CAME;
	}
	next_ns = vb_sim_next_ns(sim);
	if (next_ns == VB_SIM_NEVER)
		return EXPECT_NOTHING_CAN_COME;
	vb_sim_run(sim, (next_ns < until_ns ? next_ns : until_ns) - now_ns);
	return EXPECT_CAME;
}

static uint64_t end_of_wait(struct vb_sim *sim)
{
	const uint64_t now_ns =
		vb_sim_clock_of(sim) == VB_SIM_CLOCK_REAL ? expect_real_ns() : vb_sim_now_ns(sim);

	return now_ns + expect_timeout_ns();
}

/* Returns EXPECT_CAME if the packets are those of the pattern, or cannot become so. */
static enum expect_end wait_for(struct vb_sim *sim, const struct sequence *sequence,
				struct sequence_match *match)
{
	const uint64_t until_ns = end_of_wait(sim);
	enum expect_end end = EXPECT_CAME;
	const struct record *packets;
	size_t count, lost, compared = SIZE_MAX;

	settle(sim);
	while (end == EXPECT_CAME) {
		packets = record_packets(&count, &lost);
		if (count != compared)
			*match = sequence_compare(sequence, packets, count);
		compared = count;
		if (match->whole || !match->may_follow)
			return EXPECT_CAME;
		end = pass(sim, until_ns);
	}
	return end;
}

/* context: of the world that the check waits on; NULL: the default world. */
static bool check(struct expect_place place, struct ibv_context *context,
		  const struct sequence *sequence)
{
	struct sequence_match match = {.at = 0};
	enum expect_end end = wait_for(context ? vb_sim_of(context) : NULL, sequence, &match);
	const struct record *packets;
	size_t count, lost;

	packets = record_packets(&count, &lost);
	if (match.whole) {
		record_drop(match.packets);
		return true;
	}
	expect_begin_message();
	if (lost)
		expect_say("%zu packets could not be kept for want of memory; ", lost);
	if (match.packets < count && match.at == (int)strlen(sequence->text))
		expect_say("a packet came that the pattern does not have");
	else if (match.packets < count)
		expect_say("another packet came than the pattern has");
	else
		expect_say("a packet of the pattern did not come");
	if (end != EXPECT_CAME)
		expect_say_nothing(end, expect_timeout_ns(), context);
	say_difference(sequence, &match, packets, count);
	record_clear();
	return expect_fail(place);
}

bool vb_expect_packets_at(const char *file, int line, struct ibv_context *context,
			  const char *pattern, ...)
{
	const struct expect_place place = {file, line};
	char text[EXPECT_PATTERN_BYTES];
	struct sequence sequence;
	va_list arguments;
	bool written;

	va_start(arguments, pattern);
	written = expect_write(place, text, pattern, arguments);
	va_end(arguments);
	if (!written)
		return false;
	if (!record_is_on())
		return expect_fail_with(place,
					"no packets are watched; call vb_expect_begin() before "
					"the verbs that send them");
	if (context && !vb_sim_of(context))
		return expect_fail_with(place,
					"the context is of no simulated device, whose packets "
					"nobody sees");
	if (sequence_read(&sequence, text))
		return check(place, context, &sequence);
	expect_begin_message();
	say_wrong_pattern(&sequence);
	return expect_fail(place);
}
