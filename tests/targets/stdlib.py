# SPDX-License-Identifier: BSD-2-Clause
"""Several modules of the standard library, one after the other: the programs stdlib_*.py, with fewer rounds."""

import stdlib_ast
import stdlib_configparser
import stdlib_email
import stdlib_fractions
import stdlib_html
import stdlib_json
import stdlib_pydecimal
import stdlib_statistics
import stdlib_tokenize

ROUNDS = (
    (stdlib_ast, 1),
    (stdlib_configparser, 1),
    (stdlib_email, 2),
    (stdlib_fractions, 2),
    (stdlib_html, 1),
    (stdlib_json, 1),
    (stdlib_pydecimal, 1),
    (stdlib_statistics, 1),
    (stdlib_tokenize, 1),
)


def main():
    for module, rounds in ROUNDS:
        module.main(rounds)
