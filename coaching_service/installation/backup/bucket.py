"""Backups in a bucket of S3-compatible storage. The credentials are in the usual variables (`AWS_ACCESS_KEY_ID`...)."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from coaching_service.installation.backup.stores import BUCKET, BackupError, StoredFile

_SECONDS = 60
_RETRIES = 4
_NO_BUCKET = "NoSuchBucket"
_XML_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_AT_ONCE = 1_000  # files that one request deletes


class BucketStore:
    """A bucket, or a prefix in it, such as `s3://bucket/coaching`."""

    def __init__(self, location: str) -> None:
        self.location = location.rstrip("/")
        bucket, _, prefix = self.location.removeprefix(BUCKET).partition("/")
        # Without TLS only where the operator has named such an address, for example of a server in the same network.
        endpoint = os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT") or ""
        try:
            self._store = S3Store(
                bucket,
                prefix=prefix or None,
                client_options={"timeout": timedelta(seconds=_SECONDS), "allow_http": endpoint.startswith("http://")},
                retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_SECONDS)},
            )
        except (BaseError, ValueError) as error:
            raise BackupError(f"{location} cannot be used: {_first_line(error)}") from None

    def iterate(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files whose names begin with `folder` and a slash."""
        with self._explaining(folder):
            for batch in obstore.list(self._store, f"{folder}/"):
                for each in batch:
                    yield StoredFile(each["path"], each["size"], each["last_modified"])

    def read(self, name: str) -> bytes:
        """Return a file. Raises BackupError if there is none."""
        with self._explaining(name):
            return bytes(obstore.get(self._store, name).bytes())

    def write(self, name: str, data: bytes) -> None:
        """Store a file."""
        with self._explaining(name):
            obstore.put(self._store, name, data)

    def delete(self, names: Collection[str]) -> None:
        """Delete files; files that are gone are ignored."""
        wanted = list(names)
        with self._explaining(""):
            for start in range(0, len(wanted), _AT_ONCE):
                obstore.delete(self._store, wanted[start : start + _AT_ONCE])

    def clean(self) -> None:
        """Do nothing: a bucket shows no object that is not complete."""

    @contextmanager
    def _explaining(self, name: str) -> Iterator[None]:
        """Raise errors of the client as BackupError with one sentence."""
        try:
            yield
        except FileNotFoundError as error:
            if _NO_BUCKET in str(error):
                raise self._bucket_missing() from None
            raise BackupError(f"{self.location}/{name} is missing") from None
        except (PermissionDeniedError, UnauthenticatedError):
            raise BackupError(
                f"{self.location} refuses the access key: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and its policy"
            ) from None
        except (BaseError, OSError, ValueError) as error:
            if _NO_BUCKET in str(error):
                raise self._bucket_missing() from None
            raise BackupError(f"{self.location} cannot be used: {_first_line(error)}") from None

    def _bucket_missing(self) -> BackupError:
        return BackupError(f"The bucket of {self.location} does not exist: create it")


def _first_line(error: Exception) -> str:
    """Return the first line of an error, without what is only for debugging, and without the XML of a server."""
    message = _XML_MESSAGE.search(str(error))
    line = str(error).partition("\n")[0].partition("<")[0].rstrip(": ")
    return (line if message is None else f"{line}: {message[1]}")[:300]
