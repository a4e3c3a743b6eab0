"""Where the documents of a collection are on a sharded cluster, as each collection declares it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from coaching_service.core.database.connection import Index


@dataclass(frozen=True)
class ShardKey:
    """The fields by whose values documents are divided among the shards; `is_hashed`: by the hash of the only one.

    MongoDB enforces a unique index on each shard by itself, so it accepts only those that begin with the shard key;
    the index of `_id` is the exception, and is unique on each shard only.
    """

    fields: tuple[str, ...]
    is_hashed: bool = False

    @property
    def pattern(self) -> dict[str, int | str]:
        """The key as MongoDB takes it."""
        return dict.fromkeys(self.fields, "hashed" if self.is_hashed else 1)

    def allows(self, index: Index) -> bool:
        """Return whether a sharded collection may have this index: it is not unique, or begins with the shard key."""
        return not index.unique or index.fields[: len(self.fields)] == self.fields

    def is_served_by(self, index: Index) -> bool:
        """Return whether the index is fit for sharding: complete, comparing bytes, and beginning with the key.

        It must not have several entries for a document either, which a declaration does not show.
        """
        begins = index.fields[: len(self.fields)] == self.fields
        return begins and not self.is_hashed and not index.partial_filter and not index.ignore_case


@dataclass(frozen=True)
class Unsharded:
    """All documents are on one shard, the primary one of the database, for this reason."""

    reason: str


Placement = ShardKey | Unsharded
BY_COMPANY = ShardKey(("companyId",))


def find_index(key: ShardKey, indexes: Iterable[Index]) -> Index | None:
    """Return the first index that sharding by `key` can use, or None."""
    return next((index for index in indexes if key.is_served_by(index)), None)
