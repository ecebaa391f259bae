"""The tool `plan_exit`: asks the user to approve the plan,
and switches to the agent `build` if the answer is yes.

The user may answer with comments on lines of the plan. Each becomes a thread, which the model must
answer before it may ask again.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from codeloop.kit.small_files import read_bounded
from codeloop.schema.permission import Need
from codeloop.schema.question import QuestionDocument, QuestionInfo, QuestionOption
from codeloop.schema.wire import JSON, Wire, replace
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, tool

YES_LABEL, ASK_LABEL, NO_LABEL = "Yes", "Yes, and ask before edits", "No"
APPROVAL_TEXT = "The user approves the plan: carry it out. You may change files now."
ANSWER_ADVICE = (
    "Change the plan where the user is right. Then call plan_exit with `answers`: for each open thread its number, "
    "and what you changed or why not."
)
THREADS_KEY = "threads"
"""The key in the metadata of a `plan_exit` call for all threads so far, with their answers."""
PLANS_FOLDER = ".codeloop/plans/"
_MAX_PLAN_BYTES = 256 * 1024
_PLAN_PATH = re.compile(r"(?:.*/)?\.codeloop/plans/([^/\n]+\.md)")
_PLAN_WORD = re.compile(r"\.codeloop/plans/([^/\s\"'`;|&<>()]+\.md)")
# Clients write this line above each comment of the user: `About @.codeloop/plans/plan.md line 12:`.
_COMMENT_HEADING = r"(?m)^About @(\S+) line (\d+)(?:, again)?:[ \t]*$"
# Matches the lines of the plan that a comment is about, in a code block before it.
_EXCERPT = r"(?ms)\A```\w*\n.*?^```[ \t]*$"


class PlanThread(Wire):
    """A comment of the user on a line of a file, or, without a file, on the whole plan.

    `answer`: the model's answer, empty while the thread is open.
    """

    id: int
    text: str
    file: str = ""
    line: int = 0
    answer: str = ""


DECLINED_KEY = "declined"
"""In the metadata of a failed call: the user said no, and was not asked for a permission."""


class ThreadAnswer(Wire):
    """The model's answer to the thread with the number `thread`."""

    thread: int
    answer: str


class PlanExitParams(msgspec.Struct, frozen=True):
    """Arguments of the tool `plan_exit`: the answers to comments.
    The plan itself is in the conversation.
    """

    answers: list[ThreadAnswer] = []


@tool("plan_exit", params=PlanExitParams)
async def plan_exit(params: PlanExitParams, ctx: ToolContext) -> ToolResult:
    """Ask whether the plan may be carried out; if the answer is yes,
    the agent `build` makes the next step.
    """
    before = _find_threads(ctx)
    threads = answer_threads(before, params.answers)
    if open_threads := list_open_threads(threads):
        raise ToolFailure(
            f"Comments of the user on the plan are not answered yet:\n{describe_threads(open_threads)}",
            _make_metadata(threads),
            advice=ANSWER_ADVICE,
        )
    plan = _find_plan(ctx)
    if plan is None:
        raise ToolFailure(
            "There is no plan that the user could read.",
            _make_metadata(threads),
            advice="Write it to .codeloop/plans/NAME.md, then call plan_exit.",
        )
    need = Need(permission="plan_exit", patterns=("*",), always=("*",))
    await ctx.ask(need)
    options = [
        QuestionOption(
            label=YES_LABEL, description="Switch to the build agent and carry out the plan"
        ),
        QuestionOption(label=ASK_LABEL, description="As Yes, with the permission profile `ask`"),
        QuestionOption(
            label=NO_LABEL, description="Stay with the plan agent and continue planning"
        ),
    ]
    replies = describe_threads(
        [each for each, old in zip(threads, before, strict=True) if each != old]
    )
    question = f"Carry out the plan {plan.path}?" + (f"\n\n{replies}" if replies else "")
    info = QuestionInfo(question=question, header="Plan", options=options, document=plan)
    answers = await ctx.session.ask_questions([info], need)
    choices = [choice for one in answers for choice in one]
    # Comments have several lines, labels of options do not.
    answer = ("\n\n" if any(map(has_comments, choices)) else ", ").join(choices) or NO_LABEL
    if answer == NO_LABEL:
        metadata = {DECLINED_KEY: True, **_make_metadata(threads)}
        raise ToolFailure(
            "The user wants to continue planning.", metadata, advice="Ask what to change."
        )
    # Any other text is what the user wants changed.
    if answer not in {YES_LABEL, ASK_LABEL}:
        new = read_comments(answer, len(threads))
        raise ToolFailure(
            f"The user does not approve the plan yet and says:\n{describe_threads(new)}",
            {DECLINED_KEY: True, **_make_metadata([*threads, *new])},
            advice=ANSWER_ADVICE,
        )
    ctx.session.continue_as_agent("build", APPROVAL_TEXT, asks_before_edits=answer == ASK_LABEL)
    return ToolResult("Plan approved", APPROVAL_TEXT, {"answer": answer, **_make_metadata(threads)})


def _find_plan(ctx: ToolContext) -> QuestionDocument | None:
    """Return the plan that the session's calls named last and that is still there;
    None: there is none.
    """
    root = ctx.workspace.root
    for arguments in ctx.session.iterate_call_inputs():
        for name in _list_plan_names(arguments):
            with suppress(OSError):
                text = read_bounded(root / PLANS_FOLDER / name, _MAX_PLAN_BYTES).decode(
                    errors="replace"
                )
                if text.strip():
                    return QuestionDocument(path=PLANS_FOLDER + name, text=text)
    return None


def _list_plan_names(arguments: JSON) -> Iterator[str]:
    """Yield the names of the plan files in a call's arguments: paths, commands or patches;
    the last one first.
    """
    for value in arguments.values():
        if isinstance(value, str):
            # A path may contain blanks, a word of a command may not.
            whole = _PLAN_PATH.fullmatch(value)
            yield from [whole[1]] if whole is not None else reversed(_PLAN_WORD.findall(value))


def _find_threads(ctx: ToolContext) -> list[PlanThread]:
    """Return the threads of earlier calls, and new ones for the comments in
    prompts since the last call.
    """
    failure = ctx.session.find_last_failure("plan_exit")
    threads = msgspec.convert(failure.metadata.get(THREADS_KEY, []), list[PlanThread])
    for text in filter(has_comments, failure.later_prompts):
        threads += read_comments(text, len(threads))
    return threads


def _make_metadata(threads: list[PlanThread]) -> dict[str, object]:
    return {THREADS_KEY: [msgspec.to_builtins(each) for each in threads]} if threads else {}


def has_comments(text: str) -> bool:
    """Return whether a text has comments on lines of a plan file,
    in the form that clients write.
    """
    return any(".codeloop/plans/" in heading[1] for heading in re.finditer(_COMMENT_HEADING, text))


def read_comments(text: str, after: int) -> list[PlanThread]:
    """Return the comments of a text as threads, numbered from `after` + 1.

    A comment begins with a line `About @FILE line N:`, and a fenced excerpt of the file after it is
    left out. A text without such lines is one comment on the whole plan.
    """
    headings = list(re.finditer(_COMMENT_HEADING, text))
    if not headings:
        return [PlanThread(id=after + 1, text=text.strip())]
    ends = [each.start() for each in headings[1:]] + [len(text)]
    threads: list[PlanThread] = []
    for number, (heading, end) in enumerate(zip(headings, ends, strict=True), after + 1):
        comment = re.sub(_EXCERPT, "", text[heading.end() : end].strip()).strip()
        threads.append(PlanThread(id=number, text=comment, file=heading[1], line=int(heading[2])))
    return threads


def answer_threads(
    threads: Sequence[PlanThread], answers: Sequence[ThreadAnswer]
) -> list[PlanThread]:
    """Return the threads with these answers; empty answers, and those to unknown threads,
    are ignored.
    """
    texts = {each.thread: each.answer.strip() for each in answers}
    return [replace(each, answer=texts.get(each.id) or each.answer) for each in threads]


def list_open_threads(threads: Sequence[PlanThread]) -> list[PlanThread]:
    """Return the threads without an answer."""
    return [each for each in threads if not each.answer]


def describe_threads(threads: Sequence[PlanThread]) -> str:
    """Return threads as lines: number, file and line, comment, and the answer if there is one."""
    lines: list[str] = []
    for each in threads:
        where = f", {each.file} line {each.line}" if each.file else ""
        lines.append(f"Thread {each.id}{where}: {each.text}")
        lines += [f"  Answer: {each.answer}"] if each.answer else []
    return "\n".join(lines)
