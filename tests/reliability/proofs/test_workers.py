"""Several workers: one port, replaced without a lost request, one sum of their metrics, and an end of all of them."""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from coaching_service.core.metrics import Metrics
from coaching_service.supervisor import GAUGES, add_up, totals_of
from tests.support.drill import require_whole
from tests.support.service_process import Service, command, environment, until

# Time for busy machines.
SEVERAL = {"WORKERS": "2", "SHUTDOWN_SECONDS": "20", "LOG_FORMAT": "json"} | dict.fromkeys(
    (
        "REQUEST_QUEUE_SECONDS",
        *(f"DATABASE_{what}_SECONDS" for what in ("RESPONSE", "TIMEOUT", "SELECTION", "CONNECT")),
    ),
    "60",
)


def lines(service: Service, event: str) -> list[dict[str, Any]]:
    """The log lines with this event."""
    written = (json.loads(line) for line in service.logged.splitlines() if line.startswith("{"))
    return [line for line in written if line["event"] == event]


async def figure(service: Service, name: str, **labels: str) -> float:
    """One series of /metrics."""
    text = await service.call("GET", "/metrics")
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return next((each.value for each in samples if each.name == name and labels.items() <= each.labels.items()), 0.0)


async def run_all(service: Service) -> bool:
    """Whether both workers answer requests."""
    return await figure(service, "workers_running") == 2


def is_running(pid: int) -> bool:
    """Whether a process exists and has not ended."""
    with suppress(OSError):
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    return False


async def change_webhook(service: Service) -> None:
    """Change a webhook to addresses of this machine, on a connection for each, so that every worker gets some."""
    webhook = await service.call("POST", "/coach/webhooks", {"url": "http://127.0.0.1:9/"}, status=201)
    path, closing = f"/coach/webhooks/{webhook['_id']}", {"Connection": "close"}
    for number in range(40):
        await service.call("PATCH", path, {"url": f"http://127.0.0.1:9/{number}"}, headers=closing)


async def test_workers_end_with_a_killed_supervisor(service: Service, own_database: dict[str, str]) -> None:
    """Otherwise they would hold the port, and nothing would stop them. Each allows what `--demo` does."""
    public_only = {"WEBHOOKS_ALLOW_HTTP": "false", "WEBHOOKS_ALLOW_PRIVATE": "false"}
    await service.start(**SEVERAL, **own_database, **public_only)
    await until(lambda: run_all(service), "both workers run")
    await change_webhook(service)
    workers = [line["pid"] for line in lines(service, "a worker is ready")]
    await service.hang_up()
    assert await service.end(signal.SIGKILL) == -signal.SIGKILL
    await until(lambda: not any(map(is_running, workers)), "the workers have ended")
    await service.start(**SEVERAL, **own_database)
    await require_whole(service.facts["baseUrl"], service.facts["apiKey"], **own_database)


def test_failed_start_of_the_first_worker_ends_the_supervisor(tmp_path: Path) -> None:
    """With its sentence, and its exit code."""
    result = subprocess.run(
        command(tmp_path / "data", "--workers", "2"),
        env=environment(MONGODB_URI="mongodb://127.0.0.1/?w=1", SECRET_KEYS="A" * 43 + "=", LOG_LEVEL="error"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: "), result.stderr
    assert result.stderr.count("\n") == 1


# --- sums of metrics -----------------------------------------------------------------------------------------------

OWN = """# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{status="200"} 3.0
# TYPE seconds histogram
seconds_bucket{le="1.0"} 2.0
seconds_bucket{le="+Inf"} 3.0
seconds_sum 0.5
# TYPE http_requests_in_flight gauge
http_requests_in_flight 2.0
# TYPE jobs_pending gauge
jobs_pending{kind="mail"} NaN
"""
OTHER = """# TYPE requests_total counter
requests_total{status="200"} 4.0
requests_total{status="a b\\"} 9"} 1.0
# TYPE seconds histogram
seconds_bucket{le="1.0"} 1.0
seconds_bucket{le="+Inf"} 1.0
seconds_sum 0.25
# TYPE http_requests_in_flight gauge
http_requests_in_flight 5.0
# TYPE jobs_pending gauge
jobs_pending{kind="mail"} 7.0
# TYPE process_start_time_seconds gauge
process_start_time_seconds 7.0
"""
SUM = """# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{status="200"} 7.0
requests_total{status="a b\\"} 9"} 1.0
# TYPE seconds histogram
seconds_bucket{le="1.0"} 3.0
seconds_bucket{le="+Inf"} 4.0
seconds_sum 0.75
# TYPE http_requests_in_flight gauge
http_requests_in_flight 7.0
# TYPE jobs_pending gauge
jobs_pending{kind="mail"} NaN
# TYPE process_start_time_seconds gauge
process_start_time_seconds 7.0
"""


def test_metrics_of_workers_are_added_up() -> None:
    """Counters, histograms and some gauges are summed; what is read from the database is that of the asking worker."""
    assert add_up(OWN, [OTHER]) == SUM
    assert add_up(OWN, []) == OWN
    ended = totals_of([OTHER, OTHER])
    assert "gauge" not in ended
    assert 'requests_total{status="200"} 11.0\n' in add_up(OWN, [ended])


def test_every_gauge_has_a_rule() -> None:
    gauges = {family.name for family in Metrics().registry.collect() if family.type in ("gauge", "info")}
    assert {name.replace("build", "build_info") for name in gauges} == set(GAUGES)
