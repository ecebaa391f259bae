"""Files of the project: opened safely, read and replaced byte for byte."""
