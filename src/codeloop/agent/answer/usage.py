"""Counts a request's tokens and cost: as its service reports, else estimated from bytes and images.

What is counted goes to the ledger of the store: an estimate when the request is sent,
then what is known of it.
"""

import time
from functools import cached_property

import msgspec

from codeloop.agent.engine import Engine
from codeloop.agent.request.shared_budget import SharedBudget
from codeloop.kit.growing_sum import GrowingSum
from codeloop.model.chat import (
    CallDelta,
    CallPiece,
    CallStarted,
    Finished,
    ImagePiece,
    ModelEvent,
    ModelInfo,
    ModelMessage,
    ModelRequest,
    Prices,
    ReasoningDelta,
    ReasoningPiece,
    ResultPiece,
    RetryScheduled,
    TextDelta,
    TextPiece,
    ToolSpec,
    UsageUpdate,
)
from codeloop.schema.event import StoredEvent, make_session_updated
from codeloop.schema.ids import now_ms
from codeloop.schema.limits import CHECKPOINT_INTERVAL
from codeloop.schema.message import NO_TOKENS, AssistantMessage, Tokens
from codeloop.schema.wire import replace
from codeloop.store.ledger import LedgerEntry, PaidRequest, RequestKind, SpendingLedger
from codeloop.store.store import Store

BYTES_PER_TOKEN = 4
"""Bytes of UTF-8 a token, roughly."""
TOKENS_PER_IMAGE = 1_500
"""Tokens of an image or a PDF, roughly."""


class TokenEstimate:
    """Estimates how many tokens the requests of a conversation hold;
    each time, only what is new is counted.
    """

    def __init__(self) -> None:
        self._messages = GrowingSum(_count_message_bytes)
        self._tools = GrowingSum(_count_tool_bytes)

    def estimate(self, request: ModelRequest) -> int:
        """Estimate how many tokens a request holds, from its bytes and images."""
        size = (
            _count_bytes(request.system)
            + self._tools.update(request.tools)
            + self._messages.update(request.messages)
        )
        return size // BYTES_PER_TOKEN


class Usage:
    """Counts one request while its answer streams, and adds what it used to the session's sums,
    never twice.

    An attempt that is made again after an error counts as well: its tokens are paid for.
    """

    def __init__(
        self,
        prices: Prices,
        request: ModelRequest,
        budget: SharedBudget | None = None,
        estimate: TokenEstimate | None = None,
    ) -> None:
        """`estimate`: that of the earlier requests of the conversation, if it is kept."""
        self._budget = budget
        self._estimate = estimate or TokenEstimate()
        self._entry: LedgerEntry | None = None
        """The request's row in the ledger; None: there is none, or it is settled."""
        self._updated_at = 0.0
        """When that row was last written (`time.monotonic`)."""
        self._cost_in_budget = 0.0
        """The dollars of this request that were added to the budget."""
        self._prices = prices
        self._request = request
        self._streamed_bytes = 0
        self._reported = NO_TOKENS
        """The tokens of the current attempt as the service reports them."""
        self._is_complete = False
        """Whether the answer came to its end, without an error."""
        self._earlier_attempts = NO_TOKENS
        self._stored_cost = 0.0
        self._stored_tokens = NO_TOKENS
        """With `_stored_cost`: the part of this request that is in the session's sums."""

    def begin_entry(self, ledger: SpendingLedger, request: PaidRequest) -> None:
        """Add the request to the ledger, before it is sent, with the cost of its estimated input.

        So other processes count it while it runs, and it stays counted if this process is killed.
        """
        tokens = replace(NO_TOKENS, input=self._estimated_input)
        tokens = replace(tokens, estimated=tokens.input or None)
        cost = self._prices.compute_cost(tokens)
        self._entry, self._updated_at = (
            ledger.begin(replace(request, cost=cost, tokens=tokens)),
            time.monotonic(),
        )

    def count_event(self, event: ModelEvent) -> None:
        """Count an event of the answer."""
        match event:
            case (
                TextDelta(text=text)
                | ReasoningDelta(text=text)
                | CallDelta(text=text)
                | CallStarted(name=text)
            ):
                self._streamed_bytes += len(text) if text.isascii() else _count_bytes(text)
                if (
                    self._entry is not None
                    and time.monotonic() - self._updated_at >= CHECKPOINT_INTERVAL.seconds
                ):
                    self._update_entry(self._entry)
            case UsageUpdate(tokens=tokens):
                is_first = not self._reported.all
                self._reported = tokens
                if is_first and self._entry is not None:
                    self._update_entry(self._entry)
            case RetryScheduled(tokens=tokens):
                self._reported = tokens if tokens.all else self._reported
                self._earlier_attempts = self._earlier_attempts.plus(self.tokens)
                self._reported, self._streamed_bytes = NO_TOKENS, 0
                if self._entry is not None:
                    self._update_entry(self._entry)
            case Finished(tokens=tokens, error=error, reason=reason):
                self._reported = tokens if tokens.all else self._reported
                self._is_complete = error is None and reason != "cut"
                self._pay_budget()
                # A request that failed before it cost anything does not show what a request costs.
                if self._budget is not None and self._request.session_id:
                    self._budget.end_call(
                        self._request.session_id,
                        self.cost if self._is_complete or self.cost else None,
                    )
            case _:
                pass

    @property
    def tokens(self) -> Tokens:
        """Tokens of the last attempt; none when no answer came."""
        reported = self._reported
        if not (self._streamed_bytes or reported.all or self._is_complete):
            return NO_TOKENS
        output = reported.output
        if not (self._is_complete and output):
            output = max(output, self._streamed_bytes // BYTES_PER_TOKEN)
        has_input = bool(reported.input or reported.cache.read or reported.cache.write)
        input_tokens = reported.input if has_input else self._estimated_input
        estimated = (output - reported.output) + (input_tokens - reported.input)
        tokens = replace(reported, input=input_tokens, output=output, estimated=estimated or None)
        return replace(tokens, total=tokens.all)

    @cached_property
    def _estimated_input(self) -> int:
        """The tokens of the request, estimated once."""
        return self._estimate.estimate(self._request)

    @property
    def cost(self) -> float:
        """Dollars for all attempts."""
        return self._prices.compute_cost(self.tokens) + self._prices.compute_cost(
            self._earlier_attempts
        )

    @property
    def total_tokens(self) -> Tokens:
        """Tokens of all attempts."""
        return self.tokens.plus(self._earlier_attempts)

    def add_to(self, info: AssistantMessage) -> AssistantMessage:
        """Return an answer's info with its usage so far."""
        earlier_attempts = self._earlier_attempts if self._earlier_attempts.all else None
        return replace(info, cost=self.cost, tokens=self.tokens, retried=earlier_attempts)

    def store_sums(self, store: Store, session_id: str, *events: StoredEvent) -> None:
        """Add what was used since the last call to the sums of the session and its parents,
        and settle the ledger.

        The answer has ended, or is given up. `events` are stored in the same transaction.
        """
        self._pay_budget()
        cost, tokens = self.cost, self.total_tokens
        new_cost, new_tokens = cost - self._stored_cost, tokens.plus(self._stored_tokens, -1)

        def make_events() -> list[StoredEvent]:
            # Within the transaction, so that what is paid for and what was paid
            # are stored together.
            self._settle(cost, tokens)
            sums = (
                make_sum_events(store, session_id, new_cost, new_tokens)
                if new_cost or new_tokens.all
                else []
            )
            return [*events, *sums]

        store.append_made_events(make_events)
        self._entry = None
        self._stored_cost, self._stored_tokens = cost, tokens

    def settle_entry(self) -> None:
        """Store in the ledger what the request has cost in all,
        where no session has sums to add it to.
        """
        self._settle(self.cost, self.total_tokens)
        self._entry = None

    def _settle(self, cost: float, tokens: Tokens) -> None:
        if self._entry is not None:
            self._entry.settle(cost, tokens)

    def _update_entry(self, entry: LedgerEntry) -> None:
        entry.update(self.cost, self.total_tokens)
        self._updated_at = time.monotonic()

    def _pay_budget(self) -> None:
        """Add new costs to the budget shared with other sessions."""
        if self._budget is not None:
            self._budget.pay(self.cost - self._cost_in_budget)
            self._cost_in_budget = self.cost


def start_usage(
    engine: Engine,
    session_id: str,
    info: ModelInfo,
    request: ModelRequest,
    *,
    kind: RequestKind,
    message_id: str = "",
    estimate: TokenEstimate | None = None,
) -> Usage:
    """Start to count a request of a session that is about to be sent, and add it to the ledger.

    `message_id`: the message that its answer becomes; "": it becomes none. `estimate`: see `Usage`.
    Raises StoreError if the ledger can't be written: then nothing may be spent.
    """
    usage = Usage(info.prices, request, engine.turn_settings.shared_budget, estimate)
    session = (
        engine.store.read_context(session_id).session
        if message_id
        else engine.store.find_session(session_id)
    )
    root_id = session_id
    if session is not None and session.parent_id is not None:
        *_, root = engine.store.walk_ancestors(session.id)
        root_id = root.id
    paid_request = PaidRequest(
        session_id=session_id,
        root_id=root_id,
        message_id=message_id,
        directory=str(engine.workspace.directory) if session is None else session.directory,
        path="" if session is None else session.path or "",
        model=info.ref,
        kind="subagent" if kind == "turn" and root_id != session_id else kind,
    )
    usage.begin_entry(engine.store.ledger, paid_request)
    return usage


def make_sum_events(
    store: Store, session_id: str | None, cost: float, tokens: Tokens
) -> list[StoredEvent]:
    """Return the events that add dollars and tokens to the sums of a session and its parents;
    None: of no session.
    """
    events: list[StoredEvent] = []
    while session_id is not None and (session := store.find_session(session_id)) is not None:
        time = replace(session.time, updated=now_ms())
        total = (session.tokens or NO_TOKENS).plus(tokens)
        session = replace(session, cost=(session.cost or 0.0) + cost, tokens=total, time=time)
        events.append(make_session_updated(session))
        session_id = session.parent_id
    return events


def _count_tool_bytes(tool: ToolSpec) -> int:
    return len(tool.description) + len(msgspec.json.encode(tool.parameters))


def _count_message_bytes(message: ModelMessage) -> int:
    size = 0
    for piece in message.content:
        match piece:
            case ImagePiece():
                size += TOKENS_PER_IMAGE * BYTES_PER_TOKEN
            case (
                TextPiece(text=text)
                | ReasoningPiece(text=text)
                | ResultPiece(output=text)
                | CallPiece(arguments=text)
            ):
                size += _count_bytes(text)
    return size


def _count_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
