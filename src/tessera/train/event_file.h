// TensorBoard's event files, as far as scalars need them.
//
// A file is a sequence of TFRecords: length u64, masked CRC-32C of its 8 bytes u32, data, masked
// CRC-32C of the data u32, all little-endian. The data is a protobuf message Event; the first one
// tells the version, the second that a session begins at some step, which replaces whatever earlier
// files of the folder say of that step and later ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "tessera/io/descriptor.h"

namespace tessera {

class EventFile {
 public:
  // A new file "events.out.tfevents.<seconds>.<number>" in `folder`. All throw Error with the path
  // and the system's reason.
  EventFile(const std::filesystem::path& folder, int64_t first_step);

  void add(std::string_view tag, int64_t step, double value);

  const std::filesystem::path& path() const { return path_; }

 private:
  void write(std::string_view event);

  std::filesystem::path path_;
  Descriptor file_{-1};
  int64_t size_ = 0;
};

// The record around `data`.
std::string tf_record(std::string_view data);

}  // namespace tessera
