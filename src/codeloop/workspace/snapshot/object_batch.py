"""Collects the objects of a scan, to store many of them at once."""

from collections.abc import Mapping

from codeloop.workspace.snapshot.object_store import (
    MAX_PACK_BYTES,
    MAX_PACK_OBJECTS,
    ObjectStore,
    TreeEntry,
    compute_object_id,
    format_tree,
)
from codeloop.workspace.snapshot.pack import PackedObject


class ObjectBatch:
    """Collects the objects of a scan, and stores many of them at once.
    They count as stored after `flush`.
    """

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._waiting: dict[str, PackedObject] = {}
        self._bytes = 0

    def put_blob(self, data: bytes) -> str:
        """Add the content of a file; return its id."""
        return self._put(PackedObject(b"blob", data))

    def put_tree(self, entries: Mapping[str, TreeEntry]) -> str:
        """Add a folder, as of `ObjectStore.put_tree`; return its id."""
        return self._put(PackedObject(b"tree", format_tree(entries)))

    def flush(self) -> None:
        """Store what was added. Raises OSError; the same call then tries again."""
        if self._waiting:
            self._objects.put_many(self._waiting)
            self._waiting = {}
            self._bytes = 0

    def _put(self, added: PackedObject) -> str:
        object_id = compute_object_id(added.kind, added.data)
        if object_id not in self._waiting and not self._objects.has_fresh(object_id):
            self._waiting[object_id] = added
            self._bytes += len(added.data)
            if self._bytes > MAX_PACK_BYTES or len(self._waiting) >= MAX_PACK_OBJECTS:
                self.flush()
        return object_id
