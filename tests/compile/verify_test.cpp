// The checks between passes find what a broken pass would leave behind.
#include <gtest/gtest.h>

#include "compile/function_builder.h"

namespace tessera {
namespace {

using namespace graph;

GraphFunction example() {
  const Value x = leaf({8, 8});
  return function({x}, {matmul(apply(Op::exp, x), x)});
}

// A custom_vjp without its function is the one broken node that can be built from outside.
TEST(Verify, CompileChecksBetweenPassesWhenAsked) {
  const Value x = leaf({2});
  Attrs attrs;
  attrs.axis = 1;
  const Value broken{make_node(Op::custom_vjp, {x, apply(Op::exp, x)}, attrs, nullptr), 0};
  const GraphFunction f = function({x}, {broken});
  CompileOptions options;
#ifdef NDEBUG
  EXPECT_FALSE(options.verify);
#else
  EXPECT_TRUE(options.verify);
#endif
  options.verify = false;
  EXPECT_EQ(compile_graph(f, full_target(), options).instructions.size(), 1u);
  options.verify = true;
  try {
    compile_graph(f, full_target(), options);
    ADD_FAILURE() << "expected a std::logic_error";
  } catch (const std::logic_error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("after pass trace: ")) << error.what();
  }
}

TEST(VerifyInstances, FindsBrokenLists) {
  const Instances good = instances_of(example());
  EXPECT_EQ(verify_instances(good), "");
  Instances early = good;
  early.list[1].inputs[0].inst = 2;
  EXPECT_EQ(verify_instances(early), "instance 1 (exp) reads instance 2 too early");
  Instances outside = good;
  outside.list[1].inputs[0].view.offset = 1;
  EXPECT_EQ(verify_instances(outside), "instance 1 (exp) reads outside f32(8, 8)");
  Instances output = good;
  output.list[1].inputs[0].out = 1;
  EXPECT_EQ(verify_instances(output), "instance 1 (exp) reads output 1");
  Instances move = good;
  move.list[1].op = Op::permute;
  EXPECT_EQ(verify_instances(move),
            "instance 1 (permute) is a move, which layout should have removed");
  Instances marker = good;
  marker.list[1].op = Op::stop_gradient;
  EXPECT_EQ(verify_instances(marker),
            "instance 1 (stop_gradient) is a marker, which lower should have removed");
  Instances result = good;
  result.outputs[0].view.offset = 1;
  EXPECT_EQ(verify_instances(result), "an output reads outside f32(8, 8)");
  Instances assigned = good;
  assigned.assigns.push_back({0, assigned.outputs[0]});
  EXPECT_EQ(verify_instances(assigned), "");
  assigned.externals[0].shape = {4, 8};
  EXPECT_EQ(verify_instances(assigned), "an assign of (8, 8) to f32(4, 8)");
}

TEST(VerifyKernels, FindsBrokenOrders) {
  const KernelGraph good = kernels_of(example());
  EXPECT_EQ(verify_kernels(good), "");
  KernelGraph swapped = good;
  std::swap(swapped.kernels[0], swapped.kernels[1]);
  EXPECT_EQ(verify_kernels(swapped), "kernel 0 (matmul) reads buffer 1 before it is written");
  KernelGraph overwriting = good;
  overwriting.after[0] = {1};
  EXPECT_EQ(verify_kernels(overwriting), "kernel 0 (exp) overwrites what kernel 1 still reads");
  KernelGraph leaving = good;
  leaving.kernels[1].call.operands[0].view.offset = 8;
  EXPECT_EQ(verify_kernels(leaving), "kernel 1 (matmul) leaves a buffer");
  KernelGraph unbound = good;
  unbound.kernels[1].buffers.pop_back();
  EXPECT_EQ(verify_kernels(unbound), "kernel 1 (matmul) has operands without buffers");
  KernelGraph broken = good;
  KernelIR ir = *broken.kernels[0].call.ir;
  ir.insts[1].args[0] = 1;
  broken.kernels[0].call.ir = std::make_shared<const KernelIR>(ir);
  EXPECT_NE(verify_kernels(broken), "");
}

TEST(VerifyProgram, FindsOverlaps) {
  const Value x = leaf({8, 8});
  const Value a = matmul(x, x), b = matmul(a, x);
  Program p = compile_graph(function({x}, {matmul(a, b)}), full_target());
  EXPECT_EQ(verify_program(p), "");
  Program overlapping = p;
  for (PlannedBuffer& buffer : overlapping.buffers) buffer.offset = 0;
  EXPECT_EQ(verify_program(overlapping),
            "instruction 2 (matmul) reads buffer 1, which was overwritten");
  Program small = p;
  small.arena_bytes = 256;
  EXPECT_EQ(verify_program(small), "instruction 1 leaves the arena");
}

}  // namespace
}  // namespace tessera
