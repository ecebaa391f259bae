"""Drawing pictures in terminals: kitty, iTerm and sixel."""
