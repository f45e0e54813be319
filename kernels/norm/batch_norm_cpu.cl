// One chunk of a channel per work-item, with explicit vectors along the image.
#include "batch_norm.clh"
#include "vector.clh"

kernel void batch_norm_cpu(IN(x), EXTRA_IN OUT(first), OUT(second), const int n, const int channels, const int spatial,
                           const int chunk, const int chunks) {
  const int part = (int)get_global_id(0), c = part / chunks, begin = REMAINDER(part, chunks) * chunk, end = BLOCK_END(begin, chunk, n * spatial);
  VFLOAT va = (VFLOAT)(0.0f), vb = va, vc = va, vd = va;
  float a = 0, b = 0;
#if BACKWARD
  const float center = LOAD(mean, c);
  FOR_SEGMENTS(begin, end, c) {
    int i = 0;
    for (; i + 2 * VW <= count; i += 2 * VW) {
      const VFLOAT g0 = VLOAD(g, at + i), g1 = VLOAD(g, at + i + VW);
      va += g0;
      vc += g1;
      vb += g0 * (VLOAD(x, at + i) - center);
      vd += g1 * (VLOAD(x, at + i + VW) - center);
    }
    for (; i < count; ++i) {
      a += LOAD(g, at + i);
      b += LOAD(g, at + i) * (LOAD(x, at + i) - center);
    }
  }
  a += clnet_lanes_sum(va + vc);
  b += clnet_lanes_sum(vb + vd);
#else
  const float shift = LOAD(x, c * spatial);
  FOR_SEGMENTS(begin, end, c) {
    int i = 0;
    for (; i + 2 * VW <= count; i += 2 * VW) {
      va += VLOAD(x, at + i) - shift;
      vb += VLOAD(x, at + i + VW) - shift;
    }
    for (; i < count; ++i) a += LOAD(x, at + i) - shift;
  }
  a = (a + clnet_lanes_sum(va + vb)) / (end - begin);
  FOR_SEGMENTS(begin, end, c) {
    int i = 0;
    for (; i + 2 * VW <= count; i += 2 * VW) {
      const VFLOAT d0 = VLOAD(x, at + i) - shift - a, d1 = VLOAD(x, at + i + VW) - shift - a;
      vc += d0 * d0;
      vd += d1 * d1;
    }
    for (; i < count; ++i) {
      const float deviation = LOAD(x, at + i) - shift - a;
      b += deviation * deviation;
    }
  }
  b += clnet_lanes_sum(vc + vd);
#endif
  STORE(first, part, a);
  STORE(second, part, b);
}
