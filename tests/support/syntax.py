"""Syntax trees of modules, for tests about the code itself."""

from __future__ import annotations

import ast
import gc


def parse(text: str) -> ast.Module:
    """Parse a module without collecting garbage meanwhile.

    `ast.parse` of Python 3.11 fails if a finalizer, or a thread that gets its turn by one, parses something else in the
    middle, such as the lines of a traceback: "AST constructor recursion depth mismatch" (python/cpython#106905).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if was_enabled:
            gc.enable()
