/* SPDX-License-Identifier: MIT */
/*
 * Loading a real library, and noting why the thread's last call failed where the backend knows more
 * than the errno: the libraries report failures by errno alone.
 */
#ifndef BACKENDS_IBVERBS_LOAD_H
#define BACKENDS_IBVERBS_LOAD_H

#include <stddef.h>
#include <verbena/why.h>

struct symbol {
	const char *name;
	const char *version; /* the symbol's default version in rdma-core 44 */
	size_t place;	     /* of its pointer, in the structure of the library */
};

struct load {
	const char *variable; /* names the file */
	const char *file;     /* without the variable */
	const char *needed;   /* a symbol that the library has at least */
	enum vb_reason missing, dropin;
	const struct symbol *symbols;
	size_t count;
};

/* The outcome of a load. */
struct loaded {
	struct vb_why why; /* VB_WHY_NONE: the library is loaded */
	char text[384];	   /* of why */
};

/*
 * Loads the library and sets the pointers of the structure @into; those of symbols that the library
 * does not have stay NULL, and all do if it cannot be loaded.
 */
void load_library(const struct load *load, void *into, struct loaded *loaded);

/* Returns why the thread's last call failed; VB_WHY_NONE: the errno is all that is known. */
const struct vb_why *load_last_why(void);

/* Begins a call: no reason is known. */
void load_begin(void);

/* Keeps the reason of a failure of @verb. Returns @error. */
int load_fail(int error, const char *verb, struct vb_why why);

#endif /* BACKENDS_IBVERBS_LOAD_H */
