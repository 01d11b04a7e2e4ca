/* SPDX-License-Identifier: MIT */
#include "sim/net/trace.h"
#include "test/support/capture.h"
#include "unity.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_BYTES 24
#define RECORD_BYTES 16

void setUp(void)
{
	capture_begin();
}

void tearDown(void)
{
	capture_end();
}

static off_t size_of(const char *name)
{
	struct stat status;

	TEST_ASSERT_EQUAL_INT(0, stat(name, &status));
	return status.st_size;
}

void test_pcapfile_empty_file_is_a_capture(void)
{
	pcapfile_close(capture_open());
	TEST_ASSERT_EQUAL_UINT(0, capture_read_back());
	TEST_ASSERT_EQUAL_INT(HEADER_BYTES, size_of(capture_path));
	TEST_ASSERT_EQUAL_STRING("", capture_error);
}

void test_pcapfile_read_back(void)
{
	struct pcapfile *file = capture_open();

	capture_add(file, 0, 1000);
	TEST_ASSERT_FALSE(pcapfile_failed(file));
	pcapfile_close(file);
	TEST_ASSERT_EQUAL_UINT(1000, capture_read_back());
}

/* The file is a whole capture after each frame, and at most 64 KiB behind. */
void test_pcapfile_grows_by_whole_records(void)
{
	struct pcapfile *file = capture_open();
	off_t given_bytes = HEADER_BYTES;

	for (unsigned int i = 0; i < 300; i++) {
		capture_add(file, i, 1);
		given_bytes += RECORD_BYTES + (off_t)capture_frame_bytes(i);
		TEST_ASSERT_TRUE(size_of(capture_path) <= given_bytes);
		TEST_ASSERT_TRUE(size_of(capture_path) >= given_bytes - 65536);
		TEST_ASSERT_TRUE(capture_read_back() <= i + 1);
	}
	pcapfile_flush(file);
	TEST_ASSERT_EQUAL_INT(given_bytes, size_of(capture_path));
	TEST_ASSERT_EQUAL_UINT(300, capture_read_back());
	pcapfile_close(file);
}

void test_pcapfile_largest_frame(void)
{
	static uint8_t frame[PCAPFILE_FRAME_BYTES_MAX];
	struct pcapfile *file = capture_open();

	for (unsigned int i = 0; i < 20; i++)
		pcapfile_frame(file, i, frame, sizeof(frame), 0);
	pcapfile_close(file);
	TEST_ASSERT_EQUAL_INT(HEADER_BYTES + 20 * (RECORD_BYTES + PCAPFILE_FRAME_BYTES_MAX),
			      size_of(capture_path));
}

void test_pcapfile_two_files_at_once(void)
{
	char other[sizeof(capture_path) + 8];
	struct pcapfile *one, *two;

	snprintf(other, sizeof(other), "%s.two", capture_path);
	one = capture_open();
	two = pcapfile_open(other, false, NULL, capture_error, sizeof(capture_error));
	capture_add(two, 0, 7);
	capture_add(one, 0, 100);
	pcapfile_close(one);
	pcapfile_close(two);
	TEST_ASSERT_EQUAL_UINT(100, capture_read_back());
	rename(other, capture_path);
	TEST_ASSERT_EQUAL_UINT(7, capture_read_back());
}

void test_pcapfile_unwritable_path(void)
{
	errno = 0;
	TEST_ASSERT_NULL(pcapfile_open("/nonexistent/x.pcap", false, NULL, capture_error,
				       sizeof(capture_error)));
	TEST_ASSERT_EQUAL_INT(ENOENT, errno);
	TEST_ASSERT_EQUAL_STRING("/nonexistent/x.pcap: No such file or directory", capture_error);
	TEST_ASSERT_NULL(pcapfile_open("/", false, NULL, capture_error, sizeof(capture_error)));
	TEST_ASSERT_EQUAL_INT(EISDIR, errno);
	TEST_ASSERT_NULL(
		pcapfile_open("/dev/full", false, NULL, capture_error, sizeof(capture_error)));
	TEST_ASSERT_EQUAL_INT(ENOSPC, errno);
	TEST_ASSERT_EQUAL_STRING("/dev/full: No space left on device", capture_error);
}

/* Opening a pipe is refused and does not wait for a reader. */
void test_pcapfile_pipe_is_refused(void)
{
	int reader;

	unlink(capture_path);
	TEST_ASSERT_EQUAL_INT(0, mkfifo(capture_path, 0600));
	TEST_ASSERT_NULL(capture_open());
	TEST_ASSERT_EQUAL_INT(ENXIO, errno);
	reader = open(capture_path, O_RDONLY | O_NONBLOCK);
	TEST_ASSERT_NULL(capture_open());
	TEST_ASSERT_EQUAL_INT(ESPIPE, errno);
	close(reader);
}

/* Wireshark's wiretap/erf_record.h: time, type, flags, lengths, then the frame. */
void test_pcapfile_infiniband_is_erf(void)
{
	struct pcapfile *file =
		pcapfile_open(capture_path, true, NULL, capture_error, sizeof(capture_error));
	static const uint64_t times_ns[] = {0, 1, 999999999, 1500000000, 7000000123};
	char why[PCAP_ERRBUF_SIZE] = "";
	struct pcap_pkthdr *header;
	uint8_t frame[100];
	const u_char *bytes;
	pcap_t *pcap;

	TEST_ASSERT_NOT_NULL_MESSAGE(file, capture_error);
	memset(frame, 0x5a, sizeof(frame));
	for (unsigned int i = 0; i < 5; i++)
		pcapfile_frame(file, times_ns[i], frame, sizeof(frame) - i,
			       SIM_FRAME_INFINIBAND | (i == 3 ? SIM_FRAME_LOST : 0));
	pcapfile_frame(file, 8000000000, frame, sizeof(frame), 0); /* Ethernet: not in this file */
	pcapfile_close(file);

	pcap = pcap_open_offline_with_tstamp_precision(capture_path, PCAP_TSTAMP_PRECISION_NANO,
						       why);
	TEST_ASSERT_NOT_NULL_MESSAGE(pcap, why);
	TEST_ASSERT_EQUAL_INT(DLT_ERF, pcap_datalink(pcap));
	for (unsigned int i = 0; i < 5; i++) {
		uint64_t time = 0, ns;

		TEST_ASSERT_EQUAL_INT(1, pcap_next_ex(pcap, &header, &bytes));
		TEST_ASSERT_EQUAL_UINT(16 + sizeof(frame) - i, header->caplen);
		TEST_ASSERT_EQUAL_UINT(16 + sizeof(frame) - i, header->len);
		TEST_ASSERT_EQUAL_UINT64(times_ns[i], (uint64_t)header->ts.tv_sec * 1000000000u +
							      (uint64_t)header->ts.tv_usec);
		for (unsigned int b = 8; b-- > 0;)
			time = time << 8 | bytes[b];
		ns = (time >> 32) * 1000000000 +
		     (((time & 0xffffffff) * 1000000000 + (UINT64_C(1) << 31)) >> 32);
		TEST_ASSERT_EQUAL_UINT64(times_ns[i], ns);
		TEST_ASSERT_EQUAL_HEX8(21, bytes[8]);
		TEST_ASSERT_EQUAL_HEX8(i == 3 ? 0x14 : 0x04, bytes[9]);
		TEST_ASSERT_EQUAL_UINT(16 + sizeof(frame) - i, bytes[10] << 8 | bytes[11]);
		TEST_ASSERT_EQUAL_UINT(0, bytes[12] | bytes[13]);
		TEST_ASSERT_EQUAL_UINT(sizeof(frame) - i, bytes[14] << 8 | bytes[15]);
		TEST_ASSERT_EQUAL_MEMORY(frame, bytes + 16, sizeof(frame) - i);
	}
	TEST_ASSERT_EQUAL_INT(PCAP_ERROR_BREAK, pcap_next_ex(pcap, &header, &bytes));
	pcap_close(pcap);
}

void test_pcapfile_ethernet_leaves_infiniband_out(void)
{
	struct pcapfile *file = capture_open();
	const uint8_t frame[60] = {0};

	pcapfile_frame(file, 5, frame, sizeof(frame), SIM_FRAME_INFINIBAND);
	capture_add(file, 0, 2);
	pcapfile_close(file);
	TEST_ASSERT_EQUAL_UINT(2, capture_read_back());
}
