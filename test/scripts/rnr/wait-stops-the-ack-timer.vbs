# SPDX-License-Identifier: MIT
# The ack timer stands still while a message waits for a receive: however often it waits, no retry is lost.
source Linux drivers/infiniband/hw/qib/qib_rc.c, do_rc_ack: RNR NAK, rvt_stop_rc_timers
known rxe-6.1/sim timers_tick
known rxe-6.1/real - SoftRoCE of Linux 6.1 sends nothing after the second wait (measured in each of two runs)
known rxe-6.12 rnr_waits_time_out

qp q RC timeout=14 retry_cnt=1
post_send SEND id=1 length=8
> SEND_ONLY psn=0 length=8
< RNR_NAK psn=0 timer=31 msn=0
+491.52ms > SEND_ONLY psn=0 length=8
< RNR_NAK psn=0 timer=31 msn=0
+491.52ms > SEND_ONLY psn=0 length=8
< RNR_NAK psn=0 timer=31 msn=0
+491.52ms > SEND_ONLY psn=0 length=8
< ACK psn=0 msn=1
completion send id=1
