"""What the supervisor is started with, and starting it."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from typing import NoReturn


@dataclass(frozen=True)
class Plan:
    """The workers to run, and what they need.

    `listening` and `metrics_listening` are the numbers of inherited sockets. With `is_embedded` the supervisor runs the
    embedded database. Secrets are not part of it: workers read them from the environment or the data folder.
    """

    workers: int
    listening: int
    metrics_listening: int | None
    host: str
    port: int
    data_dir: str
    is_embedded: bool
    with_demo: bool
    shutdown_seconds: int
    log_format: str
    log_level: str


def replace_process(plan: Plan) -> NoReturn:
    """Continue this process as the supervisor: it needs a third of the memory without the modules of the service."""
    for number in (plan.listening, plan.metrics_listening):
        if number is not None:
            os.set_inheritable(number, True)  # noqa: FBT003 - it takes no keyword
    sys.stdout.flush()
    sys.stderr.flush()
    command = [sys.executable, "-m", "coaching_service.supervisor", json.dumps(asdict(plan))]
    os.execv(sys.executable, command)  # noqa: S606 - our own program


def read_plan(text: str) -> Plan:
    """Return the plan that `replace_process` has passed, whose sockets children do not inherit any more."""
    plan = Plan(**json.loads(text))
    for number in (plan.listening, plan.metrics_listening):
        if number is not None:
            os.set_inheritable(number, False)  # noqa: FBT003 - it takes no keyword
    return plan
