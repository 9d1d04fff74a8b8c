#include "tessera/runtime/compile_notice.h"

#include <atomic>
#include <utility>

#include "tessera/base/log.h"
#include "tessera/runtime/binary_cache.h"

namespace tessera {

namespace {

thread_local const CompileBatch* t_batch = nullptr;

}  // namespace

CompileBatch::CompileBatch(int64_t remaining)
    : remaining_(remaining), outer_(std::exchange(t_batch, this)) {}

CompileBatch::~CompileBatch() { t_batch = outer_; }

void note_compilation(std::string_view device) {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  std::string what = "kernels";
  if (t_batch != nullptr && t_batch->remaining_ > 1) {  // one is seldom the last
    what = cat("up to ", t_batch->remaining_, " kernels");
  }
  const std::string& folder = binary_cache().folder();
  const std::string where = folder.empty() ? "" : cat(", kept in ", folder);
  log_message(LogLevel::info, cat("compiling ", what, " for ", device, where));
}

}  // namespace tessera
