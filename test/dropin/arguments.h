/* SPDX-License-Identifier: MIT */
/* Good and bad arguments of functions of libc, by the kind of the parameter. */
#ifndef TEST_DROPIN_ARGUMENTS_H
#define TEST_DROPIN_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NEED(what)     ((what) ? (void)0 : (perror(#what), exit(2)))
#define NUMBER(number) ((void *)(intptr_t)(number))

enum kind {
	NONE, /* the function has no such parameter */
	PATH,
	PATHS,	    /* of fts_open(3) */
	TEXT,	    /* another string */
	OUT,	    /* memory to which the function writes */
	STREAM,	    /* FILE * */
	LISTING,    /* DIR * */
	WALK,	    /* FTS * */
	CALLBACK,   /* a function of the program */
	DESCRIPTOR, /* of a file */
	FOLDER,	    /* a descriptor of a folder */
	FLAGS,
	SIZE,
	COUNT,
	POLLFDS,
	FD_SET_,
	EPOLL,
	TIMEOUT_MS,
	TIMESPEC,
	SIGNALS,
	STATUS, /* of _exit(2) */
	KINDS
};

struct bad {
	const char *name; /* NULL ends the list of a kind */
	void *value;
};

/* Makes memory, descriptors and files in the working directory. With @world, the descriptor that nothing makes ready
 * is that of a simulated device's completion channel. With @files, the good paths may be those of a device's files,
 * and `verbena run` has made these files. */
void arguments_make(bool world, bool files);

/* Returns a good argument. @given is the value of kinds that the table chooses: paths, flags, sizes. @position tells
 * the arguments of one call apart. */
void *arguments_good(enum kind kind, void *given, unsigned int position);

/* Returns the bad arguments of a kind. */
const struct bad *arguments_bad(enum kind kind);

#endif
