// What tools/extract_example makes of docs/: every example as a function.
#pragma once

#include <span>
#include <vector>

#include "tessera/tessera.h"

namespace tessera {

struct Snippet {
  const char* title;  // its chapter, or the expression itself
  int line;           // of the document
  void (*run)();
  const char* output;  // what it must write to std::cout; null: it must only run
};

extern const std::span<const Snippet> kTour;   // docs/tour.md
extern const std::span<const Snippet> kTable;  // docs/from_pytorch.md

// An expression of the table counts as tried when its value has been computed. `expression, Done{}`
// is the expression's value; where that is void, the language's own comma makes it Done.
struct Done {};
template <class T>
const T& operator,(const T& value, Done) {
  return value;
}

void read(const Tensor& tensor);
void read(const std::vector<Tensor>& tensors);
template <class T>
void read(const T&) {}

}  // namespace tessera
