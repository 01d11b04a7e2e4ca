/* SPDX-License-Identifier: MIT */
/* Words of which a person chooses one in an option, a variable or a project file. */
#ifndef SRC_BASE_WORDS_H
#define SRC_BASE_WORDS_H

#include <stddef.h>

/* Returns the word at an index from 0 up; NULL at the end. */
typedef const char *vb_words_fn(unsigned int index);

/* Returns the index of the word; -1 if the text is none of the words. */
int vb_words_find(vb_words_fn *words, const char *text);

/* Writes all words with commas between them. Returns the text. */
const char *vb_words_list(vb_words_fn *words, char *text, size_t size_bytes);

#endif /* SRC_BASE_WORDS_H */
