"""Settings that do not go together, or not with the model: speculation, lengths, sizes, options."""

from __future__ import annotations

from playground.engine.failures import remedy_rules

from .cause import Cause

# In a traceback, the files of vLLM that run a drafter.
DRAFT_FILES = r"(?:spec_decode/\w+(?:/\w+)*|(?:eagle|medusa|mtp|dflash|dspark|draft|speculator)\w*)\.py:\d+ "
# Small sizes are numbers of requests or tokens, no widths.
WIDTH = r"(?:[5-9]\d\d|\d{4,6})"
SHAPES = (
    r"mat1 and mat2 shapes cannot be multiplied"
    rf"|The (?:size|expanded size) of (?:the )?tensor (?:a )?\({WIDTH}\) must match .{{0,40}}\({WIDTH}\)"
    rf"|Sizes of tensors must match .{{0,60}}Expected size {WIDTH} but got size {WIDTH}"
    r"|start \(\d+\) \+ length \(\d+\) exceeds dimension size \(\d+\)|Attempted to load weight .+"
)

CAUSES = (
    Cause(
        "vocabulary",
        r"Target and draft model should have the same vocabulary size\."
        r"(?: Target model vocab_size=(?P<target>\d+)\. Draft model vocab_size=(?P<draft>\d+))?",
        remedy_rules.mapped_vocabulary,
    ),
    Cause(
        "draft_parallel",
        r"speculative_draft_tensor_parallel_size=(?P<size>\d+) cannot be other value than 1 or target model",
        remedy_rules.set_to("speculation.draft_tensor_parallel_size", None),
    ),
    Cause(
        "drafts_divisible",
        r"num_speculative_tokens:(?P<tokens>\d+) must be divisible by n_predict=(?P<step>\d+)",
        remedy_rules.divisible_drafts,
    ),
    Cause(
        "draft_mismatch",
        r"(?:EAGLE3?|Eagle3?|Medusa) (?:is|are) only supported"
        r"|Model does not support EAGLE3 interface.*"
        r"|.*\bdraft \w+ must match the target.*"
        r"|All (?:eagle|drafting|draft)\b.*layers should belong to the same kv cache group.*"
        r"|.*has no attribute '(?:aux_hidden_state_layers|set_aux_hidden_state_layers\w*"
        r"|get_eagle3_\w+|draft_id_to_target_id)'.*",
        remedy_rules.other_draft,
    ),
    Cause("draft_mismatch", SHAPES, remedy_rules.other_draft, frames=DRAFT_FILES),
    Cause(
        "draft_mismatch",
        r"\AAssertionError\b",
        remedy_rules.other_draft,
        frames=DRAFT_FILES + r".{0,120}(?:assert\b.*(?:shape|size|hidden|dim).*)",
    ),
    Cause(
        "draft_mismatch",
        r"\A(?:KeyError: .+|ValueError: (?:There is no module or parameter named"
        r"|Following weights were not initialized).*|AssertionError\b)",
        remedy_rules.other_draft,
        frames=DRAFT_FILES + r"load_(?:weights|model)\b",
    ),
    # Lengths and batches
    Cause(
        "context_too_long",
        r"User-specified max_model_len \((?P<asked>\d+)\) is greater than the derived max_model_len "
        r"\(\w+=(?P<limit>\d+)",
        remedy_rules.largest_context,
    ),
    Cause(
        "prefill_too_small",
        r"max_num_batched_tokens \((?P<tokens>\d+)\) is smaller than max_model_len \((?P<length>\d+)\)",
        remedy_rules.full_prefill,
    ),
    Cause(
        "batch_too_small",
        r"max_num_batched_tokens \((?P<tokens>\d+)\) must be greater than or equal to max_num_seqs "
        r"\((?P<seqs>\d+)\)",
        remedy_rules.matching_batch,
    ),
    Cause(
        "batch_below_item",
        r"max_tokens_per_mm_item \((?P<item>\d+)\) is larger than max_num_batched_tokens \((?P<tokens>\d+)\)",
        remedy_rules.batch_of("item"),
    ),
    Cause(
        "batch_below_block",
        r"block_size \((?P<block>\d+)\) must be <= max_num_batched_tokens \((?P<tokens>\d+)\)",
        remedy_rules.batch_of("block"),
    ),
    Cause(
        "mamba_blocks",
        r"max_num_seqs \((?P<seqs>\d+)\) exceeds available Mamba cache blocks \((?P<blocks>\d+)\)",
        remedy_rules.seqs_of("blocks"),
    ),
    Cause("lora_rank", r"LoRA rank (?P<rank>\d+) is greater than max_lora_rank (?P<limit>\d+)"),
    # Parts
    Cause(
        "too_many_gpus",
        r"World size \((?P<wanted>\d+)\) is larger than the number of available GPUs \((?P<available>\d+)\)",
        remedy_rules.available_gpus,
    ),
    Cause(
        "too_many_gpus",
        r"number of required \w+s exceeds the total number of available \w+s in the placement group\."
        r"(?: Required number of devices: (?P<wanted>\d+)\. Total number of devices: (?P<available>\d+))?",
        remedy_rules.available_gpus,
    ),
    Cause(
        "cpu_parallel",
        r"Given number of CPU id list .+ doesn't match local world size (?P<parts>\d+)",
        remedy_rules.one_part,
    ),
    Cause(
        "heads",
        r"attention heads \((?P<heads>\d+)\) must be divisible by tensor parallel size \((?P<size>\d+)\)",
        remedy_rules.dividing_heads,
    ),
    Cause(
        "not_divisible",
        r"\b(?P<heads>\d+) is not divisible by (?P<size>\d+)\b"
        r"|The (?:input|output) size is not aligned with the quantized weight shape"
        r"|.*\w_size\w* .{0,60}= \d+ is not divisible by\s.*",
        remedy_rules.fewer_parts,
    ),
    Cause(
        "bad_environment",
        r"Invalid value '(?P<value>[^'\n]{0,100})' for (?P<variable>[A-Z]\w+)\. "
        r"Valid options: (?P<options>.+?)\.?$",
    ),
)

# What vLLM refuses in its own words, where no row above knows better.
GENERAL = (
    Cause(
        "bad_argument",
        changes=remedy_rules.without_argument,
        line=r"\berror: (?P<detail>(?:argument (?P<flag>--[\w-]+)|unrecognized arguments|ambiguous option"
        r"|the following arguments are required|invalid choice).+)",
    ),
    Cause("validation", r"ValidationError: \d+ validation errors? for \w", remedy_rules.named_fields),
)
