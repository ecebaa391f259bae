"""Whether a line is allowed without a question, as the bash tool would have it."""

from codeloop.permission.defaults import make_guard_rules
from codeloop.permission.rules import decide
from codeloop.schema.permission import Action, PermissionRule, Ruleset
from codeloop.shell.analysis import analyse
from codeloop.tool.builtin.shell.line_needs import LineNeeds
from codeloop.tool.builtin.shell.machine_facts import gather_facts
from codeloop.tool.builtin.shell.touched_files import find_touched_files
from codeloop.workspace.process.shells import ShellContext
from codeloop.workspace.workspace import Workspace
from tests.permission.attacks.observed import Stage


class Judge:
    """Decides lines under rules for particular commands: everything else, and every edit,
    gets the first action.
    """

    def __init__(self, stage: Stage, first: Action, allowed: tuple[str, ...]) -> None:
        scratch = stage.work.with_name("scratch")
        scratch.mkdir()
        self._workspace = Workspace(stage.work, stage.work, scratch, stage.environment)
        self._place = ShellContext("ses_1", stage.work, stage.environment, scratch)
        self._rules: Ruleset = (
            *(
                PermissionRule(permission=name, pattern="*", action="allow")
                for name in ("read", "external_directory")
            ),
            *(
                PermissionRule(permission=name, pattern="*", action=first)
                for name in ("bash", "edit")
            ),
            *(
                PermissionRule(permission="bash", pattern=pattern, action="allow")
                for pattern in allowed
            ),
        )

    def allows(self, line: str) -> bool:
        """Return whether nothing would be asked or denied."""
        directory = self._workspace.directory
        analysis = analyse(line, gather_facts(line, directory, self._place, self._workspace))
        files = find_touched_files(analysis.touches, directory, self._workspace)
        needs = LineNeeds(line, analysis, files, directory).list_needs(
            self._workspace, lambda _, __: {}
        )
        lists = (self._rules, make_guard_rules(self._rules))
        return all(decide(need, rules).action == "allow" for need in needs for rules in lists)
