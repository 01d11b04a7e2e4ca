/* SPDX-License-Identifier: MIT */
void setUp(void);
void tearDown(void);
void setUp(void) {}
void tearDown(void) {}
void test_nothing(void);
void test_nothing(void) {}
