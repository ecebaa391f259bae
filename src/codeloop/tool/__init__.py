"""Tools as values, and the toolbox."""
