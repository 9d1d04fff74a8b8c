// Results as tables of text.
#pragma once

#include <string>

#include "tessera/bench/results.h"

namespace tessera::bench {

// The columns of a suite's table: yardsticks that some line of it may have, then devices.
std::vector<std::string> columns_of(std::string_view suite,
                                    const std::vector<std::string>& devices);

// What stands where a line has no time in a column.
std::string_view absence_text(const Results& results, std::string_view column);

// How a column is called above a table.
std::string title_of(const std::string& column);

std::string machine_text(const Results& results);
std::string limits_text(const Limits& limits);
// Behind the times: what Tessera's first device reaches, then the others one by one.
std::string header_text(std::string_view suite, const std::vector<std::string>& devices);
// One line of the table; where it is wrong, who was, and by how much.
std::string line_text(const Line& line, const Results& results);
std::string claims_text(const std::vector<Claim>& claims);
// What the marks mean, what was left out, and whether anything was wrong.
std::string footer_text(const Results& results);

// "cpu: largest error 12 ulps, allowed 4"
std::string wrong_text(const Line& line);

}  // namespace tessera::bench
