/* SPDX-License-Identifier: MIT */
/*
 * Judges a trace by the rules of the transport alone: it shares no code with the engine.
 *
 * The rules, by the word that begins a report:
 *
 *	frame	   a frame that is neither RoCE (Ethernet, IP, UDP port 4791, BTH; or Ethernet, GRH, BTH)
 *		   nor, in an ERF file, InfiniBand (LRH, maybe GRH, BTH), or whose length or VCRC is wrong
 *	time	   a packet that is older than the one before it
 *	icrc	   an ICRC that does not fit the bytes
 *	psn	   a gap, or a packet before the first, in one direction of a connection
 *	message	   packets that are not FIRST, MIDDLEs, LAST or ONLY, or have not the announced length
 *	repeat	   a retransmitted packet that differs from the first one with its PSN
 *	answer	   an answer to a request that was not sent or cannot have arrived
 *	response   a response of a READ or an atomic with a wrong place, size or value
 *	msn	   an AETH whose MSN is not the number of messages that were done
 *	dead	   a request behind a NAK that ends the connection
 *
 * The trace must have each connection from its first packet. The checker takes a new connection
 * with the QPNs and the UDP port (on RoCE v1 the GIDs, on InfiniBand the LIDs) of an old one for
 * the old one. `dead` is right only for a link without delay. The path MTU of a long READ is taken
 * from the first and middle packets of its connection, and is 4096 if there are none. A packet
 * with a wrong ICRC is skipped, so the packets behind it may be reported, too.
 */
#ifndef TEST_SUPPORT_TRACE_CHECK_H
#define TEST_SUPPORT_TRACE_CHECK_H

#include <stdio.h>

/*
 * Reads the pcap file at path and writes a line to report for each violation; report may be NULL.
 * Returns the number of violations, or -1 if the file cannot be read.
 */
int trace_check(const char *path, FILE *report);

#endif
