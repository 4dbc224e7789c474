/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cleanup attributes, which let a reader check one function for leaks without reading its callees.
 * Values that outlive the function are passed on with TAKE_PTR or TAKE_FD.
 */
#ifndef PYPROF_BASE_CLEANUP_H
#define PYPROF_BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define _cleanup_free_	 _cleanup_(freep)
#define _cleanup_close_	 _cleanup_(closep)
#define _cleanup_fclose_ _cleanup_(fclosep)

/* TAKE_PTR(p) returns p and sets it to NULL. TAKE_FD(fd) returns fd and sets it to -1. */
#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) take_ptr_ = (p);                                                     \
		(p) = NULL;                                                                        \
		take_ptr_;                                                                         \
	})
#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int take_fd_ = (fd);                                                               \
		(fd) = -1;                                                                         \
		take_fd_;                                                                          \
	})

/* DEFINE_FREEP(type, fn) defines `fn##p` for _cleanup_. fn: `void fn(type *)`, accepts NULL. */
#define DEFINE_FREEP(type, fn)                                                                     \
	static inline void fn##p(type **p)                                                         \
	{                                                                                          \
		fn(*p);                                                                            \
	}

#endif
