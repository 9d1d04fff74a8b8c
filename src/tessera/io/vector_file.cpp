#include "tessera/io/vector_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tessera/base/thread_pool.h"
#include "tessera/io/npy.h"
#include "tessera/io/safetensors.h"

namespace tessera {

namespace {

static_assert(std::endian::native == std::endian::little, "data is used as it lies in the file");

enum class Layout { npy, safetensors, counted, headed, raw };

struct Format {
  std::string_view extension;
  Layout layout;
  DType dtype;  // where the extension says it
};

constexpr std::array<Format, 10> kFormats = {{
    {".npy", Layout::npy, DType::f32},
    {".safetensors", Layout::safetensors, DType::f32},
    {".fvecs", Layout::counted, DType::f32},
    {".bvecs", Layout::counted, DType::u8},
    {".ivecs", Layout::counted, DType::i32},
    {".fbin", Layout::headed, DType::f32},
    {".u8bin", Layout::headed, DType::u8},
    {".i8bin", Layout::headed, DType::i8},
    {".raw", Layout::raw, DType::f32},
    {".bin", Layout::raw, DType::f32},
}};

constexpr int64_t kCountBytes = 4;   // before a counted row
constexpr int64_t kHeaderBytes = 8;  // before headed rows
constexpr int64_t kGrain = 1 << 16;  // numbers that are worth a task

template <class... Args>
[[noreturn]] void refuse_file(const std::filesystem::path& path, const Args&... args) {
  fail("vectors: '", path.native(), "': ", args...);
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

bool readable(DType dtype) {
  constexpr std::array kTypes = {DType::f32, DType::f16, DType::bf16,
                                 DType::i8,  DType::u8,  DType::i32};
  return std::ranges::find(kTypes, dtype) != kTypes.end();
}

// False where a number is not finite.
template <class T>
bool convert_row(const std::byte* from, int64_t dim, float* to) {
  constexpr uint32_t kExponent = 0x7f800000;  // all of it set: infinite or no number
  uint32_t bad = 0;
  for (int64_t p = 0; p < dim; ++p) {
    to[p] = static_cast<float>(load<T>(from + p * int64_t(sizeof(T))));
    bad |= uint32_t((std::bit_cast<uint32_t>(to[p]) & kExponent) == kExponent);
  }
  return bad == 0;
}

using RowConverter = bool (*)(const std::byte*, int64_t, float*);

RowConverter converter(DType dtype) {
  return visit(dtype, []<class T>() -> RowConverter { return convert_row<T>; });
}

}  // namespace

void VectorFile::check_count(int64_t row) const {
  const std::byte* at = first_ + row * step_ - kCountBytes;
  const auto count = load<int32_t>(at);
  if (count == dim_) return;
  refuse_file(path_, "expected row ", row, " to have dimension ", dim_, " like row 0, got ", count,
              " at byte ", at - file_.bytes().data());
}

// Finds out where the rows are. Each member handles one layout.
struct VectorFile::Opener {
  VectorFile& file;
  const VectorFileOptions& options;
  std::span<const std::byte> bytes = file.file_.bytes();

  template <class... Args>
  [[noreturn]] void refuse(const Args&... args) const {
    refuse_file(file.path_, args...);
  }

  int64_t size() const { return int64_t(bytes.size()); }

  void set_dim(int64_t dim, std::string_view where) {
    if (dim < 1 || dim > kMaxDim) {
      refuse("expected a dimension from 1 to ", kMaxDim, where, ", got ", dim);
    }
    if (options.dim && *options.dim != dim) {
      refuse("expected vectors of dimension ", *options.dim, ", got ", dim);
    }
    file.dim_ = dim;
  }

  void set_dtype(DType dtype) {
    if (!readable(dtype)) refuse("expected numbers of f32 f16 bf16 i8 u8 or i32, got ", dtype);
    file.dtype_ = dtype;
  }

  void set_rows(int64_t rows, const std::byte* first, int64_t step) {
    if (rows == 0) refuse("expected at least one row, got none");
    file.rows_ = rows;
    file.first_ = first;
    file.step_ = step;
  }

  void set_matrix(DType dtype, const Shape& shape, const std::byte* first) {
    set_dtype(dtype);
    if (shape.rank() != 2) refuse("expected two dimensions (rows, dim), got shape ", shape);
    if (shape[0] == 0) refuse("expected at least one row, got none");
    set_dim(shape[1], "");
    set_rows(shape[0], first, shape[1] * size_of(dtype));
  }

  void open_npy() {
    const NpyView view = parse_npy(bytes, cat("'", file.path_.native(), "'"));
    if (view.fortran_order) {
      refuse("expected rows in C order, got Fortran order (numpy.ascontiguousarray turns it)");
    }
    set_matrix(view.dtype, view.shape, view.data.data());
  }

  void open_safetensors() {
    const SafetensorsView view = parse_safetensors(bytes, cat("'", file.path_.native(), "'"));
    const SafetensorsTensor* found = nullptr;
    if (!options.tensor.empty()) {
      found = view.find(options.tensor);
      if (found == nullptr)
        refuse("expected a tensor '", options.tensor, "', got none of that name");
    } else {
      int64_t candidates = 0;
      for (const SafetensorsTensor& tensor : view.tensors) {
        if (tensor.info.shape.rank() != 2) continue;
        found = &tensor;
        ++candidates;
      }
      if (candidates != 1) {
        refuse("expected one tensor of two dimensions, got ", candidates, ": name the one to read");
      }
    }
    set_matrix(found->info.dtype, found->info.shape, found->data.data());
  }

  void open_counted(DType dtype) {
    set_dtype(dtype);
    if (bytes.empty()) refuse("expected at least one row, got none");
    if (size() < kCountBytes) refuse("the file ends inside the dimension of row 0");
    set_dim(load<int32_t>(bytes.data()), " at byte 0");
    const int64_t step = kCountBytes + file.dim_ * size_of(dtype);
    file.counted_ = true;
    set_rows(size() / step, bytes.data() + kCountBytes, step);
    if (size() % step == 0) return;
    // Rows of another length are the likelier reason than a cut.
    for (int64_t row = 0; row < file.rows_; ++row) file.check_count(row);
    const int64_t begin = file.rows_ * step;
    if (size() - begin >= kCountBytes) file.check_count(file.rows_);
    refuse("the file ends inside row ", file.rows_, ", which begins at byte ", begin);
  }

  void open_headed(DType dtype) {
    set_dtype(dtype);
    if (size() < kHeaderBytes) {
      refuse("expected a header of ", kHeaderBytes, " bytes, got ", size());
    }
    const int64_t rows = load<uint32_t>(bytes.data());
    set_dim(load<uint32_t>(bytes.data() + 4), " at byte 4");
    const int64_t step = file.dim_ * size_of(dtype);
    const int64_t expected = rows * step;  // at most 2^32 * kMaxDim * 4
    if (size() - kHeaderBytes != expected) {
      refuse("expected ", expected, " bytes after the header for ", rows, " rows of ", file.dim_,
             " ", dtype, ", got ", size() - kHeaderBytes);
    }
    set_rows(rows, bytes.data() + kHeaderBytes, step);
  }

  void open_raw() {
    set_dtype(options.dtype);
    if (!options.dim) refuse("expected the dimension to be given: the file does not say it");
    set_dim(*options.dim, "");
    const int64_t step = file.dim_ * size_of(options.dtype);
    if (size() % step != 0) {
      refuse("expected whole rows of ", step, " bytes, got ", size(),
             " bytes, which end inside row ", size() / step);
    }
    set_rows(size() / step, bytes.data(), step);
  }

  void open(const Format& format) {
    switch (format.layout) {
      case Layout::npy: return open_npy();
      case Layout::safetensors: return open_safetensors();
      case Layout::counted: return open_counted(format.dtype);
      case Layout::headed: return open_headed(format.dtype);
      case Layout::raw: return open_raw();
    }
  }
};

VectorFile VectorFile::open(const std::filesystem::path& path, const VectorFileOptions& options) {
  const std::string extension = path.extension().native();
  const auto format = std::ranges::find(kFormats, extension, &Format::extension);
  if (format == kFormats.end()) {
    std::string known;
    for (const Format& f : kFormats) known += cat(known.empty() ? "" : " ", f.extension);
    refuse_file(path, "expected a file of ", known, ", got '", extension, "'");
  }
  VectorFile file(path, MappedFile(path));
  Opener{file, options}.open(*format);
  return file;
}

// Which row is named must not depend on the threads: the first bad one is.
template <class RowNumber>
void VectorFile::convert(int64_t count, const RowNumber& number, float* to) const {
  const RowConverter convert_one = converter(dtype_);
  std::atomic<int64_t> first_bad = std::numeric_limits<int64_t>::max();
  const int64_t grain = std::max<int64_t>(1, kGrain / dim_);
  thread_pool().parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const std::byte* row = first_ + number(i) * step_;
      const bool ragged = counted_ && load<int32_t>(row - kCountBytes) != dim_;
      if (convert_one(row, dim_, to + i * dim_) && !ragged) continue;
      int64_t known = first_bad;
      while (i < known && !first_bad.compare_exchange_weak(known, i)) continue;
      return;
    }
  });
  if (first_bad < count) explain_row(number(first_bad));
}

void VectorFile::explain_row(int64_t row) const {
  if (counted_) check_count(row);
  std::vector<float> values(static_cast<size_t>(dim_));
  converter(dtype_)(first_ + row * step_, dim_, values.data());
  const auto bad = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
  refuse_file(path_, "expected finite numbers, got ", *bad, " in row ", row, ", column ",
              bad - values.begin());
}

void VectorFile::read(int64_t begin, int64_t end, float* to) const {
  TESSERA_ASSERT(begin >= 0 && begin <= end && end <= rows_);
  convert(
      end - begin, [&](int64_t i) { return begin + i; }, to);
}

void VectorFile::read(std::span<const int64_t> numbers, float* to) const {
  TESSERA_ASSERT(std::ranges::all_of(numbers, [&](int64_t i) { return i >= 0 && i < rows_; }));
  convert(
      int64_t(numbers.size()), [&](int64_t i) { return numbers[size_t(i)]; }, to);
}

}  // namespace tessera
