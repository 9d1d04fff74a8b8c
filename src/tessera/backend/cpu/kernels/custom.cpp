// custom: a function that a user of the library brought along, over packed operands.
#include "tessera/backend/cpu/kernels/named_kernel.h"

namespace tessera::cpu {

namespace {

class Custom : public NamedKernel {
 public:
  explicit Custom(const KernelCall& call) : kernel_(call.custom), outputs_(size_t(call.outputs)) {
    const size_t inputs = call.operands.size() - outputs_;
    for (const OperandView& operand : call.operands) {
      operands_.push_back({nullptr, operand.dtype, operand.view.shape, operands_.size() < inputs});
      offsets_.push_back(operand.view.offset * size_of(operand.dtype));
    }
  }

  void run(std::span<char* const> at) const override {
    std::vector<CustomOperand> operands = operands_;
    for (size_t i = 0; i < at.size(); ++i) operands[i].data = at[i] + offsets_[i];
    const std::span<const CustomOperand> all(operands);
    kernel_->cpu(all.first(all.size() - outputs_), all.last(outputs_));
  }

 private:
  std::shared_ptr<const CustomKernel> kernel_;
  size_t outputs_;
  std::vector<CustomOperand> operands_;
  std::vector<int64_t> offsets_;  // bytes
};

}  // namespace

std::unique_ptr<NamedKernel> make_custom(const KernelCall& call) {
  TESSERA_ASSERT(call.custom != nullptr && call.custom->cpu);
  expect_contiguous(call);
  return std::make_unique<Custom>(call);
}

}  // namespace tessera::cpu
