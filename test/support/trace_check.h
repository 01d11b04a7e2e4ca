/* SPDX-License-Identifier: MIT */
/*
 * Judges a trace by the rules of the transport alone: it shares no code with the engine.
 *
 * What it looks for, by the word that its report begins with:
 *
 *	frame	   not Ethernet, IP, UDP 4791, BTH, not Ethernet, GRH, BTH, or of a wrong length; of
 *		   a file of ERF: not LRH, perhaps GRH, BTH, or a VCRC that is wrong
 *	time	   a packet is older than the one before it
 *	icrc	   the ICRC is not that of the bytes
 *	psn	   a gap, or a packet before the first, in one direction of a connection
 *	message	   not FIRST MIDDLE... LAST or ONLY, or its length is not the announced one
 *	repeat	   what is sent again under its PSN is not the same
 *	answer	   to something that was not asked, or not all of it can have arrived
 *	response   of a READ or an atomic: its place, its size, its value
 *	msn	   in an AETH is not the number of messages that were done
 *	dead	   a request behind a NAK that ends the connection
 *
 * The trace holds each connection from its first packet. A connection made anew under the same two
 * QPNs and port (which InfiniBand and RoCE v1 do not have: LIDs, or GIDs) is taken for the old
 * one. `dead` supposes a link without delay. A READ longer than its path MTU is measured by the
 * first or middle packets of its connection; where there is none, its path MTU is taken to be
 * 4096. A packet whose ICRC is wrong is not looked at: what follows it may be reported too.
 */
#ifndef TEST_SUPPORT_TRACE_CHECK_H
#define TEST_SUPPORT_TRACE_CHECK_H

#include <stdio.h>

/*
 * Reads the pcap file at path and returns how many violations it has, each a line in report
 * (NULL: none is written); -1 where it cannot be read.
 */
int trace_check(const char *path, FILE *report);

#endif
