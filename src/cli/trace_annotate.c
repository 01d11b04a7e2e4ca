/* SPDX-License-Identifier: MIT */
/*
 * `verbena trace annotate`: a capture in which the events of a log stand between the packets. An event is a frame
 * of the link type USER15, which share/wireshark/verbena.lua decodes:
 *
 *	{"verbena":1,"text":"QP 0x11: post_send 0x1 SEND, 12 bytes","failed":false,"event":LINE}
 *
 * "text" is the row of the ladder, LINE the line of the log.
 */
#include "src/cli/pcapng.h"
#include "src/cli/trace.h"
#include "src/cli/trace_align.h"
#include "src/cli/trace_link.h"
#include "src/parts/tail.h"
#include "src/picture/event.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pcap/pcap.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <verbena/packet.h>

#define NS_PER_S	 UINT64_C(1000000000)
#define ERF_HEADER_BYTES 16

enum { PACKETS, CALLS }; /* the interfaces of the new capture */

struct arguments {
	const char *output;
};

struct work {
	const char *capture; /* its name */
	struct trace_log *logs;
	size_t log_count;
	int link_type;
	struct trace_marks frames;
	uint64_t absent; /* counts the packets of logs that are not in the capture */
	FILE *out;
};

static const struct cli_option options[] = {
	{"output", 'o', "FILE", "the new capture (pcapng); - is standard output", NULL,
	 cli_take_text, offsetof(struct arguments, output)},
	{0},
};

__attribute__((format(printf, 2, 3))) static int fail(const char *path, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "verbena trace annotate: %s: ", path);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputs("\n", stderr);
	return CLI_EXIT_FAILED;
}

/* --- logs --- */

static struct trace_event *new_event(struct trace_log *log)
{
	if (log->count == log->room) {
		const size_t room = log->room ? 2 * log->room : 256;
		struct trace_event *events = realloc(log->events, room * sizeof(*events));

		if (!events)
			return NULL;
		log->events = events;
		log->room = room;
	}
	log->events[log->count] = (struct trace_event){.text = NULL};
	return &log->events[log->count++];
}

/* Returns the frame of an event; NULL if there is no memory. */
static char *frame_text(const json_t *event, const char *line)
{
	char *row = row_text(event), *whole = NULL;
	json_t *text = row ? json_string(row) : NULL;
	char *quoted = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;

	if (quoted && asprintf(&whole, "{\"verbena\":1,\"text\":%s,\"failed\":%s,\"event\":%s}",
			       quoted, event_is_failure(event) ? "true" : "false", line) < 0)
		whole = NULL;
	json_decref(text);
	free(quoted);
	free(row);
	return whole;
}

/* Returns the nanoseconds since 1970 of a date such as 2026-11-22T09:00:00.123456789Z; 0 if it is none. */
static uint64_t date_ns(const char *text)
{
	struct tm utc = {0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
	unsigned int fraction_ns = 0;

	if (!rest || sscanf(rest, ".%9uZ", &fraction_ns) != 1)
		return 0;
	return (uint64_t)timegm(&utc) * NS_PER_S + fraction_ns;
}

static bool take_event(void *arg, const json_t *object, const char *line)
{
	struct trace_log *log = arg;
	const char *kind = event_string(object, "kind");
	const json_t *packet = json_object_get(object, "packet");
	struct trace_event *event;

	if (strcmp(kind, "log") == 0) {
		log->started_ns = date_ns(event_string(object, "started"));
		return true;
	}
	event = new_event(log);
	log->no_memory = !event;
	if (!event)
		return false;
	event_number(json_object_get(object, "t"), &log->last_ns);
	event->mark.time_ns = log->last_ns;
	if (strcmp(kind, "packet") == 0) {
		event_number(json_object_get(packet, "psn"), &event->mark.psn);
		event_number(json_object_get(packet, "dest_qp"), &event->mark.dest_qpn);
		snprintf(event->mark.opcode, TRACE_OPCODE_BYTES, "%s",
			 event_string(packet, "opcode"));
		return true;
	}
	event->text = frame_text(object, line);
	log->no_memory = !event->text;
	return event->text;
}

/* --- merging --- */

static void write_event(struct work *work, struct trace_event *event)
{
	const struct pcapng_frame frame = {CALLS, event->mark.time_ns, event->text,
					   strlen(event->text), strlen(event->text)};

	pcapng_add_frame(work->out, &frame);
	free(event->text);
	event->text = NULL;
}

/* Returns the log's next event, or NULL. Skips packets from before @time_ns, which the capture does not
 * have. */
static struct trace_event *head_of(struct work *work, struct trace_log *log, uint64_t time_ns)
{
	while (log->next < log->count) {
		struct trace_event *event = &log->events[log->next];

		if (event->text || event->mark.time_ns >= time_ns)
			return event;
		work->absent++;
		log->next++;
	}
	return NULL;
}

/* Writes the events up to a time. In its log, an event that waits behind a packet of this time comes
 * after the packet. */
static void write_events(struct work *work, uint64_t time_ns)
{
	for (;;) {
		struct trace_log *first = NULL;
		uint64_t first_ns = 0;

		for (size_t i = 0; i < work->log_count; i++) {
			const struct trace_event *event = head_of(work, &work->logs[i], time_ns);

			if (!event || !event->text || event->mark.time_ns > time_ns ||
			    (first && event->mark.time_ns >= first_ns))
				continue;
			first = &work->logs[i];
			first_ns = event->mark.time_ns;
		}
		if (!first)
			return;
		write_event(work, &first->events[first->next++]);
	}
}

/* Skips the log's event of the packet that the frame shows. */
static void pass_packet(struct work *work, const struct trace_mark *mark)
{
	for (size_t i = 0; i < work->log_count; i++) {
		struct trace_log *log = &work->logs[i];
		const struct trace_event *event = head_of(work, log, mark->time_ns);

		if (!event || event->text || event->mark.time_ns != mark->time_ns ||
		    !trace_same_packet(&event->mark, mark))
			continue;
		log->next++;
		return;
	}
}

/* --- the capture --- */

static struct trace_mark mark_of(const struct pcap_pkthdr *header, const u_char *frame,
				 struct trace_link *link)
{
	const bool infiniband = link->type == DLT_ERF;
	const size_t skip = infiniband ? ERF_HEADER_BYTES : 0;
	struct trace_mark mark = {.time_ns = (uint64_t)header->ts.tv_sec * NS_PER_S +
					     (uint64_t)header->ts.tv_usec};
	struct vb_packet packet = {0};
	size_t length = header->caplen;

	frame = trace_link_frame(link, frame, &length);
	if (!frame || length < skip)
		return mark;
	vb_packet_decode(frame + skip, length - skip, infiniband, &packet);
	mark.psn = packet.psn;
	mark.dest_qpn = packet.dest_qpn;
	/* A log names an opcode without a name by its number. */
	if (packet.opcode_name)
		snprintf(mark.opcode, sizeof(mark.opcode), "%s", packet.opcode_name);
	else
		snprintf(mark.opcode, sizeof(mark.opcode), "0x%x", (unsigned int)packet.opcode);
	return mark;
}

/* Takes a frame of the capture and its mark. Returns false to stop. */
typedef bool take_frame_fn(struct work *work, const struct trace_mark *mark,
			   const struct pcapng_frame *frame);

static int read_capture(struct work *work, take_frame_fn *take)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *pcap = pcap_open_offline_with_tstamp_precision(work->capture,
							       PCAP_TSTAMP_PRECISION_NANO, error);
	struct pcap_pkthdr *header;
	struct trace_link link;
	const u_char *bytes;
	int status = CLI_EXIT_OK, got = 1;

	if (!pcap)
		return fail(work->capture, "%s", error);
	link = (struct trace_link){.type = pcap_datalink(pcap)};
	work->link_type = link.type;
	if (!trace_link_is_known(link.type))
		status = fail(work->capture, "the capture has link type %s; " TRACE_LINKS,
			      pcap_datalink_val_to_name(link.type) ?: "unknown");
	while (!status && (got = pcap_next_ex(pcap, &header, &bytes)) == 1) {
		const struct trace_mark mark = mark_of(header, bytes, &link);
		const struct pcapng_frame frame = {PACKETS, mark.time_ns, bytes, header->caplen,
						   header->len};

		if (!take(work, &mark, &frame))
			status = fail(work->capture, "out of memory");
	}
	if (got == PCAP_ERROR)
		status = fail(work->capture, "%s", pcap_geterr(pcap));
	trace_link_end(&link);
	pcap_close(pcap);
	return status;
}

static bool keep_mark(struct work *work, const struct trace_mark *mark,
		      const struct pcapng_frame *frame)
{
	struct trace_marks *frames = &work->frames;

	if (frames->count == frames->room) {
		const size_t room = frames->room ? 2 * frames->room : 1024;
		struct trace_mark *marks = realloc(frames->marks, room * sizeof(*marks));

		if (!marks)
			return false;
		frames->marks = marks;
		frames->room = room;
	}
	frames->marks[frames->count++] = *mark;
	return true;
}

static bool copy_frame(struct work *work, const struct trace_mark *mark,
		       const struct pcapng_frame *frame)
{
	write_events(work, mark->time_ns);
	pcapng_add_frame(work->out, frame);
	pass_packet(work, mark);
	return true;
}

/* Gives all logs the clock of the capture. Returns enum cli_exit. */
static int align_logs(struct work *work)
{
	int status = read_capture(work, keep_mark);

	for (size_t i = 0; i < work->log_count && !status; i++) {
		const char *wrong = trace_align(&work->logs[i], &work->frames);

		if (wrong)
			status = fail(work->logs[i].name, "%s", wrong);
	}
	return status;
}

/* Writes what comes after the last frame. */
static void write_rest(struct work *work)
{
	for (size_t i = 0; i < work->log_count; i++) {
		struct trace_log *log = &work->logs[i];

		for (; log->next < log->count; log->next++) {
			if (log->events[log->next].text)
				write_event(work, &log->events[log->next]);
			else
				work->absent++;
		}
	}
}

static void say_absent(const struct work *work)
{
	if (work->absent)
		fprintf(stderr,
			"verbena trace annotate: %s: %" PRIu64
			" packet%s of the logs %s not in the capture; take the log and the trace "
			"of the same run\n",
			work->capture, work->absent, work->absent == 1 ? "" : "s",
			work->absent == 1 ? "is" : "are");
}

static int merge(struct work *work)
{
	int status;

	pcapng_begin(work->out, "Verbena " VERBENA_VERSION);
	/* The numbers of these DLT_ are those of link types in files. */
	pcapng_add_interface(work->out, (unsigned int)work->link_type, "packets",
			     "packets of the capture");
	pcapng_add_interface(work->out, PCAPNG_USER15, "calls",
			     "events of the log, which the plugin of verbena wireshark install "
			     "decodes");
	status = read_capture(work, copy_frame);
	write_rest(work);
	say_absent(work);
	return status;
}

/* --- the files --- */

/* Closes the output. Returns an exit status; a reader that ends early is no failure. */
static int end_output(const char *name, FILE *out, int status)
{
	const bool bad = ferror(out);
	const int err = fclose(out) || bad ? errno : 0;

	return err && err != EPIPE && !status ? fail(name, "%s", strerror(err)) : status;
}

static int write_output(struct work *work, const char *output)
{
	const int status = align_logs(work);

	if (status)
		return status;
	signal(SIGPIPE, SIG_IGN);
	work->out =
		strcmp(output, "-") == 0 ? fdopen(dup(STDOUT_FILENO), "w") : fopen(output, "we");
	if (!work->out)
		return fail(output, "%s", strerror(errno));
	return end_output(output, work->out, merge(work));
}

/* Reads a log, or remembers the capture. */
static int take_file(struct work *work, const char *name)
{
	FILE *file = tail_open_log(name);
	const int first = file ? getc(file) : EOF;
	struct trace_log *log = &work->logs[work->log_count];

	if (!file)
		return fail(name, "%s", strerror(errno));
	ungetc(first, file);
	if (first != '{' && first != EOF) {
		fclose(file);
		if (work->capture)
			return fail(name, "a second capture; join captures by verbena trace merge");
		work->capture = name;
		return CLI_EXIT_OK;
	}
	work->log_count++;
	log->name = name;
	if (trace_read(file, name, take_event, log))
		return CLI_EXIT_FAILED;
	return log->no_memory ? fail(name, "out of memory") : CLI_EXIT_OK;
}

static void free_logs(struct work *work)
{
	for (size_t i = 0; i < work->log_count; i++) {
		for (size_t k = 0; k < work->logs[i].count; k++)
			free(work->logs[i].events[k].text);
		free(work->logs[i].events);
	}
	free(work->logs);
	free(work->frames.marks);
}

static int run(int argc, char **argv)
{
	struct arguments arguments = {0};
	int status = cli_read_options(&cli_trace_annotate, argc, argv, &arguments);
	struct work work = {0};

	if (status)
		return status;
	if (!arguments.output)
		return cli_bad_usage(&cli_trace_annotate, "-o FILE is needed: it names the new "
							  "capture");
	work.logs = calloc((size_t)(argc - optind) + 1, sizeof(*work.logs));
	if (!work.logs)
		return fail("logs", "out of memory");
	for (int i = optind; i < argc && !status; i++)
		status = take_file(&work, argv[i]);
	if (!status && (!work.capture || !work.log_count))
		status = cli_bad_usage(&cli_trace_annotate,
				       "a capture (pcap) and its log are needed");
	if (!status)
		status = write_output(&work, arguments.output);
	free_logs(&work);
	return status;
}

const struct cli_command cli_trace_annotate = {
	.name = "trace annotate",
	.summary = "put the events of a log between the packets of a capture",
	.synopsis = "-o FILE CAPTURE LOG...",
	.about = "Writes a capture (pcapng) for Wireshark, with the packets of a capture and, "
		 "between them, "
		 "the\n"
		 "events of the logs of the same run: calls, completions, states, timers, drops. "
		 "The plugin\n"
		 "and the profile of `verbena wireshark install` show them. The capture may be one "
		 "of tcpdump:\n"
		 "then the packets of a log, or the date of an adapter's log, give its events the "
		 "time of day.\n",
	.exits = "   0  success\n"
		 "   1  a file cannot be read or written, or a log has a wrong line\n"
		 "   2  wrong usage\n",
	.options = options,
	.run = run,
	.takes_file = true,
	.word = "annotate",
	.next = &cli_trace_script,
};
