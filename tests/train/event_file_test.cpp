// Event files, read back by the letter of the formats: TFRecord and protobuf.
#include "tessera/train/event_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "io/file_size_limit.h"
#include "io/temp_folder.h"
#include "support/expect_error.h"

namespace tessera {
namespace {

template <class T>
T fixed_at(const std::string& text, size_t at) {
  T value{};
  EXPECT_LE(at + sizeof(T), text.size());
  std::memcpy(&value, text.data() + at, sizeof(T));
  return value;
}

// Bit by bit: what the tables of io/checksum.cpp must agree with.
uint32_t masked_crc(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= uint8_t(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  for (size_t at = 0; at < file.size();) {
    const auto length = fixed_at<uint64_t>(file, at);
    EXPECT_EQ(fixed_at<uint32_t>(file, at + 8), masked_crc(file.substr(at, 8)));
    records.push_back(file.substr(at + 12, length));
    EXPECT_EQ(fixed_at<uint32_t>(file, at + 12 + length), masked_crc(records.back()));
    at += 16 + length;
  }
  return records;
}

uint64_t varint(const std::string& text, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = uint8_t(text.at(at++));
    value |= uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

// Fields of a message by number: varints and fixed ones as their bytes, too.
std::map<uint64_t, std::string> fields_of(const std::string& message) {
  std::map<uint64_t, std::string> fields;
  for (size_t at = 0; at < message.size();) {
    const uint64_t tag = varint(message, at);
    size_t length = 0;
    switch (tag & 7) {
      case 0: {
        const uint64_t value = varint(message, at);
        fields[tag >> 3] = std::string(reinterpret_cast<const char*>(&value), 8);
        continue;
      }
      case 1: length = 8; break;
      case 2: length = varint(message, at); break;
      case 5: length = 4; break;
      default: ADD_FAILURE() << "wire type " << (tag & 7); return fields;
    }
    fields[tag >> 3] = message.substr(at, length);
    at += length;
  }
  return fields;
}

TEST(EventFile, HoldsVersionSessionAndScalars) {
  const TempFolder folder;
  EventFile file(folder.path(), 1000);
  file.add("loss/training", 1001, 1.5);
  file.add("lr", 300'000'000'000, std::nan(""));
  const std::vector<std::string> records = records_of(read_text(file.path()));
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(fields_of(records[0])[3], "brain.Event:2");
  EXPECT_GT(fixed_at<double>(fields_of(records[0])[1], 0), 1.6e9);
  EXPECT_EQ(fixed_at<uint64_t>(fields_of(records[1])[2], 0), 1000u);
  EXPECT_EQ(fixed_at<uint64_t>(fields_of(fields_of(records[1])[7])[1], 0), 1u);
  const auto scalar = [&](size_t i) { return fields_of(fields_of(fields_of(records[i])[5])[1]); };
  EXPECT_EQ(fixed_at<uint64_t>(fields_of(records[2])[2], 0), 1001u);
  EXPECT_EQ(scalar(2)[1], "loss/training");
  EXPECT_EQ(fixed_at<float>(scalar(2)[2], 0), 1.5f);
  EXPECT_EQ(fixed_at<uint64_t>(fields_of(records[3])[2], 0), 300'000'000'000u);
  EXPECT_TRUE(std::isnan(fixed_at<float>(scalar(3)[2], 0)));
}

// The published check value of CRC-32C is 0xe3069283, for these nine bytes.
TEST(EventFile, FramesByMaskedChecksums) {
  const std::string record = tf_record("123456789");
  ASSERT_EQ(record.size(), 8u + 4 + 9 + 4);
  EXPECT_EQ(fixed_at<uint64_t>(record, 0), 9u);
  EXPECT_EQ(fixed_at<uint32_t>(record, 21), (0xe3069283u >> 15 | 0xe3069283u << 17) + 0xa282ead8u);
}

TEST(EventFile, EverySessionHasItsOwn) {
  const TempFolder folder;
  const EventFile one(folder.path(), 0), two(folder.path(), 5);
  EXPECT_NE(one.path(), two.path());
  EXPECT_TRUE(one.path().filename().native().starts_with("events.out.tfevents."));
}

TEST(EventFileErrors, NameTheFile) {
  const TempFolder folder;
  EXPECT_TRUE(error_text([&] {
                EventFile file(folder / "absent", 0);
              }).starts_with("events: cannot write '" + (folder / "absent").native()));
  EventFile file(folder.path(), 0);
  const FileSizeLimit full(100);
  EXPECT_EQ(error_text([&] {
              for (int i = 0; i < 10; ++i) file.add("loss", i, 1);
            }),
            "events: cannot write '" + file.path().native() + "': File too large");
}

}  // namespace
}  // namespace tessera
