"""What an "always" covers: the grants that it leaves, and the other questions that it answers."""

from collections.abc import Sequence

from codeloop.permission.rule_patterns import find_last_match
from codeloop.permission.rules import decide
from codeloop.schema.permission import Grant, Need, PermissionRequest, PermissionRule
from codeloop.store.permission_records import get_grant_place

ALSO_KEY = "also"
"""Metadata key of a question: the further needs of the call, which the answer decides as well."""
DOUBTFUL_KEY = "uncertain"
"""Metadata key of a question: the effect is not fully known,
so the "always" of another question does not settle it.
"""


def make_grant_rules(grant: Grant) -> tuple[PermissionRule, ...]:
    """Return the rules that a grant stands for."""
    return tuple(
        PermissionRule(permission=grant.permission, pattern=p, action="allow")
        for p in grant.patterns
    )


def describe_grant(need: Need, grants: Sequence[Grant]) -> str:
    """Describe the grant that allowed a need, as decisions store it: `grant` and its id."""
    for grant in grants:
        if any(
            find_last_match(need.permission, pattern, make_grant_rules(grant))
            for pattern in need.patterns
        ):
            return f"grant {grant.id}"
    return "grant"


def is_covered_by_always(request: PermissionRequest, other: PermissionRequest) -> bool:
    """Return whether the "always" of one question answers another,
    which must offer "always" for the same location.
    """
    # Not if its effect is uncertain, nor if it has further needs: the user, who saw `request`,
    # saw nothing of these.
    if other.metadata.get(DOUBTFUL_KEY) or other.metadata.get(ALSO_KEY) or not other.always:
        return False
    if get_grant_place(other.metadata) != get_grant_place(request.metadata):
        return False
    need = Need(permission=other.permission, patterns=tuple(other.patterns))
    always_rules = tuple(
        PermissionRule(permission=request.permission, pattern=p, action="allow")
        for p in request.always
    )
    return decide(need, grants=always_rules).action == "allow"
