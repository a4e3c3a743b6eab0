"""Printing the OpenAPI document."""

from __future__ import annotations

import sys

import click

from coaching_service import features, runtime
from coaching_service.core.http.openapi import describe
from coaching_service.core.http.responses import to_json
from coaching_service.core.http.routes import routes_of
from coaching_service.settings import Settings


@click.command()
def openapi() -> None:
    """Print the OpenAPI document."""
    document = describe(routes_of(features.ROUTES), features.TAGS, runtime.address_of(Settings.from_environment()))
    sys.stdout.buffer.write(to_json(document) + b"\n")
