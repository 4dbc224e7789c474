# SPDX-License-Identifier: BSD-2-Clause
"""mixed.py, and then json without its C accelerators: C functions that call Python functions."""

import mixed
import stdlib_json


def main():
    mixed.main()
    stdlib_json.main(1)
