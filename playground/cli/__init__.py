"""The command line: its verbs, and how results are printed."""
