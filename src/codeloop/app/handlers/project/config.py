"""The configuration: what holds, and changes of the project's own file."""

import asyncio
import json
import os
import re
from pathlib import Path

from codeloop.app.handlers import handles
from codeloop.app.project import Project
from codeloop.app.settings import ProjectSettings, Startup, find_settings
from codeloop.config.edit_file import NotEditable, edit_text, find_changed_settings
from codeloop.config.files import reason
from codeloop.config.known_keys import find_unknown_keys
from codeloop.config.normalise import normalise
from codeloop.config.redact import redact_config, redact_full_config
from codeloop.config.sources import PROJECT_FILES, Layer, format_keys
from codeloop.config.trust.filter import filter_layer
from codeloop.config.trust.store import amend
from codeloop.kit.jsonc import Document, parse
from codeloop.kit.suggest import suggest_names
from codeloop.schema import operation
from codeloop.schema.api.project import UpdateConfig
from codeloop.schema.errors import OperationError
from codeloop.schema.limits import CONFIG_BYTES, CONFIG_DEPTH
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import JSON
from codeloop.workspace.files.atomic_write import Replacement, replace_file
from codeloop.workspace.files.safe_open import load_if_there


@handles(operation.CONFIG_GET)
async def get(project: Project, _args: NoArguments) -> JSON:
    """Return the merged configuration in the form of a file, without secrets."""
    return _redact(project, project.settings)


@handles(operation.CONFIG_SETTINGS)
async def whole(project: Project, _args: NoArguments) -> JSON:
    """Return the configuration as `get` does, with the settings that only codeloop knows."""
    return _whole(project, project.settings)


@handles(operation.CONFIG_ORIGINS)
async def origins(project: Project, _args: NoArguments) -> dict[str, str]:
    """Return which file and line set each value that is set, by its dotted path."""
    return {path: str(origin) for path, origin in project.settings.loaded.provenance.items()}


@handles(operation.CONFIG_WARNINGS)
async def warnings(project: Project, _args: NoArguments) -> list[str]:
    """Return the warnings on the configuration, one a line: errors, unsupported keys, keys that need trust."""
    return list(project.settings.loaded.warnings)


@handles(operation.CONFIG_UPDATE)
async def update(project: Project, args: UpdateConfig) -> JSON:
    """Merge settings into the project's own file and return the configuration as it is then; null takes one out.

    What is so already is not written. Raises CodeloopError, and nothing is changed: a setting that no file may hold,
    one that a directory without trust can't have, a file that is not valid.
    """
    check_settings(args.config)
    file = _own_file(project.settings.project_root.root)
    async with project.workspace.read_log.lock(file):
        before = await asyncio.to_thread(find_settings, project.settings.startup)
        change = find_changed_settings(args.config, _whole(project, before))
        if not change:
            return _redact(project, before)
        await asyncio.to_thread(_write, before, project.settings.startup, file, change)
    settings = await asyncio.to_thread(find_settings, project.settings.startup)
    if project.renew is not None:
        await project.renew()
    return _redact(project, settings)


def check_settings(config: JSON) -> None:
    """Raise OperationError when settings are too large, or one of them is not known."""
    _check_size(config)
    unknown = next((each for each in find_unknown_keys(config) if each.is_dropped), None)
    if unknown is not None:
        raise OperationError(
            "BadRequest", f"There is no setting {format_keys(unknown.keys)}.{suggest_names(unknown.suggestions)}"
        )


def _check_size(config: JSON) -> None:
    try:
        text = json.dumps(config)
        parse(text, depth=CONFIG_DEPTH.value)
    except (ValueError, RecursionError) as error:
        raise OperationError("BadRequest", f"The settings are nested more than {CONFIG_DEPTH.value} deep.") from error
    if len(text) > CONFIG_BYTES.value:
        raise OperationError("BadRequest", f"The settings are larger than {CONFIG_BYTES.value:,} bytes.")


def _redact(project: Project, settings: ProjectSettings) -> JSON:
    return redact_config(settings.loaded, _user(project))


def _whole(project: Project, settings: ProjectSettings) -> JSON:
    return redact_full_config(settings.loaded, _user(project))


def _user(project: Project) -> str:
    return project.settings.environment.get("USER") or "unknown"


def _own_file(root: Path) -> Path:
    """Return the project's file whose settings come after those of its others; a new one when there is none."""
    there = [root / name for name in PROJECT_FILES if os.path.lexists(root / name)]
    return there[-1] if there else root / "codeloop.json"


def _write(settings: ProjectSettings, startup: Startup, file: Path, change: JSON) -> None:
    """Change a file, if the configuration still makes sense with it. Blocks."""
    if not settings.trusted:
        _check_effect(settings, file, change)
    try:
        before = load_if_there(file)
        text = edit_text(None if before is None else before.data.decode("utf-8-sig"), change)
        if len(text.encode()) > CONFIG_BYTES.value:
            raise OperationError("BadRequest", f"{file} would be larger than {CONFIG_BYTES.value:,} bytes.")
        layer = Layer("project", str(file), file.parent, parse(text, depth=CONFIG_DEPTH.value), is_project=True)
        find_settings(startup, (layer,))
        replace_file(Replacement(file, before, text.encode()))
        if settings.trusted:  # it is the user's own change
            amend(settings.paths, settings.project_root.root, settings.project_root.directory, file)
    except NotEditable as error:
        raise OperationError("BadRequest", f"{file} is not changed: {error}. Edit {file} by hand.") from error
    except UnicodeError as error:
        raise OperationError("BadRequest", f"{file} or the new settings are not UTF-8 text.") from error
    except ValueError as error:
        raise OperationError("BadRequest", f"The settings can't be stored: {error}.") from error
    except OSError as error:
        raise OperationError("BadRequest", f"{file} can't be written: {reason(error)}. Nothing was changed.") from error


def _check_effect(settings: ProjectSettings, file: Path, change: JSON) -> None:
    """Raise OperationError when a directory that is not trusted would not get what is asked for."""
    changes = {key: value for key, value in change.items() if value is not None}
    layer = Layer("project", str(file), file.parent, Document("", changes), is_project=True)
    loaded = settings.loaded
    own = {path for path, origin in loaded.provenance.items() if origin.layer.source == str(file)}
    tops = {re.split(r"[.\[]", path, maxsplit=1)[0] for path in own}
    others = {key: value for key, value in redact_config(loaded, "").items() if key not in tops}
    _, ignored = filter_layer(normalise(layer, changes), others)
    if ignored:
        raise OperationError(
            "BadRequest",
            f"{settings.project_root.root} is not trusted, so {', '.join(ignored)} in its configuration would be "
            "ignored. Nothing was changed. Trust it with `codeloop trust`, or set it in your own configuration.",
        )
