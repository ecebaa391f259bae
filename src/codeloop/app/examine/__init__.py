"""Read-only examination: what the rules decide about a call, and the checks of `codeloop doctor`."""
