/* SPDX-License-Identifier: MIT */
/*
 * Structures as people write them on a command line, "drop,from=sim0,count=1", and as mappings of
 * project.yml with the same keys. A table of keys says what both may hold.
 */
#ifndef SRC_PROJECT_SETTING_H
#define SRC_PROJECT_SETTING_H

#include "src/base/words.h"
#include "src/project/config.h"

#include <verbena/sim.h>

/* What is read: the structure, the world that its names refer to, and room for a message. */
struct setting {
	const struct vb_sim_config *sim;
	void *into;
	uint32_t given; /* a bit for each key of the table */
	char error[768];
};

/* Writes a message and returns false. */
bool setting_fail(struct setting *setting, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

struct setting_key;

/* Reads a value. A message does not repeat the key. */
typedef bool setting_read_fn(struct setting *setting, const struct setting_key *key,
			     const char *value);

struct setting_key {
	const char *name;
	setting_read_fn *read;
	size_t offset;	    /* of the field */
	uint64_t min, max;  /* of a number or a duration */
	vb_words_fn *words; /* of setting_word() */
};

struct setting_table {
	const struct setting_key *keys;
	unsigned int count;
	const char *first;			/* the key whose value may stand alone at first */
	bool (*check)(struct setting *setting); /* of the whole; its messages name the key */
};

#define SETTING_KEYS_MAX CONFIG_KEYS_MAX

/* Returns true if the key of that name was given. */
bool setting_given(const struct setting *setting, const struct setting_table *table,
		   const char *name);

/* Reads a text; setting->into holds zeros. Returns false with a message that names the key. */
bool setting_text(struct setting *setting, const struct setting_table *table, const char *text);

/* Reads a text or a mapping of a project. Returns false after config_fail(). */
bool setting_config(struct setting *setting, const struct setting_table *table,
		    const struct config *config, const struct config_value *value);

/* Into a uint64_t; a uint32_t; an unsigned int (an enum); a bool; a const char *, a device's name. */
setting_read_fn setting_number, setting_number32, setting_duration, setting_word, setting_flag,
	setting_device;

/* The index of a device of that name; -1 after a message that lists the devices. */
int setting_find_device(struct setting *setting, const char *name);

#endif
