"""Converts rules into the form that a configuration file has."""

from codeloop.schema.wire import JSON


def convert_rules_to_config(rules: list[JSON]) -> JSON:
    """Return rules as a configuration file has them: `{"bash": {"git *": "allow"},
    "edit": "deny"}`.

    Rules that a later one overrides completely are omitted. All rules of a permission are put where
    its first one is, since an object can have each key only once.
    """
    form: dict[str, JSON] = {}
    for rule in _drop_overridden(rules):
        form.setdefault(rule["permission"], {})[rule["pattern"]] = rule["action"]
    return {name: each["*"] if each.keys() == {"*"} else each for name, each in form.items()}


def _drop_overridden(rules: list[JSON]) -> list[JSON]:
    """Return the rules without those of which a later rule matches all patterns;
    the last matching rule counts.
    """
    later: set[tuple[str, str]] = set()
    effective_rules: list[JSON] = []
    for rule in reversed(rules):
        permission, pattern = rule["permission"], rule["pattern"]
        if not later & {("*", "*"), (permission, "*"), ("*", pattern), (permission, pattern)}:
            effective_rules.append(rule)
        later.add((permission, pattern))
    return effective_rules[::-1]
