// The text of the tessera::Error that a call throws; a failure of the test when it throws none.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tessera/base/error.h"

namespace tessera {

template <class F>
std::string error_text(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "expected a tessera::Error";
  return "";
}

}  // namespace tessera
