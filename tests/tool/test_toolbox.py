"""Which tools are offered, and what a call as the model sent it turns into."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.app.toolbox import make_toolbox
from codeloop.kit.wildcard import matches
from codeloop.model.quirks import OPENAI_QUIRKS
from codeloop.schema.limits import TOOL_ARGUMENTS
from codeloop.schema.permission import PermissionRule
from codeloop.tool.tool import ToolContext, ToolResult, Traits, tool
from codeloop.tool.toolbox import InvalidToolCall, PreparedCall, Toolbox, edits_by_patch


class Params(msgspec.Struct, rename="camel"):
    """What it takes."""

    file_path: str
    limit: int = 5
    items: list[str] = []


@tool("look", params=Params, description="Looks.")
async def look(params: Params, ctx: ToolContext) -> ToolResult:
    """Look."""
    return ToolResult("", params.file_path)


@tool("change", params=Params, traits=Traits(permission="edit"), description="Changes.")
async def change(params: Params, ctx: ToolContext) -> ToolResult:
    """Change."""
    return ToolResult("", params.file_path)


BOX = Toolbox((look, change))
ANY_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


def prepared(name: str, arguments: str) -> Params:
    found = BOX.prepare(name, arguments)
    assert isinstance(found, PreparedCall), found
    assert isinstance(found.params, Params)
    return found.params


def invalid(name: str, arguments: str) -> InvalidToolCall:
    found = BOX.prepare(name, arguments)
    assert isinstance(found, InvalidToolCall), found
    return found


def rule(permission: str, action: Any, pattern: str = "*") -> PermissionRule:
    return PermissionRule(permission=permission, pattern=pattern, action=action)


def names(*rules: PermissionRule) -> list[str]:
    return [spec.name for spec in BOX.list_specs("any", rules)]


def test_a_good_call_is_read() -> None:
    assert prepared("look", '{"filePath": "a"}') == Params(file_path="a")
    found = BOX.prepare("look", '{"filePath": "a"}')
    assert isinstance(found, PreparedCall)
    assert (found.tool, found.input) == (look, {"filePath": "a"})


@pytest.mark.parametrize("name", ["Look", "LOOK", " look "])
def test_the_case_of_a_name_does_not_matter(name: str) -> None:
    assert prepared(name, '{"filePath": "a"}').file_path == "a"


def test_a_name_that_could_mean_two_tools_is_unknown() -> None:
    twins = Toolbox((look, tool("LOOK", params=Params, description="Other.")(look.run)))
    assert isinstance(twins.prepare("Look", '{"filePath": "a"}'), InvalidToolCall)
    exact = twins.prepare("LOOK", '{"filePath": "a"}')
    assert isinstance(exact, PreparedCall)
    assert exact.tool.description == "Other."


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"filePath": "a", "limit": "7"}', Params(file_path="a", limit=7)),
        ('{"filePath": "a", "items": "[\\"x\\"]"}', Params(file_path="a", items=["x"])),
        ('{"filePath": "a", "unknown": 1}', Params(file_path="a")),
        (' {"filePath": "{a}"} ', Params(file_path="{a}")),
        ('"x"', Params(file_path="x")),
        ("src/a.py", Params(file_path="src/a.py")),
        ('[{"filePath": "a", "limit": 3}]', Params(file_path="a", limit=3)),
        ('{"filePath": "a, ]",\n "items": ["b",],}', Params(file_path="a, ]", items=["b"])),
        ("{'filePath': 'a', 'limit': 3}", Params(file_path="a", limit=3)),
    ],
)
def test_what_is_unambiguous_is_repaired(arguments: str, expected: Params) -> None:
    assert prepared("look", arguments) == expected


@pytest.mark.parametrize(
    "arguments", ["null", "[]", '"x', "7", '{"filePath": "a', '{"filePath": "a"}}', "\udcff"]
)
def test_what_is_no_object_is_unusable_and_says_what_is_expected(arguments: str) -> None:
    found = invalid("look", arguments)
    assert found.is_unusable
    assert found.input == {}
    assert found.reason.startswith("The arguments of look are not a JSON object: ")
    assert "(filePath: string, " in found.reason


@pytest.mark.parametrize(
    "arguments", ["{}", '{"filePath": 7.5, "limit": "x"}', '{"filePath": null}']
)
def test_wrong_arguments_are_named_with_the_schema(arguments: str) -> None:
    found = invalid("look", arguments)
    assert not found.is_unusable
    assert found.input == msgspec.json.decode(arguments)
    assert "invalid arguments" in found.reason
    assert "(filePath: string, " not in found.reason
    assert "(filePath: string, " in found.advice


def test_arguments_beyond_their_bounds_are_refused_before_they_are_read() -> None:
    found = invalid("look", '{"filePath": "' + "x" * TOOL_ARGUMENTS.value)
    assert found.input == {}
    assert (
        found.reason
        == "The arguments of look have more than 4,194,304 characters, so it was not run."
    )
    for text in (
        '{"items": [' + '"a",' * 2_000 + '"a"]}',
        '{"x": {"y": [[' + "1," * 2_000 + "1]]}}",
    ):
        found = invalid("look", text)
        assert found.reason.startswith(
            "The arguments of look have a list of more than 2,000 items"
        ), text[:40]
    assert prepared("look", '{"filePath": "' + "," * 5_000 + '"}') == Params(file_path="," * 5_000)


def test_an_unknown_tool_is_told_with_the_known_ones() -> None:
    found = invalid("teleport", '{"to": "mars"}')
    assert found == InvalidToolCall(
        "There is no tool named teleport. The tools are: change, look.",
        {"to": "mars"},
        is_unusable=True,
    )


@pytest.mark.slow
@given(value=ANY_JSON, name=st.sampled_from(["look", "change", "", "x"]))
def test_whatever_a_model_sends_it_is_prepared_or_refused_with_a_reason(
    value: Any, name: str
) -> None:
    found = BOX.prepare(name, msgspec.json.encode(value).decode())
    assert isinstance(found.input, dict)
    if isinstance(found, InvalidToolCall):
        assert found.reason


@given(text=st.text(st.characters(codec=None), max_size=30))
def test_text_that_is_no_json_never_breaks_it(text: str) -> None:
    assert BOX.prepare("look", text)


def test_tools_are_offered_in_a_fixed_order_unless_denied_altogether() -> None:
    assert names() == ["look", "change"]
    assert names(rule("look", "deny")) == ["change"]
    assert names(rule("edit", "deny")) == ["look"]
    assert names(rule("edit", "deny", "*.py")) == ["look", "change"]
    assert names(rule("*", "deny"), rule("look", "ask")) == ["look"]
    assert names(rule("look", "deny"), rule("look", "allow", "a")) == ["look", "change"]


def test_a_specification_is_the_same_object_each_time() -> None:
    assert BOX.list_specs("any")[0] is BOX.list_specs("any")[0]


def test_the_built_in_tools_are_named_once_each() -> None:
    assert len(make_toolbox().tools_by_name) == len(make_toolbox().tools)
    assert {
        "bash",
        "read",
        "write",
        "edit",
        "glob",
        "grep",
        "list",
        "todowrite",
        "todoread",
    } <= set(make_toolbox().tools_by_name)


@pytest.mark.parametrize(
    ("model", "patches"),
    [
        *(
            (f"gpt-{number}", True)
            for number in ("5", "5.4", "6-sol", "7", "8-mini", "9", "10", "12-codex")
        ),
        *((f"openrouter/openai/gpt-{number}", True) for number in ("5", "7")),
        *((name, True) for name in ("openai.gpt-7", "codex-mini-latest", "gpt-5-codex")),
        *(
            (name, False)
            for name in (
                "gpt-4.1",
                "gpt-4o",
                "gpt-3.5-turbo",
                "gpt-oss-120b",
                "openai/gpt-oss-20b",
                "gpt-1",
            )
        ),
    ],
)
def test_successors_of_gpt_5_edit_by_patches(model: str, patches: bool) -> None:
    assert edits_by_patch(model) == patches
    own_name = model.rpartition("/")[2].removeprefix("openai.")
    assert (
        any(matches(own_name, pattern) for pattern in OPENAI_QUIRKS.patch_grammar_models) == patches
    )
