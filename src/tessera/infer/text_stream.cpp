#include "tessera/infer/text_stream.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/io/utf8.h"

namespace tessera {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Whether bytes to come can make a character of these, which are none.
bool may_become_character(std::string_view bytes) {
  if (bytes.empty() || bytes.size() > 3) return false;
  // Between them these continuations complete every lead byte's smallest and largest ones.
  for (const std::string_view rest : {"\x80\x80\x80", "\xBF\xBF\xBF", "\x90\x80\x80"}) {
    const std::string completed = std::string(bytes) + std::string(rest);
    if (utf8_length(completed) > bytes.size()) return true;
  }
  return false;
}

}  // namespace

TextStream::TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_) {
    if (stop.empty()) fail("generate: expected stop strings that are not empty, got \"\"");
  }
}

// The longest end of what is pending that a stop string begins with.
size_t TextStream::kept_for_stops() const {
  size_t kept = 0;
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(stop.size() - 1, pending_.size()); n > kept; --n) {
      if (pending_.ends_with(std::string_view(stop).substr(0, n))) kept = n;
    }
  }
  return kept;
}

// The first bytes of what is pending, as whole characters; `at_end` also those that are none yet.
std::string TextStream::take(size_t bytes, bool at_end) {
  std::string text;
  size_t at = 0;
  while (at < bytes) {
    const std::string_view rest = std::string_view(pending_).substr(at, bytes - at);
    const size_t length = utf8_length(rest);
    if (length == 0 && !at_end && may_become_character(rest)) break;
    text += length == 0 ? kReplacement : rest.substr(0, length);
    at += std::max<size_t>(length, 1);
  }
  pending_.erase(0, at);
  return text;
}

std::string TextStream::push(std::string_view bytes) {
  if (stopped_) return "";
  pending_ += bytes;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, pending_.find(stop));
  if (first == std::string::npos) return take(pending_.size() - kept_for_stops(), false);
  stopped_ = true;
  const std::string text = take(first, true);
  pending_.clear();
  return text;
}

std::string TextStream::finish() { return take(pending_.size(), true); }

}  // namespace tessera
