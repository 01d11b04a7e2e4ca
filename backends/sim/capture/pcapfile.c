/* SPDX-License-Identifier: MIT */
#include "backends/sim/capture/pcapfile.h"

#include "sim/net/trace.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	FILES_MAX = 64,
	BUFFER_BYTES = 64 * 1024,
	RECORD_HEADER_BYTES = 16, /* pcap-savefile(5) */
	RECORD_CAPLEN_OFFSET = 8,
	SNAPLEN_BYTES = 65535,
	NS_PER_S = 1000000000,
	STACK_BYTES = 16 * 1024,
};

/* The header of a record: the Extensible Record Format, as wiretap/erf_record.h of Wireshark. */
enum {
	ERF_HEADER_BYTES = 16,
	ERF_TYPE_INFINIBAND = 21,
	ERF_VARYING_LENGTH = 0x04,
	ERF_RECEIVE_ERROR = 0x10,
};

/*
 * The buffer holds the file from base_bytes on: up to written_bytes it is on disk as well, from
 * there to whole_bytes there are whole records, and behind them the one that is being built.
 *
 * A signal handler may come in anywhere. It writes what is between written_bytes and whole_bytes
 * to its place in the file, which does no harm twice, and moves nothing else.
 */
struct pcapfile {
	int fd;
	pid_t owner;
	bool infiniband;
	char *path;
	atomic_bool failed;
	_Atomic off_t base_bytes;
	atomic_size_t written_bytes;
	atomic_size_t whole_bytes;
	size_t buffered_bytes;
	pcap_t *pcap;
	pcap_dumper_t *dumper;
	FILE *stream;
	uint8_t buffer[BUFFER_BYTES];
	_Alignas(16) uint8_t stack[STACK_BYTES]; /* of the process that writes */
};

static _Atomic(struct pcapfile *) open_files[FILES_MAX];

/* Says once what went wrong; async-signal-safe. */
static void report(const struct pcapfile *file, int error)
{
	const char *const pieces[] = {
		"verbena: trace ",
		file->path,
		": ",
		strerrordesc_np(error),
		"; the trace ends here, the run goes on\n",
	};
	struct iovec text[sizeof(pieces) / sizeof(pieces[0])];
	const int count = sizeof(pieces) / sizeof(pieces[0]);

	for (int i = 0; i < count; i++) {
		text[i].iov_base = (void *)pieces[i];
		text[i].iov_len = pieces[i] ? strlen(pieces[i]) : 0;
	}
	/* Nothing is left to try if stderr fails too. */
	if (writev(STDERR_FILENO, text, count) < 0)
		return;
}

/* The end of the last whole record in the buffer that ends at end or before. */
static size_t whole_before(const struct pcapfile *file, size_t end)
{
	size_t at = file->written_bytes;
	uint32_t caplen;

	while (end - at >= RECORD_HEADER_BYTES) {
		memcpy(&caplen, file->buffer + at + RECORD_CAPLEN_OFFSET, sizeof(caplen));
		if (end - at - RECORD_HEADER_BYTES < caplen)
			break;
		at += RECORD_HEADER_BYTES + caplen;
	}
	return at;
}

/* pwrite of the buffer from start to end; how far it came, and 0 or an errno in *error. */
static size_t write_range(const struct pcapfile *file, size_t start, size_t end, int *error)
{
	ssize_t count;

	*error = 0;
	while (start < end) {
		count = pwrite(file->fd, file->buffer + start, end - start,
			       file->base_bytes + (off_t)start);
		if (count > 0) {
			start += (size_t)count;
		} else if (count == 0 || errno != EINTR) {
			*error = count == 0 ? ENOSPC : errno;
			break;
		}
	}
	return start;
}

/* As write_range; a file size limit is an error here, not a signal that ends the program. */
static size_t write_limited(struct pcapfile *file, size_t start, size_t end, int *error)
{
	const struct timespec now = {0};
	sigset_t limit, before;

	sigemptyset(&limit);
	sigaddset(&limit, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &limit, &before);
	start = write_range(file, start, end, error);
	if (*error == EFBIG)
		sigtimedwait(&limit, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return start;
}

/* What the process that writes is told, and answers. */
struct piece {
	const struct pcapfile *file;
	size_t start;
	size_t end;
	size_t done;
	int error;
};

static int write_piece(void *arg)
{
	struct piece *piece = arg;

	piece->done = write_range(piece->file, piece->start, piece->end, &piece->error);
	return 0;
}

/*
 * As write_range, in a process of its own that shares our memory and that we wait for, as
 * posix_spawn(3) makes one. Linux stops a write between two pages when its process is killed
 * (generic_perform_write in mm/filemap.c), which cuts a record in two; this process is not the
 * one that people kill. It sends no SIGCHLD and shows up in no wait of the application.
 */
static size_t write_apart(struct pcapfile *file, size_t start, size_t end, int *error)
{
	struct piece piece = {file, start, end, start, -1};
	sigset_t all, before;
	int child;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	child = clone(write_piece, file->stack + STACK_BYTES, CLONE_VM | CLONE_VFORK, &piece);
	while (child > 0 && waitpid(child, NULL, __WCLONE) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	/* No such process, or (under valgrind) one with memory of its own: write here, again. */
	if (child < 0 || piece.error < 0)
		return write_limited(file, start, end, error);
	*error = piece.error;
	return piece.done;
}

/* How a range of the buffer gets to the file. */
typedef size_t write_fn(struct pcapfile *file, size_t start, size_t end, int *error);

/* Puts the whole records on disk; async-signal-safe where write_some is. */
static void write_out(struct pcapfile *file, write_fn *write_some)
{
	const size_t end = file->whole_bytes;
	size_t done;
	int error;

	if (file->written_bytes >= end || file->failed || getpid() != file->owner)
		return;
	done = write_some(file, file->written_bytes, end, &error);
	if (error) {
		file->failed = true;
		if (ftruncate(file->fd, file->base_bytes + (off_t)whole_before(file, done)))
			error = errno;
		report(file, error);
	}
	file->written_bytes = end;
}

static void write_out_all(void)
{
	struct pcapfile *file;

	for (unsigned int i = 0; i < FILES_MAX; i++) {
		file = open_files[i];
		if (file)
			write_out(file, write_limited);
	}
}

/* The signals that end a process. */
static const struct {
	int number;
	bool fault; /* else it comes from outside, and a program's own handling stays alone */
} fatal[] = {
	{SIGSEGV, true},  {SIGBUS, true},  {SIGILL, true},  {SIGFPE, true},   {SIGABRT, true},
	{SIGTERM, false}, {SIGINT, false}, {SIGHUP, false}, {SIGQUIT, false},
};

enum { FATAL_COUNT = sizeof(fatal) / sizeof(fatal[0]) };

/* What was there before us; written once, before our handler can run. */
static struct sigaction before_us[FATAL_COUNT];

/*
 * Passes the signal on. A fault may be somebody's daily business (a guard around a copy), so the
 * handler stays installed when there is another to call. Without one the default is restored: a
 * fault then happens again as soon as we return, with all its details for a core file, and a
 * signal that was sent is sent again.
 */
static void chain(const struct sigaction *before, int number, siginfo_t *info, void *context)
{
	if (before->sa_flags & SA_SIGINFO) {
		before->sa_sigaction(number, info, context);
	} else if (before->sa_handler == SIG_DFL) {
		sigaction(number, before, NULL);
		if (info->si_code <= 0 || info->si_code == SI_KERNEL)
			raise(number);
	} else if (before->sa_handler != SIG_IGN) {
		before->sa_handler(number);
	}
}

static void on_fatal(int number, siginfo_t *info, void *context)
{
	const int saved_errno = errno;

	write_out_all();
	for (unsigned int i = 0; i < FATAL_COUNT; i++) {
		if (fatal[i].number == number)
			chain(&before_us[i], number, info, context);
	}
	errno = saved_errno;
}

static void install_once(void)
{
	struct sigaction action;

	atexit(write_out_all);
	for (unsigned int i = 0; i < FATAL_COUNT; i++) {
		const struct sigaction *before = &before_us[i];

		if (sigaction(fatal[i].number, NULL, &before_us[i]))
			continue;
		if (!fatal[i].fault &&
		    (before->sa_flags & SA_SIGINFO || before->sa_handler != SIG_DFL))
			continue;
		memset(&action, 0, sizeof(action));
		action.sa_sigaction = on_fatal;
		action.sa_mask = before->sa_mask;
		action.sa_flags =
			SA_SIGINFO | SA_ONSTACK | (before->sa_flags & (SA_NODEFER | SA_RESTART));
		sigaction(fatal[i].number, &action, NULL);
	}
}

/* libpcap's bytes arrive here, a record in two pieces. */
static ssize_t append(void *cookie, const char *data, size_t length_bytes)
{
	struct pcapfile *file = cookie;

	if (file->failed)
		return (ssize_t)length_bytes;
	assert(length_bytes <= BUFFER_BYTES - file->buffered_bytes);
	memcpy(file->buffer + file->buffered_bytes, data, length_bytes);
	file->buffered_bytes += length_bytes;
	return (ssize_t)length_bytes;
}

void pcapfile_flush(struct pcapfile *file)
{
	const size_t end = file->whole_bytes;

	write_out(file, write_apart);
	/* First nothing is left to write, then the buffer begins anew. */
	file->whole_bytes = 0;
	file->base_bytes += (off_t)end;
	file->written_bytes = 0;
	file->buffered_bytes = 0;
}

static bool remember(struct pcapfile *file)
{
	struct pcapfile *nothing;

	for (unsigned int i = 0; i < FILES_MAX; i++) {
		nothing = NULL;
		if (atomic_compare_exchange_strong(&open_files[i], &nothing, file))
			return true;
	}
	errno = EMFILE;
	return false;
}

static void forget(const struct pcapfile *file)
{
	for (unsigned int i = 0; i < FILES_MAX; i++) {
		if (open_files[i] == file)
			open_files[i] = NULL;
	}
}

/* The chain of libpcap's writer: dead handle, stream, dumper. False with errno. */
static bool open_dumper(struct pcapfile *file)
{
	const cookie_io_functions_t functions = {.write = append};

	file->pcap = pcap_open_dead_with_tstamp_precision(
		file->infiniband ? DLT_ERF : DLT_EN10MB, SNAPLEN_BYTES, PCAP_TSTAMP_PRECISION_NANO);
	file->stream = fopencookie(file, "w", functions);
	if (!file->pcap || !file->stream) {
		errno = ENOMEM;
		return false;
	}
	setvbuf(file->stream, NULL, _IONBF, 0);
	file->dumper = pcap_dump_fopen(file->pcap, file->stream);
	if (!file->dumper) {
		errno = ENOMEM;
		return false;
	}
	file->whole_bytes = file->buffered_bytes;
	return true;
}

static bool open_fd(struct pcapfile *file)
{
	/* O_NONBLOCK: opening a pipe that nobody reads must not hang; ENXIO is its answer. */
	file->fd = open(file->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
	return file->fd >= 0 && lseek(file->fd, 0, SEEK_SET) >= 0;
}

/* The header goes to disk at once, so that a file that cannot be written is known now. */
static bool write_header(struct pcapfile *file)
{
	int error;

	write_limited(file, 0, file->whole_bytes, &error);
	if (error) {
		/* Fails on a device, which keeps nothing anyway. */
		(void)!ftruncate(file->fd, 0);
		errno = error;
		return false;
	}
	file->written_bytes = file->whole_bytes;
	pcapfile_flush(file);
	return true;
}

static void release(struct pcapfile *file)
{
	forget(file);
	if (file->dumper)
		pcap_dump_close(file->dumper);
	else if (file->stream)
		fclose(file->stream);
	if (file->pcap)
		pcap_close(file->pcap);
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file);
}

struct pcapfile *pcapfile_open(const char *path, bool infiniband, char *error, size_t error_bytes)
{
	static pthread_once_t installed = PTHREAD_ONCE_INIT;
	struct pcapfile *file = calloc(1, sizeof(*file));
	int saved_errno;

	if (file) {
		file->fd = -1;
		file->owner = getpid();
		file->infiniband = infiniband;
		file->path = strdup(path);
	}
	if (file && file->path && open_fd(file) && open_dumper(file) && write_header(file) &&
	    remember(file)) {
		pthread_once(&installed, install_once);
		return file;
	}

	saved_errno = errno;
	snprintf(error, error_bytes, "%s: %s", path, strerror(saved_errno));
	if (file)
		release(file);
	errno = saved_errno;
	return NULL;
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
	header.caplen = header.len = (bpf_u_int32)length_bytes;
	if (RECORD_HEADER_BYTES + length_bytes > BUFFER_BYTES - file->buffered_bytes)
		pcapfile_flush(file);
	pcap_dump((u_char *)file->dumper, &header, frame);
	file->whole_bytes = file->buffered_bytes;
}

bool pcapfile_failed(const struct pcapfile *file)
{
	return file->failed;
}

void pcapfile_close(struct pcapfile *file)
{
	if (!file)
		return;
	pcapfile_flush(file);
	release(file);
}
