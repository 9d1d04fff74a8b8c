#include "tessera/tensor/network.h"

#include "golden/golden.h"
#include "tessera/tensor/linalg.h"
#include "tessera/tensor/structure.h"

namespace tessera::golden {

// clang-format off
std::vector<Row> network_rows() {
  return {
    {"matmul", matmul},
    {"matmul_row", matmul},
    {"matmul_column", matmul},
    {"matmul_vectors", matmul},
    {"matmul_batched", matmul},
    {"matmul_broadcast", matmul},
    {"matmul_matrix_of_batch", matmul},
    {"matmul_vector_of_batch", matmul},
    {"matmul_transposed", [](X x) { return matmul(transpose(x[0]), transpose(x[1])); }},
    {"dot", dot},
    {"outer", outer},
    {"einsum_matrix", [](X x) { return einsum("ij,jk->ik", x.tensors); }},
    {"einsum_implicit", [](X x) { return einsum("ij,jk", x.tensors); }},
    {"einsum_batched", [](X x) { return einsum("bij,bjk->bik", x.tensors); }},
    {"einsum_transposed", [](X x) { return einsum("ij->ji", x.tensors); }},
    {"einsum_total", [](X x) { return einsum("ij->", x.tensors); }},
    {"einsum_row_sums", [](X x) { return einsum("ij->i", x.tensors); }},
    {"einsum_diagonal", [](X x) { return einsum("ii->i", x.tensors); }},
    {"einsum_trace", [](X x) { return einsum("ii", x.tensors); }},
    {"einsum_outer", [](X x) { return einsum("i,j->ij", x.tensors); }},
    {"einsum_scores", [](X x) { return einsum("bhqd,bhkd->bhqk", x.tensors); }},
    {"einsum_ellipsis", [](X x) { return einsum("...ij,...jk->...ik", x.tensors); }},
    {"einsum_chain", [](X x) { return einsum("ij,jk,kl->il", x.tensors); }},
    {"einsum_bilinear", [](X x) { return einsum("bi,ijk,bk->bj", x.tensors); }},
    {"einsum_summed_alone", [](X x) { return einsum("ij,k->i", x.tensors); }},
    {"einsum_hadamard", [](X x) { return einsum("ij,ij->ij", x.tensors); }},
    {"einsum_diagonal_product", [](X x) { return einsum("ii,ij->j", x.tensors); }},

    {"softmax", [](X x) { return softmax(x[0]); }},
    {"softmax_first", [](X x) { return softmax(x[0], 0); }},
    {"softmax_middle", [](X x) { return softmax(x[0], 1); }},
    {"softmax_large", [](X x) { return softmax(x[0]); }},
    {"log_softmax", [](X x) { return log_softmax(x[0]); }},
    {"log_softmax_first", [](X x) { return log_softmax(x[0], 0); }},
    {"layer_norm", [](X x) { return layer_norm(x[0], x[1], x[2]); }},
    {"layer_norm_batch", [](X x) { return layer_norm(x[0], x[1], x[2], 1e-3); }},
    {"rms_norm", [](X x) { return rms_norm(x[0], x[1]); }},
    {"rms_norm_epsilon", [](X x) { return rms_norm(x[0], x[1], 0.125); }},
    {"group_norm", [](X x) { return group_norm(x[0], 3, x[1], x[2]); }},
    {"group_norm_plane", [](X x) { return group_norm(x[0], 2, x[1], x[2], 1e-3); }},
    {"group_norm_vector", [](X x) { return group_norm(x[0], 2, x[1], x[2]); }},

    {"attention", [](X x) { return attention(x[0], x[1], x[2]); }},
    {"attention_cross", [](X x) { return attention(x[0], x[1], x[2]); }},
    {"attention_scale", [](X x) { return attention(x[0], x[1], x[2], {.scale = 0.75}); }},
    {"attention_causal", [](X x) { return attention(x[0], x[1], x[2], {.causal = true}); }},
    {"attention_causal_cross", [](X x) { return attention(x[0], x[1], x[2], {.causal = true}); }},
    {"attention_bool_mask", [](X x) { return attention(x[0], x[1], x[2], {.mask = x[3]}); }},
    {"attention_additive_mask", [](X x) { return attention(x[0], x[1], x[2], {.mask = x[3]}); }},
    {"attention_lengths", [](X x) { return attention(x[0], x[1], x[2], {.lengths = x[3]}); }},
    {"attention_grouped", [](X x) { return attention(x[0], x[1], x[2]); }},
    {"attention_grouped_causal", [](X x) { return attention(x[0], x[1], x[2], {.causal = true}); }},
    {"attention_one_group", [](X x) { return attention(x[0], x[1], x[2]); }},
    {"attention_causal_and_mask", [](X x) {
       return attention(x[0], x[1], x[2], {.causal = true, .mask = x[3]}); }},
    {"rotary", [](X x) { return rotary(x[0], x[1]); }},
    {"rotary_base", [](X x) { return rotary(x[0], x[1], 500); }},
    {"rotary_interleaved", [](X x) { return rotary(x[0], x[1], 10000, true); }},
    {"rotary_batch", [](X x) { return rotary(x[0], x[1]); }},
  };
}
// clang-format on

}  // namespace tessera::golden
