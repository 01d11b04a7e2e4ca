/* SPDX-License-Identifier: MIT */
#include "docs/gen/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the number of the first line of the file that differs from the text; 0 if none does. */
static unsigned int first_difference(const char *text, FILE *file)
{
	unsigned int line = 1;
	int c;

	while ((c = getc(file)) != EOF && c == (unsigned char)*text) {
		line += c == '\n';
		text++;
	}
	return c == EOF && *text == '\0' ? 0 : line;
}

static int check(const char *text, const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned int line;

	if (!file) {
		fprintf(stderr, "%s: %s; run scripts/docs to write it\n", path, strerror(errno));
		return EXIT_FAILURE;
	}
	line = first_difference(text, file);
	fclose(file);
	if (!line)
		return EXIT_SUCCESS;
	fprintf(stderr, "%s:%u: differs from the tables; run scripts/docs to write it again\n",
		path, line);
	return EXIT_FAILURE;
}

int page_print(int argc, char **argv, char *text)
{
	int status = EXIT_SUCCESS;

	if (!text)
		return EXIT_FAILURE;
	if (argc == 3 && strcmp(argv[1], "--check") == 0) {
		status = check(text, argv[2]);
	} else if (argc == 1) {
		status = fputs(text, stdout) < 0 || fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
	} else {
		fprintf(stderr, "usage: %s [--check FILE]\n", argv[0]);
		status = 2;
	}
	free(text);
	return status;
}
