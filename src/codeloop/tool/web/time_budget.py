"""`TimeBudget`: the seconds that a call may spend on the network."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from codeloop.tool.tool import ToolFailure


@dataclass
class TimeBudget:
    """The seconds that may be spent on the network: the rest of a total.
    Waiting for the user does not count.
    """

    remaining: float
    total: float

    @asynccontextmanager
    async def spend(self) -> AsyncGenerator[None]:
        """Limit the block by the remaining time, and subtract its duration.
        Raises ToolFailure when time runs out.
        """
        began = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, self.remaining)):
                yield
        except TimeoutError:
            raise ToolFailure(
                f"No complete response came within {self.total:g} s.",
                advice="Try again with a longer timeout, or fetch something smaller.",
            ) from None
        finally:
            self.remaining -= time.monotonic() - began
