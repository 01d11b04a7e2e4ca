/* SPDX-License-Identifier: MIT */
/*
 * The sanitizer: it watches the verbs and completions of the process, on any backend, and reports
 * mistakes that no status shows. docs/checks.md describes the rules. `verbena run --check` and the
 * variable VERBENA_CHECK ask for it from outside.
 */
#ifndef VERBENA_CHECK_H
#define VERBENA_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum vb_rule {
	VB_RULE_NONE,
#define VB_RULE(number, name, word, about, remedy) VB_RULE_##name = (number),
#include <verbena/rules.def>
};

/* The exit status of a process with findings, unless it is set to another one. */
#define VB_CHECK_EXIT_STATUS 99

/* All members 0: the defaults. */
struct vb_check_options {
	const char *file; /* findings go to its end; "%p" is the process number. NULL: stderr */
	const char *suppressions; /* a file of findings that are not reported; NULL: none */
	/* The status with which the process exits if there are findings; 0: VB_CHECK_EXIT_STATUS,
	 * -1: the program's own. */
	int exit_status;
	bool abort; /* true: abort(3) after the first finding */
	/* How many bytes of each buffer are compared, at its two ends; 0: 64 KiB. */
	uint32_t buffer_bytes;
	/* true: simulated devices use each order of writes to memory that verbs allow, and the rule
	 * order-assumed watches; holds for worlds that are made after vb_check_enable(). */
	bool order;
};

/*
 * Begins to watch. @options may be NULL. No other thread may be inside a verb. Objects that exist
 * already are not watched. Returns 0, EALREADY (the sanitizer is enabled), EINVAL (a
 * wrong line in the file of suppressions), ENOMEM, or an error of open(2), with a sentence for
 * vb_last_error().
 */
int vb_check_enable(const struct vb_check_options *options);

/*
 * Ends that, and forgets all objects. What was found stays counted; the process exits with its own
 * status. No other thread may be inside a verb.
 */
void vb_check_disable(void);

/* Returns how many findings of a rule there were, the suppressed ones and repetitions not counted; of
 * all rules with VB_RULE_NONE. Any thread may call it. */
uint64_t vb_check_findings(enum vb_rule rule);

/* Returns the word of a rule, such as "cq-too-small"; NULL for a number that is none. */
const char *vb_check_rule_word(enum vb_rule rule);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_CHECK_H */
