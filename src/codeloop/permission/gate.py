"""Where a permission question waits for its answer, whoever gives it: this process's terminal or another process."""

from dataclasses import dataclass

from codeloop.permission.rules import Verdict, decide
from codeloop.schema.event import PermissionAnswer, PermissionAsked, PermissionReplied
from codeloop.schema.ids import new_id
from codeloop.schema.rules import Need, PermissionRequest, Rule, Ruleset, ToolRef
from codeloop.store.store import Store


class Denied(Exception):
    """A rule forbids it; nobody was asked."""

    def __init__(self, need: Need, verdict: Verdict) -> None:
        self.need = need
        self.verdict = verdict
        rule = verdict.rule
        why = f" by the rule {rule.permission} {rule.pattern}: {rule.action}" if rule else ""
        what = ", ".join(verdict.patterns)
        super().__init__(
            f"Permission denied{why}: {need.permission} {what}. Do not try to reach the same by other means."
        )


class Rejected(Exception):
    """A person said no. With `message`, the turn goes on with their words; without, it ends after this step."""

    def __init__(self, need: Need, message: str | None) -> None:
        self.need = need
        self.message = message
        super().__init__(
            f"The user rejected this {need.permission} call" + (f" and said: {message}" if message else ".")
        )


@dataclass(frozen=True)
class Gate:
    """Decides needs for a session; questions and grants live in the store, so any process may answer."""

    store: Store

    async def pass_through(self, need: Need, session_id: str, tool: ToolRef, *rulesets: Ruleset) -> None:
        """Return when allowed. Asks when the rules say so, and waits for as long as the person needs.

        Raises Denied when a rule forbids it, Rejected when a person does.
        """
        verdict = decide(need, *rulesets, grants=self.grants(session_id))
        if verdict.action == "allow":
            return
        if verdict.action == "deny":
            raise Denied(need, verdict)
        answer = await self._question(need, verdict, session_id, tool)
        if answer.reply == "reject":
            raise Rejected(need, answer.message)

    def grants(self, session_id: str) -> Ruleset:
        """Give what the answers "always" of this session (and the session it is a child of) allow."""
        return tuple(
            Rule(permission=request.permission, pattern=pattern, action="allow")
            for request in self.store.granted(session_id)
            for pattern in request.always
        )

    def reply(self, answer: PermissionAnswer) -> None:
        """Settle a question, and with it what the answer covers.

        "always" settles every other question that its patterns cover; "reject" without words rejects all others of the session.
        """
        events = [PermissionReplied(properties=answer)]
        others = [r for r in self.store.pending_permissions(answer.session_id) if r.id != answer.request_id]
        settled = self.store.permission(answer.request_id)
        for other in others:
            if answer.reply == "reject" and not answer.message:
                events.append(_answer(other, answer))
            elif answer.reply == "always" and _covers(settled, other):
                events.append(_answer(other, answer))
        self.store.append(*events)

    async def _question(self, need: Need, verdict: Verdict, session_id: str, tool: ToolRef) -> PermissionAnswer:
        request = PermissionRequest(
            id=new_id("per"),
            session_id=session_id,
            permission=need.permission,
            patterns=list(verdict.patterns),
            metadata=need.metadata,
            always=list(need.always),
            tool=tool,
        )
        seq = self.store.append(PermissionAsked(properties=request))
        try:
            async for stamped in self.store.follow(seq, session=session_id):
                match stamped.event:
                    case PermissionReplied(properties=answer) if answer.request_id == request.id:
                        return answer
                    case _:
                        pass
        finally:
            if any(r.id == request.id for r in self.store.pending_permissions(session_id)):
                closed = PermissionAnswer(session_id=session_id, request_id=request.id, reply="reject")
                self.store.append(PermissionReplied(properties=closed))
        raise AssertionError("a follower ends only by being closed")


def _answer(request: PermissionRequest, answer: PermissionAnswer) -> PermissionReplied:
    return PermissionReplied(
        properties=PermissionAnswer(session_id=request.session_id, request_id=request.id, reply=answer.reply)
    )


def _covers(settled: PermissionRequest | None, other: PermissionRequest) -> bool:
    if settled is None:
        return False
    grants = tuple(Rule(permission=settled.permission, pattern=p, action="allow") for p in settled.always)
    need = Need(permission=other.permission, patterns=tuple(other.patterns))
    return decide(need, grants=grants).action == "allow"
