"""How the page looks, in Gradio's terms; the rest is in assets/style.css."""

from __future__ import annotations

import gradio as gr

# Fields are named in plain text: a page with thirty coloured labels has no centre.
THEME = gr.themes.Soft(primary_hue="emerald", font=["system-ui", "sans-serif"], font_mono=["monospace"]).set(
    # Gradio's `set` would turn it white.
    background_fill_primary="*neutral_50",
    block_title_background_fill="transparent",
    block_title_background_fill_dark="transparent",
    block_title_border_width="0",
    block_title_border_width_dark="0",
    block_title_padding="0",
    block_title_text_color="*body_text_color",
    block_title_text_color_dark="*body_text_color",
    block_title_text_weight="600",
)
