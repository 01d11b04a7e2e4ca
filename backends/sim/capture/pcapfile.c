/* SPDX-License-Identifier: MIT */
#include "backends/sim/capture/pcapfile.h"

#include "backends/sim/capture/pcap_tail.h"

#include "sim/net/trace.h"
#include "src/parts/merge.h"
#include "src/parts/part.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pcap/pcap.h>
#include <pthread.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	BUFFER_BYTES = 64 * 1024,
	RECORD_HEADER_BYTES = 16, /* pcap-savefile(5) */
	SNAPLEN_BYTES = 65535,
	NS_PER_S = 1000000000,
};

/* The header of a record: the Extensible Record Format, as wiretap/erf_record.h of Wireshark. */
enum {
	ERF_HEADER_BYTES = 16,
	ERF_TYPE_INFINIBAND = 21,
	ERF_VARYING_LENGTH = 0x04,
	ERF_RECEIVE_ERROR = 0x10,
};

struct pcapfile {
	struct part part;
	FILE *stream;
	pcap_dumper_t *dumper; /* closes the stream */
	bool infiniband;
	bool failed;
	bool continued; /* the next capture of the caller has the lock */
	bool limited;
	struct pcap_tail tail;
	size_t buffered_bytes;
	off_t written_bytes;
	char buffer[BUFFER_BYTES]; /* the stream's */
};

/* Makes the stream of the open file. */
static int make_stream(struct pcapfile *file)
{
	const int fd = file->part.fd;
	int err;

	file->stream = lseek(fd, 0, SEEK_SET) < 0 ? NULL : fdopen(fd, "w");
	if (!file->stream) {
		err = errno;
		close(fd);
		return err;
	}
	setvbuf(file->stream, file->buffer, _IOFBF, BUFFER_BYTES);
	return 0;
}

/* The header goes to disk at once, so that a file that cannot be written is found now. */
static int write_header(struct pcapfile *file)
{
	pcap_t *pcap = pcap_open_dead_with_tstamp_precision(
		file->infiniband ? DLT_ERF : DLT_EN10MB, SNAPLEN_BYTES, PCAP_TSTAMP_PRECISION_NANO);

	if (pcap) {
		file->dumper = pcap_dump_fopen(pcap, file->stream);
		pcap_close(pcap);
	}
	if (!file->dumper)
		return ENOMEM;
	memcpy(file->tail.header, file->buffer, sizeof(file->tail.header));
	if (pcap_dump_flush(file->dumper))
		return errno;
	file->written_bytes = pcap_dump_ftell64(file->dumper);
	return 0;
}

static void release(struct pcapfile *file, bool unlocks)
{
	pcap_tail_close(&file->tail, unlocks);
	if (file->dumper)
		pcap_dump_close(file->dumper);
	else if (file->stream)
		fclose(file->stream);
	free(file);
}

/* Begins the capture in the file that was opened, unless err is set. */
static struct pcapfile *begin(struct pcapfile *file, int err, char *error, size_t error_bytes)
{
	if (!err)
		err = make_stream(file);
	if (!err)
		err = write_header(file);
	if (!err)
		return file;
	snprintf(error, error_bytes, "%s: %s", file->part.name, strerror(err));
	release(file, false);
	errno = err;
	return NULL;
}

static struct pcapfile *make(bool infiniband, const char *path, char *error, size_t error_bytes)
{
	struct pcapfile *file = calloc(1, sizeof(*file));

	if (!file) {
		snprintf(error, error_bytes, "%s: %s", path, strerror(ENOMEM));
		return NULL;
	}
	file->infiniband = infiniband;
	file->tail.older.fd = file->tail.whole_fd = -1;
	return file;
}

struct pcapfile *pcapfile_open(const char *path, bool infiniband, struct pcapfile *before,
			       char *error, size_t error_bytes)
{
	const int held_fd = before ? pcap_tail_lock(&before->tail, fileno(before->stream)) : -1;
	struct pcapfile *file = make(infiniband, path, error, error_bytes);

	if (file)
		file = begin(file, part_open(path, O_WRONLY, held_fd, &file->part), error,
			     error_bytes);
	if (file && before)
		before->continued = file->part.shares_lock;
	return file;
}

struct pcapfile *pcapfile_open_part(const char *whole, bool infiniband, char *error,
				    size_t error_bytes)
{
	struct pcapfile *file = make(infiniband, whole, error, error_bytes);

	return file ? begin(file, part_open_beside(whole, O_WRONLY, &file->part), error,
			    error_bytes)
		    : NULL;
}

void pcapfile_limit(struct pcapfile *file, uint64_t bytes_max, uint64_t packets_max)
{
	file->limited = (bytes_max || packets_max) && file->part.whole[0];
	if (file->limited)
		pcap_tail_limit(&file->tail, bytes_max, packets_max);
	file->tail.bytes = PCAP_TAIL_HEADER_BYTES;
}

const char *pcapfile_whole(const struct pcapfile *file)
{
	return file->part.whole;
}

/* Seconds and a binary fraction of them, low byte first; then lengths, high byte first. */
static void put_erf(uint8_t erf[ERF_HEADER_BYTES], uint64_t now_ns, size_t length_bytes, bool lost)
{
	const uint64_t fraction = ((now_ns % NS_PER_S << 32) + NS_PER_S / 2) / NS_PER_S;
	const uint64_t time = (now_ns / NS_PER_S << 32) + fraction;
	const size_t record_bytes = ERF_HEADER_BYTES + length_bytes;

	for (unsigned int i = 0; i < 8; i++)
		erf[i] = (uint8_t)(time >> 8 * i);
	erf[8] = ERF_TYPE_INFINIBAND;
	erf[9] = (uint8_t)(ERF_VARYING_LENGTH | (lost ? ERF_RECEIVE_ERROR : 0));
	erf[10] = (uint8_t)(record_bytes >> 8);
	erf[11] = (uint8_t)record_bytes;
	erf[12] = erf[13] = 0; /* records lost by the card */
	erf[14] = (uint8_t)(length_bytes >> 8);
	erf[15] = (uint8_t)length_bytes;
}

static void flush(struct pcapfile *file)
{
	if (pcap_dump_flush(file->dumper) == 0) {
		file->written_bytes += (off_t)file->buffered_bytes;
		file->buffered_bytes = 0;
		return;
	}
	file->failed = true;
	fprintf(stderr, "verbena: trace %s: %s; the trace ends here, the program continues\n",
		file->part.name, strerror(errno));
	/* Only what earlier flushes wrote stays: a part of the buffer may end in a cut record. */
	__fpurge(file->stream);
	(void)!ftruncate(fileno(file->stream), file->written_bytes);
}

void pcapfile_flush(void *arg)
{
	struct pcapfile *file = arg;
	int cancel;

	if (!file->buffered_bytes || file->failed)
		return;
	/* The caller may hold a lock, which a thread that is cancelled in write(2) would keep. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	flush(file);
	pthread_setcancelstate(cancel, NULL);
}

/* Counts a packet, which begins a new segment if the present one is full. */
static void count(struct pcapfile *file, size_t length_bytes)
{
	int cancel;

	if (pcap_tail_is_full(&file->tail, length_bytes)) {
		pcapfile_flush(file);
		if (file->failed)
			return;
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		pcap_tail_turn(&file->tail, &file->part, fileno(file->stream));
		pthread_setcancelstate(cancel, NULL);
		file->written_bytes = PCAP_TAIL_HEADER_BYTES;
	}
	file->tail.bytes += length_bytes;
	file->tail.packets++;
}

void pcapfile_frame(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes,
		    unsigned int flags)
{
	struct pcapfile *file = arg;
	struct pcap_pkthdr header = {
		.ts = {.tv_sec = (time_t)(now_ns / NS_PER_S),
		       .tv_usec = (suseconds_t)(now_ns % NS_PER_S)},
	};
	uint8_t record[ERF_HEADER_BYTES + PCAPFILE_FRAME_BYTES_MAX];

	assert(length_bytes <= PCAPFILE_FRAME_BYTES_MAX);
	if (file->failed || file->infiniband != !!(flags & SIM_FRAME_INFINIBAND))
		return;
	if (file->infiniband) {
		put_erf(record, now_ns, length_bytes, flags & SIM_FRAME_LOST);
		memcpy(record + ERF_HEADER_BYTES, frame, length_bytes);
		frame = record;
		length_bytes += ERF_HEADER_BYTES;
	}
	if (file->limited)
		count(file, RECORD_HEADER_BYTES + length_bytes);
	/* Each write to the file ends with a whole record. */
	if (RECORD_HEADER_BYTES + length_bytes > BUFFER_BYTES - file->buffered_bytes)
		pcapfile_flush(file);
	header.caplen = header.len = (bpf_u_int32)length_bytes;
	pcap_dump((u_char *)file->dumper, &header, frame);
	file->buffered_bytes += RECORD_HEADER_BYTES + length_bytes;
}

bool pcapfile_failed(const struct pcapfile *file)
{
	return file->failed;
}

void pcapfile_abandon(struct pcapfile *file)
{
	if (!file)
		return;
	__fpurge(file->stream);
	release(file, false);
}

/* Leaves out what is more than the limit, and says so. */
static void end_tail(struct pcapfile *file)
{
	if (file->continued) {
		pcap_tail_remove(&file->tail, &file->part);
		return;
	}
	pcap_tail_trim(&file->tail);
	if (file->tail.left_out)
		fprintf(stderr,
			"verbena: trace %s: the limit left out packets at the beginning: %" PRIu64
			" of this process; raise --trace-limit (VERBENA_TRACE_LIMIT) to keep "
			"them\n",
			file->part.whole, file->tail.left_out);
}

int pcapfile_close(struct pcapfile *file)
{
	char whole[PART_NAME_BYTES], sentence[MERGE_SENTENCE_BYTES];
	int err = 0;

	if (!file)
		return 0;
	pcapfile_flush(file);
	strcpy(whole, file->part.whole);
	if (file->limited)
		end_tail(file);
	if (!file->continued)
		part_unlock(fileno(file->stream));
	release(file, !file->continued);
	if (whole[0])
		err = merge_at_end(whole, sentence);
	if (err)
		fprintf(stderr,
			"verbena: the parts of the trace %s are not joined: %s; then run "
			"`verbena trace merge %s`\n",
			whole, sentence, whole);
	return err;
}
