/* SPDX-License-Identifier: MIT */
/*
 * Values of a YAML document, each with its line, and one form of message about a wrong value.
 *
 * A function that returns bool returns false after it has written a message, and reading then
 * stops. The functions that read a value return true and change nothing where the value is not
 * given. A value's key is written as people would: "devices[1].mtu".
 */
#ifndef SRC_PROJECT_CONFIG_H
#define SRC_PROJECT_CONFIG_H

#include "src/project/words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yaml.h>

/* The key of the section itself. The keys inside it do not repeat it. */
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

/* True for a null of YAML 1.1, as Ruby reads it. */
bool config_is_null(const yaml_node_t *node);

/* Writes "FILE:LINE: KEY: ..." and returns false. */
bool config_fail(const struct config *config, const struct config_value *value, const char *fmt,
		 ...) __attribute__((format(printf, 3, 4)));

/*
 * Finds the values of a mapping's keys, whether these are written with or without a leading colon,
 * and follows merge keys (<<). names are the allowed keys; names and values have count entries.
 * An unknown key, a key given twice and a key without value are errors.
 */
bool config_mapping(const struct config *config, const struct config_value *mapping,
		    const char *const *names, unsigned int count, struct config_value *values);

/* Reads one entry of a list, at an index from 0 up. */
typedef bool config_entry_fn(const struct config *config, const struct config_value *entry,
			     unsigned int index, void *arg);

/* An entry of a list. */
struct config_value config_entry(const struct config *config, const struct config_value *list,
				 unsigned int index);

/* Calls read for each entry of a list of min to max entries; what is the entries' name in
 * messages. */
bool config_list(const struct config *config, const struct config_value *list, const char *what,
		 unsigned int min, unsigned int max, config_entry_fn *read, void *arg);

/* A text of 1 to size_bytes - 1 bytes, without control characters; copied to text. */
bool config_text(const struct config *config, const struct config_value *value, char *text,
		 size_t size_bytes);

/* A text of letters, digits, '_', '-' and '.'. */
bool config_name(const struct config *config, const struct config_value *value, char *name,
		 size_t size_bytes);

/* A number, decimal or 0x hexadecimal, min <= number <= max. */
bool config_number(const struct config *config, const struct config_value *value, uint64_t min,
		   uint64_t max, uint64_t *number);

/* One of the words, with or without a leading colon. */
bool config_word(const struct config *config, const struct config_value *value,
		 const struct project_word *words, int *meaning);

/* A duration: nanoseconds, or a number with ns, us, ms or s. */
bool config_duration(const struct config *config, const struct config_value *value, uint64_t max_ns,
		     uint64_t *duration_ns);

/* Bits a second: a number, or a number with Kbps, Mbps or Gbps (powers of 1000). Not 0. */
bool config_rate(const struct config *config, const struct config_value *value,
		 uint64_t *bits_per_second);

#endif
