#include "tessera/backend/cuda/kernels/lt_product.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>

#include "tessera/backend/cuda/kernels/measured.h"

namespace tessera::cuda {

namespace {

constexpr int64_t kWorkspace = int64_t(32) << 20;
constexpr int kCandidates = 16;
constexpr int64_t kShortProduct = int64_t(1) << 31;  // multiplications
constexpr int kTurns = 2, kShortTurns = 4;
constexpr float kClose = 1.15f;

int type_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return kLtF64;
    case DType::f16: return kLtF16;
    case DType::bf16: return kLtBf16;
    default: return kLtF32;
  }
}

void expect_lt(int status, const char* what) {
  if (status != 0) fail("matmul: cuBLASLt failed at ", what, ": status ", status);
}

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

}  // namespace

LtProduct::LtProduct(Session& session, const PanelProduct& product,
                     const std::vector<uint32_t>& alignments, LtEpilogue epilogue, bool adds)
    : session_(session),
      product_(product),
      alignments_(alignments),
      epilogue_(epilogue),
      adds_(adds) {
  const bool is_f64 = product.dtype == DType::f64;
  expect_lt(lt().operation_create(&operation_,
                                  is_f64         ? kLtComputeF64
                                  : product.tf32 ? kLtComputeTf32
                                                 : kLtComputeF32,
                                  is_f64 ? kLtF64 : kLtF32),
            "a description");
  const int32_t first = product.first.transposed, second = product.second.transposed;
  lt().operation_set(operation_, kLtTransposeA, &first, sizeof first);
  lt().operation_set(operation_, kLtTransposeB, &second, sizeof second);
  if (epilogue != kLtPlain) {
    const auto kind = int32_t(epilogue);
    const int64_t step = product.result.step;
    lt().operation_set(operation_, kLtEpilogueKind, &kind, sizeof kind);
    if ((epilogue & kLtBeside) != 0) {
      lt().operation_set(operation_, kLtBesideStep, &step, sizeof step);
    }
  }
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

LtProduct::~LtProduct() {
  if (preference_ != nullptr) lt().preference_destroy(preference_);
  for (const CublasLt::Layout made : {first_, second_, result_}) {
    if (made != nullptr) lt().layout_destroy(made);
  }
  if (operation_ != nullptr) lt().operation_destroy(operation_);
}

CublasLt::Layout LtProduct::layout(const Panel& panel, int64_t batch_stride) const {
  CublasLt::Layout made = nullptr;
  expect_lt(lt().layout_create(&made, type_of(product_.dtype), uint64_t(panel.rows),
                               uint64_t(panel.columns), panel.step),
            "a layout");
  const auto count = int32_t(product_.batch.extent);
  lt().layout_set(made, kLtBatchCount, &count, sizeof count);
  lt().layout_set(made, kLtBatchStride, &batch_stride, sizeof batch_stride);
  return made;
}

std::string LtProduct::description() const {
  const auto text = [](const Panel& p) {
    return cat(p.transposed ? "T" : "N", p.rows, "x", p.columns, "/", p.step);
  };
  const auto& batch = product_.batch;
  return cat("cuBLASLt ", product_.dtype, " ", text(product_.first), " ", text(product_.second),
             " ", text(product_.result), " batch ", batch.extent, " ", batch.a, " ", batch.b, " ",
             batch.c, product_.swapped ? " swapped" : "", " near and far aligned ", alignments_[0],
             " ", alignments_[1], " ", alignments_[2], product_.tf32 ? " tf32" : "",
             epilogue_ == kLtPlain ? "" : cat(" epilogue ", int(epilogue_)), adds_ ? " added" : "");
}

bool LtProduct::choose(const Operands& at, Stream stream, const Parts* parts) {
  if (!find_algorithm(at, stream)) return false;
  return parts == nullptr || !is_slower_than(*parts, at, stream);
}

bool LtProduct::find_algorithm(const Operands& at, Stream stream) {
  const std::string problem = description();
  if (const auto kept = find_measured(session_, problem, "algorithm");
      kept && kept->size() == sizeof algorithm_) {
    std::memcpy(&algorithm_, kept->data(), sizeof algorithm_);
    return true;
  }
  std::vector<LtCandidate> candidates(kCandidates);
  int found = 0;
  expect_lt(lt().candidates(handle_of(session_), operation_, first_, second_, result_, result_,
                            preference_, kCandidates, candidates.data(), &found),
            "looking for an algorithm");
  candidates.resize(size_t(found));
  std::erase_if(candidates, [](const LtCandidate& c) { return c.status != 0; });
  if (candidates.empty()) return false;
  algorithm_ = candidates.size() == 1 ? candidates[0].algorithm : fastest(candidates, at, stream);
  keep_measured(session_, problem, "algorithm",
                std::string_view(reinterpret_cast<const char*>(&algorithm_), sizeof algorithm_));
  return true;
}

bool LtProduct::is_slower_than(const Parts& parts, const Operands& at, Stream stream) const {
  const std::string problem = cat(description(), " or ", parts.text);
  if (const auto kept = find_measured(session_, problem, "way")) return *kept == "parts";
  const Watch watch(session_, stream, is_short());
  const float whole = watch.least_time([&] { run(at, stream); });
  const bool is_slower = watch.least_time(parts.run) < whole;
  keep_measured(session_, problem, "way", is_slower ? "parts" : "whole");
  return is_slower;
}

bool LtProduct::is_short() const {
  const int64_t depth = product_.first.transposed ? product_.first.rows : product_.first.columns;
  return product_.batch.extent * product_.result.rows * product_.result.columns * depth <
         kShortProduct;
}

LtAlgorithm LtProduct::fastest(const std::vector<LtCandidate>& candidates, const Operands& at,
                               Stream stream) const {
  // Times spread: those close to the fastest are measured again, by turns.
  const Watch watch(session_, stream, is_short());
  std::vector<float> times(candidates.size(), std::numeric_limits<float>::infinity());
  float least = std::numeric_limits<float>::infinity();
  for (int turn = 0; turn < (is_short() ? kShortTurns : kTurns); ++turn) {
    const float most = least * kClose;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (times[i] > most) continue;
      const auto work = [&] { run(candidates[i].algorithm, at, stream); };
      times[i] = std::min(times[i], watch.least_time(work));
      least = std::min(least, times[i]);
    }
  }
  return candidates[size_t(std::ranges::min_element(times) - times.begin())].algorithm;
}

void LtProduct::run(const LtAlgorithm& algorithm, const Operands& at, Stream stream) const {
  if (at.row != nullptr) lt().operation_set(operation_, kLtRow, &at.row, sizeof at.row);
  if (at.beside != nullptr)
    lt().operation_set(operation_, kLtBesidePointer, &at.beside, sizeof at.beside);
  const float one = 1, share = adds_ ? 1 : 0;
  const double wide_one = 1, wide_share = share;
  const bool is_f64 = product_.dtype == DType::f64;
  const void* alpha = is_f64 ? static_cast<const void*>(&wide_one) : &one;
  const void* beta = is_f64 ? static_cast<const void*>(&wide_share) : &share;
  expect_lt(lt().multiply(handle_of(session_), operation_, alpha, at.first, first_, at.second,
                          second_, beta, adds_ ? at.added : at.result, result_, at.result, result_,
                          &algorithm, session_.workspace(stream, kWorkspace), size_t(kWorkspace),
                          session_.stream(stream)),
            "a product");
}

uint32_t alignment_of(const void* pointer) {
  constexpr uint64_t kEnough = 16;  // bytes: the widest access
  const auto address = reinterpret_cast<uint64_t>(pointer) | kEnough;
  return uint32_t(address & (~address + 1));
}

}  // namespace tessera::cuda
