/* SPDX-License-Identifier: MIT */
#include "test/conformance/runner.h"

#include <stdlib.h>
#include <string.h>
#include <verbena/sim.h>

struct line {
	unsigned int number;
	const struct vt_test *test;
	char *quirks; /* "-" if no quirk of the simulator causes the failure */
};

struct vt_known {
	const char *file;
	unsigned int count;
	struct line *lines; /* those of the chosen place */
};

struct reader {
	struct vt_known *known;
	const struct vt_suite *const *suites;
	const char *place;
	bool simulated;
	bool place_found; /* set once a line names the place */
	unsigned int number;
};

static bool wrong(const struct reader *reader, const char *what, const char *word)
{
	fprintf(stderr, "verbena test: %s:%u: %s '%s'\n", reader->known->file, reader->number, what,
		word);
	return false;
}

static const struct vt_test *find_test(const struct reader *reader, char *name)
{
	const struct vt_suite *suite;
	char *dot = strchr(name, '.');

	if (!dot)
		return NULL;
	*dot = '\0';
	suite = vt_find_suite(reader->suites, name);
	*dot = '.';
	for (const struct vt_test *test = suite ? suite->tests : NULL; test && test->name; test++)
		if (!strcmp(test->name, dot + 1))
			return test;
	return NULL;
}

static bool is_quirk(const char *name)
{
	const char *known;

	for (unsigned int i = 0; (known = vb_sim_quirk_name(i, NULL)); i++)
		if (!strcmp(known, name))
			return true;
	return false;
}

static bool check_quirks(const struct reader *reader, const char *quirks)
{
	char copy[VT_LINE_MAX], *rest = copy, *name;

	if (!strcmp(quirks, "-"))
		return true;
	snprintf(copy, sizeof(copy), "%s", quirks);
	while ((name = strsep(&rest, ",")))
		if (!is_quirk(name))
			return wrong(reader, "there is no quirk", name);
	return true;
}

/* Sets *named if the list "a,b/real" names the place. Cuts the text. False after a message. */
static bool read_places(struct reader *reader, char *places, bool *named)
{
	char *place;

	while ((place = strsep(&places, ","))) {
		char *slash = strchr(place, '/');
		bool real = slash && !strcmp(slash, "/real");

		if (slash && !real)
			return wrong(reader, "only '/real' may follow a place, not", slash);
		if (slash)
			*slash = '\0';
		if (strcmp(place, reader->place) != 0)
			continue;
		reader->place_found = true;
		*named |= !(real && reader->simulated);
	}
	return true;
}

static bool add_line(struct reader *reader, const struct vt_test *test, const char *quirks)
{
	struct vt_known *known = reader->known;
	struct line *lines =
		realloc(known->lines, (known->count + 1) * sizeof(*lines)); /* the list is short */
	char *copy = strdup(quirks);

	if (lines)
		known->lines = lines;
	if (!lines || !copy) {
		free(copy);
		return wrong(reader, "out of memory at", test->name);
	}
	lines[known->count++] = (struct line){reader->number, test, copy};
	return true;
}

static const struct line *find_line(const struct vt_known *known, const struct vt_test *test)
{
	for (unsigned int i = 0; i < known->count; i++)
		if (known->lines[i].test == test)
			return &known->lines[i];
	return NULL;
}

static bool read_line(struct reader *reader, char *text)
{
	char *kind, *places, *name, *quirks;
	const struct vt_test *test;
	bool named = false;

	text[strcspn(text, "\n")] = '\0';
	if (!*text || *text == '#')
		return true;
	kind = strsep(&text, " ");
	if (strcmp(kind, "test") != 0)
		return wrong(reader, "a line begins with 'test', not", kind);
	places = strsep(&text, " ");
	name = strsep(&text, " ");
	quirks = strsep(&text, " ");
	if (!text || !*text)
		return wrong(reader, "places, test, quirks and a sentence must follow", kind);
	test = find_test(reader, name);
	if (!test)
		return wrong(reader, "there is no test", name);
	if (!check_quirks(reader, quirks) || !read_places(reader, places, &named))
		return false;
	if (!named)
		return true;
	if (find_line(reader->known, test))
		return wrong(reader, "a second line for this place and the test", name);
	return add_line(reader, test, quirks);
}

static bool read_all(struct reader *reader, FILE *file)
{
	char *text = NULL;
	size_t size = 0;
	bool good = true;

	while (good && getline(&text, &size, file) >= 0) {
		reader->number++;
		good = read_line(reader, text);
	}
	free(text);
	if (good && ferror(file))
		return wrong(reader, "cannot be read", reader->known->file);
	if (good && !reader->place_found)
		return wrong(reader, "no line names the profile", reader->place);
	return good;
}

struct vt_known *vt_known_load(const struct vt_options *options)
{
	struct vt_known *known = calloc(1, sizeof(*known));
	FILE *file = fopen(options->known, "re");
	struct reader reader = {.known = known,
				.suites = options->all_suites,
				.place = options->profile,
				.simulated = vt_simulated(options)};

	if (!known || !file) {
		fprintf(stderr, "verbena test: --known %s: %s\n", options->known, strerror(errno));
		if (file)
			fclose(file);
		free(known);
		return NULL;
	}
	known->file = options->known;
	if (!read_all(&reader, file)) {
		vt_known_free(known);
		known = NULL;
	}
	fclose(file);
	return known;
}

void vt_known_free(struct vt_known *known)
{
	if (!known)
		return;
	for (unsigned int i = 0; i < known->count; i++)
		free(known->lines[i].quirks);
	free(known->lines);
	free(known);
}

bool vt_known_judge(const struct vt_known *known, struct vt_record *record)
{
	const struct line *line = find_line(known, record->test);
	char *text;

	if (!line)
		return true;
	record->quirks = line->quirks;
	if (record->outcome == VT_FAILED)
		record->outcome = VT_KNOWN;
	if (record->outcome != VT_PASSED)
		return true;
	if (asprintf(&text, "it passed, and %s:%u says that it fails: remove the line\n",
		     known->file, line->number) < 0)
		return false;
	free(record->text);
	record->text = text;
	record->outcome = VT_FAILED;
	return true;
}
