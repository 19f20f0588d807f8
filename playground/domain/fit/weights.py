"""The size of a model's weights once loaded, from the headers of its safetensors files, else from its shape.

Sizes are bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .shape import FLOAT_BYTES, ModelShape

# Bytes of the dtypes in a safetensors header (by its specification); two F4 share a byte.
HEADER_BYTES = {
    **{"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2},
    **{"I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "F4": 0.5},
}
# Loaded in the engine's own precision, whatever they are stored in.
CAST = {"F32", "F16", "BF16"}
# Bits of a linear layer's weight that the engine quantizes while it loads.
ONLINE_BITS = {"fp8": 8, "fp8_per_tensor": 8, "fp8_per_block": 8, "bitsandbytes": 4, "int8_per_channel": 8}
LAYER = re.compile(r"\.layers\.(\d{1,9})\.")


@dataclass(frozen=True, slots=True)
class Tensor:
    """One entry of a safetensors header: `dtype` as it stands there, `elements` the product of its shape."""

    name: str
    dtype: str
    elements: int


def weight_bytes(
    shape: ModelShape,
    tensors: Sequence[Tensor] | None,
    *,
    dtype: str,
    quantization: str | None = None,
    mtp: bool = False,
) -> int:
    """All weights of one copy of the model in the engine's `dtype`, before any is split over GPUs.

    Tied output embeddings count once; layers past the model's own are those of multi-token prediction, which are
    loaded only for it. `quantization` is the engine's setting for a model that is stored unquantized.
    """
    if tensors is None:
        return _from_shape(shape, dtype, quantization)
    online = ONLINE_BITS.get(quantization or "") if shape.quantization is None else None
    total = 0.0
    for tensor in tensors:
        if _left_out(shape, tensor.name, mtp):
            continue
        size = FLOAT_BYTES[dtype] if tensor.dtype in CAST else HEADER_BYTES.get(tensor.dtype, 1)
        if online is not None and _is_linear(tensor.name):
            size = online / 8
        elif shape.quantization is not None and tensor.dtype == "F32":
            # Scales keep their precision.
            size = 4
        total += tensor.elements * size
    return round(total)


def _left_out(shape: ModelShape, name: str, mtp: bool) -> bool:
    if shape.tied and name.endswith("lm_head.weight"):
        return True
    layer = LAYER.search(name) if "vis" not in name and "audio" not in name else None
    return not mtp and (name.startswith("mtp.") or (layer is not None and int(layer[1]) >= shape.layers))


def _is_linear(name: str) -> bool:
    return name.endswith("proj.weight") or ".experts." in name


def _from_shape(shape: ModelShape, dtype: str, quantization: str | None) -> int:
    """The size by the shape alone. As in AWQ and GPTQ, 128 weights share a 16-bit scale and a zero point."""
    bits = shape.quantization_bits or ONLINE_BITS.get(quantization or "")
    linear = shape.linear_parameters
    rest = (shape.parameters - linear) * FLOAT_BYTES[dtype]
    if bits is None:
        return rest + linear * FLOAT_BYTES[dtype]
    return rest + round(linear * (bits + (16 + bits) / 128) / 8)
