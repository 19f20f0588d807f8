"""The What-if tab."""
