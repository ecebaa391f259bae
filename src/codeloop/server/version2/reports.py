"""Handlers of version 2: sums of the use, exports and imports, changes, and questions to a model
that leave no trace in a session.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from codeloop.agent.answer.usage import start_usage
from codeloop.agent.request.text_request import ask_for_text
from codeloop.app.project import Project
from codeloop.model.chat import ModelRequest, TextPiece, UserModelMessage
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.api.session_reports import SESSION_SHAREABLE
from codeloop.schema.api.session_requests import SESSION_IMPORT, ImportSession, SessionId
from codeloop.schema.api.session_undo import SESSION_DIFF, SessionDiffQuery
from codeloop.schema.ids import now_ms
from codeloop.schema.message import NO_TOKENS, AssistantMessage, Session, parse_model_ref
from codeloop.schema.operation import NoArguments
from codeloop.schema.part import TextPart
from codeloop.schema.wire import JSON
from codeloop.server.version2 import arguments
from codeloop.server.version2 import session_arguments as takes
from codeloop.server.version2.catalog import get_default_model
from codeloop.server.version2.request import Request2, make_refusal
from codeloop.server.version2.session_forms import (
    translate_diffs,
    translate_messages,
    translate_model_ref,
    translate_session,
    translate_tokens,
)
from codeloop.server.version2.transfer import read_messages, read_session
from codeloop.store.database import StoreError
from codeloop.store.ledger import PaidRequest, open_ledger

_DAY_MS = 86_400_000
_MAX_TIME_MS = 8_640_000_000_000_000
"""The last time that JavaScript has."""
_ANSWER_TOKENS = 4_000
"""The tokens of a model's answer to a question beside a session."""


async def sum_stats(request: Request2, args: takes.Stats2) -> JSON:
    """Return sums of the use of models."""
    project = await request.get_project()
    paths = project.settings.paths.find_databases()
    if args.project is not None:
        paths = [path for path in paths if path.parent.name == args.project]
    try:
        zone = ZoneInfo(args.timezone) if args.timezone else datetime.now().astimezone().tzinfo
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise make_refusal(f"There is no time zone {args.timezone}.") from error
    start, end = _read_time(args.start, 0), _read_time(args.to, now_ms())

    def read() -> tuple[list[PaidRequest], int, Counter[tuple[str, str]]]:
        found: list[PaidRequest] = []
        calls: Counter[tuple[str, str]] = Counter()
        prompts = 0
        for path in paths:
            with suppress(StoreError), closing(open_ledger(path)) as ledger:
                found += ledger.list_requests(start)
                prompts += ledger.count_prompts(start, end)
                if args.tools not in {None, "none"}:
                    calls.update(ledger.count_calls(start, end))
        return [each for each in found if each.time <= end], prompts, calls

    requests, prompts, calls = await asyncio.to_thread(read)
    days = Counter(
        datetime.fromtimestamp(each.time / 1000, UTC).astimezone(zone).date()
        for each in requests
        if each.is_step
    )
    models: dict[str, list[PaidRequest]] = {}
    for each in requests:
        models.setdefault(each.model, []).append(each)
    sessions = {each.root_id for each in requests if each.root_id}
    subagents = {each.session_id for each in requests if each.session_id != each.root_id}
    return {
        "range": {"from": start or min((each.time for each in requests), default=end), "to": end},
        "sessions": len(sessions),
        "subagents": len(subagents),
        "prompts": prompts,
        **_sum(requests),
        "tools": _describe_calls(args.tools or "none", calls),
        "activeDays": len(days),
        "streak": _count_streak(set(days)),
        "activity": [{"date": str(day), "steps": days[day]} for day in sorted(days)],
        "models": [
            {"model": translate_model_ref(parse_model_ref(name)), **_sum(used)}
            for name, used in models.items()
        ],
    }


def _read_time(time: float | None, default: int) -> int:
    # Clients may send infinite times, which JSON has only as texts.
    if not time or not math.isfinite(time):
        return default
    if abs(time) > _MAX_TIME_MS:
        raise make_refusal(f"{time} is not a time in milliseconds since the epoch.")
    return int(time)


def _sum(requests: Iterable[PaidRequest]) -> JSON:
    steps, tokens, cost = 0, NO_TOKENS, 0.0
    for each in requests:
        steps += each.is_step
        tokens = tokens.plus(each.tokens)
        cost += each.cost
    return {"steps": steps, "tokens": translate_tokens(tokens), "cost": cost}


def _describe_calls(mode: str, calls: Counter[tuple[str, str]]) -> JSON:
    if mode == "none":
        return {"mode": "none"}
    summary: JSON = {"mode": mode, "totals": _sum_calls(calls)}
    if mode == "detail":
        names = sorted({tool for tool, _ in calls})
        summary["usage"] = [
            {
                "name": name,
                **_sum_calls({key: count for key, count in calls.items() if key[0] == name}),
            }
            for name in names
        ]
    return summary


def _sum_calls(calls: dict[tuple[str, str], int]) -> JSON:
    statuses: Counter[str] = Counter()
    for (_, status), count in calls.items():
        statuses[status] += count
    done, failed = statuses["completed"], statuses["error"]
    total = statuses.total()
    return {
        "calls": total,
        "succeeded": done,
        "failed": failed,
        "unfinished": total - done - failed,
    }


def _count_streak(days: set[date]) -> int:
    """Return how many days in a row, up to the last one, had steps."""
    if not days:
        return 0
    day, count = max(days), 0
    while day in days:
        day, count = day - timedelta(days=1), count + 1
    return count


async def export_session(request: Request2, args: takes.ExportSession2) -> JSON:
    """Return a session with its messages; `sanitize`: as it may be shown to others."""
    _, session = await request.find_session(args.session_id)
    if args.sanitize:
        shareable = await request.call(SESSION_SHAREABLE, SessionId(session_id=session.id))
        shown = shareable.sessions[0]
        return {
            "info": translate_session(shown.info),
            "messages": translate_messages(shown.messages),
        }
    messages = await request.call(SESSION_MESSAGES, ListMessages(session_id=session.id))
    return {"info": translate_session(session), "messages": translate_messages(messages)}


async def import_session(request: Request2, args: takes.ImportSession2) -> JSON:
    """Store an exported session, under new ids where its own are used."""
    try:
        info, messages = read_session(args.info), read_messages(args.messages)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise make_refusal(
            f"This is not a session as its export has it ({type(error).__name__}: {error})."
        ) from error
    import_ = ImportSession(info=info, messages=messages)
    return translate_session((await request.call(SESSION_IMPORT, import_)).session)


async def diff_session(request: Request2, args: takes.DiffSession2) -> list[JSON]:
    """Return the files that the turn of a prompt has changed, or that all turns have."""
    await request.find_session(args.session_id)
    query = SessionDiffQuery(
        session_id=args.session_id, message_id=args.start, whole=args.start is None
    )
    return translate_diffs(await request.call(SESSION_DIFF, query))


async def generate_text(request: Request2, args: arguments.Generate) -> JSON:
    """Ask a model for a text."""
    project = await request.get_project()
    if args.model is not None:
        ref = f"{args.model.provider_id}/{args.model.id}"
    else:
        default = await get_default_model(request, NoArguments())
        if default is None:
            raise make_refusal("No model can be used. Name one, or sign in at a provider.")
        ref = f"{default['providerID']}/{default['id']}"
    return {"text": await _ask(project, "", ref, args.prompt)}


async def generate_in_session(request: Request2, args: takes.Generate2) -> JSON:
    """Ask the session's model something about the session, which stays as it is."""
    project, session = await request.find_session(args.session_id)
    if session.model is None:
        raise make_refusal("The session has no model yet: it has no messages.")
    ref = f"{session.model.provider_id}/{session.model.id}"
    prompt = f"{_tell(project, session)}\n\n{args.prompt}".strip()
    return {"text": await _ask(project, session.id, ref, prompt)}


def _tell(project: Project, session: Session) -> str:
    """Return the texts of a session, each with who said it."""
    lines: list[str] = []
    for entry in project.store.read_context(session.id).entries:
        who = "Assistant" if isinstance(entry.info, AssistantMessage) else "User"
        texts = [each.text for each in entry.parts if isinstance(each, TextPart)]
        lines += [f"{who}: {text}" for text in texts if text]
    return "\n\n".join(lines)


async def _ask(project: Project, session_id: str, ref: str, prompt: str) -> str:
    """Ask a model; what it uses is counted, for the session if there is one."""
    engine = project.engine
    model = engine.models.open(ref)
    message = UserModelMessage((TextPiece(prompt),))
    request = ModelRequest(system="", messages=(message,), max_tokens=_ANSWER_TOKENS)
    kind = "title" if session_id else "check"
    usage = start_usage(engine, session_id, model.info, request, kind=kind)
    try:
        text, finished = await ask_for_text(model, request, usage)
    finally:
        if session_id:
            usage.store_sums(engine.store, session_id)
    if finished.error is not None:
        raise make_refusal(f"The model gave no text: {finished.error}")
    return text
