#include "tessera/backend/cuda/kernels/product.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tessera/runtime/binary_cache.h"

namespace tessera::cuda {

namespace {

constexpr int64_t kWorkspace = int64_t(32) << 20;
constexpr int kCandidates = 16, kTimedRuns = 5, kRounds = 3;
constexpr int kSmallRuns = 20;  // of products that take less time than their launch
constexpr int64_t kSmallProduct = int64_t(1) << 31;  // multiplications

// rows × columns with these strides as a panel, either way round.
std::optional<Panel> panel(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  if ((row == 1 || rows == 1) && (column >= rows || columns == 1)) {
    return Panel{false, rows, columns, std::max(column, rows)};
  }
  if ((column == 1 || columns == 1) && (row >= columns || rows == 1)) {
    return Panel{true, columns, rows, std::max(row, columns)};
  }
  return std::nullopt;
}

int type_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return kLtF64;
    case DType::f16: return kLtF16;
    case DType::bf16: return kLtBf16;
    default: return kLtF32;
  }
}

bool allows_tf32() {
  static const bool allowed = [] {
    const char* value = std::getenv("TESSERA_TF32");
    return value != nullptr && std::string_view(value) == "1";
  }();
  return allowed;
}

void expect_lt(int status, const char* what) {
  if (status != 0) fail("matmul: cuBLASLt failed at ", what, ": status ", status);
}

// Adjacent dimensions that one stride each walks through become one.
std::vector<PanelProduct::Loop> batch_loops(const KernelCall& call) {
  const View &a = call.operands[0].view, &b = call.operands[1].view, &c = call.operands[2].view;
  std::vector<PanelProduct::Loop> loops;
  for (int d = 0; d < c.shape.rank() - 2; ++d) {
    const PanelProduct::Loop here = {c.shape[d], a.strides[d], b.strides[d], c.strides[d]};
    if (here.extent == 1) continue;
    if (!loops.empty()) {
      PanelProduct::Loop& outer = loops.back();
      if (outer.a == here.a * here.extent && outer.b == here.b * here.extent &&
          outer.c == here.c * here.extent) {
        outer = {outer.extent * here.extent, here.a, here.b, here.c};
        continue;
      }
    }
    loops.push_back(here);
  }
  return loops;
}

// Descriptors and the algorithm for operands that are aligned so.
class Prepared {
 public:
  Prepared(Session& session, const PanelProduct& product, const std::vector<uint32_t>& alignments);
  ~Prepared();
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  // Finds the algorithm: what an earlier process measured, or by measuring now.
  void choose(const std::vector<uint32_t>& alignments, const void* first, const void* second,
              void* result, Stream stream);
  void run(const void* first, const void* second, void* result, Stream stream) const {
    run(algorithm_, first, second, result, stream);
  }

 private:
  void run(const LtAlgorithm& algorithm, const void* first, const void* second, void* result,
           Stream stream) const;
  CublasLt::Layout layout(const Panel& panel, int64_t batch_stride) const;
  LtAlgorithm fastest(const std::vector<LtCandidate>& candidates, const void* first,
                      const void* second, void* result, Stream stream) const;
  std::string description(const std::vector<uint32_t>& alignments) const;
  int64_t multiplications() const {
    const int64_t depth = product_.first.transposed ? product_.first.rows : product_.first.columns;
    return product_.batch.extent * product_.result.rows * product_.result.columns * depth;
  }

  Session& session_;
  const PanelProduct product_;
  CublasLt::Operation operation_ = nullptr;
  CublasLt::Layout first_ = nullptr, second_ = nullptr, result_ = nullptr;
  CublasLt::Preference preference_ = nullptr;
  LtAlgorithm algorithm_ = {};
};

const CublasLt& lt() { return *cublaslt_library().lt; }

CublasLt::Handle handle_of(Session& session) {
  static std::mutex mutex;
  static std::map<const Session*, CublasLt::Handle> handles;
  const std::lock_guard lock(mutex);
  CublasLt::Handle& handle = handles[&session];
  if (handle == nullptr) {
    session.enter();
    expect_lt(lt().create(&handle), "its start");
  }
  return handle;
}

Prepared::Prepared(Session& session, const PanelProduct& product,
                   const std::vector<uint32_t>& alignments)
    : session_(session), product_(product) {
  const bool is_f64 = product.dtype == DType::f64;
  const bool is_tf32 = product.dtype == DType::f32 && allows_tf32();
  expect_lt(lt().operation_create(&operation_,
                                  is_f64    ? kLtComputeF64
                                  : is_tf32 ? kLtComputeTf32
                                            : kLtComputeF32,
                                  is_f64 ? kLtF64 : kLtF32),
            "a description");
  const int32_t first = product.first.transposed, second = product.second.transposed;
  lt().operation_set(operation_, kLtTransposeA, &first, sizeof first);
  lt().operation_set(operation_, kLtTransposeB, &second, sizeof second);
  const auto& batch = product.batch;
  first_ = layout(product.first, product.swapped ? batch.b : batch.a);
  second_ = layout(product.second, product.swapped ? batch.a : batch.b);
  result_ = layout(product.result, batch.c);
  expect_lt(lt().preference_create(&preference_), "a preference");
  const auto room = uint64_t(kWorkspace);
  lt().preference_set(preference_, kLtWorkspaceBytes, &room, sizeof room);
  const int attributes[] = {kLtAlignmentA, kLtAlignmentB, kLtAlignmentC, kLtAlignmentD};
  for (size_t i = 0; i < 4; ++i) {
    const uint32_t alignment = alignments[std::min<size_t>(i, 2)];
    lt().preference_set(preference_, attributes[i], &alignment, sizeof alignment);
  }
}

Prepared::~Prepared() {
  if (preference_ != nullptr) lt().preference_destroy(preference_);
  for (const CublasLt::Layout made : {first_, second_, result_}) {
    if (made != nullptr) lt().layout_destroy(made);
  }
  if (operation_ != nullptr) lt().operation_destroy(operation_);
}

CublasLt::Layout Prepared::layout(const Panel& panel, int64_t batch_stride) const {
  CublasLt::Layout made = nullptr;
  expect_lt(lt().layout_create(&made, type_of(product_.dtype), uint64_t(panel.rows),
                               uint64_t(panel.columns), panel.step),
            "a layout");
  const auto count = int32_t(product_.batch.extent);
  lt().layout_set(made, kLtBatchCount, &count, sizeof count);
  lt().layout_set(made, kLtBatchStride, &batch_stride, sizeof batch_stride);
  return made;
}

std::string Prepared::description(const std::vector<uint32_t>& alignments) const {
  const auto text = [](const Panel& p) {
    return cat(p.transposed ? "T" : "N", p.rows, "x", p.columns, "/", p.step);
  };
  const auto& batch = product_.batch;
  return cat("cuBLASLt ", product_.dtype, " ", text(product_.first), " ", text(product_.second),
             " ", text(product_.result), " batch ", batch.extent, " ", batch.a, " ", batch.b, " ",
             batch.c, product_.swapped ? " swapped" : "", " replayed aligned ", alignments[0], " ",
             alignments[1], " ", alignments[2], allows_tf32() ? " tf32" : "");
}

void Prepared::choose(const std::vector<uint32_t>& alignments, const void* first,
                      const void* second, void* result, Stream stream) {
  const std::string problem = description(alignments), version = cat(lt().version());
  const std::string device = cat(session_.info().name, ", ", session_.info().multiprocessors);
  const BinaryKey key = {problem, "algorithm", version, device};
  if (const auto kept = binary_cache().find(key); kept && kept->size() == sizeof algorithm_) {
    std::memcpy(&algorithm_, kept->data(), sizeof algorithm_);
    return;
  }
  std::vector<LtCandidate> candidates(kCandidates);
  int found = 0;
  expect_lt(lt().candidates(handle_of(session_), operation_, first_, second_, result_, result_,
                            preference_, kCandidates, candidates.data(), &found),
            "looking for an algorithm");
  candidates.resize(size_t(found));
  std::erase_if(candidates, [](const LtCandidate& c) { return c.status != 0; });
  if (candidates.empty()) fail("matmul: cuBLASLt knows no algorithm for ", problem);
  algorithm_ = candidates.size() == 1 ? candidates[0].algorithm
                                      : fastest(candidates, first, second, result, stream);
  binary_cache().store(
      key, std::string_view(reinterpret_cast<const char*>(&algorithm_), sizeof algorithm_));
}

LtAlgorithm Prepared::fastest(const std::vector<LtCandidate>& candidates, const void* first,
                              const void* second, void* result, Stream stream) const {
  const Driver& d = driver();
  const StreamId queue = session_.stream(stream);
  EventId begin = nullptr, end = nullptr;
  expect_success(d.event_create(&begin, 0), "creating an event");
  expect_success(d.event_create(&end, 0), "creating an event");
  const auto several = [&](const LtAlgorithm& algorithm, int runs) {
    for (int i = 0; i < runs; ++i) run(algorithm, first, second, result, stream);
  };
  const LtAlgorithm* best = &candidates[0].algorithm;
  float least = -1;
  for (const LtCandidate& candidate : candidates) {
    several(candidate.algorithm, 1);
    // Small ones are replayed, as programs do: launched one by one, the launch is what is measured.
    std::unique_ptr<gpu::GpuExecutable> replay;
    if (multiplications() < kSmallProduct) {
      std::string reason;
      session_.begin_recording(stream);
      several(candidate.algorithm, kSmallRuns);
      replay = session_.end_recording(stream, reason);
      if (replay) replay->launch({}, 0, stream);
    }
    for (int round = 0; round < kRounds; ++round) {
      d.event_record(begin, queue);
      if (replay) {
        replay->launch({}, 0, stream);
      } else {
        several(candidate.algorithm, kTimedRuns);
      }
      d.event_record(end, queue);
      float milliseconds = 0;
      if (d.event_synchronize(end) != kSuccess) break;
      d.event_elapsed(&milliseconds, begin, end);
      if (least >= 0 && milliseconds >= least) continue;
      least = milliseconds;
      best = &candidate.algorithm;
    }
  }
  d.event_destroy(begin);
  d.event_destroy(end);
  return *best;
}

void Prepared::run(const LtAlgorithm& algorithm, const void* first, const void* second,
                   void* result, Stream stream) const {
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  const bool is_f64 = product_.dtype == DType::f64;
  const void* alpha = is_f64 ? static_cast<const void*>(&wide_one) : &one;
  const void* beta = is_f64 ? static_cast<const void*>(&wide_zero) : &zero;
  expect_lt(lt().multiply(handle_of(session_), operation_, alpha, first, first_, second, second_,
                          beta, result, result_, result, result_, &algorithm,
                          session_.workspace(stream, kWorkspace), size_t(kWorkspace),
                          session_.stream(stream)),
            "a product");
}

class Product : public gpu::GpuExecutable {
 public:
  Product(Session& session, const KernelCall& call, PanelProduct product)
      : session_(session), call_(call), product_(std::move(product)) {}

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    std::byte* start[3];
    for (size_t i = 0; i < 3; ++i) {
      const gpu::Operand operand = gpu::operand(at[i], call_.operands[i]);
      start[i] = static_cast<std::byte*>(operand.mem) + operand.start * size();
    }
    walk(0, start[0], start[1], start[2], stream);
  }

 private:
  int64_t size() const { return size_of(product_.dtype); }

  void walk(size_t depth, std::byte* a, std::byte* b, std::byte* c, Stream stream) const {
    if (depth == product_.loops.size()) return run(a, b, c, stream);
    const PanelProduct::Loop& loop = product_.loops[depth];
    for (int64_t i = 0; i < loop.extent; ++i) {
      walk(depth + 1, a + i * loop.a * size(), b + i * loop.b * size(), c + i * loop.c * size(),
           stream);
    }
  }

  void run(std::byte* a, std::byte* b, std::byte* c, Stream stream) const {
    std::byte* const first = product_.swapped ? b : a;
    std::byte* const second = product_.swapped ? a : b;
    const std::vector<uint32_t> alignments = {alignment(first), alignment(second), alignment(c)};
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Prepared>& prepared = prepared_[alignments];
    if (prepared == nullptr) {
      auto made = std::make_unique<Prepared>(session_, product_, alignments);
      made->choose(alignments, first, second, c, stream);
      prepared = std::move(made);
    }
    prepared->run(first, second, c, stream);
  }

  static uint32_t alignment(const void* pointer) {
    constexpr uint64_t kEnough = 16;  // bytes: the widest access
    const auto address = reinterpret_cast<uint64_t>(pointer) | kEnough;
    return uint32_t(address & (~address + 1));
  }

  Session& session_;
  const KernelCall call_;
  const PanelProduct product_;
  mutable std::mutex mutex_;
  mutable std::map<std::vector<uint32_t>, std::unique_ptr<Prepared>> prepared_;
};

}  // namespace

std::optional<PanelProduct> panel_product(const KernelCall& call) {
  const View &a = call.operands[0].view, &b = call.operands[1].view, &c = call.operands[2].view;
  const DType dtype = call.operands[0].dtype;
  const int rank = c.shape.rank();
  const int64_t m = c.shape[rank - 2], n = c.shape[rank - 1], k = a.shape[rank - 1];
  if (!is_float(dtype) || numel(c.shape) == 0 || k == 0) return std::nullopt;
  const auto strides = [rank](const View& view) {
    return std::pair(view.strides[rank - 2], view.strides[rank - 1]);
  };
  const auto [a_row, a_col] = strides(a);
  const auto [b_row, b_col] = strides(b);
  const auto [c_row, c_col] = strides(c);
  PanelProduct product;
  product.dtype = dtype;
  // The library's columns are contiguous. Where ours are rows, cᵀ = bᵀ aᵀ.
  auto result = panel(n, m, c_col, c_row);
  product.swapped = result && !result->transposed;
  if (!product.swapped) result = panel(m, n, c_row, c_col);
  if (!result || result->transposed) return std::nullopt;
  const auto first = product.swapped ? panel(n, k, b_col, b_row) : panel(m, k, a_row, a_col);
  const auto second = product.swapped ? panel(k, m, a_col, a_row) : panel(k, n, b_row, b_col);
  if (!first || !second) return std::nullopt;
  product.first = *first;
  product.second = *second;
  product.result = *result;
  product.loops = batch_loops(call);
  if (!product.loops.empty()) {
    // The longest loop is the batch: it is one launch.
    const auto longest =
        std::max_element(product.loops.begin(), product.loops.end(),
                         [](const auto& x, const auto& y) { return x.extent < y.extent; });
    product.batch = *longest;
    product.loops.erase(longest);
  }
  return product;
}

std::unique_ptr<gpu::GpuExecutable> make_product(Session& session, const KernelCall& call) {
  if (call.kernel != "matmul" || call.operands.size() != 3 || !cublaslt_library().lt) {
    return nullptr;
  }
  std::optional<PanelProduct> product = panel_product(call);
  if (!product) return nullptr;
  return std::make_unique<Product>(session, call, *std::move(product));
}

}  // namespace tessera::cuda
