// spatial == 1: VW neighbouring channels and a chunk of n per work-item.
#include "batch_norm.clh"
#include "vector.clh"

// Channels beyond the last one would read behind the tensor in its last row only; a partial block loads lane by lane.
#define LOAD_BLOCK(vector, buffer, i)                  \
  if (width == VW) vector = VLOAD(buffer, i);          \
  else VLOAD_PART(vector, buffer, i, width, 0.0f)

kernel void batch_norm_columns_cpu(IN(x), EXTRA_IN OUT(first), OUT(second), const int n, const int channels, const int spatial,
                                   const int chunk, const int chunks) {
  const int blocks = (channels + VW - 1) / VW, item = (int)get_global_id(0);
  const int c = REMAINDER(item, blocks) * VW, width = min(VW, channels - c);
  const int part = item / blocks, begin = part * chunk, end = BLOCK_END(begin, chunk, n);
  VFLOAT a = (VFLOAT)(0.0f), b = a, value;
#if BACKWARD
  VFLOAT center, gradient;
  LOAD_BLOCK(center, mean, c);
  for (int row = begin; row < end; ++row) {
    LOAD_BLOCK(gradient, g, row * channels + c);
    LOAD_BLOCK(value, x, row * channels + c);
    a += gradient;
    b += gradient * (value - center);
  }
#else
  VFLOAT shift;
  LOAD_BLOCK(shift, x, c);
  for (int row = begin; row < end; ++row) {
    LOAD_BLOCK(value, x, row * channels + c);
    a += value - shift;
  }
  a /= (float)(end - begin);
  for (int row = begin; row < end; ++row) {
    LOAD_BLOCK(value, x, row * channels + c);
    value = value - shift - a;
    b += value * value;
  }
#endif
  float lanes[2 * VW];
  CLNET_CAT(vstore, VW)(a, 0, lanes);
  CLNET_CAT(vstore, VW)(b, 1, lanes);
  for (int k = 0; k < width; ++k) {
    STORE(first, (c + k) * chunks + part, lanes[k]);
    STORE(second, (c + k) * chunks + part, lanes[VW + k]);
  }
}
