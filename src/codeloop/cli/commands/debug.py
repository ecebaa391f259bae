"""`codeloop debug`: the effective configuration and where it comes from, our folders, and every limit."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from codeloop.cli.group import Group
from codeloop.cli.target.opened import with_client
from codeloop.client.local import LocalClient
from codeloop.config.layers import dotted
from codeloop.config.load import Loaded, load
from codeloop.config.paths import find_paths
from codeloop.config.project_root import find_project_root
from codeloop.config.trust.store import is_trusted
from codeloop.extend.folders import find_homes
from codeloop.extend.markdown import find_pages
from codeloop.kit.jsonc import Path as Keys
from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.config import Config
from codeloop.schema.limits import all_limits
from codeloop.workspace.snapshot.snapshots import Skipped

_SECRET_GROUPS = frozenset({"headers", "environment"})
_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth|cookie|^headers$|^environment$", re.IGNORECASE)
_USER_IN_URL = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_MASK = "***"


@click.group(cls=Group)
def debug() -> None:
    """Show what codeloop goes by."""


@debug.command("config")
@click.option("--provenance", is_flag=True, help="Show which layer set each value, with file and line.")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="A further configuration file.")
@click.option("--trust", "as_trusted", is_flag=True, help="Show what would hold if the project were trusted.")
def show_config(*, provenance: bool, config_file: Path | None, as_trusted: bool) -> None:
    """Print the effective configuration as JSON. Values whose name looks like that of a secret are masked."""
    paths = find_paths(os.environ)
    place = find_project_root(Path.cwd(), paths, os.environ)
    trusted = as_trusted or is_trusted(paths, place.root)
    further = find_pages(place, find_homes(place, paths), trusted=trusted)
    loaded = load(place, paths, config_file=config_file, environment=os.environ, trusted=trusted, further=further)
    for warning in loaded.warnings:
        click.echo(inert(f"codeloop: {warning}"), err=True)
    shown = masked(effective(loaded.config))
    if not provenance:
        click.echo(_json(shown))
        return
    rows = [(dotted(keys), _short(value), _origin(loaded, keys)) for keys, value in leaves(shown)]
    _table(("setting", "value", "set by"), rows)


@debug.command("paths")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def show_paths(*, as_json: bool) -> None:
    """Print the folders and files that codeloop uses."""
    paths = find_paths(os.environ)
    place = find_project_root(Path.cwd(), paths, os.environ)
    rows = {name: str(getattr(paths, name)) for name in paths.__struct_fields__}
    rows |= {"credentials": str(paths.credentials), "trust": str(paths.trust), "log": str(paths.log)}
    rows |= {
        "root": str(place.root),
        "directory": str(place.directory),
        "project": str(paths.project(place.project_id)),
    }
    if as_json:
        click.echo(_json(rows))
    else:
        _table((), list(rows.items()))


@debug.command("limits")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def show_limits(*, as_json: bool) -> None:
    """Print every deadline, size and count that bounds the program."""
    if as_json:
        click.echo(_json(all_limits()))
        return
    rows = [(limit.name, f"{limit.value:,} {limit.unit}", limit.why) for limit in all_limits()]
    _table(("limit", "value", "what happens then"), rows)


@debug.command("snapshot")
@click.option("--prune", is_flag=True, help="Remove what no session needs any more.")
def show_snapshot(*, prune: bool) -> None:
    """Show what is kept for undo in this project, and what is not in it."""

    async def command(client: LocalClient) -> None:
        snapshots = client.project.snapshots
        if isinstance(await snapshots.take(), Skipped):
            await snapshots.jobs.ended()  # who asks for it may wait for it
        removed = snapshots.prune() if prune else 0
        facts = snapshots.facts()
        rows = [("folder", str(facts.folder)), ("files", f"{facts.files:,}"), ("objects", f"{facts.objects:,}")]
        rows += [("size", f"{facts.bytes / 1024:,.0f} KB"), ("removed", f"{removed:,}")]
        rows += [("left out", f"{left.path}: {left.reason}") for left in facts.left]
        rows += [("off", facts.off)] if facts.off else []
        _table(("what", "value"), rows)

    with_client(command)


def effective(config: Config) -> dict[str, Any]:
    """Return a configuration as JSON values, the defaults too; what is not set at all is left out."""
    values = {name: msgspec.to_builtins(getattr(config, name)) for name in config.__struct_fields__}
    return {name: value for name, value in values.items() if value is not None and value not in ([], {})}


def masked(value: Any, name: str = "") -> Any:
    """Return JSON values with every text replaced whose own or whose list's name looks like that of a secret."""
    if is_object(value):
        return {key: masked(inner, name if name in _SECRET_GROUPS else key) for key, inner in value.items()}
    if is_list(value):
        return [masked(inner, name) for inner in value]
    if not isinstance(value, str):
        return value
    return _MASK if value and _SECRET_NAME.search(name) else _USER_IN_URL.sub(_MASK, value)


def leaves(value: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Yield every value that provenance is kept of: lists of rules, instructions and plugins by item, others whole."""
    if is_object(value) and value and "pattern" not in value:
        for key, inner in value.items():
            yield from leaves(inner, (*keys, key))
    elif is_list(value) and keys[-1] in {"permission", "restrictions", "instructions", "plugin"}:
        for index, inner in enumerate(value):
            yield (*keys, index), inner
    else:
        yield keys, value


def inert(text: str) -> str:
    """Return a text with everything escaped that a terminal might act on or hide."""
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


def _json(value: Any) -> str:
    return inert(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _origin(loaded: Loaded, keys: Keys) -> str:
    origin = loaded.provenance.get(dotted(keys))
    return f"{origin.layer.name} ({origin})" if origin else "built-in"


def _short(value: Any) -> str:
    if is_object(value) and set(value) == {"permission", "pattern", "action"}:
        return f"{value['permission']} {value['pattern']}: {value['action']}"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print rows in columns; the last one is as long as it likes."""
    every = [head, *rows] if head else rows
    widths = [max(len(row[column]) for row in every) for column in range(len(every[0]) - 1)]
    for row in every:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo(inert("  ".join([*cells, row[-1]])))
