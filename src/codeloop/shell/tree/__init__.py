"""Reads commands and words from the syntax trees of tree-sitter, which are not trusted."""
