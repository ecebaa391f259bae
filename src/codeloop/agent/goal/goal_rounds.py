"""Rounds of work on a goal: each time the model stops, the checks run;
until they pass, it must continue.

The model's own claims do not count. A check counts if codeloop has run it after the last edit,
it exits with 0,
the files that it consists of are as they were, and it runs as many tests as before the work began.
A goal without checks is judged by a small model, which sees the recorded check runs.
"""

import asyncio
from pathlib import Path
from typing import Literal

from msgspec import Struct

from codeloop.agent.answer.reminders import store_reminder
from codeloop.agent.checks.check_runs import is_goal_check, list_checks
from codeloop.agent.checks.runner_summaries import TestCounts, describe_lost_tests, read_test_counts
from codeloop.agent.engine import Engine
from codeloop.agent.goal.check_runner import (
    end_background,
    run_and_store_checks,
    run_checks_unstored,
)
from codeloop.agent.moves import Stop
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.session_inputs import Goal, GoalCheck, GoalEnd
from codeloop.schema.bounds.session import GOAL_CHECKS, GOAL_ROUNDS, GOAL_STUCK
from codeloop.schema.live_events import Toast, ToastShown
from codeloop.schema.message import GOAL_KEY, AssistantMessage, describe_relocation
from codeloop.schema.part import PatchPart, ToolPart, ToolStateCompleted, ToolStateError
from codeloop.schema.wire import replace
from codeloop.shell.check_commands import is_check
from codeloop.store.conversation import Entry
from codeloop.workspace.check_files import (
    CheckFiles,
    compile_patterns,
    describe_changes,
    find_written_data,
    hash_check_files,
)
from codeloop.workspace.sandbox.private_folders import make_private_home_name

# Characters of a command that a message names.
_MAX_COMMAND_CHARS = 200
# Changed files that a message names.
_MAX_NAMED_FILES = 20
# Reasons of a stop after which the model must continue.
_CONTINUED_STOPS = frozenset(("done", "length"))
# How often a check is run again that passes without a reason: one that fails now and then
# (by chance, order or time) has not passed.
_REPEATS = 2
FIRST_RUN_NOTICE = (
    "The checks run once before the work begins, so that it is known how many tests there are."
)
NO_CHECK_PROBLEM = "no check was run"
GOAL_INSTRUCTIONS = """<system-reminder>Work until this goal is reached; nobody is there to take over what you leave.
{how} Tests, their configuration and build files are protected: changing one, or leaving tests out, makes the result \
"not done"{free}. Checks have a home of their own: install into the project. If the goal can't be reached so, say why \
and end.</system-reminder>"""
CHECKS_RULE = "Each time you end, codeloop itself runs: {commands}. The goal is reached when {they_exit} with 0."
JUDGE_RULE = (
    "Each time you end, codeloop runs the checks again that you ran last, and a judge "
    "decides by their results alone."
)
NOT_REACHED_REMINDER = (
    "<system-reminder>The goal is not reached yet: {left}. Go on, or say why "
    "it can't be reached.</system-reminder>"
)


def describe_goal(goal: Goal) -> str:
    """Return the instructions about a goal that are added to the user's prompt."""
    commands = ", ".join(f"`{command}`" for command in goal.checks)
    they_exit = "it exits" if len(goal.checks) == 1 else "they all exit"
    how = CHECKS_RULE.format(commands=commands, they_exit=they_exit) if goal.checks else JUDGE_RULE
    free = f" (but for {', '.join(goal.unprotect)})" if goal.unprotect else ""
    return GOAL_INSTRUCTIONS.format(how=how, free=free)


def find_goal_problem(goal: Goal, root: Path) -> str:
    """Return why a goal can't be accepted; "": it can."""
    if len(goal.checks) > GOAL_CHECKS.value:
        return f"A goal has at most {GOAL_CHECKS.value} checks: put several into one command."
    if any(not check.strip() or "\0" in check for check in goal.checks):
        return (
            "A check is empty or holds a NUL character: give a command line, such as `make test`."
        )
    try:
        list(compile_patterns((*goal.protect, *goal.unprotect)))
    except ValueError as error:
        return f"protect and unprotect are globs of files below {root}: {error}."
    return ""


class ChecksOutcome(Struct, frozen=True):
    """The outcome of one run of the checks: each result, and why the goal is not reached,
    as phrases.
    """

    checks: list[GoalCheck]
    problems: list[str]


class GoalRounds:
    """The goal of one turn. `end` is its outcome, once it is over."""

    def __init__(self, goal: Goal, text: str) -> None:
        """`text`: the goal as the user put it."""
        self.goal = goal
        self.end: GoalEnd | None = None
        self._goal_text = text
        self._rounds = 0
        self._round_states: list[tuple[object, ...]] = []
        """The number of edits and the problems after each round: equal ones in a row
        mean that the model is stuck.
        """
        self._check_files = CheckFiles({}, frozenset())
        """The check files before the work began, and after the first run of the checks."""
        self._written_files: frozenset[str] = frozenset()
        """The data among the check files that the checks write themselves."""
        self._counts_before: dict[str, TestCounts | None] = {}
        self._failed_before: set[str] = set()
        """The checks that failed before the work began."""
        self._began_at = 0
        self._home = make_private_home_name()
        """The home of the checks: what the model's commands leave in theirs does not steer them."""
        self._last_outcome = ChecksOutcome([], ["its checks did not run after the last edit"])

    async def begin(self, engine: Engine, session_id: str) -> None:
        """Record the checks' files and results before the work begins."""
        entries = engine.store.read_context(session_id).entries
        self._began_at = entries[-1].info.time.created if entries else 0
        self._check_files = await self._hash_check_files(engine)
        agent = entries[-1].info.agent if entries else "build"
        if self.goal.checks:
            engine.store.publish_live(
                ToastShown(properties=Toast(message=FIRST_RUN_NOTICE, variant="info"))
            )
        for part in await run_checks_unstored(
            engine, session_id, agent, self.goal.checks, home=self._home
        ):
            command = str(part.state.input["command"])
            self._counts_before[command] = _read_test_counts(part)
            if not _has_passed(part):
                self._failed_before.add(command)
        if self.goal.checks:
            before, self._check_files = self._check_files, await self._hash_check_files(engine)
            self._written_files = find_written_data(before, self._check_files)
        self._store_progress(engine, session_id)

    def limit_engine(self, engine: Engine, session_id: str) -> Engine:
        """Return the engine of the next round, limited to the steps that all rounds have left."""
        if engine.turn_settings.max_steps is None:
            return engine
        remaining = max(engine.turn_settings.max_steps - self._count_steps(engine, session_id), 0)
        return replace(engine, turn_settings=replace(engine.turn_settings, max_steps=remaining))

    async def end_round(self, engine: Engine, session_id: str, stop: Stop) -> Stop | None:
        """Run the checks after the model stopped; return how the turn ends. None: it continues."""
        stop_of_turn = await self._end_round(engine, session_id, stop)
        self._store_progress(engine, session_id)
        return stop_of_turn

    async def _end_round(self, engine: Engine, session_id: str, stop: Stop) -> Stop | None:
        if relocation_note := describe_relocation(engine.store.read_context(session_id).session):
            self._finish("not_done", relocation_note)
            return Stop("moved", relocation_note)
        self._rounds += 1
        await end_background(engine, session_id)
        self._last_outcome = await self._run_checks(engine, session_id)
        if not self._last_outcome.problems:
            return self._finish("done", "")
        reason = self._find_end_reason(engine, session_id, stop)
        if reason:
            not_done = self._finish("not_done", reason)
            return (
                not_done
                if stop.reason != "error"
                else replace(stop, message=f"{stop.message} {not_done.message}")
            )
        self._remind(engine, session_id)
        return None

    def give_up(self, reason: str) -> GoalEnd:
        """Return the outcome of the goal when the turn was ended from outside."""
        if self.end is None:
            self._finish("not_done", reason)
        assert self.end is not None
        return self.end

    def _store_progress(self, engine: Engine, session_id: str) -> None:
        """Store how far the goal is, so that every user interface can show it."""
        goal = {
            "text": self._goal_text,
            "checks": self.goal.checks,
            "status": self.end.status if self.end is not None else "working",
            "rounds": self._rounds,
            "left": self._last_outcome.problems if self._rounds else [],
            "reason": self.end.reason if self.end is not None else "",
        }
        store = engine.store
        store.update_session(
            session_id,
            lambda session: replace(session, metadata={**(session.metadata or {}), GOAL_KEY: goal}),
        )

    def _find_end_reason(self, engine: Engine, session_id: str, stop: Stop) -> str:
        """Return why the work ends without reaching the goal; "": it continues."""
        if stop.reason not in _CONTINUED_STOPS:
            return stop.message or f"The turn ended ({stop.reason})."
        max_rounds = self.goal.rounds or GOAL_ROUNDS.value
        if self._rounds >= max_rounds:
            return (
                f"The limit of {max_rounds} {'round' if max_rounds == 1 else 'rounds'} is reached."
            )
        steps = engine.turn_settings.max_steps
        if steps is not None and self._count_steps(engine, session_id) >= steps:
            return f"The limit of {steps} steps is reached."
        conversation = engine.store.read_context(session_id)
        edits = sum(
            isinstance(part, PatchPart) for entry in conversation.entries for part in entry.parts
        )
        self._round_states.append((edits, *self._last_outcome.problems))
        latest = self._round_states[-GOAL_STUCK.value :]
        if len(latest) == GOAL_STUCK.value and len(set(latest)) == 1:
            return f"Nothing changed in {GOAL_STUCK.value} rounds."
        return ""

    def _finish(self, status: Literal["done", "not_done"], reason: str) -> Stop:
        """Set the outcome; return how the turn ends."""
        self.end = GoalEnd(
            status=status,
            rounds=self._rounds,
            checks=self._last_outcome.checks,
            left=self._last_outcome.problems,
            reason=reason,
        )
        if status == "done":
            return Stop("done")
        return Stop(
            "not_done", f"Not done: {'; '.join(self._last_outcome.problems)}. {reason}".rstrip()
        )

    def _remind(self, engine: Engine, session_id: str) -> None:
        reminder = NOT_REACHED_REMINDER.format(left="; ".join(self._last_outcome.problems))
        store_reminder(engine, session_id, reminder)

    def _count_steps(self, engine: Engine, session_id: str) -> int:
        infos = (entry.info for entry in engine.store.read_context(session_id).entries)
        return sum(
            isinstance(info, AssistantMessage)
            and info.time.created > self._began_at
            and bool(info.finish or info.error)
            for info in infos
        )

    async def _hash_check_files(self, engine: Engine) -> CheckFiles:
        workspace, goal = engine.workspace, self.goal
        path = workspace.environment.get("PATH")
        return await asyncio.to_thread(
            hash_check_files, workspace.root, goal.checks, path, goal.protect, goal.unprotect
        )

    async def _run_checks(self, engine: Engine, session_id: str) -> ChecksOutcome:
        """Run the checks; return the result of each, and what is missing."""
        before = await self._hash_check_files(engine)
        commands = self.goal.checks or self._find_model_checks(engine, session_id)
        is_from_user = bool(self.goal.checks)
        parts: list[ToolPart] = []
        if commands:
            parts = await run_and_store_checks(
                engine, session_id, commands, is_from_user=is_from_user, home=self._home
            )
            parts = await self._repeat_lucky_checks(engine, session_id, parts)
        # Compared again after the checks ran: a check may have changed the files, too.
        now = await self._hash_check_files(engine)
        # What each run writes anew says nothing about the work.
        written = self._written_files & find_written_data(before, now)
        changes = describe_changes(self._check_files, before, written) or describe_changes(
            self._check_files, now, written
        )
        checks = [self._judge_check(part) for part in parts]
        problems: list[str] = []
        if changes:
            others = (
                f" and {len(changes) - _MAX_NAMED_FILES} more"
                if len(changes) > _MAX_NAMED_FILES
                else ""
            )
            problems.append(
                f"protected files changed: {', '.join(changes[:_MAX_NAMED_FILES])}{others}"
            )
        problems += [
            f"`{one_line(each.command, _MAX_COMMAND_CHARS)}`: {each.problem}"
            for each in checks
            if each.problem
        ]
        if not checks:
            problems.append(NO_CHECK_PROBLEM)
        if not problems and not self.goal.checks:
            # Imported late: most goals have checks.
            from codeloop.agent.goal.goal_judge import judge_goal

            entries = self._list_goal_entries(engine, session_id)
            missing = await judge_goal(engine, session_id, self._goal_text, parts, entries)
            if missing:
                problems.append(missing)
        return ChecksOutcome(checks, problems)

    async def _repeat_lucky_checks(
        self, engine: Engine, session_id: str, parts: list[ToolPart]
    ) -> list[ToolPart]:
        """Run the checks again that failed before the work, and pass though no file has changed;
        return the parts that count, those of a failed run first.
        """
        entries = self._list_goal_entries(engine, session_id)
        if any(isinstance(part, PatchPart) for entry in entries for part in entry.parts):
            return parts
        for _ in range(_REPEATS):
            lucky = [
                command
                for part in parts
                if (command := str(part.state.input["command"])) in self._failed_before
                and _has_passed(part)
            ]
            if not lucky:
                break
            again = await run_and_store_checks(
                engine, session_id, lucky, is_from_user=bool(self.goal.checks), home=self._home
            )
            runs = {str(part.state.input["command"]): part for part in again}
            parts = [runs.get(str(part.state.input["command"]), part) for part in parts]
        return parts

    def _judge_check(self, part: ToolPart) -> GoalCheck:
        """Return the result of a check that was run; its `problem` is "" if it passed."""
        command = str(part.state.input["command"])
        state = part.state
        if not isinstance(state, ToolStateCompleted):
            is_denied = isinstance(state, ToolStateError) and (state.metadata or {}).get("denied")
            problem = "it was not allowed to run" if is_denied else "it could not be run"
            return GoalCheck(command=command, exit_code=None, problem=problem)
        code = state.metadata.get("exit")
        if state.metadata.get("timedOut"):
            problem = "it did not end within its timeout"
        elif code is None:
            problem = "it was ended"
        elif code:
            # Such as what the sandbox kept it from: then no edit will make it pass.
            notes = "; ".join(map(str, state.metadata.get("notes", ())))
            problem = f"it exits with {code}" + (f" ({notes.rstrip('.')})" if notes else "")
        else:
            problem = describe_lost_tests(self._counts_before.get(command), _read_test_counts(part))
        return GoalCheck(command=command, exit_code=code, problem=problem)

    def _list_goal_entries(self, engine: Engine, session_id: str) -> list[Entry]:
        entries = engine.store.read_context(session_id).entries
        return [entry for entry in entries if entry.info.time.created > self._began_at]

    def _find_model_checks(self, engine: Engine, session_id: str) -> list[str]:
        """Return the checks that the model ran, newest first,
        except command lines that hide an exit code.
        """
        parts = [
            part for entry in self._list_goal_entries(engine, session_id) for part in entry.parts
        ]
        model_parts = [
            part for part in parts if not (isinstance(part, ToolPart) and is_goal_check(part))
        ]
        runs = reversed(list_checks(model_parts))
        commands = dict.fromkeys(run.command for run in runs if _exits_as_its_check(run.command))
        return list(commands)[: GOAL_CHECKS.value]


def _exits_as_its_check(command: str) -> bool:
    """Return whether a line is a single check, so that its exit code is the check's."""
    return is_check(command) and not any(
        each in command for each in (";", "|", "&", "\n", "`", "$(")
    )


def _has_passed(part: ToolPart) -> bool:
    state = part.state
    return isinstance(state, ToolStateCompleted) and state.metadata.get("exit") == 0


def _read_test_counts(part: ToolPart) -> TestCounts | None:
    return (
        read_test_counts(part.state.output) if isinstance(part.state, ToolStateCompleted) else None
    )
