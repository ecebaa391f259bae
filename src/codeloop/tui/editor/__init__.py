"""The text editor without a screen: buffer, chips, words, row layout, and the keys of vi."""
