"""What dialogs are made of: rows, lists, boxes."""
