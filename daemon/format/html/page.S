/* SPDX-License-Identifier: BSD-2-Clause */
/* The page of the HTML format, see html.c: what stands before the data, and what behind it. */
#ifdef __CET__
#include <cet.h> /* the linker marks a program for CET only if every object has this note */
#endif
	.section .rodata
	.globl html_head, html_tail, html_head_size, html_tail_size
html_head:
	.incbin "page.head"
head_end:
html_tail:
	.incbin "page.tail"
tail_end:
	.balign 8
html_head_size:
	.quad head_end - html_head
html_tail_size:
	.quad tail_end - html_tail
	.section .note.GNU-stack, "", @progbits
