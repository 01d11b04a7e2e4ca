/* SPDX-License-Identifier: MIT */
#include "src/check/offence.h"

#include "src/base/count.h"
#include "src/base/fnv.h"
#include "src/check/suppress.h"
#include "src/explain/sink.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct rule {
	enum vb_rule rule;
	const char *word, *remedy;
} rules[] = {
#define VB_RULE(number, name, word, about, remedy) {VB_RULE_##name, word, remedy},
#include <verbena/rules.def>
};

#define RULE_NUMBERS   32   /* more than the highest number of a rule */
#define KNOWN_MAX      4096 /* findings that are kept for comparison */
#define SENTENCE_BYTES 1024
#define REPORT_BYTES   (SINK_LINE_BYTES - 64)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sink sink;
static int exit_status;
static bool aborts;
static uint64_t counts[RULE_NUMBERS]; /* by rule; of all rules: counts[0] */
static uint64_t repeated_count;

/* The reported findings. Two findings are the same if rule and places are. */
static struct known {
	enum vb_rule rule;
	uint64_t places; /* hash_places() */
} known[KNOWN_MAX];
static unsigned int known_count;

#define VB_RULE(number, name, word, about, remedy) \
	_Static_assert((number) < RULE_NUMBERS, "the counts have a place for " #name);
#include <verbena/rules.def>

static const struct rule *find_rule(enum vb_rule number)
{
	for (size_t i = 0; i < COUNT(rules); i++)
		if (rules[i].rule == number)
			return &rules[i];
	return NULL;
}

const char *vb_check_rule_word(enum vb_rule rule)
{
	const struct rule *row = find_rule(rule);

	return row ? row->word : NULL;
}

int offence_start(const struct vb_check_options *options)
{
	suppress_forget();
	if (options->suppressions && suppress_read(options->suppressions))
		return errno;
	sink_init(&sink, options->file ? options->file : "stderr");
	exit_status = options->exit_status ? options->exit_status : VB_CHECK_EXIT_STATUS;
	aborts = options->abort;
	return 0;
}

/* --- what a finding says --- */

struct text {
	char bytes[REPORT_BYTES];
	size_t length;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends to the text, and cuts what does not fit. */
static void add(struct text *text, const char *format, ...)
{
	const size_t room = sizeof(text->bytes) - text->length;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text->bytes + text->length, room, format, arguments);
	va_end(arguments);
	if (length > 0)
		text->length += (size_t)length < room ? (size_t)length : room - 1;
}

/* The places of a finding, as they are printed. */
struct described {
	struct place at, until; /* until: its text is "" if the finding has only `at` */
};

static void describe(const struct offence_place *places, struct described *found)
{
	for (unsigned int i = 0; i < OFFENCE_PLACES_MAX && places[i].label; i++) {
		spot_describe(&places[i].spot, &found[i].at);
		if (places[i].until)
			spot_describe(places[i].until, &found[i].until);
	}
}

static void add_spot(struct text *text, const struct place *place)
{
	if (place->text[0])
		add(text, "%s%s%s", place->verb, place->verb[0] ? " by " : "", place->text);
	else
		add(text, "an unknown place");
}

static void add_places(struct text *text, const struct offence_place *places,
		       const struct described *found)
{
	for (unsigned int i = 0; i < OFFENCE_PLACES_MAX && places[i].label; i++) {
		add(text, "\n    %s: ", places[i].label);
		if (!places[i].until) {
			add_spot(text, &found[i].at);
			continue;
		}
		add(text, "between ");
		add_spot(text, &found[i].at);
		add(text, " and ");
		add_spot(text, &found[i].until);
	}
}

static bool matches(enum vb_rule rule, const struct place *place)
{
	return place->text[0] && suppress_matches(rule, place->text);
}

static bool is_suppressed(enum vb_rule rule, const struct described *found, const char *sentence)
{
	for (unsigned int i = 0; i < OFFENCE_PLACES_MAX; i++)
		if (matches(rule, &found[i].at) || matches(rule, &found[i].until))
			return true;
	return suppress_matches(rule, sentence);
}

static void print(const struct rule *rule, const struct offence_place *places,
		  const struct described *found, const char *sentence)
{
	const char *first = found[0].at.text;
	struct text text = {.length = 0};

	add(&text, "%s: %s", rule->word, sentence);
	add_places(&text, places, found);
	add(&text, "\n    remedy: %s", rule->remedy);
	add(&text, "\n    to silence: %s:%s%s%s in the file of suppressions", rule->word,
	    *first ? "*" : "", *first ? first : "*", *first ? "*" : "");
	sink_write(&sink, "check", text.bytes);
}

/* --- which findings are reported --- */

/* Hashes the texts of the places. The innermost address alone would not tell two places apart: without
 * optimisation it is in an inline function of <infiniband/verbs.h>, which a source has once. */
static uint64_t hash_places(const struct offence_place *places, const struct described *found)
{
	uint64_t hash = FNV_BASIS;

	for (unsigned int i = 0; i < OFFENCE_PLACES_MAX && places[i].label; i++) {
		const char *text = found[i].at.text;

		if (*text)
			hash = fnv_add(hash, text, strlen(text) + 1);
		else
			hash = fnv_add(hash, &places[i].spot.frames[0], sizeof(void *));
	}
	return hash;
}

/* Returns true, and remembers the finding, if it was not reported before. */
static bool is_new(enum vb_rule rule, const struct offence_place *places,
		   const struct described *found)
{
	const struct known finding = {rule, hash_places(places, found)};

	for (unsigned int i = 0; i < known_count; i++)
		if (known[i].rule == finding.rule && known[i].places == finding.places)
			return false;
	if (known_count < KNOWN_MAX)
		known[known_count++] = finding;
	return true;
}

static void report(enum vb_rule rule, const struct offence_place *places, const char *sentence)
{
	struct described found[OFFENCE_PLACES_MAX] = {0};

	describe(places, found);
	if (!is_new(rule, places, found)) {
		repeated_count++;
		return;
	}
	if (is_suppressed(rule, found, sentence))
		return;
	counts[0]++;
	counts[rule]++;
	print(find_rule(rule), places, found, sentence);
	if (aborts)
		abort();
}

void offence_report(enum vb_rule rule, const struct offence_place places[OFFENCE_PLACES_MAX],
		    const char *format, ...)
{
	const int err = errno;
	char sentence[SENTENCE_BYTES];
	va_list arguments;
	int state;

	/* A call out of sight may have ended what seems to be in flight. */
	if (layer_lost_sight())
		return;
	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&mutex);
	report(rule, places, sentence);
	pthread_mutex_unlock(&mutex);
	pthread_setcancelstate(state, NULL);
	errno = err;
}

uint64_t vb_check_findings(enum vb_rule rule)
{
	uint64_t count = 0;

	pthread_mutex_lock(&mutex);
	if ((size_t)rule < RULE_NUMBERS)
		count = counts[rule];
	pthread_mutex_unlock(&mutex);
	return count;
}

/* --- the end --- */

void offence_say(const char *sentence)
{
	sink_write(&sink, "check", sentence);
}

int offence_end(void)
{
	char sentence[SENTENCE_BYTES];

	if (!counts[0])
		return 0;
	snprintf(sentence, sizeof(sentence), "%" PRIu64 " finding%s, %" PRIu64 " repeated",
		 counts[0], counts[0] == 1 ? "" : "s", repeated_count);
	sink_write(&sink, "check", sentence);
	return exit_status > 0 ? exit_status : 0;
}

void offence_forget(void)
{
	memset(counts, 0, sizeof(counts));
	memset(known, 0, known_count * sizeof(known[0]));
	known_count = 0;
	repeated_count = 0;
}

void offence_lock(void)
{
	pthread_mutex_lock(&mutex);
}

void offence_unlock(void)
{
	pthread_mutex_unlock(&mutex);
}
