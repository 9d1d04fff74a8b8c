// Checkpoints of a run: folders "step-<N>" in the run's folder, made and removed all at once.
//
// A checkpoint is written as ".step-<N>.tmp", every file synced, the folder renamed and its parent
// synced; it is removed by a rename first. So whatever is called "step-<N>" is whole, and a process
// killed at any moment, or a full disk, takes none away.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tessera/tensor/named_var.h"

namespace tessera {

std::filesystem::path checkpoint_path(const std::filesystem::path& run, int64_t step);

// Their steps, the first first. None where there is no such folder.
std::vector<int64_t> list_checkpoints(const std::filesystem::path& run);
std::optional<int64_t> last_checkpoint(const std::filesystem::path& run);

// `fill` writes the files into the folder that it is given, synced. Where there is a checkpoint of
// that step already, it stays as it is: a step of a run has one state. When `fill` throws, nothing
// is left of the new one.
void write_checkpoint(const std::filesystem::path& run, int64_t step,
                      const std::function<void(const std::filesystem::path&)>& fill);

void remove_checkpoint(const std::filesystem::path& run, int64_t step);

// Removes all but the last `keep` ones and `best`.
void prune_checkpoints(const std::filesystem::path& run, int64_t keep, std::optional<int64_t> best);

// Removes what killed processes have left half written or half removed. REQUIRES: nobody else
// writes there.
void remove_leftovers(const std::filesystem::path& run);

// Values of Vars, bit for bit, as a safetensors file. Loading throws, and sets nothing, where
// names, types or shapes are not exactly those of the Vars.
void save_vars(const std::filesystem::path& path, std::span<const NamedVar> vars);
void load_vars(const std::filesystem::path& path, std::span<const NamedVar> vars);

}  // namespace tessera
