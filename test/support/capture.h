/* SPDX-License-Identifier: MIT */
/*
 * A capture file that a test writes with pcapfile.h and reads back. The length, time and bytes of
 * frame number i follow from i.
 */
#ifndef TEST_SUPPORT_CAPTURE_H
#define TEST_SUPPORT_CAPTURE_H

#include "backends/sim/capture/pcapfile.h"

#include <stddef.h>
#include <stdint.h>

/* The path of the file, and the sentence of a failed pcapfile_open(). */
extern char capture_path[64];
extern char capture_error[256];

/* Call these before and after each test: they make an empty file and remove it. */
void capture_begin(void);
void capture_end(void);

size_t capture_frame_bytes(unsigned int i);
uint64_t capture_frame_ns(unsigned int i);

/* Opens the file for writing. Returns NULL with a sentence in capture_error. */
struct pcapfile *capture_open(void);

void capture_add(struct pcapfile *file, unsigned int first, unsigned int count);

/*
 * Reads all frames with libpcap and checks each; the file must end behind a whole frame. Returns
 * their number.
 */
unsigned int capture_read_back(void);

#endif
