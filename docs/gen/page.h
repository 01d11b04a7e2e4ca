/* SPDX-License-Identifier: MIT */
/* The command line of a program that prints a page of docs/. */
#ifndef DOCS_GEN_PAGE_H
#define DOCS_GEN_PAGE_H

/*
 * Prints the text; with --check FILE, compares FILE with it. Frees text, which may be NULL if it
 * could not be made. Returns the exit status.
 */
int page_print(int argc, char **argv, char *text);

#endif
