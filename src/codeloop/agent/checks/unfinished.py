"""Lists what a turn that ends has left unfinished, or claims without having done it,
as phrases for a reminder.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from codeloop.agent.checks.admissions import (
    admits_failure,
    names_test_changes,
    names_unended_checks,
    names_unrun_checks,
)
from codeloop.agent.checks.check_problems import (
    EARLIER_FAILURE_PROBLEM,
    LATE_CHANGES_PROBLEM,
    UNENDED_CHECK_PROBLEM,
    UNPROVEN_CHECK_PROBLEM,
    describe_state,
    find_check_problem,
    find_failure,
)
from codeloop.agent.checks.check_runs import CheckRun, list_checks
from codeloop.agent.checks.claims import (
    UNCHANGED_CLAIM_PROBLEM,
    claims_change,
    claims_installation,
    claims_success,
    claims_that_passes,
    list_claimed_exchanges,
    names_failure,
)
from codeloop.agent.checks.turn_review import TurnReview
from codeloop.schema.message import Todo
from codeloop.schema.part import CompactionPart, Part, PatchPart, ToolPart, ToolStateCompleted
from codeloop.shell.analysis import analyse
from codeloop.shell.check_commands import find_checks
from codeloop.shell.line_steps import split_line
from codeloop.shell.program_table import find_row
from codeloop.tool.tool import EDIT_TOOLS

OPEN_TODO_PROBLEM = "a todo is open"
UNMENTIONED_TESTS_PROBLEM = "your answer does not say that tests changed"
UNRUN_CLAIM_PROBLEM = "your answer says that checks pass, and none was run in this turn"
UNINSTALLED_CLAIM_PROBLEM = (
    "your answer says that something was installed, and no installation succeeded in this turn"
)
FAILED_CLAIM = "the answer says that checks pass, and the last one failed"
"""A claim, as the user is told of it."""
# The length to which a todo or a command is cut in a reminder.
_EXCERPT_CHARS = 100
# Changes of tests that a reminder names.
_MAX_CHANGES = 20
# Tools whose effects are known: of others a claim can't be judged.
_WATCHED_TOOLS = EDIT_TOOLS | frozenset(
    (
        *("bash", "read", "grep", "glob", "list", "todowrite", "todoread"),
        *("webfetch", "websearch", "codesearch", "lsp", "question"),
    )
)
# A file or a piece of code in an answer; the list of todos.
_NAMED_CODE = r"`[^`\n]+`|\b[\w/-]+\.[a-z]\w{0,4}\b"
_TODO = r"(?i)\bto-?dos?\b"
_HISTORY = r"\bgit (?:log|show|blame)\b"
# Options with which a check changes what it checks.
_FIXING = r"-fix|--?w(?:rite)?\b|--?u(?:pdate)?\b|:fix|--snapshot"
# What an answer claims of the repository: the words of commands that may have done it,
# and how that is said.
_EXCHANGES = {
    "commit": (
        ("commit", "merge", "pull", "rebase", "revert", "cherry-pick", "am"),
        "that it was committed, and no commit was made in this turn",
    ),
    "push": (
        ("push", "create", "sync"),
        "that it was pushed, and no push succeeded in this turn",
    ),
    "pr": (
        ("pr", "mr", "pull-request", "push", "curl", "api"),
        "that a pull request was opened, and none was opened in this turn",
    ),
}
# A shorter answer claims nothing.
_MIN_CLAIM_CHARS = 6
# Words of commands that install something.
_INSTALL_WORDS = frozenset(
    ("install", "add", "i", "ci", "sync", "get", "require", "-S", "-U", "update", "upgrade")
)


def list_unfinished(
    review: TurnReview,
    earlier: Sequence[Part],
    root: str,
    todos: Sequence[Todo],
    answer: str,
    reminders: Sequence[str],
) -> list[str]:
    """Return the unfinished work of a turn, a phrase each: claims without a deed, open todos,
    checks that don't count.

    `earlier`: the parts before the turn. The list is empty if `answer` admits the failure. Changed
    tests and claims are mentioned only once in a turn: `reminders` are those that it has had.
    """
    # A scratch file that a command removes at the end is worth no reminder.
    checks = [run for run in list_checks(review.parts, root, counts_patches=False) if run.started]
    claims = [
        each
        for each in list_false_claims(review.parts, earlier, checks, answer)
        if not _was_said(each, reminders)
    ]
    if claims:
        return claims
    unfinished = [
        *_list_open_todos(review.parts, todos),
        *_describe_checks(checks, root, answer),
        *_describe_test_changes(review, answer, reminders),
    ]
    return [] if unfinished and admits_failure(answer) else unfinished


def list_contradictions(
    parts: Sequence[Part], earlier: Sequence[Part], root: str, answer: str
) -> tuple[str, ...]:
    """Return the false claims of a turn's final answer, as clauses for the user.
    `earlier`: as above.
    """
    # Most answers claim nothing, and the commands need not be read.
    if not (
        claims_success(answer)
        or claims_change(answer)
        or claims_installation(answer)
        or list_claimed_exchanges(answer)
    ):
        return ()
    checks = [run for run in list_checks(parts, root, counts_patches=False) if run.started]
    claims = [
        each.replace("your", "the", 1) for each in list_false_claims(parts, earlier, checks, answer)
    ]
    if checks and _denies_failure(parts, checks, root, answer):
        claims.append(FAILED_CLAIM)
    return tuple(claims)


def _denies_failure(
    parts: Sequence[Part], checks: Sequence[CheckRun], root: str, answer: str
) -> bool:
    """Return whether an answer says that a check passes that has failed last,
    be it by the turn's changes or as before.
    """
    last = checks[-1]
    if last.failed and last.known_before:
        kinds = _list_kinds(last, root)
        return claims_that_passes(answer, last, kinds) and not names_failure(answer, last, kinds)
    return (
        describe_state(parts, root) == "failed"
        and claims_success(answer)
        and bool(_describe_checks(checks, root, answer))
    )


def _was_said(problem: str, reminders: Sequence[str]) -> bool:
    return any(problem in each for each in reminders)


def list_false_claims(
    parts: Sequence[Part], earlier: Sequence[Part], checks: Sequence[CheckRun], answer: str
) -> Iterator[str]:
    """Yield what the answer claims although nothing in the turn can have done it.
    In doubt nothing.
    """
    if len(answer) < _MIN_CLAIM_CHARS:
        return
    calls = [(part, part.state) for part in parts if isinstance(part, ToolPart)]
    done = [(part, state) for part, state in calls if isinstance(state, ToolStateCompleted)]
    runs = [
        (str(state.input.get("command")), state.metadata.get("exit"))
        for part, state in done
        if part.tool == "bash"
    ]
    if not {part.tool for part, _ in done} <= _WATCHED_TOOLS:
        # A tool of a server or an extension may have done anything, anywhere.
        return
    if not (parts or re.search(_NAMED_CODE, answer)) or re.search(_TODO, answer):
        # It may speak of a draft in the conversation, or of the list of todos.
        return
    if any(_may_have_changed(part) for part in earlier):
        # It may speak of what was done before this turn.
        return
    # Any other command may have run checks, or changed files that nobody watches.
    only_looks = all(analyse(command).is_read_only for command, _ in runs)
    if not checks and only_looks and claims_success(answer):
        yield UNRUN_CLAIM_PROBLEM
    has_edits = any(isinstance(part, PatchPart) for part in parts) or any(
        part.tool in EDIT_TOOLS for part, _ in done
    )
    # An answer may tell of commits that it has read.
    reads_history = any(re.search(_HISTORY, command) for command, _ in runs)
    only_checks = all(_only_looks_or_checks(command) for command, _ in runs)
    if not (has_edits or reads_history) and only_checks and claims_change(answer):
        yield UNCHANGED_CLAIM_PROBLEM
    if claims_installation(answer) and not _may_have_done(runs, _INSTALL_WORDS):
        yield UNINSTALLED_CLAIM_PROBLEM
    if not reads_history:
        for claim in list_claimed_exchanges(answer):
            words, description = _EXCHANGES[claim]
            if not _may_have_done(runs, words):
                yield f"your answer says {description}"


def _only_looks_or_checks(command: str) -> bool:
    """Return whether a command changes no file of the project."""
    return re.search(_FIXING, command) is None and all(
        analyse(step).is_read_only or bool(find_checks(step))
        for words, _ in split_line(command)
        if (step := " ".join(words))
    )


def _may_have_done(runs: Sequence[tuple[str, int | None]], words: Collection[str]) -> bool:
    """Return whether one of the commands may have done what these words of commands do.
    `runs`: commands with their exit codes.
    """
    own = [code for command, code in runs if not {*words}.isdisjoint(command.split())]
    if own:
        return not all(own)
    # Other commands of git, and those that only change files, do neither.
    return not all(
        words[0] == "git" or find_row(words[0]).is_plain or _only_looks_or_checks(" ".join(words))
        for command, _ in runs
        for words, _ in split_line(command)
        if words
    )


def _may_have_changed(part: Part) -> bool:
    """Return whether a part of an earlier turn may be what a claim is about;
    of a summary that is not known.
    """
    if not isinstance(part, ToolPart):
        return isinstance(part, PatchPart | CompactionPart)
    if part.tool == "bash":
        return not analyse(str(part.state.input.get("command"))).is_read_only
    return part.tool in EDIT_TOOLS or part.tool == "task"


def _list_open_todos(parts: Sequence[Part], todos: Sequence[Todo]) -> list[str]:
    wrote_todos = any(isinstance(part, ToolPart) and part.tool == "todowrite" for part in parts)
    open_todos = (
        [todo.content for todo in todos if todo.status in {"pending", "in_progress"}]
        if wrote_todos
        else []
    )
    if not open_todos:
        return []
    others = f" and {len(open_todos) - 1} more" if len(open_todos) > 1 else ""
    return [f"{OPEN_TODO_PROBLEM} ({open_todos[0][:_EXCERPT_CHARS]}{others})"]


def _describe_checks(checks: Sequence[CheckRun], root: str, answer: str) -> list[str]:
    """Return why the turn's checks don't show that all is well;
    nothing if the answer tells about it.
    """
    if not checks:
        return []
    if not checks[-1].after_last_edit:
        return [f"{LATE_CHANGES_PROBLEM} ({checks[-1].command[:_EXCERPT_CHARS]})"]
    problem = find_check_problem(checks, root)
    # An honest answer may say that some tests passed after the failure,
    # and that the others were not run.
    if problem is None or (
        problem.reason == EARLIER_FAILURE_PROBLEM and names_unrun_checks(answer)
    ):
        return []
    if problem.reason == UNENDED_CHECK_PROBLEM and names_unended_checks(answer, problem.command):
        return []
    failure = checks[-1] if checks[-1].failed else find_failure(checks, root)
    subject = (
        checks[-1] if problem.reason in {UNENDED_CHECK_PROBLEM, UNPROVEN_CHECK_PROBLEM} else failure
    )
    is_told = subject is not None and names_failure(answer, subject, _list_kinds(subject, root))
    if is_told and problem.reason != UNPROVEN_CHECK_PROBLEM:
        return []
    advice = ""
    if problem.reason == UNPROVEN_CHECK_PROBLEM:
        advice = ": run it so that its exit code counts"
    elif failure is not None and failure.error:
        advice = f", whose last error is: {failure.error.rstrip('.')}"
    return [f"{problem.reason} ({problem.command[:_EXCERPT_CHARS]}){advice}"]


def _list_kinds(run: CheckRun, root: str) -> list[str]:
    return [check.kind for check in find_checks(run.command, run.folder, root)]


def _describe_test_changes(review: TurnReview, answer: str, reminders: Sequence[str]) -> list[str]:
    changes = [str(change) for change in review.test_changes if change.needs_reason]
    if not changes or names_test_changes(answer) or _was_said(UNMENTIONED_TESTS_PROBLEM, reminders):
        return []
    more = [f"{len(changes) - _MAX_CHANGES} more"] if len(changes) > _MAX_CHANGES else []
    return [f"{UNMENTIONED_TESTS_PROBLEM} ({'; '.join([*changes[:_MAX_CHANGES], *more])})"]
