// A program that forgets init() is told so. Apart from the other tests, which all call it.
#include <cstdio>
#include <string>

#include "tessera/tessera.h"

int main() {
  try {
    tessera::scalar(1.0f).item();
  } catch (const tessera::Error& error) {
    const std::string text = error.what();
    std::printf("%s\n", text.c_str());
    return text == "backend: none is registered: call tessera::init() first" ? 0 : 1;
  }
  return 1;
}
