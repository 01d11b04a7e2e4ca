/* SPDX-License-Identifier: MIT */
/* Lines 'known': on which devices the script fails, and why. */
#include "src/script/parse.h"

#include "src/base/words.h"

#include <string.h>
#include <verbena/sim.h>

static const char *quirk_name(unsigned int index)
{
	return vb_sim_quirk_name(index, NULL);
}

/* Checks "QUIRK[,QUIRK...]". */
static bool check_quirks(struct parser *parser, char *list)
{
	const char *quirk;

	while ((quirk = strsep(&list, ",")))
		if (vb_words_find(quirk_name, quirk) < 0)
			return FAIL("there is no quirk '%s'; docs/semantics.md lists them, and '-' "
				    "and a sentence stand for none",
				    quirk);
	return true;
}

bool parse_known(struct parser *parser)
{
	char places[SCRIPT_TEXT_MAX], *list = places, *why, *place;

	strcpy(places, parser->line->word);
	while ((place = strsep(&list, ","))) {
		place[strcspn(place, "/")] = '\0';
		if (vb_words_find(vb_sim_profile_name, place) < 0)
			return FAIL("there is no profile '%s'", place);
	}
	why = parse_take_word(parser);
	if (!why || (strcmp(why, "-") == 0 && !parse_take_word(parser)))
		return FAIL("give the quirks by which the script fails, or '-' and a sentence");
	return strcmp(why, "-") == 0 || check_quirks(parser, why);
}

/* Returns true if "a,b/real,c" names the place. */
static bool names_place(const char *list, const char *place, bool real)
{
	const size_t length = strlen(place);

	while (list) {
		const char *end = list + length;

		if (strncmp(list, place, length) == 0 &&
		    (!*end || *end == ',' || strncmp(end, real ? "/real" : "/sim", 4) == 0))
			return true;
		list = strchr(list, ',');
		list = list ? list + 1 : NULL;
	}
	return false;
}

const struct script_line *script_known(const struct script *script, const char *place, bool real)
{
	for (unsigned int i = 0; place && i < script->line_count; i++)
		if (script->lines[i].statement == SCRIPT_KNOWN &&
		    names_place(script->lines[i].word, place, real))
			return &script->lines[i];
	return NULL;
}
