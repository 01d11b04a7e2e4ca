/* SPDX-License-Identifier: MIT */
/* The values of a line of the log, read back by an independent parser. */
#include "src/log/line.h"
#include "unity.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_BYTES  16384
#define GID_ROUNDS  20000
#define TEXT_ROUNDS 20000

static char text[TEXT_BYTES];

void setUp(void)
{
}

void tearDown(void)
{
}

/* Begins a line of one array, so that each value is an element. */
static struct line begin(void)
{
	memset(text, 0x55, sizeof(text));
	text[0] = '[';
	return (struct line){text + 1, text + sizeof(text), false};
}

static json_t *end(struct line *line)
{
	json_error_t error;
	json_t *array;

	TEST_ASSERT_FALSE(line->cut);
	line_plain(line, "]");
	array = json_loadb(text, (size_t)(line->at - text), JSON_ALLOW_NUL, &error);
	TEST_ASSERT_NOT_NULL_MESSAGE(array, error.text);
	return array;
}

/* The bytes that the line has between the brackets. */
static const char *plain(struct line *line)
{
	*line->at = '\0';
	return text + 1;
}

static void check_decimal(uint64_t number, const char *expected)
{
	struct line line = begin();

	line_decimal(&line, number);
	TEST_ASSERT_EQUAL_STRING(expected, plain(&line));
}

void test_a_number_from_2_to_the_53_is_a_string(void)
{
	check_decimal(0, "0");
	check_decimal(1234567890, "1234567890");
	check_decimal((UINT64_C(1) << 53) - 1, "9007199254740991");
	check_decimal(UINT64_C(1) << 53, "\"0x20000000000000\"");
	check_decimal(UINT64_MAX, "\"0xffffffffffffffff\"");
}

static void check_signed(int64_t number, const char *expected)
{
	struct line line = begin();

	line_signed(&line, number);
	TEST_ASSERT_EQUAL_STRING(expected, plain(&line));
}

void test_signed_numbers(void)
{
	check_signed(-1, "-1");
	check_signed(INT32_MIN, "-2147483648");
	check_signed(7, "7");
	check_signed(-(INT64_C(1) << 53) + 1, "-9007199254740991");
	check_signed(-(INT64_C(1) << 53), "\"0xffe0000000000000\"");
	check_signed(INT64_MIN, "\"0x8000000000000000\"");
}

void test_hex(void)
{
	struct line line = begin();

	line_hex(&line, 0);
	line_comma(&line);
	line_hex(&line, UINT64_C(0xfedcba9876543210));
	TEST_ASSERT_EQUAL_STRING("\"0x0\",\"0xfedcba9876543210\"", plain(&line));
}

void test_bits_have_names_and_the_rest_is_hex(void)
{
	struct line line = begin();

	line_bits(&line, bits_send_flags, 0x80000002);
	TEST_ASSERT_EQUAL_STRING("[\"IBV_SEND_SIGNALED\",\"0x80000000\"]", plain(&line));
	line = begin();
	line_bits(&line, bits_send_flags, 0);
	TEST_ASSERT_EQUAL_STRING("[]", plain(&line));
}

void test_a_name_of_an_unknown_value_is_hex(void)
{
	struct line line = begin();

	line_name(&line, "RTS", 3);
	line_comma(&line);
	line_name(&line, "unknown", 99);
	TEST_ASSERT_EQUAL_STRING("\"RTS\",\"0x63\"", plain(&line));
}

static void check_text(const char *written, const char *read)
{
	struct line line = begin();
	json_t *array;

	line_text(&line, written);
	array = end(&line);
	TEST_ASSERT_EQUAL_STRING(read, json_string_value(json_array_get(array, 0)));
	json_decref(array);
}

#define REPLACED "\xef\xbf\xbd" /* U+FFFD */

void test_texts_are_escaped(void)
{
	check_text("", "");
	check_text("plain", "plain");
	check_text("a \"b\" \\ c / d", "a \"b\" \\ c / d");
	check_text("line\nfeed\ttab\x01\x1f\x7f", "line\nfeed\ttab\x01\x1f\x7f");
	check_text("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
		   "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
}

/* A terminal takes DEL for a command. */
void test_del_is_escaped(void)
{
	struct line line = begin();

	line_text(&line, "\x7f");
	TEST_ASSERT_EQUAL_STRING("\"\\u007f\"", plain(&line));
}

/* RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
void test_what_is_no_utf8_is_replaced(void)
{
	check_text("a\xff", "a" REPLACED);
	check_text("\x80"
		   "b",
		   REPLACED "b");
	check_text("\xc3", REPLACED);
	check_text("\xe2\x82", REPLACED REPLACED);
	check_text("\xf0\x9f\x98", REPLACED REPLACED REPLACED);
	check_text("\xc0\xaf", REPLACED REPLACED);
	check_text("\xe0\x80\xaf", REPLACED REPLACED REPLACED);
	check_text("\xe0\x9f\xbf", REPLACED REPLACED REPLACED);
	check_text("\xe0\xa0\x80", "\xe0\xa0\x80");
	check_text("\xed\xa0\x80", REPLACED REPLACED REPLACED);
	check_text("\xf4\x90\x80\x80", REPLACED REPLACED REPLACED REPLACED);
}

/* Any bytes make a line that a parser takes, and that has no newline inside. */
void test_random_texts_are_json(void)
{
	const uint64_t seed = 20261122;

	printf("seed %" PRIu64 "\n", seed);
	srand((unsigned int)seed);
	for (unsigned int i = 0; i < TEXT_ROUNDS; i++) {
		struct line line = begin();
		char bytes[16];

		for (size_t k = 0; k < sizeof(bytes) - 1; k++)
			bytes[k] = (char)(rand() % 4 ? rand() % 255 + 1 : 0xc0 | rand());
		bytes[sizeof(bytes) - 1] = '\0';
		line_text(&line, bytes);
		TEST_ASSERT_NULL(memchr(text, '\n', (size_t)(line.at - text)));
		json_decref(end(&line));
	}
}

void test_a_long_text_is_cut(void)
{
	char *long_text = malloc(2 * LINE_TEXT_BYTES_MAX + 1);
	struct line line = begin();
	json_t *array;

	memset(long_text, 'x', 2 * LINE_TEXT_BYTES_MAX);
	long_text[2 * LINE_TEXT_BYTES_MAX] = '\0';
	line_text(&line, long_text);
	free(long_text);
	array = end(&line);
	TEST_ASSERT_EQUAL_UINT(LINE_TEXT_BYTES_MAX, json_string_length(json_array_get(array, 0)));
	json_decref(array);
}

static void check_gid(const uint8_t gid[16])
{
	struct line line = begin();
	char written[INET6_ADDRSTRLEN], ours[INET6_ADDRSTRLEN + 8];
	uint8_t back[16];

	line_gid(&line, gid);
	TEST_ASSERT_EQUAL_UINT('"', text[1]);
	snprintf(ours, sizeof(ours), "%.*s", (int)(line.at - text - 3), text + 2);
	TEST_ASSERT_EQUAL_INT_MESSAGE(1, inet_pton(AF_INET6, ours, back), ours);
	TEST_ASSERT_EQUAL_MEMORY(gid, back, sizeof(back));
	/* glibc writes the end of ::1.2.3.4 as IPv4, too. */
	inet_ntop(AF_INET6, gid, written, sizeof(written));
	if (!strchr(written, '.') || strncmp(written, "::ffff:", 7) == 0)
		TEST_ASSERT_EQUAL_STRING(written, ours);
}

void test_gids_are_written_as_inet_ntop_does(void)
{
	const uint64_t seed = 4291;
	uint8_t gid[16];

	printf("seed %" PRIu64 "\n", seed);
	srand((unsigned int)seed);
	for (unsigned int i = 0; i < GID_ROUNDS; i++) {
		const bool is_mapped = i % 8 == 0;

		/* Many groups are 0, so that runs of them compete. */
		for (unsigned int k = 0; k < 8; k++) {
			const unsigned int group = rand() % 2 ? 0 : (unsigned int)rand();

			gid[2 * k] = (uint8_t)(group >> 8);
			gid[2 * k + 1] = (uint8_t)group;
		}
		if (is_mapped)
			memcpy(gid, (uint8_t[12]){[10] = 0xff, [11] = 0xff}, 12);
		check_gid(gid);
	}
}

/* Writes no byte behind its end, for any length of the room, and says that it is cut. */
void test_a_line_that_does_not_fit_is_cut(void)
{
	for (size_t room = 0; room < 64; room++) {
		struct line line = begin();

		line.end = line.at + room;
		line_key(&line, "number");
		line_decimal(&line, 1234567);
		line_key(&line, "text");
		line_text(&line, "\x01 and \xff");
		line_key(&line, "more");
		line_hex(&line, UINT64_MAX);
		TEST_ASSERT_TRUE(line.cut);
		TEST_ASSERT_TRUE(line.at <= line.end);
		TEST_ASSERT_EQUAL_HEX8(0x55, (uint8_t)*line.end);
	}
}
