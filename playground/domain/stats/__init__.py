"""Rounds -> ratios, intervals and verdicts."""
