"""A playground that answers: what does this vLLM setting buy me on this machine?"""

__version__ = "0.1.0"
