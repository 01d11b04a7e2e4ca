/* SPDX-License-Identifier: MIT */
/* `verbena script`: runs packet scripts. */
#include "src/script/script.h"
#include "src/cli/trace.h"

#include "src/base/measure.h"

#include <errno.h>
#include <getopt.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <verbena/error.h>
#include <verbena/sim.h>

#define SHOWN_ROWS	     12
#define SHOWN_WIDTH	     100
#define TOLERANCE_DEFAULT_NS 200000000
#define ERF_HEADER_BYTES     16
#define ERF_TYPE_INFINIBAND  21
#define NS_PER_S	     1000000000
#define SCRIPT_BYTES_MAX     (1 << 24)

struct arguments {
	struct script_place place;
	const char *trace;
	bool verbose;
	unsigned int passed, failed, known, skipped;
};

/* --- options --- */

static int take_tolerance(const struct cli_command *command, const struct cli_option *option,
			  const char *value, void *into)
{
	if (vb_measure_read(value, &vb_measure_times,
			    &((struct arguments *)into)->place.tolerance_ns) == VB_MEASURED)
		return CLI_EXIT_OK;
	return cli_bad_usage(command, "--tolerance '%s' is no time; write %s", value,
			     vb_measure_times.allowed);
}

#define AT(field) offsetof(struct arguments, field)

static const struct cli_option options[] = {
	{"profile", 0, "P",
	 "of the simulated device; with --device, and always for the\nlines 'known', the place "
	 "[spec]",
	 "Where", cli_take_word, AT(place.profile), .words = vb_sim_profile_name},
	{"infiniband", 0, NULL, "the simulated device is one of InfiniBand", NULL, cli_take_flag,
	 AT(place.infiniband)},
	{"device", 0, "D", "a device of the machine, instead of a simulated one", NULL,
	 cli_take_text, AT(place.device)},
	{"interface", 0, "IF", "with --device: the peer's end of the veth pair", NULL,
	 cli_take_text, AT(place.interface)},
	{"peer", 0, "A", "with --device: the IPv4 address of the peer, one that\nno machine has",
	 NULL, cli_take_text, AT(place.peer)},
	{"tolerance", 0, "T", "with --device: how late a packet or a completion may\ncome [200ms]",
	 NULL, take_tolerance},
	{"trace", 0, "DIR", "write each script's packets to DIR/NAME.pcap", "Output", cli_take_text,
	 AT(trace)},
	{"verbose", 'v', NULL, "print a line for each script", NULL, cli_take_flag, AT(verbose)},
	{0},
};

/* --- the packets as a capture --- */

static void write_frame(pcap_dumper_t *dumper, const struct script_frame *frame, uint64_t time_ns,
			bool infiniband)
{
	const size_t head_bytes = infiniband ? ERF_HEADER_BYTES : 0;
	const size_t all_bytes = head_bytes + frame->length_bytes;
	uint8_t bytes[ERF_HEADER_BYTES + VB_FRAME_BYTES_MAX] = {[8] = ERF_TYPE_INFINIBAND};
	const struct pcap_pkthdr header = {
		.ts = {(time_t)(time_ns / NS_PER_S), (suseconds_t)(time_ns % NS_PER_S)},
		.caplen = (bpf_u_int32)all_bytes,
		.len = (bpf_u_int32)all_bytes,
	};

	bytes[10] = (uint8_t)(all_bytes >> 8);
	bytes[11] = (uint8_t)all_bytes;
	bytes[14] = (uint8_t)(frame->length_bytes >> 8);
	bytes[15] = (uint8_t)frame->length_bytes;
	memcpy(bytes + head_bytes, frame->bytes, frame->length_bytes);
	pcap_dump((u_char *)dumper, &header, bytes);
}

/* Writes the frames of a run. Returns false if the file cannot be written. */
static bool write_capture(const struct script_wire *wire, const char *path)
{
	pcap_t *pcap = pcap_open_dead_with_tstamp_precision(wire->infiniband ? DLT_ERF : DLT_EN10MB,
							    65535, PCAP_TSTAMP_PRECISION_NANO);
	pcap_dumper_t *dumper = pcap ? pcap_dump_open(pcap, path) : NULL;
	bool is_written = dumper;

	for (unsigned int i = 0; dumper && i < wire->frame_count; i++) {
		const uint64_t start_ns = wire->exact ? 0 : wire->frames[0].time_ns;

		write_frame(dumper, &wire->frames[i], wire->frames[i].time_ns - start_ns,
			    wire->infiniband);
	}
	if (dumper) {
		is_written = !pcap_dump_flush(dumper);
		pcap_dump_close(dumper);
	}
	if (pcap)
		pcap_close(pcap);
	return is_written;
}

/* Prints the last packets of a run as a ladder. */
static void show_packets(const struct script_wire *wire)
{
	const char *folder = getenv("TMPDIR");
	char path[256];
	int file;

	snprintf(path, sizeof(path), "%s/verbena-script.XXXXXX", folder ? folder : "/tmp");
	file = mkstemp(path);
	if (file < 0)
		return;
	close(file);
	if (wire->frame_count && write_capture(wire, path)) {
		printf("  the last packets:\n");
		fflush(stdout);
		trace_show_last(path, SHOWN_ROWS, SHOWN_WIDTH, stdout);
	}
	unlink(path);
}

static void keep_packets(const struct arguments *arguments, const struct script_wire *wire,
			 const char *name)
{
	const char *base = strrchr(name, '/');
	char path[512];

	if (!arguments->trace)
		return;
	base = base ? base + 1 : name;
	snprintf(path, sizeof(path), "%s/%.*s.pcap", arguments->trace, (int)strcspn(base, "."),
		 base);
	if (!write_capture(wire, path))
		fprintf(stderr, "verbena script: %s cannot be written: %s\n", path,
			strerror(errno));
}

/* --- one script --- */

/* Reads a file; the caller frees the text. Returns NULL with errno. */
static char *read_file(const char *path)
{
	FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	char *text = file ? malloc(SCRIPT_BYTES_MAX) : NULL;
	size_t length = 0;

	if (text)
		length = fread(text, 1, SCRIPT_BYTES_MAX - 1, file);
	if (text && ferror(file)) {
		free(text);
		text = NULL;
	}
	if (text)
		text[length] = '\0';
	if (file && file != stdin)
		fclose(file);
	return text;
}

static struct script_wire *open_wire(const struct script_place *place, char *why, size_t why_bytes)
{
	return place->device ? script_wire_network(place, why, why_bytes)
			     : script_wire_sim(place, why, why_bytes);
}

/* Returns true if a line 'only' excludes the place. */
static bool is_skipped(const struct script *script, const struct script_place *place)
{
	for (unsigned int i = 0; i < script->line_count; i++)
		if (script->lines[i].statement == SCRIPT_ONLY &&
		    (script->lines[i].word[0] == 's' ? place->device != NULL : place->infiniband))
			return true;
	return false;
}

/* Counts and tells what has become of a script. */
static void tell(struct arguments *arguments, const struct script *script,
		 const struct script_wire *wire, const struct script_failure *failure,
		 bool is_right)
{
	const struct script_line *known =
		script_known(script, arguments->place.profile, arguments->place.device);

	if (!is_right && !known) {
		arguments->failed++;
		printf("FAILED ");
		script_print_failure(failure, script->path, stdout);
		show_packets(wire);
	} else if (is_right && known) {
		arguments->failed++;
		printf("FAILED %s:%u:1: the script passes, but this line says that it fails with "
		       "%s\n",
		       script->path, known->number, arguments->place.profile);
	} else if (known) {
		arguments->known++;
		if (arguments->verbose)
			printf("known  %s:%u: %s\n", script->path, failure->number, failure->text);
	} else {
		arguments->passed++;
		if (arguments->verbose)
			printf("passed %s\n", script->path);
	}
}

static void run_script(struct arguments *arguments, const struct script *script)
{
	struct script_failure failure = {0};
	struct script_wire *wire;
	char why[512];
	bool is_right;

	if (is_skipped(script, &arguments->place)) {
		arguments->skipped++;
		return;
	}
	arguments->place.connects = script->connects;
	wire = open_wire(&arguments->place, why, sizeof(why));
	if (!wire) {
		arguments->failed++;
		printf("FAILED %s: %s\n", script->path, why);
		return;
	}
	is_right = script_run(script, wire, &failure);
	tell(arguments, script, wire, &failure, is_right);
	keep_packets(arguments, wire, script->path);
	wire->close(wire);
}

static void run_file(struct arguments *arguments, const char *path)
{
	struct script_failure failure = {0};
	struct script script = {0};
	char *text = read_file(path);

	if (!text) {
		arguments->failed++;
		printf("FAILED %s: %s\n", path, strerror(errno));
		return;
	}
	if (script_parse(path, text, &script, &failure)) {
		run_script(arguments, &script);
	} else {
		arguments->failed++;
		printf("FAILED ");
		script_print_failure(&failure, path, stdout);
	}
	script_free(&script);
	free(text);
}

/* --- the command --- */

static int check_place(const struct script_place *place)
{
	if (!place->device && (place->interface || place->peer))
		return cli_bad_usage(&cli_script, "--interface and --peer are for --device");
	if (place->device && (!place->interface || !place->peer))
		return cli_bad_usage(&cli_script, "--device needs --interface and --peer");
	if (place->device && place->infiniband)
		return cli_bad_usage(&cli_script, "--infiniband is for the simulated device");
	return CLI_EXIT_OK;
}

static int run(int argc, char **argv)
{
	struct arguments arguments = {.place = {.tolerance_ns = TOLERANCE_DEFAULT_NS}};
	int status = cli_read_options(&cli_script, argc, argv, &arguments);

	if (!status)
		status = check_place(&arguments.place);
	if (!status && optind == argc)
		status = cli_bad_usage(&cli_script, "no script is given");
	if (status)
		return status;
	for (int i = optind; i < argc; i++) {
		run_file(&arguments, argv[i]);
		fflush(stdout);
	}
	printf("%u passed, %u failed, %u skipped", arguments.passed, arguments.failed,
	       arguments.skipped);
	printf(arguments.known ? ", %u known\n" : "\n", arguments.known);
	return arguments.failed ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

const struct cli_command cli_script = {
	.name = "script",
	.summary = "run packet scripts",
	.synopsis = "[OPTION...] FILE...",
	.about = "Runs packet scripts: what a device must send and complete when a program posts "
		 "work and a\n"
		 "peer sends packets. The peer is no QP: the script makes its packets. FILE - is "
		 "standard\n"
		 "input. docs/scripts.md describes the language.\n",
	.exits = "   0  all scripts passed, or failed as their lines 'known' say\n"
		 "   1  a script failed, or cannot be read\n"
		 "   2  wrong usage\n",
	.options = options,
	.run = run,
	.takes_file = true,
};
