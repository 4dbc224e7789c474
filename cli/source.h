/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source files that a profile names, for the format `lines`. The target chose these names, so a
 * child process reads the files with no more rights than the target has: as its user, in its root
 * directory. If the target has ended or the profile was saved, as a user without rights (if this is
 * root), else as this process's user. Only regular files of limited size are read, with a deadline.
 */
#ifndef PYPROFCTL_SOURCE_H
#define PYPROFCTL_SOURCE_H

#include "format/format_opts.h"

struct source;

/*
 * s: the profile, borrowed. live: it is the daemon's, so its targets are processes of this machine.
 * NULL: out of memory.
 */
struct source *source_new(const struct snapshot *s, bool live);
void source_free(struct source *src);
DEFINE_FREEP(struct source, source_free)

/* For struct format_opts. */
const struct format_source *source_format(struct source *src);

#endif
