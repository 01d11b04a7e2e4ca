/* SPDX-License-Identifier: MIT */
/*
 * Reads a structure from a text of a command line, "drop,from=sim0,count=1", or from a mapping of project.yml with
 * the same keys. A table of keys says which members there are and how each value is read.
 *
 * A function that returns bool returns false after it has written a message.
 */
#ifndef SRC_PROJECT_SETTING_H
#define SRC_PROJECT_SETTING_H

#include "src/base/words.h"
#include "src/project/config.h"

#include <verbena/sim.h>

/* A structure that is being read. The caller sets sim and into. */
struct setting {
	const struct vb_sim_config *sim; /* has the devices that values may name */
	void *into;			 /* the structure, which the caller has zeroed */
	uint32_t given;			 /* bit I is set if the table's key I was given */
	char error[768];		 /* the message */
};

/* Writes a message and returns false. */
bool setting_fail(struct setting *setting, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

struct setting_key;

/* Reads a value into the structure. Its message does not name the key: the caller does. */
typedef bool setting_read_fn(struct setting *setting, const struct setting_key *key,
			     const char *value);

struct setting_key {
	const char *name;
	setting_read_fn *read;
	size_t offset;	    /* of the member in the structure */
	uint64_t min, max;  /* of a number or a duration */
	vb_words_fn *words; /* of setting_word() */
};

struct setting_table {
	const struct setting_key *keys;
	unsigned int count;
	const char *
		first; /* the key whose value may be the first item of a text without "KEY="; NULL: none */
	/* Checks the whole structure at the end. Its messages name the key. */
	bool (*check)(struct setting *setting);
};

#define SETTING_KEYS_MAX CONFIG_KEYS_MAX

/* Returns true if the key of that name was given. */
bool setting_given(const struct setting *setting, const struct setting_table *table,
		   const char *name);

/* Reads a text. The message names the key. */
bool setting_text(struct setting *setting, const struct setting_table *table, const char *text);

/* Reads one entry of a list, and adds it to the list. The caller has set setting->sim. */
typedef bool setting_add_fn(void *list, const char *text, struct setting *setting);

/* Gives each entry of a text, which are separated by ';', to add(). Writes a message that quotes the entry to
 * @message, of @size_bytes. */
bool setting_list(const char *text, const struct vb_sim_config *sim, setting_add_fn *add,
		  void *list, char *message, size_t size_bytes);

/* Reads a text or a mapping of project.yml. The message is that of config_fail(). */
bool setting_config(struct setting *setting, const struct setting_table *table,
		    const struct config *config, const struct config_value *value);

/* Readers of values; the comment names the type of the member. */
setting_read_fn setting_number;	  /* uint64_t */
setting_read_fn setting_number32; /* uint32_t */
setting_read_fn setting_duration; /* uint64_t, in ns */
setting_read_fn setting_word;	  /* unsigned int or an enum: the index of the word */
setting_read_fn setting_flag;	  /* bool */
setting_read_fn setting_device;	  /* const char *: the name in setting->sim */

/* Returns the index of the device of that name; -1 after a message that lists the devices. */
int setting_find_device(struct setting *setting, const char *name);

#endif
