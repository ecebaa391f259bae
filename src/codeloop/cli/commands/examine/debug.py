"""`codeloop debug`: the effective configuration and its sources, our folders, and every limit."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from codeloop.cli.commands.examine.debug_permission import debug_permission
from codeloop.cli.commands.examine.debug_sandbox import debug_sandbox
from codeloop.cli.commands.examine.logs import logs
from codeloop.cli.group import CommandGroup
from codeloop.cli.options import CONFIG_OPTION, JSON_OPTION
from codeloop.cli.output.style import align_columns
from codeloop.cli.target.project import run_with_local_client
from codeloop.client.local import LocalClient
from codeloop.config.load import LoadedConfig, load_config
from codeloop.config.paths import find_paths
from codeloop.config.project_root import find_project_root
from codeloop.config.redact import mask_secrets
from codeloop.config.sources import format_keys
from codeloop.config.trust.state import TrustState, find_trust_state
from codeloop.extend.folders import find_homes
from codeloop.extend.pages.markdown import find_pages
from codeloop.kit.jsonc import KeyPath, is_list, is_object
from codeloop.kit.terminal_text import escape_controls, escape_json_controls
from codeloop.schema.bounds.all_limits import list_limits
from codeloop.schema.config import Config
from codeloop.schema.wire import replace
from codeloop.workspace.snapshot.snapshots import SkippedSnapshot


@click.group(cls=CommandGroup)
def debug() -> None:
    """Show configuration, paths, limits and the sandbox."""


debug.add_command(debug_sandbox)
debug.add_command(logs)


debug.add_command(debug_permission)


@debug.command("config")
@click.option("--provenance", is_flag=True, help="Show the file and line that set each value.")
@CONFIG_OPTION
@click.option("--trust", "as_trusted", is_flag=True, help="Show it as if the project were trusted.")
def show_config(*, provenance: bool, config: Path | None, as_trusted: bool) -> None:
    """Print the effective configuration as JSON. Values with names like `key` or `token` are masked."""
    paths = find_paths(os.environ)
    project_root = find_project_root(Path.cwd(), paths, os.environ)
    state = (
        TrustState(trusted=True) if as_trusted else find_trust_state(paths, project_root.root, project_root.directory)
    )
    is_trusted = state.trusted
    extra = replace(find_pages(project_root, find_homes(project_root, paths), trusted=is_trusted), distrust=state.why)
    configuration = load_config(
        project_root, paths, config_file=config, environment=os.environ, trusted=is_trusted, extra=extra
    )
    for warning in configuration.warnings:
        click.echo(escape_controls(f"codeloop: {warning}"), err=True)
    values = mask_secrets(list_effective_values(configuration.config))
    if not provenance:
        click.echo(_format_json(values))
        return
    leaves = list_leaves(values)
    rows = [(format_keys(keys), _format_value(value), _describe_origin(configuration, keys)) for keys, value in leaves]
    click.echo(escape_controls(align_columns([("settings", "value", "set by"), *rows])))


@debug.command("paths")
@JSON_OPTION
def show_paths(*, as_json: bool) -> None:
    """Print the folders and files that codeloop uses."""
    paths = find_paths(os.environ)
    project_root = find_project_root(Path.cwd(), paths, os.environ)
    rows = {name: str(getattr(paths, name)) for name in paths.__struct_fields__}
    rows |= {"credentials": str(paths.credentials_file), "trust": str(paths.trust_file), "log": str(paths.log_folder)}
    rows |= {
        "root": str(project_root.root),
        "directory": str(project_root.directory),
        "project": str(paths.get_project_folder(project_root.project_id)),
    }
    if as_json:
        click.echo(_format_json(rows))
    else:
        click.echo(escape_controls(align_columns(list(rows.items()))))


@debug.command("limits")
@JSON_OPTION
def show_limits(*, as_json: bool) -> None:
    """Print every limit: deadlines, sizes and counts."""
    if as_json:
        click.echo(_format_json(list_limits()))
        return
    rows = [(limit.name, f"{limit.value:,} {limit.unit}", limit.why) for limit in list_limits()]
    click.echo(escape_controls(align_columns([("limit", "value", "effect"), *rows])))


@debug.command("snapshot")
@click.option("--prune", is_flag=True, help="Delete what no session needs any more.")
def show_snapshot(*, prune: bool) -> None:
    """Show what is stored for undo in this project, and what is left out."""

    async def command(client: LocalClient) -> None:
        snapshots = client.project.snapshots
        if isinstance(await snapshots.take(), SkippedSnapshot):
            # A turn would go on without a snapshot; an explicit request may wait until the snapshot's jobs are done.
            await snapshots.jobs.wait_idle()
        removed_count = snapshots.prune() if prune else 0
        stats = snapshots.read_stats()
        rows = [("folder", str(stats.folder)), ("files", f"{stats.files:,}"), ("objects", f"{stats.objects:,}")]
        rows += [("size", f"{stats.bytes / 1024:,.0f} KB"), ("removed", f"{removed_count:,}")]
        rows += [("left out", f"{omission.path}: {omission.reason}") for omission in stats.omitted]
        rows += [("off", stats.disabled_reason)] if stats.disabled_reason else []
        click.echo(escape_controls(align_columns([("what", "value"), *rows])))

    run_with_local_client(command)


def list_effective_values(config: Config) -> dict[str, Any]:
    """Return a configuration, with defaults, as JSON values; unset values are left out."""
    values = {name: msgspec.to_builtins(getattr(config, name)) for name in config.__struct_fields__}
    return {name: value for name, value in values.items() if value is not None and value not in ([], {})}


def list_leaves(value: Any, keys: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield every value with provenance: lists of rules, instructions and plugins by item, others whole."""
    if is_object(value) and value and "pattern" not in value:
        for key, inner in value.items():
            yield from list_leaves(inner, (*keys, key))
    elif is_list(value) and keys[-1] in {"permission", "restrictions", "instructions", "plugin"}:
        for index, inner in enumerate(value):
            yield (*keys, index), inner
    else:
        yield keys, value


def _format_json(value: Any) -> str:
    return escape_json_controls(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _describe_origin(loaded: LoadedConfig, keys: KeyPath) -> str:
    origin = loaded.provenance.get(format_keys(keys))
    return f"{origin.layer.name} ({origin})" if origin else "built-in"


def _format_value(value: Any) -> str:
    if is_object(value) and set(value) == {"permission", "pattern", "action"}:
        return f"{value['permission']} {value['pattern']}: {value['action']}"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."
