/* SPDX-License-Identifier: MIT */
#include "backends/sim/pcapfile.h"
#include "sim/trace.h"
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

static char path[64];
static char error[256];

void setUp(void)
{
	int fd;

	strcpy(path, "/tmp/verbena-test-pcapfile-XXXXXX");
	fd = mkstemp(path);
	TEST_ASSERT_TRUE(fd >= 0);
	close(fd);
	memset(error, 0, sizeof(error));
}

void tearDown(void)
{
	unlink(path);
}

/* Frame number i: its length, time and bytes can be told from i. */
static size_t frame_bytes(unsigned int i)
{
	return 60 + i * 37 % 4000;
}

static uint64_t frame_ns(unsigned int i)
{
	return 1000000007u * (uint64_t)i + 999999999u;
}

static void add(struct pcapfile *file, unsigned int first, unsigned int count)
{
	uint8_t frame[4200];

	for (unsigned int i = first; i < first + count; i++) {
		memset(frame, (int)(i & 0xff), sizeof(frame));
		pcapfile_frame(file, frame_ns(i), frame, frame_bytes(i), 0);
	}
}

/* Reads all frames back with libpcap, checks each, and that the file ends with a whole one. */
static unsigned int read_back(void)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	pcap_t *pcap =
		pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, why);
	struct pcap_pkthdr *header;
	const u_char *bytes;
	unsigned int count = 0;
	int result;

	TEST_ASSERT_NOT_NULL_MESSAGE(pcap, why);
	TEST_ASSERT_EQUAL_INT(DLT_EN10MB, pcap_datalink(pcap));
	while ((result = pcap_next_ex(pcap, &header, &bytes)) == 1) {
		TEST_ASSERT_EQUAL_UINT(frame_bytes(count), header->caplen);
		TEST_ASSERT_EQUAL_UINT(frame_bytes(count), header->len);
		TEST_ASSERT_EQUAL_UINT64(frame_ns(count) / 1000000000, header->ts.tv_sec);
		TEST_ASSERT_EQUAL_UINT64(frame_ns(count) % 1000000000, header->ts.tv_usec);
		TEST_ASSERT_EQUAL_HEX8(count & 0xff, bytes[0]);
		TEST_ASSERT_EQUAL_HEX8(count & 0xff, bytes[header->caplen - 1]);
		count++;
	}
	TEST_ASSERT_EQUAL_INT_MESSAGE(PCAP_ERROR_BREAK, result, pcap_geterr(pcap));
	pcap_close(pcap);
	return count;
}

static off_t size_of(const char *name)
{
	struct stat status;

	TEST_ASSERT_EQUAL_INT(0, stat(name, &status));
	return status.st_size;
}

void test_pcapfile_empty_file_is_a_capture(void)
{
	pcapfile_close(pcapfile_open(path, false, error, sizeof(error)));
	TEST_ASSERT_EQUAL_UINT(0, read_back());
	TEST_ASSERT_EQUAL_INT(HEADER_BYTES, size_of(path));
	TEST_ASSERT_EQUAL_STRING("", error);
}

void test_pcapfile_read_back(void)
{
	struct pcapfile *file = pcapfile_open(path, false, error, sizeof(error));

	add(file, 0, 1000);
	TEST_ASSERT_FALSE(pcapfile_failed(file));
	pcapfile_close(file);
	TEST_ASSERT_EQUAL_UINT(1000, read_back());
}

/* At any moment the file is a whole capture, at most 64 KiB behind. */
void test_pcapfile_grows_by_whole_records(void)
{
	struct pcapfile *file = pcapfile_open(path, false, error, sizeof(error));
	off_t given_bytes = HEADER_BYTES;

	for (unsigned int i = 0; i < 300; i++) {
		add(file, i, 1);
		given_bytes += RECORD_BYTES + (off_t)frame_bytes(i);
		TEST_ASSERT_TRUE(size_of(path) <= given_bytes);
		TEST_ASSERT_TRUE(size_of(path) >= given_bytes - 65536);
		TEST_ASSERT_TRUE(read_back() <= i + 1);
	}
	pcapfile_flush(file);
	TEST_ASSERT_EQUAL_INT(given_bytes, size_of(path));
	TEST_ASSERT_EQUAL_UINT(300, read_back());
	pcapfile_close(file);
}

void test_pcapfile_largest_frame(void)
{
	static uint8_t frame[PCAPFILE_FRAME_BYTES_MAX];
	struct pcapfile *file = pcapfile_open(path, false, error, sizeof(error));

	for (unsigned int i = 0; i < 20; i++)
		pcapfile_frame(file, i, frame, sizeof(frame), 0);
	pcapfile_close(file);
	TEST_ASSERT_EQUAL_INT(HEADER_BYTES + 20 * (RECORD_BYTES + PCAPFILE_FRAME_BYTES_MAX),
			      size_of(path));
}

void test_pcapfile_two_files_at_once(void)
{
	char other[sizeof(path) + 8];
	struct pcapfile *one, *two;

	snprintf(other, sizeof(other), "%s.two", path);
	one = pcapfile_open(path, false, error, sizeof(error));
	two = pcapfile_open(other, false, error, sizeof(error));
	add(two, 0, 7);
	add(one, 0, 100);
	pcapfile_close(one);
	pcapfile_close(two);
	TEST_ASSERT_EQUAL_UINT(100, read_back());
	rename(other, path);
	TEST_ASSERT_EQUAL_UINT(7, read_back());
}

void test_pcapfile_unwritable_path(void)
{
	errno = 0;
	TEST_ASSERT_NULL(pcapfile_open("/nonexistent/x.pcap", false, error, sizeof(error)));
	TEST_ASSERT_EQUAL_INT(ENOENT, errno);
	TEST_ASSERT_EQUAL_STRING("/nonexistent/x.pcap: No such file or directory", error);
	TEST_ASSERT_NULL(pcapfile_open("/", false, error, sizeof(error)));
	TEST_ASSERT_EQUAL_INT(EISDIR, errno);
	TEST_ASSERT_NULL(pcapfile_open("/dev/full", false, error, sizeof(error)));
	TEST_ASSERT_EQUAL_INT(ENOSPC, errno);
	TEST_ASSERT_EQUAL_STRING("/dev/full: No space left on device", error);
}

/* Opening a pipe is refused and does not wait for a reader. */
void test_pcapfile_pipe_is_refused(void)
{
	int reader;

	unlink(path);
	TEST_ASSERT_EQUAL_INT(0, mkfifo(path, 0600));
	TEST_ASSERT_NULL(pcapfile_open(path, false, error, sizeof(error)));
	TEST_ASSERT_EQUAL_INT(ENXIO, errno);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	TEST_ASSERT_NULL(pcapfile_open(path, false, error, sizeof(error)));
	TEST_ASSERT_EQUAL_INT(ESPIPE, errno);
	close(reader);
}

void test_pcapfile_64_files_at_most(void)
{
	struct pcapfile *files[64];
	char name[sizeof(path) + 8];

	for (unsigned int i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "%s.%u", path, i);
		files[i] = pcapfile_open(name, false, error, sizeof(error));
		unlink(name);
		TEST_ASSERT_NOT_NULL_MESSAGE(files[i], error);
	}
	TEST_ASSERT_NULL(pcapfile_open(path, false, error, sizeof(error)));
	TEST_ASSERT_EQUAL_INT(EMFILE, errno);
	for (unsigned int i = 0; i < 64; i++)
		pcapfile_close(files[i]);
	files[0] = pcapfile_open(path, false, error, sizeof(error));
	TEST_ASSERT_NOT_NULL(files[0]);
	pcapfile_close(files[0]);
}

/* Wireshark's wiretap/erf_record.h: time, type, flags, lengths, then the frame. */
void test_pcapfile_infiniband_is_erf(void)
{
	struct pcapfile *file = pcapfile_open(path, true, error, sizeof(error));
	static const uint64_t times_ns[] = {0, 1, 999999999, 1500000000, 7000000123};
	char why[PCAP_ERRBUF_SIZE] = "";
	struct pcap_pkthdr *header;
	uint8_t frame[100];
	const u_char *bytes;
	pcap_t *pcap;

	TEST_ASSERT_NOT_NULL_MESSAGE(file, error);
	memset(frame, 0x5a, sizeof(frame));
	for (unsigned int i = 0; i < 5; i++)
		pcapfile_frame(file, times_ns[i], frame, sizeof(frame) - i,
			       SIM_FRAME_INFINIBAND | (i == 3 ? SIM_FRAME_LOST : 0));
	pcapfile_frame(file, 8000000000, frame, sizeof(frame), 0); /* Ethernet: not in this file */
	pcapfile_close(file);

	pcap = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, why);
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
	struct pcapfile *file = pcapfile_open(path, false, error, sizeof(error));
	const uint8_t frame[60] = {0};

	pcapfile_frame(file, 5, frame, sizeof(frame), SIM_FRAME_INFINIBAND);
	add(file, 0, 2);
	pcapfile_close(file);
	TEST_ASSERT_EQUAL_UINT(2, read_back());
}
