"""The /docs page: the OpenAPI document as HTML, which a script can filter."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import jinja2

if TYPE_CHECKING:
    from markdown_it.token import Token


# --- The guides of docs/ as HTML pages below /docs/guides -------------------------------------------------------------


PATH = "/docs/guides"
ERRORS_PATH = f"{PATH}/errors"
_MARKS = re.compile(r"[^\w\- ]")
_CODE = re.compile(r"`([A-Z][A-Z0-9_]+)`")
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]*\w[^()\s]*)\)")
_EXTERNAL = re.compile(r"https?://|mailto:|#")


@dataclass(frozen=True)
class Guide:
    """A guide: its name in the address, its title, and its text as Markdown."""

    name: str
    title: str
    text: str


@cache
def list_guides() -> tuple[Guide, ...]:
    """Return all guides, by title.

    Links to files that are not guides, and pictures, are their text: these files are only in the repository.
    """
    folder = files(__package__).joinpath("guides")
    texts = {file.name: file.read_text("utf-8") for file in folder.iterdir()}

    def redirect(link: re.Match[str]) -> str:
        shown, target = link.groups()
        file, hash_sign, anchor = target.rpartition("/")[2].partition("#")
        if _EXTERNAL.match(target):
            return link[0]
        return f"[{shown}]({PATH}/{file}{hash_sign}{anchor})" if file in texts else shown

    guides = [
        Guide(name.removesuffix(".md"), text.partition("\n")[0].removeprefix("# ").strip(), _LINK.sub(redirect, text))
        for name, text in texts.items()
    ]
    return tuple(sorted(guides, key=lambda guide: guide.title))


def render_guide(guide: Guide) -> str:
    """Return the page of a guide."""
    template = make_environment().get_template("guide.html")
    return template.render(guide=guide, guides=list_guides(), path=PATH, content=_to_html(guide.text))


def list_for_models(base_url: str) -> str:
    """Return what there is to read about the service, as https://llmstxt.org proposes it: Markdown with links."""
    lines = [
        "# Coaching service",
        "",
        "> Clients, training and progress of coaching businesses: a REST interface, webhooks, and tools for assistants "
        "(MCP). Every guide is Markdown; without `.md` it is a page.",
        "",
        "## Interface",
        "",
        f"- [API document]({base_url}/swagger-json): OpenAPI 3.1, with every operation and webhook",
        f"- [API documentation]({base_url}/docs): the same as a page",
        f"- [Tools for assistants]({base_url}/mcp): the MCP endpoint",
        "",
        "## Guides",
        "",
        *(f"- [{guide.title}]({base_url}{PATH}/{guide.name}.md)" for guide in list_guides()),
    ]
    return "\n".join(lines) + "\n"


def _to_html(text: str) -> str:
    """Return Markdown as HTML; headings have the anchors that links between guides use, and codes in tables theirs."""
    from markdown_it import MarkdownIt  # not needed before a guide is read

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    _add_anchors(tokens)
    for token in tokens:
        _redirect_links(token.children or ())
    rendered: str = markdown.renderer.render(tokens, markdown.options, {})
    return rendered


def _add_anchors(tokens: Sequence[Token]) -> None:
    seen: Counter[str] = Counter()
    for opening, content in pairwise(tokens):
        if opening.type == "td_open" and (code := _CODE.fullmatch(content.content)) and not seen[code[1]]:
            opening.attrSet("id", code[1])
            seen[code[1]] += 1
        if opening.type == "heading_open":
            anchor = _MARKS.sub("", content.content.lower()).replace(" ", "-")
            opening.attrSet("id", f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
            seen[anchor] += 1


def _redirect_links(tokens: Sequence[Token]) -> None:
    for token in tokens:
        target = str(token.attrGet("href") or "")
        if target.startswith(PATH):  # a page, instead of the Markdown
            token.attrSet("href", re.sub(r"\.md(?=#|$)", "", target))


_PLACEHOLDERS = {"integer": "1", "boolean": "false"}
_DATE = "2026-03-02"
# References are expanded to this depth; deeper ones are links to the schema.
MAX_DEPTH = 2


def make_environment() -> jinja2.Environment:
    """Return the environment of the templates of these pages."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "pages"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )


def render(document: Mapping[str, Any], guides: Sequence[Guide] = (), guides_path: str = "") -> str:
    """Return the page of an OpenAPI document, with links to guides."""
    environment = make_environment()
    environment.filters |= {
        "pretty": lambda value: json.dumps(value, indent=2, ensure_ascii=False),
        "curl": lambda operation, method, path: curl_command(document, method, path, operation),
        "resolve": lambda node: resolve(document, node),
        "type_name": type_name,
        "reference": lambda node: node.get("$ref", "").rpartition("/")[2],
        "options": options,
    }
    template = environment.get_template("docs.html")
    return template.render(
        spec=document,
        groups=_operations_by_tag(document),
        max_depth=MAX_DEPTH,
        guides=guides,
        guides_path=guides_path,
    )


def page_file(name: str) -> str:
    """Return a file of the page: `docs.css`, `docs.js` or `icon.svg`."""
    return files(__package__).joinpath("pages", name).read_text("utf-8")


def resolve(document: Mapping[str, Any], node: Any) -> Any:
    """Return what a reference names; anything else is returned as it is."""
    if isinstance(node, dict) and "$ref" in node:
        target: Any = document
        for key in node["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        return target
    return node


def options(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the alternatives of a schema, without null."""
    alternatives: Sequence[Mapping[str, Any]] = schema.get("oneOf") or schema.get("anyOf") or []
    return [option for option in alternatives if option.get("type") != "null"]


def type_name(schema: Mapping[str, Any]) -> str:
    """Return the type of a schema in words, such as `array of string, or null`."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if alternatives := schema.get("oneOf") or schema.get("anyOf"):
        return " or ".join(type_name(option) for option in alternatives)
    if "const" in schema or "enum" in schema:
        return " or ".join(json.dumps(word) for word in schema.get("enum", [schema.get("const")]))
    types = [schema["type"]] if isinstance(schema.get("type"), str) else list(schema.get("type", ["any"]))
    names = [_single_type(name, schema) for name in types]
    return " or ".join(names)


def _single_type(name: str, schema: Mapping[str, Any]) -> str:
    if name == "array":
        return f"array of {type_name(schema.get('items', {}))}"
    return f"{name} ({schema['format']})" if name == "string" and "format" in schema else name


def curl_command(document: Mapping[str, Any], method: str, path: str, operation: Mapping[str, Any]) -> str:
    """Return a curl command that calls an operation with its example."""
    query = [
        f"{parameter['name']}={_PLACEHOLDERS.get(parameter['schema'].get('type'), _DATE)}"
        for parameter in (resolve(document, each) for each in operation["parameters"])
        if parameter["in"] == "query" and parameter.get("required")
    ]
    url = document["servers"][0]["url"] + path + (f"?{'&'.join(query)}" if query else "")
    parts = [f"curl -X {method} {shlex.quote(url)}"]
    if schemes := [name for requirement in operation["security"] for name in requirement]:
        header = "X-API-Key: $API_KEY" if "apiKey" in schemes else "Authorization: Bearer $ACCESS_TOKEN"
        parts.append(f'-H "{header}"')
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        if media_type == "multipart/form-data":
            parts += [_form_field(name, field) for name, field in content["schema"]["properties"].items()]
        else:
            example = json.dumps(content.get("example", {}), ensure_ascii=False)
            parts += [f"-H 'Content-Type: {media_type}'", f"-d {shlex.quote(example)}"]
    return " \\\n  ".join(parts)


def _form_field(name: str, field: Mapping[str, Any]) -> str:
    if field.get("format") == "binary":
        return f"-F {name}=@file"
    return f"-F {name}={shlex.quote(str(field.get('example') or field.get('enum', ['text'])[0]))}"


def _operations_by_tag(document: Mapping[str, Any]) -> dict[str, list[tuple[str, str, Any]]]:
    groups: dict[str, list[tuple[str, str, Any]]] = {tag["name"]: [] for tag in document["tags"]}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            groups[operation["tags"][0]].append((method.upper(), path, operation))
    return {name: operations for name, operations in groups.items() if operations}  # one is of webhooks only
