"""Handlers of the user's own configuration, which applies to all projects: read it,
and change its file.
"""

import asyncio
from pathlib import Path

from codeloop.app.handlers.project.config import check_settings
from codeloop.app.project import Project
from codeloop.app.settings import ProjectSettings, find_settings
from codeloop.config.config_text import NotEditable, edit_text, find_changed_settings
from codeloop.config.file_entries import choose_entry_file
from codeloop.config.files import describe_os_error
from codeloop.config.load import LoadedConfig, load_config
from codeloop.config.opencode_variables import SETTING_VARIABLES
from codeloop.config.project_root import GLOBAL_PROJECT_ID, ProjectRoot
from codeloop.config.redact import redact_config, redact_full_config
from codeloop.config.sources import Layer
from codeloop.kit.jsonc import parse_jsonc
from codeloop.schema.api.server_operations import UpdateGlobalConfig
from codeloop.schema.errors import OperationError
from codeloop.schema.limits import CONFIG_BYTES, CONFIG_DEPTH
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import JSON
from codeloop.workspace.files.atomic_write import Replacement, replace_file
from codeloop.workspace.files.safe_open import read_file_if_exists


async def get_global_config(project: Project, _args: NoArguments) -> JSON:
    """Return the user's configuration without any project's, and without secrets."""
    return _redact(await asyncio.to_thread(_load_config, project.settings), project.settings)


async def update_global_config(project: Project, args: UpdateGlobalConfig) -> JSON:
    """Merge settings into the user's configuration file, and return the new configuration;
    null removes a setting.

    Raises CodeloopError, and changes nothing, for an unknown setting and for an invalid file.
    """
    check_settings(args.config)
    settings = project.settings
    file = choose_entry_file(settings.paths, None)
    # The model's tools take the same lock, so none of them edits the file meanwhile.
    async with project.workspace.read_log.get_lock(file):
        before = await asyncio.to_thread(_load_config, settings)
        change = find_changed_settings(args.config, redact_full_config(before, ""))
        if change:
            await asyncio.to_thread(_write_changes, settings, file, change)
    # Other projects notice at their next request that the file has changed.
    if change and project.reload is not None:
        await project.reload()
    return _redact(await asyncio.to_thread(_load_config, settings), settings)


def _load_config(settings: ProjectSettings) -> LoadedConfig:
    """Read the user's files as for a directory without any. Blocks. Raises CodeloopError."""
    # A directory that does not exist: no project's file is found there,
    # and there is nothing to distrust.
    nowhere = settings.paths.state / "no-project"
    project_root = ProjectRoot(nowhere, nowhere, GLOBAL_PROJECT_ID, None)
    # Files and settings that variables name are not part of the user's configuration file either.
    variables = (
        "CODELOOP_CONFIG",
        "OPENCODE_CONFIG",
        "CODELOOP_CONFIG_CONTENT",
        "OPENCODE_CONFIG_CONTENT",
        *SETTING_VARIABLES,
    )
    environment = {
        name: value for name, value in settings.environment.items() if name not in variables
    }
    return load_config(project_root, settings.paths, environment=environment, trusted=True)


def _redact(loaded: LoadedConfig, settings: ProjectSettings) -> JSON:
    return redact_config(loaded, settings.environment.get("USER") or "unknown")


def _write_changes(settings: ProjectSettings, file: Path, change: JSON) -> None:
    """Change the user's file if the whole configuration stays valid. Blocks.
    Raises CodeloopError.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        before = read_file_if_exists(file)
        text = edit_text(None if before is None else before.data.decode("utf-8-sig"), change)
        if len(text.encode()) > CONFIG_BYTES.value:
            raise OperationError(
                "BadRequest", f"{file} would be larger than {CONFIG_BYTES.value:,} bytes."
            )
        find_settings(
            settings.startup,
            (Layer("global", str(file), file.parent, parse_jsonc(text, depth=CONFIG_DEPTH.value)),),
        )
        replace_file(Replacement(file, before, text.encode()))
    except NotEditable as error:
        raise OperationError(
            "BadRequest", f"{file} is not changed: {error}. Edit {file} by hand."
        ) from error
    except ValueError as error:
        raise OperationError(
            "BadRequest", f"The settings can't be stored in {file}: {error}."
        ) from error
    except OSError as error:
        raise OperationError(
            "BadRequest",
            f"{file} can't be written: {describe_os_error(error)}. Nothing was changed.",
        ) from error
