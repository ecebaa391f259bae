"""The output of a command: collected in bounded memory, shown while it runs, condensed for the model."""
