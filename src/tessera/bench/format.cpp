#include "tessera/bench/format.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace tessera::bench {

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

std::string three_digits(double value) {
  if (!std::isfinite(value)) return value > 0 ? "inf" : value < 0 ? "-inf" : "nan";
  if (value == 0) return "0";
  const int digits = std::clamp(2 - int(std::floor(std::log10(std::fabs(value)))), 0, 9);
  std::string text = fixed(value, digits);
  if (digits > 0) return text;
  for (int at = int(text.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3) {
    text.insert(size_t(at), 1, ',');
  }
  return text;
}

std::string time_text(double seconds) {
  struct Unit {
    double seconds;
    const char* name;
  };
  constexpr Unit kUnits[] = {{1, " s"}, {1e-3, " ms"}, {1e-6, " µs"}};
  for (const Unit& unit : kUnits) {
    if (seconds >= unit.seconds) return three_digits(seconds / unit.seconds) + unit.name;
  }
  return three_digits(seconds * 1e9) + " ns";
}

std::string percent_text(double share) { return fixed(100 * share, 0) + " %"; }

std::string rate_text(double rate, const std::string& unit) {
  return three_digits(rate) + " " + unit;
}

size_t width_of(const std::string& text) {
  return size_t(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string left(std::string text, size_t width) {
  const size_t own = width_of(text);
  if (own < width) text.append(width - own, ' ');
  return text;
}

std::string right(std::string text, size_t width) {
  const size_t own = width_of(text);
  if (own < width) text.insert(0, width - own, ' ');
  return text;
}

}  // namespace tessera::bench
