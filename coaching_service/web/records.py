"""The pages of one type of record, declared once: its list, a new one, the page of each, its change and deletion.

_forms = Records(pages, "/settings/forms", "formId", "form", FORMS, forms.get)

@_forms.list
async def forms_page(ctx): ...

_forms.change(FormUpdate, forms.update, on=_forms.page())
_forms.delete(forms.delete)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from coaching_service.core.auth import Access, Area, coach
from coaching_service.core.database.context import Context, Schedule
from coaching_service.core.ids import ObjectId
from coaching_service.web.pages import ConfirmedAction, Handler, Pages, Redirect

_Read = Callable[[Context, ObjectId], Awaitable[Any]]


class Records(Pages):
    """The pages of one type of record: `name` names its forms and templates, and its variable unless `shown_as` does.

    `parameter` is its identifier in paths, `area` has its permissions (or is the access to all of its pages), and
    `read` returns a record with its `name`. `folder` has its templates, and the layout of the page that asks before a
    record is deleted. `locks`: of the forms of a record.
    """

    def __init__(
        self,
        above: Pages,
        path: str,
        parameter: str,
        name: str,
        area: Area | Access,
        read: _Read,
        *,
        folder: str = "settings",
        shown_as: str = "",
        locks: Schedule | None = None,
    ) -> None:
        super().__init__(above.prefix + path)
        self.declared = above.declared
        self.each = self.below(f"/{{{parameter}}}", locks=locks)
        self._name, self._area, self._read, self._folder = name, area, read, folder
        self._shown_as = shown_as or name
        self._layout = "settings/layout.html" if folder == "settings" else f"{folder}/{name}_layout.html"
        self._list_page: Handler | None = None

    def path(self, record_id: ObjectId) -> str:
        """Return the path of the page of a record."""
        return f"{self.prefix}/{record_id}"

    def list(self, handler: Handler) -> Handler:
        """Declare the list of records."""
        self._list_page = handler
        return self.get("", access=self._access("view"), template=f"{self._folder}/{self._name}s.html")(handler)

    def create(self, path: str = "", **options: Any) -> Callable[[Handler], Handler]:
        """Declare the form that creates a record, on the list unless `on` is another page."""
        return self.post(path, access=self._access("create"), **{"on": self._list_page, **options})

    def page(self, variables: Callable[[Any], Mapping[str, Any]] = lambda _: {}, *, path: str = "") -> Handler:
        """Declare the page of a record, with `variables` of the record; with `path` the page that changes it."""

        async def page(ctx: Context, **identifiers: ObjectId) -> dict[str, Any]:
            record = await self._read(ctx, *identifiers.values())
            return {self._shown_as: record, "version": record["version"], **variables(record)}

        name = f"edit_{self._name}" if path else self._name
        page.__name__ = f"{name}_page"
        access = self._access("edit" if path else "view")
        return self.each.get(path, access=access, template=f"{self._folder}/{name}.html")(page)

    def change(self, form: Any, save: Callable[[Context, ObjectId, Any], Awaitable[object]], *, on: Handler) -> None:
        """Declare the form that changes a record, at the path of its page."""

        async def change(ctx: Context, form: Any, **identifiers: ObjectId) -> Redirect:
            [record_id] = identifiers.values()
            await save(ctx, record_id, form)
            return Redirect(self.path(record_id), "Changes saved.")

        change.__name__ = f"update_{self._name}"
        path = "/edit" if on.__name__.startswith("edit_") else ""
        self.each.post(path, access=self._access("edit"), form=form, on=on)(change)

    def delete(
        self, remove: _Read, *, variables: _Read | None = None, done: str = "{} deleted.", from_list: bool = False
    ) -> None:
        """Declare the page that asks before a record is deleted, with `variables`, and its form.

        `done` is what the list says then, with the name of the record; `from_list`: the page is opened from the list.
        """

        async def delete(ctx: Context, **identifiers: ObjectId) -> ConfirmedAction:
            [record_id] = identifiers.values()
            record, path = await self._read(ctx, record_id), self.path(record_id)
            shown = {
                self._shown_as: record,
                "name": record.get("name"),
                "words": self._name.replace("_", " "),
                "layout": self._layout,
                "delete_path": f"{path}/delete",
                "cancel_path": self.prefix if from_list else path,
                **(await variables(ctx, record_id) if variables else {}),
            }
            redirect = Redirect(self.prefix, done.format(record.get("name")))
            return ConfirmedAction(shown, partial(remove, ctx, record_id), redirect)

        delete.__name__ = f"delete_{self._name}"
        template = f"{self._folder}/delete_{self._name}.html"
        self.each.confirm("/delete", access=self._access("delete"), template=template, deletes=True)(delete)

    def _access(self, action: str) -> Access:
        return coach(f"{self._area.name}.{action}") if isinstance(self._area, Area) else self._area
