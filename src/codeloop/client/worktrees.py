"""Work trees for user interfaces: carries out `/worktree`."""

import re
import shlex

from msgspec import Struct

from codeloop.client.client import Client
from codeloop.client.worktree_texts import (
    PROBLEMS_BY_STATE,
    describe_merge,
    describe_rebase,
    describe_removal,
    format_diff_stat,
    format_worktree_diff,
    format_worktree_list,
    list_losses,
)
from codeloop.kit.text.suggest import find_similar, format_suggestion
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
    WorktreeName,
    WorktreeOverview,
)
from codeloop.schema.errors import UsageProblem
from codeloop.schema.operation import NoArguments
from codeloop.schema.resources import Worktree

USAGE = (
    "[NAME [PROMPT] | create [NAME] [--base REF] [--sparse DIR] [PROMPT] | list | diff NAME [--stat] | rebase NAME"
    " | merge NAME [--into BRANCH] [-m MESSAGE] [--file FILE] | remove NAME... [--force] | remove --clean"
    " | copy NAME FILE...]"
)
# As those of `codeloop worktree`; `create` opens a work tree, as a name does.
_VERBS = ("list", "diff", "merge", "rebase", "remove", "copy")
_CREATE_VERB = "create"
_CREATE_OPTION = r"(--base|--sparse)[ =]+(\S+)\s*"


def is_worktree_verb(words: str) -> bool:
    """Return whether the words after `/worktree` begin with a verb,
    not with the name of a work tree.

    No words count as the verb `list`.
    """
    return not words or words.split(maxsplit=1)[0] in _VERBS


async def open_named_worktree(client: Client, words: str) -> tuple[Worktree, bool, str]:
    """Open the work tree that the words after `/worktree` name, which is made if there is none,
    or `create` one.

    Returns it, whether it was created now, and the words after the name: a prompt.
    Raises CodeloopError.
    """
    name, _, prompt = words.partition(" ")
    if name != _CREATE_VERB:
        similar_verbs = find_similar(name, (*_VERBS, _CREATE_VERB))
        if similar_verbs and not await _has_worktree(client, name):
            raise UsageProblem(
                f"/worktree has no verb {name}.{format_suggestion(similar_verbs)} "
                f"A work tree of that name is made by `/worktree create {name}`."
            )
        tree, is_new = await find_or_create_worktree(client, name)
        return tree, is_new, prompt.strip()
    name, base, sparse, rest = "", None, list[str](), prompt.strip()
    # Options may stand before the name and behind it.
    while rest:
        if match := re.match(_CREATE_OPTION, rest):
            rest = rest[match.end() :]
            if match[1] == "--base":
                base = match[2]
            else:
                sparse.append(match[2])
        elif rest.startswith("-"):
            raise UsageProblem(
                f"/worktree create has no option {rest.split()[0]}. Usage: /worktree {USAGE}"
            )
        elif name:
            break
        else:
            name, _, rest = rest.partition(" ")
            rest = rest.strip()
    tree = await client.call(
        WORKTREE_CREATE, CreateWorktree(name=name or None, base=base, sparse=sparse or None)
    )
    return tree, True, rest


async def _has_worktree(client: Client, name: str) -> bool:
    return any(tree.name == name for tree in await client.call(WORKTREE_OVERVIEW, NoArguments()))


async def find_or_create_worktree(
    client: Client, name: str, base: str | None = None
) -> tuple[Worktree, bool]:
    """Return the work tree of this name, and whether it was created now. Raises CodeloopError.

    `name`: "" creates one with a generated name. `base`: the commit to start from.
    """
    # A name becomes a directory and a branch; a path in it would lead elsewhere.
    if "/" in name:
        raise UsageProblem(f"{name} is not a name of a work tree: letters, digits and hyphens.")
    for tree in await client.call(WORKTREE_OVERVIEW, NoArguments()) if name else ():
        if tree.name == name:
            if tree.state != "ready":
                raise UsageProblem(
                    f"The work tree {name} is not whole: {PROBLEMS_BY_STATE[tree.state]}."
                )
            if base is not None:
                raise UsageProblem(
                    f"The work tree {name} is there already, from {tree.base}. Leave --base out."
                )
            return Worktree(
                name=tree.name, directory=tree.directory, branch=tree.branch, base=tree.base
            ), False
    return await client.call(WORKTREE_CREATE, CreateWorktree(name=name or None, base=base)), True


async def run_worktree_command(client: Client, words: str) -> list[str]:
    """Carry out the verb at the start of `words` (see `is_worktree_verb`);
    return lines for the user.

    Raises CodeloopError.
    """
    arguments = _parse_verb(words or "list")
    names: list[str] = arguments.names
    match arguments.verb:
        case "list":
            return format_worktree_list(await client.call(WORKTREE_OVERVIEW, NoArguments()))
        case "diff":
            changes = await client.call(WORKTREE_DIFF, WorktreeName(name=names[0]))
            return (
                format_diff_stat(changes) if arguments.stat else format_worktree_diff(changes)
            ).split("\n")
        case "merge":
            request = MergeWorktree(
                name=names[0],
                into=arguments.into,
                message=arguments.message,
                files=arguments.files or None,
            )
            return describe_merge(await client.call(WORKTREE_MERGE, request))
        case "rebase":
            return describe_rebase(
                names[0], await client.call(WORKTREE_REBASE, WorktreeName(name=names[0]))
            )
        case "copy":
            files = await client.call(WORKTREE_COPY, CopyToWorktree(name=names[0], files=names[1:]))
            return [f"Copied: {' '.join(files)}"]
        case _:
            # All names are looked up first, so that a wrong one removes nothing.
            trees = [await find_worktree(client, name) for name in names]
            if arguments.clean:
                trees = [
                    tree
                    for tree in await client.call(WORKTREE_OVERVIEW, NoArguments())
                    if not list_losses(tree)
                ]
            lines = [
                line
                for tree in trees
                for line in await _remove(client, tree, is_forced=arguments.force)
            ]
            return lines or ["There is no work tree that holds nothing new."]


class _Arguments(Struct):
    """The words after `/worktree`: a verb, the names after it,
    and the options of `codeloop worktree`.
    """

    verb: str
    names: list[str]
    files: list[str]
    into: str | None = None
    message: str | None = None
    stat: bool = False
    force: bool = False
    clean: bool = False


def _parse_verb(words: str) -> _Arguments:
    """Read a verb with its names and options. Raises UsageProblem."""
    try:
        verb, *rest = shlex.split(words)
    except ValueError as error:
        raise UsageProblem(f"/worktree {words}: a quote is not closed.") from error
    arguments = _Arguments(verb=verb, names=[], files=[])
    while rest:
        word, separator, value = rest.pop(0).partition("=")
        match verb, word:
            case "diff", "--stat":
                arguments.stat = True
            case "remove", "--force":
                arguments.force = True
            case "remove", "--clean":
                arguments.clean = True
            case "merge", "--into" | "-m" | "--message" | "--file" if separator or rest:
                value = value if separator else rest.pop(0)
                if word == "--file":
                    arguments.files.append(value)
                elif word == "--into":
                    arguments.into = value
                else:
                    arguments.message = value
            case _ if word.startswith("-"):
                raise UsageProblem(
                    f"/worktree {verb} has no option {word}, or it lacks a value. Usage: /worktree {USAGE}"
                )
            case _:
                arguments.names.append(word + separator + value)
    count, is_open = len(arguments.names), verb in {"copy", "remove"}
    least = {"list": 0, "copy": 2, "remove": 0 if arguments.clean else 1}.get(verb, 1)
    most = {"list": 0, "remove": 0}.get(verb, 1) if not is_open or arguments.clean else count
    if not least <= count <= most:
        raise UsageProblem(f"Usage: /worktree {USAGE}")
    return arguments


async def find_worktree(client: Client, name: str) -> WorktreeOverview:
    """Return the work tree with this name, branch or directory.
    Raises UsageProblem if there is none.
    """
    trees = await client.call(WORKTREE_OVERVIEW, NoArguments())
    found_tree = next(
        (tree for tree in trees if name in {tree.name, tree.branch, tree.directory}), None
    )
    if found_tree is None:
        names = ", ".join(tree.name for tree in trees[:8])
        raise UsageProblem(
            f"There is no work tree {name}." + (f" There are: {names}." if names else "")
        )
    return found_tree


async def _remove(client: Client, tree: WorktreeOverview, *, is_forced: bool) -> list[str]:
    losses = list_losses(tree)
    if losses and not is_forced:
        return [
            *losses,
            f"{tree.name} was not removed.",
            f"To commit that to {tree.branch} and remove it: /worktree remove {tree.name} --force",
        ]
    await client.call(WORKTREE_REMOVE, RemoveWorktree(directory=tree.directory, force=is_forced))
    return describe_removal(tree, is_forced=is_forced)
