// What the commands of the lattice have in common.
#pragma once

#include <cstdint>
#include <string>

#include "tessera/cli/options.h"
#include "tessera/io/vector_file.h"

namespace tessera::cli {

// How vectors are read, as options of a command.
inline constexpr Option kDimOption = {"--dim", "N", "numbers to a row, of .raw and .bin files"};
inline constexpr Option kDTypeOption = {"--dtype", "f32|f16|bf16|i8|u8",
                                        "of .raw and .bin files (default: f32)"};
inline constexpr Option kTensorOption = {"--tensor", "NAME", "which one, of .safetensors files"};
VectorFile open_vectors(const Arguments& arguments, const std::string& path);

// The value of an option as a number in [low, high]; throws UsageError, with the command's name.
int64_t number(const Arguments& arguments, std::string_view command, std::string_view option,
               int64_t otherwise, int64_t low, int64_t high);
double fraction(const Arguments& arguments, std::string_view command, std::string_view option,
                double otherwise);

// "512MiB", "8GiB", "1000000": bytes.
int64_t memory_size(std::string_view command, std::string_view text);
int64_t memory(const Arguments& arguments, std::string_view command);
inline constexpr Option kMemoryOption = {"--memory", "SIZE",
                                         "of the work, about: 512MiB, 8GiB (default: 4GiB)"};

// "12.3 MiB"
std::string size_text(int64_t bytes);

}  // namespace tessera::cli
