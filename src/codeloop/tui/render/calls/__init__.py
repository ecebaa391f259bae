"""Tool calls as rows: each tool in its own way, unknown ones generically."""
