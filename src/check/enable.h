/* SPDX-License-Identifier: MIT */
/* Starting and ending the sanitizer with the process. */
#ifndef SRC_CHECK_ENABLE_H
#define SRC_CHECK_ENABLE_H

/* Ends the sanitizer. Returns the status with which the process is to exit; 0: the program's own status
 * counts. */
int check_finish(void);

#endif /* SRC_CHECK_ENABLE_H */
