// A small writer of SVG, to be put into a page. Colours are CSS classes, so that the page's light
// and dark styles hold for it too.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::bench {

// Text as it stands in HTML and in attributes.
std::string escape(std::string_view text);

class Svg {
 public:
  Svg(double width, double height, std::string_view title);

  void rect(double x, double y, double width, double height, std::string_view css_class,
            std::string_view tooltip = "");
  void text(double x, double y, std::string_view text, std::string_view css_class = "");
  // Points (x, y), joined.
  void line(std::span<const std::pair<double, double>> points, std::string_view css_class);

  std::string str() const;  // the element

 private:
  std::string body_;
};

// Horizontal bars in groups: one group per line, lengths relative to the longest of its group.
struct Bar {
  std::string css_class, label;  // the label stands behind the bar
  double length;
};
struct BarGroup {
  std::string title;
  std::vector<Bar> bars;
};
std::string bar_chart(std::string_view title, const std::vector<BarGroup>& groups);

// Curves over a common pair of axes, with a legend. Points that are not finite are left out.
struct Curve {
  std::string css_class, label;
  std::vector<std::pair<double, double>> points;
};
std::string line_chart(std::string_view title, std::string_view x_label,
                       const std::vector<Curve>& curves);

}  // namespace tessera::bench
