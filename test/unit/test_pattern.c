/* SPDX-License-Identifier: MIT */
/* Texts as patterns and numbers: what is a number, and what the records hold. */
#include "src/picture/bytes.h"
#include "src/picture/pattern.h"
#include "unity.h"

#include <string.h>

void setUp(void)
{
}

void tearDown(void)
{
}

static const struct {
	const char *text, *pattern;
	uint64_t numbers[4];
	unsigned int count;
} texts[] = {
	{"", "", {0}, 0},
	{"no number", "no number", {0}, 0},
	{"PSN 100, QP 0x10 > 0x12", "PSN \1, QP \2 > \2", {100, 16, 18}, 3},
	{"{\"n\":7,\"t\":0,\"qp\":\"0x11\"}", "{\"n\":\1,\"t\":\1,\"qp\":\"\2\"}", {7, 0, 17}, 3},
	{"0xffffffffffffffff", "\2", {UINT64_MAX}, 1},
	{"waits 4.096 us", "waits \0033 us", {4096}, 1},
	{"0.05 and 10.50", "\0032 and \0032", {5, 1050}, 2},
	{"PSN 5.", "PSN \1.", {5}, 1},
	{"rule -3: drop", "rule -\1: drop", {3}, 1},
	/* These are no numbers, or could not be written again as they stand. */
	{"::ffff:10.0.0.1", "::ffff:10.0.0.1", {0}, 0},
	{"2001:db8::1 fe80::12", "2001:db8::1 fe80::12", {0}, 0},
	{"sim0 x2 0xFF 0x0a 007 0x", "sim0 x2 0xFF 0x0a 007 0x", {0}, 0},
	{"0x11111111111111111 1234567890123456", "0x11111111111111111 1234567890123456", {0}, 0},
	{"2026-11-22T09:00", "\1-\1-22T09:00", {2026, 11}, 2},
	{"\xc3\xa4"
	 "5 5\xc3\xa4",
	 "\xc3\xa4"
	 "5 5\xc3\xa4",
	 {0},
	 0},
};

static uint64_t take(const uint8_t **at)
{
	uint64_t number = 0;
	unsigned int shift = 0;

	do
		number |= (uint64_t)(**at & 0x7f) << shift;
	while (shift += 7, *(*at)++ & 0x80);
	return number;
}

void test_numbers_leave_the_text(void)
{
	struct patterns patterns = {0};
	struct bytes records = {0};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const size_t offset = pattern_add(&patterns, &records, texts[i].text);
		const uint8_t *at = records.at + offset;

		TEST_ASSERT_EQUAL_STRING(texts[i].pattern, patterns.texts[take(&at)]);
		for (unsigned int j = 0; j < texts[i].count; j++)
			TEST_ASSERT_EQUAL_HEX64(texts[i].numbers[j], take(&at));
		TEST_ASSERT_EQUAL_PTR(records.at + records.used, at);
	}
	patterns_free(&patterns);
	bytes_free(&records);
}

void test_texts_that_differ_in_numbers_share_a_pattern(void)
{
	struct patterns patterns = {0};
	struct bytes records = {0};
	char text[64];

	for (unsigned int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "PSN %u of 0x%x", i, i);
		pattern_add(&patterns, &records, text);
	}
	TEST_ASSERT_EQUAL_UINT(1, patterns.count);
	for (unsigned int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "name%u", i);
		pattern_add(&patterns, &records, text);
	}
	TEST_ASSERT_EQUAL_UINT(5001, patterns.count);
	TEST_ASSERT_EQUAL_STRING("name4999", patterns.texts[5000]);
	patterns_free(&patterns);
	bytes_free(&records);
}
