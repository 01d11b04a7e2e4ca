# SPDX-License-Identifier: MIT
# A UC QP cannot have an SRQ.
source ibv_create_qp(3), Notes: an SRQ is for RC or UD
known rxe-6.1,rxe-6.12 srqs_on_uc

srq s
qp q UC srq=s = EINVAL
