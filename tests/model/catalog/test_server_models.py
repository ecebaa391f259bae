"""The list of models of a server whose address was typed."""

import pytest

from codeloop.model.catalog.server_models import request_server_models
from codeloop.model.errors import ModelUnavailable


@pytest.mark.parametrize("address", ["[::1", "[::1/v1", "http://[::1", "[localhost]:80"])
async def test_an_address_with_a_wrong_bracket_is_refused_in_words(address: str) -> None:
    with pytest.raises(ModelUnavailable, match="is not a valid base URL"):
        await request_server_models(address)
