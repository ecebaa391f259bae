"""The table in docs/models.md says what the rows say of the models that are used most."""

import pytest

from codeloop.model.catalog.services import find_protocol
from codeloop.model.chat import ModelInfo
from codeloop.model.providers import ADAPTERS
from scripts.build_models import PAGE, find_models, replace_table

MODELS = find_models()


def test_the_table_is_current() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert replace_table(text) == text, "run `make reference`"


@pytest.mark.parametrize("info", MODELS, ids=[info.ref for info in MODELS])
def test_each_of_the_models_can_be_asked_and_has_its_limits_and_price(info: ModelInfo) -> None:
    assert find_protocol(info) in ADAPTERS
    assert info.tool_call
    assert info.limits.context >= 100_000
    assert info.prices.is_known


def test_there_are_fifty() -> None:
    assert len({info.ref for info in MODELS}) == 50
