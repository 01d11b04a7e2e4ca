/* SPDX-License-Identifier: MIT */
#include "src/base/words.h"

#include <stdio.h>
#include <string.h>

int vb_words_find(vb_words_fn *words, const char *text)
{
	const char *word;

	for (unsigned int i = 0; (word = words(i)); i++)
		if (!strcmp(word, text))
			return (int)i;
	return -1;
}

const char *vb_words_list(vb_words_fn *words, char *text, size_t size_bytes)
{
	size_t used = 0;
	const char *word;

	text[0] = '\0';
	for (unsigned int i = 0; (word = words(i)) && used < size_bytes; i++)
		used += (size_t)snprintf(text + used, size_bytes - used, "%s%s", i ? ", " : "",
					 word);
	return text;
}
