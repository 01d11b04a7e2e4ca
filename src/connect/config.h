/* SPDX-License-Identifier: MIT */
#ifndef SRC_CONNECT_CONFIG_H
#define SRC_CONNECT_CONFIG_H

#include <verbena/connect.h>

/* Whether each setting is in its range. 0, or an errno with the sentence that names the first that
 * is not. */
int qp_config_check(const struct vb_qp_config *config);

#endif /* SRC_CONNECT_CONFIG_H */
