"""Opens a project in this process, as the command line does."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

from codeloop.app.extensions.open_with_extensions import open_with_extensions
from codeloop.app.prompt_parts import make_local_file_part
from codeloop.app.settings import Startup, check_directory
from codeloop.client.local import LocalClient
from codeloop.client.target import Target
from codeloop.kit.paths import expand_user_path
from codeloop.library.budget import make_budget_registry
from codeloop.library.options import OpenOptions
from codeloop.model.testing.recording_file import open_recording
from codeloop.schema.errors import UsageProblem


@asynccontextmanager
async def open_local_target(
    directory: "str | os.PathLike[str]", options: OpenOptions
) -> AsyncGenerator[Target]:
    """Open the project of a directory while the block runs. Raises CodeloopError."""
    folder = expand_user_path(directory).absolute()
    check_directory(folder)
    if "record" in options and "replay" in options:
        raise UsageProblem(
            "record and replay exclude each other, as a replay asks no model. Leave one of them out."
        )
    record = options.get("record")
    with (
        open_recording(Path(record), replace=False)
        if record is not None
        else nullcontext() as record_file
    ):
        startup = _make_startup(
            folder, options, record_file.path if record_file is not None else None
        )
        project = await open_with_extensions(startup)
        try:
            project.refresh_catalog()
            client = LocalClient(project)
            yield Target(
                client=client,
                directory=project.settings.project_root.directory_name,
                get_session_client=lambda _: client,
                attach_file=make_local_file_part,
                notes=tuple(project.settings.loaded.warnings),
                list_problems=project.models.list_problems,
            )
        finally:
            await project.close()
            if record_file is not None:
                record_file.is_whole = not project.models.list_problems()


def _make_startup(folder: Path, options: OpenOptions, record: Path | None) -> Startup:
    config, replay, model = options.get("config"), options.get("replay"), options.get("model")
    return Startup(
        directory=folder,
        environment=dict(options.get("environment", os.environ)),
        config_file=Path(config) if config is not None else None,
        settings={**options.get("settings", {}), **({"model": model} if model is not None else {})},
        trust=options.get("trust", False),
        record=record,
        replay=Path(replay) if replay is not None else None,
        budgets=make_budget_registry(options.get("budget")),
    )
