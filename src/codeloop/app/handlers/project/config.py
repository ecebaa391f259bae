"""Handlers of the merged configuration of a project,
and of changes to the project's own configuration file.
"""

import asyncio
import json
import os
import re
from pathlib import Path

from codeloop.app.project import Project
from codeloop.app.settings import ProjectSettings, Startup, find_settings
from codeloop.config.config_text import NotEditable, edit_text, find_changed_settings
from codeloop.config.files import describe_os_error
from codeloop.config.forms.normalise import normalise_layer
from codeloop.config.known_keys import find_unknown_keys
from codeloop.config.redact import redact_config, redact_full_config
from codeloop.config.sources import PROJECT_FILES, Layer, format_keys
from codeloop.config.trust.layer_filter import filter_layer
from codeloop.config.trust.store import trust_changed_file
from codeloop.kit.jsonc import Document, parse_jsonc
from codeloop.kit.text.suggest import format_suggestion
from codeloop.schema.api.config import (
    UpdateConfig,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.limits import CONFIG_BYTES, CONFIG_DEPTH
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import JSON
from codeloop.workspace.files.atomic_write import Replacement, replace_file
from codeloop.workspace.files.safe_open import read_file_if_exists


async def get_config(project: Project, _args: NoArguments) -> JSON:
    """Return the merged configuration in the form of a file, without secrets."""
    return _redact(project, project.settings)


async def get_full_config(project: Project, _args: NoArguments) -> JSON:
    """Return the configuration as `get_config` does,
    with settings that OpenCode's format does not have.
    """
    return _redact_full(project, project.settings)


async def list_origins(project: Project, _args: NoArguments) -> dict[str, str]:
    """Return the file and line of each configured value, by its dotted path."""
    return {path: str(origin) for path, origin in project.settings.loaded.provenance.items()}


async def list_warnings(project: Project, _args: NoArguments) -> list[str]:
    """Return the warnings about the configuration, one line each: of unknown keys,
    missing trust and others.
    """
    return list(project.settings.loaded.warnings)


async def update_config(project: Project, args: UpdateConfig) -> JSON:
    """Merge settings into the project's configuration file, and return the new configuration;
    null removes a setting.

    Settings that have the given value already are not written. Raises CodeloopError, and changes
    nothing, for an unknown setting, one that is ignored without trust, and an invalid file.
    """
    check_settings(args.config)
    file = _choose_file(project.settings.project_root.root)
    # The model's tools take the same lock, so none of them edits the file meanwhile.
    async with project.workspace.read_log.get_lock(file):
        before = await asyncio.to_thread(find_settings, project.settings.startup)
        change = find_changed_settings(args.config, _redact_full(project, before))
        if not change:
            return _redact(project, before)
        project.workspace.read_log.expected_files.add(file)
        await asyncio.to_thread(_write_changes, before, project.settings.startup, file, change)
    settings = await asyncio.to_thread(find_settings, project.settings.startup)
    if project.reload is not None:
        await project.reload()
    return _redact(project, settings)


def check_settings(config: JSON) -> None:
    """Raise OperationError if the settings are too large or too deeply nested,
    or if one of them is unknown.
    """
    _check_size(config)
    unknown = next((each for each in find_unknown_keys(config) if each.is_dropped), None)
    if unknown is not None:
        raise OperationError(
            "BadRequest",
            f"There is no setting {format_keys(unknown.keys)}.{format_suggestion(unknown.suggestions)}",
        )


def _check_size(config: JSON) -> None:
    try:
        text = json.dumps(config)
        parse_jsonc(text, depth=CONFIG_DEPTH.value)
    except (ValueError, RecursionError) as error:
        raise OperationError(
            "BadRequest", f"The settings are nested more than {CONFIG_DEPTH.value} deep."
        ) from error
    if len(text) > CONFIG_BYTES.value:
        raise OperationError(
            "BadRequest", f"The settings are larger than {CONFIG_BYTES.value:,} bytes."
        )


def _redact(project: Project, settings: ProjectSettings) -> JSON:
    return redact_config(settings.loaded, _get_user_name(project))


def _redact_full(project: Project, settings: ProjectSettings) -> JSON:
    return redact_full_config(settings.loaded, _get_user_name(project))


def _get_user_name(project: Project) -> str:
    return project.settings.environment.get("USER") or "unknown"


def _choose_file(root: Path) -> Path:
    """Return the project's file that overrides its other ones;
    without a file, the path for a new one.
    """
    files = [root / name for name in PROJECT_FILES if os.path.lexists(root / name)]
    return files[-1] if files else root / "codeloop.json"


def _write_changes(settings: ProjectSettings, startup: Startup, file: Path, change: JSON) -> None:
    """Change a file if the whole configuration stays valid. Blocks. Raises CodeloopError."""
    if not settings.trusted:
        _check_effect(settings, file, change)
    try:
        before = read_file_if_exists(file)
        text = edit_text(None if before is None else before.data.decode("utf-8-sig"), change)
        if len(text.encode()) > CONFIG_BYTES.value:
            raise OperationError(
                "BadRequest", f"{file} would be larger than {CONFIG_BYTES.value:,} bytes."
            )
        # The new content is checked as one more layer before the file is written: no reader
        # ever sees an invalid file.
        layer = Layer(
            "project",
            str(file),
            file.parent,
            parse_jsonc(text, depth=CONFIG_DEPTH.value),
            is_project=True,
        )
        find_settings(startup, (layer,))
        replace_file(Replacement(file, before, text.encode()))
        # Trust holds for a file's content; the user has just made this change, so it is added.
        if settings.trusted:
            trust_changed_file(
                settings.paths, settings.project_root.root, settings.project_root.directory, file
            )
    except NotEditable as error:
        raise OperationError(
            "BadRequest", f"{file} is not changed: {error}. Edit {file} by hand."
        ) from error
    except UnicodeError as error:
        raise OperationError(
            "BadRequest", f"{file} or the new settings are not UTF-8 text."
        ) from error
    except ValueError as error:
        raise OperationError("BadRequest", f"The settings can't be stored: {error}.") from error
    except OSError as error:
        raise OperationError(
            "BadRequest",
            f"{file} can't be written: {describe_os_error(error)}. Nothing was changed.",
        ) from error


def _check_effect(settings: ProjectSettings, file: Path, change: JSON) -> None:
    """Raise OperationError if the change would be ignored because the directory is not trusted."""
    changes = {key: value for key, value in change.items() if value is not None}
    layer = Layer("project", str(file), file.parent, Document("", changes), is_project=True)
    loaded = settings.loaded
    file_paths = {
        path for path, origin in loaded.provenance.items() if origin.layer.source == str(file)
    }
    # Settings of this file itself are left out: the change is to be compared with the other files.
    own_keys = {re.split(r"[.\[]", path, maxsplit=1)[0] for path in file_paths}
    others = {key: value for key, value in redact_config(loaded, "").items() if key not in own_keys}
    _, ignored = filter_layer(normalise_layer(layer, changes), others)
    if ignored:
        raise OperationError(
            "BadRequest",
            f"{settings.project_root.root} is not trusted, so {', '.join(ignored)} in its configuration would be "
            "ignored. Nothing was changed. Trust it with `codeloop trust`, or set it in your own configuration.",
        )
