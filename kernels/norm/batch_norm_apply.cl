// y = by_x (x - mean) + by_g g + constant, with factors of the channel: the output of batch normalisation, and its gradient.
#include "clnet.clh"
#if CPU
#include "vector.clh"
#endif
#include "epilogue.clh"

#if BACKWARD
#define EXTRA_IN IN(g), IN(by_g),
#else
#define EXTRA_IN
#endif

#if !CPU
kernel void batch_norm_apply(IN(x), IN(mean), IN(by_x), IN(constant_), EXTRA_IN OUT(y), const int elements, const int channels,
                             const int spatial EPILOGUE_PARAMETERS) {
  const int i = (int)get_global_id(0);
  if (i >= elements) return;
  const int c = REMAINDER(i / spatial, channels);
  float result = (LOAD(x, i) - LOAD(mean, c)) * LOAD(by_x, c) + LOAD(constant_, c);
#if BACKWARD
  result += LOAD(g, i) * LOAD(by_g, c);
#endif
  STORE(y, i, EPILOGUE(result, i, c));
}
#else
#if COLUMNS
// spatial == 1: rows of channels.
kernel void batch_norm_apply_columns(IN(x), IN(mean), IN(by_x), IN(constant_), EXTRA_IN OUT(y), const int n, const int channels,
                                     const int rows_per_item EPILOGUE_PARAMETERS) {
  const int first = (int)get_global_id(0) * rows_per_item, last = BLOCK_END(first, rows_per_item, n);
  for (int row = first; row < last; ++row) {
    const int at = row * channels;
    int c = 0;
    for (; c + VW <= channels; c += VW) {
      VFLOAT result = (VLOAD(x, at + c) - VLOAD(mean, c)) * VLOAD(by_x, c) + VLOAD(constant_, c);
#if BACKWARD
      result += VLOAD(g, at + c) * VLOAD(by_g, c);
#endif
      VSTORE(y, at + c, VEPILOGUE(result, at + c, c, 1));
    }
    for (; c < channels; ++c) {
      float result = (LOAD(x, at + c) - LOAD(mean, c)) * LOAD(by_x, c) + LOAD(constant_, c);
#if BACKWARD
      result += LOAD(g, at + c) * LOAD(by_g, c);
#endif
      STORE(y, at + c, EPILOGUE(result, at + c, c));
    }
  }
}
#else
// Images one after the other, or pieces of large ones.
kernel void batch_norm_apply_rows(IN(x), IN(mean), IN(by_x), IN(constant_), EXTRA_IN OUT(y), const int images, const int channels,
                                  const int spatial, const int piece, const int pieces, const int images_per_item EPILOGUE_PARAMETERS) {
  const int item = (int)get_global_id(0), from = REMAINDER(item, pieces) * piece, count = min(piece, spatial - from);
  const int first = item / pieces * images_per_item, last = BLOCK_END(first, images_per_item, images);
  for (int image = first; image < last; ++image) {
    const int c = REMAINDER(image, channels), at = image * spatial + from;
    const float center = LOAD(mean, c), scale = LOAD(by_x, c), add = LOAD(constant_, c);
#if BACKWARD
    const float scale_g = LOAD(by_g, c);
#endif
    int i = 0;
#if BACKWARD
#define ADD_GRADIENT result += VLOAD(g, at + i) * scale_g;
#else
#define ADD_GRADIENT
#endif
#ifdef NONTEMPORAL_STORES
    if (NONTEMPORAL_ALIGNED(PTR(y) + at))
      for (; i + VW <= count; i += VW) {
        VFLOAT result = (VLOAD(x, at + i) - center) * scale + add;
        ADD_GRADIENT
        NONTEMPORAL_VSTORE(y, at + i, VEPILOGUE(result, at + i, c, 0));
      }
#endif
    for (; i + VW <= count; i += VW) {
      VFLOAT result = (VLOAD(x, at + i) - center) * scale + add;
      ADD_GRADIENT
      VSTORE(y, at + i, VEPILOGUE(result, at + i, c, 0));
    }
    for (; i < count; ++i) {
      float result = (LOAD(x, at + i) - center) * scale + add;
#if BACKWARD
      result += LOAD(g, at + i) * scale_g;
#endif
      STORE(y, at + i, EPILOGUE(result, at + i, c));
    }
  }
  NONTEMPORAL_FENCE();
}
#endif
#endif
