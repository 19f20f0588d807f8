"""Checks of the sides' answers after the last round. Nothing here is timed."""
