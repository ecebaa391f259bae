"""Where a permission question waits for its answer, from this process's terminal or from another process."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from msgspec import Struct

from codeloop.permission.rules import Verdict, decide, strictest
from codeloop.schema.event import PermissionAnswer, PermissionAsked, PermissionReplied, SessionDeleted, Stamped
from codeloop.schema.ids import new_id
from codeloop.schema.permission import NOBODY, Need, PermissionRequest, PermissionRule, QuestionTool, Ruleset
from codeloop.store.follow import GapError
from codeloop.store.store import Store

DOUBTFUL = "uncertain"
"""In the metadata of a question: what would happen is not wholly known, so no grant given elsewhere settles it."""


class Denied(Exception):
    """A rule forbids it; nobody was asked."""

    def __init__(self, need: Need, verdict: Verdict) -> None:
        self.need = need
        self.verdict = verdict
        rule = verdict.rule
        why = f" by the rule {rule.permission} {rule.pattern}: {rule.action}" if rule else ""
        if verdict.is_doubtful:
            why += f", which could apply since {need.unproven or 'a part of the line is only known when it runs'}"
        what = ", ".join(verdict.patterns)
        super().__init__(
            f"Permission denied{why}: {need.permission} {what}. Do not try to achieve the same by other means."
        )


class Rejected(Exception):
    """A person refused, or nobody was there. With `message` the turn continues; without, it ends after this step."""

    def __init__(self, need: Need, message: str | None) -> None:
        self.need = need
        self.message = message
        said = f" and said: {message}" if message else "."
        super().__init__(NOBODY if message == NOBODY else f"The user rejected this {need.permission} call{said}")


class Gate(Struct, frozen=True):
    """Decides needs for a session; questions and grants live in the store, so any process may answer."""

    store: Store

    async def pass_through(
        self, need: Need, session_id: str, tool: QuestionTool | None, *rulesets: Ruleset, within: Sequence[Ruleset] = ()
    ) -> None:
        """Return when allowed. Asks when the rules say so, and waits for as long as the person needs.

        `rulesets` are one list of rules. Each of `within` is another that the need must pass too: the strictest counts.

        A need that offers no "always" is asked every time: no earlier "always" covers it.
        A question whose waiting task is cancelled is withdrawn: answered with a rejection that rejects nothing else.
        Raises Denied when a rule forbids it, Rejected when a person does.
        """
        grants = self.grants(session_id) if need.always else ()
        lists = ((rule for ruleset in rulesets for rule in ruleset), *within)
        verdict = strictest([decide(need, tuple(rules), grants=grants) for rules in lists])
        if verdict.action == "allow":
            return
        if verdict.action == "deny":
            raise Denied(need, verdict)
        answer = await self._question(need, verdict, session_id, tool)
        if answer.reply == "reject":
            raise Rejected(need, answer.message)

    def grants(self, session_id: str) -> Ruleset:
        """Return what the answers "always" of this session, and of the sessions it is a child of, allow."""
        return tuple(rule for request in self.store.queries.granted(session_id) for rule in _allowed_by(request))

    def reply(self, answer: PermissionAnswer) -> bool:
        """Settle a question, and with it what the answer covers, in one transaction; False when it no longer waits.

        "always" settles every other question of the session and of its children that its patterns cover; "reject"
        without words rejects all others of the session.
        """
        pending = self.store.pending_permissions()
        settled = next((request for request in pending if request.id == answer.request_id), None)
        if settled is None:
            return False
        answer = PermissionAnswer(
            session_id=settled.session_id, request_id=settled.id, reply=answer.reply, message=answer.message
        )
        others = [other for other in pending if other.id != settled.id and self._follows(other, settled, answer)]
        self.store.append(PermissionReplied(properties=answer), *(_same_reply(other, answer) for other in others))
        return True

    def _follows(self, other: PermissionRequest, settled: PermissionRequest, answer: PermissionAnswer) -> bool:
        match answer.reply:
            case "once":
                return False
            case "reject":
                return not answer.message and other.session_id == settled.session_id
            case "always":
                return _covers(settled, other) and self._is_within(other.session_id, settled.session_id)

    def _is_within(self, session_id: str, ancestor: str) -> bool:
        seen: set[str] = set()
        current: str | None = session_id
        while current is not None and current not in seen:
            if current == ancestor:
                return True
            seen.add(current)
            session = self.store.find_session(current)
            current = session.parent_id if session else None
        return False

    async def _question(
        self, need: Need, verdict: Verdict, session_id: str, tool: QuestionTool | None
    ) -> PermissionAnswer:
        request = PermissionRequest(
            id=new_id("per"),
            session_id=session_id,
            permission=need.permission,
            patterns=list(verdict.patterns),
            metadata={**need.metadata, DOUBTFUL: True} if verdict.is_doubtful else need.metadata,
            always=list(need.always),
            tool=tool,
        )
        seq = self.store.append(PermissionAsked(properties=request))
        try:
            while True:
                try:
                    return await self._answer(request, seq)
                except GapError:
                    seq = self.store.last_seq()
                    if not self._is_pending(request):
                        return _rejection(request)
        finally:
            if self._is_pending(request):
                self.store.append(PermissionReplied(properties=_rejection(request)))

    def _is_pending(self, request: PermissionRequest) -> bool:
        return any(pending.id == request.id for pending in self.store.pending_permissions(request.session_id))

    async def _answer(self, request: PermissionRequest, after: int) -> PermissionAnswer:
        """Wait for the answer among the events after the question. Raises GapError when they are no longer kept."""
        stream = self.store.follow(after, session=request.session_id)
        try:
            async for stamped in stream:
                match stamped.event:
                    case PermissionReplied(properties=answer) if answer.request_id == request.id:
                        return answer
                    case SessionDeleted(properties=gone) if gone.session_id == request.session_id:
                        return _rejection(request)
                    case _:
                        pass
        finally:
            await _close(stream)
        return _rejection(request)


async def _close(stream: AsyncIterator[Stamped]) -> None:
    if isinstance(stream, AsyncGenerator):
        await stream.aclose()


def _rejection(request: PermissionRequest) -> PermissionAnswer:
    return PermissionAnswer(session_id=request.session_id, request_id=request.id, reply="reject")


def _same_reply(request: PermissionRequest, answer: PermissionAnswer) -> PermissionReplied:
    return PermissionReplied(
        properties=PermissionAnswer(session_id=request.session_id, request_id=request.id, reply=answer.reply)
    )


def _allowed_by(request: PermissionRequest) -> tuple[PermissionRule, ...]:
    return tuple(PermissionRule(permission=request.permission, pattern=p, action="allow") for p in request.always)


def _covers(settled: PermissionRequest, other: PermissionRequest) -> bool:
    if other.metadata.get(DOUBTFUL):
        return False
    need = Need(permission=other.permission, patterns=tuple(other.patterns))
    return decide(need, grants=_allowed_by(settled)).action == "allow"
