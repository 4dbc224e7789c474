// SPDX-License-Identifier: BSD-2-Clause
/* base/array: growing by doubling, zeroed; unchanged if there is no memory. */
#include "base/array.h"

#include "base/sanitizer.h"
#include "harness/test.h"

Test(array, grows_by_doubling)
{
	uint32_t room = 0;
	uint64_t *v = array_room(NULL, &room, 1, 4, sizeof(*v)), *same;

	cr_assert(v && room == 4);
	for (uint32_t i = 0; i < 4; i++) {
		cr_assert_eq(v[i], 0);
		v[i] = i + 1;
	}
	same = array_room(v, &room, 4, 4, sizeof(*v));
	cr_assert(same == v && room == 4, "there was room");
	v = array_room(v, &room, 5, 4, sizeof(*v));
	cr_assert(v && room == 8);
	for (uint32_t i = 0; i < 8; i++)
		cr_assert_eq(v[i], i < 4 ? i + 1 : 0);
	v = array_room(v, &room, 100, 4, sizeof(*v));
	cr_assert(v && room == 128 && v[3] == 4 && v[127] == 0);
	free(v);
	check_no_leaks();
}

/* first does not have to be a power of two, or as large as what is needed. */
Test(array, first_room)
{
	uint32_t room = 0;
	char *v = array_room(NULL, &room, 7, 3, 1);

	cr_assert(v && room == 12);
	free(v);
	check_no_leaks();
}

#if !SANITIZER_ADDRESS /* which ends the program if a size is too large */
Test(array, without_memory)
{
	uint32_t room = 0;
	char *v = array_room(NULL, &room, 1, 1, 1);

	cr_assert(v && room == 1);
	*v = 'x';
	cr_assert_null(array_room(v, &room, UINT32_MAX, 1, SIZE_MAX / 2));
	cr_assert(room == 1 && *v == 'x', "unchanged");
	free(v);
	check_no_leaks();
}
#endif
