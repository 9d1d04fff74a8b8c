#include "tessera/bench/svg.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

constexpr double kChartHeight = 420, kMarginLeft = 70, kMarginBelow = 40, kMarginAbove = 30;
constexpr int kTicks = 5;

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  void include(double x) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
  double part(double x) const { return high > low ? (x - low) / (high - low) : 0.5; }
  double at(int tick) const { return low + (high - low) * tick / kTicks; }
};

bool is_finite(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

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

void Svg::line(std::span<const std::pair<double, double>> points, std::string_view css_class) {
  std::string list;
  for (const auto& [x, y] : points) list += cat(fixed(x, 1), ",", fixed(y, 1), " ");
  body_ += cat("<polyline points=\"", list, "\"", class_attribute(css_class), "/>\n");
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

std::string line_chart(std::string_view title, std::string_view x_label,
                       const std::vector<Curve>& curves) {
  Range x, y;
  for (const Curve& curve : curves) {
    for (const auto& point : curve.points) {
      if (!is_finite(point)) continue;
      x.include(point.first);
      y.include(point.second);
    }
  }
  const double bottom = kChartHeight - kMarginBelow, right = kWidth - 20;
  const auto place = [&](const std::pair<double, double>& p) {
    return std::pair{kMarginLeft + x.part(p.first) * (right - kMarginLeft),
                     bottom - y.part(p.second) * (bottom - kMarginAbove)};
  };
  Svg svg(kWidth, kChartHeight, title);
  const bool has_points = x.low <= x.high;
  for (int tick = 0; tick <= kTicks && has_points; ++tick) {
    const auto [at, level] = place({x.at(tick), y.at(tick)});
    svg.line(std::vector<std::pair<double, double>>{{kMarginLeft, level}, {right, level}}, "grid");
    svg.text(0, level + 4, three_digits(y.at(tick)));
    svg.text(at - 10, bottom + 18, fixed(x.at(tick), 0));
  }
  svg.text(kMarginLeft, kChartHeight - 4, x_label);
  double legend = kMarginLeft;
  for (const Curve& curve : curves) {
    std::vector<std::pair<double, double>> placed;
    for (const auto& point : curve.points) {
      if (is_finite(point)) placed.push_back(place(point));
    }
    svg.line(placed, curve.css_class);
    svg.line(std::vector<std::pair<double, double>>{{legend, 12}, {legend + 24, 12}},
             curve.css_class);
    svg.text(legend + 30, 16, curve.label);
    legend += 160;
  }
  return svg.str();
}

}  // namespace tessera::bench
