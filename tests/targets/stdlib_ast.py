# SPDX-License-Identifier: BSD-2-Clause
"""ast: visitors, transformers, walk, dump, literal_eval over a program's source."""

import ast
import os

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = ""
for name in ("mixed.py", "mixed_suspended.py"):
    with open(os.path.join(HERE, name)) as f:
        SOURCE += f.read()


class Names(ast.NodeVisitor):
    def __init__(self):
        self.names = {}

    def visit_Name(self, node):
        self.names[node.id] = self.names.get(node.id, 0) + 1
        self.generic_visit(node)

    def visit_FunctionDef(self, node):
        self.names[node.name] = 0
        self.generic_visit(node)


class Negate(ast.NodeTransformer):
    def visit_BinOp(self, node):
        self.generic_visit(node)
        if isinstance(node.op, ast.Add):
            return ast.copy_location(ast.BinOp(node.left, ast.Sub(), node.right), node)
        return node


def main(rounds=2):
    for _ in range(rounds):
        module = ast.parse(SOURCE)
        names = Names()
        names.visit(module)
        assert names.names["proto"] == 1
        assert sum(1 for _ in ast.walk(module)) > 3000
        ast.dump(module)
        Negate().visit(module)
        ast.fix_missing_locations(module)
        ast.increment_lineno(module, 3)
        compile(module, "<transformed>", "exec")
        assert ast.literal_eval(repr([{"a": (1, -2)}] * 300))[0]["a"] == (1, -2)
