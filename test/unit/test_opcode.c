/* SPDX-License-Identifier: MIT */
/*
 * The expected table: values and names of the operations from Linux include/rdma/ib_pack.h, the
 * headers from Wireshark epan/dissectors/packet-infiniband.c and Linux
 * drivers/infiniband/sw/rxe/rxe_opcode.c. Each row has an operation: the transports that have it,
 * its kind and position, and its headers with their bytes summed by hand.
 */
#include "sim/wire/opcode.h"
#include "unity.h"

#include <stdio.h>

enum { R = 1, U = 2, D = 4, X = 8, ALL = R | U | D | X }; /* RC, UC, RD, XRC */

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the fields are in reading order */
struct expected {
	uint8_t operation;
	uint8_t transports;
	uint32_t kind;
	char position;	     /* First, Middle, Last, Only */
	const char *headers; /* reth, atomiceth, aeth, atomicack, imm, ieth */
	uint8_t bytes;	     /* of the BTH and these headers, on RC */
	bool receive, completes;
};

static const struct expected connected[] = {
	{0x00, ALL, SIM_OP_SEND, 'F', "", 12, true, false},
	{0x01, ALL, SIM_OP_SEND, 'M', "", 12, false, false},
	{0x02, ALL, SIM_OP_SEND, 'L', "", 12, false, true},
	{0x03, ALL, SIM_OP_SEND, 'L', "i", 16, false, true},
	{0x04, ALL, SIM_OP_SEND, 'O', "", 12, true, true},
	{0x05, ALL, SIM_OP_SEND, 'O', "i", 16, true, true},
	{0x06, ALL, SIM_OP_WRITE, 'F', "r", 28, false, false},
	{0x07, ALL, SIM_OP_WRITE, 'M', "", 12, false, false},
	{0x08, ALL, SIM_OP_WRITE, 'L', "", 12, false, false},
	{0x09, ALL, SIM_OP_WRITE, 'L', "i", 16, true, true},
	{0x0a, ALL, SIM_OP_WRITE, 'O', "r", 28, false, false},
	{0x0b, ALL, SIM_OP_WRITE, 'O', "ri", 32, true, true},
	{0x0c, R | D | X, SIM_OP_READ, 'O', "r", 28, false, false},
	{0x0d, R | D | X, SIM_OP_READ_RESPONSE, 'F', "e", 16, false, false},
	{0x0e, R | D | X, SIM_OP_READ_RESPONSE, 'M', "", 12, false, false},
	{0x0f, R | D | X, SIM_OP_READ_RESPONSE, 'L', "e", 16, false, false},
	{0x10, R | D | X, SIM_OP_READ_RESPONSE, 'O', "e", 16, false, false},
	{0x11, R | D | X, SIM_OP_ACK, 'O', "e", 16, false, false},
	{0x12, R | D | X, SIM_OP_ATOMIC_ACK, 'O', "ek", 24, false, false},
	{0x13, R | D | X, SIM_OP_ATOMIC, 'O', "a", 40, false, false},
	{0x14, R | D | X, SIM_OP_ATOMIC | SIM_OP_ADD, 'O', "a", 40, false, false},
	{0x15, D, SIM_OP_RESYNC, 'O', "", 12, false, false},
	{0x16, R | X, SIM_OP_SEND, 'L', "v", 16, false, true},
	{0x17, R | X, SIM_OP_SEND, 'O', "v", 16, true, true},
	{0x1d, R | X, SIM_OP_ATOMIC | SIM_OP_STORE, 'O', "r", 28, false, false},
};

static const struct {
	char letter;
	uint32_t flag;
} letters[] = {
	{'F', SIM_OP_START}, {'M', SIM_OP_MIDDLE},
	{'L', SIM_OP_END},   {'O', SIM_OP_START | SIM_OP_END},
	{'r', SIM_OP_RETH},  {'a', SIM_OP_ATOMICETH},
	{'e', SIM_OP_AETH},  {'k', SIM_OP_ATOMICACKETH},
	{'i', SIM_OP_IMMDT}, {'v', SIM_OP_IETH},
};

static uint32_t flag_of(char letter)
{
	for (unsigned int i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
		if (letters[i].letter == letter)
			return letters[i].flag;
	}
	return 0;
}

static bool is_response(uint32_t kind)
{
	return kind == SIM_OP_READ_RESPONSE || kind == SIM_OP_ATOMIC_ACK || kind == SIM_OP_ACK;
}

static bool carries(uint32_t kind)
{
	return kind == SIM_OP_SEND || kind == SIM_OP_WRITE || kind == SIM_OP_READ_RESPONSE ||
	       kind == (SIM_OP_ATOMIC | SIM_OP_STORE);
}

/* The bytes that a transport adds: RDETH and, for requests, DETH on RD; XRCETH on XRC. */
static void add_transport(uint8_t transport, bool response, uint32_t *flags, unsigned int *bytes)
{
	if (transport == 0x40) {
		*flags |= SIM_OP_RDETH | (response ? 0 : SIM_OP_DETH);
		*bytes += response ? 4 : 12;
	} else if (transport == 0xa0 && !response) {
		*flags |= SIM_OP_XRCETH;
		*bytes += 4;
	}
}

static struct sim_opcode_info expected_row(uint8_t transport, const struct expected *row)
{
	const bool response = is_response(row->kind);
	uint32_t flags = row->kind | flag_of(row->position) | SIM_OP_VALID;
	unsigned int bytes = row->bytes;

	for (const char *letter = row->headers; *letter; letter++)
		flags |= flag_of(*letter);
	flags |= response ? 0 : SIM_OP_REQUEST;
	flags |= carries(row->kind) ? SIM_OP_PAYLOAD : 0;
	flags |= row->receive ? SIM_OP_RECV : 0;
	flags |= row->completes ? SIM_OP_COMPLETES : 0;
	add_transport(transport, response, &flags, &bytes);
	return (struct sim_opcode_info){"", flags, (uint8_t)bytes};
}

/* Returns the row of an opcode; its flags are 0 for a reserved opcode. */
static struct sim_opcode_info expected_opcode(unsigned int opcode)
{
	static const struct {
		uint8_t base, bit;
	} transports[] = {{0x00, R}, {0x20, U}, {0x40, D}, {0xa0, X}};
	static const uint32_t ud = SIM_OP_SEND | SIM_OP_START | SIM_OP_END | SIM_OP_REQUEST |
				   SIM_OP_PAYLOAD | SIM_OP_RECV | SIM_OP_COMPLETES | SIM_OP_DETH |
				   SIM_OP_VALID;

	if (opcode == 0x64)
		return (struct sim_opcode_info){"", ud, 20};
	if (opcode == 0x65)
		return (struct sim_opcode_info){"", ud | SIM_OP_IMMDT, 24};
	if (opcode == 0x81)
		return (struct sim_opcode_info){
			"", SIM_OP_CNP | SIM_OP_START | SIM_OP_END | SIM_OP_PAYLOAD | SIM_OP_VALID,
			12};
	for (unsigned int t = 0; t < sizeof(transports) / sizeof(transports[0]); t++) {
		for (unsigned int i = 0; i < sizeof(connected) / sizeof(connected[0]); i++) {
			if ((transports[t].base | connected[i].operation) == (int)opcode &&
			    connected[i].transports & transports[t].bit)
				return expected_row(transports[t].base, &connected[i]);
		}
	}
	return (struct sim_opcode_info){NULL, 0, 0};
}

void setUp(void)
{
}

void tearDown(void)
{
}

void test_opcode_all_256_rows(void)
{
	unsigned int valid = 0;
	char where[32];

	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		const struct sim_opcode_info want = expected_opcode(opcode);
		const struct sim_opcode_info *row = &sim_opcodes[opcode];

		snprintf(where, sizeof(where), "opcode 0x%02x", opcode);
		TEST_ASSERT_EQUAL_HEX32_MESSAGE(want.flags, row->flags, where);
		TEST_ASSERT_EQUAL_UINT_MESSAGE(want.header_bytes, row->header_bytes, where);
		TEST_ASSERT_EQUAL_INT_MESSAGE(want.name != NULL, row->name != NULL, where);
		valid += row->name != NULL;
	}
	/* RC 24, UC 12, RD 22, UD 2, CNP 1, XRC 24 */
	TEST_ASSERT_EQUAL_UINT(85, valid);
}

void test_opcode_names_are_distinct(void)
{
	for (unsigned int i = 0; i < 256; i++) {
		for (unsigned int j = 0; j < i; j++) {
			if (sim_opcodes[i].name && sim_opcodes[j].name)
				TEST_ASSERT_TRUE_MESSAGE(
					strcmp(sim_opcodes[i].name, sim_opcodes[j].name) != 0,
					sim_opcodes[i].name);
		}
	}
	TEST_ASSERT_EQUAL_STRING("RC SEND_FIRST", sim_opcodes[0].name);
	TEST_ASSERT_EQUAL_STRING("XRC SEND_ONLY_WITH_INVALIDATE", sim_opcodes[0xb7].name);
}

/* Each kind at each position: middle, last, first, only (first << 1 | last). */
void test_opcode_request_by_position(void)
{
	static const struct {
		enum ibv_wr_opcode wr;
		uint8_t operations[4];
	} rows[] = {
		{IBV_WR_SEND, {0x01, 0x02, 0x00, 0x04}},
		{IBV_WR_SEND_WITH_IMM, {0x01, 0x03, 0x00, 0x05}},
		{IBV_WR_SEND_WITH_INV, {0x01, 0x16, 0x00, 0x17}},
		{IBV_WR_RDMA_WRITE, {0x07, 0x08, 0x06, 0x0a}},
		{IBV_WR_RDMA_WRITE_WITH_IMM, {0x07, 0x09, 0x06, 0x0b}},
		{IBV_WR_RDMA_READ, {0x0c, 0x0c, 0x0c, 0x0c}},
		{IBV_WR_ATOMIC_CMP_AND_SWP, {0x13, 0x13, 0x13, 0x13}},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, {0x14, 0x14, 0x14, 0x14}},
		{IBV_WR_ATOMIC_WRITE, {0x1d, 0x1d, 0x1d, 0x1d}},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (unsigned int at = 0; at < 4; at++) {
			TEST_ASSERT_EQUAL_HEX8(
				rows[i].operations[at],
				sim_opcode_request(SIM_TRANSPORT_RC, rows[i].wr, at & 2, at & 1));
			TEST_ASSERT_EQUAL_HEX8(
				0xa0 | rows[i].operations[at],
				sim_opcode_request(SIM_TRANSPORT_XRC, rows[i].wr, at & 2, at & 1));
		}
	}
	TEST_ASSERT_EQUAL_HEX8(
		0x2b, sim_opcode_request(SIM_TRANSPORT_UC, IBV_WR_RDMA_WRITE_WITH_IMM, true, true));
	TEST_ASSERT_EQUAL_HEX8(0x64, sim_opcode_request(SIM_TRANSPORT_UD, IBV_WR_SEND, true, true));
	TEST_ASSERT_EQUAL_HEX8(
		0x65, sim_opcode_request(SIM_TRANSPORT_UD, IBV_WR_SEND_WITH_IMM, true, true));
}

void test_opcode_read_response_by_position(void)
{
	TEST_ASSERT_EQUAL_HEX8(0x0d, sim_opcode_read_response(SIM_TRANSPORT_RC, true, false));
	TEST_ASSERT_EQUAL_HEX8(0x0e, sim_opcode_read_response(SIM_TRANSPORT_RC, false, false));
	TEST_ASSERT_EQUAL_HEX8(0x0f, sim_opcode_read_response(SIM_TRANSPORT_RC, false, true));
	TEST_ASSERT_EQUAL_HEX8(0x10, sim_opcode_read_response(SIM_TRANSPORT_RC, true, true));
	TEST_ASSERT_EQUAL_HEX8(0xae, sim_opcode_read_response(SIM_TRANSPORT_XRC, false, false));
}

void test_opcode_transport_of_type(void)
{
	TEST_ASSERT_EQUAL_INT(0x00, sim_transport_of(IBV_QPT_RC));
	TEST_ASSERT_EQUAL_INT(0x20, sim_transport_of(IBV_QPT_UC));
	TEST_ASSERT_EQUAL_INT(0x60, sim_transport_of(IBV_QPT_UD));
	TEST_ASSERT_EQUAL_INT(0xa0, sim_transport_of(IBV_QPT_XRC_SEND));
	TEST_ASSERT_EQUAL_INT(0xa0, sim_transport_of(IBV_QPT_XRC_RECV));
	TEST_ASSERT_EQUAL_INT(-1, sim_transport_of(IBV_QPT_RAW_PACKET));
	TEST_ASSERT_EQUAL_INT(-1, sim_transport_of(IBV_QPT_DRIVER));
}

/* The table of ibv_post_send(3), without SEND_WITH_INV on UC, which has no opcode. */
void test_opcode_wr_legality(void)
{
	static const struct {
		enum ibv_wr_opcode wr;
		const char *types; /* u UD, c UC, r RC, x XRC_SEND */
		uint32_t flags;	   /* in addition to LEGAL */
		enum ibv_wc_opcode wc;
	} rows[] = {
		{IBV_WR_SEND, "ucrx", SIM_WR_INLINE, IBV_WC_SEND},
		{IBV_WR_SEND_WITH_IMM, "ucrx", SIM_WR_INLINE, IBV_WC_SEND},
		{IBV_WR_RDMA_WRITE, "crx", SIM_WR_INLINE | SIM_WR_REMOTE, IBV_WC_RDMA_WRITE},
		{IBV_WR_RDMA_WRITE_WITH_IMM, "crx", SIM_WR_INLINE | SIM_WR_REMOTE,
		 IBV_WC_RDMA_WRITE},
		{IBV_WR_RDMA_READ, "rx", SIM_WR_RESPONSE | SIM_WR_REMOTE, IBV_WC_RDMA_READ},
		{IBV_WR_ATOMIC_CMP_AND_SWP, "rx", SIM_WR_RESPONSE | SIM_WR_REMOTE | SIM_WR_ATOMIC,
		 IBV_WC_COMP_SWAP},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, "rx", SIM_WR_RESPONSE | SIM_WR_REMOTE | SIM_WR_ATOMIC,
		 IBV_WC_FETCH_ADD},
		{IBV_WR_LOCAL_INV, "crx", SIM_WR_LOCAL, IBV_WC_LOCAL_INV},
		{IBV_WR_BIND_MW, "crx", SIM_WR_LOCAL, IBV_WC_BIND_MW},
		{IBV_WR_SEND_WITH_INV, "rx", SIM_WR_INLINE, IBV_WC_SEND},
		{IBV_WR_ATOMIC_WRITE, "rx", SIM_WR_INLINE | SIM_WR_RESPONSE | SIM_WR_REMOTE,
		 IBV_WC_ATOMIC_WRITE},
		{IBV_WR_TSO, "", 0, 0},
		{IBV_WR_DRIVER1, "", 0, 0},
		{(enum ibv_wr_opcode)255, "", 0, 0},
	};
	static const struct {
		char letter;
		enum ibv_qp_type type;
	} types[] = {{'u', IBV_QPT_UD},	      {'c', IBV_QPT_UC},       {'r', IBV_QPT_RC},
		     {'x', IBV_QPT_XRC_SEND}, {'-', IBV_QPT_XRC_RECV}, {'-', IBV_QPT_RAW_PACKET},
		     {'-', IBV_QPT_DRIVER}};
	char where[32];

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (unsigned int t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
			const struct sim_wr_info *info = sim_wr_info(types[t].type, rows[i].wr);
			const bool legal = strchr(rows[i].types, types[t].letter) != NULL;

			snprintf(where, sizeof(where), "WR %d, type %d", rows[i].wr, types[t].type);
			TEST_ASSERT_EQUAL_HEX32_MESSAGE(legal ? rows[i].flags | SIM_WR_LEGAL : 0,
							info->flags, where);
			if (legal)
				TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].wc, info->wc_opcode, where);
		}
	}
}
