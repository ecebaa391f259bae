"""The contract of version 2 (`contract.txt`): its operations, and whether a value is of a type."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Operation2:
    """An operation. `answer`: the type of its answer; "-": none."""

    id: str
    method: str
    path: str
    status: int
    answer: str


@cache
def read_contract() -> tuple[dict[str, Operation2], dict[str, str]]:
    """Return the operations and the types, by their names."""
    operations: dict[str, Operation2] = {}
    types: dict[str, str] = {}
    for line in (Path(__file__).parent / "contract.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, middle, rest = line.split(" ", 2)
        if middle == "=":
            types[name] = rest
        else:
            path, status, answer = rest.split(" ", 2)
            operations[name] = Operation2(name, middle, path, int(status), answer)
    return operations, types


def split(text: str, mark: str) -> list[str]:
    """Split a type at a mark that is not within brackets or quotes."""
    pieces, depth, quoted = [""], 0, False
    for character in text:
        quoted ^= character == '"'
        depth += 0 if quoted else (character in "{[<") - (character in "}]>")
        if character == mark and not depth and not quoted:
            pieces.append("")
        else:
            pieces[-1] += character
    return [each.strip() for each in pieces]


def find_problem(value: Any, kind: str, place: str = "$") -> str:
    """Return why a value is not of a type; "": it is."""
    kinds = split(kind, "|")
    if len(kinds) > 1:
        problems = [find_problem(value, each, place) for each in kinds]
        # The deepest one tells most.
        return "" if "" in problems else max(problems, key=len)
    types = read_contract()[1]
    match kind[0]:
        case '"':
            return "" if value == json.loads(kind) else f"{place}: {value!r} is not {kind}"
        case "[":
            if not isinstance(value, list):
                return f"{place}: no list"
            found = (
                find_problem(each, kind[1:-1], f"{place}[{n}]") for n, each in enumerate(value)
            )
            return next(filter(None, found), "")
        case "<":
            if not isinstance(value, dict):
                return f"{place}: no object"
            found = (find_problem(each, kind[1:-1], f"{place}.{n}") for n, each in value.items())
            return next(filter(None, found), "")
        case "{":
            return _find_object_problem(value, kind, place)
        case _ if kind in types:
            return find_problem(value, types[kind], place)
        case _:
            return "" if _is_simple(value, kind) else f"{place}: {value!r:.60} is no {kind}"


def _find_object_problem(value: Any, kind: str, place: str) -> str:
    if not isinstance(value, dict):
        return f"{place}: no object"
    for field in filter(None, split(kind[1:-1], ",")):
        name, _, of = field.partition(": ")
        key = name.removesuffix("?")
        if key in value:
            if problem := find_problem(value[key], of, f"{place}.{key}"):
                return problem
        elif name == key:
            return f"{place}.{key} is missing"
    return ""


def _is_simple(value: Any, kind: str) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "any":
            return True
        case "string":
            return isinstance(value, str)
        case "integer":
            return is_number and int(value) == value
        case "number":
            return is_number
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "true" | "false":
            return value is (kind == "true")
        case _ if kind.isdigit():
            return value == int(kind)
        case _:
            raise AssertionError(f"the contract has no type {kind}")
