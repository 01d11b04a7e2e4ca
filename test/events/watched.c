/* SPDX-License-Identifier: MIT */
/*
 * Linked with the program `verbena`, it watches the events of the simulator from the beginning, and
 * compares the packets among them with each trace that the program closes: one for one. A difference
 * aborts, so that a conformance test fails.
 *
 * It adds a line to the file that $WATCHED_TRACES names for each trace: the number of packets. A trace is left
 * out if another world was open at the same time: devices of two worlds may have the same names.
 */
#include "test/support/same_packet.h"

#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <verbena/backend.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

/* The header of ERF before each frame of InfiniBand: backends/sim/capture/pcapfile.h. */
enum { ERF_BYTES = 16, ERF_FLAGS_AT = 9, ERF_RECEIVE_ERROR = 0x10 };

struct noted {
	struct vb_packet packet;
	uint64_t time_ns;
	uint32_t qpn;
	bool lost, injected;
};

static struct noted *noted;
static size_t count, room;
static char *path; /* of the trace that is open; NULL: none */
static pid_t opener;
static unsigned int worlds; /* counts the open worlds of vb_sim_open() */
static bool other_worlds;   /* set if such a world was open while the trace was */

static void differ(size_t number, const char *what)
{
	fprintf(stderr, "%s, packet %zu: %s differs between the trace and the event\n", path,
		number, what);
	abort();
}

static void take(void *arg, const struct vb_event *event)
{
	(void)arg;
	if (!event->device || event->kind == VB_EVENT_NONE)
		differ(count, "the device or the kind");
	if (!path || event->kind != VB_EVENT_PACKET)
		return;
	if (count == room) {
		room = room ? 2 * room : 1024;
		noted = realloc(noted, room * sizeof(*noted));
		if (!noted)
			abort();
	}
	noted[count++] = (struct noted){
		.packet = *event->packet,
		.time_ns = event->time_ns,
		.qpn = event->qpn,
		.lost = event->values[0],
		.injected = event->values[1],
	};
}

static void check_frame(size_t number, const struct pcap_pkthdr *header, const uint8_t *frame,
			bool infiniband)
{
	const uint64_t time_ns =
		(uint64_t)header->ts.tv_sec * 1000000000 + (uint64_t)header->ts.tv_usec;
	const struct noted *event = &noted[number];
	const size_t skip_bytes = infiniband ? ERF_BYTES : 0;
	struct vb_packet packet;
	const char *field;

	if (number >= count)
		differ(number, "the number of packets");
	vb_packet_decode(frame + skip_bytes, header->caplen - skip_bytes, infiniband, &packet);
	if (infiniband)
		packet.lost = frame[ERF_FLAGS_AT] & ERF_RECEIVE_ERROR;
	/* A test may inject a frame that has the mark of a lost one. */
	if (event->injected)
		packet.lost = false;
	field = packet_difference(&packet, &event->packet);
	if (field)
		differ(number, field);
	if (event->lost != packet.lost)
		differ(number, "lost");
	if (event->time_ns != time_ns)
		differ(number, "the time");
	if (!event->injected && !event->qpn)
		differ(number, "the QP that sends");
	if (!(packet.has & VB_PACKET_HAS_DETH) && event->qpn != event->packet.source_qpn)
		differ(number, "the QP that sends");
}

static void report(void)
{
	const char *name = getenv("WATCHED_TRACES");
	FILE *file = name ? fopen(name, "a") : NULL;

	if (!file)
		abort();
	fprintf(file, "%zu\n", count);
	fclose(file);
}

static void check_trace(void)
{
	char why[PCAP_ERRBUF_SIZE];
	pcap_t *pcap =
		pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, why);
	struct pcap_pkthdr *header;
	const uint8_t *frame;
	size_t number = 0;

	if (!pcap)
		return; /* a test has removed the file */
	for (; pcap_next_ex(pcap, &header, &frame) == 1; number++)
		check_frame(number, header, frame, pcap_datalink(pcap) != DLT_EN10MB);
	pcap_close(pcap);
	if (number != count)
		differ(number, "the number of packets");
	report();
}

static void forget(void)
{
	free(path);
	path = NULL;
	count = 0;
}

int __real_vb_sim_trace_open(struct vb_sim *sim, const char *file);
int __wrap_vb_sim_trace_open(struct vb_sim *sim, const char *file);
int __wrap_vb_sim_trace_open(struct vb_sim *sim, const char *file)
{
	const int err = __real_vb_sim_trace_open(sim, file);

	if (err)
		return err;
	forget();
	path = strdup(file);
	opener = getpid();
	other_worlds = worlds;
	return 0;
}

int __real_vb_sim_trace_close(struct vb_sim *sim);
int __wrap_vb_sim_trace_close(struct vb_sim *sim);
int __wrap_vb_sim_trace_close(struct vb_sim *sim)
{
	const int err = __real_vb_sim_trace_close(sim);

	if (!err && path && !other_worlds && opener == getpid())
		check_trace();
	forget();
	return err;
}

struct vb_sim *__real_vb_sim_open(const struct vb_sim_config *config);
struct vb_sim *__wrap_vb_sim_open(const struct vb_sim_config *config);
struct vb_sim *__wrap_vb_sim_open(const struct vb_sim_config *config)
{
	struct vb_sim *sim = __real_vb_sim_open(config);

	worlds += sim != NULL;
	other_worlds = true;
	return sim;
}

int __real_vb_sim_close(struct vb_sim *sim);
int __wrap_vb_sim_close(struct vb_sim *sim);
int __wrap_vb_sim_close(struct vb_sim *sim)
{
	const int err = __real_vb_sim_close(sim);

	worlds -= !err;
	return err;
}

__attribute__((constructor)) static void watch(void)
{
	vb_find_backend("sim")->watch(take, NULL);
}
