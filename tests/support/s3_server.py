"""A server of S3 on this machine, with one bucket."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp.test_utils import unused_port

BUCKET = "backups"


def credentials(port: int) -> dict[str, str]:
    """The variables with which a program uses the server."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "eu-central-1",
    }


@contextmanager
def running_s3_server() -> Iterator[dict[str, str]]:
    """Run the server of moto with an empty bucket, and yield the variables with which a program uses it."""
    port = unused_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHONWARNINGS"))}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/{BUCKET}",
            b"<CreateBucketConfiguration><LocationConstraint>eu-central-1</LocationConstraint>"
            b"</CreateBucketConfiguration>",
            method="PUT",
        )
        while True:
            try:
                urllib.request.urlopen(request, timeout=60).close()
                break
            except urllib.error.URLError:
                assert process.poll() is None, "the server of S3 has ended"
                assert time.monotonic() < deadline, "the server of S3 does not respond"
                time.sleep(0.05)
        yield credentials(port)
    finally:
        process.terminate()
        process.wait()
