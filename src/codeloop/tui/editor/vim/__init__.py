"""Vi's keys over a text."""
