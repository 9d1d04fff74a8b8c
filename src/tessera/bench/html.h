// Results as one HTML file with charts: no scripts, no other files, no network.
#pragma once

#include <string>
#include <string_view>

#include "tessera/bench/results.h"

namespace tessera::bench {

std::string to_html(const Results& results);

// A page of that style, around a body of HTML.
std::string page(std::string_view title, std::string_view body);

// <tag class="css_class">text</tag>, the text escaped.
std::string element(std::string_view tag, std::string_view text, std::string_view css_class = "");

}  // namespace tessera::bench
