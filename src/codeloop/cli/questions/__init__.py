"""Questions: shown in words, answered at the terminal."""
