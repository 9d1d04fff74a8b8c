#include "backend_cpu/named_kernels.h"
#include "tessera/backend/cpu/cpu_backend.h"

namespace tessera::test {

Backend& test_backend() {
  static const std::unique_ptr<Backend> backend = make_cpu_backend();
  return *backend;
}

Operand dense(Array array, Shape shape) { return {std::move(array), contiguous_view(shape)}; }

double at(const Operand& operand, int64_t position) {
  const View& view = operand.view;
  int64_t offset = view.offset;
  for (int d = view.shape.rank() - 1; d >= 0; --d) {
    offset += position % view.shape[d] * view.strides[d];
    position /= view.shape[d];
  }
  return operand.array.get(offset);
}

KernelCall make_call(const std::string& kernel, const std::vector<Operand>& operands, int outputs,
                     KernelAttrs attrs) {
  KernelCall call;
  call.kernel = kernel;
  call.outputs = outputs;
  call.attrs = attrs;
  for (const Operand& operand : operands) {
    call.operands.push_back({operand.array.dtype(), operand.view});
  }
  return call;
}

void call(const std::string& kernel, std::vector<Operand>& operands, int outputs,
          KernelAttrs attrs) {
  const auto executable = test_backend().compile(make_call(kernel, operands, outputs, attrs));
  std::vector<BufferRef> refs;
  for (Operand& operand : operands) refs.push_back({operand.array.data(), 0});
  test_backend().launch(*executable, refs, 0, Stream{});
}

}  // namespace tessera::test
