// Calling named kernels in the tests.
#pragma once

#include <vector>

#include "backend_cpu/kernel_builder.h"
#include "tessera/runtime/backend.h"

namespace tessera::test {

Backend& test_backend();

// An operand: contents and view.
struct Operand {
  Array array;
  View view;
};
Operand dense(Array array, Shape shape);

// The element of an operand at `position`, row-major over its view.
double at(const Operand& operand, int64_t position);

KernelCall make_call(const std::string& kernel, const std::vector<Operand>& operands, int outputs,
                     KernelAttrs attrs = {});

// Compiles and launches; outputs change in place.
void call(const std::string& kernel, std::vector<Operand>& operands, int outputs,
          KernelAttrs attrs = {});

// The text of the Error that `work` throws; "" when it throws none.
template <class F>
std::string error_of(F work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tessera::test
