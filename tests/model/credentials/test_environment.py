"""Tests of a child's environment: it contains no key of a provider,
whatever the name of the variable.
"""

from hypothesis import given
from hypothesis import strategies as st

from codeloop.model.catalog.catalog import Catalog
from codeloop.model.credentials.environment import find_environment_key, remove_keys

CATALOG = Catalog()
NAMES = st.sampled_from(sorted(CATALOG.environment_names))
KEYS = st.text(
    st.characters(codec="ascii", categories=("Lu", "Ll", "Nd")), min_size=20, max_size=60
)


@given(st.dictionaries(NAMES, KEYS, max_size=6), KEYS)
def test_no_providers_variable_and_no_copy_of_its_key_is_left(
    keys: dict[str, str], stored: str
) -> None:
    plain = {"PATH": "/usr/bin:/bin", "HOME": "/home/me", "LANG": "C.UTF-8"}
    copies = {f"MY_{number}": f"--key={key}" for number, key in enumerate(keys.values())}
    cleaned = remove_keys({**plain, **keys, **copies, "STORED": stored}, CATALOG, [stored])
    assert not keys.keys() & cleaned.keys()
    assert "STORED" not in cleaned
    assert plain.items() <= cleaned.items()
    for name, value in keys.items():
        if not name.endswith(
            ("_ID", "_NAME", "_REGION", "_HOST", "_PROJECT", "_LOCATION", "_URL", "_ENDPOINT")
        ):
            assert not any(value in kept for kept in cleaned.values()) or name.endswith(
                ("_ACCOUNT", "_CREDENTIALS")
            )


def test_a_setting_of_a_provider_does_not_take_the_path_with_it() -> None:
    environment = {
        "GOOGLE_VERTEX_PROJECT": "my-long-project",
        "PATH": "/home/me/my-long-project/bin",
        "AZURE_API_KEY": "x",
    }
    assert remove_keys(environment, CATALOG) == {"PATH": "/home/me/my-long-project/bin"}


def test_keys_that_the_user_lets_through_stay_but_for_the_password_of_our_server() -> None:
    environment = {
        "OPENAI_API_KEY": "sk-12345678901234",
        "CODELOOP_SERVER_PASSWORD": "x" * 16,
        "ANTHROPIC_API_KEY": "y" * 16,
    }
    shown = ["OPENAI_*", "CODELOOP_*"]
    assert remove_keys(environment, CATALOG, (), shown).keys() == {"OPENAI_API_KEY"}


def test_a_key_is_found_in_other_variables_without_the_line_end_behind_it() -> None:
    key = "sk-0123456789abcdef"
    assert remove_keys({"OPENAI_API_KEY": f"{key}\n", "MY_KEY": key}, CATALOG) == {}


def test_short_and_empty_keys_take_nothing_else_with_them() -> None:
    assert remove_keys({"OPENAI_API_KEY": "", "A": "b"}, CATALOG, ["", "b"]) == {"A": "b"}


def test_the_first_variable_with_a_key_counts_and_settings_are_no_keys() -> None:
    names = ("AZURE_RESOURCE_NAME", "AZURE_API_KEY")
    assert find_environment_key(names, {"AZURE_RESOURCE_NAME": "mine", "AZURE_API_KEY": " k "}) == (
        "AZURE_API_KEY",
        "k",
    )
    assert (
        find_environment_key(names, {"AZURE_RESOURCE_NAME": "mine", "AZURE_API_KEY": "  "}) is None
    )
