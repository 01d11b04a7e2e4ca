/* SPDX-License-Identifier: MIT */
/* The pattern language of packets: see vb_expect_packets() in <verbena/expect.h>. */
#ifndef SRC_EXPECT_SEQUENCE_H
#define SRC_EXPECT_SEQUENCE_H

#include "src/expect/record.h"

#define SEQUENCE_ITEMS_MAX 128
#define SEQUENCE_FIELDS	   8

enum sequence_field {
	SEQUENCE_PSN,
	SEQUENCE_QP,
	SEQUENCE_BYTES,
	SEQUENCE_IMM,
	SEQUENCE_LOST,
	SEQUENCE_SOLICITED,
	SEQUENCE_ACK_REQUEST,
};

/* A word of the pattern, or a group of words. */
struct sequence_item {
	int at, length; /* in the text */
	int group_end;	/* of a group: the index behind its last item; else 0 */
	unsigned int least, most;
	char device[16];    /* "": any */
	char name[48];	    /* in a group: "" */
	unsigned int given; /* the fields, a bit each */
	uint64_t values[SEQUENCE_FIELDS];
};

struct sequence {
	const char *text;
	struct sequence_item items[SEQUENCE_ITEMS_MAX];
	int count;
	const char *wrong; /* after sequence_read() has failed: what is wrong */
	int wrong_at;	   /* and where in the text */
};

/* Returns false if the text is no pattern. The text stays the caller's. */
bool sequence_read(struct sequence *sequence, const char *text);

/* Returns true if a packet can have the name, such as "SEND_*" or "RC:ACK". */
bool sequence_knows(const char *name);

struct sequence_match {
	bool whole;	 /* the packets are those of the pattern */
	bool may_follow; /* more packets could make them so */
	size_t packets;	 /* how many packets go with the pattern at most */
	int at;		 /* where in the text the next packet had to go on: the first such place */
};

struct sequence_match sequence_compare(const struct sequence *sequence,
				       const struct record *packets, size_t count);

/* Writes a packet as the pattern names it, such as "sim0:RNR_NAK[psn=5]". Returns text. */
const char *sequence_name(const struct record *record, char *text, size_t size_bytes);

/* Writes the name of the opcode alone, with ACK, NAK and RNR_NAK. Returns text. */
const char *sequence_opcode(const struct vb_packet *packet, char *text, size_t size_bytes);

#endif
