/* SPDX-License-Identifier: MIT */
/*
 * Unity's vocabulary on CMocka, so that the files of test/unit run under Meson where Ceedling is
 * not installed. With Ceedling the real unity.h is used and this one is not on its path.
 *
 * Names and argument order: Unity's documentation (ThrowTheSwitch/Unity, docs). Only what the
 * tests of this project use is here.
 */
#ifndef VERBENA_TEST_UNITY_H
#define VERBENA_TEST_UNITY_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Each file of tests defines these two; they run around every test. */
void setUp(void);
void tearDown(void);

/* Fails the running test. CMocka's _fail() does not return and does not say so. */
static inline _Noreturn void unity_fail(const char *file, int line)
{
	_fail(file, line);
	__builtin_unreachable();
}

#define UNITY_FAIL(...)                         \
	do {                                    \
		print_error(__VA_ARGS__);       \
		unity_fail(__FILE__, __LINE__); \
	} while (0)

/* message, or nothing where there is none. */
static inline const char *unity_text(const char *message)
{
	return message ? message : "";
}

enum unity_style { UNITY_SIGNED, UNITY_UNSIGNED, UNITY_HEX };

static inline void unity_number(uint64_t expected, uint64_t actual, enum unity_style style,
				const char *message, const char *file, int line)
{
	if (expected == actual)
		return;
	switch (style) {
	case UNITY_SIGNED:
		print_error("Expected %" PRId64 " Was %" PRId64 ". %s\n", (int64_t)expected,
			    (int64_t)actual, unity_text(message));
		break;
	case UNITY_UNSIGNED:
		print_error("Expected %" PRIu64 " Was %" PRIu64 ". %s\n", expected, actual,
			    unity_text(message));
		break;
	case UNITY_HEX:
		print_error("Expected 0x%" PRIX64 " Was 0x%" PRIX64 ". %s\n", expected, actual,
			    unity_text(message));
		break;
	}
	unity_fail(file, line);
}

static inline void unity_bytes(const void *expected, const void *actual, size_t length_bytes,
			       const char *message, const char *file, int line)
{
	const uint8_t *left = expected;
	const uint8_t *right = actual;

	/* As Unity does, which Ceedling uses. */
	if (!length_bytes) {
		print_error("The comparison of 0 bytes holds nothing. %s\n", unity_text(message));
		unity_fail(file, line);
	}
	for (size_t i = 0; i < length_bytes; i++) {
		if (left[i] != right[i]) {
			print_error("Byte %zu Expected 0x%02X Was 0x%02X. %s\n", i, left[i],
				    right[i], unity_text(message));
			unity_fail(file, line);
		}
	}
}

static inline void unity_string(const char *expected, const char *actual, const char *message,
				const char *file, int line)
{
	if (expected == actual || (expected && actual && !strcmp(expected, actual)))
		return;
	print_error("Expected '%s' Was '%s'. %s\n", expected ? expected : "NULL",
		    actual ? actual : "NULL", unity_text(message));
	unity_fail(file, line);
}

static inline void unity_true(int condition, const char *text, const char *message,
			      const char *file, int line)
{
	if (condition)
		return;
	print_error("%s. %s\n", text, unity_text(message));
	unity_fail(file, line);
}

#define UNITY_NUMBER(expected, actual, style, message) \
	unity_number((uint64_t)(expected), (uint64_t)(actual), style, message, __FILE__, __LINE__)
#define UNITY_TRUE(condition, text, message) \
	unity_true(!!(condition), text, message, __FILE__, __LINE__)

#define TEST_FAIL_MESSAGE(message) UNITY_FAIL("%s\n", message)
#define TEST_FAIL()		   UNITY_FAIL("failed\n")
#define TEST_IGNORE()		   skip()
#define TEST_MESSAGE(message)	   print_message("%s\n", message)
#define TEST_IGNORE_MESSAGE(message)                     \
	do {                                             \
		print_message("ignored: %s\n", message); \
		skip();                                  \
	} while (0)

#define TEST_ASSERT_MESSAGE(condition, message) \
	UNITY_TRUE(condition, "not true: " #condition, message)
#define TEST_ASSERT(condition)	 TEST_ASSERT_MESSAGE(condition, NULL)
#define TEST_ASSERT_TRUE_MESSAGE TEST_ASSERT_MESSAGE
#define TEST_ASSERT_TRUE	 TEST_ASSERT
#define TEST_ASSERT_FALSE_MESSAGE(condition, message) \
	UNITY_TRUE(!(condition), "not false: " #condition, message)
#define TEST_ASSERT_FALSE(condition) TEST_ASSERT_FALSE_MESSAGE(condition, NULL)
#define TEST_ASSERT_NULL_MESSAGE(pointer, message) \
	UNITY_TRUE((pointer) == NULL, "not NULL: " #pointer, message)
#define TEST_ASSERT_NULL(pointer) TEST_ASSERT_NULL_MESSAGE(pointer, NULL)
#define TEST_ASSERT_NOT_NULL_MESSAGE(pointer, message) \
	UNITY_TRUE((pointer) != NULL, "NULL: " #pointer, message)
#define TEST_ASSERT_NOT_NULL(pointer) TEST_ASSERT_NOT_NULL_MESSAGE(pointer, NULL)

#define TEST_ASSERT_EQUAL_INT_MESSAGE(expected, actual, message) \
	UNITY_NUMBER(expected, actual, UNITY_SIGNED, message)
#define TEST_ASSERT_EQUAL_INT(expected, actual) UNITY_NUMBER(expected, actual, UNITY_SIGNED, NULL)
#define TEST_ASSERT_EQUAL_INT8_MESSAGE(expected, actual, message) \
	UNITY_NUMBER(expected, actual, UNITY_SIGNED, message)
#define TEST_ASSERT_EQUAL_INT8(expected, actual) UNITY_NUMBER(expected, actual, UNITY_SIGNED, NULL)
#define TEST_ASSERT_EQUAL_INT16_MESSAGE(expected, actual, message) \
	UNITY_NUMBER(expected, actual, UNITY_SIGNED, message)
#define TEST_ASSERT_EQUAL_INT16(expected, actual) UNITY_NUMBER(expected, actual, UNITY_SIGNED, NULL)
#define TEST_ASSERT_EQUAL_INT32_MESSAGE(expected, actual, message) \
	UNITY_NUMBER(expected, actual, UNITY_SIGNED, message)
#define TEST_ASSERT_EQUAL_INT32(expected, actual) UNITY_NUMBER(expected, actual, UNITY_SIGNED, NULL)
#define TEST_ASSERT_EQUAL_INT64_MESSAGE(expected, actual, message) \
	UNITY_NUMBER(expected, actual, UNITY_SIGNED, message)
#define TEST_ASSERT_EQUAL_INT64(expected, actual) UNITY_NUMBER(expected, actual, UNITY_SIGNED, NULL)
#define TEST_ASSERT_EQUAL_UINT_MESSAGE(expected, actual, message) \
	UNITY_NUMBER(expected, actual, UNITY_UNSIGNED, message)
#define TEST_ASSERT_EQUAL_UINT(expected, actual) \
	UNITY_NUMBER(expected, actual, UNITY_UNSIGNED, NULL)
#define TEST_ASSERT_EQUAL_UINT8_MESSAGE(expected, actual, message) \
	UNITY_NUMBER(expected, actual, UNITY_UNSIGNED, message)
#define TEST_ASSERT_EQUAL_UINT8(expected, actual) \
	UNITY_NUMBER(expected, actual, UNITY_UNSIGNED, NULL)
#define TEST_ASSERT_EQUAL_UINT16_MESSAGE(expected, actual, message) \
	UNITY_NUMBER(expected, actual, UNITY_UNSIGNED, message)
#define TEST_ASSERT_EQUAL_UINT16(expected, actual) \
	UNITY_NUMBER(expected, actual, UNITY_UNSIGNED, NULL)
#define TEST_ASSERT_EQUAL_UINT32_MESSAGE(expected, actual, message) \
	UNITY_NUMBER(expected, actual, UNITY_UNSIGNED, message)
#define TEST_ASSERT_EQUAL_UINT32(expected, actual) \
	UNITY_NUMBER(expected, actual, UNITY_UNSIGNED, NULL)
#define TEST_ASSERT_EQUAL_UINT64_MESSAGE(expected, actual, message) \
	UNITY_NUMBER(expected, actual, UNITY_UNSIGNED, message)
#define TEST_ASSERT_EQUAL_UINT64(expected, actual) \
	UNITY_NUMBER(expected, actual, UNITY_UNSIGNED, NULL)
#define TEST_ASSERT_EQUAL_size_t_MESSAGE(expected, actual, message) \
	UNITY_NUMBER(expected, actual, UNITY_UNSIGNED, message)
#define TEST_ASSERT_EQUAL_size_t(expected, actual) \
	UNITY_NUMBER(expected, actual, UNITY_UNSIGNED, NULL)
#define TEST_ASSERT_EQUAL_HEX_MESSAGE(expected, actual, message) \
	UNITY_NUMBER(expected, actual, UNITY_HEX, message)
#define TEST_ASSERT_EQUAL_HEX(expected, actual) UNITY_NUMBER(expected, actual, UNITY_HEX, NULL)
#define TEST_ASSERT_EQUAL_HEX8_MESSAGE(expected, actual, message) \
	UNITY_NUMBER(expected, actual, UNITY_HEX, message)
#define TEST_ASSERT_EQUAL_HEX8(expected, actual) UNITY_NUMBER(expected, actual, UNITY_HEX, NULL)
#define TEST_ASSERT_EQUAL_HEX16_MESSAGE(expected, actual, message) \
	UNITY_NUMBER(expected, actual, UNITY_HEX, message)
#define TEST_ASSERT_EQUAL_HEX16(expected, actual) UNITY_NUMBER(expected, actual, UNITY_HEX, NULL)
#define TEST_ASSERT_EQUAL_HEX32_MESSAGE(expected, actual, message) \
	UNITY_NUMBER(expected, actual, UNITY_HEX, message)
#define TEST_ASSERT_EQUAL_HEX32(expected, actual) UNITY_NUMBER(expected, actual, UNITY_HEX, NULL)
#define TEST_ASSERT_EQUAL_HEX64_MESSAGE(expected, actual, message) \
	UNITY_NUMBER(expected, actual, UNITY_HEX, message)
#define TEST_ASSERT_EQUAL_HEX64(expected, actual) UNITY_NUMBER(expected, actual, UNITY_HEX, NULL)
#define TEST_ASSERT_EQUAL			  TEST_ASSERT_EQUAL_INT
#define TEST_ASSERT_EQUAL_MESSAGE		  TEST_ASSERT_EQUAL_INT_MESSAGE
#define TEST_ASSERT_NOT_EQUAL_MESSAGE(expected, actual, message) \
	UNITY_TRUE((expected) != (actual), "equal: " #expected " and " #actual, message)
#define TEST_ASSERT_NOT_EQUAL(expected, actual) \
	TEST_ASSERT_NOT_EQUAL_MESSAGE(expected, actual, NULL)
#define TEST_ASSERT_EQUAL_PTR_MESSAGE(expected, actual, message) \
	UNITY_NUMBER((uintptr_t)(expected), (uintptr_t)(actual), UNITY_HEX, message)
#define TEST_ASSERT_EQUAL_PTR(expected, actual) \
	TEST_ASSERT_EQUAL_PTR_MESSAGE(expected, actual, NULL)

/* Unity's order: the threshold first. */
#define TEST_ASSERT_GREATER_THAN(threshold, actual) \
	UNITY_TRUE((actual) > (threshold), #actual " not greater than " #threshold, NULL)
#define TEST_ASSERT_LESS_THAN(threshold, actual) \
	UNITY_TRUE((actual) < (threshold), #actual " not less than " #threshold, NULL)
#define TEST_ASSERT_GREATER_OR_EQUAL(threshold, actual) \
	UNITY_TRUE((actual) >= (threshold), #actual " less than " #threshold, NULL)
#define TEST_ASSERT_LESS_OR_EQUAL(threshold, actual) \
	UNITY_TRUE((actual) <= (threshold), #actual " greater than " #threshold, NULL)

#define TEST_ASSERT_EQUAL_STRING_MESSAGE(expected, actual, message) \
	unity_string(expected, actual, message, __FILE__, __LINE__)
#define TEST_ASSERT_EQUAL_STRING(expected, actual) \
	TEST_ASSERT_EQUAL_STRING_MESSAGE(expected, actual, NULL)
#define TEST_ASSERT_EQUAL_MEMORY_MESSAGE(expected, actual, length, message) \
	unity_bytes(expected, actual, length, message, __FILE__, __LINE__)
#define TEST_ASSERT_EQUAL_MEMORY(expected, actual, length) \
	TEST_ASSERT_EQUAL_MEMORY_MESSAGE(expected, actual, length, NULL)
#define TEST_ASSERT_EQUAL_HEX8_ARRAY_MESSAGE  TEST_ASSERT_EQUAL_MEMORY_MESSAGE
#define TEST_ASSERT_EQUAL_HEX8_ARRAY	      TEST_ASSERT_EQUAL_MEMORY
#define TEST_ASSERT_EQUAL_UINT8_ARRAY_MESSAGE TEST_ASSERT_EQUAL_MEMORY_MESSAGE
#define TEST_ASSERT_EQUAL_UINT8_ARRAY	      TEST_ASSERT_EQUAL_MEMORY

#endif
