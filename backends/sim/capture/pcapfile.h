/* SPDX-License-Identifier: MIT */
/*
 * A trace on disk: frames into a pcap file (nanoseconds) of one link type: Ethernet, or for frames
 * of InfiniBand ERF, which is what Wireshark reads them from. There each frame follows a header of
 * 16 bytes whose type is 21; the flag "receive error" (0x10) marks a frame that was lost.
 *
 * The file grows by whole records. Up to 64 KiB of them wait in memory; exit(), abort() and the
 * signals that end a process (SEGV, BUS, ILL, FPE, ABRT, and TERM, INT, HUP, QUIT where they are
 * left at their default) write these out first. SIGKILL and _exit() lose them, and leave whole
 * records on disk: a short-lived process of its own does the writing (see write_apart). Only a
 * SIGKILL that hits that one too, such as one for the whole process group, can cut the last record.
 *
 * When a write fails (a full disk, a limit), one line on stderr says so; the file keeps the whole
 * records that it has, takes no more, and the program goes on.
 *
 * A child made by fork() writes nothing into its parent's files.
 *
 * Calls for one file must not overlap; different files are independent.
 */
#ifndef BACKENDS_SIM_CAPTURE_PCAPFILE_H
#define BACKENDS_SIM_CAPTURE_PCAPFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest frame that a file takes. */
#define PCAPFILE_FRAME_BYTES_MAX 16384

struct pcapfile;

/*
 * Creates or empties the file at path and writes its header; infiniband chooses the link type.
 *
 * Returns NULL with a sentence in error (path and reason; not changed on success), and errno:
 * what open(2) or write(2) gave, ESPIPE for a pipe or a socket, EMFILE for more than 64 files
 * open at a time, ENOMEM.
 */
struct pcapfile *pcapfile_open(const char *path, bool infiniband, char *error, size_t error_bytes);

/*
 * Adds a frame, of at most PCAPFILE_FRAME_BYTES_MAX bytes, with the time now_ns since 1970. file
 * is a struct pcapfile; the form, and flags, are those of struct sim_trace_sink. A frame of the
 * other link layer is left out.
 */
void pcapfile_frame(void *file, uint64_t now_ns, const uint8_t *frame, size_t length_bytes,
		    unsigned int flags);

/* Hands everything added so far to the kernel. */
void pcapfile_flush(struct pcapfile *file);

/* True when a write failed and the file is incomplete. */
bool pcapfile_failed(const struct pcapfile *file);

/* Flushes and frees; file may be NULL. */
void pcapfile_close(struct pcapfile *file);

#endif
