// A small index, and a plain model of what it must hold.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "../io/temp_folder.h"
#include "tessera/base/philox.h"
#include "tessera/lattice/index_file.h"
#include "tessera/lattice/index_writer.h"

namespace tessera::lattice {

using Payload = std::vector<std::byte>;

struct Stored {
  int32_t cell = 0;
  Payload vector;
  bool operator==(const Stored&) const = default;
};
using Content = std::map<int64_t, Stored>;  // by id

inline uint64_t draw(uint64_t seed, uint64_t i, uint64_t below) {
  const auto words = philox(seed, i);
  return (uint64_t(words[0]) << 32 | words[1]) % below;
}

// Blocks whose vectors lie byte by byte beside each other: what a kernel would ask for, and wrong
// wherever a slot is mistaken.
class InterleavedPacker : public BlockPacker {
 public:
  explicit InterleavedPacker(int64_t bytes) : bytes_(bytes) {}
  int64_t vector_bytes() const override { return bytes_; }
  int64_t block_bytes() const override { return bytes_ * kBlockVectors; }
  void pack(std::byte* block, int slot, std::span<const std::byte> vector) const override {
    for (int64_t i = 0; i < bytes_; ++i) block[i * kBlockVectors + slot] = vector[size_t(i)];
  }
  void unpack(const std::byte* block, int slot, std::span<std::byte> vector) const override {
    for (int64_t i = 0; i < bytes_; ++i) vector[size_t(i)] = block[i * kBlockVectors + slot];
  }

 private:
  int64_t bytes_;
};

inline Payload random_payload(uint64_t seed, int64_t id, int64_t bytes) {
  Payload payload;
  for (int64_t i = 0; i < bytes; ++i) {
    payload.push_back(std::byte(draw(seed ^ (uint64_t(id) << 20), uint64_t(i), 256)));
  }
  return payload;
}

struct Batch {
  std::vector<int32_t> cells;
  std::vector<int64_t> ids;
  std::vector<std::byte> vectors;

  void push(int64_t id, const Stored& stored) {
    cells.push_back(stored.cell);
    ids.push_back(id);
    vectors.insert(vectors.end(), stored.vector.begin(), stored.vector.end());
  }
};

inline Batch random_batch(uint64_t seed, std::span<const int64_t> ids, int32_t cells,
                          int64_t bytes) {
  Batch batch;
  for (const int64_t id : ids) {
    batch.push(
        id, {int32_t(draw(seed, uint64_t(id), uint64_t(cells))), random_payload(seed, id, bytes)});
  }
  return batch;
}

inline void put(Content& content, const Batch& batch) {
  const size_t width = batch.ids.empty() ? 0 : batch.vectors.size() / batch.ids.size();
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    const auto from = batch.vectors.begin() + ptrdiff_t(i * width);
    content[batch.ids[i]] = {batch.cells[i], Payload(from, from + ptrdiff_t(width))};
  }
}

// All that lives, by way of the lists. Fails where an id lives twice.
inline Content content_of(const Snapshot& snapshot, const BlockPacker& packer) {
  Content content;
  for (int32_t cell = 0; cell < snapshot.info().cells(); ++cell) {
    for (const ListPart& part : snapshot.parts(cell)) {
      const auto blocks = part.blocks();
      const auto* tail = part.tail();
      EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.data()) % 64, 0u);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(tail) % 64, 0u);
      EXPECT_EQ(int64_t(blocks.size()) + (tail == nullptr ? 0 : packer.block_bytes()),
                blocks_for(part.count()) * packer.block_bytes());
      const auto ids = part.ids().decode();
      for (size_t i = 0; i < ids.size(); ++i) {
        if (snapshot.is_dead(part.segment(), ids[i])) continue;
        Payload vector(static_cast<size_t>(packer.vector_bytes()));
        packer.unpack(part.block(int64_t(i) / kBlockVectors, packer.block_bytes()),
                      int(i % kBlockVectors), vector);
        EXPECT_TRUE(content.emplace(ids[i], Stored{cell, vector}).second) << ids[i];
      }
    }
  }
  return content;
}

// As write_text, but never by way of an empty file: filesystems that guard against a crash between
// emptying and writing put such a file on the disk at once, and thousands of them take minutes.
inline void overwrite(const std::filesystem::path& path, std::string_view text) {
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << text;
  std::filesystem::resize_file(path, text.size());
}

inline std::vector<float> some_anchors(int32_t cells, int32_t dim) {
  std::vector<float> anchors(static_cast<size_t>(cells * dim));
  for (size_t i = 0; i < anchors.size(); ++i) anchors[i] = float(i) * 0.5f - 3;
  return anchors;
}

inline IndexInfo some_info(std::span<const float> anchors, int32_t dim, const BlockPacker& packer) {
  IndexInfo info;
  info.dim = dim;
  info.metric = Metric::inner_product;
  info.block_bytes = packer.block_bytes();
  info.anchors = anchors;
  const bool plain = dynamic_cast<const PlainPacker*>(&packer) != nullptr;
  info.tail = plain ? TailLayout::rows : TailLayout::padded;
  info.half_anchors = true;
  info.blobs = {{"code spec", bytes_of("four bits")}, {"transform", bytes_of("rotation 7")}};
  return info;
}

}  // namespace tessera::lattice
