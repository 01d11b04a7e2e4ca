/* SPDX-License-Identifier: MIT */
/* `verbena trace to-script`: a capture becomes a packet script. */
#include "src/cli/trace.h"
#include "src/script/capture.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/error.h>
#include <verbena/why.h>

#define ERF_HEADER_BYTES    16
#define ERF_TYPE	    8
#define ERF_FLAGS	    9
#define ERF_TYPE_INFINIBAND 21
#define ERF_RECEIVE_ERROR   0x10
#define NS_PER_S	    1000000000ull
/* A simulated world's clock begins at 0, that of a machine in 1970. */
#define SIMULATED_LIMIT_NS (100ull * 86400 * NS_PER_S)

struct arguments {
	const char *device, *output;
	struct capture capture;
};

#define AT(field) offsetof(struct arguments, field)

static const struct cli_option options[] = {
	{"device", 0, "A",
	 "the device under test: its IP address, or its LID [the sender of\nthe first packet]",
	 NULL, cli_take_text, AT(device)},
	{"output", 'o', "FILE", "the script; - is standard output [-]", NULL, cli_take_text,
	 AT(output)},
	{0},
};

static int fail(const char *name, const char *why)
{
	fprintf(stderr, "verbena trace to-script: %s: %s\n", name, why);
	return CLI_EXIT_FAILED;
}

/* Adds a frame, or skips it if it is of another protocol. Returns false without memory. */
static bool take_frame(struct capture *capture, const struct pcap_pkthdr *header,
		       const uint8_t *frame)
{
	const size_t head_bytes = capture->infiniband ? ERF_HEADER_BYTES : 0;
	struct capture_packet packet = {
		.time_ns = (uint64_t)header->ts.tv_sec * NS_PER_S + (uint64_t)header->ts.tv_usec,
	};

	if (header->caplen < head_bytes)
		return true;
	if (vb_packet_decode(frame + head_bytes, header->caplen - head_bytes, capture->infiniband,
			     &packet.packet)) {
		packet.wrong_icrc = vb_last_reason() == VB_WHY_PACKET_ICRC;
		if (!packet.wrong_icrc)
			return true;
	}
	if (capture->infiniband)
		packet.packet.lost = frame[ERF_FLAGS] & ERF_RECEIVE_ERROR;
	if (!capture->count)
		capture->exact = packet.time_ns < SIMULATED_LIMIT_NS;
	return script_capture_add(capture, &packet);
}

static int read_capture(FILE *file, const char *name, struct capture *capture)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *pcap =
		pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, error);
	struct pcap_pkthdr *header;
	const u_char *frame;
	int status = CLI_EXIT_OK, type;

	if (!pcap) {
		fclose(file);
		return fail(name, error);
	}
	type = pcap_datalink(pcap);
	capture->infiniband = type == DLT_ERF;
	if (type != DLT_ERF && type != DLT_EN10MB)
		status = fail(name, "it is no capture of Ethernet or of ERF");
	while (!status && pcap_next_ex(pcap, &header, &frame) == 1)
		if (!take_frame(capture, header, frame))
			status = fail(name, strerror(ENOMEM));
	pcap_close(pcap);
	return status;
}

static int write_script(struct arguments *arguments, const char *name)
{
	const bool to_stdout = !arguments->output || strcmp(arguments->output, "-") == 0;
	FILE *out = to_stdout ? stdout : fopen(arguments->output, "we");
	char why[256];
	bool is_written;

	if (!out)
		return fail(arguments->output, strerror(errno));
	fprintf(out, "# From the capture %s.\n", name);
	arguments->capture.device = arguments->device;
	is_written = script_write(&arguments->capture, out, why, sizeof(why));
	if (!is_written)
		fail(name, why);
	if (to_stdout ? fflush(out) : fclose(out))
		return fail(to_stdout ? "standard output" : arguments->output, strerror(errno));
	return is_written ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}

static int run(int argc, char **argv)
{
	struct arguments arguments = {0};
	int status = cli_read_options(&cli_trace_script, argc, argv, &arguments);
	const char *name;
	FILE *file;

	if (!status)
		status = trace_open(&cli_trace_script, argc, argv, &file, &name);
	if (status)
		return status;
	status = read_capture(file, name, &arguments.capture);
	if (!status)
		status = write_script(&arguments, name);
	free(arguments.capture.packets);
	return status;
}

const struct cli_command cli_trace_script = {
	.name = "trace to-script",
	.summary = "turn a capture into a packet script",
	.synopsis = "[OPTION...] FILE",
	.about = "Writes a packet script (docs/scripts.md) that repeats a capture (pcap) of RC, UC "
		 "or UD: the\n"
		 "packets of one end are those that the device sends, the packets of the other "
		 "end those of\n"
		 "the peer. The capture begins with the connection, and is of a link without "
		 "delay.\n",
	.exits = "   0  success\n"
		 "   1  the file cannot be read, or the device has sent nothing\n"
		 "   2  wrong usage\n",
	.options = options,
	.run = run,
	.takes_file = true,
	.word = "to-script",
};
