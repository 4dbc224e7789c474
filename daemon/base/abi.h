/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Constants that the platform's ABI defines apart from instructions (see plan/arch/ for those),
 * here for x86-64 Linux.
 */
#ifndef PYPROF_BASE_ABI_H
#define PYPROF_BASE_ABI_H

#include <elf.h>

#define ABI_NAME	"x86-64"
#define ABI_ELF_MACHINE EM_X86_64

/* Relocation types */
#define ABI_RELOC_ABSOLUTE  R_X86_64_64
#define ABI_RELOC_RELATIVE  R_X86_64_RELATIVE
#define ABI_RELOC_GLOB_DAT  R_X86_64_GLOB_DAT
#define ABI_RELOC_JUMP_SLOT R_X86_64_JUMP_SLOT

/* Offset of the thread id in glibc's struct pthread (2.4 and later: nptl/descr.h), bytes */
#define ABI_GLIBC_PTHREAD_TID 720

#endif
