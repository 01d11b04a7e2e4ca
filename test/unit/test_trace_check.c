/* SPDX-License-Identifier: MIT */
/*
 * The checker of traces, with good traces and one trace for each violation.
 */
#include "test/support/trace_check.h"
#include "unity.h"

#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define A	    1 /* last byte of the addresses; also the QPN */
#define B	    2
#define PAYLOAD_MAX 4096
#define LOST	    true

static char path[64];
static pcap_t *dead;
static pcap_dumper_t *dumper;
static uint64_t now_ns;
static char *text;
static size_t text_bytes;

void setUp(void)
{
	int fd;

	strcpy(path, "/tmp/verbena-test-trace-XXXXXX");
	fd = mkstemp(path);
	TEST_ASSERT_TRUE(fd >= 0);
	close(fd);
	dead = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, 65535, PCAP_TSTAMP_PRECISION_NANO);
	dumper = pcap_dump_open(dead, path);
	TEST_ASSERT_NOT_NULL(dumper);
	now_ns = 1000;
	text = NULL;
}

void tearDown(void)
{
	pcap_close(dead);
	unlink(path);
	free(text);
}

/* --- frames --- */

struct frame {
	uint8_t to; /* A or B */
	bool lost;
	uint8_t opcode;
	bool ack_request;
	uint32_t psn;
	uint8_t syndrome; /* of opcodes with AETH */
	uint32_t msn;
	uint32_t length; /* RETH */
	uint64_t value;	 /* of an atomic's answer */
	uint32_t bytes;	 /* of payload */
	uint8_t fill;
	bool bad_icrc;
};

static uint8_t *put(uint8_t *at, uint64_t value, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
	return at + bytes;
}

/* Computes the CRC bit by bit, unlike the checker. */
static uint32_t crc_of(const uint8_t *bytes, size_t length_bytes)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < length_bytes; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static void put_icrc(uint8_t *ip, uint8_t *end, bool bad)
{
	static const uint8_t ones[] = {1, 8, 10, 11, 26, 27, 32};
	uint8_t covered[8 + 20 + 8 + 12 + 28 + PAYLOAD_MAX];
	size_t bytes = (size_t)(end - ip);
	uint32_t crc;

	memset(covered, 0xff, 8);
	memcpy(covered + 8, ip, bytes);
	for (unsigned int i = 0; i < sizeof(ones); i++)
		covered[8 + ones[i]] = 0xff;
	crc = crc_of(covered, 8 + bytes) ^ bad;
	for (unsigned int i = 0; i < 4; i++)
		end[i] = (uint8_t)(crc >> 8 * i);
}

static uint8_t *put_ip(uint8_t *at, const struct frame *f, size_t bytes)
{
	uint8_t *ip = at;
	uint32_t sum = 0;

	at = put(at, 0x4500, 2);
	at = put(at, bytes, 2);
	at = put(at, 0x00004000, 4);
	at = put(at, 0x4011, 2); /* 64 hops, UDP */
	at = put(at, 0, 2);
	at = put(at, 0x0a000000 | (f->to == A ? B : A), 4);
	at = put(at, 0x0a000000 | f->to, 4);
	for (unsigned int i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	put(ip + 10, 0xffff & ~((sum & 0xffff) + (sum >> 16)), 2);
	return at;
}

static uint8_t *put_headers(uint8_t *at, const struct frame *f)
{
	bool xrc = f->opcode >> 5 == 5;
	uint8_t opcode = xrc ? f->opcode & 0x1f : f->opcode;

	/* XRCETH, of requests: all but 0x0d to 0x12 */
	if (xrc && (opcode < 0x0d || opcode > 0x12))
		at = put(at, 5, 4);
	switch (opcode) {
	case 0x06: /* RETH */
	case 0x0a:
	case 0x0c:
	case 0x1d:
		at = put(at, 0x1000, 8);
		at = put(at, 77, 4);
		return put(at, f->length, 4);
	case 0x0d: /* AETH */
	case 0x0f:
	case 0x10:
	case 0x11:
	case 0x12:
		at = put(at, f->syndrome, 1);
		at = put(at, f->msn, 3);
		return opcode == 0x12 ? put(at, f->value, 8) : at;
	case 0x13: /* AtomicETH */
	case 0x14:
		memset(at, 0, 28);
		return at + 28;
	case 0x64: /* DETH */
		at = put(at, 0x11111111, 4);
		return put(at, f->to == A ? B : A, 4);
	default:
		return at;
	}
}

static size_t make(const struct frame *f, uint8_t *bytes)
{
	uint8_t *ip, *udp, *at = bytes;
	unsigned int pad = (4 - f->bytes % 4) % 4;

	at = put(at, f->lost ? 0x02000000dead : 0x020000000000 | f->to, 6);
	at = put(at, 0x020000000000 | (f->to == A ? B : A), 6);
	ip = put(at, 0x0800, 2);
	udp = ip + 20;
	at = put(udp, 0xc123, 2);
	at = put(at, 4791, 2) + 4;
	at = put(at, f->opcode, 1);
	at = put(at, 0x40 | pad << 4, 1);
	at = put(at, 0xffff, 2);
	at = put(at, f->to, 4);
	at = put(at, (uint32_t)f->ack_request << 31 | f->psn, 4);
	at = put_headers(at, f);
	memset(at, f->fill, f->bytes);
	memset(at + f->bytes, 0, pad);
	at += f->bytes + pad;
	put(udp + 4, (uint64_t)(at + 4 - udp), 2);
	put(udp + 6, 0, 2);
	put_ip(ip, f, (size_t)(at + 4 - ip));
	put_icrc(ip, at, f->bad_icrc);
	return (size_t)(at + 4 - bytes);
}

static void add_bytes(const uint8_t *bytes, size_t length_bytes)
{
	struct pcap_pkthdr header = {.caplen = (bpf_u_int32)length_bytes,
				     .len = (bpf_u_int32)length_bytes};

	header.ts.tv_sec = (time_t)(now_ns / 1000000000u);
	header.ts.tv_usec = (suseconds_t)(now_ns % 1000000000u);
	pcap_dump((u_char *)dumper, &header, bytes);
}

static void add(struct frame f)
{
	uint8_t bytes[14 + 20 + 8 + 12 + 28 + PAYLOAD_MAX + 4];
	size_t length_bytes = make(&f, bytes);

	add_bytes(bytes, length_bytes);
}

#define ADD(...) add((struct frame){__VA_ARGS__})
/* From A to B, and back. */
#define REQUEST(op, number, ...) ADD(.to = B, .opcode = (op), .psn = (number), __VA_ARGS__)
#define ANSWER(op, number, count, ...) \
	ADD(.to = A, .opcode = (op), .psn = (number), .msn = (count), .syndrome = 31, __VA_ARGS__)
#define SEND(number, ...)  REQUEST(0x04, number, .bytes = 10, __VA_ARGS__)
#define ACK(number, count) ANSWER(0x11, number, count, .lost = false)
#define REFUSE(number, count, value) \
	ADD(.to = A, .opcode = 0x11, .psn = (number), .msn = (count), .syndrome = (value))

static int check(void)
{
	FILE *report = open_memstream(&text, &text_bytes);
	int violations;

	TEST_ASSERT_NOT_NULL(report);
	pcap_dump_close(dumper);
	violations = trace_check(path, report);
	fclose(report);
	return violations;
}

static void is_good(void)
{
	int violations = check();

	TEST_ASSERT_EQUAL_INT_MESSAGE(0, violations, text);
}

/* Expects these violations, with their words and the number of the packet. */
static void is_bad(int count, const char *words)
{
	int violations = check();

	TEST_ASSERT_EQUAL_INT_MESSAGE(count, violations, text);
	TEST_ASSERT_TRUE_MESSAGE(strstr(text, words) != NULL, text);
}

/* --- good ones --- */

void test_an_empty_trace_is_good(void)
{
	is_good();
}

void test_a_file_that_is_not_there_is_no_trace(void)
{
	pcap_dump_close(dumper);
	TEST_ASSERT_EQUAL_INT(-1, trace_check("/nonexistent/x.pcap", NULL));
}

void test_every_kind_of_message_is_good(void)
{
	SEND(0xfffffe);
	REQUEST(0x06, 0xffffff, .length = 600, .bytes = 256);
	REQUEST(0x07, 0, .bytes = 256);
	REQUEST(0x08, 1, .bytes = 88, .ack_request = true);
	ACK(1, 2);
	REQUEST(0x0c, 2, .length = 513);
	REQUEST(0x14, 5);
	ANSWER(0x0d, 2, 3, .bytes = 256);
	ADD(.to = A, .opcode = 0x0e, .psn = 3, .bytes = 256);
	ANSWER(0x0f, 4, 3, .bytes = 1);
	ANSWER(0x12, 5, 4, .value = 9);
	SEND(6);
	ACK(6, 5);
	is_good();
}

void test_xrc_is_as_rc_with_a_header_more(void)
{
	REQUEST(0xa4, 0, .bytes = 3);
	REQUEST(0xaa, 1, .length = 5, .bytes = 5);
	REQUEST(0xac, 2, .length = 8);
	REQUEST(0xb4, 3);
	ANSWER(0xb0, 2, 3, .bytes = 8);
	ANSWER(0xb2, 3, 4, .value = 9);
	REQUEST(0xa4, 4);
	ANSWER(0xb1, 4, 5);
	is_good();
}

void test_xrc_gap_is_found(void)
{
	REQUEST(0xa4, 0);
	REQUEST(0xa4, 2);
	is_bad(1, "packet 2: psn: 0x000002, the next is 0x000001");
}

void test_loss_and_repair_are_good(void)
{
	SEND(0, .fill = 1);
	SEND(1, .fill = 2, .lost = true);
	SEND(2, .fill = 3);
	REFUSE(1, 1, 0x60);
	SEND(1, .fill = 2);
	SEND(2, .fill = 3, .ack_request = true); /* AckReq may differ */
	ACK(2, 3);
	is_good();
}

void test_a_read_that_resumes_is_good(void)
{
	uint8_t bytes[256];
	struct frame f = {.to = B, .opcode = 0x0c, .psn = 1, .length = 344};
	size_t length_bytes;

	REQUEST(0x0c, 0, .length = 600);
	ANSWER(0x0d, 0, 1, .bytes = 256);
	ADD(.to = A, .opcode = 0x0e, .psn = 1, .bytes = 256, .lost = LOST);
	ANSWER(0x0f, 2, 1, .bytes = 88);
	length_bytes = make(&f, bytes);
	put(bytes + 54, 0x1000 + 256, 8);
	put_icrc(bytes + 14, bytes + length_bytes - 4, false);
	add_bytes(bytes, length_bytes);
	ANSWER(0x0d, 1, 1, .bytes = 256);
	ANSWER(0x0f, 2, 1, .bytes = 88);
	is_good();
}

void test_rnr_and_its_repeat_are_good(void)
{
	SEND(0);
	REFUSE(0, 0, 0x2c);
	SEND(0);
	ACK(0, 1);
	is_good();
}

void test_a_packet_that_comes_twice_is_good(void)
{
	SEND(0);
	SEND(0);
	ACK(0, 1);
	ACK(0, 1);
	is_good();
}

void test_both_directions_are_apart(void)
{
	SEND(0);
	ADD(.to = A, .opcode = 0x04, .psn = 500, .bytes = 3);
	ACK(0, 1);
	ADD(.to = B, .opcode = 0x11, .psn = 500, .syndrome = 31, .msn = 1);
	SEND(1);
	is_good();
}

/* --- bad ones --- */

void test_a_gap_in_the_psns_is_found(void)
{
	SEND(0);
	SEND(2);
	is_bad(1, "packet 2: psn: 0x000002, the next is 0x000001");
}

void test_a_psn_before_the_first_is_found(void)
{
	SEND(10);
	SEND(9);
	is_bad(1, "packet 2: psn:");
}

void test_a_gap_behind_a_read_is_found(void)
{
	REQUEST(0x06, 0, .length = 257, .bytes = 256); /* shows the path MTU */
	REQUEST(0x08, 1, .bytes = 1);
	REQUEST(0x0c, 2, .length = 257);
	SEND(3);
	is_bad(1, "packet 4: repeat:");
}

void test_a_gap_of_uc_is_found(void)
{
	REQUEST(0x24, 5, .bytes = 3);
	REQUEST(0x24, 7, .bytes = 3);
	is_bad(1, "packet 2: psn: 0x000007 behind 0x000005");
}

void test_a_gap_of_ud_is_found(void)
{
	REQUEST(0x64, 5, .bytes = 3);
	REQUEST(0x64, 4, .bytes = 3);
	is_bad(1, "packet 2: psn: 0x000004 behind 0x000005");
}

void test_an_ack_of_nothing_is_found(void)
{
	SEND(0);
	ACK(1, 1);
	is_bad(1, "packet 2: answer: nothing was sent with PSN 0x000001");
}

void test_an_ack_of_a_lost_packet_is_found(void)
{
	SEND(0);
	SEND(1, .lost = true);
	SEND(2);
	ACK(2, 3);
	is_bad(1, "packet 4: answer: to PSN 0x000002, but 0x000001 has not arrived");
}

void test_a_repeat_of_other_bytes_is_found(void)
{
	SEND(0, .fill = 1, .lost = true);
	SEND(0, .fill = 2);
	is_bad(1, "packet 2: repeat: PSN 0x000000 is not what packet 1 was");
}

void test_a_repeat_of_another_length_is_found(void)
{
	REQUEST(0x04, 0, .bytes = 8);
	REQUEST(0x04, 0, .bytes = 12);
	is_bad(1, "packet 2: repeat:");
}

void test_a_read_that_asks_for_other_memory_is_found(void)
{
	REQUEST(0x0c, 0, .length = 100);
	REQUEST(0x0c, 0, .length = 99);
	is_bad(1, "packet 2: repeat:");
}

void test_an_msn_that_does_not_count_is_found(void)
{
	SEND(0);
	ACK(0, 1);
	SEND(1);
	ACK(1, 1);
	is_bad(1, "packet 4: msn: 1, 2 to 2");
}

void test_an_msn_that_counts_packets_is_found(void)
{
	REQUEST(0x00, 0, .bytes = 256);
	REQUEST(0x02, 1, .bytes = 1);
	ACK(1, 2);
	is_bad(1, "packet 3: msn: 2, 1 to 1");
}

void test_a_request_behind_an_error_nak_is_found(void)
{
	for (uint8_t syndrome = 0x61; syndrome <= 0x63; syndrome++) {
		SEND(0);
		REFUSE(0, 0, syndrome);
		SEND(1);
		is_bad(1, "packet 3: dead:");
		tearDown();
		setUp();
	}
	pcap_dump_close(dumper);
}

void test_a_request_behind_a_lost_error_nak_is_good(void)
{
	SEND(0);
	ADD(.to = A, .opcode = 0x11, .psn = 0, .syndrome = 0x61, .lost = LOST);
	SEND(0);
	is_good();
}

void test_a_wrong_icrc_is_found(void)
{
	SEND(0);
	SEND(1, .bad_icrc = true);
	is_bad(1, "packet 2: icrc:");
}

void test_a_last_without_a_first_is_found(void)
{
	SEND(0);
	REQUEST(0x02, 1, .bytes = 4);
	is_bad(1, "packet 2: message: opcode 0x02 does not follow");
}

void test_a_message_that_is_not_finished_is_found(void)
{
	REQUEST(0x00, 0, .bytes = 256);
	SEND(1);
	is_bad(1, "packet 2: message: opcode 0x04 does not follow");
}

void test_a_write_shorter_than_announced_is_found(void)
{
	REQUEST(0x0a, 0, .length = 11, .bytes = 10);
	is_bad(1, "packet 1: message: 10 bytes, announced were 11");
}

void test_a_response_to_a_send_is_found(void)
{
	SEND(0);
	ANSWER(0x10, 0, 1, .bytes = 10);
	is_bad(1, "packet 2: response: no READ");
}

void test_a_response_of_the_wrong_size_is_found(void)
{
	REQUEST(0x0c, 0, .length = 10);
	ANSWER(0x10, 0, 1, .bytes = 9);
	is_bad(1, "packet 2: response: 9 bytes");
}

void test_a_response_that_skips_a_packet_is_found(void)
{
	REQUEST(0x0c, 0, .length = 600);
	ANSWER(0x0d, 0, 1, .bytes = 256);
	ANSWER(0x0f, 2, 1, .bytes = 88);
	is_bad(1, "packet 3: response: 0x000002 does not follow");
}

void test_an_atomic_with_two_values_is_found(void)
{
	REQUEST(0x14, 0);
	ANSWER(0x12, 0, 1, .value = 1);
	REQUEST(0x14, 0);
	ANSWER(0x12, 0, 1, .value = 2);
	is_bad(1, "packet 4: response: another value than packet 2's");
}

void test_an_atomic_write_is_answered_as_a_read_of_nothing(void)
{
	REQUEST(0x1d, 0, .length = 8, .bytes = 8);
	ANSWER(0x10, 0, 1);
	REQUEST(0x1d, 0, .length = 8, .bytes = 8);
	ANSWER(0x10, 0, 1);
	is_good();
}

void test_an_atomic_write_answered_with_bytes_is_found(void)
{
	REQUEST(0x1d, 0, .length = 8, .bytes = 8);
	ANSWER(0x10, 0, 1, .bytes = 8);
	is_bad(1, "packet 2: response: 8 bytes");
}

void test_an_atomic_write_of_another_length_is_found(void)
{
	REQUEST(0x1d, 0, .length = 4, .bytes = 4);
	is_bad(1, "packet 1: message: an ATOMIC WRITE of 4 bytes");
}

void test_an_unknown_syndrome_is_found(void)
{
	SEND(0);
	REFUSE(0, 0, 0x47);
	is_bad(1, "packet 2: answer: syndrome 0x47");
}

void test_time_that_goes_back_is_found(void)
{
	SEND(0);
	now_ns--;
	SEND(1);
	is_bad(1, "packet 2: time:");
}

void test_a_cut_frame_is_found(void)
{
	uint8_t bytes[128];
	struct frame f = {.to = B, .opcode = 0x04, .psn = 0, .bytes = 10};
	size_t length_bytes = make(&f, bytes);

	add_bytes(bytes, length_bytes - 1);
	is_bad(1, "packet 1: frame:");
}

void test_a_wrong_ip_checksum_is_found(void)
{
	uint8_t bytes[128];
	struct frame f = {.to = B, .opcode = 0x04, .psn = 0, .bytes = 10};
	size_t length_bytes = make(&f, bytes);

	bytes[14 + 10] ^= 1;
	add_bytes(bytes, length_bytes);
	is_bad(1, "packet 1: frame:");
}
