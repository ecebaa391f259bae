"""Validates a JSON Schema, and a value against it, in a separate process: a pattern
can keep Python busy for ever.

Called with the seconds of processor time after which it is killed.
Reads `{"schema", "value"?}` and writes
`[{"path": [keys and indexes], "message"}]`: paths in the value when there is one, else in the
schema. Nothing is fetched: a `$ref` finds the schema itself and the published meta-schemas.
"""

import json
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

from jsonschema import FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import Draft202012Validator, validator_for
from jsonschema_specifications import REGISTRY
from referencing import Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

MAX_MEMORY_BYTES = 1 << 30
MAX_PROBLEMS = 20
# Reasons that are given when no alternative of a schema fits.
_MAX_REASONS = 4
_REFERENCE_KEYS = ("$ref", "$dynamicRef")
# The length of a description, from which half is kept at each end of a longer one.
_MAX_DESCRIPTION_CHARS = 400


def main() -> None:
    """Check the schema and value of stdin, and print the problems."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    seconds = int(sys.argv[1])
    # The soft limit comes first: its signal, SIGXCPU, tells the caller why the process ended.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    request = json.load(sys.stdin)
    try:
        problems = _check(request)
    except RecursionError:
        problems = [((), "it refers to itself without end, or is nested too deeply")]
    except OverflowError:
        problems = [((), "it has a number that is too large to be checked")]
    records = [{"path": list(path), "message": message} for path, message in problems]
    sys.stdout.write(json.dumps(records) + "\n")


def _check(request: dict[str, Any]) -> list[tuple[tuple[str | int, ...], str]]:
    """Return the path and the description of each problem."""
    schema = request["schema"]
    if not isinstance(schema.get("$schema", ""), str):
        return [(("$schema",), "it is not the address of a meta-schema")]
    validator = validator_for(schema, default=Draft202012Validator)
    if "value" not in request:
        try:
            validator.check_schema(schema)
        except SchemaError as error:
            return [(tuple(error.absolute_path), _describe(error))]
        return list(_find_lost_references(schema))
    checker = validator(schema, format_checker=FormatChecker(), registry=REGISTRY)
    problems: list[tuple[tuple[str | int, ...], str]] = []
    for validation_error in checker.iter_errors(request["value"]):
        error = validation_error
        while deeper := [
            each
            for each in error.context or ()
            if len(each.absolute_path) > len(error.absolute_path)
        ]:
            # The deepest error belongs to the alternative that matches best.
            error = max(deeper, key=lambda each: len(each.absolute_path))
        problems.append((tuple(error.absolute_path), _describe(error)))
        if len(problems) == MAX_PROBLEMS:
            break
    return problems


def _describe(error: ValidationError | SchemaError) -> str:
    """Describe an error, with the reasons why no alternative fits;
    a long value is cut in the middle.
    """
    text = error.message
    if error.context:
        text += (
            f" ({'; '.join(dict.fromkeys(each.message for each in error.context[:_MAX_REASONS]))})"
        )
    if len(text) <= _MAX_DESCRIPTION_CHARS:
        return text
    half = _MAX_DESCRIPTION_CHARS // 2
    return f"{text[:half]} ... {text[-half:]}"


def _find_lost_references(schema: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the path and the description of each reference that can't be resolved."""
    root: Resource[Any] = Resource.from_contents(schema, default_specification=DRAFT202012)
    waiting = [(root, REGISTRY.resolver_with_root(root))]
    while waiting:
        part, resolver = waiting.pop()
        contents = cast("dict[str, Any]", part.contents) if isinstance(part.contents, dict) else {}
        for target in (
            contents[key] for key in _REFERENCE_KEYS if isinstance(contents.get(key), str)
        ):
            try:
                resolver.lookup(target)
            except Unresolvable:
                path = next(_list_paths(schema, target), ())
                yield (
                    path,
                    f"{target!r} is not in the schema. Put what it means below `$defs`; nothing is fetched.",
                )
        waiting += [(inner, resolver.in_subresource(inner)) for inner in part.subresources()]


def _list_paths(
    value: Any, target: str, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of the references to a target in a value, which is at `path`."""
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            if key in _REFERENCE_KEYS and item == target:
                yield (*path, key)
            yield from _list_paths(item, target, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _list_paths(item, target, (*path, index))


if __name__ == "__main__":
    main()
