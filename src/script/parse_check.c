/* SPDX-License-Identifier: MIT */
/* What a line must have, once its word and its fields are read. */
#include "src/script/parse.h"

#include "src/base/count.h"

#include <string.h>

/* Returns the headers of an opcode: the codec knows them. */
static unsigned int headers_of(uint8_t opcode)
{
	uint8_t frame[VB_FRAME_BYTES_MAX];
	const struct vb_packet packet = {.opcode = opcode};
	const size_t length_bytes = vb_packet_encode(&packet, "", frame);
	struct vb_packet has;

	vb_packet_decode(frame, length_bytes, false, &has);
	return has.has;
}

/* The fields without a default, and the header of each. */
static const struct {
	enum script_field field;
	unsigned int has;
	uint8_t operation; /* only this one; 0: all that have the header */
} required[] = {
	{SCRIPT_PSN, UINT32_MAX, 0},
	{SCRIPT_MSN, VB_PACKET_HAS_AETH, 0},
	{SCRIPT_ADDR, VB_PACKET_HAS_RETH | VB_PACKET_HAS_ATOMIC, 0},
	{SCRIPT_DMA, VB_PACKET_HAS_RETH, 0},
	{SCRIPT_IMM, VB_PACKET_HAS_IMM, 0},
	{SCRIPT_KEY, VB_PACKET_HAS_INVALIDATE, 0},
	{SCRIPT_ADD, VB_PACKET_HAS_ATOMIC, 0x14},
	{SCRIPT_COMPARE, VB_PACKET_HAS_ATOMIC, 0x13},
	{SCRIPT_SWAP, VB_PACKET_HAS_ATOMIC, 0x13},
	{SCRIPT_ORIGINAL, VB_PACKET_HAS_ORIGINAL, 0},
	{SCRIPT_QKEY, VB_PACKET_HAS_DETH, 0},
	{SCRIPT_SRQN, VB_PACKET_HAS_XRC, 0},
};

/* The fields of headers that not all packets have. */
static const struct {
	enum script_field field;
	unsigned int has;
} of_headers[] = {
	{SCRIPT_MSN, VB_PACKET_HAS_AETH},
	{SCRIPT_SYNDROME, VB_PACKET_HAS_AETH},
	{SCRIPT_ADDR, VB_PACKET_HAS_RETH | VB_PACKET_HAS_ATOMIC},
	{SCRIPT_RKEY, VB_PACKET_HAS_RETH | VB_PACKET_HAS_ATOMIC},
	{SCRIPT_DMA, VB_PACKET_HAS_RETH},
	{SCRIPT_IMM, VB_PACKET_HAS_IMM},
	{SCRIPT_KEY, VB_PACKET_HAS_INVALIDATE},
	{SCRIPT_ADD, VB_PACKET_HAS_ATOMIC},
	{SCRIPT_COMPARE, VB_PACKET_HAS_ATOMIC},
	{SCRIPT_SWAP, VB_PACKET_HAS_ATOMIC},
	{SCRIPT_ORIGINAL, VB_PACKET_HAS_ORIGINAL},
	{SCRIPT_QKEY, VB_PACKET_HAS_DETH},
	{SCRIPT_SOURCE_QPN, VB_PACKET_HAS_DETH},
	{SCRIPT_GROUP, VB_PACKET_HAS_DETH},
	{SCRIPT_SRQN, VB_PACKET_HAS_XRC},
};

/* A field of a header that the packet does not have would be compared with nothing. */
static bool check_headers(struct parser *parser)
{
	const struct script_line *line = parser->line;

	for (size_t i = 0; i < COUNT(of_headers); i++)
		if (line->values[of_headers[i].field].given && !(line->has & of_headers[i].has))
			return FAIL("%s has no field %s", line->operation.name,
				    script_fields[of_headers[i].field].name);
	if (line->values[SCRIPT_TIMER].given && (line->operation.syndrome & 0xe0) != 0x20)
		return FAIL("%s has no field timer; only RNR_NAK has it", line->operation.name);
	return true;
}

/* A send has fields that only some types of QPs, and only some operations use. */
static bool check_send(struct parser *parser)
{
	const struct script_line *line = parser->line;
	const enum ibv_qp_type type = parser->script->qps[line->qp].type;
	const bool binds = line->word_value == IBV_WR_BIND_MW;

	if (binds && !line->values[SCRIPT_WINDOW_NAME].given)
		return FAIL("BIND_MW has a window; give window=NAME");
	if (!binds && (line->values[SCRIPT_WINDOW_NAME].given || line->values[SCRIPT_OF].given ||
		       line->values[SCRIPT_ACCESS].given))
		return FAIL("window=, of= and access= are for BIND_MW");
	if (line->values[SCRIPT_GROUP].given && type != IBV_QPT_UD)
		return FAIL("group= is for a QP of type UD");
	if (line->values[SCRIPT_SRQN].given && type != IBV_QPT_XRC_SEND)
		return FAIL("srqn= is for a QP of type XRC_SEND");
	return true;
}

static bool check_packet(struct parser *parser)
{
	struct script_line *line = parser->line;

	if (!line->message)
		line->has = headers_of(line->operation.opcode);
	if (line->rest_any && line->statement == SCRIPT_IN)
		return FAIL("'...' is for packets of the device; give each field of this one");
	if (!line->message && !check_headers(parser))
		return false;
	for (size_t i = 0; i < COUNT(required) && !line->rest_any && !line->message; i++) {
		const char *name = script_fields[required[i].field].name;

		if (!(line->has & required[i].has) || line->values[required[i].field].given ||
		    (required[i].operation &&
		     required[i].operation != (line->operation.opcode & 0x1f)))
			continue;
		return FAIL("%s has the field %s; give %s=N%s", line->operation.name, name, name,
			    line->statement == SCRIPT_IN ? ""
							 : ", or '...' at the end of the line");
	}
	return true;
}

static bool check_completion(struct parser *parser)
{
	const struct script_line *line = parser->line;
	const struct script_value *status = &line->values[SCRIPT_STATUS];
	const bool is_good = !status->given || (!status->any && status->number == IBV_WC_SUCCESS);

	if (!line->values[SCRIPT_ID].given && !line->rest_any)
		return FAIL("a completion has an id; give id=N");
	if (strcmp(line->word, "recv") == 0 && is_good && !line->values[SCRIPT_BYTE_LEN].given &&
	    !line->rest_any)
		return FAIL("a receive that succeeds has a byte_len; give byte_len=N, or '...' at "
			    "the end of the line");
	return true;
}

static bool check_memory(struct parser *parser)
{
	const struct script_value *values = parser->line->values;

	if (!values[SCRIPT_NUMBER].given && !values[SCRIPT_DATA].given)
		return FAIL("give data=PLACE, data=xDIGITS or number=N");
	if (values[SCRIPT_DATA].given && !values[SCRIPT_DATA].digit_bytes &&
	    !values[SCRIPT_LENGTH].given && parser->line->statement == SCRIPT_MEMORY)
		return FAIL("data=PLACE needs length=N");
	return true;
}

/* Only a binding may name more bytes than a packet or an SGE can have. */
static bool check_length(struct parser *parser)
{
	const struct script_line *line = parser->line;
	const bool binds = line->statement == SCRIPT_BIND ||
			   (line->statement == SCRIPT_SEND && line->word_value == IBV_WR_BIND_MW);

	return binds || line->values[SCRIPT_LENGTH].number <= UINT32_MAX ||
	       FAIL("length=%llu is above 4294967295",
		    (unsigned long long)line->values[SCRIPT_LENGTH].number);
}

bool parse_check(struct parser *parser)
{
	const struct script_line *line = parser->line;

	if (!check_length(parser))
		return false;

	switch (line->statement) {
	case SCRIPT_OUT:
	case SCRIPT_IN:
		return check_packet(parser);
	case SCRIPT_COMPLETION:
		return check_completion(parser);
	case SCRIPT_STORE:
	case SCRIPT_MEMORY:
		return check_memory(parser);
	case SCRIPT_BIND:
		return line->values[SCRIPT_WINDOW_NAME].given ||
		       FAIL("a binding has a window; give window=NAME");
	case SCRIPT_SEND:
		return check_send(parser);
	case SCRIPT_ATTACH:
	case SCRIPT_DETACH:
		return line->values[SCRIPT_GROUP].given || FAIL("give the group: group=N");
	case SCRIPT_QP:
		return !line->values[SCRIPT_MTU].given ||
		       vb_bytes_to_mtu((unsigned int)line->values[SCRIPT_MTU].number) ||
		       FAIL("mtu is 256, 512, 1024, 2048 or 4096");
	default:
		return true;
	}
}
