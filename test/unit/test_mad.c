/* SPDX-License-Identifier: MIT */
/* The fields of management datagrams: each one keeps its place, and leaves the others alone. */
#include "sim/wire/mad.h"
#include "unity.h"

#include <string.h>

void setUp(void)
{
}

void tearDown(void)
{
}

static uint64_t widest(unsigned int bits)
{
	return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static void mark(uint8_t *mad, unsigned int field)
{
	const struct sim_cm_field_info *info = &sim_cm_field_info[field];

	if (info->bits)
		sim_mad_set(mad, (enum sim_cm_field)field, UINT64_MAX);
	else
		memset(mad + info->byte, 0xff, info->bytes);
}

/* No two fields of a message share a bit, and none lies behind the message. */
void test_fields_do_not_overlap(void)
{
	for (unsigned int message = 0; message < SIM_CM_MESSAGES; message++) {
		uint8_t all[SIM_MAD_BYTES] = {0};

		for (unsigned int i = 0; i < SIM_CM_FIELDS; i++) {
			const struct sim_cm_field_info *info = &sim_cm_field_info[i];
			uint8_t one[SIM_MAD_BYTES] = {0};
			unsigned int bits = 0;

			if (info->message != message && info->message != SIM_CM_NONE)
				continue;
			TEST_ASSERT_TRUE(info->byte + info->bytes <= SIM_MAD_BYTES);
			mark(one, i);
			for (unsigned int at = 0; at < SIM_MAD_BYTES; at++) {
				TEST_ASSERT_EQUAL_HEX(0, all[at] & one[at]);
				all[at] |= one[at];
				bits += (unsigned int)__builtin_popcount(one[at]);
			}
			TEST_ASSERT_EQUAL_UINT(info->bits ? info->bits : 8u * info->bytes, bits);
		}
	}
}

void test_a_field_is_read_as_it_was_written(void)
{
	for (unsigned int i = 0; i < SIM_CM_FIELDS; i++) {
		const enum sim_cm_field field = (enum sim_cm_field)i;
		const uint64_t most = widest(sim_cm_field_info[i].bits);
		uint8_t mad[SIM_MAD_BYTES], other[SIM_MAD_BYTES];

		if (!sim_cm_field_info[i].bits)
			continue;
		memset(mad, 0xff, sizeof(mad));
		sim_mad_set(mad, field, most & UINT64_C(0xa5a5a5a5a5a5a5a5));
		TEST_ASSERT_EQUAL_HEX64(most & UINT64_C(0xa5a5a5a5a5a5a5a5),
					sim_mad_get(mad, field));
		TEST_ASSERT_TRUE(sim_mad_fits(field, most));
		TEST_ASSERT_TRUE(most == UINT64_MAX || !sim_mad_fits(field, most + 1));
		/* The other bits stay. */
		memset(other, 0xff, sizeof(other));
		sim_mad_set(mad, field, most);
		TEST_ASSERT_EQUAL_MEMORY(other, mad, sizeof(mad));
	}
}

/* Places by hand, from Linux include/rdma/ibta_vol1_c12.h; the header has 24 bytes. */
void test_places(void)
{
	uint8_t mad[SIM_MAD_BYTES];

	sim_mad_begin(mad, SIM_CM_REQ, UINT64_C(0x1122334455667788));
	TEST_ASSERT_EQUAL_MEMORY("\x01\x07\x02\x03\0\0\0\0\x11\x22\x33\x44\x55\x66\x77\x88\0\x10",
				 mad, 18);
	TEST_ASSERT_EQUAL_INT(SIM_CM_REQ, sim_mad_message(mad));
	sim_mad_set(mad, SIM_CM_REQ_REMOTE_RESPONSE_TIMEOUT, 21);
	sim_mad_set(mad, SIM_CM_REQ_TRANSPORT, 2);
	sim_mad_set(mad, SIM_CM_REQ_FLOW_CONTROL, 1);
	TEST_ASSERT_EQUAL_HEX(21 << 3 | 2 << 1 | 1, mad[24 + 43]);
	sim_mad_set(mad, SIM_CM_REQ_FLOW_LABEL, 0x54321);
	sim_mad_set(mad, SIM_CM_REQ_PACKET_RATE, 0x2a);
	TEST_ASSERT_EQUAL_MEMORY("\x54\x32\x10\x2a", mad + 24 + 88, 4);
	sim_mad_set(mad, SIM_CM_REQ_VENDOR_ID, 0xabcdef);
	TEST_ASSERT_EQUAL_MEMORY("\0\xab\xcd\xef", mad + 24 + 4, 4);
	sim_mad_put(mad, SIM_CM_REQ_PRIVATE_DATA, "x", 1);
	TEST_ASSERT_EQUAL_HEX('x', mad[24 + 140]);
	sim_mad_begin(mad, SIM_CM_REP, 1);
	sim_mad_set(mad, SIM_CM_REP_TARGET_ACK_DELAY, 31);
	sim_mad_set(mad, SIM_CM_REP_FAILOVER_ACCEPTED, 1);
	TEST_ASSERT_EQUAL_HEX(31 << 3 | 1 << 1, mad[24 + 26]);
	sim_mad_set(mad, SIM_CM_REP_RNR_RETRY_COUNT, 5);
	sim_mad_set(mad, SIM_CM_REP_SRQ, 1);
	TEST_ASSERT_EQUAL_HEX(5 << 5 | 1 << 4, mad[24 + 27]);
}

/* Messages that name two communications have the IDs at the places of the REP, which the connection manager
 * relies on. */
void test_ids_are_at_the_same_places(void)
{
	for (unsigned int i = 0; i < SIM_CM_FIELDS; i++) {
		const struct sim_cm_field_info *info = &sim_cm_field_info[i];

		if (strcmp(info->name, "local_comm_id") == 0)
			TEST_ASSERT_EQUAL_UINT(sim_cm_field_info[SIM_CM_REP_LOCAL_ID].byte,
					       info->byte);
		if (strcmp(info->name, "remote_comm_id") == 0)
			TEST_ASSERT_EQUAL_UINT(sim_cm_field_info[SIM_CM_REP_REMOTE_ID].byte,
					       info->byte);
	}
}

void test_attribute_ids(void)
{
	uint8_t mad[SIM_MAD_BYTES];

	for (unsigned int i = 0; i < SIM_CM_MESSAGES; i++) {
		sim_mad_begin(mad, (enum sim_cm_message)i, 0);
		TEST_ASSERT_EQUAL_INT(i, sim_mad_message(mad));
	}
	sim_mad_set(mad, SIM_CM_NONE_ATTRIBUTE_ID, 0x1b);
	TEST_ASSERT_EQUAL_INT(SIM_CM_NONE, sim_mad_message(mad));
}
