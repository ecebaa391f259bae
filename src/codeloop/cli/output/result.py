"""The result of a turn: `Tally` counts its events, and makes the `Outcome` with answer,
sums and exit code.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from codeloop.client.formatting import (
    describe_changes,
    describe_side_effects,
    describe_spending,
    format_count,
    format_duration,
)
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.session_inputs import GoalEnd
from codeloop.schema.event import Event, MessageUpdated, PartRemoved, PartUpdated, SessionUpdated
from codeloop.schema.message import (
    NO_TOKENS,
    AssistantMessage,
    Session,
    Tokens,
    UserMessage,
    measure_growth,
)
from codeloop.schema.part import (
    CHECK_KEY,
    REMINDER_KEY,
    PatchPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
)
from codeloop.schema.turn_facts import TurnFacts
from codeloop.schema.wire import JSON, Wire, replace

if TYPE_CHECKING:
    from codeloop.agent.checks.check_runs import CheckRun

# Characters of a failed check's command that the message of an outcome quotes.
MAX_COMMAND_CHARS = 200
# The reasons for which a step finishes, and is followed by another one; None: it has not finished.
UNFINISHED_REASONS = {None, "tool-calls", "cut"}


class FinalAnswer:
    """The answer to a prompt, found among the texts of a session: no summary,
    and no text that a retry discards.

    `prompt_id`: the prompt to answer; None: any prompt.
    """

    def __init__(self, prompt_id: str | None = None) -> None:
        self.final: str | None = None
        """The answer once it is complete; without a `prompt_id`, the newest one."""
        self._prompt_id = prompt_id
        self._prompts: set[str] = set()
        self._texts: dict[str, dict[str, str]] = {}
        self._finished_messages: set[str] = set()

    @property
    def text(self) -> str:
        """The answer; while there is none, the last text."""
        texts = (self.get_text(message_id) for message_id in reversed(self._texts))
        return self.final or next(filter(None, texts), "")

    def get_text(self, message_id: str) -> str:
        """Return the text of one message."""
        return "\n".join(
            text.removesuffix("\n") for text in self._texts.get(message_id, {}).values() if text
        )

    def handle_event(self, event: Event) -> bool:
        """Take in an event of the session; return True if it completes the answer."""
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, UserMessage):
                # Prompts that are sent while the turn runs join it: its answer may be stored
                # as that to one of them.
                if self._prompts or self._prompt_id in {None, p.info.id}:
                    self._prompts.add(p.info.id)
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                return self._handle_message(p.info)
            case PartUpdated(properties=p) if isinstance(p.part, TextPart) and REMINDER_KEY in (
                p.part.metadata or {}
            ):
                # codeloop reminds the model to go on, so the last text was not the answer yet.
                self.final = None
            case PartUpdated(properties=p) if (
                isinstance(p.part, TextPart) and p.part.message_id in self._texts
            ):
                self._texts[p.part.message_id][p.part.id] = p.part.text
            case PartRemoved(properties=p) if p.message_id in self._texts:
                self._texts[p.message_id].pop(p.part_id, None)
            case _:
                pass
        return False

    def _handle_message(self, info: AssistantMessage) -> bool:
        if info.summary or info.id in self._finished_messages:
            return False
        self._texts.setdefault(info.id, {})
        if info.time.completed is None:
            return False
        self._finished_messages.add(info.id)
        is_last = info.error is None and info.finish not in UNFINISHED_REASONS
        if not is_last or (
            self._prompt_id is not None and (self.final or info.parent_id not in self._prompts)
        ):
            return False
        self.final = self.get_text(info.id)
        return True


class Ending(NamedTuple):
    """How a turn ended.

    `reason`: that of its `TurnEnd`, or what this process ended it for (`timeout`, `interrupted`,
    ...). `code`: the exit code. `message`: for the user.
    `window`: the model's context window, in tokens. `goal`: how its
    goal stands; None: it had none. `test_changes`: how it changed tests that existed before,
    a phrase each.
    `has_unchecked_edits`: no check ran after its last edit. `unended_commands`: still ran after
    their timeout. `facts`: what it did to the project; None: not known.
    """

    reason: str
    code: int
    message: str = ""
    window: int = 0
    goal: GoalEnd | None = None
    test_changes: tuple[str, ...] = ()
    has_unchecked_edits: bool = False
    unended_commands: tuple[str, ...] = ()
    facts: TurnFacts | None = None


class Outcome(Wire):
    """The last line of `--format json`, which is always printed. `cost`: dollars.
    `duration_ms`: of the whole turn.
    """

    type: str
    reason: str
    exit_code: int
    message: str
    text: str
    cost: float
    tokens: Tokens
    steps: int
    duration_ms: int
    denied: list[JSON]
    session_id: str = ""
    checks: "list[CheckRun]" = []
    """The tests, linters and builds that the turn and its subagents ran, oldest first."""
    facts: TurnFacts | None = None
    """What the turn did to the project; None: it made no calls, or was ended from outside."""
    test_changes: list[str] = []
    """Descriptions of how the turn changed tests that existed before, a phrase each."""
    unended_commands: list[str] = []
    """The commands that did not end within their timeout, and were not waited for any longer."""
    goal: GoalEnd | None = None
    """The state of the goal; None: the turn had none."""
    structured: Any = None
    """The answer as data; None: no schema was given, or the model has not answered by it."""
    context: tuple[int, int] | None = None
    """The tokens of the conversation, and those of the model's context window; not in the JSON."""


def format_summary(outcome: Outcome) -> str:
    """Return the sums of a turn in one line, with the id of its session."""
    sums = [
        f"{outcome.steps} {'step' if outcome.steps == 1 else 'steps'}",
        *(describe_changes(outcome.facts) if outcome.facts is not None else ()),
        *describe_spending(outcome.tokens, outcome.cost),
        format_duration(outcome.duration_ms),
    ]
    used, window = outcome.context or (0, 0)
    if used and window:
        sums.append(
            f"{format_count(used)} of {format_count(window)} context ({used * 100 // window} %)"
        )
    return " · ".join([*sums, outcome.session_id])


def apply_goal(outcome: Outcome, goal: GoalEnd) -> Outcome:
    """Return the outcome of a turn that had a goal: done if the goal is reached;
    else not done, or as it was ended.
    """
    from codeloop.cli import exit_codes

    if goal.status == "done":
        return replace(outcome, goal=goal, reason="done", exit_code=exit_codes.DONE, message="")
    # An error or an interrupt is what the user needs to know;
    # a limit only explains why the goal was not reached.
    if outcome.exit_code not in {exit_codes.LIMIT, exit_codes.TIMEOUT, exit_codes.DONE}:
        return replace(outcome, goal=goal)
    return replace(
        outcome,
        goal=goal,
        reason="not_done",
        exit_code=exit_codes.NOT_DONE,
        message=f"Not done: {'; '.join(goal.left)}. {outcome.message or goal.reason}".rstrip(),
    )


def make_unfinished(
    reason: str, exit_code: int, message: str, *, session_id: str = "", seconds: float = 0.0
) -> Outcome:
    """Return the outcome of a turn that never began, or was broken off without an answer."""
    return Outcome(
        type="result",
        reason=reason,
        exit_code=exit_code,
        message=message,
        text="",
        cost=0.0,
        tokens=NO_TOKENS,
        steps=0,
        duration_ms=int(seconds * 1000),
        denied=[],
        session_id=session_id,
    )


class Tally:
    """Counts the events of a session from now on, and keeps the answer to the prompt `prompt_id`,
    or to any prompt.

    `session`: the session before the first event; None: as the first event shows it.
    """

    def __init__(self, session: Session | None = None, prompt_id: str | None = None) -> None:
        self._answer = FinalAnswer(prompt_id)
        self._denied: list[JSON] = []
        self._session = session
        self._cost = 0.0
        self._tokens = NO_TOKENS
        self._messages: dict[str, AssistantMessage] = {}
        self._parts: dict[str, ToolPart | PatchPart] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no step was counted yet."""
        return not self._messages

    def handle_event(self, event: Event) -> None:
        """Count an event of the session."""
        self._answer.handle_event(event)
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                self._messages[p.info.id] = p.info
            case SessionUpdated(properties=p):
                self.add_growth(p.info)
            case PartUpdated(properties=p) if isinstance(p.part, ToolPart) and isinstance(
                p.part.state, ToolStateError
            ):
                if (p.part.state.metadata or {}).get("denied"):
                    denied = {
                        "tool": p.part.tool,
                        "input": p.part.state.input,
                        "reason": p.part.state.error,
                    }
                    self._denied.append(denied)
            case _:
                pass
        self.handle_change(event)

    def handle_change(self, event: Event) -> None:
        """Take in the calls and changed files of an event of the session or of a subagent."""
        match event:
            case PartUpdated(properties=p) if isinstance(p.part, ToolPart) and isinstance(
                p.part.state, ToolStateCompleted | ToolStateError
            ):
                self._parts[p.part.id] = p.part
            case PartUpdated(properties=p) if isinstance(p.part, PatchPart):
                self._parts[p.part.id] = p.part
            case _:
                pass

    def add_growth(self, session: Session) -> None:
        """Add the growth of the session's sums since they were last seen."""
        # The sums include subagents, the title and retries, which the events of messages do not.
        if self._session is not None:
            tokens, cost = measure_growth(self._session, session)
            self._cost, self._tokens = self._cost + cost, self._tokens.plus(tokens)
        self._session = session

    def make_outcome(self, ending: Ending, *, session_id: str, seconds: float) -> Outcome:
        """Return the outcome of the turn. `seconds`: how long it took."""
        messages = self._messages.values()
        checks = self._list_checks()
        message = ending.message
        if ending.reason == "done" and not message:
            message = self._describe_doubts(ending, checks)
        if ending.facts is not None:
            message = " ".join(filter(None, (message, *describe_side_effects(ending.facts))))
        newest_first = list(reversed(messages))
        used_tokens = next(
            (info.tokens.all for info in newest_first if info.tokens.all and not info.summary), 0
        )
        outcome = Outcome(
            type="result",
            session_id=session_id,
            reason=ending.reason,
            exit_code=ending.code,
            message=message,
            text=self._answer.text,
            # Sums of floats have digits such as those of 0.1 + 0.2.
            cost=round(self._cost, 10),
            tokens=self._tokens,
            steps=len(self._messages.keys() - self._list_goal_check_messages()),
            duration_ms=int(seconds * 1000),
            denied=self._denied,
            checks=checks,
            test_changes=[*ending.test_changes],
            unended_commands=[*ending.unended_commands],
            facts=ending.facts,
            structured=next(
                (info.structured for info in newest_first if info.structured is not None), None
            ),
            context=(used_tokens, ending.window) if ending.window else None,
        )
        return outcome if ending.goal is None else apply_goal(outcome, ending.goal)

    def _list_goal_check_messages(self) -> set[str]:
        """Return the ids of the messages that hold checks of a goal,
        which codeloop ran itself: they are not steps.
        """
        return {
            part.message_id
            for part in self._parts.values()
            if isinstance(part, ToolPart)
            and isinstance(part.state, ToolStateCompleted | ToolStateError)
            and CHECK_KEY in (part.state.metadata or {})
        }

    def _list_checks(self) -> "list[CheckRun]":
        """Return the tests, linters and builds among the calls, oldest first."""
        # A turn without calls, which is the quickest, need not load the module.
        if not self._parts:
            return []
        from codeloop.agent.checks.check_runs import list_checks

        return list_checks(self._parts.values(), self._root)

    def _describe_doubts(self, ending: Ending, checks: "list[CheckRun]") -> str:
        """Return sentences about why a turn that is done may not have done it well;
        "" if nothing speaks for that.
        """
        sentences = [self._describe_checks(checks)]
        if ending.test_changes:
            sentences.append(f"Tests changed in this run: {'; '.join(ending.test_changes)}.")
        if ending.has_unchecked_edits and not checks:
            sentences.append("Checks: none after the last edit.")
        if ending.unended_commands:
            commands = ", ".join(
                f"`{one_line(each, MAX_COMMAND_CHARS)}`" for each in ending.unended_commands
            )
            sentences.append(f"Did not end in time, and was not waited for any longer: {commands}.")
        return " ".join(filter(None, sentences))

    def _describe_checks(self, checks: "list[CheckRun]") -> str:
        """Return a sentence about the problem that the checks show;
        "" if they show none, or there are none.
        """
        if not checks:
            return ""
        from codeloop.agent.checks.check_problems import find_check_problem

        problem = find_check_problem(checks, self._root)
        if problem is None:
            return ""
        reason = f"{problem.reason[0].upper()}{problem.reason[1:]}"
        return f"{reason}: {one_line(problem.command, MAX_COMMAND_CHARS)}."

    @property
    def _root(self) -> str:
        return self._session.directory if self._session is not None else ""
