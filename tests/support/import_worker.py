"""A program that for each line it reads starts a process which runs the imports that are due; prints its number.

The processes are copies of this one, which has loaded the service: starting many of them takes no time. A second line
says that the process has ended.
"""

from __future__ import annotations

import asyncio
import os
import sys

from coaching_service import features, runtime
from coaching_service.core.jobs import worker
from coaching_service.integrations.company_import import service as company_import
from coaching_service.settings import Settings


async def run_imports() -> None:
    """Run steps of imports until none is due."""
    async with runtime.open_services(Settings()) as services:
        while await worker.run_due(services, {company_import.IMPORT: features.STEPS[company_import.IMPORT]}):
            pass


def main() -> None:
    """Serve the lines."""
    for _ in sys.stdin:
        if (process_id := os.fork()) == 0:
            asyncio.run(run_imports())
            os._exit(0)
        print(process_id, flush=True)
        os.waitpid(process_id, 0)
        print("ended", flush=True)


if __name__ == "__main__":
    main()
