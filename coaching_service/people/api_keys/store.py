"""API keys in the database: found by keyed hash, stored encrypted."""

from __future__ import annotations

from coaching_service.core.database.collections import Unsharded
from coaching_service.core.database.connection import Index
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import NotExported
from coaching_service.core.fields import private_of
from coaching_service.people.api_keys.models import ApiKey

keys = Documents[ApiKey](
    "apiKeys",
    (Index(("coachId", "name")), Index(("createdAt", "_id"))),
    private=private_of(ApiKey),
    global_indexes=(Index(("hash",), unique=True),),
    cross_company_reason="a key is found by its hash before its company is known",
    is_cached=True,
    placement=Unsharded("a key is unique among all companies, and found by its hash"),
    transfer=NotExported("API keys"),
)
