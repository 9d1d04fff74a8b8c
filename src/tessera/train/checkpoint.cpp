#include "tessera/train/checkpoint.h"

#include <algorithm>
#include <charconv>

#include "tessera/io/atomic_file.h"
#include "tessera/io/safetensors.h"
#include "tessera/tensor/files.h"

namespace tessera {

namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kWriting = ".tmp", kRemoving = ".old";

std::optional<int64_t> step_of(std::string_view name) {
  int64_t step = 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const char* const end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc() || at != end || name != cat(kPrefix, step)) return std::nullopt;
  return step;
}

std::filesystem::path hidden(const std::filesystem::path& run, int64_t step,
                             std::string_view suffix) {
  return run / cat(".", kPrefix, step, suffix);
}

bool is_leftover(const std::string& name) {
  return name.starts_with(cat(".", kPrefix)) &&
         (name.ends_with(kWriting) || name.ends_with(kRemoving));
}

void sync(const std::filesystem::path& folder) {
  const int code = sync_folder(folder);
  if (code != 0) fail_system("checkpoint: cannot sync", folder, code);
}

void rename_folder(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_system("checkpoint: cannot make", to, errno);
}

}  // namespace

std::filesystem::path checkpoint_path(const std::filesystem::path& run, int64_t step) {
  return run / cat(kPrefix, step);
}

std::vector<int64_t> list_checkpoints(const std::filesystem::path& run) {
  std::vector<int64_t> steps;
  if (!std::filesystem::is_directory(run)) return steps;
  for (const auto& entry : std::filesystem::directory_iterator(run)) {
    const std::optional<int64_t> step = step_of(entry.path().filename().native());
    if (step && entry.is_directory()) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

std::optional<int64_t> last_checkpoint(const std::filesystem::path& run) {
  const std::vector<int64_t> steps = list_checkpoints(run);
  if (steps.empty()) return std::nullopt;
  return steps.back();
}

void write_checkpoint(const std::filesystem::path& run, int64_t step,
                      const std::function<void(const std::filesystem::path&)>& fill) {
  const std::filesystem::path to = checkpoint_path(run, step), from = hidden(run, step, kWriting);
  if (std::filesystem::exists(to)) return;
  std::error_code ignored;
  std::filesystem::remove_all(from, ignored);
  try {
    std::filesystem::create_directories(from);
    fill(from);
    sync(from);
    rename_folder(from, to);
  } catch (...) {
    std::filesystem::remove_all(from, ignored);
    throw;
  }
  sync(run);
}

void remove_checkpoint(const std::filesystem::path& run, int64_t step) {
  const std::filesystem::path gone = hidden(run, step, kRemoving);
  std::error_code ignored;
  std::filesystem::remove_all(gone, ignored);
  rename_folder(checkpoint_path(run, step), gone);
  std::filesystem::remove_all(gone, ignored);
}

void prune_checkpoints(const std::filesystem::path& run, int64_t keep,
                       std::optional<int64_t> best) {
  std::vector<int64_t> steps = list_checkpoints(run);
  const size_t kept = std::min(steps.size(), size_t(std::max<int64_t>(keep, 1)));
  steps.resize(steps.size() - kept);
  for (const int64_t step : steps) {
    if (step != best) remove_checkpoint(run, step);
  }
}

void remove_leftovers(const std::filesystem::path& run) {
  std::vector<std::filesystem::path> found;
  if (!std::filesystem::is_directory(run)) return;
  for (const auto& entry : std::filesystem::directory_iterator(run)) {
    if (is_leftover(entry.path().filename().native())) found.push_back(entry.path());
  }
  std::error_code ignored;
  for (const std::filesystem::path& path : found) std::filesystem::remove_all(path, ignored);
}

void save_vars(const std::filesystem::path& path, std::span<const NamedVar> vars) {
  NamedTensors tensors;
  for (const auto& [name, var] : vars) tensors[name] = var.value();
  save_safetensors(path, tensors);
}

void load_vars(const std::filesystem::path& path, std::span<const NamedVar> vars) {
  const SafetensorsFile file(path);
  std::string wrong;
  for (const auto& [name, var] : vars) {
    const SafetensorsTensor* found = file.view.find(name);
    const Type type = {var.dtype(), var.shape()};
    if (found == nullptr) {
      wrong += cat("; it has no '", name, "'");
    } else if (const Type has = {found->info.dtype, found->info.shape}; has != type) {
      wrong += cat("; expected ", type, " for '", name, "', got ", has);
    }
  }
  for (const SafetensorsTensor& tensor : file.view.tensors) {
    const bool known = std::ranges::any_of(
        vars, [&](const NamedVar& named) { return named.name == tensor.info.name; });
    if (!known) wrong += cat("; nothing is called '", tensor.info.name, "'");
  }
  if (!wrong.empty()) fail("checkpoint: ", path.native(), " belongs to something else", wrong);
  for (const auto& [name, var] : vars) {
    var.set_bytes(var.dtype(), file.view.find(name)->data.data());
  }
}

}  // namespace tessera
