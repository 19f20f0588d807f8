"""Run by its path with the Python that has xllamacpp: llama.cpp's server, with llama-server's own options."""

import argparse
import signal
import threading

import xllamacpp


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--model-draft")
    parser.add_argument("--no-cache-prompt", action="store_true")
    parser.add_argument("--metrics", action="store_true")
    for name in ("--port", "--parallel", "--ctx-size", "--threads", "--batch-size", "--seed", "--draft-max"):
        parser.add_argument(name, type=int)
    arguments = parser.parse_args()
    parameters = xllamacpp.CommonParams()
    parameters.model.path, parameters.hostnames = arguments.model, [arguments.host]
    parameters.cache_prompt, parameters.endpoint_metrics = not arguments.no_cache_prompt, arguments.metrics
    for name, value in {
        "port": arguments.port,
        "n_parallel": arguments.parallel,
        "n_ctx": arguments.ctx_size,
        "n_batch": arguments.batch_size,
    }.items():
        if value is not None:
            setattr(parameters, name, value)
    if arguments.threads is not None:
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = arguments.threads
    if arguments.seed is not None:
        parameters.sampling.seed = arguments.seed
    if arguments.model_draft is not None:
        speculative = parameters.speculative
        speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        speculative.draft.mparams.path = arguments.model_draft
        speculative.draft.n_max = arguments.draft_max or speculative.draft.n_max
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    # It must stay referenced: it stops when it is collected.
    server = xllamacpp.Server(parameters)
    print(f"listening: {server}", flush=True)
    ended.wait()


if __name__ == "__main__":
    main()
