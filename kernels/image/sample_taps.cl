// Sums of pixels at places that are data. x is {images, channels, pixels}; place n pixels + q is pixel q of image n, others are none.
// Places and weights are {rows, taps, outputs}, the samples {rows, channels, outputs}.
#include "clnet.clh"

#ifdef DOT
// The weights' gradient: of each tap the product of samples' gradients and pixels, over all channels.
kernel void sample_taps(IN(x), IN(places), IN(g), OUT(y), const int lines, const int channels, const int pixels, const int taps,
                        const int outputs, const int all) {
  const int p = (int)get_global_id(0), line = (int)get_global_id(1);
  if (p >= outputs || line >= lines) return;
  const int row = line / taps, place = LOAD(places, line * outputs + p);
  float sum = 0;
  if (place >= 0 && place < all) {
    const int image = place / pixels, first = image * channels * pixels + REMAINDER(place, pixels);
    for (int c = 0; c < channels; ++c) sum += LOAD(g, (row * channels + c) * outputs + p) * LOAD(x, first + c * pixels);
  }
  STORE(y, line * outputs + p, sum);
}
#elif defined(CHUNK)
// For CPUs: so many samples of a row together, one channel after the other, by vectors. The taps of a row are mostly of one image.
__attribute__((reqd_work_group_size(1, 1, 1))) kernel void sample_taps(IN(x), IN(places), IN(weights), OUT(y), const int rows,
                                                                       const int channels, const int pixels, const int taps,
                                                                       const int outputs, const int all) {
  const int p0 = (int)get_global_id(0) * CHUNK, row = (int)get_global_id(1), count = min(CHUNK, outputs - p0);
  if (p0 >= outputs || row >= rows) return;
  const int first = row * taps * outputs + p0;
  int begin = -1, others = 0;
  for (int t = 0; t < taps; ++t)
    for (int p = 0; p < count; ++p) {
      const int place = LOAD(places, first + t * outputs + p);
      if (place < 0 || place >= all) continue;
      if (begin < 0) begin = place / pixels * pixels;
      others |= (uint)(place - begin) >= (uint)pixels;
    }
  if (begin < 0) begin = 0;
  for (int c = 0; c < channels; ++c) {
    float sums[CHUNK];
    for (int p = 0; p < CHUNK; ++p) sums[p] = 0;
    const int plane = begin * channels + c * pixels;
    for (int t = 0; t < taps; ++t) {
      const int line = first + t * outputs;
VECTOR_LOOP
      for (int p = 0; p < count; ++p) {
        const int at = LOAD(places, line + p) - begin, inside = (uint)at < (uint)pixels;
        const float value = LOAD(weights, line + p) * LOAD(x, plane + (inside ? at : 0));
        sums[p] += inside ? value : 0.0f;
      }
      for (int p = 0; others && p < count; ++p) {
        const int place = LOAD(places, line + p);
        if (place < 0 || place >= all || (uint)(place - begin) < (uint)pixels) continue;
        sums[p] += LOAD(weights, line + p) * LOAD(x, (place / pixels * channels + c) * pixels + REMAINDER(place, pixels));
      }
    }
    for (int p = 0; p < count; ++p) STORE(y, (row * channels + c) * outputs + p0 + p, sums[p]);
  }
}
#else
kernel void sample_taps(IN(x), IN(places), IN(weights), OUT(y), const int lines, const int channels, const int pixels,
                        const int taps, const int outputs, const int all) {
  const int p = (int)get_global_id(0), line = (int)get_global_id(1);
  if (p >= outputs || line >= lines) return;
  const int row = line / channels, channel = REMAINDER(line, channels), first = row * taps * outputs + p;
  float sum = 0;
  for (int t = 0; t < taps; ++t) {
    const int place = LOAD(places, first + t * outputs);
    if (place >= 0 && place < all) {
      const int image = place / pixels, pixel = REMAINDER(place, pixels);
      sum += LOAD(weights, first + t * outputs) * LOAD(x, (image * channels + channel) * pixels + pixel);
    }
  }
  STORE(y, line * outputs + p, sum);
}
#endif
