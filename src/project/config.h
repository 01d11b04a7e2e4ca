/* SPDX-License-Identifier: MIT */
/*
 * Reads values of a YAML document. Each value knows its line and its key, such as "devices[1].mtu", for messages.
 *
 * A function that returns bool returns false after it has written a message to config->error. Reading then stops.
 */
#ifndef SRC_PROJECT_CONFIG_H
#define SRC_PROJECT_CONFIG_H

#include "src/base/words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yaml.h>

/* The key of the section. Messages about keys inside it do not repeat it. */
#define CONFIG_TOP ":verbena:"

struct config {
	yaml_document_t *document;
	const char *file;
	char *error;
	size_t error_size_bytes;
};

/* A value and the key that it stands under. */
struct config_value {
	yaml_node_t *node; /* NULL: not given */
	char key[96];
	unsigned int line; /* from 1 */
};

/* Returns true for a null of YAML 1.1, as Ruby reads it. */
bool config_is_null(const yaml_node_t *node);

/* Writes "FILE:LINE: KEY: ..." and returns false. */
bool config_fail(const struct config *config, const struct config_value *value, const char *fmt,
		 ...) __attribute__((format(printf, 3, 4)));

struct config_key;

/* Reads the entry of a list at an index from 0; into is the list's config_key.into. */
typedef bool config_entry_fn(const struct config *config, const struct config_value *entry,
			     unsigned int index, void *into);

/* Reads a value into key->into. */
typedef bool config_read_fn(const struct config *config, const struct config_value *value,
			    const struct config_key *key);

/* A key that a mapping may have, and how its value is read. */
struct config_key {
	const char *name;
	config_read_fn *read;
	void *into; /* the field, which keeps its content if no value is given */
	uint64_t min,
		max; /* limits of a number, or of the count of entries; max: bytes of a text */
	vb_words_fn *words;	    /* for config_word() */
	config_entry_fn *entry;	    /* for config_list() */
	const char *entries;	    /* for config_list(): what messages call the entries */
	struct config_value *value; /* gets a copy of the value, for later messages; may be NULL */
};

#define CONFIG_KEYS_MAX 20

/*
 * Reads a mapping of count keys, whether these are written with or without a leading colon, and
 * follows merge keys (<<). The values are read in the order of keys. An unknown key, a key given
 * twice and a key without value are errors.
 */
bool config_mapping(const struct config *config, const struct config_value *mapping,
		    const struct config_key *keys, unsigned int count);

/* Returns the entry of a list at an index. */
struct config_value config_entry(const struct config *config, const struct config_value *list,
				 unsigned int index);

/* A list of min to max entries, each of which the function entry reads. */
config_read_fn config_list;

/* A text of 1 to max - 1 bytes, without control characters; into is a char[max]. */
config_read_fn config_text;

/* A text of letters, digits, '_', '-' and '.'. */
config_read_fn config_name;

/* A number, decimal or 0x hexadecimal; into is a uint64_t. */
config_read_fn config_number;

/* One of the words, with or without a leading colon; into is an int, which takes its index. */
config_read_fn config_word;

/* A duration: nanoseconds, or a number with ns, us, ms or s; into is a uint64_t. */
config_read_fn config_duration;

/* Bits a second: a number, or a number with Kbps, Mbps or Gbps (powers of 1000). Not 0; into is a
 * uint64_t. */
config_read_fn config_rate;

#endif
