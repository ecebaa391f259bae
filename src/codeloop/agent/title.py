"""A session's title: the prompt's first line until a model has a better one.

A small model is asked during the first turn. Without one, the cheapest of the answering provider is
asked after the turn, so that no turn shares its service with a title.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from codeloop.agent.answer.usage import start_usage
from codeloop.agent.engine import Engine
from codeloop.agent.request.system_prompt import read_prompt
from codeloop.model.chat import ModelRequest, TextPiece, UserModelMessage
from codeloop.schema.errors import CodeloopError
from codeloop.schema.ids import now_ms
from codeloop.schema.limits import TITLE_DELAY, TITLE_PROMPTS, TITLE_THINKING, TITLE_TIME
from codeloop.schema.message import Session, UserMessage, format_model_ref
from codeloop.schema.part import TextPart
from codeloop.schema.wire import replace
from codeloop.store.conversation import Entry

UNTITLED_PREFIX = "New session - "
_COMMAND_SIGN = "!"
"""The beginning of the title of a session in which only the user has run commands."""
MAX_TITLE_CHARS = 80
MAX_PROMPT_CHARS = 4_000
"""Characters of the prompt that the model is shown."""
# Tokens for a title by a model that does not think first.
_TITLE_TOKENS = 100


def is_untitled(title: str) -> bool:
    """Return whether a session still has the title that it was created with,
    or that of a command of the user.
    """
    return title.startswith((UNTITLED_PREFIX, _COMMAND_SIGN))


def shorten_to_line(prompt: str) -> str:
    """Return the prompt's first line, shortened, as a title; empty when there is none."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    return line if len(line) <= MAX_TITLE_CHARS else line[: MAX_TITLE_CHARS - 1].rstrip() + "…"


def store_first_line(engine: Engine, session_id: str, prompt: str) -> None:
    """Title an untitled session by its prompt's first line."""
    _set_title(engine, session_id, shorten_to_line(prompt), is_untitled)


def store_command_title(engine: Engine, session_id: str, command: str) -> None:
    """Title a session by the first command that the user runs in it, until there is a prompt."""
    title = shorten_to_line(f"{_COMMAND_SIGN}{command}")
    _set_title(engine, session_id, title, lambda current: current.startswith(UNTITLED_PREFIX))


async def make_title(
    engine: Engine, session_id: str, prompt: str, model: str, *, is_turn_over: bool = False
) -> bool:
    """Ask a model for a title, and store it if the session is still named by
    its prompt's first line.

    `model`: the one that answers the prompt. `is_turn_over`: that turn has ended, so any model of
    its provider may be asked. Returns whether a model gave a title.
    """
    with suppress(CodeloopError, TimeoutError):
        if is_turn_over:
            await asyncio.sleep(TITLE_DELAY.seconds)
        title_model = _choose_model(engine, model, is_turn_over=is_turn_over)
        budget = engine.turn_settings.configured_budget
        if title_model is None or (budget is not None and await budget.check()):
            return False
        title = await asyncio.wait_for(
            _ask_for_title(engine, session_id, title_model, prompt), TITLE_TIME.seconds
        )
        first_line = shorten_to_line(prompt)
        _set_title(
            engine, session_id, title, lambda current: is_untitled(current) or current == first_line
        )
        return bool(title)
    return False


def find_prompts_for_title(entries: Iterable[Entry], title: str) -> tuple[str, UserMessage] | None:
    """Return the first prompt's text and the last prompt, if the session still needs a title.

    It needs one if it is untitled, or has few prompts and is titled by the first
    line of the first one.
    """
    prompts = [
        (entry.info, entry.parts) for entry in entries if isinstance(entry.info, UserMessage)
    ]
    if len(prompts) > TITLE_PROMPTS.value and not is_untitled(title):
        return None
    for _, parts in prompts:
        text = "\n".join(
            part.text for part in parts if isinstance(part, TextPart) and not part.synthetic
        )
        if text:
            return (
                (text, prompts[-1][0])
                if is_untitled(title) or title == shorten_to_line(text)
                else None
            )
    return None


def _choose_model(engine: Engine, model: str, *, is_turn_over: bool) -> str | None:
    """Return the model to ask: the one of the agent `title`, a small one,
    else after the turn the cheapest.
    """
    agent = engine.agents.get("title")
    if agent is None:
        return None
    if agent.model is not None:
        return format_model_ref(agent.model)
    small_model = engine.models.find_small_model(model)
    if small_model is None and is_turn_over:
        return engine.models.find_cheapest_model(model)
    return small_model


async def _ask_for_title(engine: Engine, session_id: str, ref: str, prompt: str) -> str:
    """Ask a model for a title; its tokens are added to the session's sums,
    also when it is cancelled.
    """
    model = engine.models.open(ref)
    max_tokens = TITLE_THINKING.value if model.info.reasoning else _TITLE_TOKENS
    agent = engine.agents.get("title")
    system = agent.prompt if agent is not None and agent.prompt else read_prompt("title")
    messages = (UserModelMessage((TextPiece(prompt[:MAX_PROMPT_CHARS]),)),)
    request = ModelRequest(system=system.strip(), messages=messages, max_tokens=max_tokens)
    request = await engine.hooks.change_title_request(
        engine.store, session_id, model.info, request, prompt, MAX_PROMPT_CHARS
    )
    usage = start_usage(engine, session_id, model.info, request, kind="title")
    # Imported late: most turns ask for no title.
    from codeloop.agent.request.text_request import ask_for_text

    try:
        text, finished = await ask_for_text(model, request, usage)
    finally:
        usage.store_sums(engine.store, session_id)
    return "" if finished.error is not None else shorten_to_line(text.strip("\"'"))


def _set_title(
    engine: Engine, session_id: str, title: str, may_replace: Callable[[str], bool]
) -> None:
    """Set a session's title, unless it is empty or `may_replace` is false for the current title."""

    def set_title(session: Session) -> Session:
        if not title or not may_replace(session.title):
            return session
        return replace(session, title=title, time=replace(session.time, updated=now_ms()))

    engine.store.update_session(session_id, set_title)
