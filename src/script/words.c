/* SPDX-License-Identifier: MIT */
/* The tables of the language. */
#include "src/script/script.h"

#include "src/base/count.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define IN(statement) (1u << SCRIPT_##statement)
#define PACKETS	      (IN(OUT) | IN(IN))
#define CALLS	      (IN(MODIFY) | IN(STATE) | IN(SEND) | IN(RECEIVE) | IN(BIND) | IN(ATTACH) | IN(DETACH))
#define ATTRIBUTES    (IN(QP) | IN(MODIFY))
#define KIND(kind)    SCRIPT_KIND_##kind
#define BITS(bits)    (UINT64_MAX >> (64 - (bits)))

const struct script_statement_info script_statements[SCRIPT_STATEMENTS] = {
	[SCRIPT_SOURCE] = {"source", .takes_text = true},
	[SCRIPT_KNOWN] = {"known", .word = "places, such as rxe-6.1", .takes_text = true},
	[SCRIPT_ONLY] = {"only", .word = "sim or ethernet", .takes_text = true},
	[SCRIPT_IGNORE] = {"ignore", .word = "completions"},
	[SCRIPT_QP] = {"qp", .word = "a name and a type: qp NAME TYPE", .is_call = true},
	[SCRIPT_SRQ] = {"srq", .word = "a name", .is_call = true},
	[SCRIPT_WINDOW] = {"window", .word = "a name and a type: window NAME TYPE_2"},
	[SCRIPT_BIND] = {"bind_mw", .takes_time = true, .is_call = true},
	[SCRIPT_ATTACH] = {"attach", .takes_time = true, .is_call = true},
	[SCRIPT_DETACH] = {"detach", .takes_time = true, .is_call = true},
	[SCRIPT_MODIFY] = {"modify", .word = "a state, such as RTS", .takes_time = true,
			   .is_call = true},
	[SCRIPT_STATE] = {"state", .word = "a state, such as RTS", .takes_time = true},
	[SCRIPT_SEND] = {"post_send", .word = "an operation, such as SEND", .takes_time = true,
			 .is_call = true},
	[SCRIPT_RECEIVE] = {"post_recv", .takes_time = true, .is_call = true},
	[SCRIPT_STORE] = {"store", .takes_time = true},
	[SCRIPT_MEMORY] = {"memory", .takes_time = true},
	[SCRIPT_COMPLETION] = {"completion", .word = "send or recv", .takes_time = true},
	[SCRIPT_EVENT] = {"event", .word = "an event, such as QP_ACCESS_ERR", .takes_time = true},
	[SCRIPT_LISTEN] = {"listen", .takes_time = true, .is_call = true},
	[SCRIPT_CONNECT] = {"connect", .takes_time = true, .is_call = true},
	[SCRIPT_ACCEPT] = {"accept", .takes_time = true, .is_call = true},
	[SCRIPT_ESTABLISH] = {"establish", .takes_time = true, .is_call = true},
	[SCRIPT_REJECT] = {"reject", .takes_time = true, .is_call = true},
	[SCRIPT_DISCONNECT] = {"disconnect", .takes_time = true, .is_call = true},
	[SCRIPT_MANAGER_EVENT] = {"cm_event", .word = "an event, such as CONNECT_REQUEST",
				  .takes_time = true},
	[SCRIPT_SILENCE] = {"silence", .word = "a time, such as 5ms"},
	[SCRIPT_OUT] = {">", .word = "a packet, such as ACK", .takes_time = true},
	[SCRIPT_IN] = {"<", .word = "a packet, such as ACK", .takes_time = true},
};

const struct script_field_info script_fields[SCRIPT_FIELDS] = {
	[SCRIPT_PSN] = {"psn", KIND(PSN), BITS(24), PACKETS},
	[SCRIPT_LENGTH] = {"length", KIND(NUMBER), BITS(64),
			   PACKETS | IN(SEND) | IN(RECEIVE) | IN(MEMORY) | IN(BIND)},
	[SCRIPT_DATA] = {"data", KIND(DATA), BITS(32), PACKETS | IN(MEMORY) | IN(STORE)},
	[SCRIPT_ACK_REQUEST] = {"ack_request", KIND(FLAG), 1, PACKETS},
	[SCRIPT_SOLICITED] = {"solicited", KIND(FLAG), 1, PACKETS | IN(SEND)},
	[SCRIPT_PKEY] = {"pkey", KIND(NUMBER), BITS(16), PACKETS},
	[SCRIPT_DEST] = {"dest", KIND(NUMBER), BITS(24), IN(IN)},
	[SCRIPT_SYNDROME] = {"syndrome", KIND(NUMBER), BITS(8), PACKETS},
	[SCRIPT_TIMER] = {"timer", KIND(NUMBER), BITS(5), PACKETS},
	[SCRIPT_MSN] = {"msn", KIND(NUMBER), BITS(24), PACKETS},
	[SCRIPT_ADDR] = {"addr", KIND(NUMBER), BITS(64), PACKETS | IN(SEND)},
	[SCRIPT_RKEY] = {"rkey", KIND(KEY), BITS(32), PACKETS | IN(SEND)},
	[SCRIPT_DMA] = {"dma", KIND(NUMBER), BITS(32), PACKETS},
	[SCRIPT_IMM] = {"imm", KIND(NUMBER), BITS(32), PACKETS | IN(SEND) | IN(COMPLETION)},
	[SCRIPT_KEY] = {"key", KIND(KEY), BITS(32), PACKETS | IN(SEND)},
	[SCRIPT_ADD] = {"add", KIND(NUMBER), BITS(64), PACKETS | IN(SEND)},
	[SCRIPT_COMPARE] = {"compare", KIND(NUMBER), BITS(64), PACKETS | IN(SEND)},
	[SCRIPT_SWAP] = {"swap", KIND(NUMBER), BITS(64), PACKETS | IN(SEND)},
	[SCRIPT_ORIGINAL] = {"original", KIND(NUMBER), BITS(64), PACKETS},
	[SCRIPT_QKEY] = {"qkey", KIND(NUMBER), BITS(32), PACKETS | IN(SEND) | IN(QP)},
	[SCRIPT_SOURCE_QPN] = {"source", KIND(NUMBER), BITS(24), PACKETS},
	[SCRIPT_ICRC] = {"icrc", KIND(ICRC), 0, IN(IN)},
	[SCRIPT_GROUP] = {"group", KIND(NUMBER), 255, PACKETS | IN(SEND) | IN(ATTACH) | IN(DETACH)},
	[SCRIPT_SRQN] = {"srqn", KIND(SRQN), BITS(24), PACKETS | IN(SEND)},
	[SCRIPT_QP_NAME] = {"qp", KIND(QP), 0,
			    PACKETS | CALLS | IN(WINDOW) | IN(STORE) | IN(MEMORY) | IN(COMPLETION) |
				    IN(EVENT) | IN(CONNECT) | IN(ACCEPT)},
	[SCRIPT_TO] = {"to", KIND(QP), 0, IN(IN)},
	[SCRIPT_ID] = {"id", KIND(NUMBER), BITS(64),
		       IN(SEND) | IN(RECEIVE) | IN(COMPLETION) | IN(BIND)},
	[SCRIPT_AT] = {"at", KIND(NUMBER), BITS(32),
		       IN(SEND) | IN(RECEIVE) | IN(STORE) | IN(MEMORY) | IN(BIND)},
	[SCRIPT_LKEY] = {"lkey", KIND(KEY), BITS(32), IN(SEND) | IN(RECEIVE)},
	[SCRIPT_UNSIGNALED] = {"unsignaled", KIND(FLAG), 1, IN(SEND) | IN(BIND)},
	[SCRIPT_FENCE] = {"fence", KIND(FLAG), 1, IN(SEND)},
	[SCRIPT_STATUS] = {"status", KIND(STATUS), 0, IN(COMPLETION)},
	[SCRIPT_BYTE_LEN] = {"byte_len", KIND(NUMBER), BITS(32), IN(COMPLETION)},
	[SCRIPT_WC_OPCODE] = {"opcode", KIND(WC), 0, IN(COMPLETION)},
	[SCRIPT_NUMBER] = {"number", KIND(NUMBER), BITS(64), IN(STORE) | IN(MEMORY)},
	[SCRIPT_SRQ_NAME] = {"srq", KIND(SRQ), 0,
			     IN(QP) | IN(RECEIVE) | IN(STORE) | IN(MEMORY) | IN(COMPLETION)},
	[SCRIPT_WINDOW_NAME] = {"window", KIND(WINDOW), 0, IN(SEND) | IN(BIND)},
	[SCRIPT_OF] = {"of", KIND(QP), 0, IN(SEND) | IN(BIND)},
	[SCRIPT_FLAGS] = {"flags", KIND(FLAGS), 0, IN(COMPLETION)},
	[SCRIPT_SL] = {"sl", KIND(NUMBER), 15, IN(COMPLETION)},
	[SCRIPT_TO_STATE] = {"state", KIND(STATE), 0, IN(QP)},
	[SCRIPT_FIRST_PSN] = {"first_psn", KIND(NUMBER), BITS(24), IN(QP)},
	[SCRIPT_FIRST_PEER_PSN] = {"first_peer_psn", KIND(NUMBER), BITS(24), IN(QP)},
	[SCRIPT_MTU] = {"mtu", KIND(NUMBER), 4096, IN(QP)},
	[SCRIPT_TIMEOUT] = {"timeout", KIND(NUMBER), 31, ATTRIBUTES},
	[SCRIPT_RETRY_CNT] = {"retry_cnt", KIND(NUMBER), 7, ATTRIBUTES},
	[SCRIPT_RNR_RETRY] = {"rnr_retry", KIND(NUMBER), 7, ATTRIBUTES},
	[SCRIPT_MIN_RNR_TIMER] = {"min_rnr_timer", KIND(NUMBER), 31, ATTRIBUTES},
	[SCRIPT_MAX_RD_ATOMIC] = {"max_rd_atomic", KIND(NUMBER), 16, IN(QP)},
	[SCRIPT_MAX_DEST_RD_ATOMIC] = {"max_dest_rd_atomic", KIND(NUMBER), 16, IN(QP)},
	[SCRIPT_ACCESS] = {"access", KIND(ACCESS), 0, IN(QP) | IN(SEND) | IN(BIND)},
	[SCRIPT_BUFFER_BYTES] = {"buffer", KIND(NUMBER), 1 << 26, IN(QP) | IN(SRQ)},
	[SCRIPT_MAX_SEND_WR] = {"max_wr", KIND(NUMBER), 4096, IN(QP) | IN(SRQ)},
	[SCRIPT_DRAIN_EVENT] = {"drained_event", KIND(FLAG), 1, IN(MODIFY)},
	[SCRIPT_OTHER_PD] = {"other_pd", KIND(FLAG), 1, IN(QP) | IN(SRQ)},
	[SCRIPT_XRC] = {"xrc", KIND(FLAG), 1, IN(SRQ)},
};

/* --- operations --- */

#define ACKNOWLEDGE 0x11

/* The syndromes: Linux include/rdma/ib_pack.h, AETH_* of drivers/infiniband/sw/rxe/rxe_hdr.h. */
static const struct script_operation answers[] = {
	{"ACK", ACKNOWLEDGE, 0x1f, 0xe0},
	{"RNR_NAK", ACKNOWLEDGE, 0x20, 0xe0},
	{"NAK_SEQUENCE", ACKNOWLEDGE, 0x60, 0xff},
	{"NAK_INVALID_REQUEST", ACKNOWLEDGE, 0x61, 0xff},
	{"NAK_REMOTE_ACCESS", ACKNOWLEDGE, 0x62, 0xff},
	{"NAK_REMOTE_OPERATION", ACKNOWLEDGE, 0x63, 0xff},
};

static uint8_t transport_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UC:
		return 0x20;
	case IBV_QPT_UD:
		return 0x60;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return 0xa0;
	default:
		return 0;
	}
}

/* Returns the name behind "RC ", or NULL. */
static const char *plain_name(uint8_t opcode)
{
	const char *name = vb_opcode_name(opcode);

	return name ? strchr(name, ' ') + 1 : NULL;
}

bool script_operation_find(const char *name, enum ibv_qp_type type,
			   struct script_operation *operation)
{
	const bool is_answered = type != IBV_QPT_UC && type != IBV_QPT_UD;

	for (size_t i = 0; is_answered && i < COUNT(answers); i++) {
		if (strcmp(answers[i].name, name) != 0)
			continue;
		*operation = answers[i];
		operation->opcode |= transport_of(type);
		return true;
	}
	for (unsigned int low = 0; low < 32; low++) {
		const uint8_t opcode = transport_of(type) | low;
		const char *has = plain_name(opcode);

		if (!has || strcmp(has, name) != 0)
			continue;
		*operation = (struct script_operation){has, opcode, 0x1f, 0xe0};
		return true;
	}
	return false;
}

const char *script_operation_name(uint8_t opcode, unsigned int has, uint8_t syndrome)
{
	const char *name = plain_name(opcode);
	const bool is_acknowledge = (opcode & 0x1f) == ACKNOWLEDGE && has & VB_PACKET_HAS_AETH;

	for (size_t i = 0; is_acknowledge && i < COUNT(answers); i++)
		if (((answers[i].syndrome ^ syndrome) & answers[i].mask) == 0)
			return answers[i].name;
	return name ? name : "reserved";
}

/* --- names of values --- */

/* Finds a name among those of the values from 0 up; name_of() gives "unknown" behind the last. */
#define FIND(name_of, type, count, prefix)                                        \
	do {                                                                      \
		for (int i = 0; i < (count); i++)                                 \
			if (strcmp(name_of((type)i) + strlen(prefix), name) == 0) \
				return i;                                         \
		return -1;                                                        \
	} while (0)

int script_find_state(const char *name)
{
	FIND(vb_qp_state_str, enum ibv_qp_state, IBV_QPS_ERR + 1, "");
}

int script_find_status(const char *name)
{
	FIND(vb_wc_status_name, enum ibv_wc_status, IBV_WC_TM_RNDV_INCOMPLETE + 1, "IBV_WC_");
}

int script_find_wr(const char *name)
{
	FIND(vb_wr_opcode_str, enum ibv_wr_opcode, IBV_WR_DRIVER1 + 1, "");
}

int script_find_event(const char *name)
{
	FIND(vb_event_type_name, enum ibv_event_type, IBV_EVENT_WQ_FATAL + 1, "IBV_EVENT_");
}

int script_find_wc(const char *name)
{
	static const enum ibv_wc_opcode opcodes[] = {
		IBV_WC_SEND,	  IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ,
		IBV_WC_COMP_SWAP, IBV_WC_FETCH_ADD,  IBV_WC_BIND_MW,
		IBV_WC_LOCAL_INV, IBV_WC_RECV,	     IBV_WC_RECV_RDMA_WITH_IMM,
	};

	for (size_t i = 0; i < COUNT(opcodes); i++)
		if (strcmp(vb_wc_opcode_str(opcodes[i]), name) == 0)
			return opcodes[i];
	return -1;
}

int script_find_errno(const char *name)
{
	for (int i = 1; i < 134; i++) {
		const char *has = strerrorname_np(i);

		if (has && strcmp(has, name) == 0)
			return i;
	}
	return -1;
}

int script_find_window_type(const char *name)
{
	if (strcmp(name, "TYPE_1") == 0)
		return IBV_MW_TYPE_1;
	return strcmp(name, "TYPE_2") == 0 ? IBV_MW_TYPE_2 : -1;
}

/* --- flags of completions --- */

static const struct {
	const char *name;
	unsigned int flag;
} flags[] = {
	{"GRH", IBV_WC_GRH},
	{"WITH_IMM", IBV_WC_WITH_IMM},
	{"IP_CSUM_OK", IBV_WC_IP_CSUM_OK},
	{"WITH_INV", IBV_WC_WITH_INV},
};

int script_find_flag(const char *name)
{
	for (size_t i = 0; i < COUNT(flags); i++)
		if (strcmp(flags[i].name, name) == 0)
			return (int)flags[i].flag;
	return strcmp(name, "none") == 0 ? 0 : -1;
}

const char *script_flags_text(unsigned int set, char *text, size_t size_bytes)
{
	size_t used = (size_t)snprintf(text, size_bytes, "%s", set ? "" : "none");

	for (size_t i = 0; i < COUNT(flags); i++)
		if (set & flags[i].flag)
			used += (size_t)snprintf(text + used, size_bytes - used, "%s%s",
						 used ? "+" : "", flags[i].name);
	return text;
}
