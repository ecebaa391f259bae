"""`{env:..}` and `{file:..}`: replaced once, in texts only, and never for an untrusted project."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeloop.schema.errors import CodeloopError
from tests.config.conftest import World
from tests.support.examples import SHARED_FIXTURE_CHECKS, scale_examples


def test_variables_and_files_are_put_in(world: World) -> None:
    world.write(world.paths.config / "key", "\n secret \n")
    world.write(world.top / "home.txt", "home")
    world.globally(
        {
            "provider": {
                "x": {
                    "options": {
                        "apiKey": "Bearer {file:key}",
                        "n": 1,
                        "list": ["{env:A}-{env:UNSET}-{env:A}"],
                    }
                }
            },
            "username": "{file:~/home.txt}",
        }
    )
    config = world.load(environment={"A": "a"}).config
    assert config.provider["x"].options == {"apiKey": "Bearer secret", "n": 1, "list": ["a--a"]}
    assert config.username == "home"


@pytest.mark.parametrize(
    ("zone", "used"), [(None, "Europe/Oslo"), ("", "Europe/Oslo"), ("Asia/Tokyo", "Asia/Tokyo")]
)
def test_a_variable_can_have_a_default(world: World, zone: str | None, used: str) -> None:
    world.globally({"username": "{env:TZNAME:-Europe/Oslo}"})
    assert world.load(environment={} if zone is None else {"TZNAME": zone}).config.username == used


def test_a_project_s_files_are_relative_to_their_own_folder(world: World) -> None:
    world.write("sub/.codeloop/prompt.md", "Be brief.")
    world.write(
        "sub/.codeloop/codeloop.json", {"agent": {"build": {"prompt": "{file:./prompt.md}"}}}
    )
    assert world.load("sub").config.agent["build"].prompt == "Be brief."


def test_a_missing_file_is_an_error_that_names_both_places(world: World) -> None:
    file = world.globally('{\n  "username": "{file:nothing}"}')
    with pytest.raises(
        CodeloopError, match=re.escape(f"{file}:2:15: the file {file.parent}/nothing")
    ):
        world.load()


def test_what_comes_in_is_not_replaced_again(world: World) -> None:
    world.write(world.paths.config / "self", "{file:self} {env:A}")
    world.globally({"username": "{file:self}{env:B}"})
    assert (
        world.load(environment={"A": "a", "B": "{env:A}"}).config.username
        == "{file:self} {env:A}{env:A}"
    )


def test_an_untrusted_project_is_not_told_anything(world: World) -> None:
    world.write("secret", "secret")
    texts = {"instructions": ["{file:secret}", "x{env:A}.md", "plain.md"], "model": "x/{env:A}"}
    world.write("codeloop.json", {**texts, "disabled_providers": ["{env:A}"]})
    config = world.load(trusted=False, environment={"A": "aha"}).config
    assert (config.instructions, config.model, config.disabled_providers) == (
        ["plain.md"],
        None,
        ["{env:A}"],
    )


@settings(suppress_health_check=SHARED_FIXTURE_CHECKS, max_examples=scale_examples(60))
@given(
    st.lists(
        st.one_of(
            st.text(alphabet="ab{}:env", max_size=6), st.sampled_from(["{env:A}", "{env:NONE}"])
        )
    )
)
def test_everything_around_a_reference_stays(world: World, parts: list[str]) -> None:
    text = "".join(parts)
    names = re.findall(r"\{env:([^{}]+)\}", text)
    expected = text
    for name in set(names):
        expected = expected.replace(f"{{env:{name}}}", "<A>" if name.strip() == "A" else "")
    world.globally({"username": text})
    assert world.load(environment={"A": "<A>"}).config.username == expected
