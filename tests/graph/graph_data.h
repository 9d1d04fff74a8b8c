// Leaves with data, and graphs evaluated on them by the reference interpreter.
#pragma once

#include <unordered_map>
#include <vector>

#include "tessera/graph/interpret.h"

namespace tessera {

class GraphData {
 public:
  Value real(const Shape& shape, std::vector<double> data, DType dtype = DType::f64) {
    return keep({{dtype, shape}, std::move(data), {}});
  }

  Value integer(const Shape& shape, std::vector<int64_t> data, DType dtype = DType::i64) {
    return keep({{dtype, shape}, {}, std::move(data)});
  }

  std::vector<Array> evaluate_all(const std::vector<Value>& outputs) const {
    return interpret(outputs, [this](const Node& leaf) { return arrays_.at(&leaf); });
  }

  Array evaluate(const Value& output) const { return evaluate_all({output})[0]; }

 private:
  Value keep(Array array) {
    leaves_.push_back(make_leaf(array.type));
    arrays_[leaves_.back().node.get()] = std::move(array);
    return leaves_.back();
  }

  std::vector<Value> leaves_;
  std::unordered_map<const Node*, Array> arrays_;
};

}  // namespace tessera
