"""What the playground talks about: pure values and formulas, no I/O, no clock, no gradio."""
