"""Body weights in the database."""

from __future__ import annotations

from coaching_service.core.database.connection import Index
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import NotExported
from coaching_service.training.body_weights.models import StoredBodyWeight

body_weights = Documents[StoredBodyWeight](
    "bodyWeights",
    (Index(("customerId", "date", "metricId"), unique=True),),
    client_field="customerId",
    transfer=NotExported("a copy of values of metrics, made again after an import"),
)
