/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether AddressSanitizer is compiled in: gcc and clang report it in different ways. */
#ifndef PYPROF_BASE_SANITIZER_H
#define PYPROF_BASE_SANITIZER_H

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZER_ADDRESS 1
#elif defined(__has_feature)
#define SANITIZER_ADDRESS __has_feature(address_sanitizer)
#else
#define SANITIZER_ADDRESS 0
#endif

#endif
