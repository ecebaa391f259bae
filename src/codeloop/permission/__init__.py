"""Rules, bash analysis and the Gate."""
