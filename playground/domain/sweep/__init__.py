"""Sweeps: knobs, plan, analysis, recommendation."""
