/* SPDX-License-Identifier: MIT */
/*
 * The exported functions of libibverbs, found at run time.
 */
#ifndef BACKENDS_IBVERBS_LIBRARY_H
#define BACKENDS_IBVERBS_LIBRARY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <verbena/why.h>

/*
 * A pointer to each exported verb, by the symbol's name; NULL if the loaded library does not export
 * the symbol. The types are those of <infiniband/verbs.h>: __typeof__ of a function refers to no
 * symbol.
 */
struct library {
#define VB_VERB(...)
#define VB_EXPORT(result, name, parameters, arguments, convention, by, object, symbol, version) \
	__typeof__(symbol) *(symbol);
#include <verbena/verbs.def>

	/* Fills the short structure of IBVERBS_1.1; programs call it through a macro. */
	__typeof__(ibv_query_port) *short_query_port;
};

/*
 * Returns the library, which the first call loads. Any thread may call it. The answer is never
 * NULL: if the library could not be loaded, all its pointers are NULL.
 */
const struct library *library(void);

/* Returns true if the library is loaded. */
bool library_loaded(void);

/* Returns why the library could not be loaded; the reason is VB_WHY_NONE if it is loaded. */
struct vb_why library_why(void);

#endif /* BACKENDS_IBVERBS_LIBRARY_H */
