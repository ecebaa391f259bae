"""Implements `--worktree`: makes or finds the work tree,
before the run or conversation opens its project there.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import click

from codeloop.app.project import open_project
from codeloop.cli.option_values import Options
from codeloop.cli.output.streams import can_ask_user
from codeloop.cli.target.local import make_startup
from codeloop.client.client import Client
from codeloop.client.local import LocalClient
from codeloop.client.worktree_texts import describe_opened_worktree
from codeloop.client.worktrees import find_or_create_worktree
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.api.project import PATH_GET, PROJECT_CURRENT, PathInfo
from codeloop.schema.api.worktrees import COPY_NAME, WORKTREE_COPY, CopyToWorktree, GenerateCopyName
from codeloop.schema.errors import UsageProblem
from codeloop.schema.operation import NoArguments
from codeloop.schema.resources import Worktree
from codeloop.schema.wire import replace


def separate_prompt(options: Options) -> Options:
    """Move words of the prompt that click has read as the work tree's name to the message;
    return the options.
    """
    # The name is optional: in `--worktree "fix the test"`, click takes the prompt for it.
    name = options.worktree
    if name is None or not any(map(str.isspace, name)):
        return options
    return replace(options, worktree="", message=(name, *options.message))


def move_to_worktree(options: Options) -> Options:
    """Return the options with the work tree that they name as the directory;
    it is made if there is none.

    With `--attach`, the server makes it on its machine. Raises CodeloopError if there is no
    repository or no commit, or the name is taken by something else.
    """
    if options.worktree is None:
        if options.base is not None:
            raise UsageProblem(
                "--base says where a work tree begins. Add --worktree, or leave it out."
            )
        return options
    return replace(
        options, directory=asyncio.run(_prepare_worktree(options)), worktree=None, base=None
    )


async def _prepare_worktree(options: Options) -> Path:
    """Make or find the work tree, and copy the files to it that the user agrees to.

    Returns the folder in it that corresponds to the current directory.
    """
    # The recording is for the run that follows, not for the project that only makes the work tree.
    open_options = (
        options if options.attach is not None else replace(options, record=None, replay=None)
    )
    async with _open_client(open_options) as (client, paths):
        name = options.worktree or ""
        if not name and options.message:
            project = await client.call(PROJECT_CURRENT, NoArguments())
            name_request = GenerateCopyName(
                project_id=project.id, context=" ".join(options.message)
            )
            name = (await client.call(COPY_NAME, name_request)).name
        tree, is_new = await find_or_create_worktree(client, name, options.base)
        # A user is asked about these files below; without one, the lines name them.
        described_tree = replace(tree, asks=[]) if can_ask_user() else tree
        for line in describe_opened_worktree(described_tree, is_new=is_new):
            click.echo(f"codeloop: {escape_controls(line)}", err=True)
        if can_ask_user():
            await _ask_to_copy(client, tree)
        subfolder = os.path.relpath(paths.directory, paths.worktree)
        folder = Path(tree.directory, subfolder)
        # A folder that is not committed is not in the work tree.
        # One on a server can't be looked at.
        exists = subfolder == "." or options.attach is not None or folder.is_dir()
        return folder if exists else Path(tree.directory)


@asynccontextmanager
async def _open_client(options: Options) -> AsyncGenerator[tuple[Client, PathInfo]]:
    """Open the project on this machine or connect to the server;
    yields its client and the paths of the project.
    """
    if options.attach is not None:
        from codeloop.cli.target.remote import open_remote

        async with open_remote(options) as target:
            yield target.client, await target.client.call(PATH_GET, NoArguments())
        return
    project = await open_project(make_startup(options, None))
    try:
        client = LocalClient(project)
        yield client, await client.call(PATH_GET, NoArguments())
    finally:
        await project.close()


async def _ask_to_copy(client: Client, tree: Worktree) -> None:
    """Ask for each file that may hold secrets whether to copy it to the work tree."""
    for name in tree.asks:
        question = f"codeloop: {escape_controls(name)} is not in the work tree, as it may hold secrets. Copy it there?"
        if await asyncio.to_thread(click.confirm, question, default=False, err=True):
            await client.call(WORKTREE_COPY, CopyToWorktree(name=tree.name, files=[name]))
