"""Tools that query language servers."""
