"""Families of models whose KV cache is known here, and what their configurations leave out.

The values are the defaults of transformers' classes (5.19), which a config.json omits where it agrees with
them. A family that is not in the table is not understood.
"""

from __future__ import annotations

from collections.abc import Mapping

COLUMNS = (
    *("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"),
    *("head_dim", "vocab_size", "max_position_embeddings", "tie_word_embeddings"),
)
# One family a line, by `model_type`: the columns above, `-` for no default, then other fields that matter.
TABLE = """
apertus 32 4096 14336 32 - - 131072 65536 0
arcee 32 2560 18432 32 - - 32000 4096 0
baichuan - - - - - - - - -
bamba 32 4096 14336 32 8 - 128000 262144 0
bloom 2 64 - 8 - - 250880 - 1
chatglm - - - - - - - - -
cohere 40 8192 22528 64 - - 256000 8192 1
cohere2 40 8192 22528 64 - - 256000 8192 1 sliding_window=4096 sliding_window_pattern=4
dbrx 24 2048 - 16 - - 32000 2048 0
deepseek_v2 32 4096 11008 32 - - 102400 2048 0
deepseek_v3 61 7168 18432 128 128 - 129280 4096 0
ernie4_5 18 1024 3072 16 2 128 103424 131072 1
ernie4_5_moe 28 2560 12288 20 4 - 103424 131072 1
exaone - - - - - - - - -
exaone4 32 4096 16384 32 32 - 102400 2048 0 sliding_window=4096 sliding_window_pattern=4
falcon 32 4544 - 71 - - 65024 2048 1 multi_query=1
falcon_h1 32 4096 14336 32 8 - 128000 8192 0
gemma 28 3072 24576 16 16 256 256000 8192 1
gemma2 26 2304 9216 8 4 256 256000 8192 1 sliding_window=4096 sliding_window_pattern=2
gemma3_text 26 2304 9216 8 4 256 262208 131072 1 sliding_window=4096 sliding_window_pattern=6
gemma3n_text 35 2048 16384 8 2 256 262400 32768 1 sliding_window=512 sliding_window_pattern=5 num_kv_shared_layers=15
glm 40 4096 13696 32 2 128 151552 131072 0
glm4 40 4096 13696 32 2 128 151552 131072 0
glm4_moe 46 4096 10944 96 8 - 151552 131072 0
glm4_moe_lite 47 2048 10240 20 20 - 154880 202752 0
gpt2 12 768 - 12 - - 50257 1024 1
gpt_bigcode 12 768 - 12 - - 50257 1024 1 multi_query=1
gpt_neox 44 6144 24576 64 - - 50432 2048 0
gpt_oss 36 2880 2880 64 8 64 201088 131072 0 sliding_window=128 sliding_window_pattern=2
gptj 28 4096 - 16 - - 50400 2048 0
granite 32 4096 11008 32 - - 32000 2048 0
granitemoe 32 4096 11008 32 - - 32000 2048 0
granitemoehybrid 32 4096 11008 32 - - 32000 2048 0
granitemoeshared 32 4096 11008 32 - - 32000 2048 0
hunyuan_v1_dense 32 4096 11008 32 - - 290943 2048 0
hunyuan_v1_moe 32 4096 11008 32 - - 290943 2048 0
internlm - - - - - - - - -
internlm2 - - - - - - - - -
internlm3 - - - - - - - - -
jamba 32 4096 14336 32 8 - 65536 262144 0 attn_layer_period=8 attn_layer_offset=4
kimi_k2 61 7168 18432 128 128 - 129280 4096 0
lfm2 32 2560 12288 32 8 - 65536 128000 1
lfm2_moe 32 2048 7168 32 8 - 65536 128000 1
llama 32 4096 11008 32 - - 32000 2048 0
minicpm - - - - - - - - -
minimax_m2 62 3072 1536 48 8 128 200064 196608 0
minimax_text_01 - - - - - - - - -
ministral 32 4096 14336 32 8 - 32000 131072 0 sliding_window=4096
ministral3 34 4096 14336 32 8 128 131072 262144 0
mistral 32 4096 14336 32 8 - 32000 131072 0 sliding_window=4096
mixtral 32 4096 14336 32 8 - 32000 131072 0
mpt 24 2048 - 16 - - 50368 2048 1
nemotron 32 6144 24576 48 - - 256000 4096 0
nemotron-nas - - - - - - - - -
nemotron_h - 4096 21504 32 8 128 131072 4096 0
olmo 32 4096 11008 32 - - 50304 2048 0
olmo2 32 4096 11008 32 - - 50304 2048 0
olmo3 32 4096 11008 32 - - 50304 2048 0 sliding_window=4096 sliding_window_pattern=4
olmoe 16 2048 2048 16 - - 50304 4096 0
opt 12 768 3072 12 - - 50272 2048 1
phi 24 2048 8192 32 - - 51200 2048 0
phi3 32 3072 8192 32 - - 32064 4096 0
phimoe 32 4096 6400 32 8 - 32064 131072 0
qwen2 32 4096 22016 32 32 - 151936 32768 0
qwen2_5_vl 80 8192 29568 64 8 - 152064 32768 -
qwen2_5_vl_text 80 8192 29568 64 8 - 152064 32768 -
qwen2_moe 24 2048 5632 16 16 - 151936 32768 0
qwen2_vl 80 8192 29568 64 8 - 152064 32768 -
qwen2_vl_text 80 8192 29568 64 8 - 152064 32768 -
qwen3 32 4096 22016 32 32 128 151936 32768 0
qwen3_5_moe_text 40 2048 - 16 2 256 248320 32768 0 full_attention_interval=4
qwen3_5_text 32 4096 12288 16 4 256 248320 32768 0 full_attention_interval=4
qwen3_moe 24 2048 6144 32 4 - 151936 32768 0
qwen3_next 48 2048 5632 16 2 256 151936 32768 0 full_attention_interval=4
qwen3_vl_moe_text 24 2048 5632 16 16 - 151936 128000 1
qwen3_vl_text 32 4096 22016 32 32 128 151936 128000 -
seed_oss 64 4096 27648 80 8 128 155136 524288 0
smollm3 36 2048 11008 16 4 - 128256 32768 1
stablelm 32 2560 6912 32 32 - 50304 4096 0
starcoder2 30 3072 12288 24 2 - 49152 4096 1
"""  # noqa: E501


def _family(line: str) -> tuple[str, Mapping[str, int]]:
    name, *values = line.split()
    columns, others = values[: len(COLUMNS)], (value.partition("=") for value in values[len(COLUMNS) :])
    defaults = {key: int(value) for key, value in zip(COLUMNS, columns, strict=True) if value != "-"}
    return name, defaults | {key: int(value) for key, _, value in others}


DEFAULTS: Mapping[str, Mapping[str, int]] = dict(map(_family, TABLE.split("\n")[1:-1]))
