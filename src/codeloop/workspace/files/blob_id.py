"""The id that git gives to the content of a file."""

from hashlib import sha1


def compute_blob_id(data: bytes) -> bytes:
    """Return the id of a blob with these bytes in a repository with SHA-1: 20 bytes."""
    # Git hashes a header with the kind and the size before the content.
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest()
