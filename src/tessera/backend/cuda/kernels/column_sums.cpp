#include "tessera/backend/cuda/kernels/column_sums.h"

#include "tessera/backend/gpu/named_kernel.h"

namespace tessera::cuda {

namespace {

constexpr int64_t kWide = 32;  // columns of a group

// Lanes side by side read columns side by side; those of one column meet at the end, in order.
constexpr std::string_view kText = R"(
KERNEL_OF($lanes)
tessera_column_sums(const $S* x, $S* sums, i64 row_step, i64 column_step, i64 rows, i64 columns) {
  SHARED $T room[$lanes];
  const i64 column = (i64)GROUP * $wide + LANE % $wide;
  $T sum = 0;
  if (column < columns) {
    for (i64 row = LANE / $wide; row < rows; row += $lanes / $wide) {
      sum += LOAD(x[row * row_step + column * column_step]);
    }
  }
  room[LANE] = sum;
  BARRIER;
  if (LANE >= $wide || column >= columns) return;
  for (i32 i = LANE + $wide; i < $lanes; i += $wide) sum += room[i];
  sums[column] = STORE(sum);
}
)";

}  // namespace

ColumnSums::ColumnSums(Session& session, const std::string& kernel, DType dtype)
    : group_(gpu::group_size(session, 1024)) {
  const std::string source =
      gpu::complete_source(session, kText, dtype, {{"$lanes", cat(group_)}, {"$wide", cat(kWide)}});
  kernel_ = session.build(kernel, source, "tessera_column_sums");
}

void ColumnSums::operator()(Stream stream, const void* x, void* sums, const View& view) const {
  const int64_t columns = view.shape[1];
  gpu::Range range = gpu::range_of(columns, kWide);
  range.group[0] = size_t(group_);
  (*kernel_)(stream, range, x, sums, view.strides[0], view.strides[1], view.shape[0], columns);
}

}  // namespace tessera::cuda
