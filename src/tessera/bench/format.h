// Numbers as people read them.
#pragma once

#include <string>

namespace tessera::bench {

std::string fixed(double value, int digits);
std::string three_digits(double value);                       // "1,230", "12.3", "0.0123"
std::string time_text(double seconds);                        // "12.3 µs"
std::string percent_text(double share);                       // "87 %"
std::string rate_text(double rate, const std::string& unit);  // "215 GFLOP/s", "12,300 samples/s"

// Printed columns that UTF-8 text takes, one per character.
size_t width_of(const std::string& text);
std::string left(std::string text, size_t width);   // padded behind
std::string right(std::string text, size_t width);  // padded before

}  // namespace tessera::bench
