#include "tessera/io/sha256.h"

#include <algorithm>
#include <bit>

namespace tessera {

namespace {

// The first 32 bits behind the point of the cube roots of the first 64 primes.
constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

uint32_t load_big_endian(const std::byte* p) {
  return uint32_t(p[0]) << 24 | uint32_t(p[1]) << 16 | uint32_t(p[2]) << 8 | uint32_t(p[3]);
}

void store_big_endian(std::byte* p, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) p[i] = std::byte(value >> (8 * (bytes - 1 - i)));
}

}  // namespace

void Sha256::mix(const std::byte* block) {
  uint32_t w[64];
  for (int t = 0; t < 16; ++t) w[t] = load_big_endian(block + 4 * t);
  for (int t = 16; t < 64; ++t) {
    const uint32_t before = w[t - 15], after = w[t - 2];
    const uint32_t low = std::rotr(before, 7) ^ std::rotr(before, 18) ^ (before >> 3);
    const uint32_t high = std::rotr(after, 17) ^ std::rotr(after, 19) ^ (after >> 10);
    w[t] = high + w[t - 7] + low + w[t - 16];
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int t = 0; t < 64; ++t) {
    const uint32_t choice = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
    const uint32_t sum_e = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t sum_a = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t first = h + sum_e + choice + kRounds[t] + w[t];
    h = g, g = f, f = e, e = d + first;
    d = c, c = b, b = a, a = first + sum_a + majority;
  }
  const uint32_t mixed[8] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += mixed[i];
}

void Sha256::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t filled = length_ % block_.size();
    const size_t taken = std::min(block_.size() - filled, bytes.size());
    std::copy_n(bytes.begin(), taken, block_.begin() + std::ptrdiff_t(filled));
    length_ += taken;
    bytes = bytes.subspan(taken);
    if (length_ % block_.size() == 0) mix(block_.data());
  }
}

Digest Sha256::finish() {
  std::byte tail[8];
  store_big_endian(tail, 8 * length_, 8);
  const std::byte padding[64] = {std::byte(0x80)};
  const size_t filled = length_ % block_.size();
  add(std::span(padding).first((filled < 56 ? 56 : 120) - filled));
  add(tail);
  Digest digest;
  for (size_t i = 0; i < 8; ++i) store_big_endian(digest.data() + 4 * i, state_[i], 4);
  return digest;
}

Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

std::string to_hex(const Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : digest) {
    text += kDigits[size_t(b >> 4)];
    text += kDigits[size_t(b & std::byte(15))];
  }
  return text;
}

}  // namespace tessera
