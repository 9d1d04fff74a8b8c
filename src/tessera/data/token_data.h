// Tokens on disk, mapped, and read as one sequence.
//
//   nanoGPT's .bin   u16 tokens, nothing else
//   llm.c's .bin     256 i32: 20240520, version 1, number of tokens, zeros; then u16 tokens
//
// All little-endian. Which of the two a file is, is seen from its first four bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/io/atomic_file.h"

namespace tessera {

enum class ShardFormat { nanogpt, llmc };

// A stretch of the tokens of some files. Cheap to copy; thread safe.
class TokenData {
 public:
  // The files one after the other. Sizes are checked here; with `vocab_size`, tokens are checked
  // when they are read. Errors name the file and the byte.
  static TokenData open(const std::vector<std::filesystem::path>& paths,
                        std::optional<int64_t> vocab_size = {});
  // Tokens in memory. Throws for one outside u16.
  static TokenData of(std::span<const int32_t> tokens);

  int64_t size() const { return end_ - begin_; }
  // Tokens [begin, begin + to.size()). REQUIRES: they are there.
  void read(int64_t begin, std::span<int32_t> to) const;

  // [0, n) and [n, size()), where n leaves the share `held_out` (0 to below 1), rounded down, to
  // the second.
  std::pair<TokenData, TokenData> split(double held_out) const;

 private:
  struct Source;
  TokenData(std::shared_ptr<const Source> source, int64_t begin, int64_t end)
      : source_(std::move(source)), begin_(begin), end_(end) {}

  std::shared_ptr<const Source> source_;
  int64_t begin_, end_;
};

// Writes one file, replacing it all at once in finish(); without that, nothing is left.
class TokenWriter {
 public:
  static constexpr int64_t kMostTokens = 0x7FFFFFFF;  // that llm.c's header can count

  // `most`: tokens that a file in llm.c's format may hold.
  explicit TokenWriter(const std::filesystem::path& path, ShardFormat format = ShardFormat::llmc,
                       int64_t most = kMostTokens);

  // Throws for tokens outside u16, and for more than a file may hold.
  void write(std::span<const int32_t> tokens);
  int64_t written() const { return written_; }
  void finish();

 private:
  AtomicFile file_;
  ShardFormat format_;
  int64_t most_, written_ = 0;
};

}  // namespace tessera
