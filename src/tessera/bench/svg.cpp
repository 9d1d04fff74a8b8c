#include "tessera/bench/svg.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/bench/format.h"

namespace tessera::bench {

namespace {

constexpr double kBarHeight = 14, kBarStep = 16, kGroupGap = 10, kLeft = 300, kLongest = 380,
                 kWidth = 900;

std::string attribute(std::string_view name, double value) {
  return cat(" ", name, "=\"", fixed(value, 1), "\"");
}

std::string class_attribute(std::string_view css_class) {
  return css_class.empty() ? "" : cat(" class=\"", escape(css_class), "\"");
}

double height_of(const BarGroup& group) { return kBarStep * double(group.bars.size()) + kGroupGap; }

}  // namespace

std::string escape(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += c;
    }
  }
  return result;
}

Svg::Svg(double width, double height, std::string_view title)
    : body_(cat("<svg role=\"img\" viewBox=\"0 0 ", fixed(width, 0), " ", fixed(height, 0), "\"",
                attribute("width", width), attribute("height", height), ">\n<title>", escape(title),
                "</title>\n")) {}

void Svg::rect(double x, double y, double width, double height, std::string_view css_class,
               std::string_view tooltip) {
  body_ += cat("<rect", attribute("x", x), attribute("y", y), attribute("width", width),
               attribute("height", height), class_attribute(css_class), "><title>", escape(tooltip),
               "</title></rect>\n");
}

void Svg::text(double x, double y, std::string_view text, std::string_view css_class) {
  body_ += cat("<text", attribute("x", x), attribute("y", y), class_attribute(css_class), ">",
               escape(text), "</text>\n");
}

std::string Svg::str() const { return body_ + "</svg>\n"; }

std::string bar_chart(std::string_view title, const std::vector<BarGroup>& groups) {
  double height = kGroupGap;
  for (const BarGroup& group : groups) height += height_of(group);
  Svg svg(kWidth, height, title);
  double y = kGroupGap;
  for (const BarGroup& group : groups) {
    double longest = 0;
    for (const Bar& bar : group.bars) longest = std::max(longest, bar.length);
    svg.text(0, y + kBarHeight - 3, group.title, "name");
    double at = y;
    for (const Bar& bar : group.bars) {
      const double width = longest > 0 ? kLongest * bar.length / longest : 0;
      svg.rect(kLeft, at, width, kBarHeight, bar.css_class, bar.label);
      svg.text(kLeft + width + 6, at + kBarHeight - 3, bar.label);
      at += kBarStep;
    }
    y += height_of(group);
  }
  return svg.str();
}

}  // namespace tessera::bench
