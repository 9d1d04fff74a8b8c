#include "golden/golden.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "tessera/tensor/autograd.h"
#include "tessera/tensor/ops.h"

namespace tessera::golden {

namespace {

// Where a result's type is deliberately not PyTorch's. A name ending in '*' stands for all cases
// that begin like it.
struct OtherType {
  std::string_view name;
  std::string_view theirs;
  DType ours;
};
constexpr OtherType kOtherTypes[] = {
    // A loss of half types is f32: summed over a batch it would lose what training needs.
    {"cross_entropy*", "bf16", DType::f32},
    {"nll_loss*", "bf16", DType::f32},
    {"mse_loss*", "bf16", DType::f32},
    {"l1_loss*", "bf16", DType::f32},
    {"huber_loss*", "bf16", DType::f32},
    {"bce_with_logits*", "bf16", DType::f32},
    {"kl_div*", "bf16", DType::f32},
    // Sums of i32 stay i32.
    {"i32_reductions", "i64", DType::i32},
    // There is no i16.
    {"promote_*", "i16", DType::i32},
};

bool matches(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

std::string_view expected_type(std::string_view case_name, std::string_view theirs) {
  for (const OtherType& other : kOtherTypes) {
    if (other.theirs == theirs && matches(other.name, case_name)) return name(other.ours);
  }
  return theirs;
}

template <class To>
Tensor converted(const std::vector<bf16>& from, const Shape& shape) {
  std::vector<To> to;
  std::ranges::transform(from, std::back_inserter(to), [](bf16 x) { return To(float(x)); });
  return tensor(to, shape);
}

// A fresh leaf with the numbers of a bf16 tensor in another type.
Tensor in_type(const Tensor& x, DType dtype) {
  const std::vector<bf16> data = x.to_vector<bf16>();
  switch (dtype) {
    case DType::f64: return converted<double>(data, x.shape());
    case DType::f32: return converted<float>(data, x.shape());
    default: return converted<bf16>(data, x.shape());
  }
}

std::vector<double> numbers(const Tensor& x) {
  return visit(x.dtype(), [&]<class T>() {
    const std::vector<T> data = x.to_vector<T>();
    std::vector<double> result;
    for (const T value : data) result.push_back(double(value));
    return result;
  });
}

Inputs inputs_of(const GoldenFile& file, std::string_view name, DType dtype) {
  Inputs inputs{file.all(name, "in"), dtype};
  for (Tensor& x : inputs.tensors) {
    if (x.dtype() == DType::bf16) x = in_type(x, dtype);
  }
  return inputs;
}

void report(std::string& lines, std::string_view what, size_t number, const std::string& text) {
  if (!text.empty()) lines += cat(what, " ", number, ": ", text, "\n");
}

std::string compare_types(std::string_view case_name, const Outputs& outputs, const Json& theirs) {
  const Json::Array& names = theirs.at("dtypes").as_array();
  if (outputs.size() != names.size()) {
    return cat("expected ", names.size(), " results, got ", outputs.size(), "\n");
  }
  std::string lines;
  for (size_t j = 0; j < outputs.size(); ++j) {
    const std::string_view expected = expected_type(case_name, names[j].as_string());
    if (name(outputs[j].dtype()) == expected) continue;
    report(lines, "out", j, cat("expected ", expected, ", got ", outputs[j].dtype()));
  }
  return lines;
}

// The sum of outputs · cotangents; empty where no output has a cotangent.
Tensor weighed(const GoldenFile& file, std::string_view name, const Outputs& outputs) {
  Tensor total;
  for (size_t j = 0; j < outputs.size(); ++j) {
    const Tensor cotangent = file.find(name, "cotangent", j);
    if (!cotangent.defined()) continue;
    const Tensor part = sum(outputs[j] * cast(cotangent, outputs[j].dtype()));
    total = total.defined() ? total + part : part;
  }
  return total;
}

std::string gradient_differences(const Row& row, X inputs, const Outputs& outputs,
                                 const Json& facts) {
  const GoldenFile& file = first_order_file();
  const Tensor loss = weighed(file, row.name, outputs);
  std::string lines;
  if (!loss.defined()) return lines;
  std::vector<Tensor> wanted;
  std::vector<size_t> positions;
  for (size_t i = 0; i < inputs.tensors.size(); ++i) {
    if (!file.find(row.name, "grad", i).defined()) continue;
    wanted.push_back(inputs[i]);
    positions.push_back(i);
  }
  const std::vector<Tensor> gradients = grad(loss, wanted);
  for (size_t k = 0; k < gradients.size(); ++k) {
    const size_t i = positions[k];
    if (gradients[k].dtype() != inputs[i].dtype()) {
      report(lines, "grad", i, cat("is ", gradients[k].dtype()));
    }
    const double own =
        inputs.dtype == DType::f64 ? 0 : facts.at("grad").at(std::to_string(i)).as_double();
    report(lines, "grad", i,
           compare(gradients[k], file.find(row.name, "grad", i), inputs.dtype, own));
  }
  return lines;
}

}  // namespace

// Files -----------------------------------------------------------------------------------------

GoldenFile::GoldenFile(const std::string& file_name) {
  TensorsWithMetadata file =
      load_safetensors_with_metadata(std::string(TESSERA_TEST_DIR) + "/data/" + file_name);
  tensors_ = std::move(file.tensors);
  for (const auto& [key, text] : file.metadata) {
    if (key == "torch") {
      torch_version_ = text;
    } else {
      facts_.emplace(key, Json::parse(text, key));
    }
  }
}

Tensor GoldenFile::find(std::string_view case_name, std::string_view kind, size_t number) const {
  const auto found = tensors_.find(cat(case_name, "/", kind, "/", number));
  return found == tensors_.end() ? Tensor() : found->second;
}

std::vector<Tensor> GoldenFile::all(std::string_view case_name, std::string_view kind) const {
  std::vector<Tensor> result;
  for (Tensor next = find(case_name, kind, 0); next.defined();) {
    result.push_back(next);
    next = find(case_name, kind, result.size());
  }
  return result;
}

const Json& GoldenFile::facts(std::string_view case_name) const {
  static const Json none;
  const auto found = facts_.find(case_name);
  return found == facts_.end() ? none : found->second;
}

std::vector<std::string> GoldenFile::cases() const {
  std::vector<std::string> names;
  for (const auto& [name, _] : facts_) names.push_back(name);
  return names;
}

const GoldenFile& first_order_file() {
  static const GoldenFile file("first_order.safetensors");
  return file;
}
const GoldenFile& second_order_file() {
  static const GoldenFile file("second_order.safetensors");
  return file;
}

// Comparison ------------------------------------------------------------------------------------

double ulp_at(DType dtype, double value) {
  const int digits = dtype == DType::bf16 ? 7 : 23;
  const int exponent = value == 0 ? -126 : std::max(std::ilogb(value), -126);
  return std::ldexp(1.0, exponent - digits);
}

double tolerance(DType dtype, double scale, double own_error, double ulps) {
  if (dtype == DType::f64) return 1e-12 * scale;
  return 2 * own_error + ulps * ulp_at(dtype, scale);
}

std::string compare(const Tensor& result, const Tensor& reference, DType dtype, double own_error,
                    double ulps) {
  if (result.shape() != reference.shape()) {
    return cat("expected ", reference.shape(), ", got ", result.shape());
  }
  const std::vector<double> ours = numbers(result), theirs = numbers(reference);
  double scale = 0;
  for (const double x : theirs) {
    if (std::isfinite(x)) scale = std::max(scale, std::fabs(x));
  }
  const bool exact = !is_float(reference.dtype());
  const double allowed = exact ? 0 : tolerance(dtype, scale, own_error, ulps);
  for (size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == theirs[i] || (std::isnan(ours[i]) && std::isnan(theirs[i]))) continue;
    const double error = std::fabs(ours[i] - theirs[i]);
    if (error <= allowed) continue;  // false for NaN
    return cat("element ", i, ": expected ", theirs[i], ", got ", ours[i], ": ", error,
               " apart, allowed ", allowed, " (PyTorch's own error ", own_error, ")");
  }
  return "";
}

std::string skipped(std::string_view case_name, DType dtype) {
  const Json& facts = first_order_file().facts(case_name)[name(dtype)];
  return facts.get<std::string>("skipped", "");
}

std::string differences(const Row& row, DType dtype) {
  const GoldenFile& file = first_order_file();
  const Json& facts = file.facts(row.name).at(name(dtype));
  const Inputs inputs = inputs_of(file, row.name, dtype);
  const Outputs outputs = row.run(inputs), references = file.all(row.name, "out");
  std::string lines = compare_types(row.name, outputs, facts);
  if (outputs.size() != references.size()) return lines;
  bool comparable = true;
  for (size_t j = 0; j < outputs.size(); ++j) {
    const double own = dtype == DType::f64 ? 0 : facts.at("out").at(j).as_double();
    report(lines, "out", j, compare(outputs[j], references[j], dtype, own));
    comparable = comparable && outputs[j].shape() == references[j].shape();
  }
  return comparable ? lines + gradient_differences(row, inputs, outputs, facts) : lines;
}

std::string exact_differences(const Row& row) {
  const GoldenFile& file = first_order_file();
  const Outputs outputs = row.run({file.all(row.name, "in"), DType::f64});
  const Outputs references = file.all(row.name, "out");
  std::string lines = compare_types(row.name, outputs, file.facts(row.name).at("exact"));
  if (outputs.size() != references.size()) return lines;
  for (size_t j = 0; j < outputs.size(); ++j) {
    const Tensor& reference = references[j];
    const std::vector<double> ours = numbers(outputs[j]), theirs = numbers(reference);
    if (outputs[j].shape() == reference.shape() && ours == theirs) continue;
    report(lines, "out", j,
           cat("expected ", to_string(reference), ", got ", to_string(outputs[j])));
  }
  return lines;
}

std::string second_order_differences(const SecondOrderRow& row, DType dtype) {
  const GoldenFile& file = second_order_file();
  const Json& facts = file.facts(row.name);
  const Inputs inputs = inputs_of(file, row.name, dtype);
  std::vector<Tensor> wanted, directions;
  for (const Json& i : facts.at("wanted").as_array()) wanted.push_back(inputs[size_t(i.as_int())]);
  for (const Tensor& v : file.all(row.name, "direction")) directions.push_back(in_type(v, dtype));

  const Tensor value = row.function(inputs);
  const std::vector<Tensor> first = grad(value, wanted);
  Tensor slope;
  if (row.of_gradient != nullptr) {
    slope = row.of_gradient(first, directions);
  } else {
    slope = sum(first[0] * directions[0]);
    for (size_t k = 1; k < first.size(); ++k) slope = slope + sum(first[k] * directions[k]);
  }
  const std::vector<Tensor> second = grad(slope, wanted);

  std::string lines;
  const std::pair<std::string_view, std::vector<Tensor>> results[] = {
      {"value", {value}}, {"grad", first}, {"second", second}};
  for (const auto& [kind, tensors] : results) {
    for (size_t k = 0; k < tensors.size(); ++k) {
      const double own = dtype == DType::f64 ? 0 : facts.at("f32").at(kind).at(k).as_double();
      report(lines, kind, k,
             compare(tensors[k], file.find(row.name, kind, k), dtype, own, kSecondOrderUlps));
    }
  }
  return lines;
}

// Rows ------------------------------------------------------------------------------------------

const std::vector<Row>& floating_rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> rows;
    for (const auto& part : {elementwise_rows(), reduce_rows(), structure_rows(), network_rows(),
                             loss_rows(), creation_rows()}) {
      rows.insert(rows.end(), part.begin(), part.end());
    }
    return rows;
  }();
  return all;
}

}  // namespace tessera::golden
