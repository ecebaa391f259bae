"""Safe opening, byte-exact reading and atomic replacement of the project's files."""
