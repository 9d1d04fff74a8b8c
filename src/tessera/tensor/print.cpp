#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>
#include <sstream>

#include "tessera/tensor/tensor.h"

namespace tessera {

namespace {

constexpr int64_t kEdge = 3;  // elements shown at each end of a long axis
constexpr int64_t kSummarizeAbove = 1000;

template <class T>
std::string element(T value) {
  if constexpr (std::same_as<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(int64_t(value));
  } else {
    if (double(value) != double(value)) return "nan";  // whatever its sign bit
    std::ostringstream out;
    out.precision(6);
    out << double(value);
    return out.str();
  }
}

class Printer {
 public:
  Printer(const Shape& shape, std::function<std::string(int64_t)> element)
      : shape_(shape), strides_(row_major_strides(shape)), element_(std::move(element)) {
    cut_ = numel(shape) > kSummarizeAbove;
  }

  // Twice: once for the width of what is shown, once for good.
  std::string print() {
    axis(0, 0);
    out_.str("");
    axis(0, 0);
    return out_.str();
  }

 private:
  void axis(int i, int64_t offset) {
    if (i == shape_.rank()) {
      const std::string text = element_(offset);
      width_ = std::max(width_, text.size());
      out_ << std::string(shape_.empty() ? 0 : width_ - text.size(), ' ') << text;
      return;
    }
    const bool last = i + 1 == shape_.rank();
    out_ << '[';
    for (int64_t k = 0; k < shape_[i]; ++k) {
      if (k > 0) out_ << (last ? ", " : ",\n" + std::string(size_t(i) + 1, ' '));
      if (cut_ && shape_[i] > 2 * kEdge && k == kEdge) {
        out_ << "...";
        k = shape_[i] - kEdge - 1;
        continue;
      }
      axis(i + 1, offset + k * strides_[i]);
    }
    out_ << ']';
  }

  const Shape shape_;
  const Dims strides_;
  const std::function<std::string(int64_t)> element_;
  bool cut_ = false;
  size_t width_ = 0;
  std::ostringstream out_;
};

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "(empty tensor)";
  return visit(tensor.dtype(), [&]<class T>() {
    const std::vector<T> values = tensor.to_vector<T>();
    Printer printer(tensor.shape(), [&](int64_t i) { return element<T>(values[size_t(i)]); });
    return cat(printer.print(), " ", tensor.value().type());
  });
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << to_string(tensor);
}

}  // namespace tessera
