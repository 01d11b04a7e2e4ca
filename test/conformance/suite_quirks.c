/* SPDX-License-Identifier: MIT */
/*
 * The quirks of the simulator as a whole. Each quirk has a test of its name in a suite of its
 * subject, quirks_post to quirks_ud, which states what a device with the quirk does. The other
 * suites state what a device without it does.
 */
#include "test/support/quirks.h"

static bool has_test(const struct vt_suite *suite, const char *name)
{
	const struct vt_test *test;

	for (test = suite->tests; test->name; test++)
		if (!strcmp(test->name, name))
			return true;
	return false;
}

/* Returns how many suites of quirks have a test of the name. */
static unsigned int count_tests(struct vt *t, const char *name)
{
	const struct vt_suite *const *suite;
	unsigned int count = 0;

	for (suite = t->suites; *suite; suite++)
		count += !strncmp((*suite)->name, "quirks_", strlen("quirks_")) &&
			 has_test(*suite, name);
	return count;
}

static void every_quirk_has_a_test(struct vt *t)
{
	const char *name, *about;
	unsigned int i;

	for (i = 0; (name = vb_sim_quirk_name(i, &about)); i++) {
		vt_row(t, "%s", name);
		VT_EXPECT(t, about && *about);
		VT_EXPECT_EQ(t, count_tests(t, name), 1);
	}
	VT_EXPECT(t, i > 30);
}

static void unknown_name_is_einval(struct vt *t)
{
	bool on = true;

	VT_ERRNO(t, vb_sim_set_quirk(t->a.ctx, "no_such_quirk", true), EINVAL);
	VT_ERRNO(t, vb_sim_set_quirk(t->a.ctx, "", true), EINVAL);
	VT_ERRNO(t, vb_sim_quirk(t->a.ctx, "no_such_quirk", &on), EINVAL);
	VT_CHECK(t, on);
}

static void set_on_one_device_only(struct vt *t)
{
	const char *name = vb_sim_quirk_name(0, NULL);
	bool on = false;

	ts_quirks(t, "", NULL);
	VT_OK(t, vb_sim_set_quirk(t->a.ctx, name, true));
	VT_OK(t, vb_sim_quirk(t->a.ctx, name, &on));
	VT_CHECK(t, on);
	VT_OK(t, vb_sim_quirk(t->b.ctx, name, &on));
	VT_CHECK(t, !on);
	VT_OK(t, vb_sim_set_quirk(t->a.ctx, name, false));
	VT_OK(t, vb_sim_quirk(t->a.ctx, name, &on));
	VT_CHECK(t, !on);
}

/* Which profile has which quirk is in docs/semantics.md; here, that a device gets its profile's. */
static void profiles_have_their_quirks(struct vt *t)
{
	static const struct {
		const char *profile;
		bool retry_7_is_endless, overrun_ends_polling;
	} rows[] = {
		{"spec", false, false},
		{"rxe-6.1", true, false},
		{"rxe-6.12", true, false},
		{"mlx5", false, true},
	};
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_end *end;
	bool on;

	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		struct vb_sim_device_config device = {.name = "other"};

		vt_row(t, "%s", rows[i].profile);
		strcpy(device.profile, rows[i].profile);
		end = ts_other_device(t, &device, &options);
		VT_OK(t, vb_sim_quirk(end->node->ctx, "retry_7_is_endless", &on));
		VT_EXPECT_EQ(t, on, rows[i].retry_7_is_endless);
		VT_OK(t, vb_sim_quirk(end->node->ctx, "overrun_ends_polling", &on));
		VT_EXPECT_EQ(t, on, rows[i].overrun_ends_polling);
	}
}

static const struct vt_test tests[] = {
	{"every_quirk_has_a_test", "include/verbena/sim.h, vb_sim_quirk_name", VT_NEEDS_SIM,
	 every_quirk_has_a_test},
	{"unknown_name_is_einval", "include/verbena/sim.h, vb_sim_set_quirk", VT_NEEDS_SIM,
	 unknown_name_is_einval},
	{"set_on_one_device_only", "include/verbena/sim.h, vb_sim_set_quirk",
	 VT_NEEDS_SIM | VT_NEEDS_TWO_DEVICES, set_on_one_device_only},
	{"profiles_have_their_quirks", "include/verbena/sim.h, struct vb_sim_device_config",
	 VT_NEEDS_SIM, profiles_have_their_quirks},
	{NULL},
};

const struct vt_suite vt_suite_quirks = {"quirks", "quirks: names, profiles, tests", tests,
					 .simulator = true};
