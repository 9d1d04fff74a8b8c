// Bytes of tokens as they come, turned into text that can be shown: whole characters only, and
// nothing of a stop string.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

class TextStream {
 public:
  // Throws for an empty stop string, which would be everywhere.
  explicit TextStream(std::vector<std::string> stops = {});

  // What can be shown now that these bytes have come. Bytes that are no UTF-8 become U+FFFD; what
  // may still become a character, or a stop string, is kept back. Nothing after a stop string.
  std::string push(std::string_view bytes);
  // What was kept back, at the end.
  std::string finish();

  bool stopped() const { return stopped_; }  // a stop string has come

 private:
  std::string take(size_t bytes, bool at_end);
  size_t kept_for_stops() const;

  std::vector<std::string> stops_;
  std::string pending_;
  bool stopped_ = false;
};

}  // namespace tessera
