/* SPDX-License-Identifier: MIT */
/* The settings of the sanitizer, and its file of suppressions. */
#include "src/check/options.h"
#include "src/check/suppress.h"
#include "unity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <verbena/error.h>

static struct check_settings settings;
static char path[] = "/tmp/verbena-test-suppressions-XXXXXX";

void setUp(void)
{
	strcpy(path + strlen(path) - 6, "XXXXXX");
}

void tearDown(void)
{
	suppress_forget();
	unlink(path);
}

/* --- settings --- */

static void refused(const char *value, const char *words)
{
	TEST_ASSERT_FALSE_MESSAGE(check_settings_read(&settings, value), value);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(settings.error, words), settings.error);
}

void test_values_that_ask_for_no_sanitizer(void)
{
	TEST_ASSERT_FALSE(check_settings_wanted(NULL));
	TEST_ASSERT_FALSE(check_settings_wanted(""));
	TEST_ASSERT_FALSE(check_settings_wanted("0"));
	TEST_ASSERT_TRUE(check_settings_wanted("1"));
	TEST_ASSERT_TRUE(check_settings_wanted("00"));
	TEST_ASSERT_TRUE(check_settings_wanted("exit-status=0"));
}

void test_one_is_the_defaults(void)
{
	TEST_ASSERT_TRUE(check_settings_read(&settings, "1"));
	TEST_ASSERT_EQUAL_INT(0, settings.options.exit_status);
	TEST_ASSERT_FALSE(settings.options.abort);
	TEST_ASSERT_EQUAL_UINT(0, settings.options.buffer_bytes);
	TEST_ASSERT_NULL(settings.options.file);
	TEST_ASSERT_NULL(settings.options.suppressions);
}

void test_each_setting_reaches_its_option(void)
{
	TEST_ASSERT_TRUE(check_settings_read(
		&settings, "exit-status=7,abort=1,bytes=4096,file=a b,suppressions=c"));
	TEST_ASSERT_EQUAL_INT(7, settings.options.exit_status);
	TEST_ASSERT_TRUE(settings.options.abort);
	TEST_ASSERT_EQUAL_UINT(4096, settings.options.buffer_bytes);
	TEST_ASSERT_EQUAL_STRING("a b", settings.options.file);
	TEST_ASSERT_EQUAL_STRING("c", settings.options.suppressions);
}

/* 0 in the option is the default. */
void test_status_0_is_the_programs_own(void)
{
	TEST_ASSERT_TRUE(check_settings_read(&settings, "exit-status=0"));
	TEST_ASSERT_EQUAL_INT(-1, settings.options.exit_status);
}

void test_the_last_value_of_a_setting_counts(void)
{
	TEST_ASSERT_TRUE(
		check_settings_read(&settings, "abort=1,abort=0,exit-status=3,exit-status=4"));
	TEST_ASSERT_FALSE(settings.options.abort);
	TEST_ASSERT_EQUAL_INT(4, settings.options.exit_status);
}

void test_wrong_settings_are_refused(void)
{
	refused("exit-status=256", "from 0 to 255");
	refused("exit-status=-1", "from 0 to 255");
	refused("exit-status=", "from 0 to 255");
	refused("exit-status=1x", "from 0 to 255");
	refused("exit-status", "exit-status takes");
	refused("abort=2", "0 or 1");
	refused("bytes=0", "bytes of each buffer");
	refused("bytes=4294967296", "bytes of each buffer");
	refused("file=", "a file for the findings");
	refused("abort=1,colour=2", "colour=2: there is no such setting");
	refused("exit-statu=1", "there is no such setting");
}

/* --- suppressions --- */

static int read_text(const char *text)
{
	FILE *file = fdopen(mkstemp(path), "w");

	TEST_ASSERT_NOT_NULL(file);
	fputs(text, file);
	fclose(file);
	return suppress_read(path);
}

void test_a_line_suppresses_its_rule(void)
{
	TEST_ASSERT_EQUAL_INT(0, read_text("# a comment\n\ncq-too-small:main() at *\n"));
	TEST_ASSERT_TRUE(suppress_matches(VB_RULE_CQ_SMALL, "main() at a.c:1"));
	TEST_ASSERT_FALSE(suppress_matches(VB_RULE_CQ_SMALL, "in main() at a.c:1"));
	TEST_ASSERT_FALSE(suppress_matches(VB_RULE_KEY_WRONG, "main() at a.c:1"));
}

void test_a_star_suppresses_each_rule(void)
{
	TEST_ASSERT_EQUAL_INT(0, read_text("*:*of sim0*"));
	TEST_ASSERT_TRUE(suppress_matches(VB_RULE_KEY_WRONG, "QP 0x10 of sim0: a sentence"));
	TEST_ASSERT_TRUE(suppress_matches(VB_RULE_LIMIT, "QP 0x10 of sim0: a sentence"));
	TEST_ASSERT_FALSE(suppress_matches(VB_RULE_LIMIT, "QP 0x10 of sim1: a sentence"));
}

/* A pattern may have colons, and editors of other systems end lines with a carriage return. */
void test_the_first_colon_ends_the_rule(void)
{
	TEST_ASSERT_EQUAL_INT(0, read_text("key-wrong:f() at a.c:7\r\n"));
	TEST_ASSERT_TRUE(suppress_matches(VB_RULE_KEY_WRONG, "f() at a.c:7"));
	TEST_ASSERT_FALSE(suppress_matches(VB_RULE_KEY_WRONG, "f() at a.c:8"));
}

void test_a_wrong_line_is_named_and_nothing_is_kept(void)
{
	static const char *const lines[] = {"no-rule:*", "key-wrong", "key-wrong:", "key-wron:*",
					    " key-wrong:*"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char text[64];

		snprintf(text, sizeof(text), "key-wrong:*\n%s\n", lines[i]);
		setUp();
		TEST_ASSERT_EQUAL_INT_MESSAGE(EINVAL, read_text(text), lines[i]);
		TEST_ASSERT_NOT_NULL(strstr(vb_last_error(), ":2: the line is no suppression"));
		TEST_ASSERT_FALSE(suppress_matches(VB_RULE_KEY_WRONG, "f() at a.c:8"));
		unlink(path);
	}
}

void test_a_missing_file_is_refused(void)
{
	TEST_ASSERT_EQUAL_INT(ENOENT, suppress_read("/nowhere/suppressions"));
	TEST_ASSERT_NOT_NULL(strstr(vb_last_error(), "/nowhere/suppressions"));
}
