#include "tessera/data/token_data.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/io/mapped_file.h"

namespace tessera {

namespace {

static_assert(std::endian::native == std::endian::little, "tokens are used as they lie in files");

constexpr int32_t kMagic = 20240520, kVersion = 1;
constexpr int32_t kWideMagic = 20240801;  // of llm.c's files for larger vocabularies
constexpr size_t kHeaderInts = 256, kHeaderBytes = 4 * kHeaderInts;
constexpr int64_t kTokenBytes = 2;
constexpr int32_t kMaxToken = std::numeric_limits<uint16_t>::max();

using Header = std::array<int32_t, kHeaderInts>;

template <class... Args>
[[noreturn]] void refuse(const std::filesystem::path& path, const Args&... args) {
  fail("tokens: '", path.native(), "': ", args...);
}

std::vector<uint16_t> narrow(std::span<const int32_t> tokens) {
  std::vector<uint16_t> narrowed;
  narrowed.reserve(tokens.size());
  for (const int32_t token : tokens) {
    if (token < 0 || token > kMaxToken) {
      fail("tokens: expected tokens of 16 bits, 0 to ", kMaxToken, ", got ", token);
    }
    narrowed.push_back(uint16_t(token));
  }
  return narrowed;
}

// A part of the sequence.
struct Part {
  std::filesystem::path path;
  MappedFile file;
  int64_t first;      // bytes before the first token
  int64_t begin = 0;  // of the sequence, in tokens
  int64_t size;       // tokens
};

Part open_part(const std::filesystem::path& path) {
  MappedFile file(path);
  const std::span<const std::byte> bytes = file.bytes();
  const auto size = int64_t(bytes.size());
  Header header = {};
  std::ranges::copy(bytes.first(std::min(bytes.size(), kHeaderBytes)),
                    std::as_writable_bytes(std::span(header)).begin());
  if (size >= 4 && header[0] == kWideMagic) {
    refuse(path, "byte 0: its tokens have 32 bits (magic ", kWideMagic, "), 16 are expected");
  }
  if (size < 4 || header[0] != kMagic) {
    if (size % kTokenBytes != 0) {
      refuse(path, "byte ", size - 1, ": expected tokens of 2 bytes, got one byte at the end");
    }
    return {.path = path, .file = std::move(file), .first = 0, .size = size / kTokenBytes};
  }
  if (bytes.size() < kHeaderBytes) {
    refuse(path, "byte ", size, ": expected a header of ", kHeaderBytes, " bytes, got the end");
  }
  if (header[1] != kVersion) refuse(path, "byte 4: expected version 1, got ", header[1]);
  if (header[2] < 0 || int64_t(kHeaderBytes) + kTokenBytes * header[2] != size) {
    refuse(path, "byte 8: expected the number of tokens in a file of ", size, " bytes, got ",
           header[2]);
  }
  return {.path = path, .file = std::move(file), .first = kHeaderBytes, .size = header[2]};
}

}  // namespace

struct TokenData::Source {
  std::vector<Part> parts;
  std::vector<uint16_t> memory;  // instead of parts
  std::optional<int64_t> vocab_size;

  void read(int64_t begin, std::span<int32_t> to) const;
  void check(const Part& part, int64_t at, std::span<const int32_t> tokens) const;
};

// Reads across the borders of files.
void TokenData::Source::read(int64_t begin, std::span<int32_t> to) const {
  if (parts.empty()) {
    std::copy_n(memory.begin() + begin, to.size(), to.begin());
    return;
  }
  auto part = std::ranges::upper_bound(parts, begin, {}, &Part::begin) - 1;
  while (!to.empty()) {
    const int64_t at = begin - part->begin;
    const auto count = size_t(std::min(int64_t(to.size()), part->size - at));
    const std::byte* from = part->file.bytes().data() + part->first + kTokenBytes * at;
    for (size_t i = 0; i < count; ++i) {
      uint16_t token;
      std::memcpy(&token, from + kTokenBytes * int64_t(i), sizeof token);
      to[i] = token;
    }
    check(*part, at, to.first(count));
    to = to.subspan(count);
    begin += int64_t(count);
    ++part;
  }
}

void TokenData::Source::check(const Part& part, int64_t at, std::span<const int32_t> tokens) const {
  if (!vocab_size) return;
  const auto bad =
      std::ranges::find_if(tokens, [&](int32_t token) { return token >= *vocab_size; });
  if (bad == tokens.end()) return;
  refuse(part.path, "byte ", part.first + kTokenBytes * (at + (bad - tokens.begin())),
         ": expected a token below ", *vocab_size, ", got ", *bad);
}

TokenData TokenData::open(const std::vector<std::filesystem::path>& paths,
                          std::optional<int64_t> vocab_size) {
  if (paths.empty()) fail("tokens: expected at least one file, got none");
  auto source = std::make_shared<Source>();
  source->vocab_size = vocab_size;
  int64_t size = 0;
  for (const std::filesystem::path& path : paths) {
    Part part = open_part(path);
    part.begin = size;
    size += part.size;
    if (part.size > 0) source->parts.push_back(std::move(part));
  }
  return TokenData(std::move(source), 0, size);
}

TokenData TokenData::of(std::span<const int32_t> tokens) {
  auto source = std::make_shared<Source>();
  source->memory = narrow(tokens);
  return TokenData(std::move(source), 0, int64_t(tokens.size()));
}

void TokenData::read(int64_t begin, std::span<int32_t> to) const {
  TESSERA_ASSERT(begin >= 0 && begin + int64_t(to.size()) <= size());
  if (!to.empty()) source_->read(begin_ + begin, to);
}

std::pair<TokenData, TokenData> TokenData::split(double held_out) const {
  if (!(held_out >= 0 && held_out < 1)) {
    fail("split: expected a share of 0 to below 1 to hold out, got ", held_out);
  }
  const int64_t border = end_ - int64_t(std::floor(double(size()) * held_out));
  return {TokenData(source_, begin_, border), TokenData(source_, border, end_)};
}

TokenWriter::TokenWriter(const std::filesystem::path& path, ShardFormat format, int64_t most)
    : file_(path), format_(format), most_(std::min(most, kMostTokens)) {
  const Header header = {kMagic, kVersion};
  if (format_ == ShardFormat::llmc) file_.write(std::as_bytes(std::span(header)));
}

void TokenWriter::write(std::span<const int32_t> tokens) {
  const std::vector<uint16_t> narrowed = narrow(tokens);
  written_ += int64_t(tokens.size());
  if (format_ == ShardFormat::llmc && written_ > most_) {
    fail("tokens: expected at most ", most_, " tokens in one file of llm.c's, got ", written_);
  }
  file_.write(std::as_bytes(std::span(narrowed)));
}

void TokenWriter::finish() {
  if (format_ == ShardFormat::llmc) {
    const std::array<int32_t, 1> count = {int32_t(written_)};
    file_.rewrite(8, std::as_bytes(std::span(count)));
  }
  file_.commit();
}

}  // namespace tessera
