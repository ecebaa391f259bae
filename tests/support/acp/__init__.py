"""Checks messages against the published schemas of the Agent Client Protocol,
more strictly than these ask for.

`version1.json` and `version2.json` hold what an agent sends: the stable schemas as of 2026-11-02
(version 2 is a draft), without descriptions, and without the variants that stand for names of later
versions and of extensions.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

_FREE_FIELDS = frozenset(("_meta", "rawInput", "rawOutput", "requestedSchema", "data"))
"""Fields whose content is codeloop's own, or free."""
_UNSTABLE_FIELDS = frozenset(("fork",))
"""Fields of the unstable schema that clients know nevertheless."""


@cache
def _read_schema(version: int) -> dict[str, Any]:
    return json.loads(
        (Path(__file__).parent / f"version{version}.json").read_text(encoding="utf-8")
    )


@cache
def _find_definitions(version: int) -> dict[tuple[str, str], str]:
    """Return the names of definitions, by method and by `answer` or `ask` (a request or
    notification of the agent).
    """
    found: dict[tuple[str, str], str] = {}
    for name, each in _read_schema(version)["$defs"].items():
        if method := each.get("x-method"):
            found[method, "answer" if name.endswith("Response") else "ask"] = name
    return found


@cache
def _find_field_names(version: int) -> frozenset[str]:
    found: set[str] = set()

    def look(node: Any) -> None:
        if isinstance(node, dict):
            found.update(node.get("properties", ()))
            for each in node.values():
                look(each)
        elif isinstance(node, list):
            for each in node:
                look(each)

    look(_read_schema(version))
    return frozenset(found)


def check_answer(version: int, method: str, result: Any) -> None:
    """Fail if the result of a method does not fit the schema;
    a method that is not in the schema is not checked.
    """
    if name := _find_definitions(version).get((method, "answer")):
        _check(version, name, result)


def check_request(version: int, method: str, params: Any) -> None:
    """Fail if a request or notification of the agent does not fit the schema."""
    name = _find_definitions(version).get((method, "ask"))
    assert name is not None, f"version {version} has no method {method}"
    _check(version, name, params)


def check_error(version: int, error: Any) -> None:
    """Fail if an error does not fit the schema."""
    _check(version, "Error", error)


def _check(version: int, name: str, value: Any) -> None:
    schema = {"$ref": f"#/$defs/{name}", **_read_schema(version)}
    errors = Draft202012Validator(schema).iter_errors(value)
    problems = [f"{'/'.join(map(str, each.path))}: {each.message}" for each in errors]
    assert not problems, f"{name}: {problems}"
    unknown = _list_fields(value) - _find_field_names(version) - _UNSTABLE_FIELDS
    assert not unknown, f"{name}: no such fields: {unknown}"


def _list_fields(value: Any) -> set[str]:
    if isinstance(value, dict):
        inner = (_list_fields(each) for name, each in value.items() if name not in _FREE_FIELDS)
        return {*value, *(name for each in inner for name in each)}
    if isinstance(value, list):
        return {name for each in value for name in _list_fields(each)}
    return set()
