#include "codegen/emitted.h"

#include <set>

#include "tessera/compile/compile.h"
#include "tessera/conformance/check_op.h"
#include "tessera/tensor/eval.h"
#include "tessera/tessera.h"

namespace tessera {

Target gpu_target() {
  Target target;
  target.device = "gpu";
  target.named_kernels = {
      "matmul",      "cumsum",  "cumprod",      "sort",      "topk",
      "scatter_add", "scatter", "update_slice", "attention", "attention_backward",
      "copy",        "custom"};
  return target;
}

std::vector<EmittedKernel> emitted_kernels(std::span<const Value> outputs,
                                           const std::string& from) {
  const Program program = compile_graph(capture({}, outputs, {}).function, gpu_target());
  std::vector<EmittedKernel> kernels;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.call.ir == nullptr) continue;
    EmittedKernel kernel{instruction.call.ir, {}, from};
    for (const int buffer : instruction.buffers) {
      kernel.bytes.push_back(program.buffers[size_t(buffer)].bytes);
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

std::vector<EmittedKernel> conformance_kernels(bool all) {
  std::vector<EmittedKernel> result;
  std::set<std::string> seen;
  const auto add = [&](const Application& application, const std::string& from) {
    for (EmittedKernel& kernel : emitted_kernels(application.outputs(), from)) {
      if (seen.insert(key(*kernel.ir)).second) result.push_back(std::move(kernel));
    }
  };
  size_t turn = 0;
  for (const Row& row : rows()) {
    ++turn;
    const std::vector<DType> taken = dtypes_taken(row);
    std::vector<DType> dtypes = taken;
    if (!all) {
      dtypes = first_dtype(row);
      if (!taken.empty()) dtypes.push_back(taken[turn % taken.size()]);
    }
    for (size_t d = 0; d < dtypes.size(); ++d) {
      const std::vector<Case> cases = row.cases(dtypes[d]);
      for (size_t c = 0; c < cases.size(); ++c) {
        const std::string from = cat(name(row.op), " ", dtypes[d], " ", cases[c].name);
        if (!all && c != (d == 0 ? 0 : turn % cases.size())) continue;
        const int layout = int((turn + c) % kLayouts);
        for (int k = 0; k < kLayouts; ++k) {
          if (all || k == layout) add(apply_row(row, cases[c], dtypes[d], k), from);
        }
        if (all || d == 0) add(apply_between_neighbours(row, cases[c], dtypes[d]), from);
      }
    }
  }
  return result;
}

std::vector<Piece> network_pieces(DType dtype) {
  const Tensor x = random_tensor({6, 40}, 1, dtype), w = random_tensor({6, 40}, 2, dtype);
  const Tensor gamma = random_tensor({40}, 3, dtype), beta = random_tensor({40}, 4, dtype);
  std::vector<Piece> pieces;
  // Each beside its gradient with respect to its first input.
  const auto add = [&](const std::string& name, const Tensor& y, size_t forward, size_t backward) {
    pieces.push_back({name, {y.value()}, forward});
    const Tensor weights = y.shape() == w.shape() ? w : random_tensor(y.shape(), 5, dtype);
    const Tensor gradient = grad(sum(y * weights), x);
    pieces.push_back({name + " backward", {gradient.value()}, backward});
  };
  add("softmax", softmax(x), 1, 1);
  add("log_softmax", log_softmax(x), 1, 1);
  add("layer_norm", layer_norm(x, gamma, beta), 1, 1);
  add("rms_norm", rms_norm(x, gamma), 1, 1);
  add("logsumexp", logsumexp(x, 1), 1, 1);
  add("softmax of columns", softmax(x, 0), 2, 2);
  add("mean of columns", mean(x, 0), 2, 2);
  add("norm of all", norm(x), 2, 3);
  pieces.push_back({"argmax", {argmax(x).value()}, 1});
  pieces.push_back({"argmax of columns", {argmax(x, 0).value()}, 1});
  pieces.push_back({"gelu", {gelu_tanh(x * 2 + gamma).value()}, 1});
  return pieces;
}

}  // namespace tessera
