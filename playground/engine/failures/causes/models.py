"""The model: its files, what it is, and how the hub gives it."""

from __future__ import annotations

from playground.engine.failures import remedy_rules

from .cause import Cause

CAUSES = (
    Cause(
        "gated",
        r"[Cc]annot access gated repo|GatedRepoError|trying to access a gated repo"
        r"|not in the authorized list|403 (?:Client Error|Forbidden).{0,200}(?:hf\.co|huggingface)",
        remedy_rules.no_draft,
    ),
    Cause("hub_busy", r"429 Client Error|[Tt]oo [Mm]any [Rr]equests.{0,200}(?:hf\.co|huggingface)"),
    Cause(
        "model_missing",
        r"Invalid repository ID or local directory specified|is not a valid model identifier|Repo id must be"
        r"|RepositoryNotFoundError|RevisionNotFoundError",
    ),
    Cause(
        "hub_offline",
        r"LocalEntryNotFoundError|OfflineModeIsEnabled|couldn't connect to 'https://"
        r"|(?:huggingface\.co|hf\.co|modelscope\.cn)\S*.{0,120}"
        r"(?:Max retries|[Tt]imed? ?out|[Rr]esolution|to resolve|refused|SSL|Proxy)"
        r"|(?:Temporary failure in name resolution|Name or service not known).{0,120}(?:huggingface|hf\.co)",
    ),
    Cause(
        "hub_offline",
        r"name resolution|Name or service not known|Connect(?:ion)?(?:Error|Timeout)|ReadTimeout|timed out",
        frames=r"huggingface_hub|modelscope",
    ),
    Cause(
        "quantization_dtype",
        r"torch\.(?P<dtype>\w+) is not supported for quantization method (?P<method>[\w-]+)\. "
        r"Supported dtypes: \[(?P<supported>[^\]\n]+)\]",
        remedy_rules.supported_dtype,
    ),
    Cause(
        "quantization",
        r"(?P<detail>Unknown quantization method: \S+?(?=\. )|Cannot find the config file for \w+"
        r"|Quantization method specified in the model config .+? argument \(\w+\)"
        r"|The quantization method \S+ is not supported for the current GPU"
        r"|Failed to find a kernel that can implement .{1,80}|The \w+ kernel is not supported on this device"
        r"|\b\w{1,64} quantization is currently not supported in \w+)",
        remedy_rules.back_to_default("quantization"),
    ),
    Cause(
        "no_generator",
        r"This model does not support `--runner generate`|Embedding models do not support `--runner"
        r"|does not support (?:the )?['`]?(?:Generate|generate|generation)\b"
        r"|(?:The|This) model does not support (?:Chat )?Completions API"
        r"|\w+ has no attribute 'compute_logits'",
    ),
    Cause(
        "architecture",
        r"(?:Model architectures \['|model type `)(?P<detail>\w+)['`\]]+ "
        r"(?:are not supported|failed to be inspected|but Transformers does not recognize)",
    ),
    Cause(
        "chat_template",
        r"chat_template is not set|default chat template is no longer allowed"
        r"|[Cc]hat template.{0,120}"
        r"(?:looks like a file path|doesn't exist|does not exist|not found|must provide)"
        r"|jinja2\.exceptions\.Template\w*Error",
    ),
    Cause(
        "tokenizer",
        r"[Cc]an't load tokenizer|Couldn't instantiate the backend tokenizer"
        r"|Tokenizer class \w+ does not exist|Unrecognized.{0,120}AutoTokenizer"
        r"|data did not match any variant of untagged enum"
        r"|(?:tokenizer\.(?:json|model)|vocab\.json|tekken\.json|merges\.txt)\S*.{0,120}(?:not found|No such)"
        r"|(?:No such file|not found).{0,120}(?:tokenizer\.(?:json|model)|tekken\.json|vocab\.json)"
        r"|requires the SentencePiece library"
        r"|(?:sentencepiece|tiktoken).{0,120}(?:tokenizer|to convert)",
    ),
    Cause(
        "tokenizer",
        r"expected str, bytes or os\.PathLike object, not NoneType|not a string|bool object has no",
        frames=r"tokeniz|sentencepiece",
    ),
    Cause(
        "head_size",
        r"(?:Selected backend|No valid attention backend).*head_size not supported.*",
        remedy_rules.back_to_default("attention_backend"),
    ),
    Cause(
        "backend",
        r"(?P<detail>Unknown attention backend: \S+"
        r"|Flash(?:Attention|MLA|Infer)\S* .{0,60}(?:only supports?|only supported|does not support)\b.*"
        r"|Selected backend .+ is not valid.+"
        r"|No valid attention backend .+)",
        remedy_rules.back_to_default("attention_backend"),
    ),
    Cause(
        "method",
        r"(?P<detail>Unsupported speculative method: \S+)|[Ss]peculative decoding .{0,80}not supported",
        remedy_rules.no_speculation,
    ),
    Cause(
        "model_broken",
        r"It looks like the config file at .+ is not a valid JSON file"
        r"|Cannot find any model weights|Error while deserializing header|Attempted to load weight .+"
        r"|start \(\d+\) \+ length \(\d+\) exceeds dimension size \(\d+\)"
        r"|(?:InvalidHeader|HeaderTooLarge|HeaderTooSmall|MetadataIncompleteBuffer)"
        r"|Consistency check failed: file should be of size"
        r"|Following weights were not initialized from checkpoint"
        r"|There is no module or parameter named|invalid load key"
        r"|PytorchStreamReader failed|does not appear to have a file named"
        r"|No such file or directory: '[^'\n]+(?:\.(?:safetensors|gguf|bin|pth|index\.json)|/config\.json)'"
        r"|Unrecognized model in .{0,120}Should have a `model_type` key",
    ),
    Cause(
        "remote_code",
        r"argument `trust_remote_code=True`|contains custom code which must be executed"
        r"|requires you to execute the \w+ file in that repo",
    ),
)
