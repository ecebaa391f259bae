"""Models that answer from a script or a recording."""
