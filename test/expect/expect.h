/* SPDX-License-Identifier: MIT */
/* What these tests have in common: a handler that keeps the failures of the checks. */
#ifndef TEST_EXPECT_EXPECT_H
#define TEST_EXPECT_EXPECT_H

#include "test/connect/connect.h"

#include <arpa/inet.h>
#include <signal.h>
#include <verbena/expect.h>

static struct {
	unsigned int count;
	int line;
	char message[8192];
} failed;

static inline void keep_failure(void *arg, const char *file, int line, const char *message)
{
	(void)arg;
	TEST_ASSERT_NOT_NULL(strstr(file, "test/expect/test_"));
	failed.count++;
	failed.line = line;
	snprintf(failed.message, sizeof(failed.message), "%s", message);
}

/* The check stands in a statement of several lines. */
static inline void assert_line(int begin)
{
	TEST_ASSERT_TRUE(failed.line >= begin && failed.line < begin + 16);
}

/* The check must hold. */
#define HOLDS(check) TEST_ASSERT_TRUE_MESSAGE((check), failed.message)

/* The check must fail once, in these lines, with exactly this message. */
#define FAILS_WITH(text, check)                                   \
	do {                                                      \
		failed.count = 0;                                 \
		TEST_ASSERT_FALSE(check);                         \
		TEST_ASSERT_EQUAL_UINT64(1, failed.count);        \
		assert_line(__LINE__);                            \
		TEST_ASSERT_EQUAL_STRING((text), failed.message); \
	} while (0)

/* The same, with a message that has these words in this order; the last one is NULL. */
#define FAILS_SAYING(check, ...)                                                   \
	do {                                                                       \
		const char *const words_[] = {__VA_ARGS__};                        \
		const char *at_ = failed.message;                                  \
                                                                                   \
		failed.count = 0;                                                  \
		TEST_ASSERT_FALSE(check);                                          \
		TEST_ASSERT_EQUAL_UINT64(1, failed.count);                         \
		assert_line(__LINE__);                                             \
		for (size_t i_ = 0; i_ < sizeof(words_) / sizeof(*words_); i_++) { \
			at_ = strstr(at_, words_[i_]);                             \
			TEST_ASSERT_MESSAGE(at_ != NULL, failed.message);          \
			at_ += strlen(words_[i_]);                                 \
		}                                                                  \
	} while (0)

static inline struct vb_pair *open_pair(const struct vb_pair_options *options)
{
	struct vb_pair *pair = vb_expect_pair(options);

	TEST_ASSERT_MESSAGE(pair != NULL, failed.message);
	return pair;
}

#endif
