/* SPDX-License-Identifier: MIT */
/*
 * A trace on disk: frames in a pcap file with times in nanoseconds. Ethernet frames stand there as
 * Ethernet, InfiniBand frames as ERF, which is the form that Wireshark reads them from: each frame
 * follows a header of 16 bytes whose type is 21, and the flag "receive error" (0x10) marks a lost
 * frame.
 *
 * The writer buffers up to 64 KiB of whole records. Frames that have been flushed are with the
 * kernel, and survive whatever ends the process. exit() writes the buffer out; _exit(), abort() and
 * signals lose it. A process that is killed in the middle of a write leaves a last record that is
 * cut short: readers of pcap show the records before it.
 *
 * A child of fork() has a copy of the buffer: flush before fork(), and abandon the file in the child.
 *
 * When a write fails (the disk is full), one line on stderr says so; the file keeps the frames that
 * were flushed before, takes no more, and the program continues. A limit of the file's size
 * (RLIMIT_FSIZE) ends the program by SIGXFSZ, unless it ignores that signal.
 *
 * Calls for one file must not overlap; different files are independent.
 */
#ifndef BACKENDS_SIM_CAPTURE_PCAPFILE_H
#define BACKENDS_SIM_CAPTURE_PCAPFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the longest frame that a file takes. */
#define PCAPFILE_FRAME_BYTES_MAX 16384

struct pcapfile;

/*
 * Creates or empties the file at path and writes its header; infiniband chooses the link type. If another
 * process writes the file, or another world of this process, the capture is a part beside it
 * (src/parts/part.h).
 *
 * before is the earlier capture of the same caller, which has been flushed and is closed afterwards; NULL:
 * none. It may be of the same path.
 *
 * Returns NULL with a sentence in error (path and reason; unchanged on success), and errno: the one
 * of open(2) or write(2), ESPIPE for a pipe or a socket, ENOMEM.
 */
struct pcapfile *pcapfile_open(const char *path, bool infiniband, struct pcapfile *before,
			       char *error, size_t error_bytes);

/* As pcapfile_open(), but opens a new part of the capture at an absolute path: whatever the file holds, it
 * stays. */
struct pcapfile *pcapfile_open_part(const char *whole, bool infiniband, char *error,
				    size_t error_bytes);

/*
 * Keeps only the last packets of the file from now on: of at most bytes_max bytes, and at least half as many, or
 * packets_max of them; 0: no limit. Call it before the first packet. While the file is written, its packets are in
 * up to two segments (pcap_tail.h), which may have twice packets_max. pcapfile_close() prints a line on stderr if
 * packets were left out. A file that is no regular one has no limit.
 */
void pcapfile_limit(struct pcapfile *file, uint64_t bytes_max, uint64_t packets_max);

/* Returns the absolute path of the file that the parts of a capture belong to; "": no regular file. */
const char *pcapfile_whole(const struct pcapfile *file);

/*
 * Adds a frame of at most PCAPFILE_FRAME_BYTES_MAX bytes at the time now_ns since 1970. file is a
 * struct pcapfile; the signature and the flags are those of struct sim_trace_sink. Leaves out a
 * frame of the other link layer.
 */
void pcapfile_frame(void *file, uint64_t now_ns, const uint8_t *frame, size_t length_bytes,
		    unsigned int flags);

/* Hands all frames added so far to the kernel. file is a struct pcapfile. */
void pcapfile_flush(void *file);

/* Returns true if a write failed; the file is then incomplete. */
bool pcapfile_failed(const struct pcapfile *file);

/*
 * Flushes and frees; file may be NULL. The last process that closes a part of a trace joins the parts.
 *
 * Returns 0, or after a line on stderr the errno value for which the parts are not joined.
 */
int pcapfile_close(struct pcapfile *file);

/* In the child of a fork(): lets go of the parent's file, and leaves the file as it is. file may be
 * NULL. */
void pcapfile_abandon(struct pcapfile *file);

#endif
