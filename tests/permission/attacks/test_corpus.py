"""Every script of the corpus, given to the bash tool under several sets of rules,
does not do what it is there for.
"""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from codeloop.permission.defaults import make_base_rules, make_guard_rules
from codeloop.permission.gate import Denied
from codeloop.permission.rules import decide, find_strictest
from codeloop.schema.permission import Action, Need, PermissionRule, Ruleset
from codeloop.tool.builtin.shell.bash import bash
from codeloop.tool.tool import ToolFailure
from tests.permission.attacks.stage import Attack, attacks, build, does, environment, has_done
from tests.tool.context import TestContext, make_context

_NAMES = """
echo printf cat ls sort head tail grep rg sed find test [ [[ : true cd tee tr cut uniq wc diff
tree nl od xxd base64 sleep wait
"""
USUAL = (*_NAMES.split(), *(f"git {name}" for name in ("status", "log", "diff", "show", "grep")))
ALLOWED: dict[str, Action] = {f"{name} *": "allow" for name in USUAL}


def rules(permission: str, patterns: dict[str, Action]) -> Ruleset:
    """Return the rules of one permission."""
    return tuple(
        PermissionRule(permission=permission, pattern=p, action=a) for p, a in patterns.items()
    )


EVERYTHING = frozenset({"rm", "run", "write", "read"})
ASKS = rules("edit", {"*": "ask"})
RULESETS: dict[str, tuple[Ruleset, frozenset[str]]] = {
    "usual commands, asked otherwise": (
        (*ASKS, *rules("bash", {"*": "ask", **ALLOWED})),
        EVERYTHING,
    ),
    "usual commands, denied otherwise": (
        (*ASKS, *rules("bash", {"*": "deny", **ALLOWED})),
        EVERYTHING,
    ),
    "echo and git status": (
        (*ASKS, *rules("bash", {"*": "ask", "echo *": "allow", "git status *": "allow"})),
        EVERYTHING,
    ),
    "read-only": ((*ASKS, *rules("bash", {"*": "ask", "<read-only>": "allow"})), EVERYTHING),
    "read-only, denied otherwise": (
        rules("bash", {"*": "deny", "<read-only>": "allow"}),
        EVERYTHING,
    ),
    "all but rm": ((*rules("bash", {"*": "allow", "rm *": "deny"}),), frozenset({"rm"})),
    "all, edits asked": ((*rules("bash", {"*": "allow"}), *ASKS), frozenset({"write"})),
    "all": (rules("bash", {"*": "allow"}), frozenset({"read"})),
}
OPAQUE = ("python3 ", "perl -e", "perl -pe", "awk ", "make ", "script ")
"""Programs that are told in a language of their own what to do: a fence of
rules does not see into them.
"""


@dataclass
class RuledContext(TestContext):
    """A context whose questions nobody answers."""

    base: Ruleset = ()
    ruleset: Ruleset = ()

    async def ask(self, *needs: Need) -> bool:
        self.asked += needs
        for need in needs:
            verdict = find_strictest(
                [
                    decide(need, self.base, self.ruleset),
                    decide(need, make_guard_rules(self.ruleset)),
                ]
            )
            if verdict.action != "allow":
                raise Denied(need, verdict)
        return False


def ruled(root: Path, ruleset: Ruleset) -> RuledContext:
    """Return a context over the work tree of that folder."""
    plain = make_context(root)
    plain.workspace.environment = environment(root / "work")
    it = RuledContext(
        plain.session_id, plain.message_id, plain.call_id, plain.workspace, plain.store
    )
    it.base, it.ruleset = make_base_rules("auto", plain.workspace.scratch), ruleset
    return it


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("attacks"))


async def run(attack: Attack, ctx: RuledContext) -> str | None:
    """Return what the tool printed for a script, None when it was refused."""
    try:
        return (await bash.run(bash.params(command=attack.script, reset=True), ctx)).output
    except (Denied, ToolFailure):
        return None


@pytest.mark.slow
@pytest.mark.parametrize("name", RULESETS)
async def test_nothing_of_the_corpus_gets_through(
    name: str, template: Path, tmp_path: Path
) -> None:
    ruleset, kinds = RULESETS[name]
    work = tmp_path / "work"
    shutil.copytree(template, work, symlinks=True)
    ctx = ruled(tmp_path, ruleset)
    through: list[str] = []
    for attack in attacks():
        is_opaque = name.startswith("all") and any(word in attack.script for word in OPAQUE)
        if attack.kind not in kinds or is_opaque:
            continue
        said = await run(attack, ctx)
        if said is not None:
            if has_done(attack, work, said):
                through.append(attack.script)
            shutil.rmtree(work)
            shutil.copytree(template, work, symlinks=True)
    await ctx.workspace.close()
    assert not through, "\n---\n".join(through)


@pytest.mark.slow
def test_every_script_does_what_it_is_there_for(template: Path, tmp_path: Path) -> None:
    def one(numbered: tuple[int, Attack]) -> str | None:
        number, attack = numbered
        return None if does(attack, template, tmp_path / str(number)) else attack.script

    with ThreadPoolExecutor(4) as threads:
        idle = [script for script in threads.map(one, enumerate(attacks())) if script is not None]
    assert not idle
