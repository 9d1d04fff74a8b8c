// Applying a row of the conformance table: data, layouts, neighbours, and errors in ulps.
#pragma once

#include "tessera/compile/compile.h"
#include "tessera/conformance/reference.h"
#include "tessera/conformance/table.h"
#include "tessera/tensor/tensor.h"

namespace tessera {

// Layouts of the inputs: 0 all contiguous; 1 … kLayouts - 1 mix transposed, stepped, flipped and
// repeated views, another one for each input.
inline constexpr int kLayouts = 5;

// Inputs of a case with their data, and the op as a function of them.
struct Application {
  std::vector<Tensor> leaves;
  Build apply;

  std::vector<Value> outputs() const;
};

Application apply_row(const Row& row, const Case& c, DType dtype, int layout);

// The same between neighbours that can be fused with it: each operand is a product or a sum of a
// leaf and a constant, and each output is shifted and, beside that, summed over its last axis.
Application apply_between_neighbours(const Row& row, const Case& c, DType dtype);

// The outputs by way of compile(fn) with these options.
struct CompiledRun {
  std::vector<Array> outputs;
  int kernels = 0;
};
CompiledRun run_compiled(const Application& application, const CompileOptions& options);

enum class Unit : uint8_t { element, largest };  // whose last place errors are counted in

// Distances in ulps of `actual`'s dtype; infinite where integers differ at all, or where one is
// finite and the other is not.
struct UlpErrors {
  double largest = 0, sum = 0;
  int64_t count = 0;  // elements
};
UlpErrors ulp_errors(const Array& actual, const Array& expected, Unit unit);

// The largest of these.
double error_in_ulps(const Array& actual, const Array& expected, Unit unit);

// Where the random data of an op's row begins: by its name, so that a new op changes no other's
// data.
int64_t first_seed(Op op);

// What error_in_ulps may give for one application of the row's op.
double tolerance(const Row& row, const Case& c, DType result);

}  // namespace tessera
