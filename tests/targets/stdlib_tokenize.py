# SPDX-License-Identifier: BSD-2-Clause
"""tokenize: a generator with regular expressions, and its inverse."""

import io
import os
import tokenize

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = b""
for name in ("mixed.py", "mixed_suspended.py"):
    with open(os.path.join(HERE, name), "rb") as f:
        SOURCE += f.read()


def main(rounds=5):
    for _ in range(rounds):
        tokens = list(tokenize.tokenize(io.BytesIO(SOURCE).readline))
        assert len(tokens) > 4000
        assert tokenize.untokenize(tokens) == SOURCE
        assert len(tokenize.untokenize(token[:2] for token in tokens)) > 10000
