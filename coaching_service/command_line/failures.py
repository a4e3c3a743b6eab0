"""What the command line says about expected errors."""

from __future__ import annotations

import errno

from coaching_service.core.auth.secrets import SecretUnreadable
from coaching_service.core.database.backup.manifest import BackupError
from coaching_service.core.database.connection import UNAUTHORIZED, as_service_error
from coaching_service.core.database.embedded import DatabaseUnavailable
from coaching_service.core.database.indexes import IndexConflict
from coaching_service.core.database.migrations import NewerDatabase
from coaching_service.core.errors import ServiceError
from coaching_service.core.jobs.mail import MailRejected
from coaching_service.core.temporary_files import NO_SPACE
from coaching_service.settings import SettingsError

_EXPECTED = (SettingsError, DatabaseUnavailable, IndexConflict, NewerDatabase, BackupError, MailRejected, ServiceError)
_FILE_ERRORS = (*NO_SPACE, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST)


def describe(error: Exception) -> str | None:
    """Return the sentence about an error of a command, or None if it is not expected."""
    if isinstance(error, _EXPECTED):
        return str(error)
    if isinstance(error, SecretUnreadable):
        return f"A stored API key cannot be read: {error}"
    if isinstance(error, OSError):
        is_of_file = error.errno in _FILE_ERRORS
        return f"{error.filename or 'A file'} cannot be written ({error.strerror})" if is_of_file else None
    if getattr(error, "code", None) in UNAUTHORIZED:
        return "The database refuses the user name and password in MONGODB_URI, or that user lacks permissions"
    known = as_service_error(error)
    return None if known is None else str(known)
