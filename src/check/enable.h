/* SPDX-License-Identifier: MIT */
/* The sanitizer and the life of its process. */
#ifndef SRC_CHECK_ENABLE_H
#define SRC_CHECK_ENABLE_H

/* The library stays loaded after dlclose(3), so that it sets the status when the process exits. */
void check_keep_loaded(void);

/* Lets the rules look a last time. Returns the status with which the process is to exit; 0: its own. */
int check_finish(void);

#endif /* SRC_CHECK_ENABLE_H */
