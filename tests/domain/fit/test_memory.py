"""What an engine needs, against known models and against what vLLM reported on a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.shapes import CONFIGS, decoder, sliding_layers

from playground.domain.fit.engine_fit import DeviceRoom, NeedOf, issues
from playground.domain.fit.issue import FitIssue
from playground.domain.fit.kv_cache import kv_bytes, kv_element_bytes
from playground.domain.fit.memory import CPU_PROCESS_BYTES, GIB, MIB, Device, Model, Need, graph_sizes, need
from playground.domain.fit.shape import ModelShape
from playground.domain.fit.weights import Tensor, weight_bytes
from playground.domain.spec.change import Change
from playground.domain.spec.settings import EngineSettings
from playground.engine import command
from playground.engine.devices import Placement

REPORTS = json.loads(Path(__file__).with_name("memory_reports.json").read_text(encoding="utf-8"))
H200 = Device(
    "cuda", REPORTS["device"]["name"], REPORTS["device"]["total_bytes"], REPORTS["device"]["total_bytes"]
)
L4 = Device("cuda", "NVIDIA L4", 24 * GIB, 24 * GIB)
CPU = Device("cpu", "a processor", 16 * GIB, 16 * GIB, 1 * GIB)
WITHIN = 0.15


def shape(name: str, **changed: Any) -> ModelShape:
    found = ModelShape.of({**CONFIGS[name], **changed})
    assert found is not None
    return found


def settings(knobs: dict[str, Any] | None = None, draft: str | None = None, drafts: int = 5) -> EngineSettings:
    speculation = {"method": "draft_model", "model": draft, "num_speculative_tokens": drafts} if draft else None
    given = {"target": "t", "knobs": knobs or {}, **({"speculation": speculation} if speculation else {})}
    return EngineSettings.model_validate(given)


def needed(target: str, device: Device, knobs: dict[str, Any] | None = None, draft: str | None = None) -> Need:
    found = need(settings(knobs, draft), Model(shape(target)), Model(shape(draft)) if draft else None, device)
    assert found is not None
    return found


# Against vLLM's own account


@pytest.mark.parametrize("report", REPORTS["reports"], ids=lambda report: report["name"])
def test_against_what_vllm_reported(report: dict[str, Any]) -> None:
    found = needed(report["target"], H200, report["knobs"], report.get("draft"))
    reported = report["reported_gib"]
    weights = (found.weights + found.draft_weights) / GIB
    print(f"{report['name']}: {found.fixed / GIB:.2f} estimated, {sum(reported.values()):.2f} GiB reported")
    assert weights == pytest.approx(reported["weights"], rel=WITHIN)
    assert found.fixed / GIB == pytest.approx(sum(reported.values()), rel=WITHIN)
    assert found.activations / GIB == pytest.approx(reported["activations"], rel=WITHIN)
    assert found.cuda_graphs / GIB == pytest.approx(reported["cuda_graphs"], rel=WITHIN)
    assert found.kv_available // found.kv_per_token == pytest.approx(report["kv_tokens"], rel=0.02)


# Against what is known of models: parameters by their cards, KV cache by their papers


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("7b", 7.616),
        ("1.5b", 1.544),
        ("0.5b", 0.494),
        ("smollm2", 0.1345),
        ("llama-70b", 70.55),
        ("mistral-7b-v0.1", 7.24),
        ("mixtral-8x7b", 46.7),
        ("gemma2-9b", 9.24),
        ("deepseek-v2-lite", 15.7),
        ("deepseek-v3", 671.0),
    ],
)
def test_parameters(name: str, billions: float) -> None:
    assert shape(name).parameters / 1e9 == pytest.approx(billions, rel=0.01)


def test_grouped_heads() -> None:
    assert kv_bytes(shape("7b"), 1, 2, batched=1) == 2 * 28 * 4 * 128 * 2
    assert kv_bytes(shape("7b"), 1000, 1, batched=1) == 1000 * 2 * 28 * 4 * 128


def test_tensor_parallel_splits_heads_and_repeats_them_where_there_are_too_few() -> None:
    whole = kv_bytes(shape("7b"), 1, 2, batched=1)
    assert [kv_bytes(shape("7b"), 1, 2, batched=1, tp=tp) for tp in (2, 4, 8)] == [
        whole // 2,
        whole // 4,
        whole // 4,
    ]


def test_latent_attention_keeps_one_vector() -> None:
    """DeepSeek-V3: 70,272 bytes a token in bfloat16 (61 layers x (512 + 64) x 2), on each GPU alike."""
    assert kv_bytes(shape("deepseek-v3"), 1, 2, batched=1) == 70_272
    assert kv_bytes(shape("deepseek-v3"), 1, 2, batched=1, tp=8) == 70_272
    assert kv_bytes(shape("deepseek-v2-lite"), 1, 2, batched=1) == 27 * 576 * 2


def test_a_window_bounds_what_is_kept() -> None:
    mistral = shape("mistral-7b-v0.1")
    token = 2 * 32 * 8 * 128 * 2
    assert sliding_layers(mistral) == 32
    assert kv_bytes(mistral, 4000, 2, batched=2048) == 4000 * token
    assert kv_bytes(mistral, 32_768, 2, batched=2048) == (4096 - 1 + 2048) * token


def test_some_layers_have_a_window() -> None:
    """Gemma 2 alternates; of Gemma 3's layers each sixth sees everything: 10 of 62."""
    assert sliding_layers(shape("gemma2-9b")) == 21
    gemma = shape("gemma3-27b")
    assert (sliding_layers(gemma), gemma.multimodal) == (52, True)
    layer = 2 * 16 * 128 * 2
    assert kv_bytes(gemma, 100_000, 2, batched=2048) == layer * (10 * 100_000 + 52 * (1024 - 1 + 2048))


def test_a_window_that_is_switched_off_is_none() -> None:
    assert sliding_layers(shape("7b")) == 0
    kinds = ["sliding_attention", "full_attention"] * 14
    assert sliding_layers(shape("7b", use_sliding_window=True, layer_types=kinds)) == 14


@pytest.mark.parametrize(
    ("asked", "size"), [(None, 2), ("auto", 2), ("fp8", 1), ("fp8_e5m2", 1), ("bfloat16", 2), ("float32", 4)]
)
def test_kv_cache_dtype(asked: str | None, size: int) -> None:
    assert kv_element_bytes(asked, "bfloat16") == size


def test_graph_sizes_are_those_that_vllm_captured() -> None:
    """The logs of the H200 count 19 and 11 without speculation at 64 sequences."""
    assert (len(graph_sizes(128)), len(graph_sizes(64))) == (19, 11)
    assert graph_sizes(1) == [1]


@pytest.mark.parametrize(
    ("scaling", "context"),
    [
        (None, 32_768),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}, 32_768),
        ({"type": "linear", "factor": 2.0}, 65_536),
        ({"rope_type": "llama3", "factor": 8.0}, 32_768),
    ],
)
def test_context(scaling: dict[str, Any] | None, context: int) -> None:
    assert shape("7b", rope_scaling=scaling).context == context


@pytest.mark.parametrize("config", [{}, {"num_hidden_layers": 2}, {**CONFIGS["7b"], "hidden_size": "wide"}])
def test_what_is_no_decoder_has_no_shape(config: dict[str, Any]) -> None:
    assert ModelShape.of(config) is None


# Weights


TENSORS = (
    Tensor("model.embed_tokens.weight", "BF16", 1000),
    Tensor("lm_head.weight", "BF16", 1000),
    Tensor("model.layers.0.mlp.up_proj.weight", "BF16", 500),
    Tensor("model.layers.28.mlp.up_proj.weight", "BF16", 400),
    Tensor("model.norm.weight", "F32", 10),
)


def test_tied_embeddings_count_once() -> None:
    assert weight_bytes(shape("7b"), TENSORS, dtype="bfloat16") == 2 * 2510
    assert weight_bytes(shape("7b", tie_word_embeddings=True), TENSORS, dtype="bfloat16") == 2 * 1510


def test_weights_are_loaded_in_the_engines_precision() -> None:
    assert weight_bytes(shape("7b"), TENSORS, dtype="float32") == 4 * 2510


def test_layers_past_the_last_are_for_multi_token_prediction() -> None:
    assert weight_bytes(shape("7b"), TENSORS, dtype="bfloat16", mtp=True) == 2 * 2910


def test_quantized_while_loading() -> None:
    assert weight_bytes(shape("7b"), TENSORS, dtype="bfloat16", quantization="fp8") == 2 * 2010 + 500


def test_stored_quantized() -> None:
    """Packed numbers as they are, scales in their own precision."""
    awq = shape("7b", quantization_config={"quant_method": "awq", "bits": 4})
    packed = (Tensor("model.layers.0.up_proj.qweight", "I32", 100), Tensor("scales", "F16", 8))
    assert weight_bytes(awq, packed, dtype="bfloat16") == 400 + 16
    by_shape = weight_bytes(awq, None, dtype="bfloat16") / 1e9
    # Qwen2.5-7B-Instruct-AWQ is 5.57 GB.
    assert by_shape == pytest.approx(5.57, rel=0.05)


def test_without_headers_the_shape_tells() -> None:
    assert weight_bytes(shape("7b"), None, dtype="bfloat16") == 2 * shape("7b").parameters


# The engine as a whole


def test_two_gpus_take_half_each() -> None:
    one, two = needed("llama-70b", H200), needed("llama-70b", H200, {"tensor_parallel_size": 2})
    assert two.weights == one.weights // 2
    assert two.kv_per_token == one.kv_per_token // 2


def test_a_draft_brings_weights_and_a_cache_of_its_own() -> None:
    off, on = needed("7b", H200), needed("7b", H200, draft="0.5b")
    assert on.draft_weights / GIB == pytest.approx(0.93, rel=0.02)
    assert on.kv_per_token - off.kv_per_token == 2 * 24 * 2 * 64 * 2


# Of vLLM 0.32's worker with SmolLM2-135M in float32, beyond what the process without a model has and the KV cache:
# kernels for AVX-512 and for AVX2 on one machine (there also on 16 threads), and a machine that has AVX2 only.
RESIDENT_MB = {"off": [757, 760, 754, 850], "ngram": [988, 995, 988]}


@pytest.mark.parametrize("method", RESIDENT_MB)
def test_resident_memory_on_processors(method: str) -> None:
    knobs = {"dtype": "float32", "max_model_len": 1024}
    case = EngineSettings.model_validate({"target": "t", "knobs": knobs, "speculation": {"method": method}})
    found = need(case, Model(shape("smollm2")), None, CPU)
    assert found is not None
    estimated = found.weights + found.activations + found.other - CPU_PROCESS_BYTES
    assert all(estimated / 1e6 == pytest.approx(held, rel=WITHIN) for held in RESIDENT_MB[method])


@pytest.mark.parametrize("native_bf16", [True, False])
def test_float32_doubles_what_bfloat16_takes(native_bf16: bool) -> None:
    """Without bfloat16 of its own a processor computes in float32: weights, activations, KV cache."""
    half, whole = (needed("smollm2", CPU, {"dtype": dtype}) for dtype in ("bfloat16", "float32"))
    assert whole.weights == 2 * half.weights
    assert whole.kv_sequence == 2 * half.kv_sequence
    assert whole.activations > half.activations
    placement = Placement("cpu", cores=(0,))
    effective = command.effective(settings(), placement, native_bf16)
    found = need(effective, Model(shape("smollm2")), None, CPU)
    assert found == (half if native_bf16 else whole)


def test_eager_has_no_graphs_and_a_cpu_neither() -> None:
    assert needed("7b", H200, {"enforce_eager": True}).cuda_graphs == 0
    assert needed("smollm2", CPU).cuda_graphs == 0


def test_a_told_cache_size_is_what_it_gets() -> None:
    found = needed("7b", H200, {"kv_cache_memory_bytes": 10 * GIB})
    assert (found.kv_available, found.kv_least, found.budget) == (10 * GIB, 10 * GIB, H200.total_bytes)


@pytest.mark.parametrize(
    ("device", "batch"),
    [
        (H200, (8192, 1024)),
        (L4, (2048, 256)),
        (Device("cuda", "NVIDIA A100-SXM4-80GB", 80 * GIB, 80 * GIB), (2048, 256)),
        (Device("cuda", "NVIDIA B200", 180 * GIB, 180 * GIB), (16384, 1024)),
        (CPU, (2048, 128)),
    ],
)
def test_defaults_of_the_batch(device: Device, batch: tuple[int, int]) -> None:
    assert device.batch == batch


# What speaks against a start


def of(target: str, device: Device, draft: str | None = None) -> tuple[list[Model], NeedOf]:
    models = [Model(shape(name)) for name in (target, draft) if name]
    return models, lambda changed: need(changed, models[0], models[1] if changed.draft else None, device)


def found_for(
    target: str,
    device: Device,
    knobs: dict[str, Any] | None = None,
    draft: str | None = None,
    place: DeviceRoom | None = None,
    before: tuple[Need, ...] = (),
) -> list[FitIssue]:
    models, need_of = of(target, device, draft)
    return issues(settings(knobs, draft), models, place or DeviceRoom(device), need_of, before)


def test_nothing_speaks_against_what_fits() -> None:
    assert found_for("7b", H200) == []


def test_weights_larger_than_the_card() -> None:
    """70B in bfloat16 on 24 GB: certain; no change on one card mends it."""
    (issue,) = found_for("llama-70b", L4)
    assert (issue.problem.message_id, issue.certain) == ("preflight.weights_too_big", True)
    assert issue.remedies == ()
    (issue,) = found_for("llama-70b", H200, {"max_model_len": 8192})
    assert (Change("knobs.quantization", "fp8"),) in issue.remedies


def test_one_sequence_must_fit() -> None:
    """7B on 24 GB: 15 GiB of weights leave room for some 100,000 tokens, not for the full length in float32."""
    (issue,) = found_for("7b", L4, {"gpu_memory_utilization": 0.62, "max_model_len": 32_768})
    assert (issue.problem.message_id, issue.certain) == ("preflight.no_sequence", True)
    for remedy in issue.remedies:
        changed = settings({"gpu_memory_utilization": 0.62, "max_model_len": 32_768})
        for change in remedy:
            changed = change.apply(changed)
        after = need(changed, Model(shape("7b")), None, L4)
        assert after is not None
        assert after.fits, remedy
    assert {remedy[0].key for remedy in issue.remedies} >= {"knobs.gpu_memory_utilization"}


def test_a_tight_estimate_only_warns_of_what_is_uncertain() -> None:
    """Where only the allowances are too much it is no certainty, and a start is not refused."""
    least = needed("7b", L4, {"max_model_len": 1024})
    share = (least.weights + least.kv_sequence + 300 * MIB) / L4.total_bytes
    (issue,) = found_for("7b", L4, {"max_model_len": 1024, "gpu_memory_utilization": round(share, 3)})
    assert (issue.problem.message_id, issue.certain) == ("preflight.too_tight", False)


def test_a_window_makes_it_uncertain() -> None:
    (issue,) = found_for("mistral-7b-v0.1", L4, {"gpu_memory_utilization": 0.57})
    assert issue.level == "blocking"
    assert not issue.certain


def test_flags_that_are_not_read_make_it_uncertain() -> None:
    models, need_of = of("llama-70b", L4)
    offloading = settings().model_copy(update={"extra_flags": ("--cpu-offload-gb", "200")})
    (issue,) = issues(offloading, models, DeviceRoom(L4), need_of)
    assert not issue.certain


def test_a_cpu_cache_that_is_too_small_for_one_sequence() -> None:
    big = Device("cpu", "a processor", 64 * GIB, 64 * GIB, 1 * GIB)
    (issue,) = found_for("7b", big, {"dtype": "bfloat16", "max_model_len": 32_768})
    assert (issue.problem.message_id, issue.certain) == ("preflight.no_sequence", True)
    assert (Change("knobs.kv_cache_memory_bytes", 2 * GIB),) in issue.remedies
    assert any(remedy[0].key == "knobs.max_model_len" for remedy in issue.remedies)


def test_longer_than_the_model_is_told_and_left_to_vllm() -> None:
    (issue,) = found_for("7b", H200, {"max_model_len": 100_000})
    assert (issue.level, issue.certain) == ("warning", False)
    assert issue.remedies == ((Change("knobs.max_model_len", 32_768),),)


def test_without_any_length_it_is_unknown() -> None:
    config = decoder(64, 128, 2, 2, 2, vocab_size=100, model_type="unheard_of")
    found = ModelShape.of(config)
    assert found is not None
    assert need(settings(), Model(found), None, H200) is None


def test_two_that_ask_for_nine_tenths_each() -> None:
    knobs = {"gpu_memory_utilization": 0.9}
    first = needed("7b", H200, knobs)
    (issue,) = found_for("7b", H200, knobs, place=DeviceRoom(H200, 2), before=(first,))
    assert (issue.problem.message_id, issue.certain) == ("preflight.together", True)
    half = {"gpu_memory_utilization": 0.45}
    assert found_for("7b", H200, half, place=DeviceRoom(H200, 2), before=(needed("7b", H200, half),)) == []


def test_what_is_in_use_now_only_warns() -> None:
    used = Device("cuda", "NVIDIA H200", H200.total_bytes, 20 * GIB)
    (issue,) = found_for("7b", used)
    assert (issue.problem.message_id, issue.level) == ("preflight.not_free", "warning")


def test_the_length_that_there_is_room_for() -> None:
    """max_model_len = auto: vLLM takes the longest that fits, and never more than the model was made for."""
    tight = {"gpu_memory_utilization": 0.69}
    auto = needed("7b", L4, {**tight, "max_model_len": "auto"})
    assert auto.fits
    assert auto.length < 32_768
    assert needed("7b", L4, {**tight, "max_model_len": auto.length}).fits
    assert not needed("7b", L4, {**tight, "max_model_len": auto.length + 16}).fits
    assert found_for("7b", L4, {**tight, "max_model_len": "auto"}) == []
    roomy = needed("7b", H200, {"max_model_len": "auto"})
    assert roomy.length == needed("7b", H200).length
    # Weights that do not fit leave no room for any length.
    (issue,) = found_for("llama-70b", L4, {"max_model_len": -1})
    assert issue.problem.message_id == "preflight.weights_too_big"
