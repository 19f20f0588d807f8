"""A preset as a person writes it."""

from __future__ import annotations

GOOD = """
gpu = false
title = {en = "t", zh-CN = "题"}
shows = {en = "s", zh-CN = "示"}
needs = {en = "n", zh-CN = "需"}
[common]
target = "t"
[common.knobs]
max_num_seqs = 8
dtype = "float32"
[[sides]]
label = "A"
[[sides]]
label = "B"
[sides.knobs]
max_num_seqs = 16
[sides.speculation]
method = "ngram"
num_speculative_tokens = 4
[workload]
prompt = "p"
[workload.sampling]
max_tokens = 9
"""
