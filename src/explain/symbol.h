/* SPDX-License-Identifier: MIT */
/* A call in the program's code as function, file and line, by the program's debug information. */
#ifndef SRC_EXPLAIN_SYMBOL_H
#define SRC_EXPLAIN_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

#define SYMBOL_TEXT_BYTES 384
#define SYMBOL_VERB_BYTES 64

/* A loaded program or library. */
struct module {
	uintptr_t base;	  /* what is added to the addresses of the file; 0 if they are absolute */
	const char *path; /* of the file */
};

struct symbol {
	/*
	 * "main() at SOURCE:123"; without debug information "main() at PROGRAM+0x1234"; of a
	 * stripped file "PROGRAM+0x1234".
	 */
	char text[SYMBOL_TEXT_BYTES];
	/* The inline verb of a header around the call, such as "ibv_post_send"; "": none. */
	char verb[SYMBOL_VERB_BYTES];
	/* True if the verb is compiled as a function of its own: its caller is the place. */
	bool is_verb;
};

/*
 * Opens libdw (elfutils); returns false if there is none. Without libdw the symbols have no lines.
 * Call this once, before the other function.
 */
bool symbol_start(void);

/*
 * Describes the call that returns to @address in a module. @exported is the name of the function, if
 * the caller knows it, or NULL. One thread at a time.
 */
void symbol_describe(uintptr_t address, const struct module *module, const char *exported,
		     struct symbol *symbol);

#endif /* SRC_EXPLAIN_SYMBOL_H */
