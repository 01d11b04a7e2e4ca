/* SPDX-License-Identifier: MIT */
/*
 * The trace as a reader of the file sees it, with libpcap and a parser of its own.
 */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"
#include "test/support/support.h"
#include "test/support/trace_check.h"

#include <fcntl.h>
#include <pcap/pcap.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include <verbena/fault.h>
#include <verbena/sim.h>

#define WIRE	VT_NEEDS_SIM
#define VIRTUAL (WIRE | VT_NEEDS_VIRTUAL_CLOCK)
#define IP	(WIRE | VT_NEEDS_ETHERNET)
#define FAULTS	(VIRTUAL | VT_NEEDS_FAULTS)

#define RNR_NAK 0x20 /* AETH syndromes; an RNR NAK has its timer in the low bits */
#define NAK	0x60
#define NO_ACK	0xff

#define ERF_BYTES	  16 /* in front of each frame of InfiniBand */
#define ERF_INFINIBAND	  21
#define ERF_RECEIVE_ERROR 0x10
#define VCRC_BYTES	  2

/* --- reading --- */

struct seen {
	uint64_t now_ns;
	bool lost;
	bool ipv4;
	const uint8_t *ip, *udp, *bth; /* in the frame; an InfiniBand frame has only bth */
	uint8_t opcode, pad, syndrome; /* syndrome: NO_ACK if there is no AETH */
	bool ack_request;
	uint32_t dest_qpn, psn, msn;
	size_t length_bytes;
	uint8_t *frame;
};

struct trace {
	struct vt *t;
	char path[64];
	struct seen *packets;
	unsigned int count;
};

static uint32_t get(const uint8_t *at, unsigned int bytes)
{
	uint32_t value = 0;

	while (bytes--)
		value = value << 8 | *at++;
	return value;
}

static void remove_file(void *arg)
{
	unlink(arg);
}

static void temporary(struct vt *t, char *path)
{
	int fd;

	strcpy(path, "/tmp/verbena-trace-XXXXXX");
	fd = mkstemp(path);
	VT_CHECK(t, fd >= 0);
	close(fd);
	vt_defer(t, remove_file, path);
}

/* Starts a trace, which finish() ends. */
static struct trace *begin(struct vt *t)
{
	struct trace *trace = vt_alloc(t, sizeof(*trace));

	ts_prompt(t);
	trace->t = t;
	temporary(t, trace->path);
	VT_OK(t, vb_sim_trace_open(ts_sim(t), trace->path));
	return trace;
}

static bool has_aeth(uint8_t opcode)
{
	return opcode >= TS_READ_FIRST && opcode <= TS_ATOMIC_ACK && opcode != TS_READ_MIDDLE;
}

static bool on_infiniband(const struct vt *t)
{
	return t->a.port_attr.link_layer == IBV_LINK_LAYER_INFINIBAND;
}

static void look_below(struct vt *t, struct seen *seen, const uint8_t *frame)
{
	static const uint8_t lost_mac[6] = {0x02, 0, 0, 0, 0xde, 0xad};

	VT_CHECK(t, seen->length_bytes >= 14 + 20 + 8 + 12 + 4);
	seen->frame = memcpy(vt_alloc(t, seen->length_bytes), frame, seen->length_bytes);
	seen->lost = !memcmp(frame, lost_mac, 6);
	seen->ipv4 = get(frame + 12, 2) == 0x0800;
	VT_CHECK(t, seen->ipv4 || get(frame + 12, 2) == 0x86dd);
	seen->ip = seen->frame + 14;
	seen->udp = seen->ip + (seen->ipv4 ? 20 : 40);
	seen->bth = seen->udp + 8;
}

/* Reads the header of the Extensible Record Format, the LRH and, if there is one, the GRH. */
static void look_below_infiniband(struct vt *t, struct seen *seen, const uint8_t *record)
{
	VT_CHECK(t, seen->length_bytes >= ERF_BYTES + 8 + 12 + 4 + VCRC_BYTES);
	VT_EQ(t, record[8], ERF_INFINIBAND);
	VT_EQ(t, get(record + 10, 2), seen->length_bytes);
	seen->length_bytes -= ERF_BYTES;
	VT_EQ(t, get(record + 14, 2), seen->length_bytes);
	seen->frame =
		memcpy(vt_alloc(t, seen->length_bytes), record + ERF_BYTES, seen->length_bytes);
	seen->lost = record[9] & ERF_RECEIVE_ERROR;
	seen->bth = seen->frame + 8 + ((seen->frame[1] & 3) == 3 ? 40 : 0);
}

static struct seen look(struct vt *t, uint64_t now_ns, const uint8_t *frame, size_t length_bytes)
{
	struct seen seen = {.now_ns = now_ns, .length_bytes = length_bytes};

	if (on_infiniband(t))
		look_below_infiniband(t, &seen, frame);
	else
		look_below(t, &seen, frame);
	seen.opcode = seen.bth[0];
	seen.pad = seen.bth[1] >> 4 & 3;
	seen.dest_qpn = get(seen.bth + 5, 3);
	seen.ack_request = seen.bth[8] & 0x80;
	seen.psn = get(seen.bth + 9, 3);
	seen.syndrome = has_aeth(seen.opcode) ? seen.bth[12] : NO_ACK;
	seen.msn = has_aeth(seen.opcode) ? get(seen.bth + 13, 3) : 0;
	return seen;
}

static void read_file(struct trace *trace)
{
	char error[PCAP_ERRBUF_SIZE] = "";
	struct vt *t = trace->t;
	struct pcap_pkthdr *header;
	const u_char *frame;
	unsigned int room = 0;
	struct seen *more;
	pcap_t *pcap;
	int rc;

	pcap = pcap_open_offline_with_tstamp_precision(trace->path, PCAP_TSTAMP_PRECISION_NANO,
						       error);
	if (!pcap)
		VT_FAIL(t, "%s", error);
	VT_EXPECT_EQ(t, pcap_datalink(pcap), on_infiniband(t) ? DLT_ERF : DLT_EN10MB);
	while ((rc = pcap_next_ex(pcap, &header, &frame)) == 1) {
		VT_EXPECT_EQ(t, header->caplen, header->len);
		if (trace->count == room) {
			room = room ? 2 * room : 256;
			more = vt_alloc(t, room * sizeof(*more));
			if (trace->count)
				memcpy(more, trace->packets, trace->count * sizeof(*more));
			trace->packets = more;
		}
		/* nanoseconds, which pcap_open asked for */
		trace->packets[trace->count++] = look(
			t, (uint64_t)header->ts.tv_sec * 1000000000u + (uint64_t)header->ts.tv_usec,
			frame, header->caplen);
	}
	VT_EXPECT_EQ(t, rc, PCAP_ERROR_BREAK); /* the end of the file, with no torn record */
	pcap_close(pcap);
}

static void finish(struct trace *trace)
{
	VT_OK(trace->t, vb_sim_trace_close(ts_sim(trace->t)));
	read_file(trace);
}

/* Judges the file by trace_check.h, which shares no code with the engine. */
static void judge(struct trace *trace)
{
	size_t bytes = 0;
	char *text = NULL;
	FILE *report = open_memstream(&text, &bytes);
	int violations;

	VT_CHECK(trace->t, report != NULL);
	violations = trace_check(trace->path, report);
	fclose(report);
	if (violations)
		vt_note(trace->t, "%.400s", text);
	free(text);
	VT_EQ(trace->t, violations, 0);
}

static unsigned int count_of(const struct trace *trace, uint8_t opcode, uint32_t dest_qpn)
{
	unsigned int i, count = 0;

	for (i = 0; i < trace->count; i++)
		count += trace->packets[i].opcode == opcode &&
			 (!dest_qpn || trace->packets[i].dest_qpn == dest_qpn);
	return count;
}

/* Returns packet number `n`, from 0, of an opcode. */
static const struct seen *find(const struct trace *trace, uint8_t opcode, unsigned int nth)
{
	unsigned int i;

	for (i = 0; i < trace->count; i++)
		if (trace->packets[i].opcode == opcode && !nth--)
			return &trace->packets[i];
	VT_FAIL(trace->t, "no packet of opcode 0x%02x", opcode);
}

/* --- traffic --- */

static struct ts_pair *narrow(struct vt *t, enum ibv_qp_type type)
{
	struct ts_options options = ts_defaults(t, type);

	options.mtu = IBV_MTU_256;
	options.timeout = 8;
	return ts_pair(t, &options);
}

static void mixed(struct vt *t)
{
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);
	unsigned int i;

	for (i = 0; i < 8; i++) {
		ts_transfer(pair, IBV_WR_SEND, 700 * i + i);
		ts_transfer(pair, IBV_WR_RDMA_WRITE, 500 * i + i);
		ts_transfer(pair, IBV_WR_RDMA_READ, 900 * i + i);
		ts_fetch_add(&pair->a, .wr_id = 1, .compare_add = i);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_FETCH_ADD);
	}
	ts_settle(t);
}

static uint64_t sent_packets(struct vt *t)
{
	struct vb_sim_counters a, b;

	VT_OK(t, vb_sim_counters(t->a.ctx, &a));
	VT_OK(t, vb_sim_counters(t->b.ctx, &b));
	return a.sent_packets + (t->have & VT_NEEDS_TWO_DEVICES ? b.sent_packets : 0);
}

static void each_packet_is_in_the_file_once(struct vt *t)
{
	uint64_t before = sent_packets(t);
	struct trace *trace = begin(t);

	mixed(t);
	finish(trace);
	VT_CHECK(t, trace->count > 100);
	VT_EQ(t, trace->count, sent_packets(t) - before);
	judge(trace);
}

static void each_lost_packet_is_in_the_file_once(struct vt *t)
{
	uint64_t before = sent_packets(t);
	struct trace *trace = begin(t);
	unsigned int i, lost = 0;
	unsigned int id =
		ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP, .probability = 0.05});

	mixed(t);
	finish(trace);
	VT_EQ(t, trace->count, sent_packets(t) - before);
	for (i = 0; i < trace->count; i++)
		lost += trace->packets[i].lost;
	VT_CHECK(t, lost > 0);
	VT_EQ(t, lost, vb_fault_hits(ts_sim(t), id));
	judge(trace);
}

/* --- times --- */

static void times_are_the_clocks(struct vt *t)
{
	static const uint64_t pauses_ns[] = {1, 999, 1234567, 1000000000, 7000000001};
	struct trace *trace = begin(t);
	struct ts_pair *pair = narrow(t, IBV_QPT_UC);
	uint64_t at_ns[5];
	unsigned int i;

	for (i = 0; i < 5; i++) {
		ts_pause(t, pauses_ns[i]);
		at_ns[i] = ts_now_ns(t);
		ts_write(&pair->a, .wr_id = i, .length = 1);
		ts_pause(t, 0);
	}
	finish(trace);
	VT_EQ(t, trace->count, 5);
	for (i = 0; i < 5; i++)
		VT_EXPECT_EQ(t, trace->packets[i].now_ns, at_ns[i]);
	VT_EQ(t, at_ns[4] - at_ns[3], pauses_ns[4]);
}

static void times_never_go_back(struct vt *t)
{
	struct trace *trace = begin(t);
	unsigned int i;

	ts_fault(t, &(struct vb_fault_rule){
			    .action = VB_FAULT_DELAY, .probability = 0.2, .delay_ns = 30000});
	mixed(t);
	finish(trace);
	for (i = 1; i < trace->count; i++)
		VT_CHECK(t, trace->packets[i].now_ns >= trace->packets[i - 1].now_ns);
	VT_CHECK(t, trace->packets[trace->count - 1].now_ns > trace->packets[0].now_ns);
	VT_CHECK(t, trace->packets[trace->count - 1].now_ns <= ts_now_ns(t));
	judge(trace);
}

/* The retransmission comes 4.096 us * 2^8 after the first transmission. */
static void retransmission_comes_a_timeout_later(struct vt *t)
{
	struct trace *trace = begin(t);
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP, .count = 1});
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
	finish(trace);
	VT_EQ(t, count_of(trace, TS_WRITE_ONLY, 0), 2);
	VT_CHECK(t, find(trace, TS_WRITE_ONLY, 0)->lost);
	VT_CHECK(t, !find(trace, TS_WRITE_ONLY, 1)->lost);
	VT_EQ(t, find(trace, TS_WRITE_ONLY, 0)->psn, find(trace, TS_WRITE_ONLY, 1)->psn);
	VT_EQ(t, find(trace, TS_WRITE_ONLY, 1)->now_ns - find(trace, TS_WRITE_ONLY, 0)->now_ns,
	      4096u << 8);
	judge(trace);
}

/* --- addresses --- */

/* Finds the last GID of RoCE v2 of a family; the first IPv6 GID is link-local. */
static bool use_family(struct vt_node *node, bool ipv4)
{
	struct ibv_gid_entry entry;
	bool found = false;
	int i;

	for (i = 0; i < node->port_attr.gid_tbl_len; i++) {
		if (vb_query_gid_ex(node->ctx, node->port, (uint32_t)i, &entry, 0, sizeof(entry)) ||
		    ts_gid_is_ipv4(&entry.gid) != ipv4 || entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		node->gid_index = i;
		node->gid = entry.gid;
		found = true;
	}
	return found;
}

static void check_ip(struct vt *t, const struct seen *seen, const struct vt_node *from,
		     const struct vt_node *to)
{
	const uint8_t *ip = seen->ip;

	if (seen->ipv4) {
		VT_EXPECT_EQ(t, get(ip + 4, 2), 0);	 /* identification */
		VT_EXPECT_EQ(t, get(ip + 6, 2), 0x4000); /* do not fragment */
		VT_EXPECT_EQ(t, ip[8], 64);		 /* the hop limit of the path */
		VT_EXPECT_EQ_MEM(t, ip + 12, from->gid.raw + 12, 4);
		VT_EXPECT_EQ_MEM(t, ip + 16, to->gid.raw + 12, 4);
		VT_EXPECT_EQ(t, get(seen->udp + 6, 2), 0); /* no checksum */
	} else {
		VT_EXPECT_EQ(t, ip[7], 64);
		VT_EXPECT_EQ_MEM(t, ip + 8, from->gid.raw, 16);
		VT_EXPECT_EQ_MEM(t, ip + 24, to->gid.raw, 16);
	}
	VT_EXPECT_EQ(t, get(seen->udp + 2, 2), 4791);
}

static void both_ways(struct vt *t, bool ipv4)
{
	struct trace *trace = begin(t);
	struct ts_pair *pair;
	unsigned int i, to_a = 0, to_b = 0;

	if (!use_family(&t->a, ipv4) || !use_family(&t->b, ipv4))
		VT_SKIP(t, "a device has no GID of that family");
	pair = narrow(t, IBV_QPT_RC);
	ts_transfer(pair, IBV_WR_SEND, 1000);
	ts_transfer(pair, IBV_WR_RDMA_READ, 1000);
	ts_write(&pair->b, .wr_id = 9, .length = 100);
	ts_done(t, pair->b.send_cq, 9, IBV_WC_RDMA_WRITE);
	finish(trace);
	for (i = 0; i < trace->count; i++) {
		const struct seen *seen = &trace->packets[i];
		bool to_the_a = seen->dest_qpn == pair->a.qp->qp_num;

		vt_row(t, "packet %u", i + 1);
		VT_EXPECT_EQ(t, seen->ipv4, ipv4);
		VT_EXPECT(t, to_the_a || seen->dest_qpn == pair->b.qp->qp_num);
		check_ip(t, seen, to_the_a ? &t->b : &t->a, to_the_a ? &t->a : &t->b);
		*(to_the_a ? &to_a : &to_b) += 1;
	}
	/* SEND: 4 and an ACK; READ: 1 and 4; WRITE back: 1 and an ACK */
	VT_EQ(t, to_b, 4 + 1 + 1);
	VT_EQ(t, to_a, 1 + 4 + 1);
	judge(trace);
}

static void both_directions_over_ipv4(struct vt *t)
{
	both_ways(t, true);
}

static void both_directions_over_ipv6(struct vt *t)
{
	both_ways(t, false);
}

static void source_port_is_one_and_dynamic(struct vt *t)
{
	struct trace *trace = begin(t);
	struct ts_pair *pair;
	unsigned int round, i, from = 0, differ = 0;
	uint32_t port, first = 0;

	for (round = 0; round < 4; round++) {
		pair = narrow(t, IBV_QPT_RC);
		ts_transfer(pair, IBV_WR_SEND, 1000);
		ts_transfer(pair, IBV_WR_RDMA_READ, 1000);
	}
	finish(trace);
	VT_EQ(t, trace->count, 4 * (5 + 5));
	for (i = 0; i < trace->count; i++) {
		port = get(trace->packets[i].udp, 2);
		VT_CHECK(t, port >= 0xc000);
		if (i % 10 == 0)
			from = i;
		VT_EQ(t, port, get(trace->packets[from].udp, 2));
		first = first ? first : port;
		differ += port != first;
	}
	VT_CHECK(t, differ > 0); /* connections have different source ports */
}

/* --- faults --- */

static void lost_packet_is_marked(struct vt *t)
{
	struct trace *trace = begin(t);
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);
	unsigned int i;

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
					    .opcode_given = true,
					    .opcode = TS_SEND_MIDDLE,
					    .count = 1});
	ts_transfer(pair, IBV_WR_SEND, 1000);
	finish(trace);
	VT_CHECK(t, find(trace, TS_SEND_MIDDLE, 0)->lost);
	for (i = 0; i < trace->count; i++)
		VT_EQ(t, trace->packets[i].lost,
		      &trace->packets[i] == find(trace, TS_SEND_MIDDLE, 0));
	VT_EQ(t, count_of(trace, TS_SEND_FIRST, 0), 1);
	VT_EQ(t, find(trace, TS_ACK, 0)->syndrome, NAK);
	VT_EQ(t, find(trace, TS_ACK, 0)->psn, pair->a.options.a_psn + 1);
	/* retransmitted from the lost packet on, under the same PSNs */
	VT_EQ(t, count_of(trace, TS_SEND_MIDDLE, 0), 4);
	VT_EQ(t, find(trace, TS_SEND_MIDDLE, 2)->psn, pair->a.options.a_psn + 1);
	judge(trace);
}

static void packet_without_a_receiver_is_marked(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_UC);
	struct trace *trace = begin(t);
	struct ts_pair *pair;

	t->b.gid.raw[15] ^= 0x55; /* no device has this GID */
	t->b.port_attr.lid ^= 0x1500;
	pair = ts_pair(t, &options);
	ts_write(&pair->a, .wr_id = 1, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	finish(trace);
	VT_EQ(t, trace->count, 1);
	VT_CHECK(t, trace->packets[0].lost);
}

static void packet_delivered_twice_is_in_the_file_twice(struct vt *t)
{
	struct trace *trace = begin(t);
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);
	const struct seen *one, *two;

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DUPLICATE,
					    .opcode_given = true,
					    .opcode = TS_WRITE_ONLY,
					    .count = 1});
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
	finish(trace);
	VT_EQ(t, count_of(trace, TS_WRITE_ONLY, 0), 2);
	one = find(trace, TS_WRITE_ONLY, 0);
	two = find(trace, TS_WRITE_ONLY, 1);
	VT_EQ(t, one->now_ns, two->now_ns);
	VT_EQ(t, one->length_bytes, two->length_bytes);
	VT_EQ_MEM(t, two->frame, one->frame, one->length_bytes);
	judge(trace);
}

static void corrupt_packet_is_in_the_file_as_it_arrives(struct vt *t)
{
	struct trace *trace = begin(t);
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);
	const struct seen *one, *two;
	unsigned int i, bits = 0;

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_CORRUPT,
					    .opcode_given = true,
					    .opcode = TS_WRITE_ONLY,
					    .count = 1});
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
	finish(trace);
	VT_EQ(t, count_of(trace, TS_WRITE_ONLY, 0), 2);
	one = find(trace, TS_WRITE_ONLY, 0);
	two = find(trace, TS_WRITE_ONLY, 1);
	VT_EQ(t, one->length_bytes, two->length_bytes);
	/* The VCRC is right for the corrupted bytes. */
	for (i = 0; i < one->length_bytes - (on_infiniband(t) ? VCRC_BYTES : 0); i++)
		bits += (unsigned int)__builtin_popcount(one->frame[i] ^ two->frame[i]);
	VT_EQ(t, bits, 1);
	VT_CHECK(t, trace_check(trace->path, NULL) > 0);
}

/* --- acknowledgements --- */

static void ack_is_asked_for_on_the_last_and_every_32nd(struct vt *t)
{
	struct trace *trace = begin(t);
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);
	unsigned int i;

	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100 * 256 - 3);
	ts_transfer(pair, IBV_WR_SEND, 40 * 256);
	finish(trace);
	for (i = 0; i < trace->count; i++) {
		const struct seen *seen = &trace->packets[i];
		uint32_t nth = seen->psn - pair->a.options.a_psn;

		vt_row(t, "PSN 0x%06x", seen->psn);
		if (seen->dest_qpn == pair->a.qp->qp_num)
			VT_EXPECT_EQ(t, seen->ack_request, false);
		else if (nth < 100)
			VT_EXPECT_EQ(t, seen->ack_request, nth % 32 == 31 || nth == 99);
		else
			VT_EXPECT_EQ(t, seen->ack_request, nth == 131 || nth == 139);
	}
	judge(trace);
}

static void requests_of_one_instant_get_one_ack(struct vt *t)
{
	struct trace *trace = begin(t);
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);
	unsigned int i;

	for (i = 0; i < 8; i++)
		ts_recv(&pair->b, .wr_id = i, .length = 100);
	for (i = 0; i < 8; i++)
		ts_send(&pair->a, .wr_id = i, .length = 100);
	for (i = 0; i < 8; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_SEND);
	finish(trace);
	VT_EQ(t, trace->count, 8 + 1);
	VT_EQ(t, count_of(trace, TS_ACK, pair->a.qp->qp_num), 1);
	VT_EQ(t, find(trace, TS_ACK, 0)->psn, pair->a.options.a_psn + 7);
	VT_EQ(t, find(trace, TS_ACK, 0)->msn, 8);
	judge(trace);
}

static void requests_of_each_instant_get_an_ack(struct vt *t)
{
	struct trace *trace = begin(t);
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);
	unsigned int i;

	for (i = 0; i < 8; i++) {
		ts_write(&pair->a, .wr_id = i, .length = 100);
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_WRITE);
		ts_pause(t, 1000);
	}
	finish(trace);
	VT_EQ(t, count_of(trace, TS_ACK, 0), 8);
	for (i = 0; i < 8; i++) {
		VT_EQ(t, find(trace, TS_ACK, i)->psn, pair->a.options.a_psn + i);
		VT_EQ(t, find(trace, TS_ACK, i)->msn, i + 1);
	}
}

static void acks_carry_no_credits(struct vt *t)
{
	struct trace *trace = begin(t);
	unsigned int i, acks = 0;

	mixed(t);
	finish(trace);
	for (i = 0; i < trace->count; i++)
		if (trace->packets[i].syndrome != NO_ACK) {
			VT_EQ(t, trace->packets[i].syndrome, 31);
			acks++;
		}
	VT_CHECK(t, acks > 20);
}

/* --- every form of packet --- */

struct form {
	uint8_t opcode, syndrome; /* the syndrome of an ACK; of an RNR NAK without its timer */
};

#define UD 0x60

static const struct form forms[] = {
	/* RC */
	{0x00, 0},
	{0x01, 0},
	{0x02, 0},
	{0x03, 0},
	{0x04, 0},
	{0x05, 0},
	{0x06, 0},
	{0x07, 0},
	{0x08, 0},
	{0x09, 0},
	{0x0a, 0},
	{0x0b, 0},
	{0x0c, 0},
	{0x0d, 0},
	{0x0e, 0},
	{0x0f, 0},
	{0x10, 0},
	{0x12, 0},
	{0x13, 0},
	{0x14, 0},
	{TS_ACK, 31},
	{TS_ACK, RNR_NAK},
	{TS_ACK, NAK},	   /* PSN sequence */
	{TS_ACK, NAK + 1}, /* invalid request */
	{TS_ACK, NAK + 2}, /* remote access */
	{TS_ACK, NAK + 3}, /* remote operation */
	/* UC */
	{TS_UC + 0x00, 0},
	{TS_UC + 0x01, 0},
	{TS_UC + 0x02, 0},
	{TS_UC + 0x03, 0},
	{TS_UC + 0x04, 0},
	{TS_UC + 0x05, 0},
	{TS_UC + 0x06, 0},
	{TS_UC + 0x07, 0},
	{TS_UC + 0x08, 0},
	{TS_UC + 0x09, 0},
	{TS_UC + 0x0a, 0},
	{TS_UC + 0x0b, 0},
	/* UD */
	{UD + 0x04, 0},
	{UD + 0x05, 0},
};

#define FORMS TS_COUNT(forms)

static void carry_all(struct vt *t, enum ibv_qp_type type)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						     IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						     IBV_WR_RDMA_READ};
	unsigned int count = type == IBV_QPT_RC ? 5 : type == IBV_QPT_UC ? 4 : 2;
	struct ts_pair *pair = narrow(t, type);
	unsigned int i, pad;

	for (i = 0; i < count; i++)
		for (pad = 0; pad < 4; pad++) {
			ts_transfer(pair, opcodes[i], 100 - pad);
			if (type != IBV_QPT_UD)
				ts_transfer(pair, opcodes[i], 1000 - pad);
		}
	if (type != IBV_QPT_RC)
		return;
	ts_swap(&pair->a, .wr_id = 1);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_COMP_SWAP);
	ts_fetch_add(&pair->a, .wr_id = 1);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_FETCH_ADD);
}

static void draw_naks_that_are_repaired(struct vt *t)
{
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
					    .dest_qpn = pair->b.qp->qp_num,
					    .opcode_given = true,
					    .opcode = TS_WRITE_FIRST,
					    .count = 1});
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_pause(t, 1000);
	ts_recv(&pair->b, .wr_id = 2, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
}

static void draw_naks_that_end(struct vt *t)
{
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);

	ts_recv(&pair->b, .wr_id = 2, .length = 100);
	ts_send(&pair->a, .wr_id = 1, .length = 101);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_INV_REQ_ERR);
	pair = narrow(t, IBV_QPT_RC);
	ts_write(&pair->a, .wr_id = 1, .length = 1000, .rkey = ~pair->b.mr->rkey);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	pair = narrow(t, IBV_QPT_RC);
	ts_recv(&pair->b, .wr_id = 2, .length = 100, .lkey = ~pair->b.mr->lkey);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_OP_ERR);
}

static size_t form_of(const struct seen *seen)
{
	uint8_t syndrome = seen->opcode == TS_ACK ? seen->syndrome : 0;
	size_t i;

	if ((syndrome & 0x60) == RNR_NAK)
		syndrome = RNR_NAK;
	for (i = 0; i < FORMS; i++)
		if (forms[i].opcode == seen->opcode && forms[i].syndrome == syndrome)
			break;
	return i;
}

static void every_form_of_packet(struct vt *t)
{
	struct trace *trace = begin(t);
	unsigned int seen[FORMS + 1] = {0};
	unsigned int pads = 0;
	unsigned int i;

	carry_all(t, IBV_QPT_RC);
	carry_all(t, IBV_QPT_UC);
	carry_all(t, IBV_QPT_UD);
	draw_naks_that_are_repaired(t);
	draw_naks_that_end(t);
	ts_settle(t);
	finish(trace);
	for (i = 0; i < trace->count; i++) {
		seen[form_of(&trace->packets[i])]++;
		pads |= 1u << trace->packets[i].pad;
	}
	for (i = 0; i < FORMS; i++) {
		vt_row(t, "opcode 0x%02x syndrome 0x%02x", forms[i].opcode, forms[i].syndrome);
		VT_EXPECT(t, seen[i] > 0);
	}
	vt_row(t, NULL);
	VT_EQ(t, seen[FORMS], 0); /* packets of no form in the table */
	VT_EQ(t, pads, 0xf);
	judge(trace);
}

/* --- the same seed --- */

#define IOVA 0x10000000

struct other_world {
	struct vt *t;
	struct vb_sim *sim;
	struct ibv_context *a, *b, *other_a, *other_b;
};

static void end_world(void *arg)
{
	struct other_world *world = arg;
	struct vt *t = world->t;

	VT_EXPECT_OK(t, vb_close_device(world->other_a));
	VT_EXPECT_OK(t, vb_close_device(world->other_b));
	VT_EXPECT_OK(t, vb_sim_close(world->sim));
}

/* Opens a second world with two devices. They are the test's nodes until leave_world(). */
static struct other_world *enter_world(struct vt *t, uint64_t seed, const char *path)
{
	const int link_layer = t->a.port_attr.link_layer;
	const struct vb_sim_config config = {
		.seed_given = true,
		.seed = seed,
		.trace = path,
		.device_count = 2,
		.devices = {{.name = "sim0", .link_layer = link_layer},
			    {.name = "sim1", .link_layer = link_layer}},
	};
	struct other_world *world = vt_alloc(t, sizeof(*world));
	struct ibv_device **list;
	int count = 0;

	*world = (struct other_world){.t = t, .a = t->a.ctx, .b = t->b.ctx};
	world->sim = VT_PTR(t, vb_sim_open(&config));
	list = VT_PTR(t, vb_sim_device_list(world->sim, &count));
	VT_EQ(t, count, 2);
	world->other_a = VT_PTR(t, vb_open_device(list[0]));
	world->other_b = VT_PTR(t, vb_open_device(list[1]));
	vb_free_device_list(list);
	vt_defer(t, end_world, world);
	t->a.ctx = world->other_a;
	t->b.ctx = world->other_b;
	return world;
}

static void leave_world(struct other_world *world)
{
	world->t->a.ctx = world->a;
	world->t->b.ctx = world->b;
}

/* The regions have an iova of their own, so that no address of the process is in the file. */
static void lossy_writes(struct vt *t)
{
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);
	struct ibv_mr *mr =
		VT_PTR(t, vb_reg_mr_iova(pair->b.pd, pair->b.buffer, 65536, IOVA, TS_ACCESS_ALL));
	unsigned int i;

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP, .probability = 0.1});
	for (i = 0; i < 50; i++) {
		ts_write(&pair->a, .wr_id = i, .length = 1000 + i, .offset = i,
			 .remote_address = IOVA + 100 * i, .rkey = mr->rkey);
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_WRITE);
	}
	VT_OK(t, vb_dereg_mr(mr));
}

static uint8_t *whole_file(struct vt *t, const char *path, size_t *length_bytes)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes;

	VT_CHECK(t, file != NULL);
	fseek(file, 0, SEEK_END);
	*length_bytes = (size_t)ftell(file);
	rewind(file);
	bytes = vt_alloc(t, *length_bytes + 1);
	VT_EQ(t, fread(bytes, 1, *length_bytes, file), *length_bytes);
	fclose(file);
	return bytes;
}

/* The port of another world has other addresses. */
static void see_port(struct vt *t, struct vt_node *node)
{
	VT_OK(t, vb_query_port(node->ctx, node->port, &node->port_attr, sizeof(node->port_attr)));
	vt_node_choose(node);
}

static void same_seed_gives_the_same_bytes(struct vt *t)
{
	static const uint64_t seeds[] = {7, 7, 8};
	struct vt_node a = t->a, b = t->b;
	uint8_t *bytes[3];
	size_t length_bytes[3];
	char *path;
	int i;

	for (i = 0; i < 3; i++) {
		struct other_world *world;

		path = vt_alloc(t, 64);
		temporary(t, path);
		world = enter_world(t, seeds[i], path);
		see_port(t, &t->a);
		see_port(t, &t->b);
		lossy_writes(t);
		VT_OK(t, vb_sim_trace_close(world->sim));
		vb_fault_clear(world->sim);
		leave_world(world);
		t->a = a;
		t->b = b;
		bytes[i] = whole_file(t, path, &length_bytes[i]);
	}
	VT_CHECK(t, length_bytes[0] > 50 * 1000);
	VT_EQ(t, length_bytes[1], length_bytes[0]);
	VT_EQ_MEM(t, bytes[1], bytes[0], length_bytes[0]);
	VT_CHECK(t, length_bytes[2] != length_bytes[0] ||
			    memcmp(bytes[2], bytes[0], length_bytes[0]) != 0);
}

/* --- files that cannot be written --- */

static void trace_that_cannot_be_opened(struct vt *t)
{
	static const struct {
		const char *path;
		int error;
	} rows[] = {
		{"/nonexistent-folder/x.pcap", ENOENT},
		{"/tmp", EISDIR},
		{"/dev/null/x.pcap", ENOTDIR},
		{"/dev/full", ENOSPC},
	};
	struct trace *trace;
	unsigned int i;

	for (i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "%s", rows[i].path);
		VT_EXPECT_ERRNO(t, vb_sim_trace_open(ts_sim(t), rows[i].path), rows[i].error);
		VT_EXPECT_OK(t, vb_sim_trace_close(ts_sim(t))); /* no trace is open */
		mixed(t);
	}
	vt_row(t, NULL);
	trace = begin(t);
	mixed(t);
	finish(trace);
	judge(trace);
}

static void failed_open_leaves_the_old_one(struct vt *t)
{
	struct trace *one = begin(t), *two;

	mixed(t);
	finish(one);
	two = begin(t);
	mixed(t);
	VT_ERRNO(t, vb_sim_trace_open(ts_sim(t), "/nonexistent-folder/x.pcap"), ENOENT);
	VT_ERRNO(t, vb_sim_trace_open(ts_sim(t), "/dev/full"), ENOSPC);
	mixed(t);
	finish(two);
	VT_CHECK(t, one->count > 100);
	VT_EQ(t, two->count, 2 * one->count);
	judge(two);
}

/* The file has nothing of the first trace. */
static void same_file_begins_anew(struct vt *t)
{
	struct trace *one = begin(t), *two;

	mixed(t);
	finish(one);
	two = begin(t);
	mixed(t);
	VT_OK(t, vb_sim_trace_open(ts_sim(t), two->path));
	mixed(t);
	finish(two);
	VT_CHECK(t, one->count > 100);
	VT_EQ(t, two->count, one->count);
	judge(two);
}

static void opening_anew_ends_the_old_one(struct vt *t)
{
	struct trace *one = begin(t), *two;

	mixed(t);
	two = begin(t);
	mixed(t);
	finish(two);
	read_file(one);
	VT_CHECK(t, one->count > 100);
	VT_EQ(t, one->count, two->count);
	judge(one);
	judge(two);
}

struct limited {
	struct rlimit before;
	int stderr_fd;
	char said[64]; /* the path of the file that stderr goes to */
};

static void lift_limit(void *arg)
{
	struct limited *limited = arg;

	if (limited->stderr_fd < 0)
		return;
	setrlimit(RLIMIT_FSIZE, &limited->before);
	dup2(limited->stderr_fd, STDERR_FILENO);
	close(limited->stderr_fd);
	limited->stderr_fd = -1;
}

/* Limits the size of files, and sends stderr to a file. */
static struct limited *limit_files(struct vt *t, rlim_t bytes)
{
	struct limited *limited = vt_alloc(t, sizeof(*limited));
	struct rlimit limit;
	int fd;

	temporary(t, limited->said);
	limited->stderr_fd = dup(STDERR_FILENO);
	VT_CHECK(t, limited->stderr_fd >= 0);
	VT_OK(t, getrlimit(RLIMIT_FSIZE, &limited->before));
	vt_defer(t, lift_limit, limited);
	fd = open(limited->said, O_WRONLY | O_APPEND | O_CLOEXEC);
	VT_CHECK(t, fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	close(fd);
	limit = limited->before;
	limit.rlim_cur = bytes;
	signal(SIGXFSZ, SIG_IGN); /* write(2) fails instead */
	VT_OK(t, setrlimit(RLIMIT_FSIZE, &limit));
	return limited;
}

static void full_disk_disturbs_no_completion(struct vt *t)
{
	struct trace *trace = begin(t);
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);
	struct limited *limited = limit_files(t, 200000);
	unsigned int i, lines = 0;
	size_t length_bytes;
	uint8_t *said;

	for (i = 0; i < 100; i++) {
		ts_transfer(pair, IBV_WR_SEND, 20000);
		ts_transfer(pair, IBV_WR_RDMA_READ, 20000);
	}
	VT_EXPECT_ERRNO(t, vb_sim_trace_close(ts_sim(t)), EIO);
	lift_limit(limited);
	said = whole_file(t, limited->said, &length_bytes);
	for (i = 0; i < length_bytes; i++)
		lines += said[i] == '\n';
	VT_EXPECT_EQ(t, lines, 1);
	VT_EXPECT(t, strstr((char *)said, trace->path) != NULL);
	VT_EXPECT_OK(t, vb_sim_trace_close(ts_sim(t))); /* the error was reported once already */
	read_file(trace);				/* no record is torn */
	VT_CHECK(t, trace->count > 100);
	judge(trace);
	ts_transfer(pair, IBV_WR_SEND, 1000);
}

/* The callback sees the packets that the file has. */
struct watched {
	struct vt *t;
	unsigned int count;
	uint64_t now_ns[4096];
	uint32_t psn[4096];
	size_t length_bytes[4096];
	bool lost[4096];
};

static void note(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes, bool lost)
{
	struct watched *watched = arg;
	const uint8_t *bth = frame + 14 + (frame[12] == 0x08 ? 20 : 40) + 8;
	unsigned int i = watched->count++;

	if (i >= 4096)
		return;
	if (on_infiniband(watched->t))
		bth = frame + 8 + ((frame[1] & 3) == 3 ? 40 : 0);
	watched->now_ns[i] = now_ns;
	watched->psn[i] = get(bth + 9, 3);
	watched->length_bytes[i] = length_bytes;
	watched->lost[i] = lost;
}

static void stop_watching(void *arg)
{
	struct vt *t = arg;

	vb_sim_watch(ts_sim(t), NULL, NULL);
}

static void callback_sees_what_the_file_has(struct vt *t)
{
	struct watched *watched = vt_alloc(t, sizeof(*watched));
	struct trace *trace = begin(t);
	unsigned int i;

	watched->t = t;
	vb_sim_watch(ts_sim(t), note, watched);
	vt_defer(t, stop_watching, t);
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP, .probability = 0.05});
	mixed(t);
	finish(trace);
	VT_CHECK(t, trace->count > 100 && trace->count <= 4096);
	VT_EQ(t, watched->count, trace->count);
	for (i = 0; i < trace->count; i++) {
		vt_row(t, "packet %u", i + 1);
		VT_EXPECT_EQ(t, trace->packets[i].now_ns, watched->now_ns[i]);
		VT_EXPECT_EQ(t, trace->packets[i].psn, watched->psn[i]);
		VT_EXPECT_EQ(t, trace->packets[i].length_bytes, watched->length_bytes[i]);
		VT_EXPECT_EQ(t, trace->packets[i].lost, watched->lost[i]);
	}
}

static const struct vt_test tests[] = {
	{"each_packet_is_in_the_file_once", "verbena/sim.h", VIRTUAL,
	 each_packet_is_in_the_file_once},
	{"each_lost_packet_is_in_the_file_once", "verbena/sim.h", FAULTS,
	 each_lost_packet_is_in_the_file_once},
	{"callback_sees_what_the_file_has", "verbena/sim.h", FAULTS,
	 callback_sees_what_the_file_has},
	{"times_are_the_clocks", "verbena/sim.h", VIRTUAL, times_are_the_clocks},
	{"times_never_go_back", "verbena/sim.h", FAULTS, times_never_go_back},
	{"retransmission_comes_a_timeout_later", "ibv_modify_qp(3): timeout", FAULTS,
	 retransmission_comes_a_timeout_later},
	{"both_directions_over_ipv4", "unsourced", IP, both_directions_over_ipv4},
	{"both_directions_over_ipv6", "unsourced", IP, both_directions_over_ipv6},
	{"source_port_is_one_and_dynamic",
	 "Linux include/rdma/ib_verbs.h, rdma_flow_label_to_udp_sport", IP,
	 source_port_is_one_and_dynamic},
	{"lost_packet_is_marked", "unsourced", FAULTS, lost_packet_is_marked},
	{"packet_without_a_receiver_is_marked", "unsourced", WIRE,
	 packet_without_a_receiver_is_marked},
	{"packet_delivered_twice_is_in_the_file_twice", "verbena/fault.h", FAULTS,
	 packet_delivered_twice_is_in_the_file_twice},
	{"corrupt_packet_is_in_the_file_as_it_arrives", "verbena/fault.h", FAULTS,
	 corrupt_packet_is_in_the_file_as_it_arrives},
	{"ack_is_asked_for_on_the_last_and_every_32nd", "unsourced", WIRE,
	 ack_is_asked_for_on_the_last_and_every_32nd},
	{"requests_of_one_instant_get_one_ack", "unsourced", VIRTUAL,
	 requests_of_one_instant_get_one_ack},
	{"requests_of_each_instant_get_an_ack", "unsourced", VIRTUAL,
	 requests_of_each_instant_get_an_ack},
	{"acks_carry_no_credits", SRC_RXE "rxe_hdr.h, AETH_ACK_UNLIMITED", WIRE | VT_NEEDS_ATOMICS,
	 acks_carry_no_credits},
	{"every_form_of_packet", "Linux include/rdma/ib_pack.h", FAULTS | VT_NEEDS_ATOMICS,
	 every_form_of_packet},
	{"same_seed_gives_the_same_bytes", "verbena/sim.h", FAULTS, same_seed_gives_the_same_bytes},
	{"trace_that_cannot_be_opened", "open(2)", WIRE, trace_that_cannot_be_opened},
	{"opening_anew_ends_the_old_one", "verbena/sim.h", WIRE, opening_anew_ends_the_old_one},
	{"failed_open_leaves_the_old_one", "verbena/sim.h", WIRE, failed_open_leaves_the_old_one},
	{"same_file_begins_anew", "verbena/sim.h", WIRE, same_file_begins_anew},
	{"full_disk_disturbs_no_completion", "verbena/sim.h", WIRE,
	 full_disk_disturbs_no_completion},
	{NULL},
};

const struct vt_suite vt_suite_trace = {"trace", "packets in the trace file", tests,
					.simulator = true};
