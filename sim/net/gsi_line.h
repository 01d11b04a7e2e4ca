/* SPDX-License-Identifier: MIT */
/*
 * Messages of QP 1 that wait for room in the way out. Each receiver has a line of its own, from which messages
 * leave in the order in which QP 1 has sent them: a receiver that takes no messages delays no other receiver.
 */
#ifndef SIM_NET_GSI_LINE_H
#define SIM_NET_GSI_LINE_H

#include "sim/object/path.h"
#include "sim/wire/mad.h"

struct sim_gsi_waiting;

/* The most messages of an engine that wait for room: 7 MB. The way out loses a message beyond them. */
#define SIM_GSI_WAITING_MAX 16384u

/* The receiver of a message that leaves the engine. */
struct sim_gsi_receiver {
	uint64_t process; /* as sim_way_out.server() returns it; 0: another machine */
	uint8_t gid[16];  /* of the receiver on another machine */
};

struct sim_gsi_lines {
	struct sim_gsi_waiting *first; /* the first message of the first line */
	struct sim_gsi_waiting *spare;
	uint32_t made; /* counts the messages in lines and the spare ones */
};

/* A message and its route. */
struct sim_gsi_letter {
	struct sim_path path;
	uint16_t pkey;
	uint8_t mad[SIM_MAD_BYTES];
};

/* Returns true if a message waits for the receiver. */
bool sim_gsi_lines_have(const struct sim_gsi_lines *lines, const struct sim_gsi_receiver *receiver);

/* Adds a message to the end of its receiver's line. Returns the message, which the caller fills in; NULL if
 * SIM_GSI_WAITING_MAX messages wait, or memory is out. */
struct sim_gsi_letter *sim_gsi_lines_add(struct sim_gsi_lines *lines,
					 const struct sim_gsi_receiver *receiver);

/* Calls `send` for the messages of each line, in their order, until it returns false. Removes the messages for
 * which it has returned true. `send` must add no message. */
void sim_gsi_lines_release(struct sim_gsi_lines *lines,
			   bool (*send)(void *arg, const struct sim_gsi_receiver *receiver,
					struct sim_gsi_letter *letter),
			   void *arg);

/* Forgets all messages. */
void sim_gsi_lines_clear(struct sim_gsi_lines *lines);

/* Frees all memory. */
void sim_gsi_lines_end(struct sim_gsi_lines *lines);

#endif
