#include "tessera/train/event_file.h"

#include <fcntl.h>

#include <bit>
#include <chrono>

#include "tessera/io/checksum.h"

namespace tessera {

namespace {

constexpr std::string_view kDoing = "events: cannot write";

// Protobuf's wire format: a tag of field and type, then the value.
enum class Wire : uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += char(value | 0x80);
  to += char(value);
}

void put_tag(std::string& to, uint32_t field, Wire wire) {
  put_varint(to, field << 3 | uint32_t(wire));
}

template <class Bits>
void put_fixed(std::string& to, Bits bits) {
  for (size_t i = 0; i < sizeof(bits); ++i) to += char(bits >> (8 * i));
}

void put_bytes(std::string& to, uint32_t field, std::string_view bytes) {
  put_tag(to, field, Wire::bytes);
  put_varint(to, bytes.size());
  to += bytes;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Event: wall_time = 1, step = 2.
std::string event(int64_t step) {
  std::string to;
  put_tag(to, 1, Wire::fixed64);
  put_fixed(to, std::bit_cast<uint64_t>(now()));
  put_tag(to, 2, Wire::varint);
  put_varint(to, uint64_t(step));
  return to;
}

// Kept apart from plain checksums, so that the checksum of a record that holds one is no constant.
uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(std::as_bytes(std::span(bytes)));
  return std::rotr(crc, 15) + 0xa282ead8u;
}

}  // namespace

std::string tf_record(std::string_view data) {
  std::string record;
  put_fixed(record, uint64_t(data.size()));
  put_fixed(record, masked_crc(record));
  record += data;
  put_fixed(record, masked_crc(data));
  return record;
}

EventFile::EventFile(const std::filesystem::path& folder, int64_t first_step) {
  const int64_t seconds = int64_t(now());
  for (int number = 0; !file_.valid(); ++number) {
    path_ = folder / cat("events.out.tfevents.", seconds, ".", number);
    file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file_.valid() && errno != EEXIST) fail_system(kDoing, path_, errno);
  }
  std::string version = event(0);
  put_bytes(version, 3, "brain.Event:2");  // file_version
  write(version);
  std::string start = event(first_step);
  std::string session;  // SessionLog: status = 1
  put_tag(session, 1, Wire::varint);
  put_varint(session, 1);        // START
  put_bytes(start, 7, session);  // session_log
  write(start);
}

void EventFile::add(std::string_view tag, int64_t step, double value) {
  std::string scalar;  // Summary.Value: tag = 1, simple_value = 2
  put_bytes(scalar, 1, tag);
  put_tag(scalar, 2, Wire::fixed32);
  put_fixed(scalar, std::bit_cast<uint32_t>(float(value)));
  std::string summary;
  put_bytes(summary, 1, scalar);
  std::string whole = event(step);
  put_bytes(whole, 5, summary);
  write(whole);
}

void EventFile::write(std::string_view event) {
  const std::string record = tf_record(event);
  const int code = write_at(file_, size_, std::as_bytes(std::span(record)));
  if (code != 0) fail_system(kDoing, path_, code);
  size_ += int64_t(record.size());
}

}  // namespace tessera
