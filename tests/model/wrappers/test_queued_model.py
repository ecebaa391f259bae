"""Tests of the limit of a provider's concurrent requests."""

import asyncio
from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path

import pytest

from codeloop.model.chat import Finished, ModelEvent, ModelInfo, ModelRequest
from codeloop.model.errors import ModelUnavailable
from codeloop.model.provider import read_concurrency
from codeloop.model.wrappers.queued_model import QueuedModel
from codeloop.model.wrappers.retrying_model import RetryingModel
from tests.model.test_providers import World
from tests.support.answers import Answer
from tests.support.model_server import ModelServer
from tests.support.models import no_proxies, send_request

__all__ = ["no_proxies"]


class Counting:
    """Counts how many of its streams are open."""

    info = ModelInfo(provider_id="p", id="m", name="M")

    def __init__(self) -> None:
        self.open = self.most = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        del request
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            await asyncio.sleep(0.01)
            yield Finished("stop")
        finally:
            self.open -= 1


async def test_further_requests_wait_for_a_slot_that_a_cancelled_one_gives_back() -> None:
    counting, slots = Counting(), asyncio.Semaphore(2)
    models = [QueuedModel(counting, slots) for _ in range(3)]
    tasks = [asyncio.create_task(send_request(RetryingModel(models[at % 3]))) for at in range(8)]
    await asyncio.sleep(0.005)
    tasks[0].cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert counting.most == 2
    assert counting.open == 0
    assert sum(isinstance(each, asyncio.CancelledError) for each in done) == 1


async def test_the_configuration_bounds_the_requests_of_all_models_of_a_provider(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    async with ModelServer([Answer(text="one two three four", deltas=0, delay=0.01)]) as server:
        options = {"baseURL": server.url, "concurrency": 1}
        world.config = {"provider": {"mine": {"options": options, "models": {"a": {}, "b": {}}}}}
        providers = world.providers()
        models = [
            providers.open_model("mine/a"),
            providers.open_model("mine/b"),
            providers.open_model("mine/a"),
        ]
        got = await asyncio.gather(*(send_request(model) for model in models))
        assert [each.text for each in got] == ["one two three four"] * 3
        times = sorted(request.at for request in server.requests)
    assert min(later - earlier for earlier, later in pairwise(times)) > 0.04, (
        "an answer takes about 0.08 s"
    )


@pytest.mark.parametrize("said", [0, -1, "two", True, 1.5])
def test_what_is_no_number_of_requests_is_named(tmp_path: Path, said: object) -> None:
    world = World(tmp_path)
    world.config = {
        "provider": {"mine": {"options": {"baseURL": "http://127.0.0.1:9", "concurrency": said}}}
    }
    with pytest.raises(ModelUnavailable, match=r"provider\.mine\.options\.concurrency is"):
        read_concurrency(world.row("mine"))
