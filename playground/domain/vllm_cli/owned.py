"""Options of vLLM's server that no extra flag may set, by their names (argparse's `dest`), with the reason."""

from __future__ import annotations

import json

from playground.domain.message import Message
from playground.domain.spec.settings import Knobs

# What the playground sets on every engine, what the host's configuration decides, and what changes no figure. A
# pasted command line loses these without harm.
HOST = {"host", "port", "uds", "api_key", "served_model_name", "root_path", "api_server_count", "headless"}
HOST |= {"grpc", "grpc_port", "download_dir", "hf_token", "uvicorn_log_level", "log_level", "device_ids"}
HOST |= {"disable_log_stats", "disable_log_requests", "enable_log_requests", "disable_uvicorn_access_log"}
HOST |= {"per_request_spec_decode_metrics", "enable_ssl_refresh"}
HOST |= {"ssl_keyfile", "ssl_certfile", "ssl_ca_certs", "ssl_cert_reqs", "ssl_ciphers"}
HOST |= {"allowed_origins", "allowed_methods", "allowed_headers", "allow_credentials"}
# Modules, classes and files of code that the engine would run.
CODE = {"middleware", "tool_parser_plugin", "reasoning_parser_plugin", "io_processor_plugin", "logits_processors"}
CODE |= {"worker_cls", "worker_extension_cls", "scheduler_cls", "model_class_overrides", "additional_config"}
CODE |= {"log_config_file", "logging_config", "trust_request_chat_template", "trust_request_mm_kwargs"}
# Files that the engine would read, and show in its answers or its log, or write.
FILES = {"config", "chat_template", "allowed_local_media_path", "tokenizer", "hf_config_path", "lora_modules"}
FILES |= {"default_mm_loras", "model_loader_extra_config", "profiler_config", "mm_encoder_fp8_scale_path"}
FILES |= {"mm_encoder_fp8_scale_save_path"}
# Other machines that the engine would connect to, or listen for.
NETWORK = {"kv_transfer_config", "kv_events_config", "ec_transfer_config", "weight_transfer_config", "tool_server"}
NETWORK |= {"otlp_traces_endpoint", "master_addr", "master_port", "nnodes", "node_rank", "allowed_media_domains"}
NETWORK |= {"fault_tolerance_config", "ec_manager_config", "dp_supervisor_port", "data_parallel_supervisor_port"}
NETWORK |= {f"data_parallel_{part}" for part in ("address", "rpc_port", "rank", "start_rank", "size_local")}
NETWORK |= {f"data_parallel_{part}" for part in ("backend", "hybrid_lb", "external_lb", "multi_port_external_lb")}
REASONS = {"owned.host": HOST, "owned.code": CODE, "owned.files": FILES, "owned.network": NETWORK}
# Options that have a place of their own in the settings.
FIELDS = {"model": "target", "model_tag": "target", "trust_remote_code": "trust_remote_code"}
FIELDS |= dict.fromkeys(("speculative_config", "spec_method", "spec_model", "spec_tokens"), "speculation")
FIELDS |= {name: f"knobs.{name}" for name in Knobs.model_fields}
# Keys of a JSON option that do what a whole option above may not.
KEYS = {
    "compilation_config": {
        "backend": "owned.code",
        "inductor_passes": "owned.code",
        # Among its options are the compilers that it starts.
        "inductor_compile_config": "owned.code",
        "cache_dir": "owned.files",
        "debug_dump_path": "owned.files",
    },
    "structured_outputs_config": {"reasoning_parser_plugin": "owned.code"},
}


# Methods that neither run code nor write files that they name, beside those whose names end with _mtp.
METHODS = {"ngram", "ngram_gpu", "suffix", "draft_model", "eagle", "eagle3", "mtp", "medusa", "mlp_speculator"}
METHODS |= {"dflash", "dspark"}
LOADS = {"draft_load_config", "code_revision", "target_model_config", "draft_model_config"}
LOADS |= {"target_parallel_config", "draft_parallel_config"}


def why_owned(name: str) -> Message | None:
    """Why no extra flag may set the option of that name; None if one may."""
    if (field := FIELDS.get(name)) is not None:
        return Message("owned.field", {"field": field})
    reason = next((reason for reason, names in REASONS.items() if name in names), None)
    return None if reason is None else Message(reason)


def why_no_speculation(text: str) -> Message | None:
    """Why no extra flag may hold this --speculative-config, where the settings have none; None if one may."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        return Message("owned.not_json")
    method = config.get("method")
    if method is None:
        return Message("owned.field", {"field": "speculation"})
    named = isinstance(method, str) and (method in METHODS or method.endswith("_mtp"))
    return None if named and not LOADS & {name.replace("-", "_") for name in config} else Message("owned.code")
