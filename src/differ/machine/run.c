/* SPDX-License-Identifier: MIT */
#include "src/differ/machine/run.h"

#include "src/differ/compare/compare.h"
#include "src/differ/machine/machine.h"

static void run_step(struct vd_machine *machine)
{
	struct vd_outcome *outcome = vd_outcome(machine);

	*outcome = (struct vd_outcome){.bad = -2};
	outcome->answer = vd_execute(machine);
	vd_observe(machine, vd_verbs[vd_step(machine)->verb].flags & VD_SETTLES &&
				    outcome->answer != VD_SKIPPED);
}

int vd_run(struct vd_site *site, const struct vd_program *program, const struct vd_record *expected,
	   struct vd_record *record)
{
	struct vd_machine machine = {
		.program = program, .site = site, .record = record, .expected = expected};
	int error;

	record->step_count = record->completion_count = record->event_count = 0;
	error = vd_machine_open(&machine);
	for (machine.step = 0; !error && machine.step < program->count; machine.step++) {
		run_step(&machine);
		record->step_count++;
		if (expected && (record->step_count > expected->step_count ||
				 vd_compare_step(program, machine.step, expected, record, NULL)))
			break;
	}
	vd_machine_close(&machine);
	return error;
}
