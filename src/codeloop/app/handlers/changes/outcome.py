"""The outcome of an undo or redo for each file, in the form of the API."""

from collections.abc import Sequence

from codeloop.schema.api.session_undo import FileConflict, FileDone, FilesOutcome
from codeloop.workspace.snapshot.object_store import TreeEntry
from codeloop.workspace.snapshot.restore import Conflict, Restoration, RestoreResult


def add_conflicts(outcome: RestoreResult, further: Sequence[Conflict]) -> RestoreResult:
    """Return an outcome with further conflicts, each file once, sorted by path."""
    paths = {each.path for each in outcome.conflicts}
    added = (*outcome.conflicts, *(each for each in further if each.path not in paths))
    return RestoreResult(
        outcome.restored, outcome.unchanged, tuple(sorted(added, key=lambda each: each.path))
    )


def describe_outcome(outcome: RestoreResult, restorations: Sequence[Restoration]) -> FilesOutcome:
    """Return an outcome in the form of the API."""
    restored = set(outcome.restored)
    return FilesOutcome(
        restored=list(outcome.restored),
        unchanged=list(outcome.unchanged),
        conflicts=[FileConflict(path=each.path, reason=each.reason) for each in outcome.conflicts],
        done=_describe_restorations([each for each in restorations if each.path in restored]),
    )


def _describe_restorations(restorations: Sequence[Restoration]) -> list[FileDone]:
    """Describe restored files for users; a deleted and a created file with the same
    content are one moved file.
    """
    deletions = {
        each.expected: each.path
        for each in restorations
        if each.desired is None and each.expected is not None
    }
    file_changes: list[FileDone] = []
    for restoration in restorations:
        match restoration:
            case Restoration(expected=None, desired=TreeEntry() as entry):
                source, path = deletions.pop(entry, None), restoration.path
                file_changes.append(
                    FileDone(path=path, what="moved" if source else "created", source=source)
                )
            case Restoration(expected=TreeEntry(blob=old), desired=TreeEntry(blob=new)):
                file_changes.append(
                    FileDone(path=restoration.path, what="content" if old != new else "mode")
                )
            case _:
                pass
    file_changes += (
        FileDone(path=path, what="deleted") for path in _find_deleted(restorations, file_changes)
    )
    return sorted(file_changes, key=lambda each: each.path)


def _find_deleted(
    restorations: Sequence[Restoration], file_changes: Sequence[FileDone]
) -> list[str]:
    """Return the files that were deleted and not moved."""
    moved = {each.source for each in file_changes}
    return [each.path for each in restorations if each.desired is None and each.path not in moved]
