// The reference interpreter with every rounding disturbed: how far two runs with different samples
// lie apart tells what rounding alone can do to a result, and whether a decision (a comparison, a
// floor, an argmax) hangs on it.
#pragma once

#include <unordered_map>

#include "support/random_source.h"
#include "tessera/graph/interpret.h"

namespace tessera {

class Disturbed {
 public:
  // Sample 0 disturbs nothing, sample 1 rounds every result to its type, as ops run one by one do.
  explicit Disturbed(uint64_t sample) : sample_(sample), random_(sample) {}

  void set_leaf(const Value& leaf, const Array& data);

  // The value, computed once; its leaves must be known.
  const Array& at(const Value& value);

 private:
  struct Entry {
    NodePtr node;  // holds the address that is the key
    std::vector<Array> outputs;
  };
  void evaluate(const NodePtr& node);
  Array evaluate_disturbed(const Node& node);
  void disturb(Array& array);

  uint64_t sample_;
  RandomSource random_;
  std::unordered_map<const Node*, Entry> known_;
};

}  // namespace tessera
