"""The gate that every tool call passes: decides its needs by rules, and where a user is asked,
waits for the answer.
"""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from codeloop.permission.rule_patterns import FILE_KINDS
from codeloop.permission.rules import RuleLayers, Verdict, judge_need
from codeloop.schema.errors import HookRefused
from codeloop.schema.event import (
    PermissionAnswer,
)
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.limits import DECISION_PATTERN, DECISION_PATTERNS
from codeloop.schema.permission import (
    AUTO_MESSAGE,
    NOBODY_MESSAGE,
    Action,
    Decision,
    Grant,
    Need,
    PermissionRequest,
    QuestionTool,
)
from codeloop.schema.wire import replace
from codeloop.store.permission_records import get_grant_place
from codeloop.store.store import Store

KEPT_KEY = "kept"
"""Metadata key of a question: once allowed, the same need is not asked
about again in the session.
"""
# The names under which decisions store who made them;
# databases hold them, so the texts stay as they are.
BY_USER = "person"
BY_EXTENSION = "extension"


class Denied(Exception):
    """A rule or an extension forbids a need; no user was asked.
    `reason`: the text of an extension that denied it.
    """

    advice = "Do not try to achieve the same by other means."
    """Is added to the message for the model; users don't see it."""

    def __init__(self, need: Need, verdict: Verdict, reason: str | None = None) -> None:
        self.need = need
        self.verdict = verdict
        if reason is not None:
            super().__init__(reason)
            return
        rule = verdict.rule
        cause = f" by the rule {rule.permission} {rule.pattern}: {rule.action}" if rule else ""
        if verdict.is_doubtful:
            cause += f", which could apply since {need.unproven or 'a part of the line is only known when it runs'}"
        super().__init__(
            f"Permission denied{cause}: {need.permission} {', '.join(verdict.patterns)}."
        )


class Rejected(Exception):
    """The user refused, or no user was there to ask.

    With a `message` the turn continues, so that the model can follow it;
    without one it ends after this step.
    """

    def __init__(self, need: Need, message: str | None) -> None:
        self.need = need
        self.message = message
        self.advice = (
            "Find another way or say in your answer what you could not do."
            if message == NOBODY_MESSAGE
            else ""
        )
        suffix = f" and said: {message}" if message else "."
        super().__init__(
            NOBODY_MESSAGE
            if message == NOBODY_MESSAGE
            else f"The user rejected this {need.permission} call{suffix}"
        )


class CallRules(Struct, frozen=True):
    """The rules for a call: lists that it must all pass, its own first.
    The strictest verdict counts.

    `approves_questions`: where the rules ask, the answer is yes and no user sees a
    question (the profile yolo).
    `find_barrier`: returns why a need is denied whatever rules and answers say; "": it is for them.
    """

    lists: tuple[RuleLayers, ...]
    approves_questions: bool = False
    find_barrier: Callable[[Need], str] = lambda _: ""


AskExtensions = Callable[[PermissionRequest], Awaitable[Action]]
"""Asks extensions about a question: they allow it, deny it, or leave it to the user."""


class _Judgement(Struct, frozen=True):
    """The verdict on a need, before any question, and the record of the decision,
    which is completed after it.

    `decided_by`: by whom it is decided where no user is asked: `rule`, `grant` with an id,
    or `extension`.
    """

    need: Need
    verdict: Verdict
    decision: Decision
    decided_by: str

    @property
    def holds_for_session(self) -> bool:
        """Whether a yes holds for the rest of the session: only if the rule that
        asked is for a kind of file.

        A general rule that asks about every edit, for example, goes on asking.
        """
        rule = self.verdict.rule
        return self.need.once and rule is not None and rule.pattern in FILE_KINDS


class Gate(Struct, frozen=True):
    """Decides needs for a session; questions, grants and decisions live in the store,
    so any process may answer.
    """

    store: Store

    async def authorize(
        self,
        needs: Sequence[Need],
        session_id: str,
        tool: QuestionTool | None,
        rules: CallRules,
        extensions: AskExtensions | None = None,
    ) -> bool:
        """Wait until all needs are allowed; return whether the user was asked,
        which may have taken days.

        All needs of a call share one question: about the first one that must be asked, with the
        others in `also` of its metadata. Its "always" covers the first one alone.
        Every decision is stored with its reason.
        A need that offers no "always" is asked every time: no earlier "always" covers it.
        A question whose waiting task is cancelled is withdrawn: answered with a rejection that
        rejects nothing else. `extensions` may allow or deny what would be asked; they are not asked
        about what a rule denies, nor about a need that was decided before (`Need.preset`).
        Raises Denied when a rule or an extension forbids one, HookRefused when an extension also
        ends the turn, and Rejected when the user refuses or nobody can be asked.
        """
        judgements = [self._judge(need, session_id, tool, rules) for need in needs]
        for each in judgements:
            if barrier := rules.find_barrier(each.need):
                self.store.permissions.store_decision(
                    replace(each.decision, action="deny", by="rule", origin=barrier)
                )
                raise Denied(each.need, each.verdict, barrier)
        # All denials before any question: a user must not be asked about a call
        # that can't run anyway.
        for each in judgements:
            if each.verdict.action == "deny":
                self.store.permissions.store_decision(
                    replace(each.decision, action="deny", by="rule")
                )
                raise Denied(each.need, each.verdict)
        judgements = [
            await self._ask_extensions(each, session_id, tool, extensions) for each in judgements
        ]
        open_judgements = [each for each in judgements if each.verdict.action == "ask"]
        answer: PermissionAnswer | None = None
        # A question of a hook or of the tool itself is for the user: the profile yolo
        # answers only those of rules.
        is_for_user = not rules.approves_questions or any(
            each.need.preset is not None for each in open_judgements
        )
        if open_judgements and is_for_user:
            answer = await self._ask_user(open_judgements, session_id, tool)
            self._check_answerer(open_judgements, answer)
        by = _describe_answerer(answer) if answer is not None else "profile yolo"
        is_rejected = answer is not None and answer.reply == "reject"
        # After a rejection the call does not run, so the needs that rules allow leave no record.
        action = "deny" if is_rejected else "allow"
        for each in open_judgements if is_rejected else judgements:
            decided_by = by if each.verdict.action == "ask" else each.decided_by
            self.store.permissions.store_decision(
                replace(each.decision, action=action, by=decided_by)
            )
        if answer is not None and is_rejected:
            raise Rejected(open_judgements[0].need, answer.message)
        if answer is not None and answer.reply == "once" and by.startswith(BY_USER):
            self._remember_once(open_judgements, answer)
        return answer is not None

    def _check_answerer(self, judgements: Sequence[_Judgement], answer: PermissionAnswer) -> None:
        """Raise Denied if `--auto` has allowed what only a user can allow (`Need.not_by_auto`)."""
        if answer.reply == "reject" or answer.message != AUTO_MESSAGE:
            return
        for each in judgements:
            if each.need.not_by_auto:
                self.store.permissions.store_decision(
                    replace(each.decision, action="deny", by="--auto")
                )
                raise Denied(each.need, replace(each.verdict, action="deny"), each.need.not_by_auto)

    async def _ask_extensions(
        self,
        judgement: _Judgement,
        session_id: str,
        tool: QuestionTool | None,
        extensions: AskExtensions | None,
    ) -> _Judgement:
        """Apply what was decided before the gate (`need.preset`), then let extensions answer;
        return the judgement.

        A need that rules allow becomes a question if that decision is "ask". One that would be
        asked is allowed if it is "allow"; without such a decision extensions may allow or deny it.
        Raises Denied, and HookRefused when an extension ends the turn.
        """
        need, verdict, reason = judgement.need, judgement.verdict, ""
        if verdict.action == "allow" and need.preset == "ask":
            verdict = replace(verdict, action="ask", patterns=need.patterns)
        action = verdict.action
        if action == "ask" and need.preset != "ask":
            action = need.preset or action
            if action == "ask" and extensions is not None:
                try:
                    action = await extensions(_make_request(need, verdict, session_id, tool))
                except HookRefused as error:
                    # The extension also ends the turn, so the caller needs the error itself.
                    if error.ends:
                        self.store.permissions.store_decision(
                            replace(judgement.decision, action="deny", by=BY_EXTENSION)
                        )
                        raise
                    action, reason = "deny", str(error)
        if action == "deny":
            self.store.permissions.store_decision(
                replace(judgement.decision, action="deny", by=BY_EXTENSION)
            )
            reason = (
                reason or f"An extension denied this: {need.permission} {', '.join(need.patterns)}."
            )
            raise Denied(need, verdict, reason)
        if action != verdict.action:
            return replace(
                judgement, verdict=replace(verdict, action=action), decided_by=BY_EXTENSION
            )
        return replace(judgement, verdict=verdict)

    def _remember_once(self, judgements: Sequence[_Judgement], answer: PermissionAnswer) -> None:
        """Remember the allowed needs that are asked about only once in a session."""
        for number, each in enumerate(judgements):
            if each.holds_for_session:
                grant = Grant(
                    # The number keeps ids apart: one answer may allow several needs.
                    id=f"{answer.request_id}.{number}",
                    session_id=answer.session_id,
                    directory="",
                    time=now_ms(),
                    permission=each.need.permission,
                    patterns=list(each.verdict.patterns),
                )
                self.store.permissions.add_grants([grant])

    def _judge(
        self, need: Need, session_id: str, tool: QuestionTool | None, rules: CallRules
    ) -> _Judgement:
        # Imported late: an answer without a call judges nothing.
        from codeloop.permission.grants import describe_grant, make_grant_rules

        grants = self.list_grants(session_id, need)
        verdict, origin = judge_need(
            need, rules.lists, tuple(rule for grant in grants for rule in make_grant_rules(grant))
        )
        # This counts for allowed needs only. Where one is allowed and its rule asks,
        # a grant has answered the question.
        is_by_rule = verdict.rule is None or verdict.rule.action == "allow"
        decided_by = "rule" if is_by_rule else describe_grant(need, grants)
        return _Judgement(
            need, verdict, _make_decision(need, verdict, origin, session_id, tool), decided_by
        )

    def list_grants(self, session_id: str, need: Need) -> list[Grant]:
        """Return the grants that may cover a need: those given for its location;
        none, if it offers no "always".
        """
        if not need.always:
            return []
        location = get_grant_place(need.metadata)
        return [
            grant
            for grant in self.store.permissions.list_session_grants(session_id)
            if grant.place == location
        ]

    async def _ask_user(
        self, judgements: Sequence[_Judgement], session_id: str, tool: QuestionTool | None
    ) -> PermissionAnswer:
        # Imported late: most calls ask nobody.
        from codeloop.permission.grants import ALSO_KEY, DOUBTFUL_KEY
        from codeloop.permission.questions import ask_user

        need, verdict = judgements[0].need, judgements[0].verdict
        # A need with only the pattern `*` tells a user nothing; DOUBTFUL_KEY stands for it.
        others = [each for each in judgements[1:] if each.verdict.patterns != ("*",)]
        also = [f"{each.need.permission}: {', '.join(each.verdict.patterns)}" for each in others]
        metadata = {**need.metadata, ALSO_KEY: also} if also else need.metadata
        if any(each.holds_for_session for each in judgements):
            metadata = {**metadata, KEPT_KEY: True}
        if any(each.verdict.is_doubtful for each in judgements):
            metadata = {**metadata, DOUBTFUL_KEY: True}
        request = replace(_make_request(need, verdict, session_id, tool), metadata=metadata)
        return await ask_user(self.store, request)


def _make_request(
    need: Need, verdict: Verdict, session_id: str, tool: QuestionTool | None
) -> PermissionRequest:
    return PermissionRequest(
        id=new_id("per"),
        session_id=session_id,
        permission=need.permission,
        patterns=list(verdict.patterns),
        metadata=need.metadata,
        always=list(need.always),
        tool=tool,
    )


def _make_decision(
    need: Need, verdict: Verdict, origin: str, session_id: str, tool: QuestionTool | None
) -> Decision:
    """Make the record of a decision; `action` and `by` are filled in when
    it is known who decides.
    """
    patterns = (verdict.patterns if verdict.action == "deny" else need.patterns)[
        : DECISION_PATTERNS.value
    ]
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


def _describe_answerer(answer: PermissionAnswer) -> str:
    """Return who answered a question, and how."""
    reply = "session" if answer.reply == "always" and answer.scope == "session" else answer.reply
    return {AUTO_MESSAGE: "--auto", NOBODY_MESSAGE: "nobody"}.get(
        answer.message or "", f"{BY_USER}, {reply}"
    )
