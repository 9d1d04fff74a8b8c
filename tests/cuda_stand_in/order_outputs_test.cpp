// Outputs in the order in which they are read (compile/order_outputs), in the step of a GPT.
#include <algorithm>

#include "cuda_stand_in/stand_in_test.h"
#include "tessera/tensor/eval.h"
#include "tessera/tessera.h"

namespace tessera::test {
namespace {

class CudaOutputsTest : public OnStandIn<> {};

using Lists = std::vector<std::vector<float>>;

struct Step {
  Lists values;  // the loss, and what each parameter has become
  int copies = 0, moves = 0;
};

// Kernels that do nothing but move values which attention wrote.
int count_moves(const Program& program) {
  std::vector<int> written;
  for (const Instruction& each : program.instructions) {
    const bool attends = each.call.kernel.starts_with("attention");
    for (int i = 0; attends && i < each.call.outputs; ++i) {
      written.push_back(each.buffers[each.buffers.size() - size_t(i) - 1]);
    }
  }
  return int(std::ranges::count_if(program.instructions, [&](const Instruction& each) {
    return each.call.ir && std::ranges::find(written, each.buffers[0]) != written.end();
  }));
}

Step trained(Checkpointing checkpointing, bool orders) {
  constexpr int64_t kTokens = 2 * 40, kWords = 64;
  CompileOptions options;
  options.order_outputs = orders;
  options.verify = true;
  const CompileOptions before = set_compile_options(options);
  Gpt model({.vocabulary = kWords, .context = 40, .width = 48, .layers = 2, .heads = 3}, Random(3));
  model.to(DType::bf16);
  model.set_checkpointing(checkpointing);
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < kTokens; ++i) tokens.push_back(i * 5 % kWords);
  const Tensor in = tensor(tokens, {2, 40}).eval();
  AdamW optimizer(model.parameters());
  auto step = compile([&] {
    const Tensor loss = model.loss(in, in);
    backward(loss);
    optimizer.step();
    return loss;
  });
  Step result;
  result.values.push_back(step().to_vector<float>());
  for (const Var& each : model.parameters()) {
    result.values.push_back(cast(each.value(), DType::f32).to_vector<float>());
  }
  result.copies = step.program().report.copies;
  result.moves = count_moves(step.program());
  set_compile_options(before);
  return result;
}

// Each of two layers would copy attention's result, and three gradients before they are joined.
TEST_F(CudaOutputsTest, AGptsStepMovesNothingThatAttentionWrote) {
  for (const Checkpointing checkpointing :
       {Checkpointing::none, Checkpointing::selective, Checkpointing::block}) {
    const Step in_order = trained(checkpointing, false), here = trained(checkpointing, true);
    EXPECT_EQ(here.values, in_order.values);
    EXPECT_EQ(here.copies, in_order.copies - 8);
    EXPECT_EQ(here.moves, 0);
    EXPECT_GT(in_order.moves, 0);
  }
}

}  // namespace
}  // namespace tessera::test
