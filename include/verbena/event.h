/* SPDX-License-Identifier: MIT */
/*
 * Events: what happens in the devices of a backend and in a program's calls of verbs. The log
 * (<verbena/log.h>) writes them; docs/event-log.md lists the kinds and their fields.
 */
#ifndef VERBENA_EVENT_H
#define VERBENA_EVENT_H

#include <stdint.h>
#include <verbena/packet.h>
#include <verbena/why.h>

#ifdef __cplusplus
extern "C" {
#endif

enum vb_event_kind {
	VB_EVENT_NONE,
#define VB_EVENT(number, name, word, about) VB_EVENT_##name = (number),
#include <verbena/events.def>
};

#define VB_EVENT_VALUES 9
#define VB_EVENT_TEXTS	4

/* The fields are those that <verbena/events.def> gives the kind. */
struct vb_event {
	enum vb_event_kind kind;
	uint64_t time_ns;   /* on the device's clock */
	const char *device; /* such as "sim0"; NULL: none */
	unsigned int port;  /* 0: none */
	uint32_t qpn;	    /* 0: none */
	uint64_t values[VB_EVENT_VALUES];
	unsigned int absent; /* bit N: the event does not have the fields of values[N] */
	const char *texts[VB_EVENT_TEXTS];
	const void
		*object; /* the struct ibv_qp, ibv_cq or ibv_srq that texts[0] names; NULL: none */
	const struct vb_packet *packet; /* of PACKET, DROP and FAULT; NULL: none */
	const struct vb_why *why;	/* the cause; NULL: none */
	const struct vb_why *peer_why;	/* of FAILURE: the peer's view; NULL: unknown */
};

/*
 * Gets an event. The structure and what it points to are valid during the call only. The function is
 * called in the middle of a verb or of a packet's way, by any thread, and calls no verb.
 */
typedef void vb_event_fn(void *arg, const struct vb_event *event);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_EVENT_H */
