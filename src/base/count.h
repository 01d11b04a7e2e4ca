/* SPDX-License-Identifier: MIT */
/* The number of entries of an array. */
#ifndef SRC_BASE_COUNT_H
#define SRC_BASE_COUNT_H

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif /* SRC_BASE_COUNT_H */
