/* SPDX-License-Identifier: MIT */
/* How program.c reads damaged files; test/dropin has good programs. */
#include "src/cli/program.h"
#include "unity.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/verbena-program-XXXXXX";
static char path[sizeof(folder) + 8];
static char reason[2 * PATH_MAX];

void setUp(void)
{
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/p", folder);
	reason[0] = '\0';
}

void tearDown(void)
{
	unlink(path);
	rmdir(folder);
}

static void write_file(const void *bytes, size_t size_bytes)
{
	FILE *file = fopen(path, "w");

	TEST_ASSERT_NOT_NULL(file);
	TEST_ASSERT_TRUE(fwrite(bytes, 1, size_bytes, file) == size_bytes);
	TEST_ASSERT_EQUAL_INT(0, fclose(file));
	TEST_ASSERT_EQUAL_INT(0, chmod(path, 0755));
}

static bool takes(void)
{
	return program_takes(path, folder, reason, sizeof(reason));
}

void test_finding(void)
{
	char *found = program_find("sh");

	TEST_ASSERT_NOT_NULL(found);
	TEST_ASSERT_NOT_NULL(strstr(found, "/sh"));
	free(found);
	TEST_ASSERT_NULL(program_find("no-such-program"));
	TEST_ASSERT_EQUAL_INT(ENOENT, errno);
	TEST_ASSERT_NULL(program_find(""));
	TEST_ASSERT_EQUAL_INT(ENOENT, errno);
	TEST_ASSERT_NULL(program_find(folder));
	TEST_ASSERT_EQUAL_INT(EACCES, errno);
	write_file("", 0);
	found = program_find(path);
	TEST_ASSERT_EQUAL_STRING(path, found);
	free(found);
}

void test_what_cannot_be_read_is_let_through(void)
{
	TEST_ASSERT_TRUE(takes());
	write_file("", 0);
	TEST_ASSERT_TRUE(takes());
	write_file("\x7f", 1);
	TEST_ASSERT_TRUE(takes());
	write_file("#!", 2);
	TEST_ASSERT_TRUE(takes());
	write_file("#! \t", 4);
	TEST_ASSERT_TRUE(takes());
	write_file("#!/none", 7);
	TEST_ASSERT_TRUE(takes());
}

void test_a_script_of_itself_comes_to_an_end(void)
{
	char line[sizeof(path) + 8];

	snprintf(line, sizeof(line), "#! %s -x", path);
	write_file(line, strlen(line));
	TEST_ASSERT_TRUE(takes());
}

void test_a_program_that_is_cut_short(void)
{
	unsigned char bytes[1200];
	FILE *self = fopen("/proc/self/exe", "r");
	const ElfW(Ehdr) *header = (const void *)bytes;

	TEST_ASSERT_NOT_NULL(self);
	TEST_ASSERT_TRUE(fread(bytes, 1, sizeof(bytes), self) == sizeof(bytes));
	fclose(self);
	/* Whatever the length, it says something, and reads nothing that is not there. */
	for (size_t size_bytes = SELFMAG; size_bytes < sizeof(bytes); size_bytes += 8) {
		bool whole = size_bytes >=
			     header->e_phoff + (size_t)header->e_phnum * header->e_phentsize;

		write_file(bytes, size_bytes);
		if (!takes())
			TEST_ASSERT_NOT_NULL(strstr(reason, path));
		else
			TEST_ASSERT_TRUE(whole);
	}
}

void test_a_program_of_another_machine(void)
{
	ElfW(Ehdr) header = {.e_ident = ELFMAG, .e_machine = EM_S390};

	header.e_ident[EI_CLASS] = ELFCLASS64;
	write_file(&header, sizeof(header));
	TEST_ASSERT_FALSE(takes());
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(reason, "for another machine"), reason);
}
