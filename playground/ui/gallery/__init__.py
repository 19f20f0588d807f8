"""Presets and recordings to choose from."""
