"""`python -m benchmarks.import_memory`: resident memory by the package that was imported, as JSON in MB.

Each module counts what the process grows by while it is executed, without the modules that it imports.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

_PAGE = os.sysconf("SC_PAGE_SIZE")
_used: defaultdict[str, int] = defaultdict(int)
_inner = [0]


def resident() -> int:
    """The resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def counting(load: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The method of a loader that also counts what the module takes."""

    def count(loader: Any, module: ModuleType) -> Any:
        began = resident()
        _inner.append(0)
        try:
            return load(loader, module)
        finally:
            grown = resident() - began
            _used[package_of(getattr(module, "__name__", None) or module.name)] += grown - _inner.pop()
            _inner[-1] += grown

    return count


def package_of(module: str) -> str:
    """The package that a module counts for: ours, the standard library, or a distribution."""
    first = module.partition(".")[0]
    return "standard library" if first in sys.stdlib_module_names else first


def main() -> None:
    """Import the service as a worker does."""
    start = resident()
    # Methods of the standard library are replaced to observe imports, which mypy rejects.
    for loader in (SourceFileLoader, ExtensionFileLoader):
        loader.exec_module = counting(loader.exec_module)  # type: ignore[assignment, method-assign]
    ExtensionFileLoader.create_module = counting(ExtensionFileLoader.create_module)  # type: ignore[assignment, method-assign]
    importlib.import_module("coaching_service.command_line.serving")
    gc.collect()
    total = resident()
    figures = {name: size / 1e6 for name, size in _used.items()}
    print(json.dumps({"start": start / 1e6, "total": total / 1e6, "packages": figures}))


if __name__ == "__main__":
    main()
