/* SPDX-License-Identifier: MIT */
#ifndef SRC_CONNECT_CONFIG_H
#define SRC_CONNECT_CONFIG_H

#include <verbena/connect.h>

/* Checks all settings. Returns 0, or an errno with a sentence that names the first setting that is
 * out of its range. */
int qp_config_check(const struct vb_qp_config *config);

#endif /* SRC_CONNECT_CONFIG_H */
