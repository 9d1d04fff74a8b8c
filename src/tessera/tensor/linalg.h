// Products.
#pragma once

#include <string_view>
#include <vector>

#include "tessera/tensor/tensor.h"

namespace tessera {

// Any ranks of at least 1: leading axes are batches and broadcast, a vector is a row on the left
// and a column on the right.
Tensor matmul(In a, In b);
Tensor dot(In a, In b);    // (n), (n) -> ()
Tensor outer(In a, In b);  // (n), (m) -> (n, m)

// Einstein's summation: einsum("bij,bjk->bik", {x, y}). Letters name axes; one that the result
// lacks is summed; one that an operand repeats takes the diagonal; "..." stands for axes without a
// name, aligned at the right. Axes of one name have one extent, or 1, which broadcasts. Without
// "->" the result has the axes of "..." and then the letters that occur once, capitals first, in
// alphabetical order. Spaces do not count.
//
// Pairs of operands are contracted as batched matrix products, of up to four operands in the order
// of least work. The result has the operands' common dtype, also where integers are summed.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands,
              std::source_location line = std::source_location::current());

}  // namespace tessera
