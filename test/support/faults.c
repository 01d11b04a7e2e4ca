/* SPDX-License-Identifier: MIT */
/*
 * The packets on the simulated wire, as a trace shows them, and faults on the wire.
 */
#include "test/support/support.h"

#include <arpa/inet.h>
#include <verbena/fault.h>
#include <verbena/sim.h>

#define ETHERNET_BYTES 14
#define IPV4_BYTES     20
#define IPV6_BYTES     40
#define UDP_BYTES      8
#define LRH_BYTES      8
#define GRH_BYTES      40
#define BTH_BYTES      12

static uint32_t get24(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2];
}

/* Where the BTH begins. Only the port knows the link layer of a frame. */
static size_t bth_offset(const struct vt *t, const uint8_t *frame)
{
	if (t->a.port_attr.link_layer == IBV_LINK_LAYER_INFINIBAND)
		return LRH_BYTES + ((frame[1] & 3) == 3 ? GRH_BYTES : 0);
	if (frame[12] == 0x89) /* RoCE v1 */
		return ETHERNET_BYTES + GRH_BYTES;
	return ETHERNET_BYTES + (frame[12] == 0x08 ? IPV4_BYTES : IPV6_BYTES) + UDP_BYTES;
}

static void saw(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes, bool lost)
{
	struct ts_log *log = arg;
	size_t at = bth_offset(log->t, frame);
	const uint8_t *bth = frame + at;

	if (length_bytes < at + BTH_BYTES + 4 || log->count == TS_FRAMES_MAX)
		return;
	log->frames[log->count++] = (struct ts_frame){
		.now_ns = now_ns,
		.opcode = bth[0],
		.dest_qpn = get24(bth + 5),
		.psn = get24(bth + 9),
		.syndrome = bth[BTH_BYTES],
		.lost = lost,
	};
}

static void unwatch(void *arg)
{
	struct ts_log *log = arg;

	vb_sim_watch(ts_sim(log->t), NULL, NULL);
}

struct ts_log *ts_watch(struct vt *t)
{
	struct ts_log *log = vt_alloc(t, sizeof(*log));

	log->t = t;
	vb_sim_watch(ts_sim(t), saw, log);
	vt_defer(t, unwatch, log);
	return log;
}

unsigned int ts_count(const struct ts_log *log, uint8_t opcode, uint32_t dest_qpn)
{
	unsigned int i, count = 0;

	for (i = 0; i < log->count; i++)
		if ((opcode == 0xff || log->frames[i].opcode == opcode) &&
		    (!dest_qpn || log->frames[i].dest_qpn == dest_qpn))
			count++;
	return count;
}

struct rule {
	struct vt *t;
	unsigned int id;
};

static void remove_rule(void *arg)
{
	struct rule *rule = arg;

	vb_fault_remove(ts_sim(rule->t), rule->id);
}

unsigned int ts_fault(struct vt *t, const struct vb_fault_rule *rule)
{
	struct rule *added = vt_alloc(t, sizeof(*added));

	added->t = t;
	VT_OK(t, vb_fault_add(ts_sim(t), rule, &added->id));
	vt_defer(t, remove_rule, added);
	return added->id;
}
