// The text of the tessera::Error that a call throws; a failure of the test when it throws none.
// error_text() leaves out the line of the test that errors of tensors end with: "
// (ops_test.cpp:7)".
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tessera/base/error.h"

namespace tessera {

template <class F>
std::string full_error_text(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "expected a tessera::Error";
  return "";
}

template <class F>
std::string error_text(F&& f) {
  const std::string text = full_error_text(f);
  const size_t start = text.rfind(" (");
  const bool is_place = start != std::string::npos && text.back() == ')' &&
                        text.find("_test.cpp:", start) != std::string::npos &&
                        text.find(" (in ", start) == std::string::npos;
  return is_place ? text.substr(0, start) : text;
}

}  // namespace tessera
