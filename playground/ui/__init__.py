"""The page. Only this package imports gradio."""
