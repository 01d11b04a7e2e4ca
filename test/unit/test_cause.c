/* SPDX-License-Identifier: MIT */
/* Why a connection failed, by its event: the whole sentence of each reason. */
#include "src/cm/cause.h"
#include "unity.h"

#include <errno.h>

static const struct {
	enum rdma_cm_event_type event;
	int status;
	enum vb_reason reason;
	const char *sentence;
} failures[] = {
	{RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, VB_WHY_CM_EVENT_ADDRESS,
	 "rdma_resolve_addr() has found no device for the address: ENODEV (No such device); check "
	 "the destination, and that a device has an address of its network"},
	{RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, VB_WHY_CM_EVENT_ROUTE,
	 "rdma_resolve_route() has found no path to the address: ETIMEDOUT (Connection timed out); "
	 "check that the port is active, or give the call more time"},
	{RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, VB_WHY_CM_EVENT_CONNECT,
	 "the peer has accepted, but the QP could not be connected: EINVAL (Invalid argument); "
	 "look at the state of the QP, and at the parameters that the peer has given to "
	 "rdma_accept()"},
	{RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, VB_WHY_CM_EVENT_SILENT,
	 "the connection manager of the peer does not answer: ETIMEDOUT (Connection timed out); "
	 "check the address, that the host of the peer is up, and that its program has not ended "
	 "meanwhile"},
	{RDMA_CM_EVENT_UNREACHABLE, 1, VB_WHY_CM_EVENT_SIDR,
	 "the peer gives no QP for datagrams: its SIDR_REP has the status 1; start the program "
	 "that listens, and check its port and port space; with the status 2, it has rejected the "
	 "request"},
	{RDMA_CM_EVENT_REJECTED, 8, VB_WHY_CM_EVENT_NO_SERVICE,
	 "no program of the peer listens at this address and port (reason 8 of the REJ, invalid "
	 "service ID); start the program that listens first, in the same world, and check its "
	 "address, its port and its port space"},
	{RDMA_CM_EVENT_REJECTED, 10, VB_WHY_CM_EVENT_STALE,
	 "the peer still has another connection of this QP or communication ID (reason 10 of the "
	 "REJ, stale connection); wait until the peer has ended that connection, or connect "
	 "another QP"},
	{RDMA_CM_EVENT_REJECTED, 28, VB_WHY_CM_EVENT_CONSUMER,
	 "the program of the peer has rejected the connection, or has destroyed its identifier "
	 "(reason 28 of the REJ, consumer defined); look at the private data of the event, and at "
	 "the output of the peer"},
	{RDMA_CM_EVENT_REJECTED, 26, VB_WHY_CM_EVENT_REJECTED,
	 "the peer has sent a REJ with the reason 26: invalid MTU; correct what the reason names "
	 "in the request; InfiniBand, 12.6.7.2 has the list"},
	{RDMA_CM_EVENT_REJECTED, 35, VB_WHY_CM_EVENT_REJECTED,
	 "the peer has sent a REJ with the reason 35: vendor option is not supported; correct what "
	 "the reason names in the request; InfiniBand, 12.6.7.2 has the list"},
	{RDMA_CM_EVENT_REJECTED, 34, VB_WHY_CM_EVENT_REJECTED,
	 "the peer has sent a REJ with the reason 34: a reason without a name; correct what the "
	 "reason names in the request; InfiniBand, 12.6.7.2 has the list"},
	{RDMA_CM_EVENT_REJECTED, 65535, VB_WHY_CM_EVENT_REJECTED,
	 "the peer has sent a REJ with the reason 65535: a reason without a name; correct what "
	 "the reason names in the request; InfiniBand, 12.6.7.2 has the list"},
	{RDMA_CM_EVENT_MULTICAST_ERROR, -ENETDOWN, VB_WHY_CM_EVENT_MULTICAST,
	 "the port has not joined the multicast group: ENETDOWN (Network is down); check the "
	 "address of the group, and that the port is active"},
};

void setUp(void)
{
}

void tearDown(void)
{
}

void test_each_failure_has_its_sentence(void)
{
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		const struct rdma_cm_event event = {.event = failures[i].event,
						    .status = failures[i].status};
		struct vb_why why;
		char text[512];

		TEST_ASSERT_TRUE(cause_of_event(&event, &why));
		TEST_ASSERT_EQUAL_HEX(failures[i].reason, why.reason);
		TEST_ASSERT_EQUAL_STRING(failures[i].sentence,
					 vb_why_text(&why, text, sizeof(text)));
	}
}

void test_other_events_tell_of_no_failure(void)
{
	static const enum rdma_cm_event_type others[] = {
		RDMA_CM_EVENT_ADDR_RESOLVED,   RDMA_CM_EVENT_ROUTE_RESOLVED,
		RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_CONNECT_RESPONSE,
		RDMA_CM_EVENT_ESTABLISHED,     RDMA_CM_EVENT_DISCONNECTED,
		RDMA_CM_EVENT_DEVICE_REMOVAL,  RDMA_CM_EVENT_MULTICAST_JOIN,
		RDMA_CM_EVENT_ADDR_CHANGE,     RDMA_CM_EVENT_TIMEWAIT_EXIT,
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const struct rdma_cm_event event = {.event = others[i], .status = 8};
		struct vb_why why;

		TEST_ASSERT_FALSE(cause_of_event(&event, &why));
	}
}
