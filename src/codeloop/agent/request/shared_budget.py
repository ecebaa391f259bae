"""A budget in dollars shared by several sessions,
across the projects and threads of this process.
"""

import asyncio
import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from threading import Lock

from codeloop.schema.api.session_inputs import BudgetShare

# Dollars by which a sum of costs may exceed the budget, since sums of floats are inexact.
_ROUNDING_ERROR = 1e-9


class SharedBudget:
    """A shared budget. A call starts only if the highest cost of a call so far still fits,
    besides the calls in flight.

    A call is a request to a model here. Its cost is not known before the model's first one has
    ended; until then that one runs alone.
    """

    def __init__(self, limit: float, *, spent: float = 0.0, name: str = "shared budget") -> None:
        """`limit`, `spent`: the dollars of the budget, and those already spent.
        `name`: as refusals call it.
        """
        self.limit = limit
        self.spent = spent
        self._name = name
        self.parent: SharedBudget | None = None
        """A further budget into which every call has to fit as well; None: there is none."""
        self._refusal = ""
        self._lock = Lock()
        self._reservations: dict[str, tuple[str, float]] = {}
        """The calls in flight by session: the model,
        and the dollars that are reserved for the call.
        """
        self._highest_costs: dict[str, float] = {}
        """By model: the dollars that its most expensive call has cost."""
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        """The events of the calls that wait for room, each with the loop that it belongs to."""

    @property
    def refusal(self) -> str:
        """Why no further call is started; "": there is room."""
        return self._refusal or (self.parent.refusal if self.parent is not None else "")

    @asynccontextmanager
    async def reserve(self, session_id: str, model: str) -> AsyncGenerator[bool]:
        """Wait for room for a call, and reserve it until the call ends.
        Yields False when there never will be.
        """
        if self.parent is None:
            async with self._reserve(session_id, model) as is_affordable:
                yield is_affordable
            return
        async with (
            self.parent.reserve(session_id, model) as fits_above,
            self._reserve(session_id, model) as fits,
        ):
            yield fits_above and fits

    @asynccontextmanager
    async def _reserve(self, session_id: str, model: str) -> AsyncGenerator[bool]:
        is_affordable = self._try_reserve(session_id, model)
        while is_affordable is None:
            released = asyncio.Event()
            with self._lock:
                self._waiting.append((asyncio.get_running_loop(), released))
            is_affordable = self._try_reserve(session_id, model)
            # Asked again after joining the queue: a call may have ended in between.
            if is_affordable is None:
                await released.wait()
        try:
            yield is_affordable
        finally:
            self._end_call(session_id)

    def pay(self, cost: float) -> None:
        """Add dollars to what was spent."""
        with self._lock:
            self.spent += cost
        if self.parent is not None:
            self.parent.pay(cost)

    def end_call(self, session_id: str, cost: float | None = None) -> None:
        """Release the dollars reserved for a session's call, if it is still in flight.

        `cost`: its whole cost; None: not known, so that nothing is learnt for later calls.
        """
        if self.parent is not None:
            self.parent.end_call(session_id, cost)
        self._end_call(session_id, cost)

    def _end_call(self, session_id: str, cost: float | None = None) -> None:
        with self._lock:
            reservation = self._reservations.pop(session_id, None)
            if reservation is None:
                return
            if cost is not None:
                model, _ = reservation
                self._highest_costs[model] = max(cost, self._highest_costs.get(model, 0.0))
            waiting, self._waiting = self._waiting, []
        for loop, released in waiting:
            if not loop.is_closed():
                # Sessions of other projects run in other threads, each with its own loop.
                loop.call_soon_threadsafe(released.set)

    def _try_reserve(self, session_id: str, model: str) -> bool | None:
        """Reserve room for a call and return True; False: there is none,
        None: wait until another call ends.
        """
        with self._lock:
            highest_cost = self._highest_costs.get(model, math.inf)
            used = self.spent + sum(amount for _, amount in self._reservations.values())
            # A model whose cost is unknown may run once, alone, as long as anything is left.
            is_first = (
                math.isinf(highest_cost) and not self._reservations and self.spent < self.limit
            )
            if not self._refusal and (
                is_first or used + highest_cost <= self.limit + _ROUNDING_ERROR
            ):
                self._reservations[session_id] = (model, highest_cost)
                return True
            if not self._refusal and self._reservations:
                return None
            cost_note = (
                ""
                if math.isinf(highest_cost)
                else f", and a call has cost up to {format_dollars(highest_cost)}"
            )
            limit, spent = format_dollars(self.limit), format_dollars(self.spent)
            self._refusal = f"The {self._name} of {limit} is used up: {spent} spent{cost_note}."
            return False


class SharedBudgets:
    """Shared budgets by id, as named by clients; beyond the limit the oldest are forgotten."""

    def __init__(self, shared_budgets: dict[str, SharedBudget] | None = None) -> None:
        self._by_id = dict(shared_budgets or {})

    def find(self, share: BudgetShare) -> SharedBudget:
        """Return the budget of a share; the first share with an id makes it."""
        from codeloop.schema.bounds.session import SHARED_BUDGETS

        shared_budget = self._by_id.get(share.id)
        if shared_budget is None:
            while len(self._by_id) >= SHARED_BUDGETS.value:
                del self._by_id[next(iter(self._by_id))]
            shared_budget = self._by_id[share.id] = SharedBudget(share.cost)
        return shared_budget


def format_dollars(amount: float) -> str:
    """Return dollars without an exponent: two digits after the point at least, eight at most."""
    digits, _, rest = f"{amount:.8f}".rstrip("0").partition(".")
    return f"${digits}.{rest:0<2}"
