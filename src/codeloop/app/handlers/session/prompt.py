"""Handlers of prompts and turns: store a prompt, start or join the session's turn, summarise,
abort.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import structs

from codeloop.agent.moves import Stop, decide_next_move
from codeloop.app.handlers.session.store_prompt import make_user_message, store_prompt
from codeloop.app.handlers.session.turn_settings import make_turn_settings
from codeloop.app.project import Project
from codeloop.schema.api.session_inputs import (
    Goal,
    InvokeCommand,
    MessageWithParts,
    Prompt,
    Summarize,
    TextPartInput,
    TurnEnd,
)
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.event import make_message_updated, make_part_updated
from codeloop.schema.ids import new_id
from codeloop.schema.message import (
    AssistantMessage,
    Message,
    ModelRef,
    UserMessage,
    format_model_ref,
)
from codeloop.schema.part import CompactionPart, TextPart
from codeloop.schema.wire import replace
from codeloop.store.conversation import Entry

if TYPE_CHECKING:
    from codeloop.agent.goal.goal_rounds import GoalRounds

_CUT_OFF_MESSAGE = (
    "The server ended while it worked on this. What was done is kept; say how to go on."
)


async def run_prompt(project: Project, args: Prompt) -> MessageWithParts:
    """Store a prompt, run the turn and return its last answer.
    The turn goes on if the caller is cancelled.

    A client that lost its connection sends its prompt again, with the same id and text. It is not
    stored twice, and gets the answer to the first one.
    """
    if args.goal is not None and not args.no_reply:
        return await _work_for_goal(project, args, args.goal)
    try:
        message, parts = await store_prompt(project, args)
    except OperationError:
        sent_prompt = find_sent_prompt(project, args)
        if sent_prompt is None:
            raise
        return await wait_for_answer(project, sent_prompt, args)
    if args.no_reply:
        return MessageWithParts(info=message, parts=parts)
    stop = await asyncio.shield(
        project.runs.start_or_join_turn(
            args.session_id, make_turn_settings(args.limits, message, project)
        )
    )
    return _make_answer(project, args.session_id, stop)


async def start_prompt(project: Project, args: Prompt) -> None:
    """Store a prompt and start the turn, without waiting for it.
    A prompt that is sent again is ignored.
    """
    rounds = None
    if args.goal is not None:
        rounds = _find_or_make_rounds(
            project, args, args.goal, is_sent=find_sent_prompt(project, args) is not None
        )
    try:
        message, _ = await store_prompt(project, args)
    except OperationError:
        if find_sent_prompt(project, args) is None:
            raise
        return
    if not args.no_reply:
        project.runs.start_or_join_turn(
            args.session_id, make_turn_settings(args.limits, message, project), rounds=rounds
        )


async def _work_for_goal(project: Project, args: Prompt, goal: Goal) -> MessageWithParts:
    """Run a prompt with a goal: its turn goes on until the goal or a limit is reached."""
    sent_prompt = find_sent_prompt(project, args)
    rounds = _find_or_make_rounds(project, args, goal, is_sent=sent_prompt is not None)
    if sent_prompt is not None:
        return _add_goal_outcome(await wait_for_answer(project, sent_prompt, args), rounds)
    message, _ = await store_prompt(project, args)
    settings = make_turn_settings(args.limits, message, project)
    stop = await asyncio.shield(
        project.runs.start_or_join_turn(args.session_id, settings, rounds=rounds)
    )
    return _add_goal_outcome(_make_answer(project, args.session_id, stop), rounds)


def _find_or_make_rounds(
    project: Project, args: Prompt, goal: Goal, *, is_sent: bool
) -> "GoalRounds":
    """Return new rounds for a prompt's goal; for a prompt that was stored before (`is_sent`),
    those that it has.

    Raises OperationError if the goal can't be checked, or a turn runs.
    """
    from codeloop.agent.goal.goal_rounds import GoalRounds, find_goal_problem

    goal_rounds = project.services.goals
    if is_sent and args.session_id in goal_rounds:
        return goal_rounds[args.session_id]
    if problem := find_goal_problem(goal, project.workspace.root):
        raise OperationError("BadRequest", problem)
    if project.runs.is_working_on(args.session_id):
        raise OperationError(
            "SessionBusyError", f"Session {args.session_id} is busy. Abort its turn first."
        )
    task = "\n".join(
        part.text for part in args.parts if isinstance(part, TextPartInput) and not part.synthetic
    )
    goal_rounds[args.session_id] = GoalRounds(goal, task)
    return goal_rounds[args.session_id]


def _add_goal_outcome(answer: MessageWithParts, rounds: "GoalRounds") -> MessageWithParts:
    """Return an answer with the outcome of its goal added to the end of the turn."""
    if answer.stop is None:
        return answer
    return replace(answer, stop=replace(answer.stop, goal=rounds.give_up(answer.stop.message)))


def find_sent_prompt(project: Project, args: Prompt | InvokeCommand) -> Entry | None:
    """Return the stored message of a prompt that is sent again;
    None if the prompt is new, or its id is another's.
    """
    entries = (
        project.store.read_context(args.session_id).entries if args.message_id is not None else ()
    )
    entry = next((each for each in entries if each.info.id == args.message_id), None)
    if entry is None or not isinstance(entry.info, UserMessage):
        return None
    if isinstance(args, Prompt):
        texts = [
            part.text
            for part in args.parts
            if isinstance(part, TextPartInput) and not part.synthetic
        ]
        stored_texts = [
            part.text for part in entry.parts if isinstance(part, TextPart) and not part.synthetic
        ]
        hooks = project.engine.hooks.runner
        # An extension may have changed the texts before they were stored, so they prove nothing.
        may_differ = hooks is not None and hooks.has_handler("chat.message")
        return entry if may_differ or texts == stored_texts else None
    return entry


async def wait_for_answer(
    project: Project, sent_prompt: Entry, args: Prompt | InvokeCommand
) -> MessageWithParts:
    """Return the answer to a prompt that was stored before; wait for its turn if that still runs.

    A turn that was cut off by the end of its process is not started again.
    """
    message = sent_prompt.info
    if not isinstance(message, UserMessage) or (isinstance(args, Prompt) and args.no_reply):
        return MessageWithParts(info=message, parts=list(sent_prompt.parts))
    settings = make_turn_settings(args.limits, message, project)
    conversation = project.store.read_context(args.session_id)
    is_answered = any(
        getattr(each.info, "parent_id", None) == message.id for each in conversation.entries
    )
    if project.runs.is_working_on(args.session_id) or not is_answered:
        stop = await asyncio.shield(project.runs.start_or_join_turn(args.session_id, settings))
    elif not isinstance(stop := decide_next_move(conversation, settings), Stop):
        stop = Stop("error", _CUT_OFF_MESSAGE)
    return _make_answer(project, args.session_id, stop)


async def summarize_session(project: Project, args: Summarize) -> bool:
    """Summarise the conversation: later requests have the summary in its place. Return True;
    raises OperationError.
    """
    session = project.store.get_session(args.session_id)
    project.store.leases.check_free(session.id)
    project.runs.check_free(session.id)
    model = ModelRef(provider_id=args.provider_id, model_id=args.model_id)
    project.models.open(format_model_ref(model))
    message = make_user_message(project, session.id, session.agent or "build", model)
    part = CompactionPart(
        id=new_id("prt"), session_id=session.id, message_id=message.id, auto=args.auto
    )
    project.store.append(make_message_updated(message), make_part_updated(part))
    stop = await asyncio.shield(
        project.runs.start_or_join_turn(session.id, make_turn_settings(None, message, project))
    )
    if stop.reason != "done":
        kind = "UnknownError" if stop.reason == "error" else "BadRequest"
        raise OperationError(
            kind, f"The conversation was not summarised: {stop.message or stop.reason}"
        )
    return True


async def abort_turn(project: Project, args: SessionId) -> bool:
    """Stop the session's turn in any process of this machine;
    return whether no turn runs any more.
    """
    return await project.runs.abort_anywhere(args.session_id)


def _make_answer(project: Project, session_id: str, stop: Stop) -> MessageWithParts:
    """Return the last answer of a session, with the end of its turn."""
    entries = project.store.read_context(session_id).entries
    if not entries:
        raise OperationError(
            "NotFoundError", "The prompt was cancelled before anything answered it."
        )
    last = next(
        (entry for entry in reversed(entries) if isinstance(entry.info, AssistantMessage)),
        entries[-1],
    )
    end = TurnEnd(**structs.asdict(stop), context_window=_find_context_window(project, last.info))
    return MessageWithParts(info=last.info, parts=list(last.parts), stop=end)


def _find_context_window(project: Project, info: Message) -> int:
    """Return the context window of an answer's model, in tokens; 0 when it is not known."""
    if not isinstance(info, AssistantMessage):
        return 0
    with suppress(CodeloopError):
        limits = project.models.open(f"{info.provider_id}/{info.model_id}").info.limits
        return limits.context or limits.input or 0
    return 0
