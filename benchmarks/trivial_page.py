"""What the playground's page is measured against: gradio with plotly and pandas imported, and nothing else."""

import sys

import gradio as gr
import pandas  # noqa: F401
import plotly.graph_objects  # noqa: F401

with gr.Blocks(analytics_enabled=False) as page:
    box = gr.Textbox(label="Prompt")
    button = gr.Button("Go", elem_id="race")
    button.click(lambda text: text, box, box)

page.launch(
    server_name="127.0.0.1",
    server_port=int(sys.argv[1]),
    footer_links=[],
    run_history=False,
    enable_monitoring=False,
)
