"""The text editor without a screen: buffer, words, row layout."""
