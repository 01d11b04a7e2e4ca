/* SPDX-License-Identifier: MIT */
#include "test/support/capture.h"

#include "unity.h"

#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char capture_path[64];
char capture_error[256];

void capture_begin(void)
{
	int fd;

	strcpy(capture_path, "/tmp/verbena-test-pcapfile-XXXXXX");
	fd = mkstemp(capture_path);
	TEST_ASSERT_TRUE(fd >= 0);
	close(fd);
	memset(capture_error, 0, sizeof(capture_error));
}

void capture_end(void)
{
	unlink(capture_path);
}

size_t capture_frame_bytes(unsigned int i)
{
	return 60 + i * 37 % 4000;
}

uint64_t capture_frame_ns(unsigned int i)
{
	return 1000000007u * (uint64_t)i + 999999999u;
}

struct pcapfile *capture_open(void)
{
	return pcapfile_open(capture_path, false, NULL, capture_error, sizeof(capture_error));
}

void capture_add(struct pcapfile *file, unsigned int first, unsigned int count)
{
	uint8_t frame[4200];

	for (unsigned int i = first; i < first + count; i++) {
		memset(frame, (int)(i & 0xff), sizeof(frame));
		pcapfile_frame(file, capture_frame_ns(i), frame, capture_frame_bytes(i), 0);
	}
}

unsigned int capture_read_back(void)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	pcap_t *pcap = pcap_open_offline_with_tstamp_precision(capture_path,
							       PCAP_TSTAMP_PRECISION_NANO, why);
	struct pcap_pkthdr *header;
	const u_char *bytes;
	unsigned int count = 0;
	int result;

	TEST_ASSERT_NOT_NULL_MESSAGE(pcap, why);
	TEST_ASSERT_EQUAL_INT(DLT_EN10MB, pcap_datalink(pcap));
	while ((result = pcap_next_ex(pcap, &header, &bytes)) == 1) {
		TEST_ASSERT_EQUAL_UINT(capture_frame_bytes(count), header->caplen);
		TEST_ASSERT_EQUAL_UINT(capture_frame_bytes(count), header->len);
		TEST_ASSERT_EQUAL_UINT64(capture_frame_ns(count) / 1000000000, header->ts.tv_sec);
		TEST_ASSERT_EQUAL_UINT64(capture_frame_ns(count) % 1000000000, header->ts.tv_usec);
		TEST_ASSERT_EQUAL_HEX8(count & 0xff, bytes[0]);
		TEST_ASSERT_EQUAL_HEX8(count & 0xff, bytes[header->caplen - 1]);
		count++;
	}
	TEST_ASSERT_EQUAL_INT_MESSAGE(PCAP_ERROR_BREAK, result, pcap_geterr(pcap));
	pcap_close(pcap);
	return count;
}
