/* SPDX-License-Identifier: MIT */
/*
 * Packet scripts: what a device must send and complete when a program posts work and a peer sends
 * packets. docs/scripts.md describes the language. The peer is no QP: the script makes its packets.
 *
 *	words.c		the tables: statements, fields, operations
 *	parse.c		a text becomes lines; parse.h names the files that help
 *	known.c		lines 'known': where a script fails
 *	packet.c	a line becomes a packet, or is compared with one
 *	device.c	the verbs: QPs, SRQs, their memory and states
 *	work.c		the verbs: work requests, windows, multicast groups
 *	manager.c	the calls of librdmacm
 *	message.c	a line becomes a message of the connection manager, or is compared with one
 *	run.c		the lines in their order, and in time
 *	watch.c		what the device does: its packets, completions and events
 *	failure.c	prints a failure
 *	wire_sim.c	the simulator
 *	capture.c, write.c	a capture becomes a script
 *	wire_network.c	a device of the machine, through a raw socket on the peer's interface
 */
#ifndef SRC_SCRIPT_SCRIPT_H
#define SRC_SCRIPT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <verbena/packet.h>
#include <verbena/verbs.h>

#define SCRIPT_NAME_MAX		  32
#define SCRIPT_TEXT_MAX		  256
#define SCRIPT_QPS_MAX		  8
#define SCRIPT_MESSAGE_FIELDS_MAX 12
#define SCRIPT_LISTEN_PORT	  7471
#define SCRIPT_TCP_SERVICE	  UINT64_C(0x01060000) /* the service ID of port 0 of RDMA_PS_TCP */
#define SCRIPT_WINDOWS_MAX	  4
#define SCRIPT_ROWS_MAX		  24
#define SCRIPT_DATA_MAX		  64 /* bytes that a line writes as digits */
#define SCRIPT_BUFFER		  65536 /* bytes of a QP's memory, unless the script says another number */
#define SCRIPT_PEER_BASE	  0x10000u /* address 0 of the peer's memory */
#define SCRIPT_PEER_RKEY	  0x1234u
#define SCRIPT_PEER_QPN		  0x100u /* of the peer of the first QP; those of the others follow */
#define SCRIPT_DEVICE_PSN	  1000	 /* the first PSN of the device */
#define SCRIPT_PEER_PSN		  2000	 /* the first PSN of the peer */
#define SCRIPT_PSN_MASK		  0xffffffu

/* --- the lines --- */

enum script_statement {
	SCRIPT_SOURCE,
	SCRIPT_KNOWN,
	SCRIPT_ONLY,
	SCRIPT_IGNORE,
	SCRIPT_SRQ,
	SCRIPT_QP,
	SCRIPT_WINDOW,
	SCRIPT_BIND,
	SCRIPT_ATTACH,
	SCRIPT_DETACH,
	SCRIPT_MODIFY,
	SCRIPT_STATE,
	SCRIPT_SEND,
	SCRIPT_RECEIVE,
	SCRIPT_STORE,
	SCRIPT_MEMORY,
	SCRIPT_COMPLETION,
	SCRIPT_EVENT,
	SCRIPT_LISTEN,
	SCRIPT_CONNECT,
	SCRIPT_ACCEPT,
	SCRIPT_ESTABLISH,
	SCRIPT_REJECT,
	SCRIPT_DISCONNECT,
	SCRIPT_MANAGER_EVENT,
	SCRIPT_SILENCE,
	SCRIPT_OUT, /* a packet of the device: '>' */
	SCRIPT_IN,  /* a packet of the peer: '<' */
	SCRIPT_STATEMENTS,
};

enum script_field {
	/* Packets. */
	SCRIPT_PSN,
	SCRIPT_LENGTH,
	SCRIPT_DATA,
	SCRIPT_ACK_REQUEST,
	SCRIPT_SOLICITED,
	SCRIPT_PKEY,
	SCRIPT_DEST,
	SCRIPT_SYNDROME,
	SCRIPT_TIMER,
	SCRIPT_MSN,
	SCRIPT_ADDR,
	SCRIPT_RKEY,
	SCRIPT_DMA,
	SCRIPT_IMM,
	SCRIPT_KEY,
	SCRIPT_ADD,
	SCRIPT_COMPARE,
	SCRIPT_SWAP,
	SCRIPT_ORIGINAL,
	SCRIPT_QKEY,
	SCRIPT_SOURCE_QPN,
	SCRIPT_ICRC,
	SCRIPT_GROUP,
	SCRIPT_SRQN,
	/* Work requests, completions, memory. */
	SCRIPT_QP_NAME,
	SCRIPT_TO,
	SCRIPT_ID,
	SCRIPT_AT,
	SCRIPT_LKEY,
	SCRIPT_UNSIGNALED,
	SCRIPT_FENCE,
	SCRIPT_STATUS,
	SCRIPT_BYTE_LEN,
	SCRIPT_WC_OPCODE,
	SCRIPT_NUMBER,
	SCRIPT_SRQ_NAME,
	SCRIPT_WINDOW_NAME,
	SCRIPT_OF,
	SCRIPT_FLAGS,
	SCRIPT_SL,
	/* Attributes of a QP. */
	SCRIPT_TO_STATE,
	SCRIPT_FIRST_PSN,
	SCRIPT_FIRST_PEER_PSN,
	SCRIPT_MTU,
	SCRIPT_TIMEOUT,
	SCRIPT_RETRY_CNT,
	SCRIPT_RNR_RETRY,
	SCRIPT_MIN_RNR_TIMER,
	SCRIPT_MAX_RD_ATOMIC,
	SCRIPT_MAX_DEST_RD_ATOMIC,
	SCRIPT_ACCESS,
	SCRIPT_BUFFER_BYTES,
	SCRIPT_MAX_SEND_WR,
	SCRIPT_DRAIN_EVENT,
	SCRIPT_OTHER_PD,
	SCRIPT_XRC,
	SCRIPT_FIELDS,
};

/* How a field's value is written. */
enum script_kind {
	SCRIPT_KIND_NUMBER,
	SCRIPT_KIND_PSN,    /* a number from the first PSN on, or '@' and a PSN */
	SCRIPT_KIND_FLAG,   /* the name alone, or 0 or 1 */
	SCRIPT_KIND_KEY,    /* a number, a window's name, or "bad" */
	SCRIPT_KIND_DATA,   /* a place of the pattern, or 'x' and digits */
	SCRIPT_KIND_QP,	    /* a QP's name */
	SCRIPT_KIND_SRQ,    /* an SRQ's name */
	SCRIPT_KIND_SRQN,   /* an SRQ's name, or a number */
	SCRIPT_KIND_WINDOW, /* a window's name */
	SCRIPT_KIND_FLAGS,  /* "none", or the flags of a completion with '+' between */
	SCRIPT_KIND_STATE,  /* the state of a QP */
	SCRIPT_KIND_STATUS, /* the status of a completion */
	SCRIPT_KIND_WC,	    /* the opcode of a completion */
	SCRIPT_KIND_ACCESS, /* "none", or words with '+' between */
	SCRIPT_KIND_ICRC,   /* "bad" */
};

struct script_field_info {
	const char *name;
	enum script_kind kind;
	uint64_t max;
	uint32_t statements; /* 1 << enum script_statement of each that takes the field */
};

extern const struct script_field_info script_fields[SCRIPT_FIELDS];

struct script_statement_info {
	const char *name;
	const char *word; /* what follows the name; NULL: nothing but fields */
	bool is_call;	  /* a function that may return an errno value */
	bool takes_text;  /* the rest of the line is a text */
	bool takes_time;
};

extern const struct script_statement_info script_statements[SCRIPT_STATEMENTS];

/* A packet's operation, by the name in scripts. */
struct script_operation {
	const char *name;
	uint8_t opcode;	  /* on RC */
	uint8_t syndrome; /* of an AETH */
	uint8_t mask; /* which bits of the syndrome a packet must have; 0: the name does not say */
};

/* Finds a message of the connection manager; 0 if there is none. */
unsigned int script_message_find(const char *name);

/* Finds a field of a message, or of the header of all messages; -1 if there is none. */
int script_message_field(unsigned int message, const char *name);

/* Returns the largest number of a field; its bytes if it is no number, 0 if it is one. */
uint64_t script_message_max(int field);
unsigned int script_message_bytes(int field);

/* Finds the operation of a name on a QP type. Returns false if there is none. */
bool script_operation_find(const char *name, enum ibv_qp_type type,
			   struct script_operation *operation);

/* Returns the name of an opcode and a syndrome, as scripts write it. */
const char *script_operation_name(uint8_t opcode, unsigned int has, uint8_t syndrome);

/* Find the value of a name; -1 if there is none. */
int script_find_state(const char *name);
int script_find_status(const char *name);
int script_find_wc(const char *name);
int script_find_wr(const char *name);
int script_find_event(const char *name);
int script_find_errno(const char *name);
int script_find_manager_event(const char *name);
int script_find_flag(const char *name); /* enum ibv_wc_flags */
int script_find_window_type(const char *name);

/* Writes the flags of a completion, such as "GRH+WITH_IMM". Returns text. */
const char *script_flags_text(unsigned int flags, char *text, size_t size_bytes);

struct script_value {
	bool given, any, absolute, bad;
	bool is_name; /* number is the place of a window or an SRQ in the script's list */
	uint64_t number;
	uint8_t digits[SCRIPT_DATA_MAX]; /* of DATA, if digit_bytes is not 0 */
	uint8_t digit_bytes;
};

/* A field of a message of the connection manager. */
struct script_message_value {
	int field;
	struct script_value value;
};

enum script_time {
	SCRIPT_NOW,	/* in the same instant as the line before */
	SCRIPT_AFTER,	/* from_ns after the line before */
	SCRIPT_BETWEEN, /* from from_ns to to_ns after the line before */
};

struct script_line {
	unsigned int number, column;
	char text[SCRIPT_TEXT_MAX];
	enum script_statement statement;
	enum script_time time;
	uint64_t from_ns, to_ns;
	uint64_t duration_ns; /* of `silence` */
	char word[SCRIPT_TEXT_MAX];
	int word_value;			   /* of a state, an event or a WR opcode */
	struct script_operation operation; /* of a packet */
	unsigned int has;		   /* enum vb_packet_has of its opcode */
	bool has_owner;			   /* the line is about a QP or an SRQ */
	unsigned int qp;		   /* an index of script->qps */
	bool rest_any;			   /* "..." */
	int wanted_errno;		   /* what a call returns */
	struct script_value values[SCRIPT_FIELDS];
	unsigned int message; /* of the connection manager; 0: a packet of a QP */
	struct script_message_value message_fields[SCRIPT_MESSAGE_FIELDS_MAX];
	unsigned int message_field_count;
};

/* A QP or an SRQ of a script. It has memory, and a script posts receives to it. */
struct script_owner {
	char name[SCRIPT_NAME_MAX];
	enum ibv_qp_type type; /* of a QP */
	bool is_srq;
};

struct script {
	const char *path;
	struct script_line *lines;
	unsigned int line_count;
	struct script_owner qps[SCRIPT_QPS_MAX]; /* QPs and SRQs */
	unsigned int qp_count;
	bool connects; /* it has lines of the connection manager */
	char windows[SCRIPT_WINDOWS_MAX][SCRIPT_NAME_MAX];
	unsigned int window_count;
};

/* --- failures --- */

struct script_row {
	const char *name;
	char expected[64], actual[64];
	bool differs;
};

/* Why a script cannot be read, or how the device has failed it. */
struct script_failure {
	unsigned int number, column;
	char line[SCRIPT_TEXT_MAX];
	char text[512];
	struct script_row rows[SCRIPT_ROWS_MAX]; /* expected and actual */
	unsigned int row_count;
};

/* Fills the failure at a line. Returns false. */
bool script_fail(struct script_failure *failure, const struct script_line *line, const char *fmt,
		 ...) __attribute__((format(printf, 3, 4)));

/* Adds a row; a value that is NULL is shown as "-". */
void script_row(struct script_failure *failure, const char *name, const char *expected,
		const char *actual, bool differs);

void script_print_failure(const struct script_failure *failure, const char *path, FILE *out);

/* Writes a duration as people do, such as "67.108864ms". Returns text. */
const char *script_time_text(uint64_t duration_ns, char *text, size_t size_bytes);

/* --- reading --- */

/* Reads a script from @text, which is changed. Returns false with the failure. The caller frees the script with
 * script_free() in both cases. */
bool script_parse(const char *path, char *text, struct script *script,
		  struct script_failure *failure);
void script_free(struct script *script);

/*
 * Returns the line of the statement `known` that names the place, such as "rxe-6.1", or "rxe-6.1/real"
 * where `real` is set; NULL if there is none.
 */
const struct script_line *script_known(const struct script *script, const char *place, bool real);

/* --- wires --- */

struct script_frame {
	uint64_t time_ns;
	bool from_peer;
	size_t length_bytes;
	uint8_t bytes[VB_FRAME_BYTES_MAX];
};

/* A device under test, and the wire to its peer. */
struct script_wire {
	bool exact; /* a virtual clock: times have no tolerance */
	uint64_t tolerance_ns, settle_ns;
	struct ibv_context *context;
	uint8_t gid_index;
	bool infiniband;
	const char *backend;
	uint8_t ip[4], peer_ip[4]; /* of the two ends, for the connection manager */
	uint64_t peer_guid; /* another one for each script: a kernel remembers old connections */
	union ibv_gid gid, peer_gid;
	uint16_t lid, peer_lid;
	union ibv_gid group; /* group 0; a group's number is added to the last byte */
	enum ibv_mtu mtu;
	uint64_t (*now)(struct script_wire *wire);
	/* Gives the device a frame of the peer. Returns 0 or an errno value. */
	int (*inject)(struct script_wire *wire, const uint8_t *frame, size_t length_bytes);
	/* Runs the present instant, or waits until something may have happened, up to until_ns. */
	void (*pass)(struct script_wire *wire, uint64_t until_ns);
	int (*poll)(struct script_wire *wire, struct ibv_cq *cq, struct ibv_wc *wc);
	void (*close)(struct script_wire *wire);
	/* All frames, in both directions, in the order of the wire. */
	struct script_frame *frames;
	unsigned int frame_count, frame_room;
};

/* Adds a frame to wire->frames; false without memory. */
bool script_wire_keep(struct script_wire *wire, uint64_t time_ns, bool from_peer,
		      const uint8_t *frame, size_t length_bytes);

struct script_place {
	const char *profile;   /* of the simulated device */
	bool connects;	       /* the script needs the connection manager */
	bool infiniband;       /* the simulated device is one of InfiniBand */
	const char *device;    /* a device of the machine; NULL: simulate one */
	const char *interface; /* the Ethernet interface of the peer */
	const char *peer;      /* the IPv4 address of that interface */
	uint64_t tolerance_ns;
};

/* Opens a device; wire->close() closes it. Returns NULL with a sentence in why. */
struct script_wire *script_wire_sim(const struct script_place *place, char *why, size_t why_bytes);
struct script_wire *script_wire_network(const struct script_place *place, char *why,
					size_t why_bytes);

/* --- running --- */

/* Runs a script. Returns false with the failure. */
bool script_run(const struct script *script, struct script_wire *wire,
		struct script_failure *failure);

#endif
