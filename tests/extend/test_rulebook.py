"""Where the rules of an agent come from, in words."""

from pathlib import Path

from codeloop.extend.rulebook import Rulebook
from tests.extend.settings import settings_of, write

USER = '{"agent": {"build": {"only": ["read"]}}, "permission": {"read": {"keys/*": "deny"}}}'
PROJECT = '{"permission": {"read": {"notes/*": "deny"}}}'


def test_the_rules_of_a_list_of_tools_are_the_users_and_restrictions_the_projects(
    tmp_path: Path,
) -> None:
    file = write(tmp_path, "home/config/codeloop.json", USER)
    write(tmp_path, "work/codeloop.json", PROJECT)
    settings = settings_of(tmp_path, trust=False)
    layer = Rulebook(settings.loaded, tmp_path / "scratch").get_layers("build", "auto")[-1]
    origins = {
        (rule.permission, rule.pattern, rule.action): layer.find_origin(index)
        for index, rule in enumerate(layer.rules)
    }
    assert origins["question", "*", "allow"] == "agent build (built-in)"
    assert origins["*", "*", "deny"] == f"global ({file}:1:30)"
    assert origins["read", "*", "allow"] == f"global ({file}:1:30)"
    assert origins["sandbox", "*", "ask"] == "profile auto", "repeated behind those of `only`"
    assert origins["read", "keys/*", "deny"] == f"global ({file}:1:76)", (
        "repeated behind those of `only`"
    )
    *_, (_, restricting) = Rulebook(settings.loaded, tmp_path / "scratch").list_fixed_rules(
        "build", "auto"
    )
    assert [
        (rule.pattern, restricting.find_origin(index))
        for index, rule in enumerate(restricting.rules)
    ] == [("notes/*", "the project, which is not trusted")]
