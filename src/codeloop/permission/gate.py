"""The gate that every tool call passes: decides its needs by rules, and where a user is asked, waits for the answer."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence

from msgspec import Struct

from codeloop.permission.rules import FILE_KINDS, RuleLayers, Verdict, decide, find_last_match, judge_need
from codeloop.schema.errors import GapError, HookRefused
from codeloop.schema.event import (
    PermissionAnswer,
    PermissionAsked,
    PermissionReplied,
    SessionDeleted,
    Stamped,
    StoredEvent,
)
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.limits import DECISION_PATTERN, DECISION_PATTERNS
from codeloop.schema.permission import (
    AUTO,
    NOBODY,
    Decision,
    Grant,
    Need,
    PermissionRequest,
    PermissionRule,
    QuestionTool,
)
from codeloop.schema.permission import Action as Status
from codeloop.schema.wire import replace
from codeloop.store.permission_records import scope_of
from codeloop.store.store import Store

ALSO_KEY = "also"
"""Metadata key of a question: the further needs of the call, which the answer decides as well."""
KEPT_KEY = "kept"
"""Metadata key of a question: once allowed, the same need is not asked about again in the session."""
# Who decided, as stored in decisions.
BY_USER = "person"
BY_EXTENSION = "extension"
DOUBTFUL_KEY = "uncertain"
"""Metadata key of a question: the effect is not fully known, so the "always" of another question does not settle it."""


class Denied(Exception):
    """A rule or an extension forbids a need; no user was asked. `words`: an extension's own reason."""

    advice = "Do not try to achieve the same by other means."
    """Is added to the message for the model; users don't see it."""

    def __init__(self, need: Need, verdict: Verdict, words: str | None = None) -> None:
        self.need = need
        self.verdict = verdict
        if words is not None:
            super().__init__(words)
            return
        rule = verdict.rule
        why = f" by the rule {rule.permission} {rule.pattern}: {rule.action}" if rule else ""
        if verdict.is_doubtful:
            why += f", which could apply since {need.unproven or 'a part of the line is only known when it runs'}"
        what = ", ".join(verdict.patterns)
        super().__init__(f"Permission denied{why}: {need.permission} {what}.")


class Rejected(Exception):
    """The user refused, or no user was there to ask.

    With a `message` the turn continues, so that the model can follow it; without one it ends after this step.
    """

    def __init__(self, need: Need, message: str | None) -> None:
        self.need = need
        self.message = message
        self.advice = "Find another way or say in your answer what you could not do." if message == NOBODY else ""
        suffix = f" and said: {message}" if message else "."
        super().__init__(NOBODY if message == NOBODY else f"The user rejected this {need.permission} call{suffix}")


class CallRules(Struct, frozen=True):
    """The rules for a call: lists that it must all pass, its own first. The strictest verdict counts.

    `answers_itself`: every question is answered with yes without asking a user (the profile yolo).
    """

    lists: tuple[RuleLayers, ...]
    answers_itself: bool = False


AskExtensions = Callable[[PermissionRequest], Awaitable[Status]]
"""Asks extensions about a question: they allow it, deny it, or leave it to the user."""


class Gate(Struct, frozen=True):
    """Decides needs for a session; questions, grants and decisions live in the store, so any process may answer."""

    store: Store

    async def pass_through(
        self,
        needs: Sequence[Need],
        session_id: str,
        tool: QuestionTool | None,
        rules: CallRules,
        extensions: AskExtensions | None = None,
    ) -> bool:
        """Return once all needs are allowed; True when the user was asked, which may have taken days.

        All needs of a call share one question: about the first one that must be asked, with the others in `also` of its
        metadata. Its "always" covers the first one alone. Every decision is stored with its reason.
        A need that offers no "always" is asked every time: no earlier "always" covers it.
        A question whose waiting task is cancelled is withdrawn: answered with a rejection that rejects nothing else.
        `extensions` may allow or deny what would be asked; they are not asked about what a rule denies.
        Raises Denied when a rule or an extension forbids one, Rejected when the user does.
        """
        judgements = [self._judge(need, session_id, tool, rules) for need in needs]
        # All denials before any question: a user must not be asked about a call that can't run anyway.
        for each in judgements:
            if each.verdict.action == "deny":
                self.store.permissions.note(replace(each.decision, action="deny", by="rule"))
                raise Denied(each.need, each.verdict)
        judgements = [await self._ask_extensions(each, session_id, tool, extensions) for each in judgements]
        open_judgements = [each for each in judgements if each.verdict.action == "ask"]
        answer: PermissionAnswer | None = None
        # A question that a hook asks for is one for the user, whatever the profile.
        if open_judgements and not (rules.answers_itself and all(each.need.hooked is None for each in open_judgements)):
            answer = await self._ask_user(open_judgements, session_id, tool)
        by = _describe_answer(answer) if answer is not None else "profile yolo"
        is_rejected = answer is not None and answer.reply == "reject"
        # After a rejection, what rules allow is not noted: the call does not run.
        for each in open_judgements if is_rejected else judgements:
            is_asked = each.verdict.action == "ask"
            action = "deny" if is_rejected else "allow"
            self.store.permissions.note(replace(each.decision, action=action, by=by if is_asked else each.by))
        if answer is not None and is_rejected:
            raise Rejected(open_judgements[0].need, answer.message)
        if answer is not None and answer.reply == "once" and by.startswith(BY_USER):
            self._remember_once(open_judgements, answer)
        return answer is not None

    async def _ask_extensions(
        self, judgement: "_Judgement", session_id: str, tool: QuestionTool | None, extensions: AskExtensions | None
    ) -> "_Judgement":
        """Let extensions allow or deny what would be asked; return the judgement after that. Raises Denied."""
        need, verdict, words = judgement.need, judgement.verdict, ""
        # A hook has already judged the call (`need.hooked`). It can make the rules stricter, or answer their question.
        if verdict.action == "allow" and need.hooked == "ask":
            verdict = replace(verdict, action="ask", patterns=need.patterns)
        status = verdict.action
        if status == "ask" and need.hooked != "ask":
            status = need.hooked or status
            if status == "ask" and extensions is not None:
                try:
                    status = await extensions(_make_request(need, verdict, session_id, tool))
                except HookRefused as error:
                    if error.ends:  # the extension also ends the turn, which the caller has to see
                        self.store.permissions.note(replace(judgement.decision, action="deny", by=BY_EXTENSION))
                        raise
                    status, words = "deny", str(error)
        if status == "deny":
            self.store.permissions.note(replace(judgement.decision, action="deny", by=BY_EXTENSION))
            words = words or f"An extension denied this: {need.permission} {', '.join(need.patterns)}."
            raise Denied(need, verdict, words)
        if status != verdict.action:
            return replace(judgement, verdict=replace(verdict, action=status), by=BY_EXTENSION)
        return replace(judgement, verdict=verdict)

    def _remember_once(self, judgements: Sequence["_Judgement"], answer: PermissionAnswer) -> None:
        """Remember the allowed needs that are asked about only once in a session."""
        for number, each in enumerate(judgements):
            if each.holds_for_session:
                grant = Grant(
                    id=f"{answer.request_id}.{number}",  # one answer may allow several needs
                    session_id=answer.session_id,
                    directory="",
                    time=now_ms(),
                    permission=each.need.permission,
                    patterns=list(each.verdict.patterns),
                )
                self.store.permissions.remember_for_session(grant)

    def _judge(self, need: Need, session_id: str, tool: QuestionTool | None, rules: CallRules) -> "_Judgement":
        grants = self.grants(session_id, need)
        verdict, origin = judge_need(need, rules.lists, tuple(rule for grant in grants for rule in _to_rules(grant)))
        is_by_rule = verdict.rule is None or verdict.rule.action == "allow"
        by = "rule" if is_by_rule else _find_granting(need, grants)
        return _Judgement(need, verdict, _make_decision(need, verdict, origin, session_id, tool), by)

    def grants(self, session_id: str, need: Need) -> list[Grant]:
        """Return the earlier "always" answers that may cover a need: those for its location."""
        if not need.always:
            return []
        location = scope_of(need.metadata)
        return [grant for grant in self.store.permissions.list_grants(session_id) if grant.place == location]

    def reply(self, answer: PermissionAnswer, always: Sequence[str] = ()) -> bool:
        """Settle a question, and the others that the answer covers, in one transaction; False when it no longer waits.

        "always" also allows every other question of the session and of its children that the patterns cover: those of
        `always`, or else of the question. "reject" without a message, which ends the turn, also rejects all others of
        the session.
        """
        pending = self.store.pending_permissions()
        answered_request = next((request for request in pending if request.id == answer.request_id), None)
        if answered_request is None:
            return False
        answered_request = replace(answered_request, always=list(always)) if always else answered_request
        answer = PermissionAnswer(
            session_id=answered_request.session_id,
            request_id=answered_request.id,
            reply=answer.reply,
            message=answer.message,
        )
        others = [
            other
            for other in pending
            if other.id != answered_request.id and self._follows(other, answered_request, answer)
        ]
        replies = (PermissionReplied(properties=answer), *(_copy_reply(other, answer) for other in others))

        def make_events() -> Sequence[StoredEvent]:
            # Within the transaction: after a crash there is neither a grant without its answer nor the reverse.
            if answer.reply == "always":
                self.store.permissions.remember(answered_request)
            return replies

        self.store.append_from(make_events)
        return True

    def _follows(self, other: PermissionRequest, request: PermissionRequest, answer: PermissionAnswer) -> bool:
        match answer.reply:
            case "once":
                return False
            case "reject":
                return not answer.message and other.session_id == request.session_id
            case "always":
                return _covers(request, other) and self._is_within(other.session_id, request.session_id)

    def _is_within(self, session_id: str, ancestor: str) -> bool:
        visited: set[str] = set()  # parents are stored by other processes, too: a cycle must not hang this one
        current: str | None = session_id
        while current is not None and current not in visited:
            if current == ancestor:
                return True
            visited.add(current)
            session = self.store.find_session(current)
            current = session.parent_id if session else None
        return False

    async def _ask_user(
        self, judgements: Sequence["_Judgement"], session_id: str, tool: QuestionTool | None
    ) -> PermissionAnswer:
        need, verdict = judgements[0].need, judgements[0].verdict
        # A need with only the pattern `*` says nothing to a user; DOUBTFUL_KEY stands for it.
        others = [each for each in judgements[1:] if each.verdict.patterns != ("*",)]
        also = [f"{each.need.permission}: {', '.join(each.verdict.patterns)}" for each in others]
        metadata = {**need.metadata, ALSO_KEY: also} if also else need.metadata
        if any(each.holds_for_session for each in judgements):
            metadata = {**metadata, KEPT_KEY: True}
        if any(each.verdict.is_doubtful for each in judgements):
            metadata = {**metadata, DOUBTFUL_KEY: True}
        request = replace(_make_request(need, verdict, session_id, tool), metadata=metadata)
        seq = self.store.append(PermissionAsked(properties=request))
        try:
            while True:
                try:
                    return await self._wait_for_answer(request, seq)
                except GapError:
                    # The answer may be among the events that are gone. What it was is then unknown: not a yes.
                    seq = self.store.last_seq()
                    if not self._is_pending(request):
                        return _make_rejection(request)
        finally:
            # Still pending: the turn was cancelled, and no client should show the question any more.
            if self._is_pending(request):
                self.store.append(PermissionReplied(properties=_make_rejection(request)))

    def _is_pending(self, request: PermissionRequest) -> bool:
        return any(pending.id == request.id for pending in self.store.pending_permissions(request.session_id))

    async def _wait_for_answer(self, request: PermissionRequest, after: int) -> PermissionAnswer:
        """Wait for the answer among the events after the question. Raises GapError when they are no longer kept."""
        stream = self.store.follow(after, session=request.session_id)
        try:
            async for event in stream:
                match event.event:
                    case PermissionReplied(properties=answer) if answer.request_id == request.id:
                        return answer
                    case SessionDeleted(properties=session_info) if session_info.session_id == request.session_id:
                        return _make_rejection(request)
                    case _:
                        pass
        finally:
            await _close(stream)
        return _make_rejection(request)  # the stream ends without an answer when the store is closed


async def _close(stream: AsyncIterator[Stamped]) -> None:
    # Leaving `async for` does not close a generator, and the store would go on filling its queue.
    if isinstance(stream, AsyncGenerator):
        await stream.aclose()


def _make_rejection(request: PermissionRequest) -> PermissionAnswer:
    return PermissionAnswer(session_id=request.session_id, request_id=request.id, reply="reject")


def _make_request(need: Need, verdict: Verdict, session_id: str, tool: QuestionTool | None) -> PermissionRequest:
    return PermissionRequest(
        id=new_id("per"),
        session_id=session_id,
        permission=need.permission,
        patterns=list(verdict.patterns),
        metadata=need.metadata,
        always=list(need.always),
        tool=tool,
    )


def _copy_reply(request: PermissionRequest, answer: PermissionAnswer) -> PermissionReplied:
    return PermissionReplied(
        properties=PermissionAnswer(session_id=request.session_id, request_id=request.id, reply=answer.reply)
    )


def _make_decision(need: Need, verdict: Verdict, origin: str, session_id: str, tool: QuestionTool | None) -> Decision:
    """Make the record of a decision; `action` and `by` are filled in when it is known who decides."""
    patterns = (verdict.patterns if verdict.action == "deny" else need.patterns)[: DECISION_PATTERNS.value]
    return Decision(
        session_id=session_id,
        time=now_ms(),
        action="allow",
        permission=need.permission,
        patterns=[pattern[: DECISION_PATTERN.value] for pattern in patterns],
        by="",
        origin=origin,
        rule=verdict.rule,
        traits=list(need.traits),
        unproven=need.unproven,
        call=tool,
    )


class _Judgement(Struct, frozen=True):
    """The verdict on a need. `by`: what decided it without a question: a rule, an "always" or an extension."""

    need: Need
    verdict: Verdict
    decision: Decision
    by: str

    @property
    def holds_for_session(self) -> bool:
        """Return whether a yes holds for the session: when the rule that asked is one for a kind of file.

        A general rule that asks for every edit, for example, goes on asking.
        """
        rule = self.verdict.rule
        return self.need.once and rule is not None and rule.pattern in FILE_KINDS


def _describe_answer(answer: PermissionAnswer) -> str:
    """Return who answered a question, and how."""
    return {AUTO: "--auto", NOBODY: "nobody"}.get(answer.message or "", f"{BY_USER}, {answer.reply}")


def _to_rules(grant: Grant) -> tuple[PermissionRule, ...]:
    return tuple(PermissionRule(permission=grant.permission, pattern=p, action="allow") for p in grant.patterns)


def _find_granting(need: Need, grants: Sequence[Grant]) -> str:
    """Return the id of the "always" that allowed a need, as decisions store it."""
    for grant in grants:
        if any(find_last_match(need.permission, pattern, _to_rules(grant)) for pattern in need.patterns):
            return f"grant {grant.id}"
    return "grant"


def _covers(request: PermissionRequest, other: PermissionRequest) -> bool:
    """Return whether the "always" of one question answers another, which must offer "always" for the same location."""
    # Neither where the effect is uncertain nor where the answer also decides needs that the user has not seen here.
    if other.metadata.get(DOUBTFUL_KEY) or other.metadata.get(ALSO_KEY) or not other.always:
        return False
    if scope_of(other.metadata) != scope_of(request.metadata):
        return False
    need = Need(permission=other.permission, patterns=tuple(other.patterns))
    always_rules = tuple(
        PermissionRule(permission=request.permission, pattern=p, action="allow") for p in request.always
    )
    return decide(need, grants=always_rules).action == "allow"
