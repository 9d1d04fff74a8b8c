// Safetensors files: tensors by name, with a JSON header before their bytes. docs/formats/ has the
// layout. Every field is checked against the file before it is believed: what is accepted has names
// that differ, types that Tessera has, and bytes that cover the file without holes and overlaps.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/dtype.h"
#include "tessera/base/shape.h"
#include "tessera/io/mapped_file.h"

namespace tessera {

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsInfo {
  std::string name;
  DType dtype;
  Shape shape;
};

struct SafetensorsTensor {
  SafetensorsInfo info;
  // Row-major, exactly numel(shape) elements; bools are 0 or 1. Files of other writers may leave it
  // unaligned: copy from it, or check the address before reading it as an array of T.
  std::span<const std::byte> data;
};

struct SafetensorsView {
  std::vector<SafetensorsTensor> tensors;  // in the order of their bytes
  SafetensorsMetadata metadata;

  const SafetensorsTensor* find(std::string_view name) const;  // null when absent
};

// The tensors in the bytes of a whole file, without a copy. `name` stands for it in errors.
SafetensorsView parse_safetensors(std::span<const std::byte> file, std::string_view name);

// A file with its tensors, whose bytes live as long as this object, or the one it was moved into.
struct SafetensorsFile {
  explicit SafetensorsFile(const std::filesystem::path& path);

  MappedFile file;
  SafetensorsView view;
};

// What a file of these tensors begins with, and the order their bytes follow in: by type, the
// larger elements first (so that all are aligned), then by name, as the reference implementation
// has it. Throws for repeated names, names that are no UTF-8, and the name "__metadata__".
struct SafetensorsLayout {
  std::string head;  // length and header, padded to a multiple of 8
  std::vector<size_t> order;
};
SafetensorsLayout layout_safetensors(std::span<const SafetensorsInfo> infos,
                                     const SafetensorsMetadata& metadata);

// Replaces `path` atomically. The second form asks for the bytes of one tensor at a time, by its
// index in `infos`; what `bytes_of` returns must stay until the next call.
void write_safetensors(const std::filesystem::path& path,
                       std::span<const SafetensorsTensor> tensors,
                       const SafetensorsMetadata& metadata = {});
void write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsInfo> infos,
                       const SafetensorsMetadata& metadata,
                       const std::function<std::span<const std::byte>(size_t)>& bytes_of);

}  // namespace tessera
