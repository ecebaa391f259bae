"""A text that is edited, without a screen: its changes, its words, its rows."""
