/* SPDX-License-Identifier: MIT */
/* Tests of GoogleTest that fail, each in its own way: check-fixtures reads the report. */
#include <verbena/fixture/gtest.h>

#include <verbena/verbs.h>

namespace
{

class Fails : public verbena::Test
{
};

TEST_F(Fails, Completion)
{
	struct vb_pair *pair = vb_expect_pair(nullptr);

	vb_expect_completion(pair->b.cq, "RECV wr_id=1");
	vb_pair_close(pair);
}

TEST_F(Fails, Packets)
{
	struct vb_pair *pair = vb_expect_pair(nullptr);

	vb_pair_post(&pair->a, 2, IBV_WR_SEND, 0, 64);
	vb_expect_packets("SEND_ONLY ACK");
	vb_pair_close(pair);
}

TEST_F(Fails, Leak)
{
	struct vb_pair *pair = vb_expect_pair(nullptr);

	vb_alloc_pd(pair->a.context);
	vb_pair_close(pair);
}

TEST_F(Fails, Good)
{
	vb_pair_close(vb_expect_pair(nullptr));
}

} // namespace
