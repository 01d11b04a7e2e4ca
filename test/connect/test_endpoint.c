/* SPDX-License-Identifier: MIT */
/* Endpoints and remote keys as bytes and as text, good and malformed. */
#include "test/connect/connect.h"

#include <arpa/inet.h>
#include <stdio.h>

static struct vb_endpoint endpoint, got;
static uint8_t wire[VB_ENDPOINT_BYTES];

void setUp(void)
{
	endpoint = (struct vb_endpoint){
		.qpn = 0x123456, .lid = 0x0a0b, .psn = 0xfedcba, .mtu = IBV_MTU_2048};
	for (int i = 0; i < 16; i++)
		endpoint.gid.raw[i] = (uint8_t)(0xe0 + i);
	memset(&got, 0, sizeof(got));
	vb_endpoint_encode(&endpoint, wire);
}

void tearDown(void)
{
}

void test_an_encoded_endpoint_byte_by_byte(void)
{
	static const uint8_t wanted[] = {
		'V',  'B',  'E',  1,	4,    0,    0x0a, 0x0b, 0,    0x12, 0x34,
		0x56, 0,    0xfe, 0xdc, 0xba, 0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5,
		0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xee, 0xef,
	};

	TEST_ASSERT_TRUE(sizeof(wanted) <= 40);
	TEST_ASSERT_EQUAL_UINT8_ARRAY(wanted, wire, sizeof(wanted));
	OK(vb_endpoint_decode(wire, sizeof(wire), &got));
	TEST_ASSERT_TRUE(vb_endpoint_equal(&endpoint, &got));
}

void test_another_length_is_refused(void)
{
	uint8_t longer[64] = {0};

	memcpy(longer, wire, sizeof(wire));
	for (size_t length = 0; length < sizeof(longer); length++)
		if (length != sizeof(wire))
			FAILS(EMSGSIZE, vb_endpoint_decode(longer, length, &got));
	TEST_ASSERT_EQUAL_UINT(0, got.qpn);
}

static void refused(size_t at, uint8_t value, int err)
{
	uint8_t spoilt[VB_ENDPOINT_BYTES];

	memcpy(spoilt, wire, sizeof(spoilt));
	spoilt[at] = value;
	FAILS(err, vb_endpoint_decode(spoilt, sizeof(spoilt), &got));
	TEST_ASSERT_EQUAL_INT(VB_ERROR_INVALID_INPUT, vb_last_error_kind());
	TEST_ASSERT_EQUAL_UINT(0, got.qpn);
}

void test_malformed_bytes_are_refused_by_what_is_wrong(void)
{
	for (size_t i = 0; i < 3; i++)
		refused(i, 'x', EPROTO);
	refused(3, 0, EPROTONOSUPPORT);
	refused(3, 2, EPROTONOSUPPORT);
	assert_says("version 2");
	refused(4, 0, EBADMSG);
	refused(4, 6, EBADMSG);
	assert_says("mtu");
	refused(5, 1, EBADMSG);
	refused(8, 1, EBADMSG);
	assert_says("qpn");
	refused(12, 0xff, EBADMSG);
	assert_says("psn");
}

/* Accepted bytes encode to the same bytes; refused bytes change nothing. */
void test_any_bytes(void)
{
	uint64_t seed = 20261121, state = seed;
	unsigned int taken = 0;

	for (int i = 0; i < 100000; i++) {
		uint8_t again[VB_ENDPOINT_BYTES], spoilt[VB_ENDPOINT_BYTES];

		memcpy(spoilt, wire, sizeof(spoilt));
		for (uint64_t n = next_random(&state) % 3; n + 1; n--)
			spoilt[next_random(&state) % sizeof(spoilt)] = (uint8_t)next_random(&state);
		if (vb_endpoint_decode(spoilt, sizeof(spoilt), &got))
			continue;
		vb_endpoint_encode(&got, again);
		if (memcmp(spoilt, again, sizeof(again)) != 0)
			printf("seed %llu, round %d\n", (unsigned long long)seed, i);
		TEST_ASSERT_EQUAL_UINT8_ARRAY(spoilt, again, sizeof(again));
		taken++;
	}
	TEST_ASSERT_TRUE(taken > 1000);
}

void test_printing_and_parsing(void)
{
	char text[VB_ENDPOINT_TEXT_MAX];

	vb_endpoint_print(&endpoint, text);
	TEST_ASSERT_EQUAL_STRING("qpn=0x123456,lid=2571,"
				 "gid=e0e1:e2e3:e4e5:e6e7:e8e9:eaeb:eced:eeef,"
				 "psn=0xfedcba,mtu=2048",
				 text);
	OK(vb_endpoint_parse(text, &got));
	TEST_ASSERT_TRUE(vb_endpoint_equal(&endpoint, &got));
}

void test_parts_in_another_order_and_decimal(void)
{
	OK(vb_endpoint_parse("mtu=1024,psn=7,gid=::ffff:10.0.0.1,lid=0x10,qpn=17", &got));
	TEST_ASSERT_EQUAL_UINT(17, got.qpn);
	TEST_ASSERT_EQUAL_UINT(16, got.lid);
	TEST_ASSERT_EQUAL_UINT(7, got.psn);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_1024, got.mtu);
	TEST_ASSERT_EQUAL_UINT8(10, got.gid.raw[12]);
	TEST_ASSERT_EQUAL_UINT8(1, got.gid.raw[15]);
}

void test_invalid_texts(void)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{"", "name=value"},
		{"qpn", "name=value"},
		{"qpn=1,lid=0,gid=::1,psn=0", "mtu is missing"},
		{"qpn=1,lid=0,gid=::1,psn=0,mtu=1024,", "name=value"},
		{"qpn=1,lid=0,gid=::1,psn=0,mtu=1000", "mtu cannot be"},
		{"qpn=0x1000000,lid=0,gid=::1,psn=0,mtu=1024", "qpn cannot be"},
		{"qpn=-1,lid=0,gid=::1,psn=0,mtu=1024", "qpn cannot be"},
		{"qpn=1 ,lid=0,gid=::1,psn=0,mtu=1024", "qpn cannot be"},
		{"qpn=,lid=0,gid=::1,psn=0,mtu=1024", "qpn cannot be"},
		{"qpn=1,lid=65536,gid=::1,psn=0,mtu=1024", "lid cannot be"},
		{"qpn=1,lid=0,gid=10.0.0.1,psn=0,mtu=1024", "gid cannot be"},
		{"qpn=1,lid=0,gid=::1,psn=99999999999999999999,mtu=1024", "psn cannot be"},
		{"qpn=1,qpn=1,lid=0,gid=::1,psn=0,mtu=1024", "qpn is given twice"},
		{"qpn=1,lid=0,gid=::1,psn=0,mtu=1024,colour=1", "no part \"colour\""},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		FAILS(EINVAL, vb_endpoint_parse(wrong[i].text, &got));
		assert_says(wrong[i].says);
		TEST_ASSERT_EQUAL_UINT(0, got.qpn);
	}
}

void test_a_text_that_is_too_long(void)
{
	char text[4096];

	memset(text, 'q', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	FAILS(EINVAL, vb_endpoint_parse(text, &got));
}

void test_endpoints_differ_in_each_part(void)
{
	struct vb_endpoint other[5];

	for (int i = 0; i < 5; i++)
		other[i] = endpoint;
	other[0].qpn++;
	other[1].lid++;
	other[2].gid.raw[15]++;
	other[3].psn--;
	other[4].mtu = IBV_MTU_256;
	for (int i = 0; i < 5; i++)
		TEST_ASSERT_FALSE(vb_endpoint_equal(&endpoint, &other[i]));
	TEST_ASSERT_TRUE(vb_endpoint_equal(&endpoint, &endpoint));
}

/* --- remote keys --- */

void test_a_remote_key_byte_by_byte(void)
{
	const struct vb_remote key = {0x1122334455667788, 0x0102030405060708, 0xa1a2a3a4};
	static const uint8_t wanted[] = {'V',  'B',  'R',  1,	 0xa1, 0xa2, 0xa3, 0xa4,
					 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
					 1,    2,    3,	   4,	 5,    6,    7,	   8};
	uint8_t encoded[VB_REMOTE_BYTES];
	struct vb_remote decoded;

	vb_remote_encode(&key, encoded);
	TEST_ASSERT_EQUAL_UINT8_ARRAY(wanted, encoded, sizeof(wanted));
	OK(vb_remote_decode(encoded, sizeof(encoded), &decoded));
	TEST_ASSERT_EQUAL_UINT64(key.addr, decoded.addr);
	TEST_ASSERT_EQUAL_UINT64(key.length_bytes, decoded.length_bytes);
	TEST_ASSERT_EQUAL_UINT(key.rkey, decoded.rkey);
}

void test_malformed_remote_keys(void)
{
	const struct vb_remote all = {16, UINT64_MAX, 1}, last = {UINT64_MAX, 1, 1};
	uint8_t encoded[VB_REMOTE_BYTES];
	struct vb_remote decoded = {0};

	vb_remote_encode(&all, encoded);
	FAILS(EBADMSG, vb_remote_decode(encoded, sizeof(encoded), &decoded));
	FAILS(EMSGSIZE, vb_remote_decode(encoded, 23, &decoded));
	encoded[3] = 9;
	FAILS(EPROTONOSUPPORT, vb_remote_decode(encoded, sizeof(encoded), &decoded));
	encoded[0] = 0;
	FAILS(EPROTO, vb_remote_decode(encoded, sizeof(encoded), &decoded));
	TEST_ASSERT_EQUAL_UINT64(0, decoded.addr);
	vb_remote_encode(&last, encoded);
	OK(vb_remote_decode(encoded, sizeof(encoded), &decoded));
}

void test_parts_of_a_remote_piece(void)
{
	const struct vb_remote whole = {1000, 100, 7};
	struct vb_remote part = {0};

	OK(vb_remote_part(&whole, 40, 60, &part));
	TEST_ASSERT_EQUAL_UINT64(1040, part.addr);
	TEST_ASSERT_EQUAL_UINT64(60, part.length_bytes);
	TEST_ASSERT_EQUAL_UINT(7, part.rkey);
	OK(vb_remote_part(&whole, 100, 0, &part));
	FAILS(EINVAL, vb_remote_part(&whole, 40, 61, &part));
	FAILS(EINVAL, vb_remote_part(&whole, 101, 0, &part));
	FAILS(EINVAL, vb_remote_part(&whole, 1, UINT64_MAX, &part));
}
