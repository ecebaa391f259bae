"""Commands that look at how things are."""
