"""Which models there are, with limits and prices."""
