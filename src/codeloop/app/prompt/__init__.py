"""The parts of a prompt: attachments are read, and permission is asked for files that the text mentions."""
