"""An untrusted project can only make the sandbox tighter."""

import pytest

from codeloop.config.trust.layer_filter import _filter_sandbox
from codeloop.schema.wire import JSON


@pytest.mark.parametrize(
    ("before", "wanted", "kept"),
    [
        ({"mode": "auto"}, {"mode": "off"}, None),
        ({}, {"mode": "off"}, None),
        ({}, {"mode": "auto"}, {"mode": "auto"}),
        ({}, {"mode": "required"}, {"mode": "required"}),
        ({"mode": "off"}, {"mode": "auto"}, {"mode": "auto"}),
        ({"mode": "required"}, {"mode": "auto"}, None),
        ({}, {"network": "on"}, None),
        ({}, {"network": "off"}, {"network": "off"}),
        ({"network": "off"}, {"network": "hosts"}, None),
        ({}, {"writable": ["/"]}, None),
        ({}, {"readable": ["~/.ssh"]}, None),
        ({}, {"hosts": ["evil.example"]}, {"hosts": []}),
        ({"hosts": ["a", "b"]}, {"hosts": ["b", "c"]}, {"hosts": ["b"]}),
        ({"hidden": ["a"]}, {"hidden": ["b"]}, {"hidden": ["a", "b"]}),
        ({"hidden": ["a"]}, {"hidden": []}, {"hidden": ["a"]}),
        ({}, "off", None),
        ({}, {"mode": 1, "network": [], "hosts": "x", "hidden": {}}, None),
    ],
)
def test_only_what_tightens_is_kept(before: JSON, wanted: object, kept: JSON | None) -> None:
    assert _filter_sandbox(wanted, {"sandbox": before}) == kept
