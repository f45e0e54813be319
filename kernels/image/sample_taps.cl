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
