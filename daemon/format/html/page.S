/* SPDX-License-Identifier: BSD-2-Clause */
/* The pages that build.mjs makes, see pages.h. */
#ifdef __CET__
#include <cet.h> /* the linker marks a program for CET only if every object has this note */
#endif
	.macro part name, file
	.globl \name, \name\()_size
\name:
	.incbin "\file"
1:
	.balign 8
\name\()_size:
	.quad 1b - \name
	.endm

	.section .rodata
	part html_head, "page.head"
	part html_tail, "page.tail"
	part slow_page_head, "slow.head"
	part slow_page_tail, "slow.tail"
	part live_page, "live.page"
	part live_policy, "live.policy"
	.section .note.GNU-stack, "", @progbits
