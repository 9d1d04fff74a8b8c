// Golden files: what PyTorch gave for small cases (tests/golden/make_golden.py), and rows that
// compute the same with Tessera.
//
// Both start from the same numbers, which bf16 holds exactly. The reference is PyTorch in f64. In
// f64 a result may differ from it by 1e-12 of the tensor's largest value; in f32 and bf16 by twice
// PyTorch's own largest error in that type and two units in the last place of the largest value.
// Second order in f32 is a chain of dozens of roundings, of which PyTorch's run is one sample,
// often a lucky one for a single number: there it is eight units. What is computed f64 decides.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/io/json.h"
#include "tessera/tensor/files.h"
#include "tessera/tensor/tensor.h"

namespace tessera::golden {

using Outputs = std::vector<Tensor>;

struct Inputs {
  std::vector<Tensor> tensors;
  DType dtype;  // of the case: for functions without an operand

  const Tensor& operator[](size_t i) const { return tensors.at(i); }
};
using X = const Inputs&;

// Rows ------------------------------------------------------------------------------------------

struct Row {
  Row(std::string_view case_name, Outputs (*function)(X)) : name(case_name), run(function) {}
  Row(std::string_view case_name, Tensor (*function)(X))
      : name(case_name), run([function](X x) { return Outputs{function(x)}; }) {}
  Row(std::string_view case_name, Tensor (*function)(In))
      : name(case_name), run([function](X x) { return Outputs{function(x[0])}; }) {}
  Row(std::string_view case_name, Tensor (*function)(In, In))
      : name(case_name), run([function](X x) { return Outputs{function(x[0], x[1])}; }) {}

  std::string_view name;
  std::function<Outputs(X)> run;
};

// Each file of rows gives its part of them.
std::vector<Row> elementwise_rows();
std::vector<Row> reduce_rows();
std::vector<Row> structure_rows();
std::vector<Row> network_rows();
std::vector<Row> loss_rows();
std::vector<Row> creation_rows();

const std::vector<Row>& floating_rows();  // all of the above: run in f64, f32 and bf16
const std::vector<Row>& exact_rows();     // of given types, whose results must be equal

struct SecondOrderRow {
  std::string_view name;
  Tensor (*function)(X);  // a scalar
  // A function of the gradient, whose gradient is compared: by default the derivative along the
  // case's directions.
  Tensor (*of_gradient)(const Outputs& gradients, const Outputs& directions) = nullptr;
};
const std::vector<SecondOrderRow>& second_order_rows();

// Files -----------------------------------------------------------------------------------------

class GoldenFile {
 public:
  explicit GoldenFile(const std::string& file_name);  // in tests/golden/data

  // "exp", "out", 0; empty when absent.
  Tensor find(std::string_view case_name, std::string_view kind, size_t number) const;
  std::vector<Tensor> all(std::string_view case_name, std::string_view kind) const;
  const Json& facts(std::string_view case_name) const;
  std::vector<std::string> cases() const;
  const std::string& torch_version() const { return torch_version_; }

 private:
  NamedTensors tensors_;
  std::map<std::string, Json, std::less<>> facts_;
  std::string torch_version_;
};
const GoldenFile& first_order_file();
const GoldenFile& second_order_file();

// Comparison ------------------------------------------------------------------------------------

double ulp_at(DType dtype, double value);  // f32, bf16: the distance of neighbours at |value|
// How far from PyTorch's f64 a tensor whose largest |value| is `scale` may be.
inline constexpr double kUlps = 2, kSecondOrderUlps = 8;
double tolerance(DType dtype, double scale, double own_error, double ulps = kUlps);
// "" when every element is within the tolerance, and those that are not finite are the same.
std::string compare(const Tensor& result, const Tensor& reference, DType dtype, double own_error,
                    double ulps = kUlps);

// Why PyTorch itself could not run the case in this type; "" where it could.
std::string skipped(std::string_view case_name, DType dtype);
// What differs, a line each; "" when nothing does.
std::string differences(const Row& row, DType dtype);
std::string exact_differences(const Row& row);
std::string second_order_differences(const SecondOrderRow& row, DType dtype);

}  // namespace tessera::golden
