// Depthwise convolution of {H, W} to {PH, W} with steps of 1, for CPUs: planes are not staged. A vector is ROWS whole rows of sums, which
// lie in one piece in the source as in the result, or a part of a row. What a tap sees beyond the left and right end of a row, which are
// the elements of its neighbours, becomes zeros, as what lies above and below the plane. A work-item makes `block` planes. What
// it makes of one lies in one piece, so that each element is stored once, and only the end of a plane by single elements.
#include "conv2d_slices.clh"
#include "vector.clh"
#include "epilogue.clh"

// Vectors side by side in a row, and rows of them.
#define ACROSS ((W + VW - 1) / VW)
#define DOWN ((PH + ROWS - 1) / ROWS)
// Elements in front of a plane that vectors of it may hold, and behind it.
#define BEFORE (ROWS * W + KW)
#define BEHIND (VW + KW)

#ifdef BIAS
#define BIAS_PARAMETER IN(bias),
#define BIAS_ARGUMENT bias_base, bias_offset,
#define START(channel) LOAD(bias, channel)
#else
#define BIAS_PARAMETER
#define BIAS_ARGUMENT
#define START(channel) 0.0f
#endif

// Which lanes of a vector from `row` and `column` on lie in the plane when they are shifted by `shift` columns.
static inline VINT inside(const int row, const int column, const int shift) {
  VINT result;
  #pragma unroll
  for (int l = 0; l < VW; ++l) {
    const int r = row + l / W, c = column + l % W + shift;
    result[l] = (ROWS == 1 || (r >= 0 && r < H)) && c >= 0 && c < W ? -1 : 0;
  }
  return result;
}

static __attribute__((always_inline)) inline void make_plane(IN(x), IN(w), BIAS_PARAMETER OUT(y), const int plane, const int channels, const bool is_staged,
                              const local float *restrict staged, local float *restrict made SLICES_PARAMETER EPILOGUE_PARAMETERS) {
  const int channel = plane % channels, source = plane * (H * W);
  float weights[KH * KW];
  #pragma unroll
  for (int k = 0; k < KH * KW; ++k)
#ifdef FLIP
    weights[k] = LOAD(w, channel * (KH * KW) + KH * KW - 1 - k);
#else
    weights[k] = LOAD(w, channel * (KH * KW) + k);
#endif
#ifdef UNROLLED
  #pragma unroll
#else
  SELDOM
#endif
  for (int v0 = 0; v0 < DOWN; v0 += VECTORS)
    #pragma unroll
    for (int a = 0; a < ACROSS; ++a) {
      // The last vector of a row covers the one before, if there is one.
      const int column = a == 0 ? 0 : min(a * VW, W - VW);
      VFLOAT sum[VECTORS];
      #pragma unroll
      for (int v = 0; v < VECTORS; ++v) sum[v] = (VFLOAT)(START(channel));
      #pragma unroll
      for (int q = 0; q < (VECTORS - 1) * ROWS + KH; ++q) {
        const int row = v0 * ROWS + q - TOP;
        if (row > -ROWS && row < H) {
          #pragma unroll
          for (int t = 0; t < KW; ++t) {
            const int i = row * W + column + t - LEFT;
            const VFLOAT all = is_staged ? *(const local any_vector *)(staged + BEFORE + i) : VLOAD(x, source + i);
            const VFLOAT pixels = VAS_FLOAT(VAS_INT(all) & inside(row, column, t - LEFT));
            #pragma unroll
            for (int v = 0; v < VECTORS; ++v)
              if (q >= v * ROWS && q < v * ROWS + KH) sum[v] = fma((VFLOAT)(weights[(q - v * ROWS) * KW + t]), pixels, sum[v]);
          }
        }
      }
      #pragma unroll
      for (int v = 0; v < VECTORS; ++v)
        if (v0 + v < DOWN) *(local any_vector *)(made + (v0 + v) * (ROWS * W) + column) = sum[v];
    }
  const int first = Y_PLANE(plane / channels, channel, channels) * (PH * W);
  int i = 0;
  for (; i + VW <= PH * W; i += VW) VSTORE(y, first + i, VEPILOGUE(*(const local any_vector *)(made + i), first + i, channel, 0));
  SELDOM for (; i < PH * W; ++i) STORE(y, first + i, EPILOGUE(made[i], first + i, channel));
}

#define MAKE_PLANE(plane, is_staged)                                                                                            \
  make_plane(x_base, x_offset, w_base, w_offset, BIAS_ARGUMENT y_base, y_offset, plane, channels, is_staged, staged, made \
             SLICES_ARGUMENT EPILOGUE_ARGUMENTS)

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_depthwise_small_cpu(
    IN(x), IN(w), BIAS_PARAMETER OUT(y), const int planes, const int channels, const int block, local float *restrict staged,
    local float *restrict made SLICES_PARAMETER EPILOGUE_PARAMETERS) {
  const int plane0 = (int)get_global_id(0) * block, plane1 = plane0 + min(block, planes - plane0);
  // Around the first and the last planes there may be no elements, so that they are staged: in a loop of their own, as compilers
  // would join both ways of one loop.
  const int inner0 = (BEFORE + H * W - 1) / (H * W), inner1 = planes - (BEHIND + H * W - 1) / (H * W);
  for (int plane = max(plane0, inner0); plane < min(plane1, inner1); ++plane) MAKE_PLANE(plane, false);
  SELDOM for (int plane = plane0; plane < plane1; ++plane)
    if (plane < inner0 || plane >= inner1) {
      SELDOM for (int i = 0; i < H * W; ++i) staged[BEFORE + i] = LOAD(x, plane * (H * W) + i);
      MAKE_PLANE(plane, true);
    }
}
