"""`codeloop worktree`: lists, creates, compares,
merges and removes work trees of this repository.
"""

import sys

import click

from codeloop.cli.group import CommandGroup
from codeloop.cli.options import JSON_OPTION
from codeloop.cli.output.print_json import print_json
from codeloop.cli.output.streams import can_ask_user
from codeloop.cli.output.style import has_colour, paint_patch_line
from codeloop.cli.target.run_with_client import run_with_client
from codeloop.client.client import Client
from codeloop.client.worktree_texts import (
    describe_merge,
    describe_opened_worktree,
    describe_rebase,
    describe_removal,
    format_diff_stat,
    format_worktree_diff,
    format_worktree_list,
    list_losses,
)
from codeloop.client.worktrees import find_worktree
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.api.worktrees import (
    WORKTREE_COPY,
    WORKTREE_CREATE,
    WORKTREE_DIFF,
    WORKTREE_MERGE,
    WORKTREE_OVERVIEW,
    WORKTREE_REBASE,
    WORKTREE_REMOVE,
    CopyToWorktree,
    CreateWorktree,
    MergeWorktree,
    RemoveWorktree,
    WorktreeMerge,
    WorktreeName,
    WorktreeOverview,
)
from codeloop.schema.errors import CodeloopError
from codeloop.schema.operation import NoArguments

NAME_ARGUMENT = click.argument("name")


@click.group(cls=CommandGroup)
def worktree() -> None:
    """List, compare, merge and remove work trees of this repository.

    NAME is a work tree's name, its branch or its folder.
    `codeloop --worktree NAME` works in one, and makes it first.
    """


@worktree.command("list")
@JSON_OPTION
def list_worktrees(*, as_json: bool) -> None:
    """List the work trees that codeloop made here, with what in each is nowhere else."""
    rows = run_with_client(lambda client: client.call(WORKTREE_OVERVIEW, NoArguments()))
    if as_json:
        print_json(rows)
    else:
        click.echo(escape_controls("\n".join(format_worktree_list(rows))))


@worktree.command()
@click.argument("name", required=False)
@click.option(
    "--base",
    metavar="REF",
    help="Branch or commit to begin from. [default: the one that you are on]",
)
@click.option(
    "--sparse", metavar="DIR", multiple=True, help="Check out this folder only; repeatable."
)
@JSON_OPTION
def create(name: str | None, *, base: str | None, sparse: tuple[str, ...], as_json: bool) -> None:
    """Make a work tree with a branch of its own, codeloop/NAME."""
    request = CreateWorktree(name=name, base=base, sparse=list(sparse) or None)
    worktree = run_with_client(lambda client: client.call(WORKTREE_CREATE, request))
    if as_json:
        print_json(worktree)
    else:
        click.echo(escape_controls("\n".join(describe_opened_worktree(worktree, is_new=True))))


@worktree.command()
@NAME_ARGUMENT
@click.argument("files", nargs=-1, required=True)
def copy(name: str, files: tuple[str, ...]) -> None:
    """Copy ignored FILES of this directory's project, such as .env, into a work tree."""
    request = CopyToWorktree(name=name, files=list(files))
    copied_files = run_with_client(lambda client: client.call(WORKTREE_COPY, request))
    click.echo(escape_controls(f"Copied: {' '.join(copied_files)}"))


@worktree.command()
@NAME_ARGUMENT
@click.option("--stat", is_flag=True, help="Only the files, and how many lines changed.")
@JSON_OPTION
def diff(name: str, *, stat: bool, as_json: bool) -> None:
    """Show what a work tree changed since it left its base, uncommitted files too."""
    worktree_diff = run_with_client(
        lambda client: client.call(WORKTREE_DIFF, WorktreeName(name=name))
    )
    if as_json:
        print_json(worktree_diff)
    elif stat:
        if worktree_diff.files:
            click.echo(escape_controls(format_diff_stat(worktree_diff)))
    else:
        colour = has_colour(sys.stdout)
        for line in format_worktree_diff(worktree_diff).split("\n"):
            click.echo(paint_patch_line(escape_controls(line), colour=colour))


@worktree.command()
@NAME_ARGUMENT
@click.option("-m", "--message", help="Message of the commits that are made.")
@click.option(
    "--into",
    metavar="BRANCH",
    help="Branch to merge into. [default: the one that it was made from]",
)
@click.option("--file", "files", multiple=True, help="Take this file's change only; repeatable.")
@JSON_OPTION
def merge(
    name: str, *, message: str | None, into: str | None, files: tuple[str, ...], as_json: bool
) -> None:
    """Merge a work tree's branch; what is uncommitted there is committed first.

    With conflicts nothing is merged: they are shown, and the exit code is 1.
    """
    request = MergeWorktree(name=name, message=message, into=into, files=list(files) or None)
    worktree_merge = run_with_client(lambda client: client.call(WORKTREE_MERGE, request))
    _show_merge(worktree_merge, describe_merge(worktree_merge), as_json=as_json)


@worktree.command()
@NAME_ARGUMENT
@JSON_OPTION
def rebase(name: str, *, as_json: bool) -> None:
    """Replay a work tree's commits onto the branch that it was made from, as that is now."""
    worktree_merge = run_with_client(
        lambda client: client.call(WORKTREE_REBASE, WorktreeName(name=name))
    )
    _show_merge(worktree_merge, describe_rebase(name, worktree_merge), as_json=as_json)


@worktree.command()
@click.argument("names", nargs=-1)
@click.option(
    "--clean",
    is_flag=True,
    help="Remove every work tree that holds nothing new, and list the others.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Do not ask: commit what is uncommitted to its branch, which stays.",
)
def remove(names: tuple[str, ...], *, clean: bool, force: bool) -> None:
    """Remove work trees. Nothing in them is lost.

    One that holds uncommitted files or commits that are nowhere else is removed only when you say
    so; its branch then keeps them. Files that git ignores go with it.
    """
    if bool(names) == clean:
        raise click.UsageError("Name work trees, or give --clean.")

    async def remove_worktrees(client: Client) -> bool:
        """Remove the work trees one after the other; return whether all were removed."""
        if clean:
            rows = await client.call(WORKTREE_OVERVIEW, NoArguments())
        else:
            # All names are looked up first, so that a wrong one removes nothing.
            rows = [await find_worktree(client, name) for name in names]
        # A list: after one that was not removed, the others are still tried.
        are_removed = [
            await _remove_one(client, row, can_ask=not clean, is_forced=force and not clean)
            for row in rows
        ]
        return all(are_removed)

    if not run_with_client(remove_worktrees) and not clean:
        raise CodeloopError(
            "Not everything was removed. Commit, merge or push it, or give --force."
        )


async def _remove_one(
    client: Client, row: WorktreeOverview, *, can_ask: bool, is_forced: bool
) -> bool:
    """Remove a work tree; return False if it holds something that is nowhere else,
    and the user does not agree.
    """
    losses = list_losses(row)
    for line in losses:
        click.echo(escape_controls(line), err=True)
    if losses and not is_forced:
        if not can_ask or row.running or not can_ask_user():
            return False
        question = f"Remove {escape_controls(row.name)}, and keep that on {escape_controls(row.branch or '')}?"
        if not click.confirm(question, err=True):
            return False
        is_forced = True
    await client.call(WORKTREE_REMOVE, RemoveWorktree(directory=row.directory, force=is_forced))
    click.echo(escape_controls("\n".join(describe_removal(row, is_forced=is_forced))))
    return True


def _show_merge(worktree_merge: WorktreeMerge, lines: list[str], *, as_json: bool) -> None:
    """Print the result of a merge or a rebase; with conflicts, end with exit code 1."""
    if as_json:
        print_json(worktree_merge)
    else:
        click.echo(escape_controls("\n".join(lines)))
    if worktree_merge.commit is None:
        sys.exit(1)
