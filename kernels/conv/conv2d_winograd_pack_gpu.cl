// Weights as conv2d_winograd_gpu reads them: {panel of TM outputs, slice of TK inputs, product, input, output} in f32, zero where
// there are no such channels. The gradient of the input sees the kernel turned round. A work-item per pair of channels.
#include "clnet.clh"

// Three weights to the four values at the points 0, 1, -1 and infinity.
#define TRANSFORM(t, g0, g1, g2)                        \
  do {                                                  \
    const float even_ = 0.5f * ((g0) + (g2)), odd_ = 0.5f * (g1); \
    (t)[0] = g0;                                        \
    (t)[1] = even_ + odd_;                              \
    (t)[2] = even_ - odd_;                              \
    (t)[3] = g2;                                        \
  } while (0)

kernel void conv2d_winograd_pack_gpu(IN(w), OUT(packed), const int in, const int out, const int in_stride, const int out_stride,
                                     const int turned, const int total) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int block = i / (TM * TK), slices = (in + TK - 1) / TK;
  const int o = block / slices * TM + i % TM, c = block % slices * TK + i / TM % TK;
  const bool there = o < out && c < in;
  float g[9], t[3][4];
  #pragma unroll
  for (int k = 0; k < 9; ++k) g[k] = there ? LOAD(w, o * out_stride + c * in_stride + (turned ? 8 - k : k)) : 0.0f;
  #pragma unroll
  for (int r = 0; r < 3; ++r) TRANSFORM(t[r], g[3 * r], g[3 * r + 1], g[3 * r + 2]);
  #pragma unroll
  for (int s = 0; s < 4; ++s) {
    float u[4];
    TRANSFORM(u, t[0][s], t[1][s], t[2][s]);
    #pragma unroll
    for (int r = 0; r < 4; ++r) STORE(packed, (block * 16 + 4 * r + s) * (TM * TK) + i % (TM * TK), u[r]);
  }
}
