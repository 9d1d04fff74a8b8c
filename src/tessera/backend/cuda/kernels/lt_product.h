// One product by cuBLASLt with what follows it: descriptors and the algorithm, for operands that
// are aligned so.
#pragma once

#include <functional>

#include "tessera/backend/cuda/kernels/product.h"

namespace tessera::cuda {

class LtProduct {
 public:
  // As the library sees them. `row` has an element for each row of the result, or for each column:
  // a bias that is added, or sums that are written. `beside` has the result's shape: what gelu_tanh
  // is, or was, taken of. `added` lies as the result does, and may be where it is.
  struct Operands {
    const void* first = nullptr;
    const void* second = nullptr;
    void* result = nullptr;
    void* row = nullptr;
    void* beside = nullptr;
    const void* added = nullptr;
  };

  LtProduct(Session& session, const PanelProduct& product, const std::vector<uint32_t>& alignments,
            LtEpilogue epilogue = kLtPlain, bool adds = false);
  ~LtProduct();
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;

  // Another way to the same results, and all that its time depends on, in words.
  struct Parts {
    std::function<void()> run;
    std::string text;
  };

  // Finds the algorithm: what an earlier process measured, or by measuring now. False where the
  // library knows none, or `parts` take less time.
  bool choose(const Operands& at, Stream stream, const Parts* parts = nullptr);
  void run(const Operands& at, Stream stream) const { run(algorithm_, at, stream); }

  std::string description() const;

 private:
  void run(const LtAlgorithm& algorithm, const Operands& at, Stream stream) const;
  CublasLt::Layout layout(const Panel& panel, int64_t batch_stride) const;
  bool find_algorithm(const Operands& at, Stream stream);
  bool is_slower_than(const Parts& parts, const Operands& at, Stream stream) const;
  LtAlgorithm fastest(const std::vector<LtCandidate>& candidates, const Operands& at,
                      Stream stream) const;
  bool is_short() const;  // takes less time than its launch

  Session& session_;
  const PanelProduct product_;
  const std::vector<uint32_t> alignments_;
  const LtEpilogue epilogue_;
  const bool adds_;
  CublasLt::Operation operation_ = nullptr;
  CublasLt::Layout first_ = nullptr, second_ = nullptr, result_ = nullptr;
  CublasLt::Preference preference_ = nullptr;
  LtAlgorithm algorithm_ = {};
};

// What a pointer is a multiple of, up to what the widest access needs.
uint32_t alignment_of(const void* pointer);

}  // namespace tessera::cuda
