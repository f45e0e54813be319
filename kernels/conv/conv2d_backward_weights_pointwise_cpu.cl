// The gradient {O, C} of the weight of a 1x1 convolution, for CPUs: the product of the gradients and the inputs of all pixels, which are rows
// of P of both. Lanes are pixels, so that nothing is packed: OUTS rows of gradients by INS rows of inputs have their sums in registers,
// whose lanes are added up after `chunk` pixels of each of `group` images, as that takes as long as some hundred pixels. Those of `ins`
// inputs stay in the second-level cache meanwhile. A work-item sums `outs` outputs over `images` images: part of y {parts, O, C}.
#include "item.clh"
#include "vector.clh"

// Vectors of the sums of a tile, one in each lane.
#define TILE_VECTORS ((OUTS * INS + VW - 1) / VW)

#define PARAMETERS                                                                                                  \
  IN(x), IN(g), OUT(y), INT(N), INT(C), INT(O), INT(P), INT(images), INT(outs), INT(ins), INT(group),               \
  INT(chunk), LOCAL(float, sums)
WORK_ITEM void conv2d_backward_weights_pointwise_cpu_item(ID_PARAMETERS, PARAMETERS) {
  const int out0 = id0 * outs, out1 = out0 + min(outs, O - out0), across = (C + INS - 1) / INS;
  const int part = id1, n0 = part * images, n1 = n0 + min(images, N - n0);
  for (int i = 0; i < (out1 - out0 + OUTS - 1) / OUTS * across * TILE_VECTORS; ++i)
    *(local any_vector *)(sums + i * VW) = (VFLOAT)(0.0f);
  for (int first_image = n0; first_image < n1; first_image += group)
    for (int c0 = 0; c0 < C; c0 += ins)
      for (int first = 0; first < P; first += chunk) {
        const int last = first + min(chunk, P - first), last_image = first_image + min(group, n1 - first_image);
        for (int o = out0; o < out1; o += OUTS)
          for (int c = c0; c < min(c0 + ins, C); c += INS) {
            VFLOAT sum[TILE_VECTORS * VW], gradients[OUTS];
            #pragma unroll
            for (int k = 0; k < TILE_VECTORS * VW; ++k) sum[k] = (VFLOAT)(0.0f);
            for (int n = first_image; n < last_image; ++n) {
              // The last tile covers the one before.
              const int gradient = (n * O + min(o, O - OUTS)) * P, source = (n * C + min(c, C - INS)) * P;
              const global STORAGE(g) *to[OUTS];
              const global STORAGE(x) *from[INS];
              #pragma unroll
              for (int i = 0; i < OUTS; ++i) to[i] = PTR(g) + gradient + i * P;
              #pragma unroll
              for (int j = 0; j < INS; ++j) from[j] = PTR(x) + source + j * P;
              size_t at = first;
              for (; at + VW <= (size_t)last; at += VW) {
                #pragma unroll
                for (int i = 0; i < OUTS; ++i) gradients[i] = VLOAD_AT(g, to[i] + at);
                #pragma unroll
                for (int j = 0; j < INS; ++j) {
                  const VFLOAT pixels = VLOAD_AT(x, from[j] + at);
                  #pragma unroll
                  for (int i = 0; i < OUTS; ++i) sum[i * INS + j] = fma(gradients[i], pixels, sum[i * INS + j]);
                }
              }
              const int rest = last - (int)at;
              if (rest == 0) continue;
              // The last whole vector, without the pixels that were counted.
              const VINT mask = clnet_lanes() >= VW - rest;
              at = last - VW;
              #pragma unroll
              for (int i = 0; i < OUTS; ++i) gradients[i] = VAS_FLOAT(VAS_INT(VLOAD_AT(g, to[i] + at)) & mask);
              #pragma unroll
              for (int j = 0; j < INS; ++j) {
                const VFLOAT pixels = VAS_FLOAT(VAS_INT(VLOAD_AT(x, from[j] + at)) & mask);
                #pragma unroll
                for (int i = 0; i < OUTS; ++i) sum[i * INS + j] = fma(gradients[i], pixels, sum[i * INS + j]);
              }
            }
            local float *tile = sums + ((o - out0) / OUTS * across + c / INS) * (TILE_VECTORS * VW);
            #pragma unroll
            for (int t = 0; t < TILE_VECTORS; ++t) *(local any_vector *)(tile + t * VW) += clnet_lanes_sums(sum + t * VW);
          }
      }
  for (int o = out0; o < out1; ++o)
    for (int c = 0; c < C; ++c) {
      const int o_tile = (o - out0) / OUTS * OUTS + out0, c_tile = c / INS * INS;
      const local float *tile = sums + ((o - out0) / OUTS * across + c / INS) * (TILE_VECTORS * VW);
      STORE(y, (part * O + o) * C + c, tile[(o - min(o_tile, O - OUTS)) * INS + c - min(c_tile, C - INS)]);
    }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_backward_weights_pointwise_cpu(PARAMETERS) {
#include "arguments.clh"
  conv2d_backward_weights_pointwise_cpu_item(IDS, PARAMETERS);
}
