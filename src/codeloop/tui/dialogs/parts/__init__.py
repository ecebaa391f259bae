"""Building blocks of dialogs: rows, lists, boxes."""
