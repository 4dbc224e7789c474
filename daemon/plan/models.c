// SPDX-License-Identifier: BSD-2-Clause
/* The sites of each calling model, in planning order */
#include "plan/planner.h"

int models_plan(struct planner *p)
{
	typedef int (*step_fn)(struct planner *);
	static const step_fn frame_object[] = {models_plan_frame_object, NULL};
	static const step_fn cframe_entry[] = {models_plan_resume,
					       models_plan_tracing,
					       models_plan_throw,
					       models_plan_is_entry,
					       models_plan_yield_edges,
					       models_prove_is_entry,
					       NULL};
	static const step_fn clear_and_pop[] = {
		models_plan_resume,	   models_plan_throw,
		models_plan_yield,	   models_plan_instrumented_yield,
		models_plan_clear_and_pop, NULL};
	static const step_fn *const models[] = {
		[LAYOUT_FRAME_OBJECT] = frame_object,
		[LAYOUT_CFRAME_ENTRY] = cframe_entry,
		[LAYOUT_CLEAR_AND_POP] = clear_and_pop,
	};
	int r = 0;

	for (const step_fn *step = models[p->layout->model]; *step && r == 0; step++)
		r = (*step)(p);
	return r;
}
