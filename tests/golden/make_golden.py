#!/usr/bin/env python3
"""Writes the golden files: what PyTorch gives for the cases of cases/, and its gradients.

    python3 tests/golden/make_golden.py tests/golden/data

Needs PyTorch 2.11 (the CPU suffices) and nothing else. Two files:

  first_order.safetensors   for each case "<case>/in/<i>", "<case>/out/<j>", "<case>/cotangent/<j>"
                            and "<case>/grad/<i>", the gradient of the sum of out · cotangent
  second_order.safetensors  "<case>/in/<i>", "<case>/direction/<k>", "<case>/value/0",
                            "<case>/grad/<k>" and "<case>/second/<k>", the gradient of a function of
                            the gradient; k counts the inputs that are differentiated

Results are those of float64. For the other types the file's metadata hold, per case, how far
PyTorch itself gets from them when it computes in that type: the tests allow twice that.
A case that fails is printed with its traceback, left out, and makes the exit status 1.
"""

import argparse
import json
import os
import struct
import sys
import traceback
import warnings

sys.dont_write_bytecode = True
import torch  # after the line above: nothing is to be written beside the sources

from cases import elementwise, exact, network, reduce, second_order, structure  # they register
from cases.registry import CASES, SECOND_ORDER, count_of, generator, real

TORCH_TYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "bool": torch.bool,
}
NAMES = {dtype: name for name, dtype in TORCH_TYPES.items()}
# How safetensors calls them, and struct.
FORMATS = {
    "f64": ("F64", "d"),
    "i64": ("I64", "q"),
    "f32": ("F32", "f"),
    "i32": ("I32", "i"),
    "bf16": ("BF16", None),
    "f16": ("F16", "e"),
    "i8": ("I8", "b"),
    "u8": ("U8", "B"),
    "bool": ("BOOL", "B"),
}


# Files ------------------------------------------------------------------------------------------


def to_bytes(dtype, values):
    if dtype == "bf16":  # the upper half of each f32
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    return struct.pack(f"<{len(values)}{FORMATS[dtype][1]}", *values)


class Writer:
    def __init__(self):
        self.tensors = {}
        self.metadata = {}

    def add(self, name, dtype, shape, values):
        self.tensors[name] = (dtype, list(shape), to_bytes(dtype, values))

    def add_input(self, name, given):
        self.add(name, "bf16" if given.dtype == "real" else given.dtype, given.shape, given.values)

    def add_result(self, name, tensor):
        """Floats as f64, integers as i64."""
        dtype = "f64" if tensor.is_floating_point() else "i64"
        if tensor.dtype == torch.bool:
            dtype = "bool"
        self.add(name, dtype, tensor.shape, flat(tensor.to(TORCH_TYPES[dtype])))

    def write(self, path):
        order = list(FORMATS)
        names = sorted(self.tensors, key=lambda n: (order.index(self.tensors[n][0]), n))
        header = {"__metadata__": self.metadata}
        offset = 0
        for name in names:
            dtype, shape, data = self.tensors[name]
            header[name] = {
                "dtype": FORMATS[dtype][0],
                "shape": shape,
                "data_offsets": [offset, offset + len(data)],
            }
            offset += len(data)
        head = json.dumps(header, separators=(",", ":")).encode()
        head += b" " * (-len(head) % 8)
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(head)) + head)
            for name in names:
                file.write(self.tensors[name][2])


# Cases ------------------------------------------------------------------------------------------


def flat(tensor):
    return tensor.detach().reshape(-1).tolist()


def to_torch(given, dtype):
    dtype = dtype if given.dtype == "real" else TORCH_TYPES[given.dtype]
    tensor = torch.tensor(given.values, dtype=dtype).reshape(given.shape)
    return tensor.requires_grad_(given.wants_gradient)


def as_list(result):
    return [result] if isinstance(result, torch.Tensor) else list(result)


def gradients(outputs, inputs, cotangents, create_graph=False):
    """Zeros where nothing depends on an input."""
    found = torch.autograd.grad(outputs, inputs, cotangents, allow_unused=True,
                                create_graph=create_graph)
    return [torch.zeros_like(i) if g is None else g for g, i in zip(found, inputs)]


def largest_error(result, reference):
    """The largest distance of an element; values that are not finite must be the same."""
    worst = 0.0
    for value, exact_value in zip(flat(result), flat(reference)):
        if value == exact_value or (value != value and exact_value != exact_value):
            continue
        error = abs(value - exact_value)
        if not error < float("inf"):
            raise ValueError(f"{value} in {result.dtype} where float64 has {exact_value}")
        worst = max(worst, error)
    return float(f"{worst:.6g}")


def lacks_kernel(error):
    return isinstance(error, NotImplementedError) or "not implemented for" in str(error)


def draw_cotangents(case, outputs):
    rng = generator(case.name, "cotangents")
    roots = [j for j, out in enumerate(outputs) if out.requires_grad]
    return {j: real(*outputs[j].shape)(rng)._replace(wants_gradient=False) for j in roots}


def compute(case, dtype, cotangents=None):
    """Outputs, gradients by input, cotangents by output (drawn when not given)."""
    inputs = [to_torch(given, dtype) for given in case.inputs]
    outputs = as_list(case.function(*inputs, *([dtype] if case.takes_dtype else [])))
    cotangents = draw_cotangents(case, outputs) if cotangents is None else cotangents
    wanted = [i for i, tensor in enumerate(inputs) if tensor.requires_grad]
    if not cotangents:
        return outputs, {}, cotangents
    found = gradients(
        [outputs[j] for j in cotangents],
        [inputs[i] for i in wanted],
        [to_torch(given, outputs[j].dtype) for j, given in cotangents.items()],
    )
    return outputs, dict(zip(wanted, found)), cotangents


def own_errors(case, name, reference):
    """What PyTorch gives in another type: the types of its results and its own errors."""
    outputs, grads, cotangents = reference
    try:
        own_outputs, own_grads, _ = compute(case, TORCH_TYPES[name], cotangents)
    except (NotImplementedError, RuntimeError) as error:
        if not lacks_kernel(error):
            raise
        return {"skipped": str(error).splitlines()[0]}
    errors = []
    for own, out in zip(own_outputs, outputs, strict=True):
        if out.is_floating_point():
            errors.append(largest_error(own, out))
            continue
        if not torch.equal(own, out):
            raise ValueError(f"the type {name} changes a result that is no floating-point number")
        errors.append(0.0)
    return {
        "dtypes": [NAMES[own.dtype] for own in own_outputs],
        "out": errors,
        "grad": {str(i): largest_error(own_grads[i], g) for i, g in grads.items()},
    }


def add_case(writer, case):
    reference = compute(case, torch.float64)
    outputs, grads, cotangents = reference
    facts = {"dtypes": [NAMES[out.dtype] for out in outputs]}
    if case.exact:
        facts = {"inputs": len(case.inputs), "exact": facts}
    else:
        facts = {"inputs": len(case.inputs), "f64": facts}
        for name in ("f32", "bf16"):
            facts[name] = own_errors(case, name, reference)
    for i, given in enumerate(case.inputs):
        writer.add_input(f"{case.name}/in/{i}", given)
    for j, given in cotangents.items():
        writer.add_input(f"{case.name}/cotangent/{j}", given)
    for j, out in enumerate(outputs):
        writer.add_result(f"{case.name}/out/{j}", out)
    for i, grad in grads.items():
        writer.add_result(f"{case.name}/grad/{i}", grad)
    writer.metadata[case.name] = json.dumps(facts, separators=(",", ":"))
    return facts


# Second order -----------------------------------------------------------------------------------


def compute_second(case, dtype):
    inputs = [to_torch(given, dtype) for given in case.inputs]
    directions = [to_torch(given, dtype) for given in case.directions]
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    value = case.function(*inputs)
    first = gradients([value], wanted, None, create_graph=True)
    second = gradients([case.of_gradient(first, directions)], wanted, None)
    return {"value": [value], "grad": first, "second": second}


def add_second_order(writer, case):
    reference = compute_second(case, torch.float64)
    own = compute_second(case, torch.float32)
    facts = {"inputs": len(case.inputs), "f32": {}}
    for kind, tensors in reference.items():
        for k, tensor in enumerate(tensors):
            writer.add_result(f"{case.name}/{kind}/{k}", tensor)
        facts["f32"][kind] = [largest_error(*pair) for pair in zip(own[kind], tensors)]
    for i, given in enumerate(case.inputs):
        writer.add_input(f"{case.name}/in/{i}", given)
    for k, given in enumerate(case.directions):
        writer.add_input(f"{case.name}/direction/{k}", given)
    facts["wanted"] = [i for i, given in enumerate(case.inputs) if given.wants_gradient]
    writer.metadata[case.name] = json.dumps(facts, separators=(",", ":"))
    return facts


# All --------------------------------------------------------------------------------------------


def make_file(path, cases, add):
    """Writes one file; returns the names of the cases that failed."""
    writer = Writer()
    writer.metadata["torch"] = torch.__version__.split("+")[0]
    failed, skipped = [], 0
    for case in cases.values():
        try:
            facts = add(writer, case)
        except Exception:
            failed.append(case.name)
            print(f"{case.name}: FAILED")
            traceback.print_exc(file=sys.stdout)
            continue
        missing = [f"{k}: {v['skipped']}" for k, v in facts.items() if "skipped" in str(v)]
        skipped += len(missing)
        elements = sum(count_of(given.shape) for given in case.inputs)
        print(f"{case.name}: {elements} elements", *missing, sep="; ")
    writer.write(path)
    print(f"{path}: {len(cases) - len(failed)} of {len(cases)} cases, {skipped} types without a "
          f"kernel, {os.path.getsize(path)} bytes")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="where the two files go")
    folder = parser.parse_args().folder
    os.makedirs(folder, exist_ok=True)
    torch.set_num_threads(1)  # sums in one order
    warnings.filterwarnings("ignore", category=UserWarning)
    failed = make_file(f"{folder}/first_order.safetensors", CASES, add_case)
    failed += make_file(f"{folder}/second_order.safetensors", SECOND_ORDER, add_second_order)
    print(f"torch {torch.__version__}:", f"failed: {', '.join(failed)}" if failed else "all done")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
