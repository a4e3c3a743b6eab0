"""What is imported when it is needed, and not before: it takes memory in every process, and time at every start."""

from __future__ import annotations

import subprocess
import sys

# The modules that a module must not import, by what they are for.
LATE = {
    "coaching_service.command_line.group": (  # --help
        "pymongo",
        "aiohttp",
        "marshmallow",
        "structlog",
        "coaching_service.settings",
    ),
    "coaching_service.command_line.serve": (  # the process that continues as the supervisor
        "aiohttp_jinja2",
        "coaching_service.app",
        "coaching_service.features",
    ),
    "coaching_service.command_line.serving": (  # a worker
        "mcp",  # requests of assistants
        "mcp_types",
        "starlette",
        "uvicorn",
        "httpx2",
        "icalendar",  # calendar subscriptions
        "PIL",  # drawings of the demo company; pictures are decoded in a process of their own
        "opentelemetry.sdk",  # tracing, which is off by default
        "opentelemetry.exporter",
        "rich.progress",  # other commands
        "coaching_service.command_line.doctor",
        "coaching_service.installation.backup.contents",
        "coaching_service.installation.backup.runs",
        "obstore",  # the bucket of backups
        "pyrage",
    ),
}


def test_large_modules_are_not_imported_before_they_are_needed() -> None:
    """Each is imported after those that a process has imported before."""
    program = "import importlib, sys\nfor each in sys.argv[1:]: importlib.import_module(each); print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", program, *LATE], capture_output=True, text=True, check=True)
    for module, printed in zip(LATE, result.stdout.splitlines(), strict=True):
        imported = set(printed.split())
        assert module in imported
        assert sorted(imported.intersection(LATE[module])) == []
