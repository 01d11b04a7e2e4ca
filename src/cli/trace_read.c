/* SPDX-License-Identifier: MIT */
/* Reads logs (docs/event-log.md) and capture files, whose packets become the same events. */
#include "src/cli/pcapng_read.h"
#include "src/cli/trace.h"
#include "src/cli/trace_link.h"

#include "src/log/record.h"
#include "src/picture/event.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/error.h>
#include <verbena/log.h>
#include <verbena/packet.h>

#define NS_PER_S UINT64_C(1000000000)

/* The header before each frame of InfiniBand, as wiretap/erf_record.h of Wireshark. */
enum {
	ERF_HEADER_BYTES = 16,
	ERF_TYPE_INFINIBAND = 21,
	ERF_TYPE = 8,
	ERF_FLAGS = 9,
	ERF_RECEIVE_ERROR = 0x10,
};

struct reading {
	const char *name;
	unsigned long
		line; /* for messages: the number of the line of a log, or of the frame of a capture */
	unsigned long skip; /* counts the frames that are skipped at the beginning of a capture */
	bool wrong;	    /* set once a line was wrong */
	trace_take_frame_fn *take;
	void *arg;
};

__attribute__((format(printf, 2, 3))) static void complain(struct reading *reading,
							   const char *format, ...)
{
	va_list arguments;

	reading->wrong = true;
	if (!reading->name)
		return;
	fflush(stdout);
	fprintf(stderr, "verbena trace: %s:%lu: ", reading->name, reading->line);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\n");
}

/* --- logs --- */

/* The first line says what the file is. Returns false after a message. */
static bool check_head(struct reading *reading, const json_t *head)
{
	uint64_t schema;

	if (strcmp(event_string(head, "kind"), "log") != 0 ||
	    !event_number(json_object_get(head, "schema"), &schema)) {
		complain(reading, "the file is no log of Verbena: a log begins with a line of the "
				  "kind \"log\"");
		return false;
	}
	if (schema <= VB_LOG_SCHEMA)
		return true;
	complain(reading,
		 "the log has schema %llu, of Verbena %s; this program reads schemas up to %d: "
		 "install a newer Verbena",
		 (unsigned long long)schema, event_string(head, "verbena"), VB_LOG_SCHEMA);
	return false;
}

/* Returns what is wrong with an event; NULL: nothing. */
static const char *mistake(const json_t *event)
{
	uint64_t number;
	const json_t *time = json_object_get(event, "t");

	if (!json_is_object(event))
		return "the line is no object";
	if (!json_is_string(json_object_get(event, "kind")))
		return "the event has no \"kind\"";
	if (!event_number(json_object_get(event, "n"), &number))
		return "the event has no number \"n\"";
	if (time && !event_number(time, &number))
		return "\"t\" is no number of nanoseconds";
	return NULL;
}

/* Takes a line. Returns false to stop. */
static bool take_line(struct reading *reading, const char *line, bool is_whole)
{
	json_error_t error;
	json_t *event = json_loads(line, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
	const char *wrong = event ? mistake(event) : error.text;
	bool goes_on = true;

	/* A process that was killed in the middle of a line has left the line without its end. */
	if (wrong && !is_whole)
		goes_on = false;
	else if (reading->line == 1 && !wrong)
		goes_on = check_head(reading, event) &&
			  reading->take(reading->arg, event, line, NULL);
	else if (wrong)
		complain(reading, "%s", wrong);
	else
		goes_on = reading->take(reading->arg, event, line, NULL);
	if (reading->line == 1 && wrong)
		goes_on = false;
	json_decref(event);
	return goes_on;
}

static void read_log(FILE *file, struct reading *reading)
{
	size_t size_bytes = 0;
	char *line = NULL;
	ssize_t length;
	bool goes_on = true;

	while (goes_on && (length = getline(&line, &size_bytes, file)) >= 0) {
		const bool is_whole = line[length - 1] == '\n';

		reading->line++;
		if (is_whole)
			line[length - 1] = '\0';
		/* Bytes of value 0 end the file of a process that was killed. */
		if (!is_whole && !line[0])
			break;
		if (is_whole && strlen(line) + 1 != (size_t)length)
			complain(reading, "the line has a byte of value 0");
		else
			goes_on = take_line(reading, line, is_whole);
	}
	if (ferror(file))
		complain(reading, "%s", strerror(errno));
	free(line);
}

/* --- captures --- */

struct capture {
	pcap_t *pcap;
	struct trace_link link;
	uint64_t start_ns; /* what "t" counts from */
};

/* Adds why a frame cannot be decoded. */
static void add_reason(json_t *event, enum vb_reason reason, const char *sentence)
{
	const struct vb_reason_info *info = vb_reason_info(reason);
	char number[16];

	snprintf(number, sizeof(number), "0x%x", (unsigned int)reason);
	json_object_set_new(event, "why",
			    json_pack("{s:s, s:s, s:s}", "name", info ? info->name : "unknown",
				      "number", number, "text", sentence));
}

static bool take_packet(struct reading *reading, const struct vb_packet *packet,
			const struct trace_frame *frame, uint64_t time_ns, bool is_wrong)
{
	char text[RECORD_BYTES_MAX], *line;
	/* A frame from before the first one has no time on the capture's clock. */
	const bool has_time = time_ns >= frame->start_ns;
	const struct vb_event event = {
		.kind = VB_EVENT_PACKET,
		.time_ns = time_ns - frame->start_ns,
		.qpn = packet->source_qpn,
		.values = {packet->lost},
		.packet = packet,
	};
	const struct record record = {.number = reading->line, .no_time = !has_time};
	struct line written = {text, text + sizeof(text) - 1, false};
	json_t *object;
	bool goes_on;

	record_write(&written, &event, &record);
	*written.at = '\0';
	object = json_loads(text, 0, NULL);
	if (is_wrong)
		add_reason(object, vb_last_reason(), vb_last_error());
	line = json_dumps(object, JSON_COMPACT);
	goes_on = reading->take(reading->arg, object, line, frame);
	free(line);
	json_decref(object);
	return goes_on;
}

static bool is_other(enum vb_reason reason)
{
	return reason == VB_WHY_PACKET_NOT_ROCE || reason == VB_WHY_PACKET_NOT_INFINIBAND;
}

static uint64_t frame_time_ns(const struct pcap_pkthdr *header)
{
	return (uint64_t)header->ts.tv_sec * NS_PER_S + (uint64_t)header->ts.tv_usec;
}

/* Gets a frame. Skips packets of other protocols, which captures of a network have, too. */
static bool take_frame(struct reading *reading, struct capture *capture, uint64_t time_ns,
		       const uint8_t *frame, size_t length)
{
	const bool infiniband = capture->link.type == DLT_ERF;
	struct trace_frame taken = {NULL, length, infiniband, capture->start_ns};
	struct vb_packet packet;
	bool is_lost = false;
	int err;

	frame = taken.bytes = trace_link_frame(&capture->link, frame, &taken.length_bytes);
	if (!frame)
		return true;
	if (infiniband) {
		if (taken.length_bytes < ERF_HEADER_BYTES || frame[ERF_TYPE] != ERF_TYPE_INFINIBAND)
			return true;
		is_lost = frame[ERF_FLAGS] & ERF_RECEIVE_ERROR;
		taken.bytes += ERF_HEADER_BYTES;
		taken.length_bytes -= ERF_HEADER_BYTES;
	}
	err = vb_packet_decode(taken.bytes, taken.length_bytes, infiniband, &packet);
	packet.lost |= is_lost;
	if (err && is_other(vb_last_reason()))
		return true;
	return take_packet(reading, &packet, &taken, time_ns, err);
}

/* The clock of a simulated world begins at 0, that of a machine in 1970. */
static void count_frame(struct reading *reading, struct capture *capture, uint64_t time_ns)
{
	if (++reading->line == 1 && time_ns >= LINE_NUMBER_LIMIT)
		capture->start_ns = time_ns;
}

static void read_frames(struct reading *reading, struct capture *capture)
{
	struct pcap_pkthdr *header;
	const u_char *frame;
	bool goes_on = true;
	int status = 1;

	while (goes_on && (status = pcap_next_ex(capture->pcap, &header, &frame)) == 1) {
		const uint64_t time_ns = frame_time_ns(header);

		count_frame(reading, capture, time_ns);
		if (reading->line > reading->skip)
			goes_on = take_frame(reading, capture, time_ns, frame, header->caplen);
	}
	if (status == PCAP_ERROR)
		complain(reading, "%s%s", pcap_geterr(capture->pcap),
			 strstr(pcap_geterr(capture->pcap), "type of the first interface")
				 ? "; name the file itself, not a pipe, if verbena trace annotate "
				   "wrote it"
				 : "");
}

static void read_capture(FILE *file, struct reading *reading)
{
	char error[PCAP_ERRBUF_SIZE];
	struct capture capture = {
		.pcap = pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO,
								 error),
	};
	const int type = capture.pcap ? pcap_datalink(capture.pcap) : 0;

	if (!capture.pcap) {
		complain(reading, "%s", error);
		fclose(file);
		return;
	}
	capture.link.type = type;
	if (trace_link_is_known(type))
		read_frames(reading, &capture);
	else
		complain(reading, "the capture has link type %s; " TRACE_LINKS,
			 pcap_datalink_val_to_name(type) ?: "unknown");
	trace_link_end(&capture.link);
	pcap_close(capture.pcap);
}

/* --- captures with the events of logs, as verbena trace annotate writes them --- */

/* Takes the event of a frame of USER15. Other programs may use this link type, too: their frames are left out. */
static bool take_event_frame(struct reading *reading, const struct pcapng_frame *frame)
{
	json_t *whole = json_loadb(frame->bytes, frame->length, 0, NULL);
	const json_t *event = json_object_get(whole, "event");
	const char *wrong = event ? mistake(event) : NULL;
	char *line = event && !wrong ? json_dumps(event, JSON_COMPACT) : NULL;
	bool goes_on = true;

	if (wrong)
		complain(reading, "%s", wrong);
	else if (line && json_object_get(whole, "verbena"))
		goes_on = reading->take(reading->arg, event, line, NULL);
	free(line);
	json_decref(whole);
	return goes_on;
}

static bool take_annotated(struct reading *reading, struct capture *capture,
			   const struct pcapng_frame *frame, unsigned int link_type)
{
	count_frame(reading, capture, frame->time_ns);
	if (reading->line <= reading->skip)
		return true;
	if (link_type == PCAPNG_USER15)
		return take_event_frame(reading, frame);
	/* The numbers of the link types that are known are those of libpcap. */
	capture->link.type = (int)link_type;
	return take_frame(reading, capture, frame->time_ns, frame->bytes, frame->length);
}

static void read_annotated(FILE *file, struct reading *reading)
{
	struct pcapng_reader reader = {.file = file};
	struct capture capture = {.pcap = NULL};
	enum pcapng_read got = PCAPNG_END;
	struct pcapng_frame frame;
	bool goes_on = true;

	while (goes_on && (got = pcapng_read(&reader, &frame)) == PCAPNG_FRAME)
		goes_on = take_annotated(reading, &capture, &frame,
					 reader.link_types[frame.interface]);
	if (goes_on && got == PCAPNG_DAMAGED)
		complain(reading,
			 "the file is damaged behind this frame; annotate the capture again");
	trace_link_end(&capture.link);
	pcapng_read_end(&reader);
}

bool trace_is_annotated(FILE *file)
{
	return pcapng_has_events(file);
}

/* --- both --- */

uint64_t trace_count_frames(const char *path)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *pcap = pcap_open_offline(path, error);
	struct pcap_pkthdr *header;
	const u_char *frame;
	uint64_t count = 0;

	while (pcap && pcap_next_ex(pcap, &header, &frame) == 1)
		count++;
	if (pcap)
		pcap_close(pcap);
	return count;
}

static int read_file(FILE *file, struct reading *reading)
{
	const int first = getc(file);

	if (first == EOF) {
		complain(reading, "%s",
			 ferror(file) ? strerror(errno) : "the file is empty: it is no log");
		fclose(file);
		return 1;
	}
	ungetc(first, file);
	if (first == '{') {
		read_log(file, reading);
		fclose(file);
	} else if (first == 0x0a && trace_is_annotated(file)) {
		read_annotated(file, reading);
		fclose(file);
	} else if (first == 0xa1 || first == 0xd4 || first == 0x4d || first == 0x0a) {
		read_capture(file, reading);
	} else {
		complain(reading, "the file is neither a log nor a capture (pcap)");
		fclose(file);
	}
	return reading->wrong;
}

int trace_read_frames(FILE *file, const char *name, trace_take_frame_fn *take, void *arg)
{
	struct reading reading = {.name = name, .take = take, .arg = arg};

	return read_file(file, &reading);
}

/* For those that want no frames. */
struct without_frames {
	trace_take_fn *take;
	void *arg;
};

static bool leave_out_frame(void *arg, const json_t *event, const char *line,
			    const struct trace_frame *frame)
{
	const struct without_frames *to = arg;

	return to->take(to->arg, event, line);
}

int trace_read_from(FILE *file, const char *name, uint64_t skip, trace_take_fn *take, void *arg)
{
	struct without_frames to = {take, arg};
	struct reading reading = {.name = name, .skip = skip, .take = leave_out_frame, .arg = &to};

	return read_file(file, &reading);
}

int trace_read(FILE *file, const char *name, trace_take_fn *take, void *arg)
{
	return trace_read_from(file, name, 0, take, arg);
}
