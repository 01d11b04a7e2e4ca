/* SPDX-License-Identifier: MIT */
#include "test/conformance/runner.h"

#include <stdlib.h>
#include <string.h>
#include <verbena/sim.h>

/* In a recorded check, this stands for any text. */
#define ANY "{any}"

/* "test": the test fails; "varies": it fails in some runs; "crash": it is not run. */
enum kind { FAILS, VARIES, CRASHES, KINDS };

static const char *const kind_names[KINDS] = {"test", "varies", "crash"};

/* A line of one of these kinds. */
struct line {
	unsigned int number;
	enum kind kind;
	const struct vt_test *test;
	char *quirks; /* "-" if no quirk of the simulator causes the failure */
	char *sentence;
};

/* A line of the kind "fails": a check that fails in a listed test. */
struct recorded {
	unsigned int number;
	const struct vt_test *test;
	unsigned int count; /* 0: any */
	char *what;
};

struct vt_known {
	const char *file, *place;
	/* The lines of the chosen place. */
	unsigned int count, recorded_count;
	struct line *lines;
	struct recorded *recorded;
};

struct reader {
	struct vt_known *known;
	const struct vt_suite *const *suites;
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

/*
 * Sets *named if the list "a,b/real,c/sim" names the place. Cuts the text. False after a message.
 */
static bool read_places(struct reader *reader, char *places, bool *named)
{
	char *place;

	while ((place = strsep(&places, ","))) {
		char *slash = strchr(place, '/');
		bool real = slash && !strcmp(slash, "/real"), sim = slash && !strcmp(slash, "/sim");

		if (slash && !real && !sim)
			return wrong(reader, "only '/real' or '/sim' may follow a place, not",
				     slash);
		if (slash)
			*slash = '\0';
		if (strcmp(place, reader->known->place) != 0)
			continue;
		reader->place_found = true;
		*named |= reader->simulated ? !real : !sim;
	}
	return true;
}

/* Returns a zeroed entry behind the others, or NULL. The lists are short. */
static void *add_entry(void **entries, unsigned int *count, size_t size_bytes)
{
	char *grown = realloc(*entries, (*count + 1) * size_bytes);

	if (!grown)
		return NULL;
	*entries = grown;
	return memset(grown + (*count)++ * size_bytes, 0, size_bytes);
}

static const struct line *find_line(const struct vt_known *known, const struct vt_test *test)
{
	for (unsigned int i = 0; i < known->count; i++)
		if (known->lines[i].test == test)
			return &known->lines[i];
	return NULL;
}

/* Reads "QUIRKS SENTENCE". */
static bool read_known(struct reader *reader, enum kind kind, const struct vt_test *test,
		       char *text, bool named)
{
	struct vt_known *known = reader->known;
	const char *quirks = strsep(&text, " ");
	struct line *line;

	if (!quirks || !text || !*text)
		return wrong(reader, "quirks and a sentence must follow the test", test->name);
	if (!check_quirks(reader, quirks))
		return false;
	if (!named)
		return true;
	if (find_line(known, test))
		return wrong(reader, "a second line for this place and the test", test->name);
	line = add_entry((void **)&known->lines, &known->count, sizeof(*line));
	if (!line)
		return wrong(reader, "out of memory at", test->name);
	*line = (struct line){reader->number, kind, test, strdup(quirks), strdup(text)};
	return (line->quirks && line->sentence) || wrong(reader, "out of memory at", test->name);
}

/* Reads "COUNT CHECK" of the kind "fails"; COUNT is a number or "+". */
static bool read_recorded(struct reader *reader, const struct vt_test *test, char *text, bool named)
{
	struct vt_known *known = reader->known;
	const char *word = strsep(&text, " ");
	struct recorded *recorded;
	char *end = NULL;
	unsigned long count = word ? strtoul(word, &end, 10) : 0;

	if (!word || (strcmp(word, "+") != 0 && (*end || !count)) || !text || !*text)
		return wrong(reader, "a number or '+', and a check must follow the test",
			     test->name);
	if (!named)
		return true;
	if (!find_line(known, test))
		return wrong(reader, "no line before lists for this place the test", test->name);
	recorded = add_entry((void **)&known->recorded, &known->recorded_count, sizeof(*recorded));
	if (!recorded)
		return wrong(reader, "out of memory at", test->name);
	*recorded = (struct recorded){reader->number, test, count, strdup(text)};
	return recorded->what || wrong(reader, "out of memory at", test->name);
}

static enum kind kind_named(const char *name)
{
	enum kind kind = 0;

	while (kind < KINDS && strcmp(kind_names[kind], name) != 0)
		kind++;
	return kind;
}

static bool read_line(struct reader *reader, char *text)
{
	const char *word;
	char *places, *name;
	const struct vt_test *test;
	enum kind kind;
	bool named = false, recorded;

	text[strcspn(text, "\n")] = '\0';
	if (!*text || *text == '#')
		return true;
	word = strsep(&text, " ");
	kind = kind_named(word);
	recorded = !strcmp(word, "fails");
	if (!recorded && kind == KINDS)
		return wrong(reader, "a line begins with 'test', 'varies', 'crash' or 'fails', not",
			     word);
	places = strsep(&text, " ");
	name = strsep(&text, " ");
	if (!name)
		return wrong(reader, "places and a test must follow", word);
	test = find_test(reader, name);
	if (!test)
		return wrong(reader, "there is no test", name);
	if (!read_places(reader, places, &named))
		return false;
	return recorded ? read_recorded(reader, test, text, named)
			: read_known(reader, kind, test, text, named);
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
		return wrong(reader, "no line names the place", reader->known->place);
	return good;
}

/* Returns true if neither A nor B is a real device. */
static bool all_simulated(const struct vt_options *options)
{
	return vt_simulated(options) && (!options->two || options->two->sim);
}

struct vt_known *vt_known_load(const struct vt_options *options)
{
	struct vt_known *known = calloc(1, sizeof(*known));
	FILE *file = fopen(options->known, "re");
	struct reader reader = {
		.known = known, .suites = options->all_suites, .simulated = all_simulated(options)};

	if (!known || !file) {
		fprintf(stderr, "verbena test: --known %s: %s\n", options->known, strerror(errno));
		if (file)
			fclose(file);
		free(known);
		return NULL;
	}
	known->file = options->known;
	known->place = options->place;
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
	for (unsigned int i = 0; i < known->count; i++) {
		free(known->lines[i].quirks);
		free(known->lines[i].sentence);
	}
	for (unsigned int i = 0; i < known->recorded_count; i++)
		free(known->recorded[i].what);
	free(known->lines);
	free(known->recorded);
	free(known);
}

/* --- judging --- */

/* Returns true if the text is the recorded one, in which each ANY stands for any text. */
static bool fits(const char *recorded, const char *text)
{
	const char *any = strstr(recorded, ANY);
	size_t length = any ? (size_t)(any - recorded) : strlen(recorded);

	if (strncmp(recorded, text, length) != 0)
		return false;
	if (!any)
		return !text[length];
	for (text += length; !fits(any + strlen(ANY), text); text++)
		if (!*text)
			return false;
	return true;
}

static const struct recorded *find_recorded(const struct vt_known *known,
					    const struct vt_test *test,
					    const struct vt_found *found)
{
	for (unsigned int i = 0; i < known->recorded_count; i++) {
		const struct recorded *recorded = &known->recorded[i];

		if (recorded->test == test && fits(recorded->what, found->what) &&
		    (!recorded->count || recorded->count == found->count))
			return recorded;
	}
	return NULL;
}

static bool was_found(const struct recorded *recorded, const struct vt_result *result)
{
	for (unsigned int i = 0; i < result->found_count; i++)
		if (fits(recorded->what, result->found[i].what))
			return true;
	return false;
}

/* Returns true if the checks that failed are those that are recorded; of VARIES, if they are among them. */
static bool is_recorded(const struct vt_known *known, const struct line *line,
			const struct vt_result *result)
{
	for (unsigned int i = 0; i < result->found_count; i++)
		if (!find_recorded(known, line->test, &result->found[i]))
			return false;
	for (unsigned int i = 0; i < known->recorded_count && line->kind != VARIES; i++)
		if (known->recorded[i].test == line->test &&
		    !was_found(&known->recorded[i], result))
			return false;
	return true;
}

/* Writes why a listed test is failed, and the lines to record if the failure is right. */
static char *explain(const struct vt_known *known, const struct line *line,
		     const struct vt_record *record, const struct vt_result *result)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "%s", record->text);
	if (result->died)
		fprintf(out, "%s:%u lists the test, but a test that dies always fails\n",
			known->file, line->number);
	else
		fprintf(out,
			"%s:%u lists the test, but its lines 'fails' have other checks; this run "
			"needs:\n",
			known->file, line->number);
	for (unsigned int i = 0; i < result->found_count && !result->died; i++)
		fprintf(out, "fails %s %s.%s %u %s\n", known->place, record->suite->name,
			record->test->name, result->found[i].count, result->found[i].what);
	return fclose(out) ? NULL : text;
}

/* Replaces the record's text. False: out of memory. */
static bool fail_with(struct vt_record *record, char *text)
{
	if (!text)
		return false;
	free(record->text);
	record->text = text;
	record->outcome = VT_FAILED;
	return true;
}

const char *vt_known_crash(const struct vt_known *known, const struct vt_test *test)
{
	const struct line *line = known ? find_line(known, test) : NULL;

	return line && line->kind == CRASHES ? line->sentence : NULL;
}

bool vt_known_judge(const struct vt_known *known, struct vt_record *record,
		    const struct vt_result *result)
{
	const struct line *line = find_line(known, record->test);
	char *text;

	if (!line || line->kind == CRASHES)
		return true;
	record->quirks = line->quirks;
	if (record->outcome == VT_FAILED) {
		if (result->died || !is_recorded(known, line, result))
			return fail_with(record, explain(known, line, record, result));
		record->outcome = VT_KNOWN;
	}
	if (record->outcome != VT_PASSED || line->kind == VARIES)
		return true;
	if (asprintf(&text, "it passed, and %s:%u says that it fails: remove the line\n",
		     known->file, line->number) < 0)
		return false;
	return fail_with(record, text);
}
