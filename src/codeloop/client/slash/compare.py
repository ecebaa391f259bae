"""`/compare` and `codeloop compare`: run a prompt on several models, each in a work tree,
and compare the results.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from codeloop.client.client import Client
from codeloop.client.formatting import align_table, format_cost
from codeloop.client.target import Target
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.files import VcsFileDiff
from codeloop.schema.api.session_inputs import (
    PROMPT,
    SESSION_SHELL,
    MessageWithParts,
    Prompt,
    RunLimits,
    RunShell,
    TextPartInput,
)
from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from codeloop.schema.api.worktrees import (
    WORKTREE_CREATE,
    WORKTREE_DIFF,
    CreateWorktree,
    WorktreeName,
)
from codeloop.schema.errors import CodeloopError, UsageProblem, get_error_message
from codeloop.schema.message import AssistantMessage, ModelRef, Session, parse_model_name
from codeloop.schema.part import ToolPart, ToolStateCompleted
from codeloop.schema.resources import Worktree
from codeloop.schema.wire import Wire, replace

_MAX_PROMPT_PREFIX = 24


class Comparison(Struct, frozen=True):
    """The prompt and the models to compare. `models`: at least two, as PROVIDER/MODEL.

    `check`: a shell command to run in each work tree after the turn.
    `base`: the commit that the work trees start from.
    """

    prompt: str
    models: tuple[str, ...]
    check: str | None = None
    base: str | None = None
    limits: RunLimits = RunLimits()


class ModelResult(Wire):
    """What one model did. `check`: the exit code of the check, None without one;
    `seconds`: how long the turn took.
    """

    name: str
    model: str
    directory: str
    session_id: str
    problem: str = ""
    seconds: float = 0.0
    cost: float = 0.0
    check: int | None = None
    files: list[VcsFileDiff] = []


async def run_comparison(
    target: Target,
    comparison: Comparison,
    create_session: Callable[[Client, Worktree], Awaitable[Session]],
) -> list[ModelResult]:
    """Create a work tree for each model and run the turns in parallel;
    the failure of one does not stop the others.

    `create_session`: creates the session of a work tree. Raises CodeloopError if a work tree or a
    session can't be created.
    """
    models = [parse_model_name(name) for name in comparison.models]
    if len(models) < 2 or None in models:
        raise UsageProblem(
            "Name at least two models as PROVIDER/MODEL: -m A/B -m C/D. `codeloop models` lists them."
        )
    trees = [
        await target.client.call(
            WORKTREE_CREATE,
            CreateWorktree(name=_name_worktree(comparison.prompt, model), base=comparison.base),
        )
        for model in comparison.models
    ]
    turns = [
        _run_model(target, comparison, tree, model, create_session)
        for tree, model in zip(trees, models, strict=True)
        if model is not None
    ]
    return list(await asyncio.gather(*turns))


async def _run_model(
    target: Target,
    comparison: Comparison,
    tree: Worktree,
    model: ModelRef,
    create_session: Callable[[Client, Worktree], Awaitable[Session]],
) -> ModelResult:
    client = target.get_directory_client(tree.directory)
    session = await create_session(client, tree)
    result = ModelResult(
        name=tree.name,
        model=f"{model.provider_id}/{model.model_id}",
        directory=tree.directory,
        session_id=session.id,
    )
    start = time.monotonic()
    try:
        prompt = Prompt(
            session_id=session.id,
            parts=[TextPartInput(text=comparison.prompt)],
            model=model,
            limits=comparison.limits,
        )
        answer = await client.call(PROMPT, prompt)
        result = replace(result, seconds=time.monotonic() - start, problem=_find_problem(answer))
        if comparison.check:
            shell = RunShell(
                session_id=session.id, command=comparison.check, model=model, sandboxed=True
            )
            ran = await client.call(SESSION_SHELL, shell)
            result = replace(result, check=_find_exit_code(ran))
        worktree_diff = await target.client.call(WORKTREE_DIFF, WorktreeName(name=tree.name))
        cost = (await client.call(SESSION_GET, SessionId(session_id=session.id))).cost
        return replace(result, files=worktree_diff.files, cost=cost or 0.0)
    except CodeloopError as error:
        return replace(
            result,
            seconds=result.seconds or time.monotonic() - start,
            problem=result.problem or str(error),
        )


def format_comparison(results: Sequence[ModelResult], *, is_checked: bool) -> list[str]:
    """Format the results as lines: a table of models, a table of files,
    and the commands for the next step.
    """
    headings = [
        "work tree",
        "model",
        "files",
        "lines",
        *(["check"] if is_checked else []),
        "cost",
        "time",
        "",
    ]
    table = [headings]
    for result in results:
        added, deleted = (
            sum(each.additions for each in result.files),
            sum(each.deletions for each in result.files),
        )
        facts = [str(len(result.files)), f"+{added} -{deleted}"]
        if is_checked:
            facts.append(_describe_check(result.check))
        table.append(
            [
                result.name,
                result.model,
                *facts,
                format_cost(result.cost),
                f"{result.seconds:.1f} s",
                one_line(result.problem, 60),
            ]
        )
    files = sorted({each.file for result in results for each in result.files})
    lines = align_table(table)
    if files:
        by_file = [
            {each.file: f"+{each.additions} -{each.deletions}" for each in result.files}
            for result in results
        ]
        matrix = [["file", *(result.name for result in results)]]
        matrix += [
            [one_line(file, 60), *(statuses.get(file, "") for statuses in by_file)]
            for file in files
        ]
        lines += ["", *align_table(matrix)]
    return [
        *lines,
        "",
        "See one: codeloop worktree diff NAME. Keep one: codeloop worktree merge NAME, or files with --file FILE.",
        "Remove the others: codeloop worktree remove --force NAME...; what they did stays on their branches.",
    ]


def _describe_check(exit_code: int | None) -> str:
    if exit_code is None:
        return "-"
    return "passed" if exit_code == 0 else f"failed ({exit_code})"


def _name_worktree(prompt: str, model: str) -> str:
    words = "-".join(prompt.split()[:3])[:_MAX_PROMPT_PREFIX]
    return f"{words}-{model.rpartition('/')[2]}"


def _find_problem(answer: MessageWithParts) -> str:
    """Return why a turn failed or stopped early; "": it is done."""
    if answer.stop is not None and answer.stop.reason != "done":
        return answer.stop.message or answer.stop.reason
    error = answer.info.error if isinstance(answer.info, AssistantMessage) else None
    return get_error_message(error) if error is not None else ""


def _find_exit_code(message: MessageWithParts) -> int | None:
    """Return the exit code of the check, from the call in its message; None: unknown."""
    for part in message.parts:
        if isinstance(part, ToolPart) and isinstance(part.state, ToolStateCompleted):
            code = part.state.metadata.get("exit")
            return code if isinstance(code, int) else None
    return None
