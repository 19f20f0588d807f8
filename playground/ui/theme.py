"""How the page looks, in Gradio's terms; the rest is in assets/style.css.

Only the sides have a hue (`report/charts/chart.py`): what can be pressed is ink on paper. Spaces are multiples of
4 px, texts of six sizes.
"""

from __future__ import annotations

import gradio as gr
from gradio.themes.utils.sizes import Size

from playground.report.charts.chart import COLOURS

SPACES = Size("2px", "4px", "4px", "8px", "8px", "12px", "16px", name="spacing_grid")
TEXTS = Size("11px", "12px", "13px", "14px", "15px", "20px", "24px", name="text_scale")
RADII = Size("2px", "4px", "4px", "6px", "8px", "8px", "12px", name="radius_grid")
FONT = ["system-ui", "-apple-system", "Segoe UI", "PingFang SC", "Microsoft YaHei", "sans-serif"]
MONO = ["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"]

THEME = gr.themes.Base(
    primary_hue="zinc",
    secondary_hue="zinc",
    neutral_hue="zinc",
    spacing_size=SPACES,
    radius_size=RADII,
    text_size=TEXTS,
    font=FONT,
    font_mono=MONO,
).set(
    body_background_fill="*neutral_50",
    body_background_fill_dark="*neutral_950",
    body_text_color="*neutral_900",
    body_text_color_dark="*neutral_100",
    # Small grey text has to be readable, too: 4.5 to 1 on every background here.
    body_text_color_subdued="*neutral_600",
    body_text_color_subdued_dark="*neutral_400",
    background_fill_primary="white",
    background_fill_primary_dark="*neutral_900",
    background_fill_secondary="*neutral_100",
    background_fill_secondary_dark="*neutral_800",
    border_color_primary="*neutral_200",
    border_color_primary_dark="*neutral_700",
    color_accent="*neutral_900",
    color_accent_soft_dark="*neutral_700",
    block_background_fill="white",
    block_background_fill_dark="*neutral_900",
    block_border_width="1px",
    block_padding="12px 16px",
    block_info_text_color_dark="*neutral_400",
    block_title_text_color="*body_text_color",
    block_title_text_color_dark="*body_text_color",
    block_title_text_size="*text_sm",
    block_title_text_weight="600",
    layout_gap="16px",
    input_background_fill="white",
    input_background_fill_dark="*neutral_950",
    input_border_color="*neutral_300",
    input_border_color_dark="*neutral_600",
    input_border_color_focus="*neutral_900",
    input_border_color_focus_dark="*neutral_100",
    input_border_width="1px",
    input_placeholder_color="*neutral_500",
    input_placeholder_color_dark="*neutral_400",
    checkbox_background_color_selected="*neutral_900",
    checkbox_background_color_selected_dark="*neutral_300",
    checkbox_border_color="*neutral_500",
    checkbox_border_color_dark="*neutral_400",
    checkbox_border_color_selected="*neutral_900",
    checkbox_border_color_selected_dark="*neutral_300",
    error_text_color="#a63c00",
    error_text_color_dark="#ff9d66",
    button_large_text_size="*text_md",
    button_primary_background_fill="*neutral_900",
    button_primary_background_fill_dark="*neutral_100",
    button_primary_background_fill_hover="*neutral_700",
    button_primary_background_fill_hover_dark="white",
    button_primary_border_color="*neutral_900",
    button_primary_border_color_dark="*neutral_100",
    button_primary_text_color="white",
    button_primary_text_color_dark="*neutral_900",
    button_secondary_background_fill="white",
    button_secondary_background_fill_dark="*neutral_800",
    button_secondary_background_fill_hover="*neutral_100",
    button_secondary_background_fill_hover_dark="*neutral_700",
    button_secondary_border_color="*neutral_300",
    button_secondary_border_color_dark="*neutral_600",
    button_secondary_text_color="*neutral_900",
    button_cancel_background_fill="white",
    button_cancel_background_fill_dark="*neutral_900",
    button_cancel_border_color="*error_text_color",
    button_cancel_border_color_dark="*error_text_color",
    button_cancel_text_color="*error_text_color",
    button_cancel_text_color_dark="*error_text_color",
)

# A side has its colour everywhere: what belongs to side 0 is in .side-0.
CSS = "\n".join(f".side-{index} {{ --side: {colour}; }}" for index, colour in enumerate(COLOURS))
# Of the accent, which marks the chosen tab, Gradio knows no dark form.
CSS += "\n:root body.dark { --color-accent: var(--neutral-100); }"
