"""Why a session in a linked work tree changes nothing in the other trees of its repository."""

import os
from pathlib import Path

from codeloop.schema.permission import Need
from codeloop.workspace.workspace import Workspace


def find_tree_barrier(workspace: Workspace, need: Need) -> str:
    """Return why a need that would change another work tree is denied; "": it changes none, or this is the main tree.

    The names of files are those that rules match: relative to the work tree, absolute outside of it.
    """
    if need.permission != "edit" or not workspace.other_trees.exist:
        return ""
    for name in (*need.patterns, *need.possible):
        # An unknown part of a name has a mark in it, which leaves the folders before it as they are.
        tree = workspace.other_trees.find_tree(Path(os.path.normpath(workspace.root / name)))
        if tree is not None:
            return (
                f"This session works in the work tree {workspace.root} and changes nothing in another one, here {tree}"
                f" ({name}). Change the file of this work tree; `codeloop worktree merge` brings it over. To work "
                f"there instead, the user starts codeloop in it: `codeloop --dir {tree}`."
            )
    return ""
